//! ClusterServiceVersions: what surrounds one is gathered, `phase` decides, and the transition is
//! written with its history, its event and its effect on the Deployments.

use jiff::Timestamp;
use rand::Rng;
use serde_json::{Value, json};

use super::webhooks::{has_webhooks, installation};
use super::{
    Key, OlmV0, Task,
    objects::{array, at, key_of, set, stamp, text},
    phase::{Facts, Move, Phase, Predecessor, Requirements, Successor, Transition, decide},
    queue::after,
};
use crate::apiserver::gk;

const CLEANUP: &str = "operators.coreos.com/csv-cleanup";

/// How many past conditions a CSV keeps.
const CONDITIONS_MAX: usize = 20;

impl OlmV0 {
    /// Takes a CSV one transition on, if there is one.
    pub(super) fn sync_csv(&mut self, key: &Key) {
        let Some(csv) = self.objects.get(&gk::CSV, key) else { return };
        if !text(&csv, "/metadata/labels/olm.copiedFrom").is_empty() {
            return;
        }
        if !text(&csv, "/metadata/deletionTimestamp").is_empty() {
            self.clean_up(key, &csv);
            return;
        }
        self.ensure_operator_condition(key, &csv);
        let lacking = self.lacking(key, &csv);
        let requirements =
            if lacking.is_empty() { Requirements::Met } else { Requirements::NotMet };
        let others = self.objects.list(&gk::CSV, &key.namespace);
        let replaced_by = others
            .iter()
            .find(|other| text(other, "/spec/replaces") == key.name)
            .map(|other| text(other, "/metadata/name"));
        let facts = Facts {
            phase: Phase::read(text(&csv, "/status/phase")),
            reason: text(&csv, "/status/reason"),
            message: text(&csv, "/status/message"),
            since: text(&csv, "/status/lastTransitionTime").parse().unwrap_or(self.now),
            groups: self.groups(&key.namespace),
            fail_forward: self.fail_forward(&key.namespace),
            replaced_by,
            successor: self.successor(key),
            predecessor: self.predecessor(key, &csv),
            requirements,
            installation: installation(&csv),
            certificates: self.certificates(key),
            rollout: self.rollout(key, &csv),
        };
        let decided = decide(&facts, self.timing.install_timeout, self.now);
        if let Some(until) = self.flapping.get(key).filter(|until| **until > self.now) {
            self.queue.push(*until, Task::Csv(key.clone()));
        }
        match decided {
            Move::Stay => {}
            Move::StayUntil(at) => self.queue.push(at, Task::Csv(key.clone())),
            Move::Delete => self.objects.delete(&gk::CSV, key),
            Move::To(transition) => self.go(key, &csv, (transition, lacking)),
        }
    }

    /// Lets a deleted CSV go.
    fn clean_up(&mut self, key: &Key, csv: &Value) {
        let marked = text(csv, "/metadata/annotations/olm.cleaningUp");
        if marked.is_empty() && text(csv, "/status/phase") == "Deleting" {
            // The real one is seen for a moment with its deletion time.
            self.objects.modify(&gk::CSV, key, |csv| {
                set(csv, "/metadata/annotations/olm.cleaningUp", json!("true"));
            });
            self.later(self.timing.csv_cleanup, Task::Csv(key.clone()));
            return;
        }
        self.objects.modify(&gk::CSV, key, |csv| {
            let kept: Vec<Value> = array(csv, "/metadata/finalizers")
                .iter()
                .filter(|finalizer| finalizer.as_str() != Some(CLEANUP))
                .cloned()
                .collect();
            set(csv, "/metadata/finalizers", Value::Array(kept));
        });
    }

    fn go(&mut self, key: &Key, csv: &Value, (transition, lacking): (Transition, Vec<Value>)) {
        if transition.reason == "NeedsCertRotation" {
            self.renew_certificates(key);
        }
        if text(csv, "/status/phase") == Phase::InstallReady.as_str() {
            self.ensure_deployments(key, csv);
        }
        let now = self.now;
        let group = self.the_group(&key.namespace);
        let met = requirement_list(csv, lacking);
        self.objects.modify(&gk::CSV, key, |csv| {
            if text(csv, "/status/phase").is_empty() {
                introduce(csv, group.as_ref());
            }
            write_phase(csv, &transition, now);
            if transition.phase != Phase::None && transition.reason != "RequirementsUnknown" {
                set(csv, "/status/requirementStatus", Value::Array(met));
            }
        });
        let kind = if transition.phase == Phase::Failed { "Warning" } else { "Normal" };
        self.tell(key, kind, &transition);
        self.later(self.timing.csv_step, Task::Csv(key.clone()));
    }

