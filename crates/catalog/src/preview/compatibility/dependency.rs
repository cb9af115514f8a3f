//! Packages and APIs that a version needs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{Confidence, Source, bundle::Bundle};
use crate::graph::Property;

/// Something needed that comes, goes or changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// What kind of thing is needed.
    pub kind: DependencyKind,
    /// The package; the API as `Kind.version.group`; the label; or the constraint's own message.
    pub name: String,
    /// What became of it.
    pub change: DependencyChange,
    /// The version range, or the constraint, before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The version range, or the constraint, after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What kind of thing is needed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum DependencyKind {
    /// A package. OLM v0 installs it if it is missing.
    Package,
    /// An API that some other operator provides.
    Api,
    /// A bundle with a label.
    Label,
    /// A compound of needs.
    Constraint,
    /// An API that the cluster itself must have.
    NativeApi,
}

/// What became of a need.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum DependencyChange {
    /// It is needed now.
    Gained,
    /// It is needed in another version.
    Changed,
    /// It is no longer needed.
    Lost,
}

type Needs = BTreeMap<(DependencyKind, String), (Option<String>, Source)>;

pub(super) fn compare(old: &Bundle<'_>, new: &Bundle<'_>) -> Vec<Dependency> {
    let (olds, news) = (needs(old), needs(new));
    let dependency = |key: &(DependencyKind, String), change, source| Dependency {
        kind: key.0,
        name: key.1.clone(),
        change,
        old: olds.get(key).and_then(|(range, _)| range.clone()),
        new: news.get(key).and_then(|(range, _)| range.clone()),
        source,
        confidence: Confidence::Certain,
    };
    let mut found = Vec::new();
    for (key, (range, source)) in &news {
        match olds.get(key) {
            None => found.push(dependency(key, DependencyChange::Gained, *source)),
            Some((old, _)) if old != range => {
                found.push(dependency(key, DependencyChange::Changed, *source));
            }
            Some(_) => {}
        }
    }
    let gone = olds.iter().filter(|(key, _)| !news.contains_key(*key));
    found.extend(gone.map(|(key, (_, s))| dependency(key, DependencyChange::Lost, *s)));
    found
}

fn needs(bundle: &Bundle<'_>) -> Needs {
    let mut needs = Needs::new();
    let stated =
        if bundle.facts.properties.is_empty() { Source::FromMetadata } else { Source::FromCatalog };
    for property in &bundle.properties {
        if let Some((kind, name, range)) = of_property(property) {
            needs.insert((kind, name), (range, stated));
        }
    }
    for (pointer, field) in [
        ("/spec/customresourcedefinitions/required", "crdDescriptions"),
        ("/spec/apiservicedefinitions/required", "apiServiceDefinitions"),
    ] {
        for (api, source) in bundle.listed(pointer, field, "required") {
            needs.entry((DependencyKind::Api, of_description(api))).or_insert((None, source));
        }
    }
    if let Some((Value::Array(apis), source)) = bundle.described("nativeAPIs") {
        for api in apis {
            needs.insert((DependencyKind::NativeApi, of_gvk(api)), (None, source));
        }
    }
    needs
}

fn of_property(property: &Property) -> Option<(DependencyKind, String, Option<String>)> {
    let value = &property.value;
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(match property.kind.as_str() {
        Property::PACKAGE_REQUIRED => {
            (DependencyKind::Package, text("packageName")?, text("versionRange"))
        }
        Property::GVK_REQUIRED => (DependencyKind::Api, of_gvk(value), None),
        Property::LABEL_REQUIRED => (DependencyKind::Label, text("label")?, None),
        Property::CONSTRAINT => {
            let whole = super::super::difference::shown(value);
            (
                DependencyKind::Constraint,
                text("failureMessage").unwrap_or_else(|| whole.clone()),
                Some(whole),
            )
        }
        _ => return None,
    })
}

fn of_gvk(value: &Value) -> String {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    format!("{}.{}.{}", text("kind"), text("version"), text("group"))
}

/// An API from how a CSV describes it: `name` is `plural.group`, or there is a `group`.
fn of_description(value: &Value) -> String {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let of_name = text("name").and_then(|name| name.split_once('.')).map(|(_, group)| group);
    let group = text("group").or(of_name).unwrap_or_default();
    format!("{}.{}.{group}", text("kind").unwrap_or_default(), text("version").unwrap_or_default())
}
