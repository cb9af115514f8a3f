//! Label and field selectors.

use serde_json::Value;

use super::{error::ApiError, kind::Kind, meta};

/// What a list or a watch asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

#[derive(Clone, Debug)]
struct FieldTerm {
    pointer: String,
    value: String,
    wanted: bool,
}

impl Selector {
    pub(super) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, ApiError> {
        let labels = split_outside_parentheses(labels)
            .into_iter()
            .map(|term| requirement(term.trim()))
            .collect::<Result<_, _>>()?;
        let terms = fields.split(',').map(str::trim).filter(|term| !term.is_empty());
        let fields = terms.map(|term| field_term(kind, term)).collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// A selector for one name, as a watch of a single object is.
    pub(super) fn and_name(mut self, name: &str) -> Self {
        let pointer = "/metadata/name".to_owned();
        self.fields.push(FieldTerm { pointer, value: name.to_owned(), wanted: true });
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let field = |term: &FieldTerm| {
            let found = match object.pointer(&term.pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            (found == term.value) == term.wanted
        };
        let label = |wanted: &Requirement| {
            let found = meta::label(object, &wanted.key);
            match &wanted.test {
                Test::In(values) => found.is_some_and(|f| values.iter().any(|v| v == f)),
                Test::NotIn(values) => found.is_none_or(|f| values.iter().all(|v| v != f)),
                Test::Exists => found.is_some(),
                Test::Absent => found.is_none(),
            }
        };
        self.fields.iter().all(field) && self.labels.iter().all(label)
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .filter(|term| !term.trim().is_empty())
    .collect()
}

fn requirement(term: &str) -> Result<Requirement, ApiError> {
    let of = |key: &str, test: Test| {
        let key = key.trim().to_owned();
        if key.is_empty() || key.contains([' ', '(', ')', '=', '!']) {
            return Err(ApiError::bad_request(format!("unable to parse requirement: {term:?}")));
        }
        Ok(Requirement { key, test })
    };
    let values = |list: &str| {
        let inner = list.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        inner
            .map(|inner| inner.split(',').map(|value| value.trim().to_owned()).collect::<Vec<_>>())
            .ok_or_else(|| ApiError::bad_request(format!("unable to parse requirement: {term:?}")))
    };
    if let Some((key, list)) = term.split_once(" notin ") {
        return of(key, Test::NotIn(values(list)?));
    }
    if let Some((key, list)) = term.split_once(" in ") {
        return of(key, Test::In(values(list)?));
    }
    let single = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = term.split_once("!=") {
        return of(key, Test::NotIn(single(value)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return of(key, Test::In(single(value)));
    }
    match term.strip_prefix('!') {
        Some(key) => of(key, Test::Absent),
        None => of(term, Test::Exists),
    }
}

fn field_term(kind: &Kind, term: &str) -> Result<FieldTerm, ApiError> {
    let (path, value, wanted) = if let Some((path, value)) = term.split_once("!=") {
        (path, value, false)
    } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (path, value, true)
    } else {
        return Err(ApiError::bad_request(format!("invalid field selector: {term:?}")));
    };
    let path = match path.split_once("regarding.") {
        Some(("", rest)) if kind.gk.kind() == "Event" => format!("involvedObject.{rest}"),
        Some(_) | None => path.to_owned(),
    };
    let is_known = matches!(path.as_str(), "metadata.name" | "metadata.namespace")
        || kind.selectable.iter().any(|known| *known == path);
    if !is_known {
        return Err(ApiError::bad_request(format!("field label not supported: {path}")));
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    Ok(FieldTerm { pointer, value: value.to_owned(), wanted })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::apiserver::kinds::{Kinds, gk};

    #[track_caller]
    fn check(labels: &str, fields: &str, expected: bool) {
        let object = json!({
            "metadata": {"name": "a", "labels": {"env": "prod", "region": "eu"}},
            "involvedObject": {"name": "x"}, "type": "Warning",
        });
        let kind = Arc::clone(Kinds::built_in().get(&gk::EVENT).unwrap());
        let selector = Selector::parse(&kind, labels, fields).unwrap();
        assert_eq!(selector.matches(&object), expected, "{labels:?} {fields:?}");
    }

    #[test]
    fn labels_are_selected_by_equality_and_by_set() {
        check("", "", true);
        check("env=prod,region!=us", "", true);
        check("env in (dev, prod),region notin (us)", "", true);
        check("env in (dev,test)", "", false);
        check("missing notin (x)", "", true);
        check("env,!missing", "", true);
        check("missing", "", false);
        check("!env", "", false);
        check("env==prod", "", true);
    }

    #[test]
    fn fields_are_selected_where_the_kind_allows_it() {
        check("", "metadata.name=a,type!=Normal", true);
        check("", "involvedObject.name=x", true);
        check("", "regarding.name=y", false);
        let kind = Arc::clone(Kinds::built_in().get(&gk::CONFIG_MAP).unwrap());
        let refused = Selector::parse(&kind, "", "data.x=1").unwrap_err();
        assert_eq!(refused.code, 400);
        assert_eq!(Selector::parse(&kind, "a b c", "").unwrap_err().code, 400);
    }
}
