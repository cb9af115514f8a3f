//! The objects of one cluster, with the rules the API server keeps: resourceVersions, generations,
//! finalizers, ownership, namespaces, field managers and a bounded history.
//!
//! Everything here is synchronous and under one short lock; nothing waits and no task is kept.

mod remove;
mod write;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;
use wavelift_runtime::Clock;

use super::{
    crd,
    error::ApiError,
    history::{Change, ChangeKind, History},
    kind::{Gk, Kind},
    kinds::{Kinds, gk},
    meta,
};

pub(super) use remove::Deleted;
pub use remove::{Precondition, Propagation};
pub(super) use write::{Effect, FieldValidation, Force, Outcome, Part, WriteOptions};

/// How much a server remembers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Changes kept for watches.
    pub history_changes: usize,
    /// Their estimated size in bytes.
    pub history_bytes: usize,
    /// Entries of the audit log.
    pub audit_entries: usize,
}

/// Which part of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// Everything but the status, where the status is apart.
    Main,
    /// The status alone.
    Status,
}

/// The objects of one cluster. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
    manager: Option<Arc<str>>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: RwLock<State>,
    wake: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    kinds: Arc<Kinds>,
    objects: BTreeMap<Gk, Objects>,
    history: History,
}

/// The objects of one kind, by namespace and name.
pub(super) type Objects = BTreeMap<Key, Arc<Value>>;

/// Namespace (empty for cluster-scoped kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Every write of a store from some moment on.
#[derive(Debug)]
pub struct Changes {
    store: Store,
    wake: watch::Receiver<u64>,
    seen: u64,
}

/// What a subscriber is told.
#[derive(Clone, Debug)]
pub enum Batch {
    /// The writes since the last batch, in order; may be empty for `Changes::now`.
    Changes(Vec<Arc<Change>>),
    /// Some writes have left the history already: list again.
    Lagged,
}

impl Default for Limits {
    fn default() -> Self {
        Self { history_changes: 1_000, history_bytes: 1 << 19, audit_entries: 2_000 }
    }
}

// === impl Store ===

impl Store {
    pub(super) fn new(clock: Clock, limits: Limits) -> Self {
        let state = State {
            revision: 0,
            kinds: Kinds::built_in(),
            objects: BTreeMap::new(),
            history: History::new(limits.history_changes, limits.history_bytes),
        };
        let shared = Shared { clock, state: RwLock::new(state), wake: watch::Sender::new(0) };
        Self { shared: Arc::new(shared), manager: None }
    }

    /// The same store for a writer that leaves its name in `managedFields`.
    ///
    /// Writes without a name leave none, which keeps objects small; they still take ownership away.
    #[must_use]
    pub fn with_manager(&self, name: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), manager: Some(Arc::from(name)) }
    }

    /// The clock that stamps objects.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The number of the last write.
    pub fn revision(&self) -> u64 {
        self.shared.state.read().revision
    }

    /// The kinds known now.
    pub fn kinds(&self) -> Arc<Kinds> {
        Arc::clone(&self.shared.state.read().kinds)
    }

    /// One object.
    pub fn get(&self, gk: &Gk, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        self.shared.state.read().find(gk, &Key::new(namespace, name)).cloned()
    }

    /// All objects of a kind, in one namespace or in all, by namespace and name.
    pub fn list(&self, gk: &Gk, namespace: Option<&str>) -> Vec<Arc<Value>> {
        self.list_at(gk, namespace).1
    }

    /// The same with the revision the list is of.
    pub fn list_at(&self, gk: &Gk, namespace: Option<&str>) -> (u64, Vec<Arc<Value>>) {
        let state = self.shared.state.read();
        let objects = state.objects.get(gk).into_iter().flatten();
        let wanted = objects.filter(|(key, _)| namespace.is_none_or(|ns| key.namespace == ns));
        (state.revision, wanted.map(|(_, object)| Arc::clone(object)).collect())
    }

    /// Everything written from now on.
    pub fn subscribe(&self) -> Changes {
        let wake = self.shared.wake.subscribe();
        Changes { store: self.clone(), wake, seen: self.revision() }
    }

    /// Everything written after a revision.
    pub fn subscribe_after(&self, revision: u64) -> Changes {
        Changes { store: self.clone(), wake: self.shared.wake.subscribe(), seen: revision }
    }

    /// Forgets the history, as etcd's compaction does: watches from before get 410.
    pub fn compact(&self) {
        let mut state = self.shared.state.write();
        let now = state.revision;
        state.history.compact(now);
    }

    /// Adds a kind as part of the cluster's first state: there is no event, and the stored
    /// definition is shared between all servers of the process.
    pub(super) fn install(&self, crd: &Arc<Value>) -> Result<(), ApiError> {
        let kind = crd::kind_of(crd)?;
        let mut state = self.shared.state.write();
        Arc::make_mut(&mut state.kinds).insert(kind);
        let key = Key::new(None, meta::name(crd));
        state.objects.entry(gk::CRD.clone()).or_default().insert(key, Arc::clone(crd));
        Ok(())
    }

    pub(super) fn since(&self, revision: u64) -> Option<Vec<Arc<Change>>> {
        let state = self.shared.state.read();
        Some(state.history.since(revision)?.map(Arc::clone).collect())
    }

    pub(super) fn reaches(&self, revision: u64) -> bool {
        self.shared.state.read().history.reaches(revision)
    }

    fn now(&self) -> String {
        stamp(self.shared.clock.now())
    }

    /// Tells subscribers; called after the lock is gone.
    fn announce(&self, revision: u64) {
        self.shared.wake.send_if_modified(|last| {
            let newer = revision > *last;
            *last = revision.max(*last);
            newer
        });
    }
}

