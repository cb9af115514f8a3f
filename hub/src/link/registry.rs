//! Which clusters have a session, and the way to each.
//!
//! The map's locks are held for a look-up alone, never across an `.await`.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use dashmap::{DashMap, Entry as MapEntry};
use jiff::Timestamp;
use prometheus::IntGauge;
use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tonic::Status;
use tracing::debug;
use wavelift_core::{fence::Term, ids::ClusterName};
use wavelift_proto::v1::HubMessage;

use super::{
    command::{HubCommand, Query},
    convert,
    event::{AgentHello, SessionEnd, SessionId},
    queries::{Queries, QueryError},
    refusal::Refusal,
    settings::{DrainHint, DrainReason, Limits},
};

pub(super) type Outgoing = mpsc::Sender<Result<HubMessage, Status>>;

/// The sessions of all clusters, at most one of each. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Registry(Arc<Inner>);

/// One session, for people to look at.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// The cluster.
    pub cluster: ClusterName,
    /// The session.
    pub session: SessionId,
    /// Since when.
    pub since: Timestamp,
    /// Where from.
    pub remote: SocketAddr,
    /// What the agent said of itself.
    pub hello: AgentHello,
}

/// Why a command was not sent. All commands are safe to send again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The cluster's agent has no session.
    #[error("the cluster's agent is not connected")]
    NotConnected,
    /// The agent does not read fast enough.
    #[error("the cluster's agent has too many unread commands")]
    QueueFull,
    /// The command is longer than the limit.
    #[error("the command has {bytes} bytes, more than {max}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The most that is allowed.
        max: usize,
    },
}

#[derive(Debug)]
struct Inner {
    sessions: DashMap<ClusterName, Entry>,
    count: AtomicUsize,
    next: AtomicU64,
    limits: Limits,
    gauge: IntGauge,
}

/// A session as the registry keeps it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) term: Term,
    pub(super) hello: AgentHello,
    pub(super) since: Timestamp,
    pub(super) remote: SocketAddr,
    pub(super) out: Outgoing,
    pub(super) closing: watch::Sender<Option<SessionEnd>>,
    pub(super) queries: Arc<Queries>,
}

// === impl SendError ===

impl SendError {
    /// A short name for metrics and logs.
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotConnected => "not_connected",
            Self::QueueFull => "queue_full",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

// === impl Registry ===

impl Registry {
    pub(super) fn new(limits: Limits, gauge: IntGauge) -> Self {
        Self(Arc::new(Inner {
            sessions: DashMap::new(),
            count: AtomicUsize::new(0),
            next: AtomicU64::new(1),
            limits,
            gauge,
        }))
    }

    /// Sends a command to a cluster's agent, without waiting.
    pub fn send(&self, cluster: &ClusterName, command: HubCommand) -> Result<(), SendError> {
        let entry = self.0.sessions.get(cluster).ok_or(SendError::NotConnected)?;
        let message = convert::command(entry.term, command);
        let (bytes, max) = (message.encoded_len(), self.0.limits.command_bytes_max);
        if bytes > max {
            return Err(SendError::TooLarge { bytes, max });
        }
        entry.push(message)
    }

    /// Asks a cluster's agent and waits for its answer, at most for `limit` of real time.
    pub async fn query(
        &self,
        cluster: &ClusterName,
        query: Query,
        limit: Duration,
    ) -> Result<Bytes, QueryError> {
        self.ask(cluster, query)?.wait(limit).await
    }

    fn ask(
        &self,
        cluster: &ClusterName,
        query: Query,
    ) -> Result<super::queries::Pending, QueryError> {
        let entry = self.0.sessions.get(cluster).ok_or(QueryError::NotConnected)?;
        let pending = entry.queries.open()?;
        entry.push(convert::query(pending.id, query)).map_err(|error| match error {
            SendError::NotConnected => QueryError::NotConnected,
            SendError::QueueFull | SendError::TooLarge { .. } => QueryError::Busy,
        })?;
        Ok(pending)
    }

    /// Whether a cluster's agent has a session.
    pub fn is_connected(&self, cluster: &ClusterName) -> bool {
        self.0.sessions.contains_key(cluster)
    }

    /// The session of a cluster, if it has one.
    pub fn session(&self, cluster: &ClusterName) -> Option<SessionId> {
        self.0.sessions.get(cluster).map(|entry| entry.id)
    }

    /// All sessions, by cluster.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        let mut sessions: Vec<_> = self
            .0
            .sessions
            .iter()
            .map(|entry| SessionInfo {
                cluster: entry.key().clone(),
                session: entry.id,
                since: entry.since,
                remote: entry.remote,
                hello: entry.hello.clone(),
            })
            .collect();
        sessions.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        sessions
    }

    /// How many clusters have a session.
    pub fn len(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Whether no cluster has a session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks all agents to leave and tells them when to come back.
    pub fn drain(&self, hint: DrainHint) {
        for entry in &self.0.sessions {
            entry.close(SessionEnd::Drained, hint);
        }
    }

    pub(super) fn next_id(&self) -> SessionId {
        SessionId(self.0.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes `entry` the cluster's session. A former one is asked to leave; what it has under way
    /// is still taken.
    pub(super) fn register(&self, cluster: ClusterName, entry: Entry) -> Result<(), Refusal> {
        match self.0.sessions.entry(cluster) {
            MapEntry::Occupied(mut place) => {
                let replaced = DrainHint {
                    after: Duration::ZERO,
                    spread: Duration::ZERO,
                    reason: DrainReason::Replaced,
                };
                place.insert(entry).close(SessionEnd::Replaced, replaced);
            }
            MapEntry::Vacant(place) => {
                if self.0.count.fetch_add(1, Ordering::Relaxed) >= self.0.limits.sessions_max {
                    self.0.count.fetch_sub(1, Ordering::Relaxed);
                    return Err(Refusal::TooManySessions);
                }
                place.insert(entry);
                self.0.gauge.inc();
            }
        }
        Ok(())
    }

    /// Removes a session unless another has taken its place; whether it was there.
    pub(super) fn remove(&self, cluster: &ClusterName, id: SessionId) -> bool {
        let was_there = self.0.sessions.remove_if(cluster, |_, entry| entry.id == id).is_some();
        if was_there {
            self.0.count.fetch_sub(1, Ordering::Relaxed);
            self.0.gauge.dec();
        }
        was_there
    }
}

// === impl Entry ===

impl Entry {
    fn push(&self, message: HubMessage) -> Result<(), SendError> {
        self.out.try_send(Ok(message)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::QueueFull,
            mpsc::error::TrySendError::Closed(_) => SendError::NotConnected,
        })
    }

    fn close(&self, end: SessionEnd, hint: DrainHint) {
        if self.push(convert::drain(hint)).is_err() {
            // The agent does not read, or is gone; it learns by the stream's end.
            debug!(session = %self.id, "no room for the drain notice");
        }
        self.closing.send_replace(Some(end));
    }
}
