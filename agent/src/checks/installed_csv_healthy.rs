//! What is installed is healthy: OLM replaces only a version that is Succeeded, and an unhealthy
//! neighbour stops the whole namespace.

use wavelift_core::check::Finding;

use super::{Facts, Found, NamespaceFacts};
use crate::{
    drivers::olm_v0::Observed,
    objects::{self, Csv},
};

pub(super) const NAME: &str = "installed-csv-healthy";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        one(facts, namespace, &mut found);
    }
    found.finding(
        "everything installed is Succeeded and available",
        "Heal what is installed first: OLM does not replace it otherwise",
    )
}

fn one(facts: &Facts, namespace: &NamespaceFacts, found: &mut Found) {
    let name = &namespace.name;
    let csvs = found.read("ClusterServiceVersions", name, &namespace.csvs);
    let deployments = found.read("Deployments", name, &namespace.deployments);
    if namespace.csvs.is_err() || namespace.deployments.is_err() {
        return;
    }
    let observed = Observed {
        deployments: deployments.iter().cloned().map(std::sync::Arc::new).collect(),
        ..Observed::default()
    };
    for csv in csvs {
        health(csv, &observed, found);
    }
    // The first move of each package starts from what must be there now.
    let mut packages = std::collections::BTreeSet::new();
    for item in facts.moves(name).filter(|item| packages.insert(&item.package)) {
        let Some(from) = &item.from else { continue };
        let is_there = |csv: &str| csvs.iter().any(|found| objects::name(found) == csv);
        let is_past = facts
            .moves(name)
            .filter(|later| later.package == item.package)
            .any(|later| is_there(later.to.as_str()));
        if !is_there(from.as_str()) && !is_past {
            let message = format!("{from}, from which {} is to go on, is not there", item.package);
            found.fail("NotInstalled", message, from.as_str());
        }
    }
}

fn health(csv: &Csv, observed: &Observed, found: &mut Found) {
    let name = objects::name(csv);
    let status = &csv.status;
    if status.phase != "Succeeded" {
        let message = format!("{name} is {}/{}: {}", status.phase, status.reason, status.message);
        found.fail("CsvNotSucceeded", message, name);
        return;
    }
    let rollout = observed.rollout(csv);
    if !rollout.is_complete() {
        let message = format!("{name}: {}", rollout.outstanding.join(", "));
        found.fail("DeploymentNotAvailable", message, name);
    }
}
