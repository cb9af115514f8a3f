//! A question and its answer in one line of JSON each.

use serde::{Deserialize, Serialize};
use wavelift_core::{causes::sentence, constraint::Constraint};

use super::{
    ClusterCatalog, Extension, InstalledBundle, ReleaseSource, ResolveError, UpgradePolicy, resolve,
};

/// A ClusterExtension in one line: `{"package","channels","constraint","installed","version"}`.
/// Fields that are left out or empty ask for nothing; fields of other names are not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Query {
    /// The package.
    pub package: String,
    /// The channels; none means all.
    pub channels: Option<Vec<String>>,
    /// The constraint; empty means any version.
    pub constraint: Option<String>,
    /// The installed bundle; empty if there is none.
    pub installed: Option<String>,
    /// The version of the installed bundle.
    pub version: Option<String>,
    /// Its release, where the cluster shows one in a field of its own.
    pub release: Option<String>,
    /// Whether edges bind.
    pub upgrade_constraint_policy: UpgradePolicy,
    /// Where releases are read from.
    pub release_source: ReleaseSource,
}

/// The answer in one line: `{"resolved":"..."}` or `{"error":"..."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// The chosen bundle; the installed one if it stays.
    Resolved(String),
    /// Why there is none and what to do, in one line.
    Error(String),
}

impl Query {
    /// The ClusterExtension that the line speaks of.
    pub fn extension(&self) -> Result<Extension, ResolveError> {
        let constraint = self.constraint.as_deref().filter(|text| !text.is_empty());
        let constraint = constraint.map(Constraint::parse).transpose().map_err(|source| {
            ResolveError::Constraint { text: self.constraint.clone().unwrap_or_default(), source }
        })?;
        let installed = self.installed.clone().filter(|name| !name.is_empty());
        Ok(Extension {
            package: self.package.clone(),
            channels: self.channels.iter().flatten().cloned().collect(),
            constraint,
            installed: installed.map(|name| InstalledBundle {
                name,
                version: self.version.clone().unwrap_or_default(),
                release: self.release.clone(),
            }),
            policy: self.upgrade_constraint_policy,
            releases: self.release_source,
        })
    }
}

/// What OLM v1 answers.
pub fn answer(catalogs: &[ClusterCatalog], query: &Query) -> Reply {
    match query.extension().and_then(|extension| resolve(catalogs, &extension).outcome) {
        Ok(resolved) => Reply::Resolved(resolved.bundle),
        Err(error) => Reply::Error(sentence(&error)),
    }
}
