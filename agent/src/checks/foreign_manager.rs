//! Nobody else writes what an upgrade writes. A person with kubectl, OLM itself and the console are
//! fine: they write once. A controller writes again and again, and sets back what the upgrade needs;
//! one that keeps what the upgrade does not touch is worth a word.

use std::collections::BTreeSet;

use wavelift_core::{
    check::{Finding, Outcome},
    plan::Via,
};

use super::{Facts, Found};
use crate::objects::{self, Subscription, field_managers};

pub(super) const NAME: &str = "foreign-manager";

/// Parts of the names under which controllers write that keep objects as they are somewhere else.
const CONTROLLERS: [&str; 12] = [
    "argocd",
    "argo-cd",
    "openshift-gitops",
    "kustomize-controller",
    "helm-controller",
    "source-controller",
    "flux",
    "config-policy-controller",
    "policy-framework",
    "work-agent",
    "klusterlet",
    "fleet-agent",
];

/// Those of them that approve InstallPlans themselves, whatever the Subscription says (ACM's
/// OperatorPolicy).
const APPROVERS: [&str; 2] = ["config-policy-controller", "policy-framework"];

/// The fields of a Subscription's spec that an upgrade rests on.
const FIELDS: [&str; 4] = ["installPlanApproval", "source", "sourceNamespace", "channel"];

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        let name = &namespace.name;
        let mut steps = facts.plan.steps.iter().filter(|step| step.namespace.as_str() == name);
        let pins = steps.any(|step| step.via == Via::PinnedCatalog);
        for subscription in found.read("Subscriptions", name, &namespace.subscriptions) {
            let subject = objects::name(subscription);
            let mut managers: BTreeSet<(&str, Option<&str>)> = BTreeSet::new();
            for field in FIELDS {
                for manager in managers_of(subscription, field) {
                    managers.insert((manager, contested(subscription, field, manager, pins)));
                }
            }
            for (manager, contested) in managers {
                let managed = format!("{name}/{subject} is managed by {manager}");
                match contested {
                    Some(why) => found.fail("ForeignManager", format!("{managed}, {why}"), subject),
                    None => found.add(Outcome::Warn, "ForeignManager", managed, subject),
                }
            }
        }
    }
    found.finding(
        "nobody else manages the Subscriptions",
        "Let it set installPlanApproval: Manual and leave the field to the upgrade (ignore \
         differences; upgradeApproval: None for an OperatorPolicy), or move the Subscription out of it",
    )
}

/// Why the upgrade and a manager of a field would not get along.
fn contested(
    subscription: &Subscription,
    field: &str,
    manager: &str,
    pins: bool,
) -> Option<&'static str> {
    let is_manual = subscription.spec.install_plan_approval == "Manual";
    match field {
        _ if is_one_of(manager, &APPROVERS) => Some("which approves InstallPlans by itself"),
        "installPlanApproval" if !is_manual => {
            Some("which would set installPlanApproval back to Automatic")
        }
        "source" | "sourceNamespace" if pins => {
            Some("which would set spec.source back, where a step needs a pinned catalog")
        }
        _ => None,
    }
}

fn managers_of<'s>(subscription: &'s Subscription, field: &str) -> impl Iterator<Item = &'s str> {
    let managers = field_managers(subscription, &["f:spec", &format!("f:{field}")]);
    managers.into_iter().filter(|manager| is_one_of(manager, &CONTROLLERS))
}

/// The controller that keeps a Subscription's catalog as it is somewhere else, if there is one.
pub(crate) fn manager_of_source(subscription: &Subscription) -> Option<String> {
    let mut fields = ["source", "sourceNamespace"].into_iter();
    fields.find_map(|field| managers_of(subscription, field).next().map(str::to_owned))
}

fn is_one_of(manager: &str, parts: &[&str]) -> bool {
    let manager = manager.to_ascii_lowercase();
    parts.iter().any(|part| manager.contains(part))
}
