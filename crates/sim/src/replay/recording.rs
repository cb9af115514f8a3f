//! Reads a recording: JSON lines of actions, remarks and events, in the order seen.

use std::collections::BTreeMap;

use serde_json::Value;

/// One line.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// Something the recorder did.
    Action { text: String, said: Value },
    /// A remark of the recorder.
    Note(String),
    /// Something that happened to an object, with the object after it.
    Event { kind: String, name: String, change: Change, object: Value, spec_written: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

/// Reads all lines and fills in what an event left out because it had not changed.
pub(super) fn read(text: &str) -> Vec<Line> {
    let mut known = BTreeMap::<(String, String), Value>::new();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let said: Value = serde_json::from_str(line).expect("a line of a recording is JSON");
        if let Some(action) = said["action"].as_str() {
            lines.push(Line::Action { text: action.to_owned(), said: said.clone() });
        } else if let Some(kind) = said["kind"].as_str() {
            let name = said["name"].as_str().unwrap_or_default().to_owned();
            let key = (kind.to_owned(), name.clone());
            let change = match said["type"].as_str() {
                Some("ADDED") => Change::Added,
                Some("DELETED") => Change::Deleted,
                _ => Change::Modified,
            };
            if change == Change::Added {
                known.remove(&key);
            }
            let spec_written = said.pointer("/object/spec").is_some_and(Value::is_object);
            let object = expanded(known.get(&key), &said["object"]);
            known.insert(key, object.clone());
            lines.push(Line::Event { kind: kind.to_owned(), name, change, object, spec_written });
        } else if let Some(note) = said["note"].as_str() {
            lines.push(Line::Note(note.to_owned()));
        }
    }
    lines
}

/// Fills in `=` from the object before.
fn expanded(before: Option<&Value>, now: &Value) -> Value {
    let Some(before) = before else { return now.clone() };
    if now.is_null() {
        return before.clone();
    }
    let mut now = now.clone();
    for section in ["metadata", "spec", "status"] {
        if now[section] == "=" {
            now[section] = before[section].clone();
        } else if let Some(fields) = now[section].as_object_mut() {
            for (field, value) in fields {
                let old = &before[section][field.as_str()];
                if *value == "=" {
                    *value = old.clone();
                } else if value.get(0).is_some_and(|first| first == "=") {
                    let mut items = old.as_array().cloned().unwrap_or_default();
                    items.extend(value.as_array().into_iter().flatten().skip(1).cloned());
                    *value = Value::Array(items);
                }
            }
        }
    }
    now
}

/// How long the recorder watched, by a remark: `watching for 20s: ...`, `after 60s not seen: ...`.
pub(super) fn watched_seconds(note: &str) -> u64 {
    let rest = note.strip_prefix("watching for ").or_else(|| note.strip_prefix("after "));
    let seconds = rest.and_then(|rest| rest.split('s').next()).and_then(|n| n.parse().ok());
    seconds.unwrap_or(0)
}
