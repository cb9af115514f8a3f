//! Whether an object fits a schema, as OLM v0 finds out before it replaces a definition.
//!
//! It is the API server's own check without rules in CEL, list types and defaults. Words are those
//! that OLM shows. What can't be told with certainty (formats that are more than a name, patterns
//! over letters beyond ASCII) is a doubt, and neither a yes nor a no.

use std::{cell::RefCell, collections::BTreeMap, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use regex::Regex;
use serde_json::{Map, Value};
use wavelift_core::causes::cut;

use super::{
    objects::FORMATS,
    schema::{Additional, Dependency, Items, Schema},
};

/// Causes that are kept of one object.
const CAUSES_MAX: usize = 8;
/// Bytes of a value in a message.
const VALUE_MAX: usize = 100;
/// Items that are compared with each other.
const COMPARED_MAX: usize = 1_000;

/// Judges values by the parts of one schema.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Each pattern once; nothing where it means something else here than in Go, or nothing.
    patterns: RefCell<BTreeMap<String, Option<Regex>>>,
}

/// What is found of one value.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) wrong: Vec<String>,
    pub(super) doubts: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fits,
    Doubt,
    Fails,
}

/// Where a value is: empty for the object itself.
type Path<'p> = &'p str;

// === impl Seen ===

impl Seen {
    fn state(&self) -> State {
        match (self.wrong.is_empty(), self.doubts.is_empty()) {
            (false, _) => State::Fails,
            (true, false) => State::Doubt,
            (true, true) => State::Fits,
        }
    }

    fn wrong(&mut self, at: Path<'_>, text: &str) {
        push(&mut self.wrong, at, text);
    }

    fn invalid(&mut self, at: Path<'_>, value: &Value, detail: &str) {
        let shown = cut(&value.to_string(), VALUE_MAX);
        self.wrong(at, &format!("Invalid value: {shown}: {at} in body {detail}"));
    }

    fn doubt(&mut self, at: Path<'_>, text: &str) {
        push(&mut self.doubts, at, text);
    }

    fn add(&mut self, other: Self) {
        self.wrong.extend(other.wrong);
        self.wrong.truncate(CAUSES_MAX);
        self.doubts.extend(other.doubts);
        self.doubts.truncate(CAUSES_MAX);
    }
}

/// OLM begins every path with an empty name, which it shows as `[]`.
fn push(list: &mut Vec<String>, at: Path<'_>, text: &str) {
    if list.len() < CAUSES_MAX {
        let at = at.trim_start_matches('.');
        list.push(if at.is_empty() { format!("[]: {text}") } else { format!("[].{at}: {text}") });
    }
}

// === impl Judge ===

impl Judge {
    /// No deeper than the schema is, which its reader bounds.
    pub(super) fn judge(&self, schema: &Schema, at: Path<'_>, value: &Value) -> Seen {
        let mut seen = Seen::default();
        if !has_type(schema, value) {
            let (wanted, found) = (types(schema).join(","), type_name(value));
            seen.wrong(
                at,
                &format!(
                    "Invalid value: \"{found}\": {at} in body must be of type {wanted}: \"{found}\""
                ),
            );
        }
        listed(schema, at, value, &mut seen);
        if value.is_null() {
            return seen;
        }
        self.combined(schema, at, value, &mut seen);
        match value {
            Value::String(text) => self.text(schema, at, text, &mut seen),
            Value::Number(_) => number(schema, at, value, &mut seen),
            Value::Array(items) => self.items(schema, at, items, &mut seen),
            Value::Object(fields) => self.fields(schema, at, fields, &mut seen),
            Value::Null | Value::Bool(_) => {}
        }
        seen
    }

