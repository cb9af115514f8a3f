//! The decision itself.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    BudgetMode, Campaign, Cluster, Consent, Control, Counts, Link, Offline, Phase, PlanFact,
    PreflightFact, Request, Run, SkipReason, Stage, WaitingOn, Wave, WaveReport, report,
};
use crate::ids::ClusterName;

/// What bounds one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Starts that one pass may decide; `status.starting[]` holds no more than 500.
    pub starts_max: usize,
    /// Checks that may be running at once.
    pub checks_max: usize,
    /// How long a clear preflight may be relied on for a start.
    pub preflight_fresh: SignedDuration,
    /// How long after a blocked preflight the cluster is checked again.
    pub recheck_period: SignedDuration,
    /// How long an unanswered preflight is waited for before it is asked for again.
    pub check_timeout: SignedDuration,
    /// How long a preview waits for an agent that is not there: after a change of leader all of
    /// them are on their way back at first.
    pub return_grace: SignedDuration,
}

/// What is to be done about one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Start it, as its first attempt or again.
    Start,
    /// Ask for its checks.
    Check,
    /// Record that it is left out.
    Settle(Settled),
    /// It is in flight: nothing but to listen.
    InFlight {
        /// Since when it is silent, if it is.
        silent_since: Option<Timestamp>,
    },
    /// Not yet.
    Wait(WaitingOn),
    /// Nothing more will happen to it.
    Nothing,
}

/// An end that the scheduler itself decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The user's word.
    Skipped(SkipReason),
    /// Not heard from by the deadline.
    Unreachable,
}

/// One pass over a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "decisions that nobody carries out decide nothing"]
pub struct Decisions {
    /// One for every cluster of the campaign.
    pub clusters: BTreeMap<ClusterName, Decision>,
    /// One for every wave, in order.
    pub waves: Vec<WaveReport>,
    /// All clusters by state.
    pub counts: Counts,
    /// Where the campaign stands.
    pub phase: Phase,
    /// When to look again though nothing happens.
    pub wake_at: Option<Timestamp>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            starts_max: 500,
            checks_max: 500,
            preflight_fresh: SignedDuration::from_mins(5),
            recheck_period: SignedDuration::from_mins(5),
            check_timeout: SignedDuration::from_mins(5),
            return_grace: SignedDuration::from_secs(30),
        }
    }
}

/// Decides what is to be done about every cluster of `campaign`, as of `now`.
///
/// Members of waves that are missing from `clusters` are treated as never heard of.
pub fn decide(
    campaign: &Campaign,
    clusters: &BTreeMap<ClusterName, Cluster>,
    limits: &Limits,
    now: Timestamp,
) -> Decisions {
    let mut pass = Pass::new(campaign, clusters, limits, now);
    for wave in &campaign.waves {
        pass.wave(wave);
    }
    pass.finish()
}

/// The state of one pass.
struct Pass<'a> {
    campaign: &'a Campaign,
    clusters: &'a BTreeMap<ClusterName, Cluster>,
    limits: &'a Limits,
    now: Timestamp,
    decisions: BTreeMap<ClusterName, Decision>,
    wake_at: Option<Timestamp>,
    /// Failures and open outcomes over all waves.
    total: Tally,
    halted: Option<WaitingOn>,
    /// The first wave that is not complete.
    blocking: Option<&'a Wave>,
    starts: usize,
    checks: usize,
}

/// What counts against a budget.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    failed: u32,
    /// In flight, or silent after the start, or about to be started.
    open: u32,
}

/// What a wave has left while its members are walked through.
struct Room {
    tally: Tally,
    in_flight: u32,
}

impl<'a> Pass<'a> {
    fn new(
        campaign: &'a Campaign,
        clusters: &'a BTreeMap<ClusterName, Cluster>,
        limits: &'a Limits,
        now: Timestamp,
    ) -> Self {
        let members = campaign.waves.iter().flat_map(|wave| &wave.members);
        let total = tally(members, clusters);
        let checks = clusters
            .values()
            .filter(|cluster| {
                matches!(cluster.preflight, PreflightFact::Running { asked_at }
                    if now.duration_since(asked_at) < limits.check_timeout)
            })
            .count();
        Self {
            campaign,
            clusters,
            limits,
            now,
            decisions: BTreeMap::new(),
            wake_at: None,
            total,
            halted: halted(campaign, clusters, total),
            blocking: None,
            starts: 0,
            checks,
        }
    }

