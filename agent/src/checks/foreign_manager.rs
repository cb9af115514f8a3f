//! Nobody else writes the fields of Subscriptions that an upgrade rests on. A person with kubectl,
//! OLM itself and the console are fine: they write once. A controller writes again and again.

use std::collections::BTreeSet;

use wavelift_core::check::Finding;

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

/// The fields, as they stand in `managedFields`.
const FIELDS: [&[&str]; 4] = [
    &["f:spec", "f:installPlanApproval"],
    &["f:spec", "f:source"],
    &["f:spec", "f:sourceNamespace"],
    &["f:spec", "f:channel"],
];

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        let name = &namespace.name;
        for subscription in found.read("Subscriptions", name, &namespace.subscriptions) {
            let managers: BTreeSet<&str> = FIELDS
                .iter()
                .flat_map(|field| field_managers(subscription, field))
                .filter(|manager| is_controller(manager))
                .collect();
            for manager in managers {
                let subject = objects::name(subscription);
                let message = format!("{name}/{subject} is managed by {manager}");
                found.fail("ForeignManager", message, subject);
            }
        }
    }
    found.finding(
        "nobody else manages the Subscriptions",
        "Let it set installPlanApproval: Manual and leave the field to the upgrade (ignore \
         differences), or move the Subscription out of it",
    )
}

/// The controller that keeps a Subscription's catalog as it is somewhere else, if there is one.
pub(crate) fn manager_of_source(subscription: &Subscription) -> Option<String> {
    let fields = [["f:spec", "f:source"], ["f:spec", "f:sourceNamespace"]];
    let managers = fields.iter().flat_map(|field| field_managers(subscription, field));
    managers.filter(|manager| is_controller(manager)).map(str::to_owned).next()
}

fn is_controller(manager: &str) -> bool {
    let manager = manager.to_ascii_lowercase();
    CONTROLLERS.iter().any(|controller| manager.contains(controller))
}
