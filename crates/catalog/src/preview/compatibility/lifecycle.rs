//! How long the author stands by a version, from the catalog's lifecycle document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{Confidence, Source, bundle::Bundle};
use crate::lifecycle;

/// The lifecycle of one minor version of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The CSV that it is about.
    pub bundle: String,
    /// The minor version of the operator, e.g. `4.18`.
    pub version: String,
    /// The phases of support, as they stand in the document.
    pub phases: Vec<Phase>,
    /// The last day of the last phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// The platforms that it works with.
    pub platforms: Vec<Platform>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A phase of support. Dates are as the author wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Its first day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// Its last day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
}

/// A platform and its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// Its name, e.g. `openshift`.
    pub name: String,
    /// Its versions.
    pub versions: Vec<String>,
}

/// The lifecycle of the old version and of the new one, as far as they are known.
pub(super) fn of(old: &Bundle<'_>, new: &Bundle<'_>) -> Vec<Lifecycle> {
    // The newest document is the last word, also on the old version.
    let documents = new.facts.documents.iter().chain(&old.facts.documents);
    let documents: Vec<&Value> = documents
        .copied()
        .filter(|document| document["schema"] == lifecycle::Lifecycle::SCHEMA)
        .collect();
    [old, new].into_iter().filter_map(|bundle| of_bundle(bundle, &documents)).collect()
}

fn of_bundle(bundle: &Bundle<'_>, documents: &[&Value]) -> Option<Lifecycle> {
    let version = bundle.version.as_ref()?;
    let name = format!("{}.{}", version.major(), version.minor());
    let list = |value: &'_ Value, field: &str| -> Vec<Value> {
        value.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let versions = documents.iter().flat_map(|document| list(document, "versions"));
    let found = versions.into_iter().find(|version| version["name"] == name.as_str())?;
    let text = |value: &Value, field: &str| value[field].as_str().map(str::to_owned);
    let phases: Vec<Phase> = list(&found, "phases")
        .iter()
        .map(|phase| Phase {
            name: text(phase, "name").unwrap_or_default(),
            start_date: text(phase, "startDate"),
            end_date: text(phase, "endDate"),
        })
        .collect();
    let platforms = list(&found, "platformCompatibility")
        .iter()
        .map(|platform| Platform {
            name: text(platform, "name").unwrap_or_default(),
            versions: list(platform, "versions")
                .iter()
                .map(super::super::difference::shown)
                .collect(),
        })
        .collect();
    Some(Lifecycle {
        bundle: bundle.name.clone(),
        version: name,
        // Dates in ISO form sort as texts.
        ends: phases.iter().filter_map(|phase| phase.end_date.clone()).max(),
        phases,
        platforms,
        source: Source::FromLifecycle,
        confidence: Confidence::Stated,
    })
}
