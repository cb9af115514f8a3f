//! Why no bundle is chosen, and what to do about it.

use std::collections::BTreeSet;

use wavelift_core::{constraint, release};

use super::{content::BadVersion, reason::listed};

/// Why no bundle is chosen. What is installed keeps running.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The asked constraint is none.
    #[error(
        "version `{text}` of the ClusterExtension is no constraint; write one such as `1.2.3`, `1.2.x` or `>=1.2.0 <2.0.0`"
    )]
    Constraint {
        /// The text.
        text: String,
        /// What is wrong with it.
        #[source]
        source: constraint::Error,
    },
    /// The installed version is none, so that no edge can be looked for.
    #[error(
        "the installed version `{version}` of `{package}` can't be read; set upgradeConstraintPolicy: SelfCertified to leave it"
    )]
    InstalledVersion {
        /// The package.
        package: String,
        /// The version.
        version: String,
        /// What is wrong with it.
        #[source]
        source: release::Error,
    },
    /// No catalog has the package.
    #[error("no catalog has package `{package}` (looked in {}); check its name, the catalogs' selector and whether they serve", listed(.catalogs))]
    PackageMissing {
        /// The package.
        package: String,
        /// The catalogs that were looked at.
        catalogs: Vec<String>,
    },
    /// No bundle of the package is in one of the channels.
    #[error("package `{package}` has no bundle in {}; its channels are {}", listed(.asked), listed(.channels))]
    ChannelsEmpty {
        /// The package.
        package: String,
        /// The asked channels.
        asked: BTreeSet<String>,
        /// The package's channels.
        channels: BTreeSet<String>,
    },
    /// No bundle satisfies the constraint.
    #[error("no version of `{package}` in the asked channels is in `{constraint}`; the newest there is {newest}{}", prerelease_hint(.prereleases))]
    ConstraintUnmet {
        /// The package.
        package: String,
        /// The constraint.
        constraint: String,
        /// The highest version that the channels have.
        newest: String,
        /// Prereleases that the constraint leaves out only because it names none; at most eight.
        prereleases: Vec<String>,
    },
    /// Nothing that was asked for follows the installed bundle.
    #[error("no edge leads from `{installed}` to {}; go there by way of a version in between, widen the channels or the constraint, or set upgradeConstraintPolicy: SelfCertified", listed(.wanted))]
    NoEdge {
        /// The installed bundle.
        installed: String,
        /// What was asked for, the preferred one first; at most eight.
        wanted: Vec<String>,
    },
    /// Two catalogs of the same priority have a bundle.
    #[error("catalogs {} all have a bundle of `{package}` at the same priority; raise spec.priority of one of them or narrow the selector", listed(.catalogs))]
    SeveralCatalogs {
        /// The package.
        package: String,
        /// The catalogs in the running, sorted by name.
        catalogs: Vec<String>,
    },
    /// The chosen bundle has no version.
    #[error(
        "`{bundle}` would be chosen but has no version; narrow the constraint or mend the catalog"
    )]
    BundleVersion {
        /// The bundle.
        bundle: String,
        /// What is wrong with it.
        #[source]
        source: BadVersion,
    },
    /// The chosen bundle needs others.
    #[error(
        "`{bundle}` needs other bundles (`{property}`), which OLM v1 does not install; install it by OLM v0, or narrow the constraint to a version without dependencies"
    )]
    Dependencies {
        /// The bundle.
        bundle: String,
        /// The property that says so.
        property: String,
    },
}

impl ResolveError {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Constraint { .. } => "Constraint",
            Self::InstalledVersion { .. } => "InstalledVersion",
            Self::PackageMissing { .. } => "PackageMissing",
            Self::ChannelsEmpty { .. } => "ChannelsEmpty",
            Self::ConstraintUnmet { .. } => "ConstraintUnmet",
            Self::NoEdge { .. } => "NoEdge",
            Self::SeveralCatalogs { .. } => "SeveralCatalogs",
            Self::BundleVersion { .. } => "BundleVersion",
            Self::Dependencies { .. } => "Dependencies",
        }
    }
}

fn prerelease_hint(prereleases: &[String]) -> String {
    if prereleases.is_empty() {
        return String::new();
    }
    format!(
        " ({} would be in it if it named a prerelease, as `>=1.2.0-0` does)",
        listed(prereleases)
    )
}