    fn wave(&mut self, wave: &'a Wave) {
        let mut room = Room {
            tally: tally(&wave.members, self.clusters),
            in_flight: in_flight(&wave.members, self.clusters),
        };
        let mut complete = true;
        for name in &wave.members {
            let decision = match self.clusters.get(name) {
                Some(cluster) => self.cluster(wave, &mut room, cluster),
                None => Decision::Wait(WaitingOn::Inventory { missing: "its agent".to_owned() }),
            };
            complete &= matches!(decision, Decision::Nothing | Decision::Settle(_));
            self.decisions.insert(name.clone(), decision);
        }
        if !complete && self.blocking.is_none() {
            self.blocking = Some(wave);
        }
    }

    fn cluster(&mut self, wave: &Wave, room: &mut Room, cluster: &Cluster) -> Decision {
        match &cluster.run {
            Run::Succeeded | Run::Skipped(_) | Run::Unreachable => Decision::Nothing,
            Run::InFlight { .. } => in_flight_decision(cluster),
            Run::Failed(_) => match cluster.request {
                Request::Retry => self.candidate(wave, room, cluster),
                Request::Skip => Decision::Settle(Settled::Skipped(SkipReason::User)),
                Request::None => Decision::Nothing,
            },
            Run::NotStarted => match cluster.request {
                Request::Skip => Decision::Settle(Settled::Skipped(SkipReason::User)),
                Request::None | Request::Retry => match &cluster.plan {
                    PlanFact::AtTarget | PlanFact::NoPath { .. } => Decision::Nothing,
                    PlanFact::Unknown { .. } | PlanFact::Planned | PlanFact::NotConsented => {
                        self.candidate(wave, room, cluster)
                    }
                },
            },
        }
    }

    /// A cluster that is to be started as soon as nothing stands against it.
    fn candidate(&mut self, wave: &Wave, room: &mut Room, cluster: &Cluster) -> Decision {
        match self.campaign.stage {
            Stage::Preview => self.preview(cluster),
            Stage::Preflight => self.preflight(cluster),
            Stage::Rollout => self.rollout(wave, room, cluster),
        }
    }

    fn preview(&mut self, cluster: &Cluster) -> Decision {
        if let Some(waiting) = self.unplanned(cluster) {
            return Decision::Wait(waiting);
        }
        Decision::Wait(WaitingOn::Stage { stage: Stage::Preview })
    }

    /// What keeps a cluster from having a plan, when something does.
    fn unplanned(&mut self, cluster: &Cluster) -> Option<WaitingOn> {
        let PlanFact::Unknown { missing } = &cluster.plan else { return None };
        if let Link::Silent { since } = cluster.link
            && !self.may_return(since)
        {
            return Some(WaitingOn::Agent { since, skip_at: None });
        }
        Some(WaitingOn::Inventory { missing: missing.clone() })
    }

    /// True as long as an agent that is silent since then may be on its way back.
    fn may_return(&mut self, since: Timestamp) -> bool {
        let gone_at = since.checked_add(self.limits.return_grace).unwrap_or(Timestamp::MAX);
        if gone_at > self.now {
            self.wake(gone_at);
        }
        gone_at > self.now
    }

    fn preflight(&mut self, cluster: &Cluster) -> Decision {
        if let Some(waiting) = self.unplanned(cluster) {
            return Decision::Wait(waiting);
        }
        match self.check(cluster, Freshness::Any) {
            Checked::Clear => Decision::Wait(WaitingOn::Stage { stage: Stage::Preflight }),
            Checked::Other(decision) => decision,
        }
    }

    fn rollout(&mut self, wave: &Wave, room: &mut Room, cluster: &Cluster) -> Decision {
        if let Some(waiting) = self.held_by_campaign() {
            return Decision::Wait(waiting);
        }
        if let Some(first) = self.blocking {
            return Decision::Wait(WaitingOn::Wave { wave: first.name.to_string() });
        }
        if let Some(decision) = self.offline(cluster) {
            return decision;
        }
        match &cluster.plan {
            PlanFact::Unknown { missing } => {
                return Decision::Wait(WaitingOn::Inventory { missing: missing.clone() });
            }
            PlanFact::NotConsented => return Decision::Wait(WaitingOn::Consent),
            PlanFact::AtTarget | PlanFact::NoPath { .. } => return Decision::Nothing,
            PlanFact::Planned => {}
        }
        if let Some(holder) = &cluster.holder {
            return Decision::Wait(WaitingOn::Holder { fleet_upgrade: holder.clone() });
        }
        if let Some(waiting) = self.blocked(cluster) {
            return Decision::Wait(waiting);
        }
        if let Some(waiting) = self.no_room(wave, room, cluster) {
            return Decision::Wait(waiting);
        }
        match self.check(cluster, Freshness::Recent) {
            Checked::Clear => {
                if self.starts >= self.limits.starts_max {
                    return Decision::Wait(WaitingOn::Slot { max_concurrent: wave.max_concurrent });
                }
                self.starts += 1;
                self.reserve(room, cluster);
                Decision::Start
            }
            Checked::Other(decision) => {
                // Its slot is kept while the answer is on its way, so that no more clusters are
                // checked than could start.
                self.reserve(room, cluster);
                decision
            }
        }
    }

