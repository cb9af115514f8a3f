//! JSON text that is kept as it was written, because most readers never look at it.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::{Number, Value};

/// One JSON value as text without white space around its parts. It is known to be JSON.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json(Arc<str>);

/// How large a JSON text is, told without parsing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// How deep objects and lists are nested.
    pub(crate) depth: usize,
    /// How many values there are, at most.
    pub(crate) nodes: usize,
}

// === impl Json ===

impl Json {
    /// Takes text that has been parsed before.
    pub(crate) fn known(text: &str) -> Self {
        Self(Arc::from(compact(text)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads it as what the caller needs.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The whole value. Fails only where it is nested deeper than a parser follows.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        self.read()
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(Arc::from(value.to_string()))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text without white space outside of strings.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut kept_to, mut is_string, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if is_string {
            is_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else if byte == b'"' {
            is_string = true;
        } else if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            out.push_str(text.get(kept_to..at).unwrap_or_default());
            kept_to = at + 1;
        }
    }
    out.push_str(text.get(kept_to..).unwrap_or_default());
    out
}

/// Measures JSON text without recursion. Text that is no JSON gives some size all the same.
pub(crate) fn size(text: impl AsRef<[u8]>) -> Size {
    let (mut depth, mut deepest, mut nodes) = (0_usize, 0_usize, 1_usize);
    let bytes = text.as_ref();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                nodes += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => nodes += 1,
            b'"' => at = end_of_string(bytes, at + 1),
            _ => {}
        }
        at += 1;
    }
    Size { depth: deepest, nodes }
}

/// Where a string ends whose text begins at `from`: at its quotation mark.
fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return bytes.len(),
            Some(found) if rest.get(found) == Some(&b'"') => return at + found,
            Some(found) => at += found + 2,
        }
    }
}

/// Writes numbers in one way, the one of OLM's own tools, which read all numbers as 64-bit floats:
/// `5.0` is `5`. So the same property is equal wherever it was read.
pub(crate) fn normalise(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(normal) = normal(number) {
                *number = normal;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(fields) => fields.values_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn normal(number: &Number) -> Option<Number> {
    /// Up to here floats hold every whole number.
    const EXACT: u64 = 1 << 53;
    /// From here on, a whole number may not fit an `i64`.
    const WHOLE: f64 = 9.0e18;
    if number.as_i64().is_some_and(|n| n.unsigned_abs() <= EXACT) {
        return None;
    }
    let float = number.as_f64()?;
    if float.fract() == 0.0 && float.abs() < WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within an i64")]
        return Some(Number::from(float as i64));
    }
    Number::from_f64(float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_but_not_in_strings() {
        let json = Json::known("{ \"a b\" : [ 1,\n\t\" \\\" x \\\\\" ] , \"ü \": null }");
        assert_eq!(json.as_str(), r#"{"a b":[1," \" x \\"],"ü ":null}"#);
        assert_eq!(json.value().unwrap()["a b"][0], 1);
    }

    #[test]
    fn size_is_told_without_recursion() {
        assert_eq!(size("1"), Size { depth: 0, nodes: 1 });
        assert_eq!(size(r#"{"a":[1,{"[[[":"\"]"}],"b":2}"#), Size { depth: 3, nodes: 6 });
        assert_eq!(size("[".repeat(1_000_000)).depth, 1_000_000);
        assert_eq!(size("\"never ends").depth, 0);
        assert_eq!(size("\"ends in \\").depth, 0);
    }

    #[test]
    fn numbers_have_one_form() {
        let mut value = serde_json::from_str(
            r#"[5.0, 4.18, 1e3, 9007199254740993, -0.5, 1e300, {"a": [2.0]}, 18446744073709551615]"#,
        )
        .unwrap();
        normalise(&mut value);
        assert_eq!(
            value.to_string(),
            r#"[5,4.18,1000,9007199254740992,-0.5,1e+300,{"a":[2]},1.8446744073709552e+19]"#
        );
    }
}
