//! Where two values differ, field by field.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Differences of one pair of values; what is more is one last difference of the whole.
const DIFFERENCES_MAX: usize = 500;
/// Levels that are looked into; what is deeper is compared as a whole.
const DEPTH_MAX: usize = 64;
/// Characters of a value that are shown.
const TEXT_MAX: usize = 400;

/// What became of an object.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum ObjectChange {
    /// The new version brings it.
    Added,
    /// The new version does without it.
    Removed,
    /// It has another name now.
    Renamed,
    /// It is another.
    Changed,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The path of the field. Items of a list that have names are called by them.
    pub field: String,
    /// The value before: texts as they are, else JSON, cut if long. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The value after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// All differences, by field.
pub(super) fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(old), Some(new), 0, &mut found);
    found
}

fn compare(
    path: String,
    old: Option<&Value>,
    new: Option<&Value>,
    depth: usize,
    found: &mut Vec<Difference>,
) {
    if old == new || found.len() > DIFFERENCES_MAX {
        return;
    }
    if found.len() == DIFFERENCES_MAX {
        return found.push(Difference { field: "and more".to_owned(), old: None, new: None });
    }
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) if depth < DEPTH_MAX => {
            let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
            fields.sort_unstable();
            fields.dedup();
            for field in fields {
                compare(joined(&path, field), old.get(field), new.get(field), depth + 1, found);
            }
        }
        (Some(Value::Array(olds)), Some(Value::Array(news))) if depth < DEPTH_MAX => {
            let Some((olds, news)) = named(olds).zip(named(news)) else {
                return whole(path, old, new, found);
            };
            let mut names: Vec<&&str> = olds.keys().chain(news.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let (old, new) = (olds.get(name).copied(), news.get(name).copied());
                compare(format!("{path}[{name}]"), old, new, depth + 1, found);
            }
        }
        _ => whole(path, old, new, found),
    }
}

fn whole(path: String, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Difference>) {
    found.push(Difference { field: path, old: old.map(shown), new: new.map(shown) });
}

fn joined(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// The items by name, if each has one of its own.
fn named(items: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let mut by_name = BTreeMap::new();
    for item in items {
        by_name.insert(item.get("name")?.as_str()?, item);
    }
    (by_name.len() == items.len()).then_some(by_name)
}

/// A value for people, cut if long.
pub(super) fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(TEXT_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
