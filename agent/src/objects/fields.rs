//! Single fields of any object.

use kube::Resource;
use serde_json::Value;

/// The name of an object, empty when it has none.
pub fn name<K: Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

/// The namespace of an object, empty when it has none.
pub fn namespace<K: Resource>(object: &K) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

/// The uid of an object, empty when it has none.
pub fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// The resource version of an object, empty when it has none.
pub fn version<K: Resource>(object: &K) -> &str {
    object.meta().resource_version.as_deref().unwrap_or_default()
}

/// The value of an annotation.
pub fn annotation<'a, K: Resource>(object: &'a K, key: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(key).map(String::as_str)
}

/// The managers that own a field of an object, by its path in `managedFields`, e.g.
/// `["f:spec", "f:source"]`.
pub fn field_managers<'a, K: Resource>(object: &'a K, path: &[&str]) -> Vec<&'a str> {
    let entries = object.meta().managed_fields.as_deref().unwrap_or_default();
    let owns = |fields: &Value| {
        let mut at = fields;
        for part in path {
            match at.get(part) {
                Some(next) => at = next,
                None => return false,
            }
        }
        true
    };
    entries
        .iter()
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| owns(&fields.0)))
        .filter_map(|entry| entry.manager.as_deref())
        .collect()
}
