//! The pinned catalog: of a cluster's own catalogs only what makes OLM v0 go exactly where it is to
//! go.
//!
//! OLM v0 has no target version. Of each Subscription that would go elsewhere the pinned catalog
//! keeps one bundle in its channel: the one to go to, or, where the operator is to stay, the
//! installed one. Then there is nothing else that OLM could choose. Whether it chooses that is asked
//! of the engine; nothing is called pinned that the engine does not resolve to exactly what is wanted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wavelift_core::{causes::sentence, range::Range, version::Version};

use crate::{
    catalog::Catalog,
    engine::{
        CatalogKey, Catalogs, Cause, Engine, Installed, Move, Next, Request, Source, Subscription,
    },
    graph::{Channel, Entry, Graph, Package},
};

/// Below every other catalog: it is for those alone that name it.
pub const PRIORITY: i32 = -1000;

/// Bundles that a way within one channel may lead over.
const LEGS_MAX: usize = 1000;

/// A bundle that the pinned catalog keeps, for the one Subscription to its package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kept {
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The bundle, which is the only one of the package.
    pub csv: String,
    /// The catalog that it comes from.
    pub catalog: CatalogKey,
}

/// What the pinned catalog keeps, and what OLM does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// One a Subscription that has to read the pinned catalog; none where OLM goes there by itself.
    pub kept: Vec<Kept>,
    /// The next InstallPlan.
    pub moves: Vec<Move>,
}

/// Why there is no pinned catalog for what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not even the cluster's own catalogs resolve.
    #[error("{0}")]
    Unresolved(String),
    /// Two Subscriptions are to one package.
    #[error("two Subscriptions are to `{package}`")]
    Twice {
        /// The package.
        package: String,
    },
    /// Nothing leads there at once.
    #[error("nothing in channel `{channel}` leads from `{from}` to `{to}` at once")]
    NoEdge {
        /// The channel.
        channel: String,
        /// The installed CSV.
        from: String,
        /// Where it is to go.
        to: String,
    },
    /// Nothing can keep it from moving.
    #[error("`{package}` cannot be kept where it is: {why}")]
    CannotStay {
        /// The package.
        package: String,
        /// Why.
        why: &'static str,
    },
    /// OLM would do something else all the same.
    #[error("with all of that pinned OLM {found}, not [{wanted}]")]
    Otherwise {
        /// What it does.
        found: String,
        /// What is wanted.
        wanted: String,
    },
}

// === impl Error ===

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unresolved(_) => "Unresolved",
            Self::Twice { .. } => "Twice",
            Self::NoEdge { .. } => "NoEdge",
            Self::CannotStay { .. } => "CannotStay",
            Self::Otherwise { .. } => "Otherwise",
        }
    }
}

/// Pins a namespace so that its next InstallPlan takes each package of `wanted` to that CSV, along
/// with nothing but what those need, and leaves everything else where it is.
pub fn pin(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    request: &Request,
    wanted: &BTreeMap<String, String>,
) -> Result<Pinned, Error> {
    let mut packages = BTreeSet::new();
    for subscription in &request.subscriptions {
        if !packages.insert(subscription.package.as_str()) {
            return Err(Error::Twice { package: subscription.package.clone() });
        }
    }
    let natural =
        engine.next(catalogs, request).map_err(|error| Error::Unresolved(sentence(&error)))?;
    if is_wanted(&natural, wanted) {
        return Ok(Pinned { kept: vec![], moves: natural.moves().to_vec() });
    }
    let goes = |subscription: &Subscription| {
        let moves = natural.moves().iter();
        let of = |step: &&Move| step.package == subscription.package;
        moves.filter(of).map(|step| step.to.as_str()).next()
    };
    // As few as will do: whatever else goes its way by itself is left alone.
    let otherwise: Vec<&Subscription> = request
        .subscriptions
        .iter()
        .filter(|s| goes(s) != wanted.get(&s.package).map(String::as_str))
        .collect();
    let all: Vec<&Subscription> = request.subscriptions.iter().collect();
    let mut last = None;
    for chosen in [otherwise, all] {
        match pin_these(engine, catalogs, request, wanted, &chosen) {
            Ok(pinned) => return Ok(pinned),
            Err(error) => last = last.or(Some(error)),
        }
    }
    Err(last.unwrap_or_else(|| Error::Unresolved("there is no Subscription".to_owned())))
}

