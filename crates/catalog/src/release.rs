//! What an operator's author says about upgrades: the document of schema
//! `io.wavelift.release.v1alpha1` in a catalog, or a bundle property of that type.
//!
//! It is published as `docs/reference/io.wavelift.release.v1alpha1.schema.json`. Fields that are not
//! known here are kept and can be named ([`Release::unknown_fields`]), so that a typing error shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavelift_core::{range::Range, version::Version};

use crate::fbc::FieldError;

mod parse;
mod span;

/// The schema of the document, and the type of the property.
pub const SCHEMA: &str = "io.wavelift.release.v1alpha1";

/// Fields that are not known here, as they are.
pub type Unknown = BTreeMap<String, Value>;

/// All that is said about one package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// `io.wavelift.release.v1alpha1`; absent in a bundle property, whose type it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The package; absent in a bundle property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// What is new in a version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release_notes: Vec<ReleaseNote>,
    /// What people have to do themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manual_steps: Vec<ManualStep>,
    /// Known effects of an upgrade on those who use the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessments: Vec<Assessment>,
    /// Preflight checks that a version brings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Carried>,
    /// How the progress and the conditions of a version are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_sources: Vec<StatusSource>,
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// The versions that something is about: exactly one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Span {
    /// One version.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// A range, as in `skipRange`.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Range>,
}

/// What is new in a version. There is a text or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseNote {
    /// The versions.
    #[serde(flatten)]
    pub span: Span,
    /// In a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// In full, as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// What people have to do themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualStep {
    /// The versions whose arrival asks for it.
    #[serde(flatten)]
    pub span: Span,
    /// In a line.
    pub title: String,
    /// When to do it. `Before` where nothing is said.
    #[serde(default)]
    pub when: When,
    /// How to do it, as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// When a manual step has its time.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum When {
    /// Before the upgrade starts.
    #[default]
    Before,
    /// After it is done.
    After,
}

/// A known effect of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assessment {
    /// Its name, by which a newer word on it replaces this one.
    pub id: String,
    /// The versions whose arrival has the effect.
    #[serde(flatten)]
    pub span: Span,
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
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// How bad an effect is, the worst last.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Impact {
    /// Nobody notices.
    None,
    /// Some may notice.
    Low,
    /// Many will notice.
    Medium,
    /// Something stops to work unless somebody acts.
    High,
}

/// A definition that is handed on as it is to whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Carried {
    /// Its name.
    pub name: String,
    /// The versions that bring it.
    #[serde(flatten)]
    pub span: Span,
    /// All its other fields.
    #[serde(flatten)]
    pub definition: BTreeMap<String, Value>,
}

/// How the progress and the conditions of a version are read from objects on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusSource {
    /// Its name.
    pub name: String,
    /// The versions that it is about.
    #[serde(flatten)]
    pub span: Span,
    /// The objects that its expressions are about; four at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<StatusObject>,
    /// CEL that ends in a number from 0 to 100: how far the new version has come with its own work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// CEL that ends in a text: what it is doing, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Conditions of the author's own; 16 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// An object, or all of a kind, that expressions are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusObject {
    /// What it is called in expressions: a lower-case letter, then letters, digits and `_`.
    pub variable: String,
    /// `GROUP/VERSION`, or `v1`.
    pub api_version: String,
    /// Its kind; any but Secret.
    pub kind: String,
    /// Its name. Without one the variable is the list of all of the kind, 100 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace; without one that of the operator. Nothing for what has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A condition of the author's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// CEL that ends in a truth value; True or False.
    pub status: String,
    /// Its reason, CamelCase; the type where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// CEL that ends in a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Other fields.
    #[serde(flatten)]
    pub unknown: Unknown,
}

// === impl Release ===

impl Release {
    /// Reads a document, or the value of a bundle property.
    pub fn parse(value: &Value) -> Result<Self, FieldError> {
        parse::release(value)
    }

    /// The paths of fields that are not known here.
    pub fn unknown_fields(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.unknown.keys().cloned().collect();
        let mut add = |list: &str, index: usize, unknown: &Unknown| {
            paths.extend(unknown.keys().map(|field| format!("{list}[{index}].{field}")));
        };
        for (index, note) in self.release_notes.iter().enumerate() {
            add("releaseNotes", index, &note.unknown);
        }
        for (index, step) in self.manual_steps.iter().enumerate() {
            add("manualSteps", index, &step.unknown);
        }
        for (index, assessment) in self.assessments.iter().enumerate() {
            add("assessments", index, &assessment.unknown);
        }
        for (index, source) in self.status_sources.iter().enumerate() {
            add("statusSources", index, &source.unknown);
            for (place, object) in source.objects.iter().enumerate() {
                add(&format!("statusSources[{index}].objects"), place, &object.unknown);
            }
            for (place, condition) in source.conditions.iter().enumerate() {
                add(&format!("statusSources[{index}].conditions"), place, &condition.unknown);
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests;
