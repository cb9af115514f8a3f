//! What a pass leaves behind: the FleetUpgrade's status, written whole and only when it changed.

pub(super) mod content;
mod history;

use std::collections::BTreeSet;

use tokio::time::Instant;
use wavelift_api::{FleetUpgradeStatus, convert::cut, shared};
use wavelift_core::{
    campaign::{Phase, Run, SkipReason, Summary},
    conditions::{self, FleetFacts, fleet_upgrade},
    ids::ClusterName,
};

use super::{
    Commands, Driver,
    apply::{Pass, unfrozen},
    consent::Word,
    memory::Urgency,
    observe::Subject,
    statuses, validate,
};

/// Names written ahead at once, and ids of done actions.
const LIST_MAX: usize = 500;

/// The last pass over a campaign, as it is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(super) subject: Subject,
    /// As it is, or is about to be, written.
    pub(super) status: FleetUpgradeStatus,
    /// Absent for one that cannot be carried out as it is written.
    pub(super) pass: Option<Pass>,
}

impl<C: Commands> Driver<C> {
    /// Reports a pass.
    pub(super) fn report(&mut self, pass: Pass) {
        let subject = pass.subject.clone();
        if let Some(memory) = self.memory.campaigns.get_mut(&subject.uid) {
            history::note_changed(&pass, &mut memory.changed);
        }
        let status = self.next_status(&pass);
        let is_open = pass.observed.members.values().any(|member| match &member.run {
            Run::InFlight { .. } | Run::Skipped(SkipReason::UserInFlight) => true,
            Run::NotStarted
            | Run::Succeeded
            | Run::Failed(_)
            | Run::Skipped(SkipReason::User | SkipReason::Cancelled)
            | Run::Unreachable => false,
        });
        let urgency = self.urgency(&pass, &status);
        let is_blank = pass
            .observed
            .members
            .values()
            .any(|member| !member.is_begun() && member.made().is_none());
        let is_closed = subject.is_over() && !is_open;
        if let Some(memory) = self.memory.campaigns.get_mut(&subject.uid) {
            memory.is_closed = is_closed;
            memory.is_quiet = is_closed && !is_blank;
        }
        self.write_status(&subject, &status, urgency);
        if let Some(memory) = self.memory.campaigns.get_mut(&subject.uid) {
            memory.shown = Some(Shown { subject, status, pass: Some(pass) });
        }
    }

    /// Reports a campaign that cannot be carried out as it is written.
    pub(super) fn report_broken(&mut self, subject: &Subject, error: &validate::Error) {
        let why = error.to_string();
        let facts = FleetFacts {
            phase: Phase::Planning,
            stage: subject.fleet.spec.stage.into(),
            summary: Summary::default(),
            unplanned: 0,
            no_path: 0,
            preflight: None,
            halted: None,
            broken: Some(&why),
        };
        let mut status = subject.status.clone();
        status.observed_generation = subject.fleet.metadata.generation;
        status.term = self.term();
        status.phase = Some(Phase::Planning.as_str().to_owned());
        let now = self.context.clock.now();
        status.conditions = merged(subject, fleet_upgrade(&facts), now);
        self.write_status(subject, &status, Urgency::Gate);
        if let Some(memory) = self.memory.campaigns.get_mut(&subject.uid) {
            memory.wake_at = None;
            memory.shown = Some(Shown { subject: subject.clone(), status, pass: None });
        }
    }

    fn term(&self) -> i64 {
        i64::try_from(self.context.claim.term().0).unwrap_or(i64::MAX)
    }

    /// The status after this pass.
    fn next_status(&self, pass: &Pass) -> FleetUpgradeStatus {
        let old = &pass.subject.status;
        if pass.subject.is_over() {
            // What was written stands, whoever leads and however little is known now.
            return old.clone();
        }
        let mut status = self.content(pass);
        if self.is_adopted(&pass.subject) {
            self.write_ahead(pass, &mut status);
            enter(pass, &mut status);
        }
        status.term = self.term();
        let none = BTreeSet::new();
        let memory = self.memory.campaigns.get(&pass.subject.uid);
        history::note(pass, memory.map_or(&none, |memory| &memory.changed), &mut status);
        status
    }

