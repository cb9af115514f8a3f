//! The hub's wishes until they are written down. The hub says each of them once in a session, so
//! one that meets an API server that is away is kept and tried again.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;
use tracing::warn;
use wavelift_core::fence::Term;
use wavelift_runtime::telemetry::chain;

use crate::{
    journal::{self, Journal},
    link::{Assignment, Control, UpgradeKey},
};

/// Wishes kept; the hub has a few of them for a cluster at most.
const OPEN_MAX: usize = 256;
/// The first pause after a write that failed; it doubles a few times.
const PAUSE: Duration = Duration::from_millis(100);
const DOUBLINGS_MAX: u32 = 7;

/// What the hub wants to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Carry a ClusterUpgrade out.
    Assign(Assignment),
    /// Steer it.
    Control(Control),
}

/// What the hub wants and is not written down yet, in order.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    open: VecDeque<Wish>,
    failures: u32,
    again_at: Option<Instant>,
}

// === impl Wish ===

impl Wish {
    fn upgrade(&self) -> &UpgradeKey {
        match self {
            Self::Assign(assignment) => &assignment.upgrade,
            Self::Control(control) => &control.upgrade,
        }
    }

    /// Whether nothing of `earlier` is left to be done once this is.
    fn covers(&self, earlier: &Self) -> bool {
        self.upgrade() == earlier.upgrade()
            && match (self, earlier) {
                (Self::Assign(_), Self::Assign(_) | Self::Control(_))
                | (Self::Control(_), Self::Control(_)) => true,
                (Self::Control(_), Self::Assign(_)) => false,
            }
    }

    async fn write(&self, journal: &Journal, highest: Term) -> Result<(), journal::Error> {
        match self {
            Self::Assign(assignment) => journal.assign(assignment, highest).await,
            Self::Control(control) => journal.control(control, highest).await,
        }
    }
}

// === impl Wishes ===

impl Wishes {
    /// Takes a wish in the place of those that it covers.
    pub(crate) fn take(&mut self, wish: Wish) {
        self.open.retain(|earlier| !wish.covers(earlier));
        if self.open.len() >= OPEN_MAX {
            warn!("too many wishes of the hub wait to be written down; the oldest is dropped");
            self.open.pop_front();
        }
        self.open.push_back(wish);
    }

    /// When to try again.
    pub(crate) fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Writes down what can be; those that are done with, and what became of them.
    pub(crate) async fn carry_out(
        &mut self,
        journal: &Journal,
        highest: Term,
    ) -> Vec<(Wish, Result<(), journal::Error>)> {
        let mut done = vec![];
        let mut left: VecDeque<Wish> = VecDeque::new();
        for wish in std::mem::take(&mut self.open) {
            // What follows a wish of the same upgrade waits for it.
            if left.iter().any(|earlier| earlier.upgrade() == wish.upgrade()) {
                left.push_back(wish);
                continue;
            }
            match wish.write(journal, highest).await {
                outcome @ (Ok(()) | Err(journal::Error::Refused(_))) => done.push((wish, outcome)),
                Err(
                    error @ (journal::Error::List(_)
                    | journal::Error::Read { .. }
                    | journal::Error::Write { .. }),
                ) => {
                    warn!(error = %chain(&error), "a wish of the hub is not written down yet");
                    left.push_back(wish);
                }
            }
        }
        self.failures = if left.is_empty() { 0 } else { self.failures.saturating_add(1) };
        let pause = PAUSE * 2_u32.pow(self.failures.saturating_sub(1).min(DOUBLINGS_MAX));
        self.again_at = (!left.is_empty()).then(|| Instant::now() + pause);
        self.open = left;
        done
    }
}
