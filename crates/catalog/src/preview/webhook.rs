//! Webhooks that OLM sets up from the CSV.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Confidence, Importance, Source,
    bundle::Content,
    difference::{Difference, ObjectChange, differences},
};

/// A webhook that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What became of it.
    pub change: ObjectChange,
    /// `Fail`: requests are refused while it does not answer. As it is now, or was, if removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// Which requests it sees, one line per rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The CRDs that it converts.
    #[serde(rename = "conversionCRDs", default, skip_serializing_if = "Vec::is_empty")]
    pub conversion_crds: Vec<String>,
    /// What changes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

// === impl Webhook ===

impl Webhook {
    /// Whether it converts objects between versions.
    pub fn is_conversion(&self) -> bool {
        self.kind == "ConversionWebhook"
    }

    /// How much it matters. Objects of a CRD can't be read while its conversion does not answer.
    pub fn importance(&self) -> Importance {
        let is_strict = self.failure_policy.as_deref() == Some("Fail");
        match self.change {
            _ if self.is_conversion() => Importance::High,
            ObjectChange::Removed => Importance::Low,
            ObjectChange::Added if !is_strict => Importance::Low,
            ObjectChange::Added | ObjectChange::Renamed | ObjectChange::Changed => {
                Importance::Medium
            }
        }
    }
}

/// Type, name, and which one of that name.
type Key<'a> = (&'a str, &'a str, usize);

pub(super) fn compare(old: &Content<'_>, new: &Content<'_>) -> Vec<Webhook> {
    let (olds, news) = (of_csv(&old.csv), of_csv(&new.csv));
    let mut changes = Vec::new();
    for (key, new) in &news {
        match olds.get(key) {
            None => changes.push(webhook(key, ObjectChange::Added, new)),
            Some(old) if old != new => {
                let mut changed = webhook(key, ObjectChange::Changed, new);
                changed.differences = differences(old, new);
                changes.push(changed);
            }
            Some(_) => {}
        }
    }
    let gone = olds.iter().filter(|(key, _)| !news.contains_key(*key));
    changes.extend(gone.map(|(key, old)| webhook(key, ObjectChange::Removed, old)));
    changes
}

fn of_csv(csv: &Value) -> BTreeMap<Key<'_>, &Value> {
    let list = csv.pointer("/spec/webhookdefinitions").and_then(Value::as_array);
    let mut webhooks = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for webhook in list.into_iter().flatten() {
        let text = |field: &str| webhook.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("type"), text("generateName"));
        let same = counts.entry((kind, name)).or_default();
        webhooks.insert((kind, name, *same), webhook);
        *same += 1;
    }
    webhooks
}

fn webhook(key: &Key<'_>, change: ObjectChange, value: &Value) -> Webhook {
    let list = |field: &str| value.get(field).and_then(Value::as_array).into_iter().flatten();
    let crds = list("conversionCRDs").filter_map(Value::as_str);
    Webhook {
        name: key.1.to_owned(),
        kind: key.0.to_owned(),
        change,
        failure_policy: value.get("failurePolicy").and_then(Value::as_str).map(str::to_owned),
        rules: list("rules").map(rule).collect(),
        conversion_crds: crds.map(str::to_owned).collect(),
        differences: Vec::new(),
        source: Source::FromManifests,
        confidence: Confidence::Certain,
    }
}

/// One rule in a line, e.g. `CREATE, UPDATE pods in core/v1 (Namespaced)`.
fn rule(rule: &Value) -> String {
    let texts = |field: &str| -> Vec<&str> {
        let list = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str)
            .map(|text| if text.is_empty() { "core" } else { text })
            .collect()
    };
    let scope = rule.get("scope").and_then(Value::as_str).filter(|scope| *scope != "*");
    format!(
        "{} {} in {}/{}{}",
        texts("operations").join(", "),
        texts("resources").join(", "),
        texts("apiGroups").join(", "),
        texts("apiVersions").join(", "),
        scope.map_or_else(String::new, |scope| format!(" ({scope})")),
    )
}