    /// Names that are to be started, and those whose start is done.
    fn write_ahead(&self, pass: &Pass, status: &mut FleetUpgradeStatus) {
        let subject = &pass.subject;
        let is_open = |name: &&ClusterName| {
            let member = pass.observed.members.get(*name);
            // Without a ClusterUpgrade there is nothing to start any more: somebody deleted it.
            member.and_then(|member| member.part.as_ref()).is_some_and(|part| part.needs_start())
        };
        let mut starting: BTreeSet<ClusterName> =
            subject.starting.iter().filter(is_open).cloned().collect();
        let is_consented = matches!(pass.word, Word::Standing | Word::New);
        let pending = self.memory.campaigns.get(&subject.uid).filter(|_| is_consented);
        let pending = pending.map(|memory| &memory.pending);
        let mut done = subject.status.done_actions.clone();
        for name in pending.into_iter().flatten() {
            if starting.len() >= LIST_MAX {
                break;
            }
            starting.insert(name.clone());
            done.extend(pass.facts.retries.get(name).map(ToString::to_string));
        }
        done.extend(pass.facts.spent.iter().map(ToString::to_string));
        if done.len() > LIST_MAX {
            done.retain(|id| pass.spec.actions.iter().any(|action| action.id.as_str() == id));
            done.truncate(LIST_MAX);
        }
        status.starting = starting.iter().map(ToString::to_string).collect();
        status.done_actions = done;
    }

    fn urgency(&self, pass: &Pass, status: &FleetUpgradeStatus) -> Urgency {
        let old = &pass.subject.status;
        let is_gate = old.term != status.term
            || old.epoch != status.epoch
            || old.phase != status.phase
            || old.observed_generation != status.observed_generation
            || old.done_actions != status.done_actions
            || status.starting.iter().any(|name| !old.starting.contains(name))
            || self.is_end_waiting(pass);
        if is_gate { Urgency::Gate } else { Urgency::Report }
    }

    /// Whether an agent's last word waits until its cluster has left the list of starts.
    fn is_end_waiting(&self, pass: &Pass) -> bool {
        pass.subject.starting.iter().any(|name| {
            let member = pass.observed.members.get(name);
            let track = member.and_then(|member| self.memory.tracks.get(&member.key));
            let fence = member.and_then(|member| member.part.as_ref()).map(|part| &part.fence);
            let newest = track.zip(fence).and_then(|(track, fence)| track.heard(fence));
            newest.is_some_and(|newest| {
                !newest.is_acknowledged && statuses::is_terminal(newest.status.state)
            })
        })
    }

    fn write_status(&mut self, subject: &Subject, status: &FleetUpgradeStatus, urgency: Urgency) {
        let now = Instant::now();
        let Some(memory) = self.memory.campaigns.get_mut(&subject.uid) else { return };
        memory.report_at = None;
        if *status == subject.status || !memory.write.is_free(now) {
            return;
        }
        if let Err(wait) = memory.take_token(urgency, now) {
            memory.report_at = Some(now + wait);
            return;
        }
        let fresh = history::fresh(&subject.status, status);
        for entry in fresh {
            self.context.events.publish(&subject.fleet, &entry.reason, &entry.message);
        }
        let mut object = (*subject.fleet).clone();
        object.status = Some(status.clone());
        let (key, uid) = (subject.key.clone(), subject.uid.clone());
        self.write_fleet(&key, &uid, object);
    }
}

/// Enters Rollout, or takes a new consent: every plan is frozen, so the epoch may be raised.
fn enter(pass: &Pass, status: &mut FleetUpgradeStatus) {
    let is_frozen = pass.observed.members.values().all(|member| unfrozen(member).is_none());
    if pass.word != Word::New || !is_frozen {
        return;
    }
    status.epoch = pass.subject.status.epoch.saturating_add(1);
    status.consented_digest.clone_from(&pass.spec.word);
    status.rollout_start_time = status.rollout_start_time.or(Some(pass.now));
}

/// Fresh conditions with the history of the old ones.
fn merged(
    subject: &Subject,
    fresh: Vec<conditions::Fresh>,
    now: jiff::Timestamp,
) -> shared::Conditions {
    let old: Vec<_> = subject.status.conditions.iter().cloned().map(Into::into).collect();
    let generation = subject.fleet.metadata.generation.unwrap_or(0);
    conditions::merge(&old, fresh, generation, now)
        .into_iter()
        .take(16)
        .map(|mut condition| {
            condition.message = cut(&condition.message, 4_096);
            condition.into()
        })
        .collect()
}

/// The conditions of a pass.
fn conditions_of(pass: &Pass, facts: &FleetFacts<'_>) -> shared::Conditions {
    merged(&pass.subject, fleet_upgrade(facts), pass.now)
}
