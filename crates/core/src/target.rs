//! Where an operator is to go.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{Namespace, PackageName},
    range::Range,
    version::Version,
};

/// One package and its goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The package.
    pub package: PackageName,
    /// Where to.
    pub goal: Goal,
    /// Only the Subscription in this namespace; `None` = wherever the package is installed.
    pub namespace: Option<Namespace>,
}

/// How far a package is to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Goal {
    /// As far as its channel goes.
    Latest,
    /// To exactly this version.
    Version(Version),
    /// To the last reachable version within this range.
    Range(Range),
}

impl Target {
    /// True when the target speaks of `package` in `namespace`.
    pub fn covers(&self, namespace: &Namespace, package: &str) -> bool {
        self.package.as_str() == package
            && self.namespace.as_ref().is_none_or(|only| only == namespace)
    }
}