    fn combined(&self, schema: &Schema, at: Path<'_>, value: &Value, seen: &mut Seen) {
        let states = |schemas: &[Schema]| -> Vec<State> {
            schemas.iter().map(|one| self.judge(one, at, value).state()).collect()
        };
        let count = |states: &[State], wanted| states.iter().filter(|s| **s == wanted).count();
        let any = states(&schema.any_of);
        if !any.is_empty() && count(&any, State::Fits) == 0 {
            if count(&any, State::Doubt) > 0 {
                seen.doubt(at, "which of anyOf it fits");
            } else {
                seen.wrong(
                    "",
                    &format!(
                        "Invalid value: \"\": \"{at}\" must validate at least one schema (anyOf)"
                    ),
                );
                // The words of one member say more than that none fits.
                if let Some(first) = schema.any_of.first() {
                    seen.add(self.judge(first, at, value));
                }
            }
        }
        let one = states(&schema.one_of);
        match (count(&one, State::Fits), count(&one, State::Doubt)) {
            _ if one.is_empty() => {}
            (1, 0) => {}
            (0, 0) => seen.wrong("", &format!("Invalid value: \"\": \"{at}\" must validate one and only one schema (oneOf). Found none valid")),
            (0 | 1, _) => seen.doubt(at, "which of oneOf it fits"),
            (found, _) => seen.wrong("", &format!("Invalid value: \"\": \"{at}\" must validate one and only one schema (oneOf). Found {found} valid alternatives")),
        }
        for each in &schema.all_of {
            seen.add(self.judge(each, at, value));
        }
        if let Some(not) = &schema.not {
            match self.judge(not, at, value).state() {
                State::Fits => seen.wrong(
                    "",
                    &format!("Invalid value: \"\": \"{at}\" must not validate the schema (not)"),
                ),
                State::Doubt => seen.doubt(at, "whether it fits what it must not"),
                State::Fails => {}
            }
        }
        for (name, dependency) in &schema.dependencies {
            if value.get(name).is_none() {
                continue;
            }
            match dependency {
                Dependency::Fitting(schema) => seen.add(self.judge(schema, at, value)),
                Dependency::Fields(fields) => {
                    for field in fields.iter().filter(|field| value.get(field).is_none()) {
                        seen.wrong(
                            "",
                            &format!("Invalid value: \"\": \"{at}\" has a dependency on {field}"),
                        );
                    }
                }
            }
        }
    }

