//! What a pass says about the campaign as a whole: waves, counts, phase and the closing summary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Campaign, Cluster, Control, Decision, Failure, Link, PlanFact, PreflightFact, Run, Settled,
    Stage, WaitingOn,
};
use crate::{ids::ClusterName, state::ClusterState};

/// Clusters by state; states without clusters are left out.
pub type Counts = BTreeMap<ClusterState, u32>;

/// Where a campaign stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Stage Preview, not every plan is known yet.
    Planning,
    /// Stage Preview, ready to be looked at.
    Previewed,
    /// Stage Preflight, checks are outstanding.
    Preflighting,
    /// Stage Preflight, all answered: waits for the launch.
    Preflighted,
    /// Stage Rollout, but the plan is not the one that was consented to.
    AwaitingConsent,
    /// Under way.
    Running,
    /// The user paused it.
    Paused,
    /// The user froze it.
    Frozen,
    /// The failure budget is spent; clusters in flight are still finishing.
    Halting,
    /// Ended: every cluster that could reach its target did.
    Succeeded,
    /// Ended with tolerated failures or clusters left out.
    SucceededWithFailures,
    /// Ended because the failure budget is spent.
    Failed,
    /// Ended by the user.
    Cancelled,
}

/// One wave's part of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveReport {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: WaveState,
    /// Its members by state.
    pub counts: Counts,
    /// How many members it has.
    pub clusters: u32,
}

/// Where a wave stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WaveState {
    /// Not its turn yet.
    Pending,
    /// Its turn.
    Running,
    /// Every member is settled.
    Complete,
}

/// The five numbers that add up to the clusters of a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// At the target, those that were there already included.
    pub succeeded: u32,
    /// Failed or stalled.
    pub failed: u32,
    /// Left out by the user's word.
    pub skipped: u32,
    /// Left out because they were not heard from by the deadline.
    pub unreachable: u32,
    /// Held, never reached, or still in flight.
    pub not_started: u32,
}

impl Phase {
    /// As the API and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planning => "Planning",
            Self::Previewed => "Previewed",
            Self::Preflighting => "Preflighting",
            Self::Preflighted => "Preflighted",
            Self::AwaitingConsent => "AwaitingConsent",
            Self::Running => "Running",
            Self::Paused => "Paused",
            Self::Frozen => "Frozen",
            Self::Halting => "Halting",
            Self::Succeeded => "Succeeded",
            Self::SucceededWithFailures => "SucceededWithFailures",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    /// True when nothing more will happen by itself.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Succeeded | Self::SucceededWithFailures | Self::Failed | Self::Cancelled => true,
            Self::Planning
            | Self::Previewed
            | Self::Preflighting
            | Self::Preflighted
            | Self::AwaitingConsent
            | Self::Running
            | Self::Paused
            | Self::Frozen
            | Self::Halting => false,
        }
    }
}

impl WaveState {
    /// As the API and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Complete => "Complete",
        }
    }
}

impl Summary {
    /// Adds one cluster, by what it is and what was decided about it.
    pub fn add(&mut self, cluster: &Cluster, decision: &Decision) {
        let place = match state(cluster, decision) {
            ClusterState::Succeeded => &mut self.succeeded,
            ClusterState::Failed | ClusterState::Stalled => &mut self.failed,
            ClusterState::Skipped => &mut self.skipped,
            ClusterState::Unreachable if is_left_out(cluster, decision) => &mut self.unreachable,
            ClusterState::Unreachable
            | ClusterState::Pending
            | ClusterState::Blocked
            | ClusterState::Preflight
            | ClusterState::Ready
            | ClusterState::Upgrading
            | ClusterState::Verifying => &mut self.not_started,
        };
        *place += 1;
    }

    /// All five together.
    pub fn total(&self) -> u32 {
        self.succeeded + self.failed + self.skipped + self.unreachable + self.not_started
    }
}

fn is_left_out(cluster: &Cluster, decision: &Decision) -> bool {
    cluster.run == Run::Unreachable || *decision == Decision::Settle(Settled::Unreachable)
}

/// The state that every surface shows for a cluster.
pub fn state(cluster: &Cluster, decision: &Decision) -> ClusterState {
    match &cluster.run {
        Run::Succeeded => ClusterState::Succeeded,
        Run::Failed(Failure::Failed) => ClusterState::Failed,
        Run::Failed(Failure::Stalled) => ClusterState::Stalled,
        Run::Skipped(_) => ClusterState::Skipped,
        Run::Unreachable => ClusterState::Unreachable,
        Run::InFlight { verifying } => match (cluster.link, verifying) {
            (Link::Silent { .. }, _) => ClusterState::Unreachable,
            (Link::Connected, true) => ClusterState::Verifying,
            (Link::Connected, false) => ClusterState::Upgrading,
        },
        Run::NotStarted => not_started(cluster, decision),
    }
}

