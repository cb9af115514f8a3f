//! What is said of two definitions.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Rule;

/// Bytes of a message.
const MESSAGE_MAX: usize = 500;
/// Bytes of a value before or after a change; larger ones are left out.
const VALUE_MAX: usize = 2_000;

/// All that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrdDiff {
    /// The name of both.
    pub name: String,
    /// Whether OLM v1 does not take the new definition: it refuses, or crashes.
    #[serde(rename = "refusedByV1")]
    pub refused_by_v1: bool,
    /// The answer of OLM v1 in full.
    pub v1: V1,
    /// How many findings of OLM v1 there are of each rule.
    pub by_rule: BTreeMap<String, usize>,
    /// Whether OLM v0 may not take the new definition.
    #[serde(rename = "refusedByV0")]
    pub refused_by_v0: RefusedByV0,
    /// Versions and what is said of all of them.
    pub versions: Versions,
    /// Every change, by version, property, rule and message.
    pub changes: Vec<Change>,
    /// What can't be said of these definitions, and why.
    pub unknown: Vec<String>,
}

/// What OLM v1 does with the new definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum V1 {
    /// It takes it.
    Accepts,
    /// It has findings, and refuses.
    Refuses,
    /// Its check crashes on a version without the place for a schema. The findings are then those
    /// it would have had of all else.
    Crashes,
}

/// Whether OLM v0 refuses, from the best to the worst.
///
/// The order is of how sure it is and of what must be done: objects that are in the way may not
/// exist, and can be edited; a stored version that goes needs objects to be migrated. Where both may
/// happen the worse is given, the other is among the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum RefusedByV0 {
    /// It does not refuse.
    Never,
    /// If an object does not fit the new schema.
    IfObjectsInvalid,
    /// If a version that goes is in `status.storedVersions`. Where the old definition has that
    /// field, only versions in it count, and OLM v0 does refuse.
    IfStored,
}

/// Versions that come, go, and change their part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Not in the old definition.
    pub added: Vec<String>,
    /// In both, and served in the old one only.
    pub no_longer_served: Vec<String>,
    /// In both, and served in the new one only.
    pub newly_served: Vec<String>,
    /// Not in the new definition.
    pub removed: Vec<Removed>,
    /// The version that objects are stored in.
    pub storage: Option<FromTo>,
    /// How objects are converted: `None` or `Webhook`.
    pub conversion: Option<FromTo>,
    /// `Namespaced` or `Cluster`. The API server refuses a change.
    pub scope: Option<FromTo>,
}

/// A version that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// Whether objects lie in it.
    pub stored: Stored,
}

/// Whether objects lie in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Stored {
    /// The cluster says so, or it is the storage version.
    Yes,
    /// It was not the last storage version; it may have been one before.
    Maybe,
    /// The cluster says that they don't.
    No,
}

/// A change from one to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FromTo {
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The version; `a -> b` for served versions of the new definition compared with each other;
    /// empty for the whole definition.
    pub version: String,
    /// The path in the schema, `^` for the whole of it; empty where it is not of a schema.
    pub property: String,
    /// What kind of change it is.
    pub rule: Rule,
    /// How bad it is.
    pub class: Class,
    /// Who refuses the new definition because of it; OLM v0 does only if there is an object, or a
    /// stored version, that it hits.
    pub refused_by: BTreeSet<Olm>,
    /// In words, to be read after the property or version.
    pub message: String,
    /// What was there, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What is there now, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// How bad a change is for those who have objects, or write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Class {
    /// What was right stays right.
    Compatible,
    /// What was right stays right, and may come to mean something else.
    Risky,
    /// What was right may be refused, or lost.
    Breaking,
}

/// The two OLMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Olm {
    /// OLM v0.
    V0,
    /// OLM v1.
    V1,
}

// === impl FromTo ===

impl FromTo {
    pub(super) fn of(from: &str, to: &str) -> Option<Self> {
        (from != to).then(|| Self { from: from.to_owned(), to: to.to_owned() })
    }
}

// === impl Change ===

impl Change {
    pub(super) fn new(rule: Rule, class: Class, message: String) -> Self {
        Self {
            version: String::new(),
            property: String::new(),
            rule,
            class,
            refused_by: BTreeSet::new(),
            message: cut(message),
            old: None,
            new: None,
        }
    }

    pub(super) fn at(mut self, version: &str, property: &str) -> Self {
        version.clone_into(&mut self.version);
        property.clone_into(&mut self.property);
        self
    }

    pub(super) fn with(mut self, old: Option<Value>, new: Option<Value>) -> Self {
        let is_short = |value: &Value| value.to_string().len() <= VALUE_MAX;
        let shown = |value: Option<Value>| value.filter(|v| !v.is_null()).filter(is_short);
        self.old = shown(old);
        self.new = shown(new);
        self
    }

    pub(super) fn key(&self) -> (&str, &str, &str, &str) {
        (&self.version, &self.property, self.rule.name(), &self.message)
    }
}

/// At most so much of a text, whole characters.
fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_MAX {
        text.truncate(text.floor_char_boundary(MESSAGE_MAX));
        text.push('…');
    }
    text
}
