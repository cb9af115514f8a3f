//! What happened, line by line, from the difference of two statuses.

use std::collections::BTreeSet;

use wavelift_api::{
    FleetUpgradeStatus,
    convert::cut,
    fleet_upgrade::{ActionType, HistoryEntry},
};
use wavelift_core::{
    campaign::{Control, Phase, WaveState},
    check::OnOutcome,
    ids::ClusterName,
};

use super::super::{
    apply::{Pass, unfrozen},
    consent::{Word, covers},
    observe::Member,
};

/// The reason of lines about plans that go on though they changed.
const CHANGED: &str = "PlanChanged";
/// Clusters that one line names.
const NAMES_MAX: usize = 5;
/// Lines kept, the newest.
const LINES_MAX: usize = 50;

/// Adds a line for each thing that happened since the status before.
pub(super) fn note(pass: &Pass, changed: &BTreeSet<ClusterName>, status: &mut FleetUpgradeStatus) {
    let old = &pass.subject.status;
    let mut lines: Vec<(&str, String)> = vec![];
    preparation(pass, status, &mut lines);
    launch(pass, status, &mut lines);
    if !changed.is_empty() {
        lines.push((CHANGED, changed_message(changed)));
    }
    waves(old, status, &mut lines);
    steering(pass, &mut lines);
    actions(pass, status, &mut lines);
    if let (None, Some(_)) = (old.completion_time, status.completion_time) {
        lines.push((pass.decisions.phase.as_str(), ready_message(status)));
    }
    for (reason, message) in lines {
        let message = cut(&message, 1024);
        status.history.push(HistoryEntry { time: pass.now, reason: reason.to_owned(), message });
    }
    let surplus = status.history.len().saturating_sub(LINES_MAX);
    status.history.drain(..surplus);
}

/// The lines that `new` has and `old` has not.
pub(super) fn fresh<'a>(
    old: &FleetUpgradeStatus,
    new: &'a FleetUpgradeStatus,
) -> Vec<&'a HistoryEntry> {
    new.history.iter().filter(|entry| !old.history.contains(entry)).collect()
}

fn is_noted(status: &FleetUpgradeStatus, reason: &str) -> bool {
    status.history.iter().any(|entry| entry.reason == reason)
}

fn preparation(pass: &Pass, status: &FleetUpgradeStatus, lines: &mut Vec<(&str, String)>) {
    let clusters = pass.observed.members.len();
    match pass.decisions.phase {
        Phase::Previewed if !is_noted(status, "Previewed") => {
            lines.push(("Previewed", format!("the preview of {clusters} clusters is complete")));
        }
        Phase::Preflighted if !is_noted(status, "PreflightDone") => {
            lines
                .push(("PreflightDone", format!("the checks of {clusters} clusters are answered")));
        }
        Phase::Previewed
        | Phase::Preflighted
        | Phase::Planning
        | Phase::Preflighting
        | Phase::AwaitingConsent
        | Phase::Running
        | Phase::Paused
        | Phase::Frozen
        | Phase::Halting
        | Phase::Succeeded
        | Phase::SucceededWithFailures
        | Phase::Failed
        | Phase::Cancelled => {}
    }
}

fn launch(pass: &Pass, status: &FleetUpgradeStatus, lines: &mut Vec<(&str, String)>) {
    if status.epoch <= pass.subject.status.epoch {
        return;
    }
    let word = status.consented_digest.as_deref().unwrap_or("any plan within the targets");
    let is_first = pass.subject.status.rollout_start_time.is_none();
    let reason = if is_first { "Launched" } else { "ConsentGiven" };
    lines.push((reason, format!("consent to {word}")));
    let policy = pass.spec.policy;
    if policy.on_fail == OnOutcome::Proceed || policy.on_unknown == OnOutcome::Proceed {
        let spec = pass.subject.fleet.spec.preflight.as_ref();
        let why = spec.and_then(|policy| policy.reason.clone()).unwrap_or_default();
        lines.push(("ProceedsPastChecks", format!("the user goes on past checks: {why}")));
    }
}

/// Takes in whose plans are others now than those that were launched, and go on as the user allowed:
/// they are in `changed` until a line about them is durable, for their new plan may be long before.
pub(super) fn note_changed(pass: &Pass, changed: &mut BTreeSet<ClusterName>) {
    if pass.word == Word::Standing && pass.spec.word.is_some() {
        let epoch = pass.subject.status.epoch;
        let goes_on = |member: &Member| {
            let changed = unfrozen(member).zip(member.part.as_ref());
            changed.is_some_and(|(plan, part)| covers(part, plan, &pass.spec, epoch))
        };
        let members = pass.observed.members.iter().filter(|(_, member)| goes_on(member));
        changed.extend(members.map(|(name, _)| name.clone()));
    }
    let message = changed_message(changed);
    let newest = pass.subject.status.history.iter().rev().take(5);
    if newest.into_iter().any(|told| told.reason == CHANGED && told.message == message) {
        changed.clear();
    }
}

