//! Questions that wait for one session's answer.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The cluster's agent has no session.
    #[error("the cluster's agent is not connected")]
    NotConnected,
    /// The session ended before the answer.
    #[error("the cluster's agent disconnected before it answered")]
    Disconnected,
    /// There are too many unanswered questions to this agent.
    #[error("the cluster's agent has too many unanswered questions")]
    Busy,
    /// No answer came in time.
    #[error("the cluster's agent did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The agent answered that it can't.
    #[error("the agent: {0}")]
    Agent(String),
}

type Answer = Result<Bytes, String>;

/// One session's unanswered questions.
#[derive(Debug)]
pub(super) struct Queries {
    next: AtomicU64,
    max: usize,
    pending: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

/// A question that was asked; taken back when dropped.
#[derive(Debug)]
pub(super) struct Pending {
    queries: Arc<Queries>,
    pub(super) id: u64,
    answer: oneshot::Receiver<Answer>,
}

// === impl QueryError ===

impl QueryError {
    /// A short name for metrics and the HTTP API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotConnected => "not_connected",
            Self::Disconnected => "disconnected",
            Self::Busy => "busy",
            Self::TimedOut(_) => "timed_out",
            Self::Agent(_) => "agent",
        }
    }
}

// === impl Queries ===

impl Queries {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { next: AtomicU64::new(1), max, pending: Mutex::default() })
    }

    pub(super) fn open(self: &Arc<Self>) -> Result<Pending, QueryError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let mut pending = self.pending.lock();
        if pending.len() >= self.max {
            return Err(QueryError::Busy);
        }
        pending.insert(id, sender);
        Ok(Pending { queries: Arc::clone(self), id, answer })
    }

    /// Hands an answer to whoever waits. Nobody may: then it came too late.
    pub(super) fn answer(&self, id: u64, result: Answer) {
        let waiting = self.pending.lock().remove(&id);
        if let Some(waiting) = waiting {
            // The asker may have just gone.
            drop(waiting.send(result));
        }
    }

    /// Tells all who wait that no answer will come.
    pub(super) fn close(&self) {
        self.pending.lock().clear();
    }
}

impl Pending {
    pub(super) async fn wait(mut self, limit: Duration) -> Result<Bytes, QueryError> {
        match timeout(limit, &mut self.answer).await {
            Ok(Ok(Ok(json))) => Ok(json),
            Ok(Ok(Err(text))) => Err(QueryError::Agent(text)),
            Ok(Err(_)) => Err(QueryError::Disconnected),
            Err(_) => Err(QueryError::TimedOut(limit)),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.queries.pending.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_ends_in_its_answer_a_timeout_or_the_sessions_end() {
        let queries = Queries::new(1);
        let pending = queries.open().unwrap();
        assert_eq!(queries.open().unwrap_err(), QueryError::Busy);
        queries.answer(pending.id + 1, Ok(Bytes::new()));
        queries.answer(pending.id, Ok(Bytes::from_static(b"1")));
        assert_eq!(pending.wait(Duration::from_secs(1)).await, Ok(Bytes::from_static(b"1")));

        let limit = Duration::from_secs(3);
        let pending = queries.open().unwrap();
        assert_eq!(pending.wait(limit).await, Err(QueryError::TimedOut(limit)));

        let pending = queries.open().unwrap();
        queries.answer(pending.id, Err("no such kind".to_owned()));
        let failed = QueryError::Agent("no such kind".to_owned());
        assert_eq!(pending.wait(limit).await, Err(failed));

        let pending = queries.open().unwrap();
        queries.close();
        assert_eq!(pending.wait(limit).await, Err(QueryError::Disconnected));
    }
}
