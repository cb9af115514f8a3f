//! One cluster's plan: from its inventory, the catalogs it sees and the targets.
//!
//! Hub and agent use the same function, so that a plan that was previewed on the hub can be held
//! against what the cluster itself resolves at its start. The unit is the namespace; namespaces
//! follow each other in the order of their names.

mod goal;
mod pinned;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use wavelift_core::{
    ids::{CsvName, Namespace, PackageName},
    inventory::{CatalogSource, Inventory, NamespaceInventory},
    plan::{self, Plan, STEPS_MAX, Step, Via},
    target::Target,
    version::Version,
};

use crate::{
    catalog::Catalog,
    engine::{
        CatalogKey, Catalogs, Engine, Installed, InstalledProperties, Move, Request, Source,
        Subscription,
    },
    graph::Property,
    pin::{self, Pinned},
};

/// What is known of the way to the targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planned {
    /// Every target that the cluster has is reached, or it has none of them.
    AtTarget,
    /// The steps that OLM will take.
    Plan(Plan),
    /// OLM does not lead there.
    NoPath {
        /// Why, for people.
        why: String,
    },
    /// Something that decides it has not been read.
    Unknown {
        /// What, for people.
        missing: String,
    },
}

/// Gives the content of a CatalogSource, when it is known.
pub type Lookup<'a> = &'a dyn Fn(&CatalogSource) -> Option<Arc<Catalog>>;

/// Whether steps may be taken by a pinned catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pins {
    /// Only steps that OLM takes by itself.
    #[default]
    Never,
    /// Where OLM would go past a target, or would move what is no target.
    Allowed,
}

/// Plans the way of one cluster to `targets`, as OLM takes it by itself.
pub fn plan(
    engine: &dyn Engine,
    inventory: &Inventory,
    catalogs: Lookup<'_>,
    targets: &[Target],
) -> Planned {
    plan_with(engine, inventory, catalogs, targets, Pins::Never)
}

/// Plans the way of one cluster to `targets`, by pinned catalogs where that is allowed and needed.
pub fn plan_with(
    engine: &dyn Engine,
    inventory: &Inventory,
    catalogs: Lookup<'_>,
    targets: &[Target],
    pins: Pins,
) -> Planned {
    let mut steps = vec![];
    for namespace in &inventory.namespaces {
        let wanted: Vec<&Target> = targets
            .iter()
            .filter(|target| {
                let covered = |s: &wavelift_core::inventory::Subscription| {
                    target.covers(&namespace.namespace, &s.package)
                };
                namespace.subscriptions.iter().any(covered)
            })
            .collect();
        if wanted.is_empty() {
            continue;
        }
        match plan_namespace(engine, inventory, namespace, catalogs, (&wanted, pins)) {
            Ok(more) => steps.extend(more),
            Err(why) => return why,
        }
    }
    if steps.len() > STEPS_MAX {
        let why = format!("{} steps are more than {STEPS_MAX}", steps.len());
        return Planned::NoPath { why };
    }
    if steps.is_empty() { Planned::AtTarget } else { Planned::Plan(Plan { steps }) }
}

fn plan_namespace(
    engine: &dyn Engine,
    inventory: &Inventory,
    namespace: &NamespaceInventory,
    catalogs: Lookup<'_>,
    (targets, pins): (&[&Target], Pins),
) -> Result<Vec<Step>, Planned> {
    let name = &namespace.namespace;
    let visible = visible_catalogs(inventory, namespace, catalogs)?;
    let request = request(namespace);
    let hops = match pins {
        Pins::Never => goal::hops(engine, &visible, &request, targets),
        Pins::Allowed => pinned::hops(engine, &visible, &request, targets),
    };
    let hops = hops.map_err(|why| Planned::NoPath { why: format!("namespace {name}: {why}") })?;
    let mut at = request;
    let mut steps = vec![];
    for (moves, via) in hops {
        let step = step(name, &at, &moves, via)
            .map_err(|why| Planned::NoPath { why: format!("namespace {name}: {why}") })?;
        at = at.after(&moves);
        steps.push(step);
    }
    Ok(steps)
}

/// How a namespace of the inventory is pinned so that its next InstallPlan holds these CSVs, by
/// package, and the catalog that OLM reads then. The outer error says what is not known.
pub fn pin(
    engine: &dyn Engine,
    inventory: &Inventory,
    catalogs: Lookup<'_>,
    namespace: &Namespace,
    wanted: &BTreeMap<String, String>,
) -> Result<Result<(Pinned, Catalog), pin::Error>, String> {
    let found = inventory.namespaces.iter().find(|found| found.namespace == *namespace);
    let found = found.ok_or_else(|| format!("the Subscriptions of {namespace}"))?;
    let visible = visible_catalogs(inventory, found, catalogs).map_err(|why| match why {
        Planned::Unknown { missing } => missing,
        Planned::NoPath { .. } | Planned::AtTarget | Planned::Plan(_) => {
            format!("the catalogs of {namespace}")
        }
    })?;
    let pinned = pin::pin(engine, &visible, &request(found), wanted);
    Ok(pinned.map(|pinned| {
        let catalog = pin::restricted(&visible, &pinned.kept);
        (pinned, catalog)
    }))
}