    fn held_by_campaign(&self) -> Option<WaitingOn> {
        match self.campaign.control {
            Control::Paused => return Some(WaitingOn::Paused),
            Control::Frozen => return Some(WaitingOn::Frozen),
            Control::Cancelled => return Some(WaitingOn::Cancelled),
            Control::Running => {}
        }
        match self.campaign.consent {
            Consent::Stale => return Some(WaitingOn::Consent),
            Consent::Given => {}
        }
        if self.campaign.rollout_since.is_none() {
            return Some(WaitingOn::Stage { stage: Stage::Preflight });
        }
        self.halted.clone()
    }

    fn offline(&mut self, cluster: &Cluster) -> Option<Decision> {
        let Link::Silent { since } = cluster.link else { return None };
        let skip_at = match self.campaign.offline {
            Offline::Wait => None,
            Offline::Skip { deadline } => {
                let from = self.campaign.rollout_since.unwrap_or(since).max(since);
                Some(from.checked_add(deadline).unwrap_or(Timestamp::MAX))
            }
        };
        match skip_at {
            Some(at) if at <= self.now => Some(Decision::Settle(Settled::Unreachable)),
            Some(at) => {
                self.wake(at);
                Some(Decision::Wait(WaitingOn::Agent { since, skip_at }))
            }
            None => Some(Decision::Wait(WaitingOn::Agent { since, skip_at: None })),
        }
    }

    /// A cluster that its checks hold takes no slot: others may go ahead of it.
    fn blocked(&mut self, cluster: &Cluster) -> Option<WaitingOn> {
        let PreflightFact::Blocked { at, checks } = &cluster.preflight else { return None };
        let next = at.checked_add(self.limits.recheck_period).unwrap_or(Timestamp::MAX);
        if next <= self.now {
            return None;
        }
        self.wake(next);
        Some(WaitingOn::Checks { checks: checks.clone(), next_check_at: next })
    }

    fn no_room(&self, wave: &Wave, room: &Room, cluster: &Cluster) -> Option<WaitingOn> {
        if room.in_flight >= wave.max_concurrent {
            return Some(WaitingOn::Slot { max_concurrent: wave.max_concurrent });
        }
        match self.campaign.budget.mode {
            BudgetMode::StopOnBreach => None,
            BudgetMode::Strict => {
                let again = u32::from(matches!(cluster.run, Run::Failed(_)));
                let over = |tally: Tally, max_failures: u32| {
                    let failed = tally.failed.saturating_sub(again);
                    (failed.saturating_add(tally.open) > max_failures).then_some(
                        WaitingOn::FailureBudget { failed, in_flight: tally.open, max_failures },
                    )
                };
                over(room.tally, wave.max_failures).or_else(|| {
                    self.campaign.budget.max_failures.and_then(|max| over(self.total, max))
                })
            }
        }
    }

    fn reserve(&mut self, room: &mut Room, cluster: &Cluster) {
        let again = u32::from(matches!(cluster.run, Run::Failed(_)));
        room.in_flight += 1;
        for tally in [&mut room.tally, &mut self.total] {
            tally.open += 1;
            tally.failed = tally.failed.saturating_sub(again);
        }
    }

