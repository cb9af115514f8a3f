//! Who wrote what: a bounded log of mutating requests and exact counts of them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::kind::Gk;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many.
    List,
    /// Follows changes.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces one.
    Update,
    /// Changes one, server-side apply included.
    Patch,
    /// Deletes one.
    Delete,
    /// Deletes many.
    DeleteCollection,
    /// Discovery, health, version and the like.
    Other,
}

/// A request as hooks and the log see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's `User-Agent`.
    pub user_agent: Arc<str>,
    /// The `fieldManager` of the query, else the user agent up to its slash.
    pub field_manager: String,
    /// What it is for.
    pub verb: Verb,
    /// The kind, if the path names one.
    pub gk: Option<Gk>,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path, or in the body of a create.
    pub name: Option<String>,
    /// `status` or empty.
    pub subresource: String,
    /// What came with it; hooks see it, the log does not keep it.
    pub body: Bytes,
}

/// One mutating request and what came of it.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// 1 for the first mutating request of this server.
    pub sequence: u64,
    /// The request.
    pub request: Request,
    /// The HTTP code; 0 when the connection was dropped without an answer.
    pub code: u16,
    /// Whether the store changed; a patch that changes nothing is answered with 200 as well.
    pub effect: AuditEffect,
}

/// Whether a request changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditEffect {
    /// The store is as before.
    Unchanged,
    /// It holds something else now.
    Changed,
}

/// Under which name requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountKey {
    /// The client's `User-Agent`.
    pub user_agent: Arc<str>,
    /// What the requests were for.
    pub verb: Verb,
    /// Of which kind.
    pub gk: Option<Gk>,
}

#[derive(Debug)]
pub(super) struct Audit {
    log: Mutex<Log>,
    entries_max: usize,
}

#[derive(Debug, Default)]
struct Log {
    sequence: u64,
    entries: VecDeque<AuditEntry>,
    counts: BTreeMap<CountKey, u64>,
}

impl Verb {
    /// Whether the request may change something.
    pub fn is_mutating(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection => {
                true
            }
            Self::Get | Self::List | Self::Watch | Self::Other => false,
        }
    }
}

impl Audit {
    pub(super) fn new(entries_max: usize) -> Self {
        Self { log: Mutex::default(), entries_max }
    }

    pub(super) fn record(&self, request: &Request, code: u16, effect: AuditEffect) {
        let mut log = self.log.lock();
        log.sequence += 1;
        let key = CountKey {
            user_agent: Arc::clone(&request.user_agent),
            verb: request.verb,
            gk: request.gk.clone(),
        };
        *log.counts.entry(key).or_default() += 1;
        let request = Request { body: Bytes::new(), ..request.clone() };
        let entry = AuditEntry { sequence: log.sequence, request, code, effect };
        log.entries.push_back(entry);
        if log.entries.len() > self.entries_max {
            log.entries.pop_front();
        }
    }

    pub(super) fn entries(&self) -> Vec<AuditEntry> {
        self.log.lock().entries.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> BTreeMap<CountKey, u64> {
        self.log.lock().counts.clone()
    }

    pub(super) fn total(&self) -> u64 {
        self.log.lock().sequence
    }
}
