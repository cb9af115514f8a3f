//! JSON with sorted keys and no spaces, so that equal graphs are equal bytes.
//!
//! Sorted here and not left to `serde_json::Value`, whose maps keep insertion order as soon as any
//! crate of the build asks for that.

use serde_json::Value;

use super::Graph;

pub(super) fn to_vec(graph: &Graph) -> Vec<u8> {
    let value = serde_json::to_value(graph)
        .expect("a graph has only string keys and JSON values, so it always serialises");
    let mut out = Vec::new();
    write(&value, &mut out);
    out
}

/// Writes any value in the canonical form.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            out.push(b'{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                scalar(&Value::String(key.clone()), out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(value, out),
    }
}

fn scalar(value: &Value, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("writing a scalar to memory cannot fail");
}
