//! What OLM v1 does: each ClusterExtension by itself, its bundle chosen by version.
//!
//! Candidates are the bundles of the package that are in one of the asked channels, satisfy the asked
//! constraint, and follow the installed bundle by an edge of these channels (or are it). Bundles that
//! are not deprecated come first, then the highest version; between catalogs the one of the highest
//! priority wins. Unlike OLM v0, a skipped bundle may be chosen, heads mean nothing, a target can be
//! named, and a bundle that needs others is refused.
//!
//! [`resolve`] gives the answer with a reason for every bundle that was passed over, [`path`](path())
//! the hops to a target by pinning one version after the other, and [`answer`] answers a [`Query`]
//! as it stands in one line of JSON.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use wavelift_core::{constraint::Constraint, release::VersionRelease};

pub use self::{
    content::{BadVersion, ClusterCatalog, Content},
    error::ResolveError,
    path::{Hop, NoPath, Path, Predecessor, Target, path},
    query::{Query, Reply, answer},
    reason::{PassedOver, Why},
    resolve::resolve,
};

mod candidates;
mod content;
mod error;
mod path;
mod query;
mod reason;
mod resolve;

/// Whether edges bind, `spec.source.catalog.upgradeConstraintPolicy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpgradePolicy {
    /// Only bundles that follow the installed one by an edge of the catalog.
    #[default]
    CatalogProvided,
    /// Any bundle, older ones too.
    SelfCertified,
}

/// Where a bundle's release is read from; OLM's feature gate `BundleReleaseSupport`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseSource {
    /// From the version's build metadata alone: the gate is off, as it is by default.
    #[default]
    BuildMetadata,
    /// From the field `release` of `olm.package` where there is one: the gate is on.
    ReleaseField,
}

/// `status.install.bundle`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledBundle {
    /// Its name.
    pub name: String,
    /// Its version, as the cluster shows it.
    pub version: String,
    /// Its release, where the cluster shows one in a field of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

/// A ClusterExtension, as far as resolution looks at it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extension {
    /// The package.
    pub package: String,
    /// The channels; none means all.
    pub channels: BTreeSet<String>,
    /// `spec.source.catalog.version`; nothing means any version.
    pub constraint: Option<Constraint>,
    /// What is installed.
    pub installed: Option<InstalledBundle>,
    /// Whether edges bind.
    pub policy: UpgradePolicy,
    /// Where releases are read from.
    pub releases: ReleaseSource,
}

/// What a ClusterExtension does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Nothing was installed.
    Installs,
    /// The installed bundle is the chosen one.
    Stays,
    /// Another bundle takes the place of the installed one.
    Moves,
}

/// An edge of the catalog from one bundle to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edge {
    /// The channel that has it.
    pub channel: String,
    /// Which field of the channel's entry it comes from.
    pub kind: EdgeKind,
}

/// Which field of a channel's entry an edge comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EdgeKind {
    /// `replaces` names the installed bundle.
    Replaces,
    /// `skips` names the installed bundle.
    Skips,
    /// This `skipRange` holds the installed version.
    SkipRange(String),
}

/// The bundle that OLM chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Its catalog.
    pub catalog: String,
    /// Its name.
    pub bundle: String,
    /// Its version and release.
    pub version: VersionRelease,
    /// What the author says to users, if it is deprecated.
    pub deprecation: Option<String>,
    /// What happens.
    pub step: Step,
    /// The edges that lead to it from the installed bundle. There are none at a first installation,
    /// where it stays, and where edges do not bind.
    pub edges: Vec<Edge>,
    /// Bundles of its catalog that rank the same: OLM takes the one that stands first in the catalog.
    pub same_rank: Vec<String>,
}

/// The answer for one ClusterExtension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The chosen bundle, or why there is none.
    pub outcome: Result<Resolved, ResolveError>,
    /// Every other bundle of the package with the reason why it was not chosen, catalog by catalog.
    pub passed_over: Vec<PassedOver>,
}

#[cfg(test)]
mod tests;
