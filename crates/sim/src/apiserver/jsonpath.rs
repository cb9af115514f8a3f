//! The part of JSONPath that printer columns use: fields, indexes, `[*]` and equality filters.

use std::borrow::Cow;

use serde_json::Value;

#[derive(Debug)]
enum Step {
    Field(String),
    Index(usize),
    All,
    Filter(Vec<String>, String),
}

/// The first value a path leads to.
pub(super) fn first<'a>(path: &str, object: &'a Value) -> Option<&'a Value> {
    let mut found = vec![object];
    for step in steps(path) {
        found = found.into_iter().flat_map(|value| step.follow(value)).collect();
    }
    found.into_iter().next()
}

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => value.get(index).into_iter().collect(),
            Self::All => value.as_array().into_iter().flatten().collect(),
            Self::Filter(path, wanted) => {
                let is_wanted = |item: &&Value| {
                    let found = path.iter().try_fold(*item, |value, name| value.get(name));
                    found.is_some_and(|found| shown(found) == *wanted)
                };
                value.as_array().into_iter().flatten().filter(is_wanted).collect()
            }
        }
    }
}

/// A value as a filter compares it: texts without their quotes.
fn shown(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.trim();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (bracket, after) = inner.split_once(']').unwrap_or((inner, ""));
            steps.extend(bracketed(bracket));
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (field, after) = plain_field(name);
            if !field.is_empty() {
                steps.push(Step::Field(field));
            }
            if after.len() == rest.len() {
                break;
            }
            rest = after;
        }
    }
    steps
}

/// A field up to the next unescaped `.` or `[`.
fn plain_field(text: &str) -> (String, &str) {
    let mut field = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => field.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (field, text.get(index..).unwrap_or_default()),
            plain => field.push(plain),
        }
    }
    (field, "")
}

fn bracketed(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        let (left, right) = filter.split_once("==")?;
        let path = left.trim().trim_start_matches('@').split('.').filter(|name| !name.is_empty());
        return Some(Step::Filter(path.map(str::to_owned).collect(), unquoted(right)));
    }
    match text.parse() {
        Ok(index) => Some(Step::Index(index)),
        Err(_) => Some(Step::Field(unquoted(text))),
    }
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn printer_columns_find_their_cells() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "dotted"}},
            "spec": {"waves": [{"name": "one"}, {"name": "two"}]},
            "status": {"conditions": [
                {"type": "Ready", "status": "False"}, {"type": "Done", "status": "True"},
            ]},
        });
        for (path, expected) in [
            (".spec.waves[1].name", Some(json!("two"))),
            (".spec.waves[*].name", Some(json!("one"))),
            (r#".status.conditions[?(@.type=="Done")].status"#, Some(json!("True"))),
            (".status.conditions[?(@.type=='Ready')].status", Some(json!("False"))),
            (r#".status.conditions[?(@.type=="Gone")].status"#, None),
            (r".metadata.labels.a\.b/c", Some(json!("dotted"))),
            (".metadata.labels['a.b/c']", Some(json!("dotted"))),
            (".spec.nothing", None),
        ] {
            assert_eq!(first(path, &object).cloned(), expected, "{path}");
        }
    }
}
