//! What happened, in order, for as long as there is room: the source of every watch.

use std::{collections::VecDeque, sync::Arc};

use serde_json::Value;

use super::kind::Gk;

/// One write.
#[derive(Clone, Debug)]
pub struct Change {
    /// The number of the write; also the object's `metadata.resourceVersion`.
    pub resource_version: u64,
    /// What was written.
    pub gk: Gk,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// What happened to it.
    pub event: ChangeKind,
    /// The object after the write; its last state when it was deleted.
    pub object: Arc<Value>,
    /// The object before the write.
    pub previous: Option<Arc<Value>>,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// The last changes, bounded in number and in (estimated) bytes.
#[derive(Debug)]
pub(super) struct History {
    changes: VecDeque<(Arc<Change>, usize)>,
    bytes: usize,
    changes_max: usize,
    bytes_max: usize,
    /// The number of the last change that has left; everything after it is still here.
    floor: u64,
}

impl History {
    pub(super) fn new(changes_max: usize, bytes_max: usize) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, changes_max, bytes_max, floor: 0 }
    }

    /// Adds a change and forgets the oldest where a limit is passed. The last change always stays.
    pub(super) fn push(&mut self, change: Change) {
        let size = estimate(&change.object);
        self.bytes += size;
        self.changes.push_back((Arc::new(change), size));
        while self.changes.len() > 1
            && (self.changes.len() > self.changes_max || self.bytes > self.bytes_max)
        {
            let Some((gone, size)) = self.changes.pop_front() else { break };
            self.bytes -= size;
            self.floor = gone.resource_version;
        }
    }

    /// The changes after `revision`, or `None` when some of them have left already.
    pub(super) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Change>>> {
        if revision < self.floor {
            return None;
        }
        let start = self.changes.partition_point(|(c, _)| c.resource_version <= revision);
        Some(self.changes.range(start..).map(|(change, _)| change))
    }

    /// Whether everything after `revision` is still here.
    pub(super) fn reaches(&self, revision: u64) -> bool {
        revision >= self.floor
    }

    /// Forgets everything up to now, as a compaction does.
    pub(super) fn compact(&mut self, now: u64) {
        self.changes.clear();
        self.bytes = 0;
        self.floor = now;
    }
}

/// Roughly what a value takes on the heap. A map is a tree whose nodes have room for eleven
/// entries of 56 bytes, however few there are.
fn estimate(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => 16 + text.len(),
        Value::Array(items) => items.iter().map(|item| 32 + estimate(item)).sum(),
        Value::Object(map) => {
            let nodes = map.len().div_ceil(8) * 640;
            nodes + map.iter().map(|(key, value)| 16 + key.len() + estimate(value)).sum::<usize>()
        }
    }
}
