//! Alert rules that a version brings, and those among them that speak up before an upgrade.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Confidence, Source, bundle::Content, difference::ObjectChange};

/// The label that makes an alert a warning before upgrades.
const PRECHECK: &str = "openShiftUpdatePrecheck";

/// An alert rule that changes, or one that warns before upgrades.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// The alert's name.
    pub alert: String,
    /// The PrometheusRule object that holds it.
    pub object: String,
    /// What became of it; absent if it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ObjectChange>,
    /// Whether the author wants it looked at before an upgrade.
    pub is_precheck: bool,
    /// When it fires, in PromQL.
    pub expression: String,
    /// Its severity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// What it means, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What to do.
    #[serde(rename = "runbookURL", default, skip_serializing_if = "Option::is_none")]
    pub runbook_url: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// Object, alert, and which one of that name.
type Key<'a> = (&'a str, &'a str, usize);

struct Rule<'a> {
    rule: &'a Value,
    is_precheck: bool,
}

pub(super) fn compare(old: &Content<'_>, new: &Content<'_>) -> Vec<Alert> {
    let (olds, news) = (of_bundle(old), of_bundle(new));
    let mut alerts = Vec::new();
    for (key, rule) in &news {
        let change = match olds.get(key) {
            None => Some(ObjectChange::Added),
            Some(old) if old.rule != rule.rule => Some(ObjectChange::Changed),
            Some(_) => None,
        };
        if change.is_some() || rule.is_precheck {
            alerts.push(alert(key, rule, change));
        }
    }
    let gone = olds.iter().filter(|(key, _)| !news.contains_key(*key));
    alerts.extend(gone.map(|(key, rule)| alert(key, rule, Some(ObjectChange::Removed))));
    alerts.sort_by_key(|alert| !alert.is_precheck);
    alerts
}

fn of_bundle<'a>(content: &'a Content<'_>) -> BTreeMap<Key<'a>, Rule<'a>> {
    let mut rules = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let objects = content.objects.iter().map(|object| &**object);
    for object in objects.filter(|object| object["kind"] == "PrometheusRule") {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let has_label = |labels: Option<&Value>| {
            labels.and_then(|labels| labels.get(PRECHECK)).is_some_and(|value| {
                value.as_bool().unwrap_or_else(|| value.as_str() == Some("true"))
            })
        };
        let is_whole = has_label(object.pointer("/metadata/labels"));
        let groups = object.pointer("/spec/groups").and_then(Value::as_array);
        let of_groups = groups.into_iter().flatten().filter_map(|group| group["rules"].as_array());
        for rule in of_groups.flatten() {
            let Some(alert) = rule["alert"].as_str() else { continue };
            let same = counts.entry((name, alert)).or_default();
            let is_precheck = is_whole || has_label(rule.get("labels"));
            rules.insert((name, alert, *same), Rule { rule, is_precheck });
            *same += 1;
        }
    }
    rules
}

fn alert(key: &Key<'_>, rule: &Rule<'_>, change: Option<ObjectChange>) -> Alert {
    let Rule { rule, is_precheck } = rule;
    let text = |pointer: &str| rule.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Alert {
        alert: key.1.to_owned(),
        object: key.0.to_owned(),
        change,
        is_precheck: *is_precheck,
        expression: rule.get("expr").map(super::difference::shown).unwrap_or_default(),
        severity: text("/labels/severity"),
        summary: text("/annotations/summary").or_else(|| text("/annotations/message")),
        runbook_url: text("/annotations/runbook_url"),
        source: Source::FromManifests,
        confidence: Confidence::Certain,
    }
}
