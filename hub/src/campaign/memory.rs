//! What the leader remembers between passes. All of it can be lost: a new leader builds it anew
//! from the objects and from what the agents repeat.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;
use wavelift_api::ClusterUpgradeStatus;
use wavelift_core::{
    check::Finding,
    fence::{Fence, Revision},
    ids::{ClusterName, Uid},
};
use wavelift_runtime::tokens::TokenBucket;

use super::{part::Part, report::Shown};
use crate::link::{ControlAction, Progress, SessionId, UpgradeKey};

/// Writes of one FleetUpgrade's status at once, and a second in the long run.
const WRITES_BURST: u32 = 20;
const WRITES_PER_SECOND: f64 = 1.0;
/// Tokens that reports leave to writes that something waits for.
const WRITES_KEPT: u32 = 10;
/// The first pause after a failed write; it doubles up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Of all campaigns and their clusters.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) campaigns: BTreeMap<Uid, CampaignMemory>,
    pub(super) tracks: BTreeMap<UpgradeKey, Track>,
    /// Checks that were asked for, by request.
    pub(super) requests: BTreeMap<String, UpgradeKey>,
}

/// Of one campaign.
#[derive(Debug)]
pub(super) struct CampaignMemory {
    /// Decided to start, not yet written ahead.
    pub(super) pending: BTreeSet<ClusterName>,
    /// Whose plans changed within the user's word, not yet in the durable history.
    pub(super) changed: BTreeSet<ClusterName>,
    pub(super) bucket: TokenBucket,
    pub(super) write: Attempt,
    /// The last pass, for the board.
    pub(super) shown: Option<Shown>,
    pub(super) wake_at: Option<Timestamp>,
    /// When the next status may be written, where one waits for its token.
    pub(super) report_at: Option<Instant>,
    /// No agent is at work on any part of it.
    pub(super) is_closed: bool,
    /// And nothing more will be learnt about it either.
    pub(super) is_quiet: bool,
}

/// Of one cluster's part in one campaign.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) asked: Option<Asked>,
    pub(super) answer: Option<Answer>,
    /// The session and fence in which the part was assigned.
    pub(super) assigned: Option<(SessionId, Fence)>,
    /// The control that the agent was last told in that session.
    pub(super) told: Option<(SessionId, ControlAction)>,
    pub(super) newest: Option<Newest>,
    pub(super) progress: Option<Progress>,
    pub(super) write: Attempt,
    /// Since when its ClusterUpgrade cannot be written.
    pub(super) unwritten_since: Option<Timestamp>,
    /// Preflight results written so far.
    pub(super) preflights: u32,
    /// The state that was last shown, and since when.
    pub(super) shown_since: Option<(wavelift_core::state::ClusterState, Timestamp)>,
}

/// Checks that were asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) request_id: String,
    pub(super) at: Timestamp,
    pub(super) fence: Fence,
    pub(super) plan_digest: String,
    /// Not asked in this session yet.
    pub(super) session: SessionId,
}

/// Checks that were answered.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) at: Timestamp,
    pub(super) findings: Vec<Finding>,
    pub(super) plan_digest: String,
}

/// The newest status of an agent.
#[derive(Debug, Clone)]
pub(super) struct Newest {
    pub(super) fence: Fence,
    pub(super) revision: Revision,
    pub(super) status: ClusterUpgradeStatus,
    /// Whether the agent was told that it need not repeat it.
    pub(super) is_acknowledged: bool,
}

/// Whether an object may be written now.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) is_under_way: bool,
    failures: u32,
    not_before: Option<Instant>,
}

/// How urgent a status is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// It only tells how far things are.
    Report,
    /// Something waits for it.
    Gate,
}

// === impl Track ===

impl Track {
    /// The newest status of its agent that belongs to `fence`: what an earlier attempt said does
    /// not count.
    pub(super) fn heard(&self, fence: &Fence) -> Option<&Newest> {
        self.newest.as_ref().filter(|newest| newest.fence == *fence)
    }