fn pin_these(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    request: &Request,
    wanted: &BTreeMap<String, String>,
    chosen: &[&Subscription],
) -> Result<Pinned, Error> {
    let mut kept = chosen
        .iter()
        .map(|subscription| keep(catalogs, subscription, wanted.get(&subscription.package)))
        .collect::<Result<Vec<_>, _>>()?;
    kept.sort();
    let (catalogs, request) = pinned(catalogs, request, &kept);
    let next = engine.next(&catalogs, &request);
    let found = match &next {
        Ok(next) if is_wanted(next, wanted) => {
            return Ok(Pinned { moves: next.moves().to_vec(), kept });
        }
        Ok(Next::Stays) => "moves nothing".to_owned(),
        Ok(next) => format!("goes to [{}]", join(next.csvs().into_iter())),
        Err(error) => format!("resolves nothing ({})", sentence(error)),
    };
    Err(Error::Otherwise { found, wanted: join(wanted.values().map(String::as_str)) })
}

/// True when exactly what is wanted moves, and dependencies that come along new.
fn is_wanted(next: &Next, wanted: &BTreeMap<String, String>) -> bool {
    let asked = next.moves().iter().filter(|step| match step.cause {
        Cause::Subscription => true,
        Cause::Dependency => wanted.contains_key(&step.package),
    });
    let asked: BTreeMap<&str, &str> =
        asked.map(|step| (step.package.as_str(), step.to.as_str())).collect();
    let wanted = wanted.iter().map(|(package, csv)| (package.as_str(), csv.as_str()));
    asked == wanted.collect()
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The namespace with its Subscriptions as they are while the pinned catalog is there, and what it
/// sees then.
pub fn pinned(catalogs: &Catalogs, request: &Request, kept: &[Kept]) -> (Catalogs, Request) {
    let key = CatalogKey { name: "pinned".to_owned(), namespace: request.namespace.clone() };
    let (mut catalogs, mut request) = (catalogs.clone(), request.clone());
    let catalog = restricted(&catalogs, kept);
    for subscription in &mut request.subscriptions {
        if kept.iter().any(|kept| kept.package == subscription.package) {
            subscription.catalog = key.clone();
        }
    }
    let priority = i64::from(PRIORITY);
    catalogs.insert(key, Source { catalog: catalog.into(), priority });
    (catalogs, request)
}

/// A catalog of nothing but what is kept.
pub fn restricted(catalogs: &Catalogs, kept: &[Kept]) -> Catalog {
    let mut graph = Graph::default();
    for Kept { package, channel, csv, catalog } in kept {
        let Some(from) = package_of(catalogs, catalog, package) else { continue };
        let entry = from.channels.get(channel).and_then(|channel| channel.entries.get(csv));
        let (Some(entry), Some(bundle)) = (entry, from.bundles.get(csv)) else { continue };
        let only = Channel {
            entries: BTreeMap::from([(csv.clone(), entry.clone())]),
            deprecation: from.channels.get(channel).and_then(|channel| channel.deprecation.clone()),
        };
        let restricted = Package {
            default_channel: Some(channel.clone()),
            channels: BTreeMap::from([(channel.clone(), only)]),
            bundles: BTreeMap::from([(csv.clone(), bundle.clone())]),
            deprecation: from.deprecation.clone(),
        };
        graph.packages.insert(package.clone(), restricted);
    }
    Catalog::from_graph(graph)
}

fn package_of<'c>(catalogs: &'c Catalogs, key: &CatalogKey, package: &str) -> Option<&'c Package> {
    catalogs.get(key)?.catalog.graph().packages.get(package)
}

