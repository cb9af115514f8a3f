//! Resolution of a namespace: when it happens, what becomes of its answer.
//!
//! What the answer is, is decided by the catalog crate's engine (`resolver` asks it). Here is the
//! rest: a namespace whose subscriptions all wait for a plan is left alone; a failure that comes
//! from an upgrade in progress is reported only when it lasts; one plan holds everything that
//! moves, and one Manual subscription makes it Manual.

use std::sync::Arc;

use rand::Rng;
use serde_json::{Value, json};

use super::{
    Key, OlmV0, Task,
    bundle::Bundle,
    install_plan::Run,
    objects::{at, key_of, set, stamp, text},
    phase::Groups,
    queue::after,
    resolver::{Answer, Failure},
    subscription::{refer, say},
};
use crate::apiserver::gk;

/// What moves in the next plan.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) bundle: Bundle,
    /// The CSV it takes over from.
    pub(super) from: Option<String>,
    /// The subscription that asked for it; a dependency has none yet.
    pub(super) subscription: Option<Key>,
}

impl OlmV0 {
    /// Resolves a namespace and makes the next plan.
    pub(super) fn resolve(&mut self, namespace: &str) {
        let subscriptions = self.objects.list(&gk::SUBSCRIPTION, namespace);
        let all_wait = subscriptions.iter().all(|subscription| {
            text(subscription, "/status/state") == "UpgradePending"
                && !text(subscription, "/status/installPlanRef/name").is_empty()
        });
        if all_wait || self.groups(namespace) != Groups::One || self.is_being_referenced(namespace)
        {
            return;
        }
        match self.ask(namespace, &subscriptions) {
            Answer::NotYet => {}
            Answer::Failed(failure) => self.report(namespace, &subscriptions, &failure),
            Answer::Moves(moves) => {
                self.failing.remove(namespace);
                self.make_plan(namespace, &subscriptions, &moves);
            }
        }
    }

    /// Whether a plan was made that its subscriptions do not refer to yet.
    fn is_being_referenced(&self, namespace: &str) -> bool {
        self.runs.iter().any(|(key, run)| key.namespace == namespace && !run.referrers.is_empty())
    }

    fn report(&mut self, namespace: &str, subscriptions: &[Arc<Value>], failure: &Failure) {
        if let Some(unfinished) = &failure.unfinished {
            let known = self.failing.get(namespace).filter(|(csvs, _)| csvs == unfinished);
            let due = if let Some((_, due)) = known {
                *due
            } else {
                let has_neighbour = subscriptions.iter().any(|subscription| {
                    text(subscription, "/status/state") == "AtLatestKnown"
                        && !unfinished.contains(text(subscription, "/status/currentCSV"))
                });
                let delay = if has_neighbour {
                    self.timing.unsatisfiable_beside_neighbour
                } else {
                    self.timing.unsatisfiable_after
                };
                let due = after(self.now, delay.draw(&mut self.rng));
                self.failing.insert(namespace.to_owned(), (unfinished.clone(), due));
                due
            };
            if self.now < due {
                self.queue.push(due, Task::Resolve(namespace.to_owned()));
                return;
            }
        }
        let now = stamp(self.now);
        let told = ["True", failure.reason, &failure.message];
        for subscription in subscriptions {
            self.objects.modify_status(&gk::SUBSCRIPTION, &key_of(subscription), |subscription| {
                say(subscription, "ResolutionFailed", Some(told), &now);
            });
        }
    }

    fn make_plan(&mut self, namespace: &str, subscriptions: &[Arc<Value>], moves: &[Resolved]) {
        let now = stamp(self.now);
        for subscription in subscriptions {
            self.objects.modify_status(&gk::SUBSCRIPTION, &key_of(subscription), |subscription| {
                say(subscription, "ResolutionFailed", None, &now);
            });
        }
        let current = |key: &Key| {
            let subscription =
                subscriptions.iter().find(|subscription| key_of(subscription) == *key);
            subscription.map_or("", |subscription| text(subscription, "/status/currentCSV"))
        };
        let referrers: Vec<(Key, String)> = moves
            .iter()
            .filter_map(|resolved| {
                let key = resolved.subscription.as_ref()?;
                let name = &resolved.bundle.name;
                (current(key) != name).then(|| (key.clone(), name.clone()))
            })
            .collect();
        if referrers.is_empty() {
            return;
        }
        let is_manual = subscriptions
            .iter()
            .any(|subscription| text(subscription, "/spec/installPlanApproval") == "Manual");
        let name = format!("install-{}", self.random_suffix());
        let csvs: Vec<&str> = moves.iter().map(|resolved| resolved.bundle.name.as_str()).collect();
        let owners: Vec<Value> = subscriptions.iter().map(|s| owner(s)).collect();
        self.objects.create(
            &gk::INSTALL_PLAN,
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "InstallPlan",
                "metadata": {
                    "generateName": "install-",
                    "name": name,
                    "namespace": namespace,
                    "ownerReferences": owners,
                },
                "spec": {
                    "approval": if is_manual { "Manual" } else { "Automatic" },
                    "approved": !is_manual,
                    "clusterServiceVersionNames": csvs,
                    "generation": self.next_generation(namespace, subscriptions),
                },
            }),
        );
        let key = Key::new(namespace, name);
        self.later(self.timing.plan_planned, Task::InstallPlan(key.clone()));
        self.runs.insert(key, Run::planned(moves, referrers));
    }

    fn next_generation(&self, namespace: &str, subscriptions: &[Arc<Value>]) -> u64 {
        let plans = self.objects.list(&gk::INSTALL_PLAN, namespace);
        let plans = plans.iter().map(|plan| at(plan, "/spec/generation"));
        let known = subscriptions.iter().map(|s| at(s, "/status/installPlanGeneration"));
        plans.chain(known).filter_map(Value::as_u64).max().unwrap_or(0) + 1
    }

    /// Writes into the subscriptions which plan is theirs.
    pub(super) fn refer_to_plan(&mut self, plan: &Value, referrers: Vec<(Key, String)>) {
        let now = stamp(self.now);
        for (subscription, csv) in referrers {
            self.objects.modify_status(&gk::SUBSCRIPTION, &subscription, |subscription| {
                refer(subscription, plan);
                set(subscription, "/status/currentCSV", json!(csv));
                set(subscription, "/status/state", json!("UpgradePending"));
                set(subscription, "/status/lastUpdated", json!(now));
            });
            // The plan may have run before it was referred to.
            let csv = Key::new(&subscription.namespace, csv);
            if self.objects.get(&gk::CSV, &csv).is_some() {
                self.later(self.timing.subscription_follows, Task::Subscription(subscription));
            }
        }
    }

    fn random_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.rng.random_range(0..LETTERS.len())])).collect()
    }
}

fn owner(subscription: &Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "name": text(subscription, "/metadata/name"),
        "uid": text(subscription, "/metadata/uid"),
        "controller": false,
        "blockOwnerDeletion": false,
    })
}