    /// Takes the words of a progress, if they are no older than the newest status: in memory, to be
    /// shown. After a restart that status is the durable one.
    pub(super) fn said(
        &mut self,
        part: &Part,
        progress: &Progress,
        words: Option<ClusterUpgradeStatus>,
    ) {
        if self.heard(&part.fence).is_none() {
            self.newest = part.taken().zip(part.status()).map(|(revision, status)| Newest {
                fence: part.fence.clone(),
                revision,
                status: status.clone(),
                is_acknowledged: true,
            });
        }
        let newest = self.newest.as_mut().filter(|newest| newest.revision <= progress.revision);
        let (Some(newest), Some(words)) = (newest, words) else { return };
        newest.status.message = words.message;
        newest.status.operator_conditions = words.operator_conditions;
        let index = usize::try_from(progress.step_index).unwrap_or(usize::MAX);
        let said = words.steps.into_iter().next();
        if let (Some(step), Some(said)) = (newest.status.steps.get_mut(index), said) {
            step.message = said.message;
            step.install_plan = said.install_plan.or_else(|| step.install_plan.take());
        }
    }

    /// How far it is, as long as that is no older than what was heard.
    pub(super) fn progress(&self, fence: &Fence) -> Option<&Progress> {
        let heard = self.heard(fence).map(|newest| newest.revision);
        self.progress.as_ref().filter(|progress| {
            progress.fence == *fence && heard.is_none_or(|heard| progress.revision >= heard)
        })
    }
}

// === impl CampaignMemory ===

impl Default for CampaignMemory {
    fn default() -> Self {
        Self {
            pending: BTreeSet::new(),
            changed: BTreeSet::new(),
            bucket: TokenBucket::new(WRITES_BURST, WRITES_PER_SECOND),
            write: Attempt::default(),
            shown: None,
            wake_at: None,
            report_at: None,
            is_closed: false,
            is_quiet: false,
        }
    }
}

impl CampaignMemory {
    /// Takes the token for a write, or says when to come again.
    ///
    /// The bucket bounds all writes together. Reports leave some of it, so that a start never
    /// waits behind them; what waits meanwhile goes in one write.
    pub(super) fn take_token(&mut self, urgency: Urgency, now: Instant) -> Result<(), Duration> {
        let is_free = match urgency {
            Urgency::Gate => true,
            Urgency::Report => self.bucket.available(now) > WRITES_KEPT,
        };
        if is_free { self.bucket.try_take(now) } else { Err(Duration::from_secs(1)) }
    }
}

// === impl Attempt ===

impl Attempt {
    /// Whether a write may begin.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        !self.is_under_way && self.not_before.is_none_or(|at| at <= now)
    }

    /// When a write that failed may be tried again.
    pub(super) fn not_before(&self) -> Option<Instant> {
        if self.is_under_way { None } else { self.not_before }
    }

    /// Whether the last write failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// A pause that is over need not be waited for again.
    pub(super) fn waited(&mut self, now: Instant) {
        if self.not_before.is_some_and(|at| at <= now) {
            self.not_before = None;
        }
    }

    pub(super) fn begun(&mut self) {
        self.is_under_way = true;
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The object was another than thought; what is there now is known.
    pub(super) fn refreshed(&mut self) {
        self.is_under_way = false;
    }

    pub(super) fn failed(&mut self, now: Instant) {
        self.is_under_way = false;
        let pause = PAUSE_MIN.saturating_mul(1 << self.failures.min(16)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_leave_room_for_what_gates_a_start() {
        let mut memory = CampaignMemory::default();
        let now = Instant::now();
        let mut reports = 0;
        while memory.take_token(Urgency::Report, now).is_ok() {
            reports += 1;
        }
        assert_eq!(reports, 10);
        let mut gates = 0;
        while memory.take_token(Urgency::Gate, now).is_ok() {
            gates += 1;
        }
        assert_eq!(gates, 10, "all together are the burst");
        let second = now + Duration::from_secs(1);
        assert!(memory.take_token(Urgency::Report, second).is_err());
        assert!(memory.take_token(Urgency::Gate, second).is_ok());
        assert!(memory.take_token(Urgency::Gate, second).is_err());
    }

    #[test]
    fn pauses_grow_and_end() {
        let now = Instant::now();
        let mut attempt = Attempt::default();
        attempt.begun();
        assert!(!attempt.is_free(now));
        attempt.failed(now);
        assert!(!attempt.is_free(now + Duration::from_millis(99)));
        assert!(attempt.is_free(now + Duration::from_millis(100)));
        for _ in 0..40 {
            attempt.failed(now);
        }
        assert!(attempt.is_free(now + PAUSE_MAX));
        attempt.succeeded();
        assert!(attempt.is_free(now));
    }
}
