//! Why no way leads to a target.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use wavelift_core::release::{self, VersionRelease};

use super::{
    Target,
    search::{self, Blocked, Reached},
};
use crate::engine::olm_v1::{
    Extension,
    candidates::{Found, From, rank},
    reason::listed,
};

/// How many names a reason lists.
const LISTED_MAX: usize = 8;

/// A bundle that an edge to the target starts from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Predecessor {
    /// The catalogs have it, but no way leads there.
    Unreached(String),
    /// No catalog has it any more.
    Missing(String),
}

/// Why no way leads to a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPath {
    /// The installed version is none, so that no edge can be looked for.
    #[error("the installed version `{version}` can't be read")]
    InstalledVersion {
        /// The version.
        version: String,
        /// What is wrong with it.
        #[source]
        source: release::Error,
    },
    /// No catalog has the package.
    #[error("no catalog of this cluster has package `{package}`")]
    PackageMissing {
        /// The package.
        package: String,
    },
    /// No catalog has the target.
    #[error("no catalog of this cluster has {target} of `{package}`; the newest there are {}", listed(.newest))]
    TargetMissing {
        /// The package.
        package: String,
        /// The target.
        target: String,
        /// The highest versions that the catalogs have; at most eight.
        newest: Vec<String>,
    },
    /// The target is in other channels than the asked ones.
    #[error("`{bundle}` is not in the asked channels, but in {}", listed(.channels))]
    NotInChannels {
        /// The bundle.
        bundle: String,
        /// The channels that it is in.
        channels: BTreeSet<String>,
    },
    /// OLM v1 refuses the target.
    #[error("`{bundle}` needs other bundles (`{property}`), which OLM v1 does not install")]
    Dependencies {
        /// The bundle.
        bundle: String,
        /// The property that says so.
        property: String,
    },
    /// Catalogs of the same priority have the target.
    #[error("catalogs {} have the version of `{bundle}` at the same priority; raise spec.priority of one of them or narrow the selector", listed(.catalogs))]
    SeveralCatalogs {
        /// The bundle.
        bundle: String,
        /// The catalogs, sorted by name.
        catalogs: Vec<String>,
    },
    /// A pin can't tell the target from another bundle of its version.
    #[error("`{bundle}` can't be pinned: OLM takes `{taken}`, which has the same version")]
    Shadowed {
        /// The bundle.
        bundle: String,
        /// The one that OLM takes.
        taken: String,
    },
    /// The target is older than what is installed, and no edge leads back.
    #[error(
        "`{bundle}` is older than the installed `{installed}`, and no edge leads back; upgradeConstraintPolicy: SelfCertified would allow it"
    )]
    Older {
        /// The bundle.
        bundle: String,
        /// The installed bundle.
        installed: String,
    },
    /// The target must be come to from another version, and no way leads there.
    #[error("`{bundle}` can be come to only from {}; no way leads there from `{installed}`{}", before(.from), hint(.other_channels))]
    NeedsFirst {
        /// The bundle.
        bundle: String,
        /// The installed bundle.
        installed: String,
        /// Where the edges to it start, newest first; at most eight.
        from: Vec<Predecessor>,
        /// Channels that would have to be asked for as well for a way to be there.
        other_channels: BTreeSet<String>,
    },
    /// No edge at all leads to the target.
    #[error("no edge leads to `{bundle}`: it can only be installed anew{}", hint(.other_channels))]
    NoEdge {
        /// The bundle.
        bundle: String,
        /// Channels that would have to be asked for as well for a way to be there.
        other_channels: BTreeSet<String>,
    },
    /// The search was given up.
    #[error("no answer after {looks} looks at bundles")]
    TooHard {
        /// How many looks at bundles were allowed.
        looks: usize,
    },
}

impl NoPath {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InstalledVersion { .. } => "InstalledVersion",
            Self::PackageMissing { .. } => "PackageMissing",
            Self::TargetMissing { .. } => "TargetMissing",
            Self::NotInChannels { .. } => "NotInChannels",
            Self::Dependencies { .. } => "Dependencies",
            Self::SeveralCatalogs { .. } => "SeveralCatalogs",
            Self::Shadowed { .. } => "Shadowed",
            Self::Older { .. } => "Older",
            Self::NeedsFirst { .. } => "NeedsFirst",
            Self::NoEdge { .. } => "NoEdge",
            Self::TooHard { .. } => "TooHard",
        }
    }
}

impl fmt::Display for Predecessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreached(name) => write!(f, "`{name}`"),
            Self::Missing(name) => write!(f, "`{name}` (not in this cluster's catalogs)"),
        }
    }
}

