//! Deleting objects: finalizers, what they own, whole namespaces and kinds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Key, Objects, State, Store};
use crate::apiserver::{
    error::{ApiError, Reason},
    kind::{Gk, Kind},
    kinds::gk,
    meta,
};

/// What must hold for a delete to be carried out.
#[derive(Clone, Debug, Default)]
pub struct Precondition {
    /// The uid of the object meant.
    pub uid: Option<String>,
    /// Its state.
    pub resource_version: Option<String>,
}

/// What becomes of the objects that name the deleted one as their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted (foreground deletion too: here both are done when the call returns).
    #[default]
    Delete,
    /// They stay and lose the reference.
    Orphan,
}

/// What became of an object that was to be deleted.
#[derive(Clone, Debug)]
pub(in crate::apiserver) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Value>),
    /// It waits for its finalizers.
    Waits(Arc<Value>),
}

impl Store {
    /// Deletes an object, or marks it when it has finalizers; answers its last state.
    pub fn delete(
        &self,
        gk: &Gk,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Arc<Value>, ApiError> {
        let key = Key::new(namespace, name);
        let deleted = self.delete_if(gk, &key, &Precondition::default(), Propagation::default())?;
        Ok(match deleted {
            Deleted::Gone(object) | Deleted::Waits(object) => object,
        })
    }

    pub(in crate::apiserver) fn delete_if(
        &self,
        gk: &Gk,
        key: &Key,
        precondition: &Precondition,
        propagation: Propagation,
    ) -> Result<Deleted, ApiError> {
        let now = self.now();
        let mut state = self.shared.state.write();
        let kind = state.kind(gk)?;
        let live = state
            .find(gk, key)
            .cloned()
            .ok_or_else(|| ApiError::not_found(&kind.plural, gk.group(), &key.name))?;
        precondition.check(&kind, &live)?;
        if *gk == gk::NAMESPACE && matches!(key.name.as_str(), "default" | "kube-system") {
            let message = format!(
                "namespaces \"{}\" is forbidden: this namespace may not be deleted",
                key.name
            );
            return Err(ApiError::new(Reason::Forbidden, message));
        }
        if propagation == Propagation::Orphan {
            state.orphan(meta::uid(&live));
        }
        let deleted = state.delete(gk, key, &now);
        let revision = state.revision;
        drop(state);
        self.announce(revision);
        deleted.ok_or_else(|| ApiError::not_found(&kind.plural, gk.group(), &key.name))
    }
}

impl Precondition {
    fn check(&self, kind: &Kind, live: &Value) -> Result<(), ApiError> {
        let differs = |wanted: &Option<String>, found: &str, what: &str, since: &str| {
            let wanted = wanted.as_deref().filter(|wanted| *wanted != found)?;
            Some(format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record \
                 ({found}). The object might have been {since}"
            ))
        };
        let uid = differs(&self.uid, meta::uid(live), "UID", "deleted and then recreated");
        let version = meta::text(live, "resourceVersion");
        let version = differs(&self.resource_version, version, "ResourceVersion", "modified");
        uid.or(version).map_or(Ok(()), |why| {
            Err(ApiError::conflict(kind.gk.kind(), kind.gk.group(), meta::name(live), &why))
        })
    }
}

// === impl State ===

impl State {
    /// A namespaced object needs a namespace that is there and stays.
    pub(super) fn check_namespace(&self, kind: &Kind, namespace: &str) -> Result<(), ApiError> {
        if namespace.is_empty() {
            return Err(ApiError::bad_request("an empty namespace may not be set during creation"));
        }
        let Some(found) = self.find(&gk::NAMESPACE, &Key::new(None, namespace)) else {
            return Err(ApiError::not_found("namespaces", "", namespace));
        };
        if meta::is_deleting(found) {
            let resource = &kind.plural;
            return Err(ApiError::new(
                Reason::Forbidden,
                format!(
                    "{resource} is forbidden: unable to create new content in namespace {namespace} \
                 because it is being terminated"
                ),
            ));
        }
        Ok(())
    }

    /// Removes an object marked for deletion once nothing holds it any more.
    pub(super) fn finish_deletion(&mut self, gk: &Gk, key: &Key, now: &str) {
        let is_free = self
            .find(gk, key)
            .is_some_and(|object| meta::is_deleting(object) && !self.is_held(gk, key, object));
        if is_free {
            self.remove(gk, key, now);
        }
    }

