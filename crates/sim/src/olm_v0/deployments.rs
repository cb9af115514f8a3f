//! The Deployments of a CSV: making them, and how they do.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Key, OlmV0,
    objects::{array, at, set, text},
    phase::Rollout,
    webhooks::has_webhooks,
};
use crate::apiserver::gk;

impl OlmV0 {
    /// How the first Deployment does that does not do well.
    pub(super) fn rollout(&self, key: &Key, csv: &Value) -> Rollout {
        for wanted in array(csv, "/spec/install/spec/deployments") {
            let name = text(wanted, "/name");
            let deployment = self.objects.get(&gk::DEPLOYMENT, &Key::new(&key.namespace, name));
            let owned = deployment
                .as_deref()
                .filter(|deployment| text(deployment, "/metadata/labels/olm.owner") == key.name);
            let Some(deployment) = owned else { return Rollout::Missing(name.to_owned()) };
            let rollout = progress(name, deployment);
            if rollout != Rollout::Available {
                return rollout;
            }
        }
        Rollout::Available
    }

    pub(super) fn ensure_deployments(&self, key: &Key, csv: &Value) {
        for wanted in array(csv, "/spec/install/spec/deployments") {
            let name = text(wanted, "/name");
            let target = Key::new(&key.namespace, name);
            let mut spec = at(wanted, "/spec").clone();
            if has_webhooks(csv) {
                let certificate = json!(self.certificate_name(key));
                set(&mut spec, "/template/metadata/annotations/olmcahash", certificate);
            }
            let hash = spec_hash(&spec);
            let labels = json!({
                "olm.deployment-spec-hash": hash,
                "olm.managed": "true",
                "olm.owner": key.name,
                "olm.owner.kind": "ClusterServiceVersion",
                "olm.owner.namespace": key.namespace,
            });
            let owners = json!([{
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "ClusterServiceVersion",
                "name": key.name,
                "uid": at(csv, "/metadata/uid"),
                "controller": false,
                "blockOwnerDeletion": false,
            }]);
            if let Some(found) = self.objects.get(&gk::DEPLOYMENT, &target) {
                let is_same = text(&found, "/metadata/labels/olm.deployment-spec-hash") == hash;
                self.objects.modify(&gk::DEPLOYMENT, &target, |deployment| {
                    set(deployment, "/metadata/labels", labels);
                    set(deployment, "/metadata/ownerReferences", owners);
                    if !is_same {
                        set(deployment, "/spec", spec);
                    }
                });
            } else {
                self.objects.create(
                    &gk::DEPLOYMENT,
                    json!({
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "metadata": {
                            "name": name,
                            "namespace": key.namespace,
                            "labels": labels,
                            "ownerReferences": owners,
                        },
                        "spec": spec,
                    }),
                );
            }
        }
    }
}

/// By which OLM knows whether a Deployment is as it should be, defaults of the server or not.
fn spec_hash(spec: &Value) -> String {
    let digest = Sha256::digest(spec.to_string());
    hex::encode(digest.get(..16).unwrap_or_default())
}

/// How one Deployment does, in OLM's words.
fn progress(name: &str, deployment: &Value) -> Rollout {
    let count = |pointer: &str| at(deployment, pointer).as_u64().unwrap_or(0);
    let waiting = |why: String| Rollout::Waiting { deployment: name.to_owned(), why };
    if count("/metadata/generation") > count("/status/observedGeneration") {
        return waiting(format!(
            "waiting for spec update of deployment \"{name}\" to be observed..."
        ));
    }
    let condition = |kind: &str| {
        array(deployment, "/status/conditions").iter().find(|c| text(c, "/type") == kind)
    };
    let reason = condition("Progressing").map_or("", |condition| text(condition, "/reason"));
    if reason == "ProgressDeadlineExceeded" {
        return Rollout::DeadlineExceeded { deployment: name.to_owned() };
    }
    let updated = count("/status/updatedReplicas");
    let wanted = at(deployment, "/spec/replicas").as_u64().unwrap_or(1);
    if updated < wanted {
        return waiting(format!(
            "deployment \"{name}\" out of date: {updated} of {wanted} new replicas updated"
        ));
    }
    if count("/status/replicas") > updated {
        let old = count("/status/replicas") - updated;
        return waiting(format!(
            "deployment \"{name}\" waiting for {old} outdated replica(s) to be terminated"
        ));
    }
    match condition("Available") {
        Some(available) if text(available, "/status") == "True" => Rollout::Available,
        Some(available) => {
            waiting(format!("deployment \"{name}\" not available: {}", text(available, "/message")))
        }
        None => waiting(format!("deployment \"{name}\" not available")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_available_only_when_nothing_old_is_left() {
        let deployment = |replicas: u64| {
            json!({
                "metadata": { "generation": 2 },
                "spec": { "replicas": 1 },
                "status": {
                    "observedGeneration": 2, "replicas": replicas, "updatedReplicas": 1,
                    "conditions": [{ "type": "Available", "status": "True" }],
                },
            })
        };
        assert_eq!(progress("d", &deployment(1)), Rollout::Available);
        assert_eq!(
            progress("d", &deployment(2)),
            Rollout::Waiting {
                deployment: "d".to_owned(),
                why: "deployment \"d\" waiting for 1 outdated replica(s) to be terminated"
                    .to_owned(),
            }
        );
    }
}