fn before(from: &[Predecessor]) -> String {
    from.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn hint(channels: &BTreeSet<String>) -> String {
    if channels.is_empty() {
        return String::new();
    }
    format!("; with {} asked for as well there is a way", listed(channels))
}

/// Why the target was not reached: the reason of the bundle that OLM would prefer for it.
pub(super) fn why(reached: &Reached<'_>, target: &Target) -> NoPath {
    let package = || reached.extension.package.clone();
    let mut all: Vec<(Found<'_>, &VersionRelease)> = reached.bundles().collect();
    all.sort_by(|(a, _), (b, _)| rank(a.bundle, b.bundle, reached.extension.releases));
    let is_known = |catalog: &super::ClusterCatalog| catalog.content.package(&package()).is_some();
    if !reached.catalogs.iter().any(is_known) {
        return NoPath::PackageMissing { package: package() };
    }
    let wanted: Vec<&(Found<'_>, &VersionRelease)> =
        all.iter().filter(|(_, version)| target.is_met_by(version)).collect();
    let Some((first, _)) = wanted.first() else {
        let newest = all.iter().map(|(_, version)| version.to_string()).take(LISTED_MAX).collect();
        return NoPath::TargetMissing { package: package(), target: target.to_string(), newest };
    };
    let channels = &reached.extension.channels;
    let in_channels = wanted.iter().find(|(found, _)| {
        channels.is_empty() || found.package.entries(&found.bundle.name, channels).next().is_some()
    });
    let Some((found, version)) = in_channels else {
        let bundle = first.bundle.name.clone();
        let channels = first.package.channels(&bundle);
        return NoPath::NotInChannels { bundle, channels };
    };
    let bundle = found.bundle.name.clone();
    match reached.blocked(&bundle, version) {
        Some(Blocked::Dependencies(property)) => {
            return NoPath::Dependencies { bundle, property: property.clone() };
        }
        Some(Blocked::SeveralCatalogs(catalogs)) => {
            return NoPath::SeveralCatalogs { bundle, catalogs: catalogs.clone() };
        }
        Some(Blocked::Shadowed(taken)) => {
            return NoPath::Shadowed { bundle, taken: taken.clone() };
        }
        None => {}
    }
    no_edge(reached, target, *found, version)
}

/// No pin leads to a bundle of the asked channels: what its edges ask for.
fn no_edge(
    reached: &Reached<'_>,
    target: &Target,
    found: Found<'_>,
    version: &VersionRelease,
) -> NoPath {
    let bundle = found.bundle.name.clone();
    let installed = reached.start().map(|at| at.name.to_owned()).unwrap_or_default();
    let other_channels = other_channels(reached, target);
    let is_older = |at: &From<'_>| version.cmp_precedence(&at.version).is_lt();
    if reached.start().is_some_and(is_older) && other_channels.is_empty() {
        return NoPath::Older { bundle, installed };
    }
    let mut from = predecessors(reached, found);
    if from.is_empty() {
        return NoPath::NoEdge { bundle, other_channels };
    }
    from.truncate(LISTED_MAX);
    NoPath::NeedsFirst { bundle, installed, from, other_channels }
}

/// Where the edges to a bundle start, newest first, those that no catalog has last.
fn predecessors(reached: &Reached<'_>, to: Found<'_>) -> Vec<Predecessor> {
    let entries = || to.package.entries(&to.bundle.name, &reached.extension.channels);
    let mut known: BTreeMap<String, Found<'_>> = BTreeMap::new();
    let mut before: Vec<(Found<'_>, Predecessor)> = Vec::new();
    for (found, version) in reached.bundles() {
        let name = &found.bundle.name;
        let at = From { name, version: version.clone() };
        let is_new = known.insert(name.clone(), found).is_none();
        if is_new && *name != to.bundle.name && entries().any(|entry| entry.follows(&at)) {
            before.push((found, Predecessor::Unreached(name.clone())));
        }
    }
    before.sort_by(|(a, _), (b, _)| rank(a.bundle, b.bundle, reached.extension.releases));
    let named = entries().flat_map(|entry| entry.replaces.iter().chain(&entry.skips));
    let missing: BTreeSet<&String> = named.filter(|name| !known.contains_key(*name)).collect();
    let missing = missing.into_iter().map(|name| Predecessor::Missing(name.clone()));
    before.into_iter().map(|(_, at)| at).chain(missing).collect()
}

/// The channels that a way to the target goes through when all are asked for.
fn other_channels(reached: &Reached<'_>, target: &Target) -> BTreeSet<String> {
    let asked = &reached.extension.channels;
    if asked.is_empty() {
        return BTreeSet::new();
    }
    let all = Extension { channels: BTreeSet::new(), ..reached.extension.clone() };
    let start = From::installed(&all).ok().flatten();
    let Ok(wider) = search::all(reached.catalogs, &all, start, search::LOOKS_MAX) else {
        return BTreeSet::new();
    };
    let Some(goal) = wider.goal(target) else { return BTreeSet::new() };
    let hops = wider.path_to(goal).hops;
    let mut needed = BTreeSet::new();
    for hop in &hops {
        // A hop that an asked channel allows needs no other one.
        if !hop.edges.iter().any(|edge| asked.contains(&edge.channel)) {
            needed.extend(hop.edges.first().map(|edge| edge.channel.clone()));
        }
    }
    needed
}
