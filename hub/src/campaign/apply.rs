//! One pass over one campaign, and what is done about what was decided.
//!
//! A start has four steps: its name is written ahead into the FleetUpgrade's status, its
//! ClusterUpgrade is written as started, the agent is told, the name leaves the list with the next
//! status. Every step finds by itself where the one before left off.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use tracing::warn;
use wavelift_api::{
    cluster_upgrade::{ClusterStateName, SkipReasonName},
    convert::check_result,
    shared::PreflightReport,
};
use wavelift_catalog::planner::Planned;
use wavelift_core::{
    campaign::{Control, Decision, Decisions, Phase, Run, Settled, SkipReason, Stage, decide},
    check::{self, Verdict},
    ids::{ClusterName, Uid},
    plan::Plan,
};

use super::{
    Commands, Driver,
    consent::{self, Taken, Word, covers, word},
    facts::{self, Facts, durable_report, newest_answer},
    observe::{self, Member, Observed, Sources, Subject},
    part::{self, Part},
    statuses,
    validate::{self, Spec},
    writes::Verb,
};
use crate::{
    link::{ControlAction, UpgradeKey},
    preview::Preview,
};

/// Preflight results of one part that are written: the first, and when a hold begins or ends.
const PREFLIGHTS_MAX: u32 = 3;

/// A pass, as far as it has come.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) subject: Subject,
    pub(super) spec: Spec,
    pub(super) observed: Observed,
    pub(super) word: Word,
    pub(super) facts: Facts,
    pub(super) decisions: Decisions,
    pub(super) now: Timestamp,
    /// What the plans change.
    pub(super) preview: Arc<Preview>,
}

impl<C: Commands> Driver<C> {
    /// Looks at one campaign and does what is to be done.
    pub(super) fn pass(&mut self, uid: &Uid) {
        let Some(subject) = self.subject(uid) else { return };
        if u64::try_from(subject.status.term).is_ok_and(|term| term > self.context.claim.term().0) {
            warn!(term = subject.status.term, "another hub leads: its term is in a campaign");
            self.is_deposed = true;
            return;
        }
        let memory = self.memory.campaigns.entry(uid.clone()).or_default();
        // After the end it is enough to look now and then, until there is nothing left to see.
        let is_seen = memory.is_quiet || (memory.is_closed && !self.is_sweep);
        if is_seen && subject.is_over() {
            return;
        }
        let spec = match validate::spec(&subject.fleet) {
            Ok(spec) => spec,
            Err(error) => return self.report_broken(&subject, &error),
        };
        self.drop_unwritten(&subject, &spec);
        let observed = self.observe(&subject, &spec);
        if observed.members.is_empty() {
            return self.report_broken(&subject, &validate::Error::NoCluster);
        }
        let taken = Taken {
            is_entered: subject.status.rollout_start_time.is_some(),
            digest: consent::some(subject.status.consented_digest.as_deref()),
        };
        let word = word(spec.stage, spec.word.as_deref(), taken, &observed.digest);
        // A start that was decided under a word which no longer stands is decided anew.
        if word == Word::Stale
            && let Some(memory) = self.memory.campaigns.get_mut(uid)
        {
            memory.pending.clear();
        }
        let facts = facts::facts(&subject, &spec, &observed, word, &self.memory);
        let now = self.context.clock.now();
        let limits = &self.context.settings.limits;
        let decisions = decide(&facts.campaign, &facts.clusters, limits, now);
        let decisions = settled_last(decisions, |name| self.is_lost(&observed, name));
        let preview = self.preview(&observed, &facts);
        let pass = Pass { subject, spec, observed, word, facts, decisions, now, preview };
        if pass.subject.is_over() {
            self.listen(&pass);
        } else if self.is_adopted(&pass.subject) {
            self.carry_out(&pass);
        }
        if let Some(memory) = self.memory.campaigns.get_mut(uid) {
            memory.wake_at = pass.decisions.wake_at;
        }
        self.report(pass);
    }

    /// Whether a cluster has neither a ManagedCluster nor a ClusterUpgrade: there may be no
    /// namespace to write one in.
    fn is_lost(&self, observed: &Observed, name: &ClusterName) -> bool {
        let part = observed.members.get(name).and_then(|member| member.part.as_ref());
        let managed = self.clusters.get(name).and_then(|known| known.managed.as_ref());
        part.is_none() && managed.is_none()
    }

    fn subject(&self, uid: &Uid) -> Option<Subject> {
        let (key, fleet) = self.objects.campaign(uid)?;
        // One that is being deleted is carried on by nobody: its parts are told to stop.
        if fleet.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let status = fleet.status.clone().unwrap_or_default();
        let starting =
            status.starting.iter().filter_map(|name| ClusterName::try_from(name.as_str()).ok());
        Some(Subject {
            uid: uid.clone(),
            key: key.clone(),
            starting: starting.collect(),
            fleet: Arc::clone(fleet),
            status,
        })
    }