fn not_started(cluster: &Cluster, decision: &Decision) -> ClusterState {
    match decision {
        Decision::Start | Decision::InFlight { .. } => ClusterState::Upgrading,
        Decision::Check => ClusterState::Preflight,
        Decision::Settle(Settled::Skipped(_)) => ClusterState::Skipped,
        Decision::Settle(Settled::Unreachable) => ClusterState::Unreachable,
        Decision::Nothing => match &cluster.plan {
            PlanFact::AtTarget => ClusterState::Succeeded,
            PlanFact::NoPath { .. }
            | PlanFact::Unknown { .. }
            | PlanFact::Planned
            | PlanFact::NotConsented => ClusterState::Blocked,
        },
        Decision::Wait(waiting) => match waiting {
            WaitingOn::Agent { .. } => ClusterState::Unreachable,
            WaitingOn::Preflight => ClusterState::Preflight,
            WaitingOn::Checks { .. } | WaitingOn::Consent | WaitingOn::Holder { .. } => {
                ClusterState::Blocked
            }
            WaitingOn::Stage { .. }
            | WaitingOn::Inventory { .. }
            | WaitingOn::Wave { .. }
            | WaitingOn::Slot { .. }
            | WaitingOn::FailureBudget { .. }
            | WaitingOn::Paused
            | WaitingOn::Frozen
            | WaitingOn::Cancelled
            | WaitingOn::Halted { .. } => match &cluster.preflight {
                PreflightFact::Clear { .. } => ClusterState::Ready,
                PreflightFact::Blocked { .. } => ClusterState::Blocked,
                PreflightFact::None | PreflightFact::Running { .. } => ClusterState::Pending,
            },
        },
    }
}

pub(super) fn counts(
    clusters: &BTreeMap<ClusterName, Cluster>,
    decisions: &BTreeMap<ClusterName, Decision>,
) -> Counts {
    count(decisions.iter(), clusters)
}

fn count<'a>(
    decisions: impl Iterator<Item = (&'a ClusterName, &'a Decision)>,
    clusters: &BTreeMap<ClusterName, Cluster>,
) -> Counts {
    let mut counts = Counts::new();
    for (name, decision) in decisions {
        let state =
            clusters.get(name).map_or(ClusterState::Pending, |cluster| state(cluster, decision));
        *counts.entry(state).or_default() += 1;
    }
    counts
}

pub(super) fn waves(
    campaign: &Campaign,
    clusters: &BTreeMap<ClusterName, Cluster>,
    decisions: &BTreeMap<ClusterName, Decision>,
) -> Vec<WaveReport> {
    let mut open = campaign.stage == Stage::Rollout && campaign.rollout_since.is_some();
    let mut reports = vec![];
    for wave in &campaign.waves {
        let members = wave.members.iter().filter_map(|name| decisions.get(name).map(|d| (name, d)));
        let complete = wave.members.iter().all(|name| decisions.get(name).is_some_and(is_final));
        let state = match (open, complete) {
            (true, true) => WaveState::Complete,
            (true, false) => WaveState::Running,
            (false, _) => WaveState::Pending,
        };
        open &= complete;
        reports.push(WaveReport {
            name: wave.name.to_string(),
            state,
            counts: count(members, clusters),
            clusters: u32::try_from(wave.members.len()).unwrap_or(u32::MAX),
        });
    }
    reports
}

fn is_final(decision: &Decision) -> bool {
    match decision {
        Decision::Nothing | Decision::Settle(_) => true,
        Decision::Start | Decision::Check | Decision::InFlight { .. } | Decision::Wait(_) => false,
    }
}

pub(super) fn phase(
    campaign: &Campaign,
    clusters: &BTreeMap<ClusterName, Cluster>,
    decisions: &BTreeMap<ClusterName, Decision>,
    halted: bool,
) -> Phase {
    let moving = decisions.values().any(|d| matches!(d, Decision::InFlight { .. }));
    if campaign.control == Control::Cancelled {
        return if moving { Phase::Halting } else { Phase::Cancelled };
    }
    match campaign.stage {
        Stage::Preview => before(decisions, Phase::Planning, Phase::Previewed),
        Stage::Preflight => before(decisions, Phase::Preflighting, Phase::Preflighted),
        Stage::Rollout => {
            if decisions.values().all(is_final) {
                ended(clusters, decisions, halted)
            } else if halted {
                if moving { Phase::Halting } else { Phase::Failed }
            } else {
                under_way(campaign)
            }
        }
    }
}

fn under_way(campaign: &Campaign) -> Phase {
    match campaign.control {
        Control::Paused => Phase::Paused,
        Control::Frozen => Phase::Frozen,
        Control::Running | Control::Cancelled => match campaign.consent {
            super::Consent::Given => Phase::Running,
            super::Consent::Stale => Phase::AwaitingConsent,
        },
    }
}

/// A stage before Rollout is ready when every cluster only waits for the user. One that is held by
/// its checks, or not heard, has been reported too: there is nothing to wait for.
fn before(decisions: &BTreeMap<ClusterName, Decision>, not_yet: Phase, ready: Phase) -> Phase {
    let open = decisions.values().any(|decision| match decision {
        Decision::Check | Decision::Start => true,
        Decision::Wait(waiting) => {
            matches!(waiting, WaitingOn::Inventory { .. } | WaitingOn::Preflight)
        }
        Decision::Nothing | Decision::Settle(_) | Decision::InFlight { .. } => false,
    });
    if open { not_yet } else { ready }
}

fn ended(
    clusters: &BTreeMap<ClusterName, Cluster>,
    decisions: &BTreeMap<ClusterName, Decision>,
    halted: bool,
) -> Phase {
    let mut summary = Summary::default();
    for (name, decision) in decisions {
        if let Some(cluster) = clusters.get(name) {
            summary.add(cluster, decision);
        }
    }
    if halted {
        Phase::Failed
    } else if summary.succeeded == summary.total() {
        Phase::Succeeded
    } else {
        Phase::SucceededWithFailures
    }
}
