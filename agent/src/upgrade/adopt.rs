//! A CSV that no Subscription refers to keeps OLM from resolving its namespace. The remedy: the
//! Subscription of its package is told that it has it, and OLM goes on from there.

use std::sync::Arc;

use serde_json::json;
use tracing::{info, warn};
use wavelift_api::{
    ClusterUpgrade,
    cluster_upgrade::UpgradeType,
    shared::{Remedy, Targets},
};

use super::{Executor, Seen, Switch, may_start};
use crate::{
    drivers::olm_v0::apply::MANAGER,
    objects::{self, COPIED_FROM, Csv, Subscription},
};

impl Executor {
    /// Adopts one orphan of what an upgrade is about, if it may; says what was done.
    pub(super) async fn adopt(&self, upgrade: &ClusterUpgrade, seen: Seen<'_>) -> Option<String> {
        let spec = &upgrade.spec;
        let is_allowed = self.settings.remedies == Switch::Enabled
            && spec.remedies.contains(&Remedy::AdoptOrphanCSV)
            && spec.kind == UpgradeType::Targets
            && may_start(upgrade);
        if !is_allowed {
            return None;
        }
        let targets = spec.targets.as_ref()?;
        let (subscription, csv) = orphan(targets, &seen.mirror.subscriptions.all(), |namespace| {
            seen.mirror.csvs.of(namespace)
        })?;
        let (namespace, name) = (objects::namespace(&*subscription), objects::name(&*subscription));
        let patch = json!({
            "metadata": {"resourceVersion": objects::version(&*subscription)},
            "status": {"currentCSV": csv},
        });
        let api = kube::Api::<Subscription>::namespaced(self.client.clone(), namespace);
        match MANAGER.merge_status(&api, name, &patch).await {
            Ok(written) => {
                info!(namespace, subscription = name, csv, "adopted");
                seen.mirror.subscriptions.assume(written);
                Some(format!("gave {csv} back to Subscription {namespace}/{name}"))
            }
            Err(error) => {
                let why = wavelift_runtime::telemetry::chain(&error).to_string();
                warn!(namespace, subscription = name, csv, why, "not adopted");
                Some(format!("{csv} cannot be given back to {namespace}/{name}: {why}"))
            }
        }
    }
}

/// A Subscription of the targets that has nothing, and the one CSV of its package that nobody has
/// and that OLM complains of.
fn orphan(
    targets: &Targets,
    subscriptions: &[Arc<Subscription>],
    csvs: impl Fn(&str) -> Vec<Arc<Csv>>,
) -> Option<(Arc<Subscription>, String)> {
    let is_meant = |subscription: &Subscription| {
        targets.operators.iter().any(|operator| {
            let at = operator.namespace.as_deref();
            operator.package == subscription.spec.name
                && at.is_none_or(|at| at == objects::namespace(subscription))
        })
    };
    let has_nothing = |subscription: &Subscription| {
        let status = &subscription.status;
        [&status.installed_csv, &status.current_csv]
            .into_iter()
            .all(|csv| csv.as_deref().is_none_or(str::is_empty))
    };
    for subscription in subscriptions.iter().filter(|s| is_meant(s) && has_nothing(s)) {
        let namespace = objects::namespace(&**subscription);
        let csvs = csvs(namespace);
        let mut found = csvs.iter().filter(|csv| {
            is_of_package(csv, &subscription.spec.name)
                && csv.status.phase == "Succeeded"
                && csv.metadata.deletion_timestamp.is_none()
                && !csv.metadata.labels.as_ref().is_some_and(|l| l.contains_key(COPIED_FROM))
                && !is_referred_to(objects::name(&***csv), namespace, subscriptions)
                && is_complained_of(objects::name(&***csv), subscription)
        });
        if let (Some(csv), None) = (found.next(), found.next()) {
            return Some((Arc::clone(subscription), objects::name(&**csv).to_owned()));
        }
    }
    None
}

fn is_of_package(csv: &Csv, package: &str) -> bool {
    csv.properties()
        .iter()
        .filter(|property| property["type"] == "olm.package")
        .any(|property| property["value"]["packageName"] == package)
}

fn is_referred_to(csv: &str, namespace: &str, subscriptions: &[Arc<Subscription>]) -> bool {
    let here = subscriptions.iter().filter(|s| objects::namespace(&***s) == namespace);
    let mut names = here.flat_map(|s| [&s.status.installed_csv, &s.status.current_csv]);
    names.any(|name| name.as_deref() == Some(csv))
}

/// OLM itself says that nobody refers to it.
fn is_complained_of(csv: &str, subscription: &Subscription) -> bool {
    let words =
        format!("clusterserviceversion {csv} exists and is not referenced by a subscription");
    let mut conditions = subscription.status.conditions.iter();
    conditions
        .any(|c| c.kind == "ResolutionFailed" && c.status == "True" && c.message.contains(&words))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::objects::PROPERTIES;

    fn subscription(status: &Value) -> Arc<Subscription> {
        let object = json!({
            "metadata": {"name": "sail", "namespace": "sea"},
            "spec": {"name": "sail"}, "status": status,
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn csv(name: &str, package: &str, phase: &str) -> Arc<Csv> {
        let property = json!({"type": "olm.package", "value": {"packageName": package}});
        let text = json!({"properties": [property]}).to_string();
        let object = json!({
            "metadata": {"name": name, "namespace": "sea", "annotations": {PROPERTIES: text}},
            "status": {"phase": phase},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn complaint(csv: &str) -> Value {
        let message = format!(
            "constraints not satisfiable: clusterserviceversion {csv} exists and is not referenced \
             by a subscription, and more"
        );
        json!({"conditions": [{"type": "ResolutionFailed", "status": "True", "message": message}]})
    }

    #[track_caller]
    fn adopts(subscription: &Arc<Subscription>, csvs: &[Arc<Csv>], expected: Option<&str>) {
        let targets = serde_json::from_value(json!({"operators": [{"package": "sail"}]})).unwrap();
        let found = orphan(&targets, std::slice::from_ref(subscription), |_| csvs.to_vec());
        assert_eq!(found.map(|(_, csv)| csv).as_deref(), expected);
    }

    #[test]
    fn only_what_surely_is_an_orphan_is_adopted() {
        let orphaned = csv("sail.v1", "sail", "Succeeded");
        let alone = subscription(&complaint("sail.v1"));
        adopts(&alone, std::slice::from_ref(&orphaned), Some("sail.v1"));
        // OLM does not complain of it, or of another one.
        adopts(&subscription(&json!({})), std::slice::from_ref(&orphaned), None);
        adopts(&subscription(&complaint("sail.v2")), std::slice::from_ref(&orphaned), None);
        // It is ill, another package's, or one of two.
        adopts(&alone, &[csv("sail.v1", "sail", "Failed")], None);
        adopts(&alone, &[csv("sail.v1", "mast", "Succeeded")], None);
        let mut both = complaint("sail.v1");
        let more = complaint("sail.v0")["conditions"][0].clone();
        both["conditions"].as_array_mut().unwrap().push(more);
        adopts(
            &subscription(&both),
            &[Arc::clone(&orphaned), csv("sail.v0", "sail", "Succeeded")],
            None,
        );
        // Its Subscription has something.
        let mut has = complaint("sail.v1");
        has["installedCSV"] = json!("sail.v2");
        adopts(&subscription(&has), &[orphaned], None);
    }
}
