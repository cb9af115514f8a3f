//! Custom resource definitions that come, go or change. How two of them differ, and which OLM refuses
//! that, is [`crate::crd`]'s to say; this is what a preview shows of it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    fmt,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Confidence, Importance, Source,
    bundle::Content,
    difference::{ObjectChange, shown},
};
use crate::crd::{self, Class, CrdDiff, Fate, FromTo, Olm, RefusedByV0, Rule, Stored};

/// A CRD that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Crd {
    /// Its name.
    pub name: String,
    /// What became of it. One that the new bundle does without stays on the cluster, as it is.
    pub change: ObjectChange,
    /// Whether OLM v0 may refuse it.
    #[serde(rename = "refusedByV0")]
    pub refused_by_v0: CrdRefusal,
    /// Whether OLM v1 refuses it.
    #[serde(rename = "refusedByV1")]
    pub refused_by_v1: bool,
    /// Versions that the old CSV owns and the new definition does not serve. OLM v0 then fails the
    /// old CSV, and the new one waits for it without end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_not_served: Vec<String>,
    /// Versions, storage, conversion, scope: what is said of the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<CrdVersionChange>,
    /// How many schema changes there are of each class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<CrdClass, usize>,
    /// Every change, the worst first, but other words of descriptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SchemaChange>,
    /// How many descriptions have other words.
    #[serde(default)]
    pub descriptions_changed: usize,
    /// What can't be said, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// Whether OLM v0 refuses a definition, from the best to the worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum CrdRefusal {
    /// It does not.
    Never,
    /// If an object does not fit the new schema.
    IfObjectsInvalid,
    /// If objects are, or were, stored in a version that goes.
    IfStored,
    /// The definitions could not be compared.
    Unknown,
}

/// What is said of a definition as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrdVersionChange {
    /// What changes.
    pub what: CrdVersionChangeKind,
    /// The version that comes or goes, or how it is now.
    pub new: String,
    /// How it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
}

/// What changes of a definition as a whole.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum CrdVersionChangeKind {
    /// A version comes.
    Added,
    /// A version is served that was not.
    Served,
    /// A version is no longer served.
    NotServed,
    /// A version goes in which no objects lie.
    Removed,
    /// A version goes in which objects lie or may lie.
    StoredRemoved,
    /// Another version is stored.
    Storage,
    /// Objects are converted in another way.
    Conversion,
    /// It is namespaced, or no longer.
    Scope,
}

/// How bad a schema change is, the worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum CrdClass {
    /// What was right may be refused, or lost.
    Breaking,
    /// What was right stays right, and may come to mean something else.
    Risky,
    /// What was right stays right.
    Compatible,
}

/// One change of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchemaChange {
    /// The version; empty for the whole definition.
    pub version: String,
    /// The path in the schema.
    pub property: String,
    /// What kind of change it is.
    pub rule: String,
    /// How bad it is.
    pub class: CrdClass,
    /// `v0`, `v1`: which OLM holds it against the upgrade.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub refused_by: BTreeSet<String>,
    /// In words.
    pub message: String,
    /// What was there, cut if long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// What is there now, cut if long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

// === impl Crd ===

impl Crd {
    fn new(name: &str, change: ObjectChange) -> Self {
        Self {
            name: name.to_owned(),
            change,
            refused_by_v0: CrdRefusal::Never,
            refused_by_v1: false,
            owned_not_served: Vec::new(),
            versions: Vec::new(),
            by_class: BTreeMap::new(),
            changes: Vec::new(),
            descriptions_changed: 0,
            unknown: Vec::new(),
            source: Source::FromManifests,
            confidence: Confidence::Certain,
        }
    }

    /// How much it matters. Objects can't be read while a new conversion does not answer.
    pub fn importance(&self) -> Importance {
        let is_converted = self.versions.iter().any(|v| v.what == CrdVersionChangeKind::Conversion);
        match (self.change, self.refused_by_v0) {
            _ if is_converted || !self.owned_not_served.is_empty() => Importance::High,
            (_, CrdRefusal::IfStored | CrdRefusal::Unknown) => Importance::High,
            (ObjectChange::Removed, _) | (_, CrdRefusal::IfObjectsInvalid) => Importance::Medium,
            _ if self.by_class.contains_key(&CrdClass::Breaking) => Importance::Medium,
            (ObjectChange::Added | ObjectChange::Renamed | ObjectChange::Changed, _) => {
                Importance::Low
            }
        }
    }