    fn text(&self, schema: &Schema, at: Path<'_>, text: &str, seen: &mut Seen) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let value = Value::from(text);
        if let Some(max) = schema.max_length.filter(|max| length > *max) {
            seen.wrong(at, &format!("Too long: may not be more than {max} bytes"));
        } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
            seen.invalid(at, &value, &format!("should be at least {min} chars long"));
        } else if !schema.pattern.is_empty() {
            match self.matches(&schema.pattern, text) {
                Some(true) => {}
                Some(false) => {
                    seen.invalid(at, &value, &format!("should match '{}'", schema.pattern));
                }
                None => seen.doubt(at, &format!("whether it matches '{}'", schema.pattern)),
            }
        }
        let format = known_format(schema);
        if !format.is_empty() && !is_surely(&format, text) {
            seen.doubt(at, &format!("whether it is of format {}", schema.format));
        }
    }

    /// Whether Go finds the pattern in the text. Classes as `\d` are of ASCII in Go, and of all
    /// letters here: the same for text that is all ASCII.
    fn matches(&self, pattern: &str, text: &str) -> Option<bool> {
        let mut patterns = self.patterns.borrow_mut();
        if !patterns.contains_key(pattern) {
            patterns.insert(pattern.to_owned(), Regex::new(pattern).ok());
        }
        let found = patterns.get(pattern)?.as_ref()?.is_match(text);
        (text.is_ascii() || !pattern.contains('\\')).then_some(found)
    }

    fn items(&self, schema: &Schema, at: Path<'_>, items: &[Value], seen: &mut Seen) {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let place = |index: usize| format!("{at}[{index}]");
        match &schema.items {
            Some(Items::Each(each)) => {
                for (index, item) in items.iter().enumerate() {
                    seen.add(self.judge(each, &place(index), item));
                }
            }
            // No API server takes such a definition.
            Some(Items::Places(_)) => seen.doubt(at, "whether its items fit, place by place"),
            None => {}
        }
        if let Some(min) = schema.min_items.filter(|min| length < *min) {
            seen.wrong(
                at,
                &format!("Invalid value: {length}: {at} in body should have at least {min} items"),
            );
        }
        if let Some(max) = schema.max_items.filter(|max| length > *max) {
            seen.wrong(at, &format!("Too many: {length}: must have at most {max} items"));
        }
        if schema.unique_items {
            if items.len() > COMPARED_MAX {
                seen.doubt(at, "whether its items are unique");
            } else if (1..items.len())
                .any(|i| items.iter().take(i).any(|e| Some(e) == items.get(i)))
            {
                seen.wrong(
                    at,
                    &format!("Invalid value: \"\": {at} in body shouldn't contain duplicates"),
                );
            }
        }
    }

    fn fields(&self, schema: &Schema, at: Path<'_>, fields: &Map<String, Value>, seen: &mut Seen) {
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_properties.filter(|min| count < *min) {
            seen.wrong(
                at,
                &format!(
                    "Invalid value: {count}: {at} in body should have at least {min} properties"
                ),
            );
        }
        if let Some(max) = schema.max_properties.filter(|max| count > *max) {
            seen.wrong(at, &format!("Too many: {count}: must have at most {max} items"));
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            seen.wrong(&format!("{at}.{name}"), "Required value");
        }
        if !schema.pattern_properties.is_empty() {
            // No API server takes such a definition.
            seen.doubt(at, "whether its fields fit the patterns of their names");
        }
        for (name, value) in fields {
            let below = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            match (schema.properties.get(name), &schema.additional_properties) {
                (Some(property), _) => seen.add(self.judge(property, &below, value)),
                (None, Some(Additional::Fitting(additional))) => {
                    seen.add(self.judge(additional, &below, value));
                }
                (None, Some(Additional::Allowed(false))) => {
                    seen.wrong(
                        at,
                        &format!(
                            "Invalid value: \"{name}\": {below} in body is a forbidden property"
                        ),
                    );
                }
                (None, Some(Additional::Allowed(true)) | None) => {}
            }
        }
    }
}

