//! What authors say about the versions of a path, skipped ones included: release notes, manual
//! steps, assessments, and what checks a version brings. Nothing is made up: where nobody says
//! anything, that is what is said.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Confidence, Source, bundle::Bundle};
use crate::release::{Impact, When};

mod authored;
mod written;

/// What authors say about the versions of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notes {
    /// Known effects of the upgrade, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessments: Vec<Assessment>,
    /// What people have to do themselves, by version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manual_steps: Vec<ManualStep>,
    /// What is new, by version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release_notes: Vec<ReleaseNote>,
    /// The CSVs of the path for which nothing of that was found anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_release_notes: Vec<String>,
    /// Preflight checks and status sources that the versions bring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought: Vec<Brought>,
    /// Fields of release documents that are not known here.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown_fields: BTreeSet<String>,
    /// Release documents that can't be read, and why.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unreadable: BTreeSet<String>,
}

/// A known effect of the upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assessment {
    /// Its name.
    pub id: String,
    /// The versions that it is about, as the author wrote them.
    pub versions: String,
    /// In a line.
    pub title: String,
    /// How bad it is.
    pub impact: Impact,
    /// What happens, as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What people have to do themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualStep {
    /// The versions that it is about, as the author wrote them.
    pub versions: String,
    /// In a line.
    pub title: String,
    /// When to do it.
    pub when: When,
    /// How to do it, as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What is new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseNote {
    /// The versions that it is about; of a note in a bundle, that bundle's version.
    pub versions: String,
    /// `added`, `fixed` and so on, where the author sorts changes so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// In a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// In full, as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A check or status source that a version brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Brought {
    /// What it is.
    pub kind: BroughtKind,
    /// Its name.
    pub name: String,
    /// The versions that bring it, as the author wrote them.
    pub versions: String,
    /// The definition, as it is.
    pub definition: Value,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What a version brings for those who upgrade.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum BroughtKind {
    /// A preflight check.
    Check,
    /// How progress and conditions are read.
    StatusSource,
}

/// From the first of the bundles to the last, by way of the others and of those that are jumped over.
pub(super) fn of_path(bundles: &[Bundle<'_>]) -> Notes {
    let mut notes = Notes::default();
    let Some((installed, arrived)) = bundles.split_first() else { return notes };
    let told = authored::add(&mut notes, installed, arrived);
    written::add(&mut notes, installed, arrived, &told);
    notes
}
