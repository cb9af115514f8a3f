//! The rest of the agent's way to the hub.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use wavelift_core::fence::Term;

use super::{
    message::{AgentReport, StatusReport, UpgradeKey},
    outbox::{Outbox, OutboxFull},
};

/// The link has ended with the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the link to the hub has ended")]
pub struct Closed;

/// Why something was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotQueued {
    /// The queue is full.
    #[error("the queue to the hub is full")]
    Full,
    /// The link has ended with the process.
    #[error("the link to the hub has ended")]
    Closed,
}

/// Where the link stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// It tries to connect.
    Connecting,
    /// It has a session.
    Connected {
        /// The session, as the hub calls it.
        session: u64,
        /// The leader's term.
        term: Term,
    },
    /// It waits before it tries again.
    Waiting {
        /// What went wrong last, for people.
        why: String,
    },
    /// It has ended with the process.
    Stopped,
}

/// The way to the hub. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LinkHandle {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: mpsc::Sender<AgentReport>,
}

/// What the link's tasks and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbox: Mutex<Outbox>,
    pub(super) outbox_changed: Notify,
    pub(super) highest_term: watch::Sender<Term>,
    pub(super) state: watch::Sender<LinkState>,
}

impl LinkHandle {
    /// A way that leads to a test.
    #[cfg(test)]
    pub(crate) fn to_test() -> (Self, mpsc::Receiver<AgentReport>) {
        let shared = Shared {
            outbox: Mutex::new(Outbox::new(8)),
            outbox_changed: Notify::new(),
            highest_term: watch::channel(Term(0)).0,
            state: watch::channel(LinkState::Connecting).0,
        };
        let (queue, reports) = mpsc::channel(64);
        (Self { shared: Arc::new(shared), queue }, reports)
    }

    /// Queues something for the hub; waits while the queue is full. The queue outlives breaks.
    pub async fn send(&self, report: AgentReport) -> Result<(), Closed> {
        self.queue.send(report).await.map_err(|_| Closed)
    }

    /// Queues something for the hub, if there is room.
    pub fn try_send(&self, report: AgentReport) -> Result<(), NotQueued> {
        self.queue.try_send(report).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotQueued::Full,
            mpsc::error::TrySendError::Closed(_) => NotQueued::Closed,
        })
    }

    /// Reports a transition: sent now, after each break, and again and again until the hub has
    /// made it durable or a newer one of the same upgrade takes its place.
    pub fn report(&self, status: StatusReport) -> Result<(), OutboxFull> {
        self.shared.outbox.lock().put(status)?;
        self.shared.outbox_changed.notify_one();
        Ok(())
    }

    /// Reports nothing more of an upgrade.
    pub fn forget(&self, upgrade: &UpgradeKey) {
        self.shared.outbox.lock().forget(upgrade);
    }

    /// How many upgrades have a status that is not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.shared.outbox.lock().len()
    }

    /// Where the link stands, to watch.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.shared.state.subscribe()
    }

    /// The highest term seen; to be kept over restarts with the local ClusterUpgrades.
    pub fn highest_term(&self) -> Term {
        *self.shared.highest_term.borrow()
    }
}

impl Shared {
    /// Takes a term from the hub; the higher one seen before if it is lower.
    pub(super) fn take_term(&self, offered: Term) -> Result<(), Term> {
        let mut seen = offered;
        self.highest_term.send_if_modified(|highest| {
            let is_higher = offered > *highest;
            if is_higher {
                *highest = offered;
            }
            seen = *highest;
            is_higher
        });
        if offered < seen { Err(seen) } else { Ok(()) }
    }
}
