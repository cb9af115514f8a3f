//! Nothing else moves in the namespaces of the plan, and who moves together is named.

use std::collections::BTreeSet;

use wavelift_core::check::{Finding, Outcome};

use super::{Facts, Found, NamespaceFacts};
use crate::objects;

pub(super) const NAME: &str = "namespace-quiet";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        one(facts, namespace, &mut found);
    }
    for step in facts.plan.steps.iter().filter(|step| step.moves.len() > 1) {
        let packages: Vec<&str> = step.moves.iter().map(|item| item.package.as_str()).collect();
        let message =
            format!("in namespace {} move together: {}", step.namespace, packages.join(", "));
        found.add(Outcome::Pass, "MovesTogether", message, step.namespace.as_str());
    }
    found.finding("nothing else moves", "Let it finish, or find out who started it")
}

fn one(facts: &Facts, namespace: &NamespaceFacts, found: &mut Found) {
    let name = &namespace.name;
    for plan in found.read("InstallPlans", name, &namespace.plans) {
        let is_over = matches!(plan.status.phase.as_str(), "Complete" | "Failed");
        if plan.spec.approved && !is_over {
            let csvs = plan.spec.cluster_service_version_names.join(", ");
            let plan = objects::name(plan);
            let message = format!("{name}/{plan} is being carried out: {csvs}");
            found.fail("InstallPlanRunning", message, plan);
        }
    }
    let mut moving = BTreeSet::new();
    for csv in found.read("ClusterServiceVersions", name, &namespace.csvs) {
        let is_moving = matches!(
            csv.status.phase.as_str(),
            "" | "Pending" | "InstallReady" | "Installing" | "Replacing" | "Deleting"
        );
        if is_moving {
            moving.insert(format!("{} ({})", objects::name(csv), csv.status.phase));
        }
    }
    if !moving.is_empty() {
        let list: Vec<String> = moving.into_iter().collect();
        let message = format!("namespace {name} is moving: {}", list.join(", "));
        found.fail("CsvMoving", message, name);
    }
    // A plan that waits and holds somebody whom our plan does not move would take them along.
    let ours: BTreeSet<&str> = facts.moves(name).map(|item| item.to.as_str()).collect();
    for plan in namespace.plans.as_deref().unwrap_or_default() {
        if plan.spec.approved || plan.status.phase != "RequiresApproval" {
            continue;
        }
        let names = &plan.spec.cluster_service_version_names;
        let others: Vec<&str> =
            names.iter().map(String::as_str).filter(|csv| !ours.contains(csv)).collect();
        if !others.is_empty() {
            let plan = objects::name(plan);
            let message = format!(
                "{name}/{plan} waits for approval and holds {}, which the plan does not move; it is \
                 never approved",
                others.join(", ")
            );
            found.add(Outcome::Warn, "OtherPlanWaits", message, plan);
        }
    }
}
