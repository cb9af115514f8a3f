//! Aggregated APIs that the operator serves itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Confidence, Source,
    bundle::Bundle,
    difference::{Difference, ObjectChange, differences},
};

/// An aggregated API that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiService {
    /// `Kind.version.group`.
    pub name: String,
    /// What became of it.
    pub change: ObjectChange,
    /// What changes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

pub(super) fn compare(old: &Bundle<'_>, new: &Bundle<'_>) -> Vec<ApiService> {
    if !old.is_described() || !new.is_described() {
        return Vec::new();
    }
    let (olds, news) = (owned(old), owned(new));
    let service = |name: &str, change, differences, source| ApiService {
        name: name.to_owned(),
        change,
        differences,
        source,
        confidence: Confidence::Certain,
    };
    let mut changes = Vec::new();
    for (name, (new, source)) in &news {
        match olds.get(name) {
            None => changes.push(service(name, ObjectChange::Added, Vec::new(), *source)),
            Some((old, _)) => {
                let mut differences = differences(old, new);
                differences.retain(|difference| matters(&difference.field));
                if !differences.is_empty() {
                    changes.push(service(name, ObjectChange::Changed, differences, *source));
                }
            }
        }
    }
    let gone = olds.iter().filter(|(name, _)| !news.contains_key(*name));
    changes.extend(gone.map(|(name, (_, s))| service(name, ObjectChange::Removed, Vec::new(), *s)));
    changes
}

/// Descriptions for consoles do not.
fn matters(field: &str) -> bool {
    ["deploymentName", "containerPort"].contains(&field)
}

fn owned<'a>(bundle: &'a Bundle<'_>) -> BTreeMap<String, (&'a Value, Source)> {
    let owned =
        bundle.listed("/spec/apiservicedefinitions/owned", "apiServiceDefinitions", "owned");
    let named = owned.into_iter().map(|(value, source)| {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        (format!("{}.{}.{}", text("kind"), text("version"), text("group")), (value, source))
    });
    named.collect()
}
