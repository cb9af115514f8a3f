//! Reading and writing `metadata` of an object kept as a JSON value.

use serde_json::{Map, Value, json};

/// A text under `metadata`, empty when absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// The name.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// The namespace, empty for cluster-scoped objects.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// The uid.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// The resourceVersion as a number; 0 when there is none.
pub fn resource_version(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or(0)
}

/// The generation; 0 when there is none.
pub fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Whether someone asked for the object's deletion.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The uids of the owners.
pub fn owner_uids(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|owner| owner.get("uid")?.as_str()).collect()
}

/// A label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// The object's fields, made an object first if it is something else.
pub(super) fn fields_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("made an object on the line above")
}

/// `metadata` for writing, created when absent.
pub(super) fn of_mut(object: &mut Value) -> &mut Map<String, Value> {
    fields_mut(fields_mut(object).entry("metadata").or_insert_with(|| json!({})))
}

/// Sets a field under `metadata`.
pub(super) fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    of_mut(object).insert(field.to_owned(), value.into());
}

/// Takes a field from another object's metadata; absent there means absent here.
pub(super) fn copy(from: &Value, into: &mut Value, field: &str) {
    match from.get("metadata").and_then(|m| m.get(field)) {
        Some(value) => set(into, field, value.clone()),
        None => {
            of_mut(into).remove(field);
        }
    }
}

/// Sets or removes a top-level field.
pub(super) fn put(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields_mut(object).insert(field.to_owned(), value);
        }
        None => {
            fields_mut(object).remove(field);
        }
    }
}