    /// Writes an event about a CSV. Only bad news: good news is in its conditions.
    fn tell(&self, key: &Key, kind: &str, transition: &Transition) {
        if kind != "Warning" {
            return;
        }
        let name = format!("{}.{:x}", key.name, self.now.as_nanosecond());
        let now = stamp(self.now);
        self.objects.create(
            &gk::EVENT,
            json!({
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": { "name": name, "namespace": key.namespace },
                "involvedObject": {
                    "apiVersion": "operators.coreos.com/v1alpha1",
                    "kind": "ClusterServiceVersion",
                    "name": key.name,
                    "namespace": key.namespace,
                },
                "type": kind,
                "reason": transition.reason,
                "message": transition.message,
                "source": { "component": "operator-lifecycle-manager" },
                "count": 1,
                "firstTimestamp": now,
                "lastTimestamp": now,
            }),
        );
    }

    /// What a CSV needs and does not have, as entries of its `requirementStatus`.
    fn lacking(&self, key: &Key, csv: &Value) -> Vec<Value> {
        let mut lacking = Vec::new();
        let least = text(csv, "/spec/minKubeVersion");
        if is_above(least, &self.kube_version) {
            lacking.push(json!({
                "group": "operators.coreos.com",
                "version": "v1alpha1",
                "kind": "ClusterServiceVersion",
                "name": key.name,
                "status": "PresentNotSatisfied",
                "message": format!(
                    "CSV version requirement not met: minKubeVersion ({least}) > server version ({})",
                    self.kube_version
                ),
            }));
        }
        let replaces = text(csv, "/spec/replaces");
        let predecessor = self.objects.get(&gk::CSV, &Key::new(&key.namespace, replaces));
        let is_held = predecessor
            .as_ref()
            .is_some_and(|csv| !matches!(text(csv, "/status/phase"), "Replacing" | "Deleting"));
        let flaps = self.flapping.get(key).is_some_and(|until| self.now < *until);
        if is_held || flaps || self.unapplied.contains(key) {
            let (status, message) = match predecessor {
                None if !flaps => ("NotPresent", "Service account does not exist"),
                None => ("PresentNotSatisfied", "Policy rule not satisfied for service account"),
                Some(_) => (
                    "PresentNotSatisfied",
                    "Service account is owned by another ClusterServiceVersion",
                ),
            };
            lacking.push(json!({
                "group": "",
                "version": "v1",
                "kind": "ServiceAccount",
                "name": text(csv, "/spec/install/spec/deployments/0/name"),
                "status": status,
                "message": message,
            }));
        }
        lacking
    }

    fn predecessor(&self, key: &Key, csv: &Value) -> Predecessor {
        let previous = Key::new(&key.namespace, text(csv, "/spec/replaces"));
        if previous.name.is_empty() || self.objects.get(&gk::CSV, &previous).is_none() {
            return Predecessor::Gone;
        }
        self.not_upgradeable(&previous).map_or(Predecessor::There, Predecessor::NotUpgradeable)
    }

    /// Whether one of the CSVs after this one has Succeeded.
    fn successor(&self, key: &Key) -> Successor {
        let csvs = self.objects.list(&gk::CSV, &key.namespace);
        let mut name = key.name.clone();
        for _ in 0..csvs.len() {
            let Some(next) = csvs.iter().find(|csv| text(csv, "/spec/replaces") == name) else {
                break;
            };
            if text(next, "/status/phase") == "Succeeded" {
                return Successor::Succeeded;
            }
            text(next, "/metadata/name").clone_into(&mut name);
        }
        Successor::NotYet
    }

    /// Rolls the dice whether the CSV that has replaced `gone` falls back for a moment.
    ///
    /// Where both have webhooks it falls back for another reason: their certificates.
    pub(super) fn flap_after(&mut self, gone: &Key, object: &Value) {
        let has_webhooks_before = has_webhooks(object);
        let csvs = self.objects.list(&gk::CSV, &gone.namespace);
        let newer = csvs.iter().find(|csv| {
            text(csv, "/spec/replaces") == gone.name && text(csv, "/status/phase") == "Succeeded"
        });
        let Some(newer) = newer else { return };
        let (newer, has_webhooks) = (key_of(newer), has_webhooks(newer));
        if has_webhooks && has_webhooks_before {
            self.lose_certificates(newer);
        } else if self.rng.random_range(0..100) < self.timing.flap_percent {
            let until = after(self.now, self.timing.flap.draw(&mut self.rng));
            self.flapping.insert(newer.clone(), until);
            self.later(self.timing.csv_step, Task::Csv(newer));
        }
    }
}