fn types(schema: &Schema) -> Vec<&str> {
    if schema.x_int_or_string {
        return vec!["integer", "string"];
    }
    Some(schema.type_name.as_str()).filter(|name| !name.is_empty()).into_iter().collect()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(schema: &Schema, value: &Value) -> bool {
    let types = types(schema);
    if types.is_empty() || value.is_null() && schema.nullable {
        return true;
    }
    let is = |name: &str| types.contains(&name);
    match value {
        Value::Number(number) => {
            let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            is("number") || is("integer") && is_whole
        }
        // A format hides that a list is no text.
        Value::Array(_) => is("array") || is("string") && !known_format(schema).is_empty(),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => is(type_name(value)),
    }
}

/// `enum`. A null is never in it.
fn listed(schema: &Schema, at: Path<'_>, value: &Value, seen: &mut Seen) {
    let is_same = |allowed: &Value| match (allowed.as_f64(), value.as_f64()) {
        (Some(allowed), Some(value)) => allowed.total_cmp(&value).is_eq(),
        (Some(_) | None, Some(_) | None) => allowed == value,
    };
    if schema.values.is_empty() || !value.is_null() && schema.values.iter().any(is_same) {
        return;
    }
    let shown = cut(&value.to_string(), VALUE_MAX);
    let values: Vec<String> = schema.values.iter().map(Value::to_string).collect();
    let values = cut(&values.join(", "), 2 * VALUE_MAX);
    seen.wrong(at, &format!("Unsupported value: {shown}: supported values: {values}"));
}

fn number(schema: &Schema, at: Path<'_>, value: &Value, seen: &mut Seen) {
    let Some(found) = value.as_f64() else { return };
    if let Some(max) = schema.maximum {
        match schema.exclusive_maximum {
            true if found >= max => seen.invalid(at, value, &format!("should be less than {max}")),
            false if found > max => {
                seen.invalid(at, value, &format!("should be less than or equal to {max}"));
            }
            true | false => {}
        }
    }
    if let Some(min) = schema.minimum {
        match schema.exclusive_minimum {
            true if found <= min => {
                seen.invalid(at, value, &format!("should be greater than {min}"));
            }
            false if found < min => {
                seen.invalid(at, value, &format!("should be greater than or equal to {min}"));
            }
            true | false => {}
        }
    }
    if let Some(factor) = schema.multiple_of {
        let times = found / factor;
        if factor < 1.0 || value.is_f64() {
            // Go's own rounding decides.
            seen.doubt(at, &format!("whether it is a multiple of {factor}"));
        } else if times.fract() != 0.0 {
            seen.invalid(at, value, &format!("should be a multiple of {factor}"));
        }
    }
    let is_wide = value.as_i64().is_none_or(|number| i32::try_from(number).is_err());
    if schema.type_name == "integer" && schema.format == "int32" && is_wide {
        seen.wrong("", &format!("Invalid value: \"\": Checked value must be of type integer with format int32 in {at}"));
    }
}

/// The format of a text if the API server knows it, without its dashes.
fn known_format(schema: &Schema) -> String {
    let is_text = matches!(schema.type_name.as_str(), "" | "string") && !schema.x_int_or_string;
    let format = schema.format.replace('-', "");
    if is_text && FORMATS.contains(&format.as_str()) { format } else { String::new() }
}

/// Whether a text is of a format, where that is easily said. Not so is not said.
fn is_surely(format: &str, text: &str) -> bool {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match format {
        "datetime" => is_date_time(text),
        "date" => is_date(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
        "ipv6" => text.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        "uuid" => {
            let plain = text.replace('-', "");
            plain.len() == 32 && text.len() == 36 && hex(&plain)
        }
        "hostname" | "k8sshortname" | "k8slongname" => {
            let is_part = |part: &str| {
                let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
                let bytes = part.as_bytes();
                let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                part.len() <= 63
                    && ends(bytes.first())
                    && ends(bytes.last())
                    && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
            };
            let is_long = format != "k8sshortname";
            text.len() <= 253 && (is_long || !text.contains('.')) && text.split('.').all(is_part)
        }
        _ => false,
    }
}

/// `2026-11-30`
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let number = |part: Option<&str>, length: usize| {
        part.filter(|part| part.len() == length).and_then(|part| part.parse::<u32>().ok())
    };
    let (year, month, day) =
        (number(parts.next(), 4), number(parts.next(), 2), number(parts.next(), 2));
    // What every month has.
    year.is_some()
        && month.is_some_and(|month| (1..=12).contains(&month))
        && day.is_some_and(|day| {
            (1..=28).contains(&day) || (29..=30).contains(&day) && month != Some(2)
        })
        && parts.next().is_none()
}

/// `2026-11-30T01:02:03Z`, the form that the API server itself writes.
fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once('T') else { return false };
    let Some(time) = rest.strip_suffix('Z') else { return false };
    let time = time.split_once('.').map_or(time, |(whole, part)| {
        let is_part =
            !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit());
        if is_part { whole } else { "" }
    });
    let parts: Vec<Option<u32>> = time
        .split(':')
        .map(|part| Some(part).filter(|part| part.len() == 2).and_then(|part| part.parse().ok()))
        .collect();
    let is_time = matches!(parts.as_slice(), [Some(hour), Some(minute), Some(second)]
        if *hour < 24 && *minute < 60 && *second < 60);
    is_date(date) && is_time
}