/// A time as Kubernetes writes it: whole seconds.
pub(super) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

// === impl State ===

impl State {
    fn kind(&self, gk: &Gk) -> Result<Arc<Kind>, ApiError> {
        self.kinds.get(gk).cloned().ok_or_else(|| ApiError::unknown_kind(gk))
    }

    /// Another definition of a kind: its objects are in its storage version from now on.
    fn redefine(&mut self, kind: Arc<Kind>) {
        let version = kind.api_version();
        for object in self.objects.get_mut(&kind.gk).into_iter().flat_map(BTreeMap::values_mut) {
            if object["apiVersion"] != version.as_str() {
                Arc::make_mut(object)["apiVersion"] = version.as_str().into();
            }
        }
        Arc::make_mut(&mut self.kinds).insert(kind);
    }

    fn find(&self, gk: &Gk, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(gk)?.get(key)
    }

    /// Takes the next revision, stamps the object with it and keeps it.
    fn put(&mut self, gk: &Gk, key: Key, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        meta::set(&mut object, "resourceVersion", self.revision.to_string());
        let object = Arc::new(object);
        let objects = self.objects.entry(gk.clone()).or_default();
        let previous = objects.insert(key.clone(), Arc::clone(&object));
        let event = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.record(gk, key, event, (Arc::clone(&object), previous));
        object
    }

    /// Takes an object out; the event carries its last state with the deletion's revision.
    fn take(&mut self, gk: &Gk, key: &Key) -> Option<Arc<Value>> {
        let previous = self.objects.get_mut(gk)?.remove(key)?;
        self.revision += 1;
        let mut last = Value::clone(&previous);
        meta::set(&mut last, "resourceVersion", self.revision.to_string());
        let last = Arc::new(last);
        let event = (Arc::clone(&last), Some(previous));
        self.record(gk, key.clone(), ChangeKind::Deleted, event);
        Some(last)
    }

    fn record(
        &mut self,
        gk: &Gk,
        key: Key,
        event: ChangeKind,
        (object, previous): (Arc<Value>, Option<Arc<Value>>),
    ) {
        self.history.push(Change {
            resource_version: self.revision,
            gk: gk.clone(),
            namespace: key.namespace,
            name: key.name,
            event,
            object,
            previous,
        });
    }
}

// === impl Key ===

impl Key {
    pub(super) fn new(namespace: Option<&str>, name: &str) -> Self {
        Self { namespace: namespace.unwrap_or_default().to_owned(), name: name.to_owned() }
    }

    pub(super) fn of(object: &Value) -> Self {
        Self::new(Some(meta::namespace(object)), meta::name(object))
    }
}

// === impl Changes ===

impl Changes {
    /// Waits for at least one write and answers all there are.
    pub async fn next(&mut self) -> Batch {
        loop {
            self.wake.mark_unchanged();
            match self.now() {
                Batch::Changes(changes) if changes.is_empty() => {}
                batch @ (Batch::Changes(_) | Batch::Lagged) => return batch,
            }
            if self.wake.changed().await.is_err() {
                // The sender lives in the store, which this subscription holds.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The writes there are now, without waiting.
    pub fn now(&mut self) -> Batch {
        let Some(changes) = self.store.since(self.seen) else {
            self.seen = self.store.revision();
            return Batch::Lagged;
        };
        if let Some(last) = changes.last() {
            self.seen = last.resource_version;
        }
        Batch::Changes(changes)
    }

    /// The revision up to which everything was handed out.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}
