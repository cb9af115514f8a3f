//! Whether the cluster, as it is now, still leads where the plan says.

use std::{collections::BTreeMap, sync::Arc};

use wavelift_catalog::{
    Catalog, OlmV0,
    planner::{self, Pins, Planned},
};
use wavelift_core::{
    ids::{Namespace, PackageName},
    inventory::{CatalogSource, Inventory},
    plan::{Plan, Step, Via},
    target::{Goal, Target},
    version::Version,
};

use crate::inventory::Current;

/// How a plan stands to the present cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The remaining steps are what the cluster resolves to.
    Same,
    /// Every step has been taken already.
    Reached,
    /// It resolves to something else.
    Changed(String),
    /// Something that decides it is not known.
    Unknown(String),
}

/// Holds a plan against the cluster.
pub fn standing(plan: &Plan, current: &Current) -> Standing {
    let lookup = |source: &CatalogSource| current.content(&source.namespace, &source.name);
    hold(plan, &current.inventory, &lookup)
}

fn hold(
    plan: &Plan,
    inventory: &Inventory,
    lookup: &dyn Fn(&CatalogSource) -> Option<Arc<Catalog>>,
) -> Standing {
    let remaining = remaining(plan, inventory);
    if remaining.is_empty() {
        return Standing::Reached;
    }
    let Some(targets) = targets(&remaining) else {
        return Standing::Unknown("a version of the plan is not understood".to_owned());
    };
    let is_pinned = remaining.iter().any(|step| step.via == Via::PinnedCatalog);
    let pins = if is_pinned { Pins::Allowed } else { Pins::Never };
    let resolved = match planner::plan_with(&OlmV0, inventory, lookup, &targets, pins) {
        Planned::Plan(resolved) => resolved,
        Planned::AtTarget => return Standing::Changed("the cluster is past the plan".to_owned()),
        Planned::NoPath { why } => return Standing::Changed(why),
        Planned::Unknown { missing } => return Standing::Unknown(missing),
    };
    let expected = by_namespace(remaining.into_iter());
    let found = by_namespace(resolved.steps.iter());
    for (namespace, steps) in &expected {
        let other = found.get(namespace).map_or(&[][..], Vec::as_slice);
        for (index, step) in steps.iter().enumerate() {
            let Some(other) = other.get(index) else {
                let why = format!("{} is not offered any more", step.summary());
                return Standing::Changed(why);
            };
            // Where a pinned catalog is not needed any more OLM goes there all the same.
            let needs_more = other.via == Via::PinnedCatalog && step.via == Via::Cluster;
            if other.csv_names() != step.csv_names() || needs_more {
                let why = format!("{} has become {}", step.summary(), other.summary());
                return Standing::Changed(why);
            }
        }
        if let Some(more) = other.get(steps.len()) {
            return Standing::Changed(format!("{} has been added", more.summary()));
        }
    }
    Standing::Same
}

/// The steps that have not been taken: all from the first one whose CSVs, or later ones of the same
/// packages, are not there.
pub fn remaining<'a>(plan: &'a Plan, inventory: &Inventory) -> Vec<&'a Step> {
    let taken = |index: usize| is_taken(plan, index, inventory);
    plan.steps
        .iter()
        .enumerate()
        .filter(|(index, _)| !taken(*index))
        .map(|(_, step)| step)
        .collect()
}

/// Whether a step has been taken: its CSVs, or those of later steps, are installed.
pub fn is_taken(plan: &Plan, index: usize, inventory: &Inventory) -> bool {
    let Some(step) = plan.steps.get(index) else { return false };
    let namespace = inventory.namespaces.iter().find(|n| n.namespace == step.namespace);
    let Some(namespace) = namespace else { return false };
    let is_there = |csv: &str| namespace.csvs.iter().any(|found| found.name == csv);
    let later = || plan.steps.iter().skip(index).filter(|later| later.namespace == step.namespace);
    let is_past = |package: &PackageName| {
        let moves = later().flat_map(|later| &later.moves);
        moves.filter(|item| item.package == *package).any(|item| is_there(item.to.as_str()))
    };
    let is_left = |item: &wavelift_core::plan::Move| {
        item.from.as_ref().is_none_or(|from| !is_there(from.as_str()))
    };
    step.moves.iter().all(|item| is_past(&item.package) && is_left(item))
}

/// Where each package of the steps ends up.
fn targets(steps: &[&Step]) -> Option<Vec<Target>> {
    let mut ends: BTreeMap<(&Namespace, &PackageName), &str> = BTreeMap::new();
    for step in steps {
        for item in &step.moves {
            ends.insert((&step.namespace, &item.package), &item.to_version);
        }
    }
    let target = |((namespace, package), version): (_, &str)| {
        let (namespace, package): (&Namespace, &PackageName) = (namespace, package);
        let version = Version::parse(version).ok()?;
        Some(Target {
            package: package.clone(),
            goal: Goal::Version(version),
            namespace: Some(namespace.clone()),
        })
    };
    ends.into_iter().map(target).collect()
}

fn by_namespace<'a>(
    steps: impl Iterator<Item = &'a Step>,
) -> BTreeMap<&'a Namespace, Vec<&'a Step>> {
    let mut all: BTreeMap<&Namespace, Vec<&Step>> = BTreeMap::new();
    for step in steps {
        all.entry(&step.namespace).or_default().push(step);
    }
    all
}