    /// Whether this leader's term is in the campaign's status: nothing is done before.
    pub(super) fn is_adopted(&self, subject: &Subject) -> bool {
        u64::try_from(subject.status.term) == Ok(self.context.claim.term().0)
    }

    /// What was decided but not written ahead yet is decided anew when the user steers.
    fn drop_unwritten(&mut self, subject: &Subject, spec: &Spec) {
        let goes_on = spec.control == Control::Running
            && spec.stage == Stage::Rollout
            && self.is_adopted(subject);
        if let Some(memory) = self.memory.campaigns.get_mut(&subject.uid) {
            if !goes_on {
                memory.pending.clear();
            }
            memory.pending.retain(|name| !subject.starting.contains(name));
        }
    }

    fn observe(&mut self, subject: &Subject, spec: &Spec) -> Observed {
        let mut sources = Sources {
            clusters: &self.clusters,
            catalogs: &self.catalogs,
            planning: &mut self.planning,
            objects: &self.objects,
            memory: &self.memory,
        };
        observe::observe(&mut sources, subject, spec)
    }

    fn carry_out(&mut self, pass: &Pass) {
        for (name, decision) in &pass.decisions.clusters {
            if *decision == Decision::Start
                && let Some(memory) = self.memory.campaigns.get_mut(&pass.subject.uid)
            {
                memory.pending.insert(name.clone());
            }
        }
        for (name, member) in &pass.observed.members {
            if let Some((verb, object)) = self.wanted(pass, name, member) {
                self.write_part(&member.key, verb, object);
            } else if let Some(object) = self.preflight_word(pass, member)
                && self.write_part(&member.key, Verb::ReplaceStatus, object)
            {
                self.memory.tracks.entry(member.key.clone()).or_default().preflights += 1;
            }
            self.tell(pass, name, member);
        }
    }

    /// After the end nothing is begun; what still comes from the agents is kept.
    fn listen(&mut self, pass: &Pass) {
        for member in pass.observed.members.values() {
            let Some(part) = &member.part else { continue };
            if let Some(object) = self.heard_word(part, &member.key, false) {
                self.write_part(&member.key, Verb::ReplaceStatus, object);
            }
            if let Some(session) = member.session
                && part.is_started()
                && part.is_in_flight()
            {
                self.assign(&member.key, part, session, ControlAction::Cancel);
            }
        }
    }

    /// What is to be written about a cluster, the most urgent first.
    fn wanted(
        &self,
        pass: &Pass,
        name: &ClusterName,
        member: &Member,
    ) -> Option<(Verb, wavelift_api::ClusterUpgrade)> {
        let is_ahead = pass.subject.starting.contains(name);
        if let Some(part) = &member.part {
            if is_ahead && part.needs_start() {
                let wave = pass.observed.wave_of(name);
                return Some((Verb::Replace, part.started(pass.subject.status.epoch, wave)));
            }
            if let Some(status) = self.heard_word(part, &member.key, is_ahead) {
                return Some((Verb::ReplaceStatus, status));
            }
        }
        if let Some(Decision::Settle(settled)) = pass.decisions.clusters.get(name) {
            return Some(settle(pass, member, *settled));
        }
        freeze(pass, member)
    }

    /// The agent's newest word, when it has to be made durable.
    ///
    /// An end waits until the cluster's name has left `status.starting`: a failure beside a name
    /// in that list means a retry that was not begun.
    pub(super) fn heard_word(
        &self,
        part: &Part,
        key: &UpgradeKey,
        is_ahead: bool,
    ) -> Option<wavelift_api::ClusterUpgrade> {
        let track = self.memory.tracks.get(key)?;
        let newest = track.heard(&part.fence).filter(|newest| !newest.is_acknowledged)?;
        if part.is_final() || !statuses::is_transition(part, &newest.status) {
            return None;
        }
        if is_ahead && statuses::is_terminal(newest.status.state) {
            return None;
        }
        let report = newest_answer(part, Some(track)).and_then(|(at, findings)| {
            let durable = durable_report(part).is_some_and(|report| report.observed_time >= at);
            let policy = part.spec().preflight.clone().unwrap_or_default();
            (!durable).then(|| report_of(at, &findings, policy.into()))
        });
        let now = self.context.clock.now();
        let mut object = part.object.clone();
        object.status = Some(statuses::durable(part, &newest.status, newest.revision, report, now));
        Some(object)
    }