/// What OLM adds to a CSV when it first sees it.
pub(super) fn introduce(csv: &mut Value, group: Option<&Key>) {
    set(csv, "/metadata/finalizers", json!([CLEANUP]));
    if let Some(group) = group {
        for (field, value) in [
            ("olm.operatorGroup", &group.name),
            ("olm.operatorNamespace", &group.namespace),
            ("olm.targetNamespaces", &group.namespace),
        ] {
            set(csv, &format!("/metadata/annotations/{field}"), json!(value));
        }
    }
}

/// Writes a phase the way the real one does: the time of the transition moves with the phase, the
/// history grows with phase or reason.
pub(super) fn write_phase(csv: &mut Value, transition: &Transition, now: Timestamp) {
    let now = stamp(now);
    let phase = transition.phase.as_str();
    if text(csv, "/status/phase") != phase {
        set(csv, "/status/phase", json!(phase));
        set(csv, "/status/lastTransitionTime", json!(now));
    }
    set(csv, "/status/lastUpdateTime", json!(now));
    set(csv, "/status/reason", json!(transition.reason));
    set(csv, "/status/message", json!(transition.message));
    let mut history = array(csv, "/status/conditions").to_vec();
    let is_known = history.last().is_some_and(|last| {
        text(last, "/phase") == phase && text(last, "/reason") == transition.reason
    });
    if !is_known {
        history.push(json!({
            "phase": phase,
            "reason": transition.reason,
            "message": transition.message,
            "lastTransitionTime": at(csv, "/status/lastTransitionTime"),
            "lastUpdateTime": now,
        }));
        let surplus = history.len().saturating_sub(CONDITIONS_MAX);
        history.drain(..surplus);
        set(csv, "/status/conditions", Value::Array(history));
    }
    set(csv, "/status/cleanup", json!({}));
}

fn requirement_list(csv: &Value, lacking: Vec<Value>) -> Vec<Value> {
    let crds = array(csv, "/spec/customresourcedefinitions/owned").iter().map(|crd| {
        json!({
            "group": "apiextensions.k8s.io",
            "version": "v1",
            "kind": "CustomResourceDefinition",
            "name": at(crd, "/name"),
            "status": "Present",
            "message": "CRD is present and Established condition is true",
        })
    });
    crds.chain(lacking).collect()
}

/// Whether `least` is above the version of the server; what can't be read is not.
fn is_above(least: &str, server: &str) -> bool {
    let parts = |version: &str| -> Option<[u64; 3]> {
        let plain = version.trim_start_matches('v');
        let plain = plain.split(['-', '+']).next().unwrap_or_default();
        let mut parts = plain.split('.').map(str::parse::<u64>);
        let mut next = || parts.next().map_or(Some(0), Result::ok);
        Some([next()?, next()?, next()?])
    };
    match (parts(least), parts(server)) {
        (Some(least), Some(server)) => least > server,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_least_version_is_compared_by_number_without_what_follows_a_dash() {
        for (least, server, expected) in [
            ("1.99.0", "1.36.3", true),
            ("1.9.0", "1.31.4", false),
            ("1.31.4", "1.31.4", false),
            ("1.31.5", "v1.31.4+rke2", true),
            ("1.31", "1.31.0-rc.1", false),
            ("", "1.31.4", false),
            ("latest", "1.31.4", false),
        ] {
            assert_eq!(is_above(least, server), expected, "{least} {server}");
        }
    }

    #[test]
    fn the_history_grows_with_phase_or_reason_and_not_with_the_message() {
        let mut csv = json!({});
        let mut write = |phase, reason, message: &str, second| {
            let transition = Transition { phase, reason, message: message.to_owned() };
            write_phase(&mut csv, &transition, Timestamp::from_second(second).unwrap());
        };
        write(Phase::Installing, "InstallSucceeded", "a", 1);
        write(Phase::Installing, "InstallWaiting", "b", 2);
        write(Phase::Installing, "InstallWaiting", "c", 3);
        assert_eq!(array(&csv, "/status/conditions").len(), 2);
        assert_eq!(text(&csv, "/status/message"), "c");
        assert_eq!(text(&csv, "/status/lastTransitionTime"), "1970-01-01T00:00:01Z");
        assert_eq!(text(&csv, "/status/lastUpdateTime"), "1970-01-01T00:00:03Z");
    }
}