    fn check(&mut self, cluster: &Cluster, freshness: Freshness) -> Checked {
        if let Link::Silent { since } = cluster.link {
            return match (&cluster.preflight, freshness) {
                (PreflightFact::Clear { .. }, Freshness::Any) => Checked::Clear,
                (_, Freshness::Any) if self.may_return(since) => {
                    Checked::Other(Decision::Wait(WaitingOn::Preflight))
                }
                _ => Checked::Other(Decision::Wait(WaitingOn::Agent { since, skip_at: None })),
            };
        }
        match &cluster.preflight {
            PreflightFact::Clear { at } => match freshness {
                Freshness::Any => return Checked::Clear,
                Freshness::Recent => {
                    if self.now.duration_since(*at) < self.limits.preflight_fresh {
                        return Checked::Clear;
                    }
                }
            },
            PreflightFact::Running { asked_at } => {
                let until =
                    asked_at.checked_add(self.limits.check_timeout).unwrap_or(Timestamp::MAX);
                if until > self.now {
                    self.wake(until);
                    return Checked::Other(Decision::Wait(WaitingOn::Preflight));
                }
            }
            PreflightFact::Blocked { .. } => {
                if let Some(waiting) = self.blocked(cluster) {
                    return Checked::Other(Decision::Wait(waiting));
                }
            }
            PreflightFact::None => {}
        }
        if self.checks >= self.limits.checks_max {
            return Checked::Other(Decision::Wait(WaitingOn::Preflight));
        }
        self.checks += 1;
        Checked::Other(Decision::Check)
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
    }

    fn finish(self) -> Decisions {
        let halted = self.halted.is_some();
        let waves = report::waves(self.campaign, self.clusters, &self.decisions);
        let counts = report::counts(self.clusters, &self.decisions);
        let phase = report::phase(self.campaign, self.clusters, &self.decisions, halted);
        Decisions { clusters: self.decisions, waves, counts, phase, wake_at: self.wake_at }
    }
}

/// How old a preflight may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// It was clear once.
    Any,
    /// It is recent enough to start on.
    Recent,
}

/// What a cluster's preflight says.
enum Checked {
    Clear,
    Other(Decision),
}

fn in_flight_decision(cluster: &Cluster) -> Decision {
    let silent_since = match cluster.link {
        Link::Connected => None,
        Link::Silent { since } => Some(since),
    };
    match (cluster.request, silent_since) {
        // Only one that is not heard can be left out under way: the others are told to stop by
        // freezing or cancelling. Its reservation stays, for it may still fail.
        (Request::Skip, Some(_)) => Decision::Settle(Settled::Skipped(SkipReason::UserInFlight)),
        (Request::Skip | Request::None | Request::Retry, silent_since) => {
            Decision::InFlight { silent_since }
        }
    }
}

fn tally<'a>(
    members: impl IntoIterator<Item = &'a ClusterName>,
    clusters: &BTreeMap<ClusterName, Cluster>,
) -> Tally {
    let mut tally = Tally::default();
    for cluster in members.into_iter().filter_map(|name| clusters.get(name)) {
        match &cluster.run {
            Run::Failed(_) => tally.failed += 1,
            Run::InFlight { .. } | Run::Skipped(SkipReason::UserInFlight) => tally.open += 1,
            Run::NotStarted
            | Run::Succeeded
            | Run::Skipped(SkipReason::User | SkipReason::Cancelled)
            | Run::Unreachable => {}
        }
    }
    tally
}

fn in_flight(members: &[ClusterName], clusters: &BTreeMap<ClusterName, Cluster>) -> u32 {
    let busy = |name: &&ClusterName| {
        clusters.get(*name).is_some_and(|cluster| matches!(cluster.run, Run::InFlight { .. }))
    };
    u32::try_from(members.iter().filter(busy).count()).unwrap_or(u32::MAX)
}

/// The budget that is spent, when one is.
///
/// A retry that the user asked for withdraws its failure: that is what un-halts a campaign.
fn halted(
    campaign: &Campaign,
    clusters: &BTreeMap<ClusterName, Cluster>,
    total: Tally,
) -> Option<WaitingOn> {
    for wave in &campaign.waves {
        let failed = counted_failures(&wave.members, clusters);
        if failed > wave.max_failures {
            let (max_failures, wave) = (wave.max_failures, Some(wave.name.to_string()));
            return Some(WaitingOn::Halted { failed, max_failures, wave });
        }
    }
    let max_failures = campaign.budget.max_failures?;
    let members = campaign.waves.iter().flat_map(|wave| &wave.members);
    let failed = counted_failures(members, clusters).min(total.failed);
    (failed > max_failures).then_some(WaitingOn::Halted { failed, max_failures, wave: None })
}

fn counted_failures<'a>(
    members: impl IntoIterator<Item = &'a ClusterName>,
    clusters: &BTreeMap<ClusterName, Cluster>,
) -> u32 {
    let failed = |name: &&ClusterName| {
        clusters.get(*name).is_some_and(|cluster| {
            matches!(cluster.run, Run::Failed(_)) && cluster.request != Request::Retry
        })
    };
    u32::try_from(members.into_iter().filter(failed).count()).unwrap_or(u32::MAX)
}
