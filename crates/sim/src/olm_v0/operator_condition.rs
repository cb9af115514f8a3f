//! Operator conditions: what an operator says about itself, and whether it may be replaced now.

use serde_json::{Value, json};

use super::{
    Key, OlmV0, Task,
    objects::{array, at, set, text},
};
use crate::apiserver::gk;

impl OlmV0 {
    /// Copies an operator's conditions from spec to status and looks at its successor again.
    pub(super) fn sync_operator_condition(&mut self, key: &Key) {
        self.objects.modify_status(&gk::OPERATOR_CONDITION, key, |condition| {
            let generation = at(condition, "/metadata/generation").clone();
            let mut said = array(condition, "/spec/conditions").to_vec();
            for entry in &mut said {
                set(entry, "/observedGeneration", generation.clone());
            }
            if !said.is_empty() || !array(condition, "/status/conditions").is_empty() {
                set(condition, "/status/conditions", Value::Array(said));
            }
        });
        for csv in self.objects.list(&gk::CSV, &key.namespace) {
            if text(&csv, "/spec/replaces") == key.name {
                let newer = Key::new(&key.namespace, text(&csv, "/metadata/name"));
                self.later(self.timing.csv_step, Task::Csv(newer));
            }
        }
    }

    /// Why an installed CSV must not be replaced now; an admin's override wins.
    pub(super) fn not_upgradeable(&self, csv: &Key) -> Option<String> {
        let condition = self.objects.get(&gk::OPERATOR_CONDITION, csv)?;
        if let Some(said) = upgradeable(array(&condition, "/spec/overrides")) {
            return refusal(said);
        }
        let said = upgradeable(array(&condition, "/status/conditions"))?;
        if at(said, "/observedGeneration") != at(&condition, "/metadata/generation") {
            return Some("the operatorcondition status is outdated".to_owned());
        }
        refusal(said)
    }

    /// Makes the operator condition of a new CSV.
    pub(super) fn ensure_operator_condition(&self, key: &Key, csv: &Value) {
        if self.objects.get(&gk::OPERATOR_CONDITION, key).is_some() {
            return;
        }
        let deployments: Vec<&Value> = array(csv, "/spec/install/spec/deployments")
            .iter()
            .map(|deployment| at(deployment, "/name"))
            .collect();
        self.objects.create(
            &gk::OPERATOR_CONDITION,
            json!({
                "apiVersion": "operators.coreos.com/v2",
                "kind": "OperatorCondition",
                "metadata": {
                    "name": key.name,
                    "namespace": key.namespace,
                    "ownerReferences": [{
                        "apiVersion": "operators.coreos.com/v1alpha1",
                        "kind": "ClusterServiceVersion",
                        "name": key.name,
                        "uid": at(csv, "/metadata/uid"),
                        "controller": true,
                        "blockOwnerDeletion": false,
                    }],
                },
                "spec": { "deployments": deployments, "serviceAccounts": deployments },
            }),
        );
    }
}

fn upgradeable(conditions: &[Value]) -> Option<&Value> {
    conditions.iter().find(|condition| text(condition, "/type") == "Upgradeable")
}

fn refusal(said: &Value) -> Option<String> {
    (text(said, "/status") == "False")
        .then(|| format!("the operator is not upgradeable: {}", text(said, "/message")))
}
