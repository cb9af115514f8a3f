//! Why a bundle was not chosen.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use wavelift_core::causes;

use super::{
    Extension,
    candidates::{Found, rank},
};

/// A bundle that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// Its catalog.
    pub catalog: String,
    /// Its name.
    pub bundle: String,
    /// Its version and release, if they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The reason.
    pub why: Why,
}

/// The reason why a bundle was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind")]
pub enum Why {
    /// It is in other channels than the asked ones.
    #[error("not in the asked channels, but in {}", listed(.channels))]
    NotInChannels {
        /// The channels that it is in.
        channels: BTreeSet<String>,
    },
    /// Its version does not satisfy the constraint.
    #[error("not in `{constraint}`")]
    Constraint {
        /// The constraint.
        constraint: String,
    },
    /// Its version would satisfy the constraint, were it no prerelease.
    #[error("a prerelease, and `{constraint}` names none")]
    Prerelease {
        /// The constraint.
        constraint: String,
    },
    /// It has no version to hold against the constraint.
    #[error("without a version: {reason}")]
    NoVersion {
        /// What is wrong with it.
        reason: String,
    },
    /// No edge leads to it from the installed bundle.
    #[error("no edge leads to it from `{installed}`")]
    NoEdge {
        /// The installed bundle.
        installed: String,
    },
    /// It is deprecated, and one that is not could be chosen.
    #[error("deprecated, unlike `{chosen}`")]
    Deprecated {
        /// The one that came before it.
        chosen: String,
    },
    /// It is older.
    #[error("older than `{chosen}`")]
    Older {
        /// The one that came before it.
        chosen: String,
    },
    /// It ranks the same, and the other one stands first in the catalog.
    #[error("the same rank as `{chosen}`, which stands first in the catalog")]
    SameRank {
        /// The one that came before it.
        chosen: String,
    },
    /// Another catalog has a higher priority.
    #[error("catalog `{preferred}` has a higher priority")]
    LowerPriority {
        /// The other catalog.
        preferred: String,
    },
    /// It came first, but OLM v1 refuses bundles that need others.
    #[error("it needs other bundles (`{property}`)")]
    HasDependencies {
        /// The property that says so.
        property: String,
    },
}

impl Why {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotInChannels { .. } => "NotInChannels",
            Self::Constraint { .. } => "Constraint",
            Self::Prerelease { .. } => "Prerelease",
            Self::NoVersion { .. } => "NoVersion",
            Self::NoEdge { .. } => "NoEdge",
            Self::Deprecated { .. } => "Deprecated",
            Self::Older { .. } => "Older",
            Self::SameRank { .. } => "SameRank",
            Self::LowerPriority { .. } => "LowerPriority",
            Self::HasDependencies { .. } => "HasDependencies",
        }
    }
}

/// Names for a message.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { causes::listed(&names) }
}

/// Why another bundle of the same catalog came before this one.
pub(super) fn within(extension: &Extension, found: Found<'_>, first: Found<'_>) -> Why {
    let chosen = first.bundle.name.clone();
    if found.bundle.is_deprecated() && !first.bundle.is_deprecated() {
        Why::Deprecated { chosen }
    } else if rank(found.bundle, first.bundle, extension.releases).is_eq() {
        Why::SameRank { chosen }
    } else {
        Why::Older { chosen }
    }
}