/// The bundle to keep for one Subscription: what it is to go to, or what makes it stay.
fn keep(
    catalogs: &Catalogs,
    subscription: &Subscription,
    to: Option<&String>,
) -> Result<Kept, Error> {
    let Subscription { package, catalog, installed, .. } = subscription;
    let kept = |(channel, csv): (&str, &str)| Kept {
        package: package.clone(),
        channel: channel.to_owned(),
        csv: csv.to_owned(),
        catalog: catalog.clone(),
    };
    let found = package_of(catalogs, catalog, package);
    let mut entries = found.map(|found| entries(found, &subscription.channel)).unwrap_or_default();
    match (to, installed) {
        (Some(to), installed) => {
            let leads = |entry: &Entry| installed.as_ref().is_none_or(|from| leads(entry, from));
            let there = entries.iter().find(|(_, csv, entry)| csv == to && leads(entry));
            let no_edge = || Error::NoEdge {
                channel: subscription.channel.clone(),
                from: installed.as_ref().map_or("nothing", |from| &from.csv).to_owned(),
                to: to.clone(),
            };
            there.map(|(channel, csv, _)| kept((channel, csv))).ok_or_else(no_edge)
        }
        (None, None) => Err(Error::CannotStay {
            package: package.clone(),
            why: "nothing is installed of it yet",
        }),
        (None, Some(installed)) => {
            // Its own entry, else any that does not follow it, the oldest first.
            let version = |csv: &str| found.and_then(|f| f.bundles.get(csv)?.version.clone());
            entries.sort_by(|(_, a, _), (_, b, _)| {
                let is_other = |csv: &str| csv != installed.csv;
                let age = version(a).zip(version(b)).map(|(a, b)| a.cmp_precedence(&b));
                is_other(a).cmp(&is_other(b)).then(age.unwrap_or(std::cmp::Ordering::Equal))
            });
            let stays = entries
                .iter()
                .find(|(_, csv, entry)| *csv == installed.csv || !leads(entry, installed));
            stays.map(|(channel, csv, _)| kept((channel, csv))).ok_or_else(|| Error::CannotStay {
                package: package.clone(),
                why: "its channel holds nothing but what follows it",
            })
        }
    }
}

/// The entries that a Subscription to this channel sees and that have a bundle; of a Subscription
/// without a channel those of the default one first.
fn entries<'c>(package: &'c Package, channel: &str) -> Vec<(&'c str, &'c str, &'c Entry)> {
    let default = package.default_channel.as_deref();
    let mut channels: Vec<(&String, &Channel)> = package
        .channels
        .iter()
        .filter(|(name, _)| channel.is_empty() || *name == channel)
        .collect();
    channels.sort_by_key(|(name, _)| Some(name.as_str()) != default);
    let of = |(name, channel): (&'c String, &'c Channel)| {
        let entries = channel.entries.iter();
        entries.map(move |(csv, entry)| (name.as_str(), csv.as_str(), entry))
    };
    let all = channels.into_iter().flat_map(of);
    all.filter(|(_, csv, _)| package.bundles.contains_key(*csv)).collect()
}

/// Whether an entry follows what is installed.
fn leads(entry: &Entry, from: &Installed) -> bool {
    let in_range = || {
        let range = Range::parse(entry.skip_range.as_deref()?).ok()?;
        Some(range.contains(from.version.as_ref()?))
    };
    entry.replaces.as_deref() == Some(from.csv.as_str())
        || entry.skips.contains(&from.csv)
        || in_range().unwrap_or(false)
}

/// The versions that a Subscription's channel holds, the oldest first.
pub fn versions(catalogs: &Catalogs, subscription: &Subscription) -> Vec<Version> {
    let package = package_of(catalogs, &subscription.catalog, &subscription.package);
    let Some(package) = package else { return vec![] };
    let entries = entries(package, &subscription.channel).into_iter();
    let mut versions: Vec<Version> =
        entries.filter_map(|(_, csv, _)| package.bundles.get(csv)?.version.clone()).collect();
    versions.sort_by(Version::cmp_precedence);
    versions
}

/// The bundles on the shortest way from what a Subscription has installed to `target`, within its
/// channel; none where there is no way.
pub fn way(catalogs: &Catalogs, subscription: &Subscription, target: &Version) -> Vec<String> {
    let Some(installed) = &subscription.installed else { return vec![] };
    let package = package_of(catalogs, &subscription.catalog, &subscription.package);
    let Some(package) = package else { return vec![] };
    let entries = entries(package, &subscription.channel);
    let mut ways: Vec<(Installed, Vec<String>)> = vec![(installed.clone(), vec![])];
    let mut seen = BTreeSet::from([installed.csv.clone()]);
    let mut next = 0;
    while next < ways.len() && ways.len() < LEGS_MAX {
        let (at, way) = ways[next].clone();
        next += 1;
        for (_, csv, entry) in &entries {
            let Some(version) = package.bundles.get(*csv).and_then(|b| b.version.as_ref()) else {
                continue;
            };
            let is_past = version.cmp_precedence(target).is_gt();
            if is_past || !leads(entry, &at) || !seen.insert((*csv).to_owned()) {
                continue;
            }
            let mut longer = way.clone();
            longer.push((*csv).to_owned());
            if version.is_at(target) {
                return longer;
            }
            let there = Installed {
                csv: (*csv).to_owned(),
                version: Some(version.clone()),
                properties: at.properties.clone(),
            };
            ways.push((there, longer));
        }
    }
    vec![]
}

#[cfg(test)]
mod tests;