    fn delete(&mut self, gk: &Gk, key: &Key, now: &str) -> Option<Deleted> {
        let live = Arc::clone(self.find(gk, key)?);
        if !self.is_held(gk, key, &live) {
            return self.remove(gk, key, now).map(Deleted::Gone);
        }
        if !meta::is_deleting(&live) {
            let mut next = Value::clone(&live);
            meta::set(&mut next, "deletionTimestamp", now);
            meta::set(&mut next, "deletionGracePeriodSeconds", 0);
            if meta::generation(&live) > 0 {
                meta::set(&mut next, "generation", meta::generation(&live) + 1);
            }
            if *gk == gk::NAMESPACE {
                meta::put(&mut next, "status", Some(json!({"phase": "Terminating"})));
            }
            self.put(gk, key.clone(), next);
        }
        for (inner, key) in self.content(gk, key, &live) {
            self.delete(&inner, &key, now);
        }
        let waiting = self.find(gk, key).cloned();
        Some(waiting.map_or(Deleted::Gone(live), Deleted::Waits))
    }

    /// Takes an object out, then what it owned, then what waited for it to go.
    fn remove(&mut self, gk: &Gk, key: &Key, now: &str) -> Option<Arc<Value>> {
        let gone = self.take(gk, key)?;
        if *gk == gk::CRD {
            let defined = defined(&gone);
            Arc::make_mut(&mut self.kinds).remove(&defined);
            self.objects.remove(&defined);
        }
        let uid = meta::uid(&gone);
        for (dependent, key, object) in self.dependents(uid) {
            let others = meta::owner_uids(&object);
            if others.iter().any(|owner| *owner != uid && self.has_uid(owner)) {
                self.disown(&dependent, key, uid);
            } else {
                self.delete(&dependent, &key, now);
            }
        }
        if !key.namespace.is_empty() {
            self.finish_deletion(&gk::NAMESPACE, &Key::new(None, &key.namespace), now);
        }
        if let Some(kind) = self.kinds.get(gk) {
            let definition = Key::new(None, &format!("{}.{}", kind.plural, gk.group()));
            self.finish_deletion(&gk::CRD, &definition, now);
        }
        Some(gone)
    }

    fn is_held(&self, gk: &Gk, key: &Key, object: &Value) -> bool {
        !meta::finalizers(object).is_empty() || !self.content(gk, key, object).is_empty()
    }

    /// What lives in a namespace, or by grace of a definition.
    fn content(&self, gk: &Gk, key: &Key, object: &Value) -> Vec<(Gk, Key)> {
        if *gk == gk::NAMESPACE {
            let all = self.objects.iter().flat_map(|(gk, objects)| {
                objects.keys().map(move |inner| (gk.clone(), inner.clone()))
            });
            return all.filter(|(_, inner)| inner.namespace == key.name).collect();
        }
        if *gk == gk::CRD {
            let kind = defined(object);
            let objects = self.objects.get(&kind).into_iter().flat_map(Objects::keys);
            return objects.map(|inner| (kind.clone(), inner.clone())).collect();
        }
        Vec::new()
    }

    fn dependents(&self, uid: &str) -> Vec<(Gk, Key, Arc<Value>)> {
        let all = self
            .objects
            .iter()
            .flat_map(|(gk, objects)| objects.iter().map(move |(key, object)| (gk, key, object)));
        all.filter(|(_, _, object)| meta::owner_uids(object).contains(&uid))
            .map(|(gk, key, object)| (gk.clone(), key.clone(), Arc::clone(object)))
            .collect()
    }

    fn has_uid(&self, uid: &str) -> bool {
        self.objects.values().flatten().any(|(_, object)| meta::uid(object) == uid)
    }

    fn orphan(&mut self, uid: &str) {
        for (gk, key, _) in self.dependents(uid) {
            self.disown(&gk, key, uid);
        }
    }

    /// Drops one owner from an object.
    fn disown(&mut self, gk: &Gk, key: Key, uid: &str) {
        let Some(live) = self.find(gk, &key) else { return };
        let mut next = Value::clone(live);
        let owners = next.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        if let Some(owners) = owners {
            owners.retain(|owner| owner.get("uid").is_none_or(|found| found != uid));
        }
        self.put(gk, key, next);
    }
}

/// The kind a definition defines.
fn defined(crd: &Value) -> Gk {
    let text =
        |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    Gk::new(text("/spec/group"), text("/spec/names/kind"))
}
