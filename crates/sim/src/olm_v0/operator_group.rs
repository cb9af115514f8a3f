//! Operator groups: which namespaces they target, and the trouble when there is not exactly one.

use serde_json::json;

use super::{
    Key, OlmV0, Task,
    objects::{array, set, stamp, text},
    phase::{FailForward, Groups},
};
use crate::apiserver::gk;

const FAIL_FORWARD: &str = "TechPreviewUnsafeFailForward";

impl OlmV0 {
    /// Writes the status of a namespace's operator groups and looks at its CSVs again.
    pub(super) fn sync_operator_groups(&mut self, namespace: &str) {
        let groups = self.objects.keys(&gk::OPERATOR_GROUP, namespace);
        let now = stamp(self.now);
        for key in &groups {
            let many = groups.len() > 1;
            self.objects.modify_status(&gk::OPERATOR_GROUP, key, |group| {
                let targets = array(group, "/spec/targetNamespaces").to_vec();
                let targets = if targets.is_empty() { vec![json!("")] } else { targets };
                let conditions = if many {
                    json!([{
                        "type": "MultipleOperatorGroup",
                        "status": "True",
                        "reason": "MultipleOperatorGroupsFound",
                        "message": "Multiple OperatorGroup found in the same namespace",
                        "lastTransitionTime": now,
                    }])
                } else {
                    json!([])
                };
                let known = array(group, "/status/conditions").len();
                if array(group, "/status/namespaces") == targets && known == usize::from(many) {
                    return;
                }
                set(
                    group,
                    "/status",
                    json!({
                        "lastUpdated": now, "namespaces": targets, "conditions": conditions,
                    }),
                );
            });
        }
        for csv in self.objects.keys(&gk::CSV, namespace) {
            self.later(self.timing.csv_noticed, Task::Csv(csv));
        }
        for plan in self.objects.keys(&gk::INSTALL_PLAN, namespace) {
            self.later(self.timing.plan_starts, Task::InstallPlan(plan));
        }
        self.later(self.timing.resolution, Task::Resolve(namespace.to_owned()));
    }

    /// How many operator groups a namespace has.
    pub(super) fn groups(&self, namespace: &str) -> Groups {
        match self.objects.keys(&gk::OPERATOR_GROUP, namespace).len() {
            0 => Groups::None,
            1 => Groups::One,
            _ => Groups::Many,
        }
    }

    /// Whether a namespace's operator group lets failed CSVs be replaced.
    pub(super) fn fail_forward(&self, namespace: &str) -> FailForward {
        let groups = self.objects.list(&gk::OPERATOR_GROUP, namespace);
        if groups.iter().any(|group| text(group, "/spec/upgradeStrategy") == FAIL_FORWARD) {
            FailForward::On
        } else {
            FailForward::Off
        }
    }

    /// The only operator group of a namespace.
    pub(super) fn the_group(&self, namespace: &str) -> Option<Key> {
        self.objects.keys(&gk::OPERATOR_GROUP, namespace).into_iter().next()
    }
}
