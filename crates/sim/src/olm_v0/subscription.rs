//! Subscriptions: their state, which follows the existence of a CSV and nothing else, and their
//! conditions.

use serde_json::{Value, json};

use super::{
    Key, OlmV0, Task,
    objects::{array, at, set, stamp, text},
};
use crate::apiserver::gk;

/// Set on a subscription that a plan has made for a dependency: the plan's name.
pub(super) const GENERATED_BY: &str = "olm.generated-by";

impl OlmV0 {
    /// Writes a subscription's state by the CSV it names: there is one, or there is none.
    pub(super) fn sync_subscription(&mut self, key: &Key) {
        let Some(subscription) = self.objects.get(&gk::SUBSCRIPTION, key) else { return };
        let adopted = self.plan_that_made(key, &subscription);
        let current = if adopted.is_some() {
            text(&subscription, "/spec/startingCSV")
        } else {
            text(&subscription, "/status/currentCSV")
        };
        if current.is_empty() {
            return;
        }
        let exists = self.objects.get(&gk::CSV, &Key::new(&key.namespace, current)).is_some();
        let state = if exists { "AtLatestKnown" } else { "UpgradePending" };
        if adopted.is_none() && text(&subscription, "/status/state") == state {
            return;
        }
        let (current, now) = (current.to_owned(), stamp(self.now));
        self.objects.modify_status(&gk::SUBSCRIPTION, key, |subscription| {
            if let Some(plan) = &adopted {
                refer(subscription, plan);
                set(subscription, "/status/currentCSV", json!(current));
            }
            set(subscription, "/status/state", json!(state));
            if exists {
                set(subscription, "/status/installedCSV", json!(current));
            }
            set(subscription, "/status/lastUpdated", json!(now));
        });
    }

    /// The plan that made a subscription which does not refer to any plan yet.
    fn plan_that_made(&self, key: &Key, subscription: &Value) -> Option<std::sync::Arc<Value>> {
        let name = at(subscription, "/metadata/annotations").get(GENERATED_BY)?.as_str()?;
        if !text(subscription, "/status/installPlanRef/name").is_empty() {
            return None;
        }
        self.objects.get(&gk::INSTALL_PLAN, &Key::new(&key.namespace, name))
    }

    /// Writes what a subscription says about its catalogs and its plan.
    pub(super) fn sync_conditions(&mut self, key: &Key) {
        let Some(subscription) = self.objects.get(&gk::SUBSCRIPTION, key) else { return };
        let reference = text(&subscription, "/status/installPlanRef/name");
        let plan = Key::new(&key.namespace, reference);
        let plan = self.objects.get(&gk::INSTALL_PLAN, &plan);
        let is_missing = !reference.is_empty() && plan.is_none();
        let is_pending = text(&subscription, "/status/state") == "UpgradePending";
        // A reference to a plan that is gone is cleared only together with one of these.
        let has = |kind| condition(&subscription, kind).is_some();
        let is_noted = has("InstallPlanPending") || has("InstallPlanFailed");
        let is_new = condition(&subscription, "CatalogSourcesUnhealthy").is_none();
        let health = self.catalog_health(&key.namespace);
        let deprecations = self.deprecations(&subscription);
        let now = stamp(self.now);
        self.objects.modify_status(&gk::SUBSCRIPTION, key, |subscription| {
            let reason = if is_new { "CatalogSourcesAdded" } else { "AllCatalogSourcesHealthy" };
            let healthy = "all available catalogsources are healthy";
            say(subscription, "CatalogSourcesUnhealthy", Some(["False", reason, healthy]), &now);
            if array(subscription, "/status/catalogHealth").len() != health.len() {
                set(subscription, "/status/catalogHealth", Value::Array(health));
            }
            let missing = ["True", "ReferencedInstallPlanNotFound", ""];
            if !(is_missing && is_pending) {
                say(subscription, "InstallPlanMissing", is_missing.then_some(missing), &now);
            }
            say_about_plan(subscription, plan.as_deref(), &now);
            for (kind, message) in &deprecations {
                let told = message.as_deref().map(|message| ["True", "", message]);
                say(subscription, kind, told, &now);
            }
            if is_missing && is_pending && is_noted {
                // What waited for a plan that is gone asks for another one.
                for field in ["state", "currentCSV", "installPlanRef", "installplan"] {
                    set(subscription, &format!("/status/{field}"), Value::Null);
                }
                set(subscription, "/status/lastUpdated", json!(now));
            }
        });
        if is_new {
            self.later(self.timing.conditions_follow, Task::Conditions(key.clone()));
        }
    }