    /// A preflight that has to be made durable: the first, and one that changes the verdict.
    fn preflight_word(&self, pass: &Pass, member: &Member) -> Option<wavelift_api::ClusterUpgrade> {
        let part = member.part.as_ref().filter(|_| member.run == Run::NotStarted)?;
        let track = self.memory.tracks.get(&member.key)?;
        let answer = track.answer.as_ref().filter(|a| a.plan_digest == part.plan_digest)?;
        let policy = pass.spec.policy;
        let verdict = check::verdict(&answer.findings, policy);
        let is_held = |verdict: &Verdict| matches!(verdict, Verdict::Blocked { .. });
        if let Some(report) = durable_report(part) {
            let known: Vec<_> = report.results.iter().map(check::Finding::from).collect();
            let is_same = is_held(&check::verdict(&known, policy)) == is_held(&verdict);
            if is_same || track.preflights >= PREFLIGHTS_MAX {
                return None;
            }
        }
        let (state, message) = match &verdict {
            Verdict::Clear { .. } => {
                (ClusterStateName::Ready, "nothing stands in the way".to_owned())
            }
            Verdict::Blocked { checks, .. } => {
                (ClusterStateName::Blocked, format!("held by {}", checks.join(", ")))
            }
        };
        let report = report_of(answer.at, &answer.findings, policy);
        let mut object = part.object.clone();
        object.status = Some(statuses::preflighted(part, state, &message, report, pass.now));
        Some(object)
    }
}

/// A campaign has not ended before what was decided about the last of its clusters is durable, but
/// for clusters that are lost, and unless it is cancelled.
fn settled_last(mut decisions: Decisions, is_lost: impl Fn(&ClusterName) -> bool) -> Decisions {
    let is_settling = |(name, decision): (&ClusterName, &Decision)| {
        matches!(decision, Decision::Settle(_)) && !is_lost(name)
    };
    let may_wait = decisions.phase.is_ended() && decisions.phase != Phase::Cancelled;
    if may_wait && decisions.clusters.iter().any(is_settling) {
        decisions.phase = Phase::Running;
    }
    decisions
}

/// The plan of a cluster of the pass.
pub(super) fn member_plan<'a>(pass: &'a Pass, cluster: &ClusterName) -> Option<&'a Plan> {
    pass.observed.members.get(cluster).and_then(Member::plan)
}

/// What is written for a cluster that is left out.
fn settle(pass: &Pass, member: &Member, settled: Settled) -> (Verb, wavelift_api::ClusterUpgrade) {
    let Subject { uid, key, fleet, status, .. } = &pass.subject;
    let Some(part) = &member.part else {
        let object = part::create(fleet, (key, uid), &member.key, &Plan::default(), status.epoch);
        return (Verb::Create, object);
    };
    let (state, reason, message) = match settled {
        Settled::Unreachable => {
            (ClusterStateName::Unreachable, None, "left out: its agent was not heard from in time")
        }
        Settled::Skipped(reason) => {
            let message = match reason {
                SkipReason::User => "left out by the user",
                SkipReason::UserInFlight => {
                    "left out by the user while it was in flight and not heard"
                }
                SkipReason::Cancelled => "left out: the campaign was cancelled",
            };
            (ClusterStateName::Skipped, Some(SkipReasonName::from(reason)), message)
        }
    };
    let mut object = part.object.clone();
    object.status = Some(statuses::settled(part, state, reason, message, pass.now));
    (Verb::ReplaceStatus, object)
}

/// The epoch under which a cluster's plan is frozen now; `None` where it is not.
fn freezing_epoch(pass: &Pass, member: &Member, plan: &Plan) -> Option<i64> {
    let epoch = pass.subject.status.epoch;
    match (pass.spec.stage, pass.word) {
        (Stage::Preflight, _) => Some(epoch),
        (Stage::Rollout, Word::New) => Some(epoch.saturating_add(1)),
        (Stage::Rollout, Word::Standing) => {
            let part = member.part.as_ref();
            let is_covered = part.is_some_and(|part| covers(part, plan, &pass.spec, epoch));
            (pass.spec.word.is_none() || is_covered).then_some(epoch)
        }
        (Stage::Preview, _) | (Stage::Rollout, Word::NotAsked | Word::Stale) => None,
    }
}

/// Freezes a cluster's plan in its ClusterUpgrade.
fn freeze(pass: &Pass, member: &Member) -> Option<(Verb, wavelift_api::ClusterUpgrade)> {
    let plan = unfrozen(member)?;
    let epoch = freezing_epoch(pass, member, plan)?;
    let Subject { uid, key, fleet, .. } = &pass.subject;
    Some(match &member.part {
        None => (Verb::Create, part::create(fleet, (key, uid), &member.key, plan, epoch)),
        Some(part) => (Verb::Replace, part.replanned(plan, epoch)),
    })
}

/// The plan of a cluster that is not frozen as it would be made now.
pub(super) fn unfrozen(member: &Member) -> Option<&Plan> {
    if member.is_begun() {
        return None;
    }
    let Some(Planned::Plan(plan)) = member.made() else { return None };
    let is_frozen = member.part.as_ref().is_some_and(|part| part.plan_digest == plan.digest());
    (!is_frozen).then_some(plan)
}

/// Findings as the API keeps them.
pub(super) fn report_of(
    at: Timestamp,
    findings: &[check::Finding],
    policy: check::Policy,
) -> PreflightReport {
    let mut seen = BTreeSet::new();
    let results = findings
        .iter()
        .map(|finding| check_result(finding, policy))
        .filter(|result| seen.insert(result.check.clone()))
        .take(64)
        .collect();
    PreflightReport { observed_time: at, results }
}
