//! Tables: what `kubectl get` prints, made by the server from a kind's columns.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    jsonpath,
    kind::{Column, Kind},
    kinds::gk,
    meta,
};

/// How much of each object a row carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

/// The definitions of a kind's columns.
fn definitions(kind: &Kind) -> Vec<Value> {
    let name = json!({"name": "Name", "type": "string", "format": "name",
        "priority": i64::from(names_last(kind)),
        "description": "Name must be unique within a namespace."});
    let others = kind.columns.iter().map(|column| {
        // Dates are turned into ages here, so that the client prints them as they are.
        let shown = if column.kind == "date" { "string" } else { &column.kind };
        json!({"name": column.name, "type": shown, "format": "", "priority": column.priority,
            "description": column.description})
    });
    with_name(kind, name, others)
}

/// The names of events say nothing: they come last, and only with `-o wide`.
fn names_last(kind: &Kind) -> bool {
    kind.gk == gk::EVENT
}

fn with_name(kind: &Kind, name: Value, others: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut all = vec![name];
    all.extend(others);
    if names_last(kind) {
        all.rotate_left(1);
    }
    all
}

/// A table of some objects.
pub(super) fn table<'a>(
    kind: &Kind,
    objects: impl Iterator<Item = &'a Value>,
    include: Include,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = objects
        .map(|object| {
            let others = kind.columns.iter().map(|column| cell(column, object, now));
            let cells = with_name(kind, json!(meta::name(object)), others);
            let mut row = json!({"cells": cells});
            match include {
                Include::None => {}
                Include::Metadata => row["object"] = partial(object),
                Include::Object => row["object"] = object.clone(),
            }
            row
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": definitions(kind), "rows": rows})
}

/// Only the metadata of an object.
pub(super) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata")})
}

/// One cell. Beside JSONPath, built-in columns use `a|b` (the first there is), `count:` (how many),
/// `lower:` and `{path:default}` templates.
fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let path: &str = &column.path;
    if let Some(path) = path.strip_prefix("count:") {
        return json!(jsonpath::first(path, object).map_or(0, count));
    }
    if let Some(path) = path.strip_prefix("lower:") {
        return json!(template(path, object).to_lowercase());
    }
    if path.starts_with('{') {
        return json!(template(path, object));
    }
    let found = path
        .split('|')
        .filter_map(|path| jsonpath::first(path, object))
        .find(|value| !value.is_null());
    let Some(found) = found else { return Value::Null };
    match &*column.kind {
        "date" => json!(age(found, now)),
        "string" => json!(text(found)),
        _ => found.clone(),
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn template(path: &str, object: &Value) -> String {
    let mut shown = String::new();
    for part in path.split_inclusive(['{', '}']) {
        if let Some(inner) = part.strip_suffix('}') {
            let (path, default) = inner.rsplit_once(':').unwrap_or((inner, ""));
            let found = jsonpath::first(path, object);
            shown.push_str(&found.map_or_else(|| default.to_owned(), text));
        } else {
            shown.push_str(part.trim_end_matches('{'));
        }
    }
    shown
}

fn age(value: &Value, now: Timestamp) -> String {
    let Some(at) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else {
        return "<unknown>".to_owned();
    };
    human_duration(now.duration_since(at).as_secs())
}

/// A duration as kubectl shows ages: two units at most, the smaller one only while it matters.
fn human_duration(seconds: i64) -> String {
    let two = |big: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..=119 => format!("{seconds}s"),
        120..=599 => two(minutes, 'm', seconds % 60, 's'),
        600..=10_799 => format!("{minutes}m"),
        10_800..=28_799 => two(hours, 'h', minutes % 60, 'm'),
        28_800..=172_799 => format!("{hours}h"),
        172_800..=691_199 => two(days, 'd', hours % 24, 'h'),
        691_200..=63_071_999 => format!("{days}d"),
        63_072_000..=252_287_999 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::kinds::{Kinds, gk};

    #[test]
    fn ages_read_like_those_of_kubectl() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (30_000, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (700_000, "8d"),
            (63_072_000, "2y"),
            (70_000_000, "2y80d"),
        ] {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn built_in_columns_count_choose_and_compose() {
        let kinds = Kinds::built_in();
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let event = json!({
            "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00Z", "lastTimestamp": null,
            "type": "Normal", "reason": "Started", "message": "go",
            "involvedObject": {"kind": "Pod", "name": "p"},
        });
        let table = table(kinds.get(&gk::EVENT).unwrap(), [&event].into_iter(), Include::None, now);
        assert_eq!(
            table["rows"][0]["cells"],
            json!(["10m", "Normal", "Started", "pod/p", "go", "e"])
        );

        let deployment = json!({"metadata": {"name": "d", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"replicas": 2}, "status": {"updatedReplicas": 1}});
        let kind = kinds.get(&gk::DEPLOYMENT).unwrap();
        let table = super::table(kind, [&deployment].into_iter(), Include::None, now);
        assert_eq!(table["rows"][0]["cells"], json!(["d", "0/2", 1, null, "10m"]));
    }
}
