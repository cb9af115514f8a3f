//! The objects of the cluster as the simulation reads and writes them: JSON values by kind and
//! key, with small accessors that treat what is missing as empty.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Key;
use crate::apiserver::{Batch, Changes, Gk, Store};

/// Reads and writes of one simulated component, and the changes it has not seen yet.
#[derive(Debug)]
pub(crate) struct Objects {
    store: Store,
    changes: Changes,
}

static NOTHING: Value = Value::Null;

// === impl Objects ===

impl Objects {
    pub(crate) fn new(store: &Store) -> Self {
        Self { store: store.clone(), changes: store.subscribe() }
    }

    /// The store itself, where a refusal is the caller's business.
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn get(&self, gk: &Gk, key: &Key) -> Option<Arc<Value>> {
        self.store.get(gk, scope(key), &key.name)
    }

    /// All objects of a kind in a namespace, by name.
    pub(crate) fn list(&self, gk: &Gk, namespace: &str) -> Vec<Arc<Value>> {
        self.store.list(gk, Some(namespace))
    }

    /// All objects of a kind.
    pub(crate) fn list_all(&self, gk: &Gk) -> Vec<Arc<Value>> {
        self.store.list(gk, None)
    }

    /// The keys of all objects of a kind in a namespace.
    pub(crate) fn keys(&self, gk: &Gk, namespace: &str) -> Vec<Key> {
        self.list(gk, namespace).iter().map(|object| key_of(object)).collect()
    }

    /// The namespaces that have objects of a kind.
    pub(crate) fn namespaces_with(&self, gk: &Gk) -> BTreeSet<String> {
        self.list_all(gk).iter().map(|object| key_of(object).namespace).collect()
    }

    /// Creates an object; one that is already there stays as it is.
    pub(crate) fn create(&self, gk: &Gk, object: Value) -> Option<Arc<Value>> {
        match self.store.create(gk, object) {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::debug!(%gk, %error, "the simulation could not create an object");
                None
            }
        }
    }

    /// Changes an object; nothing happens when it is gone or stays the same.
    pub(crate) fn modify(&self, gk: &Gk, key: &Key, change: impl FnOnce(&mut Value)) {
        if let Err(error) = self.store.modify(gk, scope(key), &key.name, change) {
            tracing::debug!(%gk, name = key.name, %error, "the simulation could not change an object");
        }
    }

    /// Changes an object's status.
    pub(crate) fn modify_status(&self, gk: &Gk, key: &Key, change: impl FnOnce(&mut Value)) {
        self.modify(gk, key, change);
    }

    /// Deletes an object, or marks it when something holds it.
    pub(crate) fn delete(&self, gk: &Gk, key: &Key) {
        if let Err(error) = self.store.delete(gk, scope(key), &key.name) {
            tracing::debug!(%gk, name = key.name, %error, "the simulation could not delete an object");
        }
    }

    /// What has changed since the last call.
    pub(crate) fn changes(&mut self) -> Batch {
        self.changes.now()
    }
}

fn scope(key: &Key) -> Option<&str> {
    (!key.namespace.is_empty()).then_some(key.namespace.as_str())
}

/// Namespace and name of an object.
pub(crate) fn key_of(object: &Value) -> Key {
    Key::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// What stands at a JSON pointer; null when nothing does.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&NOTHING)
}

/// The text at a JSON pointer; empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_default()
}

/// The list at a JSON pointer; empty when there is none.
pub(crate) fn array<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// Puts something at a JSON pointer, making the objects on the way. Null takes it away.
///
/// Lists on the way are not made; a pointer into one that is not there does nothing.
pub(crate) fn set(value: &mut Value, pointer: &str, new: Value) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    let mut current = value;
    for part in parent.split('/').skip(1) {
        let name = unescaped(part);
        if current.is_null() {
            *current = Value::Object(Map::new());
        }
        current = match current {
            Value::Array(items) => {
                let Some(item) = name.parse().ok().and_then(|i: usize| items.get_mut(i)) else {
                    return;
                };
                item
            }
            Value::Object(fields) => fields.entry(name).or_insert(Value::Null),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        };
    }
    if current.is_null() && !new.is_null() {
        *current = Value::Object(Map::new());
    }
    if let Value::Object(fields) = current {
        if new.is_null() {
            fields.remove(&unescaped(last));
        } else {
            fields.insert(unescaped(last), new);
        }
    }
}

fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// A time as Kubernetes writes it.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn setting_makes_what_is_missing_and_null_takes_away() {
        let mut object = json!({ "metadata": {} });
        set(&mut object, "/metadata/annotations/a~1b", json!("x"));
        set(&mut object, "/status/phase", json!("Complete"));
        assert_eq!(
            object,
            json!({
                "metadata": { "annotations": { "a/b": "x" } }, "status": { "phase": "Complete" },
            })
        );
        set(&mut object, "/status/phase", Value::Null);
        set(&mut object, "/spec/gone", Value::Null);
        assert_eq!(at(&object, "/status"), &json!({}));
    }
}
