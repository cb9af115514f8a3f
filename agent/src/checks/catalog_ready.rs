//! Every catalog that a namespace of the plan sees is connected: one that is not, even one that
//! nobody subscribes to, can stop every resolution.

use wavelift_core::check::{Finding, Outcome};

use super::{Facts, Found};
use crate::objects;

pub(super) const NAME: &str = "catalog-ready";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    let catalogs = found.read("CatalogSources", "", &facts.catalogs);
    let mut seen = std::collections::BTreeSet::new();
    for namespace in &facts.namespaces {
        let name = &namespace.name;
        found.read("OperatorGroups", name, &namespace.groups);
        for subscription in found.read("Subscriptions", name, &namespace.subscriptions) {
            let spec = &subscription.spec;
            let is_there = catalogs.iter().any(|source| {
                objects::namespace(source) == spec.source_namespace
                    && objects::name(source) == spec.source
            });
            let key = format!("{}/{}", spec.source_namespace, spec.source);
            if !is_there && facts.catalogs.is_ok() && seen.insert(key.clone()) {
                let message = format!("catalog {key} of Subscription {} is missing", spec.name);
                found.fail("CatalogMissing", message, &key);
            }
        }
        for source in facts.visible(namespace, catalogs) {
            let key = format!("{}/{}", objects::namespace(source), objects::name(source));
            if !seen.insert(key.clone()) {
                continue;
            }
            match source.connection() {
                Some("READY") => {}
                Some(state) => {
                    found.fail("CatalogNotReady", format!("catalog {key} is {state}"), &key);
                }
                None => {
                    let message = format!("catalog {key} has no connection state");
                    found.add(Outcome::Unknown, "CatalogStateUnknown", message, &key);
                }
            }
        }
    }
    found.finding(
        "all catalogs are READY",
        "Bring the CatalogSource to READY (registry pod, image pull, network), or remove it if \
         nobody needs it",
    )
}