    /// What the catalog says is deprecated: the package, the channel, the installed bundle, and
    /// all of it in one sentence.
    fn deprecations(&self, subscription: &Value) -> [(&'static str, Option<String>); 4] {
        let source = Key::new(
            text(subscription, "/spec/sourceNamespace"),
            text(subscription, "/spec/source"),
        );
        let served = self.catalogs.get(&source).and_then(|served| served.snapshot.as_deref());
        let name = text(subscription, "/spec/name");
        let package = served.and_then(|catalog| catalog.graph().packages.get(name));
        let channel = text(subscription, "/spec/channel");
        let bundle = text(subscription, "/status/installedCSV");
        let said = |schema: &str, of: &str, message: Option<&String>| {
            message.map(|message| format!("{schema}/{of}: {message}"))
        };
        let of_package = said("olm.package", name, package.and_then(|p| p.deprecation.as_ref()));
        let found = package.and_then(|p| p.channels.get(channel)?.deprecation.as_ref());
        let of_channel = said("olm.channel", channel, found);
        let found = package.and_then(|p| p.bundles.get(bundle)?.deprecation.as_ref());
        let of_bundle = said("olm.bundle", bundle, found);
        let all: Vec<&str> = [&of_package, &of_channel, &of_bundle]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let all = (!all.is_empty()).then(|| all.join("; "));
        [
            ("PackageDeprecated", of_package),
            ("ChannelDeprecated", of_channel),
            ("BundleDeprecated", of_bundle),
            ("Deprecated", all),
        ]
    }

    /// What subscriptions say of the catalog sources they see. Always good news: the real one says
    /// so of registries that never answered, too.
    fn catalog_health(&self, namespace: &str) -> Vec<Value> {
        let now = stamp(self.now);
        self.visible_sources(namespace)
            .iter()
            .map(|source| {
                json!({
                    "catalogSourceRef": {
                        "apiVersion": "operators.coreos.com/v1alpha1",
                        "kind": "CatalogSource",
                        "name": source.name,
                        "namespace": source.namespace,
                    },
                    "healthy": true,
                    "lastUpdated": now,
                })
            })
            .collect()
    }
}

/// Makes a subscription refer to a plan.
pub(super) fn refer(subscription: &mut Value, plan: &Value) {
    let field = |pointer| at(plan, pointer).clone();
    set(
        subscription,
        "/status/installPlanRef",
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "InstallPlan",
            "name": field("/metadata/name"),
            "namespace": field("/metadata/namespace"),
            "resourceVersion": field("/metadata/resourceVersion"),
            "uid": field("/metadata/uid"),
        }),
    );
    set(
        subscription,
        "/status/installplan",
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "InstallPlan",
            "name": field("/metadata/name"),
            "uuid": field("/metadata/uid"),
        }),
    );
    set(subscription, "/status/installPlanGeneration", field("/spec/generation"));
}

fn say_about_plan(subscription: &mut Value, plan: Option<&Value>, now: &str) {
    let phase = plan.map_or("", |plan| text(plan, "/status/phase"));
    let trouble = plan.map_or("", |plan| text(plan, "/status/conditions/0/message")).to_owned();
    let (pending, failed) = match (plan, phase) {
        (None, _) | (_, "Complete") => (None, None),
        (_, "Installing") => (Some("Installing"), None),
        (_, "Failed") => (None, Some("InstallComponentFailed")),
        _ => (Some("RequiresApproval"), None),
    };
    let message = if phase == "Installing" { "" } else { &trouble };
    let pending = pending.map(|reason| ["True", reason, message]);
    say(subscription, "InstallPlanPending", pending, now);
    let failed = failed.map(|reason| ["True", reason, trouble.as_str()]);
    say(subscription, "InstallPlanFailed", failed, now);
}

/// One condition of an object.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    array(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

/// Sets a condition to a status, reason and message, or takes it away.
pub(super) fn say(object: &mut Value, kind: &str, told: Option<[&str; 3]>, now: &str) {
    let mut conditions = array(object, "/status/conditions").to_vec();
    let place = conditions.iter().position(|condition| text(condition, "/type") == kind);
    match (told, place) {
        (None, None) => return,
        (None, Some(place)) => {
            conditions.remove(place);
        }
        (Some([status, reason, message]), place) => {
            let mut condition = json!({
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": now,
            });
            for (field, said) in [("/reason", reason), ("/message", message)] {
                if said.is_empty() {
                    set(&mut condition, field, Value::Null);
                }
            }
            match place.and_then(|place| conditions.get_mut(place)) {
                None => conditions.push(condition),
                Some(known) => {
                    if text(known, "/status") == status {
                        let since = at(known, "/lastTransitionTime").clone();
                        set(&mut condition, "/lastTransitionTime", since);
                    }
                    *known = condition;
                }
            }
        }
    }
    set(object, "/status/conditions", Value::Array(conditions));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut object = json!({});
        say(&mut object, "Bad", Some(["True", "Why", "because"]), "t1");
        say(&mut object, "Bad", Some(["True", "Other", "because"]), "t2");
        assert_eq!(
            array(&object, "/status/conditions"),
            [json!({
                "type": "Bad", "status": "True", "reason": "Other", "message": "because",
                "lastTransitionTime": "t1",
            })]
        );
        say(&mut object, "Bad", None, "t3");
        assert_eq!(array(&object, "/status/conditions"), [Value::Null; 0]);
    }
}