fn changed_message(changed: &BTreeSet<ClusterName>) -> String {
    let some: Vec<&str> = changed.iter().take(NAMES_MAX).map(ClusterName::as_str).collect();
    let more = match changed.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the plan has changed within onPlanChange and goes on: {}{more}", some.join(", "))
}

fn waves(old: &FleetUpgradeStatus, status: &FleetUpgradeStatus, lines: &mut Vec<(&str, String)>) {
    for wave in &status.waves {
        let before = old.waves.iter().find(|known| known.name == wave.name);
        let before = before.map_or("", |known| known.state.as_str());
        let name = &wave.name;
        // Once each: after a change of leader a wave may look open until its agents are back.
        let is = |state: WaveState, reason: &str| {
            let begin = format!("wave {name} ");
            let known =
                |entry: &HistoryEntry| entry.reason == reason && entry.message.starts_with(&begin);
            wave.state == state.as_str() && before != wave.state && !old.history.iter().any(known)
        };
        if is(WaveState::Running, "WaveStarted") {
            lines.push(("WaveStarted", format!("wave {name} of {} clusters", wave.clusters)));
        } else if is(WaveState::Complete, "WaveComplete") {
            let (done, failed) = (wave.succeeded, wave.failed);
            let message = format!(
                "wave {name} is complete: {done} of {} done, {failed} failed",
                wave.clusters
            );
            lines.push(("WaveComplete", message));
        }
    }
}

/// What the user did with the campaign, and a budget that is spent.
fn steering(pass: &Pass, lines: &mut Vec<(&str, String)>) {
    let old = pass.subject.status.phase.as_deref();
    let phase = pass.decisions.phase;
    if old == Some(phase.as_str()) {
        return;
    }
    let was = |phase: Phase| old == Some(phase.as_str());
    match phase {
        Phase::Paused => lines.push(("Paused", "no further cluster starts".to_owned())),
        Phase::Frozen => {
            lines.push(("Frozen", "running clusters stop at the next safe point".to_owned()));
        }
        Phase::Halting if pass.spec.control == Control::Cancelled => {
            lines.push(("Cancelling", "running clusters stop at the next safe point".to_owned()));
        }
        Phase::Halting => {
            let why = halted(pass).unwrap_or_else(|| "the failure budget is spent".to_owned());
            lines.push(("Halted", why));
        }
        Phase::Running if was(Phase::Paused) || was(Phase::Frozen) => {
            lines.push(("Resumed", "clusters start again".to_owned()));
        }
        Phase::Running if was(Phase::Halting) || was(Phase::Failed) => {
            lines.push(("Resumed", "the failure budget holds again".to_owned()));
        }
        Phase::Running
        | Phase::Planning
        | Phase::Previewed
        | Phase::Preflighting
        | Phase::Preflighted
        | Phase::AwaitingConsent
        | Phase::Succeeded
        | Phase::SucceededWithFailures
        | Phase::Failed
        | Phase::Cancelled => {}
    }
}

/// The sentence of the spent budget, when it is spent.
pub(super) fn halted(pass: &Pass) -> Option<String> {
    use wavelift_core::campaign::{Decision, WaitingOn};
    pass.decisions.clusters.values().find_map(|decision| match decision {
        Decision::Wait(waiting @ WaitingOn::Halted { .. }) => Some(waiting.to_string()),
        Decision::Wait(_)
        | Decision::Start
        | Decision::Check
        | Decision::Settle(_)
        | Decision::InFlight { .. }
        | Decision::Nothing => None,
    })
}

fn actions(pass: &Pass, status: &FleetUpgradeStatus, lines: &mut Vec<(&str, String)>) {
    let old = &pass.subject.status.done_actions;
    for id in status.done_actions.iter().filter(|id| !old.contains(id)) {
        let Some(action) = pass.spec.actions.iter().find(|action| action.id.as_str() == id) else {
            continue;
        };
        let cluster = &action.cluster;
        let is_retry = pass.facts.retries.get(cluster).is_some_and(|retry| retry.as_str() == id);
        let run = pass.observed.members.get(cluster).map(|member| &member.run);
        let is_skipped = matches!(run, Some(wavelift_core::campaign::Run::Skipped(_)));
        lines.push(match action.kind {
            ActionType::Retry if is_retry => ("Retried", format!("{cluster} is tried again")),
            ActionType::Skip if is_skipped => ("Skipped", format!("{cluster} is left out")),
            ActionType::Retry | ActionType::Skip => {
                ("ActionNotNeeded", format!("action {id}: nothing to do for {cluster}"))
            }
        });
    }
}

fn ready_message(status: &FleetUpgradeStatus) -> String {
    let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
    ready.map(|condition| condition.message.clone()).unwrap_or_default()
}
