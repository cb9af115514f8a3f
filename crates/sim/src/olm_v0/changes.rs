//! From changes of objects to things to look at.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Key, OlmV0, Task,
    objects::{array, at, key_of, text},
};
use crate::apiserver::{Batch, Change, ChangeKind, gk};

impl OlmV0 {
    pub(super) fn take_changes(&mut self) {
        loop {
            match self.objects.changes() {
                Batch::Changes(changes) if changes.is_empty() => return,
                Batch::Changes(changes) => {
                    for change in changes {
                        self.on_change(&change);
                    }
                }
                Batch::Lagged => self.look_at_everything(),
            }
        }
    }

    fn on_change(&mut self, change: &Arc<Change>) {
        let key = Key::new(&*change.namespace, &*change.name);
        let previous = change.previous.as_deref().filter(|_| change.event != ChangeKind::Added);
        let object = &*change.object;
        if change.gk == gk::SUBSCRIPTION {
            self.on_subscription(key, change.event, object, previous);
        } else if change.gk == gk::INSTALL_PLAN {
            self.on_install_plan(&key, change.event, object);
        } else if change.gk == gk::CSV {
            self.on_csv(&key, change.event, object, previous);
        } else if change.gk == gk::DEPLOYMENT {
            self.on_deployment(&key, object);
        } else if change.gk == gk::CATALOG_SOURCE {
            self.on_catalog_source(key, change.event, object, previous);
        } else if change.gk == gk::OPERATOR_GROUP {
            let is_new = previous.is_none_or(|previous| {
                at(previous, "/spec") != at(object, "/spec")
                    || at(previous, "/metadata/annotations") != at(object, "/metadata/annotations")
            });
            if is_new || change.event == ChangeKind::Deleted {
                self.later(self.timing.csv_noticed, Task::OperatorGroups(key.namespace));
            }
        } else if change.gk == gk::OPERATOR_CONDITION && change.event != ChangeKind::Deleted {
            self.later(self.timing.csv_step, Task::OperatorCondition(key));
        }
    }

    fn on_subscription(
        &mut self,
        key: Key,
        event: ChangeKind,
        object: &Value,
        previous: Option<&Value>,
    ) {
        let state = |object: &Value| {
            ["/status/state", "/status/currentCSV", "/status/installedCSV"]
                .map(|pointer| text(object, pointer).to_owned())
        };
        let plan = "/status/installPlanRef/name";
        let is_same = previous.is_some_and(|previous| {
            at(previous, "/spec") == at(object, "/spec")
                && state(previous) == state(object)
                && text(previous, plan) == text(object, plan)
        });
        let namespace = key.namespace.clone();
        match event {
            ChangeKind::Deleted => self.later(self.timing.resolution, Task::Resolve(namespace)),
            ChangeKind::Modified if is_same => {}
            ChangeKind::Added | ChangeKind::Modified => {
                if event == ChangeKind::Added {
                    // One of its own making finds the CSV there already.
                    self.later(self.timing.subscription_follows, Task::Subscription(key.clone()));
                } else if self.contradicts(&key, object) {
                    self.later(self.timing.csv_step, Task::Subscription(key.clone()));
                }
                self.later(self.timing.conditions_follow, Task::Conditions(key));
                self.later(self.timing.resolution, Task::Resolve(namespace));
            }
        }
    }

    /// Whether a subscription has no state although it names a CSV, which only a hand can write.
    fn contradicts(&self, key: &Key, subscription: &Value) -> bool {
        let csv = text(subscription, "/status/currentCSV");
        text(subscription, "/status/state").is_empty()
            && !csv.is_empty()
            && self.objects.get(&gk::CSV, &Key::new(&key.namespace, csv)).is_some()
    }

    fn on_install_plan(&mut self, key: &Key, event: ChangeKind, object: &Value) {
        if event == ChangeKind::Deleted {
            self.runs.remove(key);
            self.later(self.timing.resolution, Task::Resolve(key.namespace.clone()));
        } else {
            let delay = match text(object, "/status/phase") {
                "" => self.timing.plan_planned,
                _ if self.runs.contains_key(key) => self.timing.step_retry,
                _ => self.timing.plan_starts,
            };
            self.later(delay, Task::InstallPlan(key.clone()));
        }
        for subscription in self.objects.list(&gk::SUBSCRIPTION, &key.namespace) {
            if text(&subscription, "/status/installPlanRef/name") == key.name {
                self.later(self.timing.conditions_follow, Task::Conditions(key_of(&subscription)));
            }
        }
    }