    fn add(&mut self, diff: CrdDiff) {
        self.refused_by_v1 = diff.refused_by_v1;
        self.refused_by_v0 = match diff.refused_by_v0 {
            RefusedByV0::Never => CrdRefusal::Never,
            RefusedByV0::IfObjectsInvalid => CrdRefusal::IfObjectsInvalid,
            RefusedByV0::IfStored => CrdRefusal::IfStored,
        };
        self.add_versions(diff.versions);
        for change in diff.changes {
            if change.rule == Rule::DescriptionChanged {
                self.descriptions_changed += 1;
                continue;
            }
            let class = match change.class {
                Class::Breaking => CrdClass::Breaking,
                Class::Risky => CrdClass::Risky,
                Class::Compatible => CrdClass::Compatible,
            };
            *self.by_class.entry(class).or_default() += 1;
            let olm = |olm: &Olm| match olm {
                Olm::V0 => "v0".to_owned(),
                Olm::V1 => "v1".to_owned(),
            };
            self.changes.push(SchemaChange {
                version: change.version,
                property: change.property,
                rule: change.rule.to_string(),
                class,
                refused_by: change.refused_by.iter().map(olm).collect(),
                message: change.message,
                old: change.old.as_ref().map(shown),
                new: change.new.as_ref().map(shown),
            });
        }
        self.changes.sort_by_key(|change| change.class);
        self.unknown = diff.unknown;
    }

    fn add_versions(&mut self, versions: crd::Versions) {
        let mut add = |what, new: String, old: Option<String>| {
            self.versions.push(CrdVersionChange { what, new, old });
        };
        for version in versions.added {
            add(CrdVersionChangeKind::Added, version, None);
        }
        for version in versions.newly_served {
            add(CrdVersionChangeKind::Served, version, None);
        }
        for version in versions.no_longer_served {
            add(CrdVersionChangeKind::NotServed, version, None);
        }
        for removed in versions.removed {
            let what = match removed.stored {
                Stored::No => CrdVersionChangeKind::Removed,
                Stored::Yes | Stored::Maybe => CrdVersionChangeKind::StoredRemoved,
            };
            add(what, removed.name, None);
        }
        for (what, change) in [
            (CrdVersionChangeKind::Storage, versions.storage),
            (CrdVersionChangeKind::Conversion, versions.conversion),
            (CrdVersionChangeKind::Scope, versions.scope),
        ] {
            if let Some(FromTo { from, to }) = change {
                add(what, to, Some(from));
            }
        }
    }

    fn cannot_tell(&mut self, error: &crd::Error) {
        let mut text = error.to_string();
        if let Some(source) = error.source() {
            text.push_str(&format!(": {source}"));
        }
        self.unknown.push(text);
        self.confidence = Confidence::Unknown;
        self.refused_by_v0 = CrdRefusal::Unknown;
    }
}

impl fmt::Display for CrdVersionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, new, old } = self;
        let old = old.as_deref().unwrap_or("none");
        match what {
            CrdVersionChangeKind::Added => write!(f, "version {new} added"),
            CrdVersionChangeKind::Served => write!(f, "version {new} is served now"),
            CrdVersionChangeKind::NotServed => write!(f, "version {new} is no longer served"),
            CrdVersionChangeKind::Removed => write!(f, "version {new} removed"),
            CrdVersionChangeKind::StoredRemoved => {
                write!(f, "version {new} removed, objects may be stored in it")
            }
            CrdVersionChangeKind::Storage => write!(f, "storage version {new} (was {old})"),
            CrdVersionChangeKind::Conversion => write!(f, "conversion {new} (was {old})"),
            CrdVersionChangeKind::Scope => write!(f, "scope {new} (was {old})"),
        }
    }
}

pub(super) fn compare(old: &Content<'_>, new: &Content<'_>) -> Vec<Crd> {
    let (olds, news) = (of_bundle(old), of_bundle(new));
    let mut changes = Vec::new();
    for (name, new) in &news {
        match olds.get(name) {
            None => changes.push(Crd::new(name, ObjectChange::Added)),
            Some(before) if before != new => changes.push(changed(name, before, new, &old.csv)),
            Some(_) => {}
        }
    }
    let gone = olds.keys().filter(|name| !news.contains_key(*name));
    changes.extend(gone.map(|name| Crd::new(name, ObjectChange::Removed)));
    changes
}

fn changed(name: &str, old: &Value, new: &Value, csv: &Value) -> Crd {
    let mut changed = Crd::new(name, ObjectChange::Changed);
    match crd::diff(old, new) {
        Ok(diff) => changed.add(diff),
        Err(error) => changed.cannot_tell(&error),
    }
    // A new definition that can't be read is told of by the comparison.
    for owned in crd::owned_not_served(csv, new).unwrap_or_default() {
        let fate = match owned.fate {
            Fate::NotServed => "no longer served",
            Fate::Removed => "removed",
        };
        changed.owned_not_served.push(format!("{} {}: {fate}", owned.kind, owned.version));
    }
    changed
}

fn of_bundle<'a>(content: &'a Content<'_>) -> BTreeMap<&'a str, &'a Value> {
    let objects = content.objects.iter().map(Cow::as_ref);
    let crds = objects.filter(|object| object["kind"] == "CustomResourceDefinition");
    crds.filter_map(|crd| Some((crd.pointer("/metadata/name")?.as_str()?, crd))).collect()
}
