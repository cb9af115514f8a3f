//! The other objects of a bundle: roles and bindings with what they allow, and the rest by name.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Confidence, Source,
    bundle::Content,
    danger::{self, Danger},
    difference::{Difference, ObjectChange, differences},
    permission::{Entry, of_rules},
};
use crate::manifests::view::View;

/// Entries of one role.
const ENTRIES_MAX: usize = 20_000;

/// An object of the bundle that changes. CRDs and alert rules have sections of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// Its API group; empty for the core group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What became of it.
    pub change: ObjectChange,
    /// What changes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Of a role: what it allows now and did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<RoleEntry>,
    /// Of a role: what it no longer allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<RoleEntry>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What a role allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleEntry {
    /// What may be done.
    #[serde(flatten)]
    pub entry: Entry,
    /// Why a gained one deserves a look, the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dangers: Vec<Danger>,
}

/// Group, kind and name.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Roles and bindings, then all others but CRDs and alert rules.
pub(super) fn compare(old: &Content<'_>, new: &Content<'_>) -> (Vec<Object>, Vec<Object>) {
    let (olds, news) = (of_bundle(old), of_bundle(new));
    let keys: BTreeSet<&Key<'_>> = olds.keys().chain(news.keys()).collect();
    let changes = keys.into_iter().filter_map(|key| change(key, olds.get(key), news.get(key)));
    changes.partition(|object| object.group == RBAC)
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn of_bundle<'a>(content: &'a Content<'_>) -> BTreeMap<Key<'a>, &'a Value> {
    let objects = content.objects.iter().map(|object| &**object);
    let others = objects.filter(|object| {
        let kind = object["kind"].as_str();
        kind != Some("CustomResourceDefinition") && kind != Some("PrometheusRule")
    });
    others.map(|object| (key(object), object)).collect()
}

fn key(object: &Value) -> Key<'_> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = object["kind"].as_str().unwrap_or_default();
    (group, kind, object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default())
}

fn change(key: &Key<'_>, old: Option<&&Value>, new: Option<&&Value>) -> Option<Object> {
    let change = match (old, new) {
        (Some(old), Some(new)) if old == new => return None,
        (Some(_), Some(_)) => ObjectChange::Changed,
        (None, _) => ObjectChange::Added,
        (Some(_), None) => ObjectChange::Removed,
    };
    let mut object = Object {
        group: key.0.to_owned(),
        kind: key.1.to_owned(),
        name: key.2.to_owned(),
        change,
        differences: Vec::new(),
        gained: Vec::new(),
        lost: Vec::new(),
        source: Source::FromManifests,
        confidence: Confidence::Certain,
    };
    if let Some((old, new)) = old.zip(new) {
        object.differences = differences(old, new);
    }
    if let Some((old, new)) = entries(old).zip(entries(new)) {
        let entry = |entry: &Entry, dangers| RoleEntry { entry: entry.clone(), dangers };
        object.differences.retain(|difference| difference.field != "rules");
        let gained = new.difference(&old).map(|of| entry(of, danger::of(of, false)));
        object.gained = gained.collect();
        object.gained.sort_by_cached_key(|of| (of.dangers.is_empty(), of.dangers.clone()));
        object.lost = old.difference(&new).map(|of| entry(of, Vec::new())).collect();
    }
    Some(object)
}

/// What a role allows; nothing if its rules can't be read, and are compared as text then.
fn entries(role: Option<&&Value>) -> Option<BTreeSet<Entry>> {
    let Some(role) = role else { return Some(BTreeSet::new()) };
    of_rules(&View::root(role).get("rules").ok()?, ENTRIES_MAX).ok()
}