    fn on_csv(&mut self, key: &Key, event: ChangeKind, object: &Value, previous: Option<&Value>) {
        let is_same = previous.is_some_and(|previous| {
            at(previous, "/status/phase") == at(object, "/status/phase")
                && at(previous, "/status/reason") == at(object, "/status/reason")
                && at(previous, "/status/message") == at(object, "/status/message")
                && at(previous, "/metadata/deletionTimestamp")
                    == at(object, "/metadata/deletionTimestamp")
        });
        if event == ChangeKind::Modified && is_same {
            return;
        }
        match event {
            ChangeKind::Added => {
                self.later(self.timing.csv_noticed, Task::Csv(key.clone()));
                self.later(self.timing.resolution, Task::Resolve(key.namespace.clone()));
            }
            ChangeKind::Modified => self.later(self.timing.csv_step, Task::Csv(key.clone())),
            ChangeKind::Deleted => self.on_csv_gone(key, object),
        }
        if event != ChangeKind::Modified {
            self.subscriptions_follow(key);
        }
        self.look_at_relatives(key, event, object);
    }

    /// Has the CSVs before and after one in its chain looked at.
    fn look_at_relatives(&mut self, key: &Key, event: ChangeKind, object: &Value) {
        let delay = match event {
            ChangeKind::Added => self.timing.csv_noticed,
            ChangeKind::Modified | ChangeKind::Deleted => self.timing.csv_step,
        };
        let replaces = text(object, "/spec/replaces");
        for other in self.objects.list(&gk::CSV, &key.namespace) {
            let other_key = key_of(&other);
            if other_key != *key
                && (other_key.name == replaces
                    || text(&other, "/spec/replaces") == key.name
                    || text(&other, "/status/phase") == "Replacing")
            {
                self.later(delay, Task::Csv(other_key));
            }
        }
    }

    fn on_csv_gone(&mut self, key: &Key, object: &Value) {
        self.unapplied.remove(key);
        self.flapping.remove(key);
        self.forget_certificates(key);
        if text(object, "/status/phase") == "Deleting" {
            self.flap_after(key, object);
            let namespace = key.namespace.clone();
            self.later(self.timing.resolution_after_hop, Task::Resolve(namespace));
        } else {
            self.later(self.timing.resolution, Task::Resolve(key.namespace.clone()));
        }
    }

    fn subscriptions_follow(&mut self, csv: &Key) {
        for subscription in self.objects.list(&gk::SUBSCRIPTION, &csv.namespace) {
            if text(&subscription, "/status/currentCSV") == csv.name {
                let key = key_of(&subscription);
                self.later(self.timing.subscription_follows, Task::Subscription(key));
            }
        }
    }

    fn on_deployment(&mut self, key: &Key, object: &Value) {
        let owner = text(object, "/metadata/labels/olm.owner");
        for csv in self.objects.list(&gk::CSV, &key.namespace) {
            let names = array(&csv, "/spec/install/spec/deployments");
            if !names.iter().any(|deployment| text(deployment, "/name") == key.name) {
                continue;
            }
            let csv_key = key_of(&csv);
            let delay = if owner == csv_key.name {
                self.timing.csv_step
            } else {
                self.timing.theft_noticed
            };
            self.later(delay, Task::Csv(csv_key));
        }
    }

    fn on_catalog_source(
        &mut self,
        key: Key,
        event: ChangeKind,
        object: &Value,
        previous: Option<&Value>,
    ) {
        match event {
            ChangeKind::Added => self.later(self.timing.catalog_idle, Task::CatalogSource(key)),
            ChangeKind::Deleted => self.resolve_who_sees(&key),
            ChangeKind::Modified => {
                if previous.is_some_and(|previous| at(previous, "/spec") != at(object, "/spec")) {
                    self.later(self.timing.catalog_connects, Task::CatalogSource(key));
                }
            }
        }
    }

    /// Puts in a task for every object: at the start, or when some changes were missed.
    pub(super) fn look_at_everything(&mut self) {
        for key in self.all(&gk::CATALOG_SOURCE) {
            self.later(self.timing.catalog_connects, Task::CatalogSource(key));
        }
        for key in self.all(&gk::SUBSCRIPTION) {
            self.later(self.timing.conditions_follow, Task::Conditions(key.clone()));
            self.later(self.timing.resolution, Task::Resolve(key.namespace.clone()));
            self.later(self.timing.subscription_follows, Task::Subscription(key));
        }
        for key in self.all(&gk::INSTALL_PLAN) {
            self.later(self.timing.plan_starts, Task::InstallPlan(key));
        }
        for key in self.all(&gk::CSV) {
            self.later(self.timing.csv_step, Task::Csv(key));
        }
        for key in self.all(&gk::OPERATOR_GROUP) {
            self.later(self.timing.csv_noticed, Task::OperatorGroups(key.namespace));
        }
        for key in self.all(&gk::OPERATOR_CONDITION) {
            self.later(self.timing.csv_step, Task::OperatorCondition(key));
        }
    }

    fn all(&self, gk: &crate::apiserver::Gk) -> Vec<Key> {
        self.objects.list_all(gk).iter().map(|object| key_of(object)).collect()
    }
}
