//! The hops of one ClusterExtension to a target, by pinning an exact version at each.
//!
//! A pin takes the place of `spec.source.catalog.version`, so the constraint that stands there does
//! not bind the hops; channels, policy and catalogs do. The way has the fewest hops there are; of
//! ways of the same length the one over bundles that are not deprecated and over higher versions is
//! taken. A pin names a version, never a release: where a version was built again, OLM takes the
//! newest build that it may, and so does this.

use serde::{Deserialize, Serialize};
use wavelift_core::{constraint::Constraint, release::VersionRelease, version::Version};

pub use self::reason::{NoPath, Predecessor};
use super::{ClusterCatalog, Edge, Extension, candidates::From};

mod reason;
mod search;

/// Where the ClusterExtension is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To this version; where it names build metadata, to that build.
    Version(Version),
    /// To the bundle that OLM prefers of all that can be reached within this constraint: the highest
    /// version that is not deprecated.
    Within(Constraint),
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// The bundle it starts from; nothing for a first installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The bundle it ends at.
    pub to: String,
    /// The version and release of that bundle, as the cluster will show them.
    pub to_version: String,
    /// What `spec.source.catalog.version` must be for this hop.
    pub pin: String,
    /// The catalog that the bundle comes from.
    pub catalog: String,
    /// The edges that allow the hop; none at a first installation and where edges do not bind.
    pub edges: Vec<Edge>,
    /// What the author says to users, if the bundle is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
}

/// The hops to a target; none if the ClusterExtension is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// In order.
    pub hops: Vec<Hop>,
}

/// The shortest way to the target, or why there is none.
pub fn path(
    catalogs: &[ClusterCatalog],
    extension: &Extension,
    target: &Target,
) -> Result<Path, NoPath> {
    let mut extension = extension.clone();
    extension.constraint = None;
    let start = From::installed(&extension).map_err(|source| {
        let installed = extension.installed.as_ref();
        let version = installed.map(|installed| installed.version.clone()).unwrap_or_default();
        NoPath::InstalledVersion { version, source }
    })?;
    let reached = search::all(catalogs, &extension, start, search::LOOKS_MAX)?;
    match reached.goal(target) {
        Some(goal) => Ok(reached.path_to(goal)),
        None => Err(reason::why(&reached, target)),
    }
}

// === impl Target ===

impl Target {
    fn is_met_by(&self, version: &VersionRelease) -> bool {
        match self {
            Self::Within(constraint) => constraint.contains(&version.version),
            Self::Version(target) => {
                let release = version.release.as_ref().map(ToString::to_string);
                let build = || release.or_else(|| version.version.build());
                version.version.cmp_precedence(target).is_eq()
                    && target.build().is_none_or(|named| build() == Some(named))
            }
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => version.fmt(f),
            Self::Within(constraint) => write!(f, "a version in `{constraint}`"),
        }
    }
}

#[cfg(test)]
mod tests;