/// The catalogs that OLM resolves the namespace from, as far as they are known.
///
/// One that a Subscription names must be known. Of the others, whose only say is in dependencies,
/// those that are not known are left out.
fn visible_catalogs(
    inventory: &Inventory,
    namespace: &NamespaceInventory,
    lookup: Lookup<'_>,
) -> Result<Catalogs, Planned> {
    let own = namespace.namespace.as_str();
    let named = |source: &CatalogSource| {
        namespace.subscriptions.iter().any(|subscription| {
            subscription.source == source.name && subscription.source_namespace == source.namespace
        })
    };
    let global: Vec<&str> = namespace
        .subscriptions
        .iter()
        .map(|subscription| subscription.source_namespace.as_str())
        .filter(|source_namespace| *source_namespace != own)
        .collect();
    let mut catalogs = Catalogs::default();
    for source in &inventory.catalogs {
        let is_named = named(source);
        let is_visible = source.namespace == own
            || (global.contains(&source.namespace.as_str()) && !namespace.global_catalogs_excluded);
        if !is_named && !is_visible {
            continue;
        }
        let key = CatalogKey { name: source.name.clone(), namespace: source.namespace.clone() };
        match lookup(source) {
            Some(catalog) => {
                let priority = i64::from(source.priority);
                catalogs.insert(key, Source { catalog, priority });
            }
            None if is_named => {
                return Err(Planned::Unknown { missing: format!("the content of catalog {key}") });
            }
            None => {}
        }
    }
    Ok(catalogs)
}

/// The namespace as the engine wants it.
fn request(namespace: &NamespaceInventory) -> Request {
    let installed = |name: &str| {
        let csv = namespace.csvs.iter().find(|csv| csv.name == name)?;
        Some(Installed {
            csv: csv.name.clone(),
            version: Version::parse_tolerant(&csv.version).ok(),
            properties: csv
                .properties
                .as_deref()
                .and_then(properties)
                .map_or(InstalledProperties::AsInCatalog, InstalledProperties::Known),
        })
    };
    let subscriptions: Vec<Subscription> = namespace
        .subscriptions
        .iter()
        .map(|subscription| Subscription {
            package: subscription.package.clone(),
            channel: subscription.channel.clone(),
            catalog: CatalogKey {
                name: subscription.source.clone(),
                namespace: subscription.source_namespace.clone(),
            },
            installed: subscription.installed_csv.as_deref().and_then(installed),
            starting_csv: subscription.starting_csv.clone(),
        })
        .collect();
    let is_referenced = |name: &str| {
        let named =
            |s: &wavelift_core::inventory::Subscription| s.installed_csv.as_deref() == Some(name);
        namespace.subscriptions.iter().any(named)
    };
    let unreferenced = namespace
        .csvs
        .iter()
        .filter(|csv| !is_referenced(&csv.name))
        .filter_map(|csv| installed(&csv.name))
        .collect();
    Request { namespace: namespace.namespace.to_string(), subscriptions, unreferenced }
}

/// The annotation `operatorframework.io/properties`: `{"properties": [{type, value}]}`.
fn properties(json: &str) -> Option<Vec<Property>> {
    let mut document: serde_json::Value = serde_json::from_str(json).ok()?;
    serde_json::from_value(document.get_mut("properties")?.take()).ok()
}

fn step(namespace: &Namespace, at: &Request, moves: &[Move], via: Via) -> Result<Step, String> {
    let mut planned = vec![];
    for item in moves {
        let from = item.from.as_deref();
        let from_version = from.and_then(|from| {
            let subscribed = at.subscriptions.iter().filter_map(|s| s.installed.as_ref());
            let installed = subscribed.chain(&at.unreferenced).find(|i| i.csv == from)?;
            installed.version.as_ref().map(ToString::to_string)
        });
        let named = |error: wavelift_core::ids::Error| error.to_string();
        planned.push(plan::Move {
            package: PackageName::try_from(item.package.as_str()).map_err(named)?,
            from: from.map(CsvName::try_from).transpose().map_err(named)?,
            to: CsvName::try_from(item.to.as_str()).map_err(named)?,
            from_version,
            to_version: item
                .to_version
                .as_ref()
                .map_or_else(|| item.to.clone(), ToString::to_string),
        });
    }
    Ok(Step { namespace: namespace.clone(), moves: planned, via })
}
