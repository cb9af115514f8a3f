//! Judging a value by its schema, in the words of the real server.

use serde_json::Value;

use super::{At, Schema, Type, has};

/// (field, what is wrong with it).
type Causes = Vec<(String, String)>;

impl Schema {
    /// Says everything that is wrong with an object.
    pub fn validate(&self, object: &Value) -> Causes {
        let mut causes = Vec::new();
        self.judge(At::Root, object, &mut causes);
        causes
    }

    fn judge(&self, at: At<'_>, value: &Value, causes: &mut Causes) {
        if value.is_null() && self.nullable {
            return;
        }
        if let Some(expected) = self.types
            && !expected.accepts(value)
        {
            let message = format!(
                "Invalid value: \"{}\": {at} in body must be of type {}: \"{}\"",
                type_name(value),
                expected.name(),
                type_name(value),
            );
            causes.push((at.to_string(), message));
            return;
        }
        self.judge_enum(at, value, causes);
        match value {
            Value::Object(map) => {
                for name in self.limits.required.iter().filter(|name| !has(map, name)) {
                    causes.push((At::Field(&at, name).to_string(), "Required value".to_owned()));
                }
                self.judge_count(at, map.len(), ["properties", "Too many properties"], causes);
                for (key, inner) in map {
                    if let Some(schema) = self.field(key) {
                        schema.judge(At::Field(&at, key), inner, causes);
                    }
                }
            }
            Value::Array(items) => {
                self.judge_count(at, items.len(), ["items", "Too many"], causes);
                self.judge_keys(at, items, causes);
                if let Some(schema) = self.item() {
                    for (index, item) in items.iter().enumerate() {
                        schema.judge(At::Item(&at, index), item, causes);
                    }
                }
            }
            Value::String(text) => self.judge_text(at, text, causes),
            Value::Number(_) => self.judge_number(at, value, causes),
            Value::Null | Value::Bool(_) => {}
        }
        self.judge_combined(at, value, causes);
    }

    fn judge_enum(&self, at: At<'_>, value: &Value, causes: &mut Causes) {
        let allowed = &self.limits.allowed;
        if !allowed.is_empty() && !allowed.contains(value) {
            let listed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            let message =
                format!("Unsupported value: {value}: supported values: {}", listed.join(", "));
            causes.push((at.to_string(), message));
        }
    }

    fn judge_count(&self, at: At<'_>, count: usize, words: [&str; 2], causes: &mut Causes) {
        let [noun, too_many] = words;
        let limits = &self.limits;
        let (min, max) = if noun == "items" {
            (limits.min_items, limits.max_items)
        } else {
            (limits.min_properties, limits.max_properties)
        };
        if let Some(max) = max.filter(|max| count > *max) {
            let message = format!("{too_many}: {count}: must have at most {max} {noun}");
            causes.push((at.to_string(), message));
        }
        if let Some(min) = min.filter(|min| count < *min) {
            let message =
                format!("Invalid value: {count}: {at} in body should have at least {min} {noun}");
            causes.push((at.to_string(), message));
        }
    }

    fn judge_keys(&self, at: At<'_>, items: &[Value], causes: &mut Causes) {
        let identity: Vec<Value> = match self.list_type() {
            super::ListType::Atomic => return,
            super::ListType::Set => items.to_vec(),
            super::ListType::Map(keys) => items
                .iter()
                .map(|item| {
                    let keys =
                        keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                    Value::Object(keys.collect())
                })
                .collect(),
        };
        for (index, one) in identity.iter().enumerate() {
            if identity.iter().take(index).any(|earlier| earlier == one) {
                let place = At::Item(&at, index).to_string();
                causes.push((place, format!("Duplicate value: {one}")));
            }
        }
    }

    fn judge_text(&self, at: At<'_>, text: &str, causes: &mut Causes) {
        let limits = &self.limits;
        let length = text.chars().count();
        // The first that is wrong is told, as the real server does with texts.
        let wrong = if let Some(max) = limits.max_length.filter(|max| length > *max) {
            Some(format!("Too long: may not be more than {max} bytes"))
        } else if let Some(min) = limits.min_length.filter(|min| length < *min) {
            Some(format!(
                "Invalid value: {text:?}: {at} in body should be at least {min} chars long"
            ))
        } else {
            let pattern = limits.pattern.as_ref().filter(|pattern| !pattern.is_match(text));
            pattern.map(|p| format!("Invalid value: {text:?}: {at} in body should match '{p}'"))
        };
        causes.extend(wrong.map(|message| (at.to_string(), message)));
        let bad_time = limits.format.as_deref() == Some("date-time")
            && text.parse::<jiff::Timestamp>().is_err();
        if bad_time {
            let message =
                format!("Invalid value: {text:?}: {at} in body must be of type date-time");
            causes.push((at.to_string(), message));
        }
    }

    fn judge_number(&self, at: At<'_>, value: &Value, causes: &mut Causes) {
        let Some(number) = value.as_f64() else { return };
        if let Some(max) = self.limits.maximum.filter(|max| number > *max) {
            let message = format!(
                "Invalid value: {value}: {at} in body should be less than or equal to {max}"
            );
            causes.push((at.to_string(), message));
        }
        if let Some(min) = self.limits.minimum.filter(|min| number < *min) {
            let message = format!(
                "Invalid value: {value}: {at} in body should be greater than or equal to {min}"
            );
            causes.push((at.to_string(), message));
        }
    }

    fn judge_combined(&self, at: At<'_>, value: &Value, causes: &mut Causes) {
        let combined = &self.combined;
        let passes = |schema: &Self| {
            let mut inner = Vec::new();
            schema.judge(at, value, &mut inner);
            inner.is_empty()
        };
        for schema in &combined.all {
            schema.judge(at, value, causes);
        }
        let mut refuse = |what: &str| {
            let message = format!("Invalid value: {at} in body must validate {what}");
            causes.push((at.to_string(), message));
        };
        if !combined.any.is_empty() && !combined.any.iter().any(passes) {
            refuse("at least one schema (anyOf)");
        }
        if !combined.one.is_empty() && combined.one.iter().filter(|s| passes(s)).count() != 1 {
            refuse("one and only one schema (oneOf)");
        }
        if combined.not.as_deref().is_some_and(passes) {
            refuse("nothing of the schema (not)");
        }
    }
}

impl Type {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Integer => is_integer(value),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::IntOrString => value.is_string() || is_integer(value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer or string",
        }
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
