//! One cluster on the board.

use wavelift_api::{
    ClusterUpgradeStatus,
    cluster_upgrade::{ClusterStateName, PlanSpec, StepSpec, StepStateName, StepStatus},
    live::{CheckTally, ClusterRow, ClusterView, MoveView, StepView, WaitingView},
};
use wavelift_core::{
    campaign::{Decision, PlanFact},
    ids::ClusterName,
    plan::Plan,
    state::ClusterState,
};

use super::{
    super::{
        Commands, Driver,
        apply::{Pass, report_of},
        facts::newest_answer,
        memory::Track,
        observe::Member,
        part::Part,
        report::content,
    },
    agent_state, last_heard, state_of,
};

impl<C: Commands> Driver<C> {
    pub(super) fn cluster(
        &self,
        pass: &Pass,
        wave: &str,
        name: &ClusterName,
        member: &Member,
    ) -> ClusterView {
        let track = self.memory.tracks.get(&member.key);
        let known = self.clusters.get(name);
        let part = member.part.as_deref();
        let status = newest_status(member, track);
        let plan = member.plan();
        let preflight = part.and_then(|part| newest_answer(part, track));
        let preflight = preflight.map(|(at, findings)| report_of(at, &findings, pass.spec.policy));
        let failure = status.and_then(|status| status.failure.clone());
        let (message, waiting_on) = sentence(pass, name, status);
        let shown_since = track.and_then(|track| track.shown_since);
        let row = ClusterRow {
            name: name.to_string(),
            wave: wave.to_owned(),
            state: ClusterStateName::from(state_of(pass, name).unwrap_or(ClusterState::Pending)),
            waiting_on,
            message,
            since_time: shown_since.map(|(_, since)| since),
            moves: plan.map(moves).unwrap_or_default(),
            step: step(member, status, track),
            percent: percent(member, status, track),
            agent: agent_state(known),
            last_heard_time: known.and_then(|known| last_heard(known, self.step_seconds())),
            checks: preflight.as_ref().map(CheckTally::of),
            failure_reason: failure.as_ref().map(|failure| failure.reason.clone()),
        };
        let session = known.and_then(|known| known.session.as_ref());
        let uid = known.and_then(|known| known.managed.as_ref());
        ClusterView {
            row,
            uid: uid.map(|managed| managed.uid.to_string()),
            epoch: part.filter(|part| part.is_started()).map_or(0, |part| part.spec().epoch),
            attempt: part.map_or(0, |part| part.spec().attempt),
            agent_version: session.map(|(_, hello)| hello.agent_version.clone()),
            plan_digest: plan.map(Plan::digest),
            start_time: status.and_then(|status| status.start_time),
            completion_time: status.and_then(|status| status.completion_time),
            steps: plan.map(|plan| steps(member, plan, status, track)).unwrap_or_default(),
            preflight,
            failure,
            insights: self.insights_of(member),
            operator_conditions: status
                .map(|status| status.operator_conditions.clone())
                .unwrap_or_default(),
        }
    }
}

fn newest_status<'a>(
    member: &'a Member,
    track: Option<&'a Track>,
) -> Option<&'a ClusterUpgradeStatus> {
    let part = member.part.as_ref()?;
    let durable = part.status();
    // After the end nothing the agent repeats is laid over it.
    if part.is_final() {
        return durable;
    }
    let newest = track.and_then(|track| track.heard(&part.fence));
    newest.map(|newest| &newest.status).or(durable)
}

/// Why a cluster is where it is.
fn sentence(
    pass: &Pass,
    name: &ClusterName,
    status: Option<&ClusterUpgradeStatus>,
) -> (String, Option<WaitingView>) {
    let cluster = pass.facts.clusters.get(name);
    let said = status.and_then(|status| status.message.clone()).unwrap_or_default();
    match pass.decisions.clusters.get(name) {
        Some(Decision::Wait(waiting)) => {
            (waiting.to_string(), Some(WaitingView::from(waiting.clone())))
        }
        Some(Decision::InFlight { silent_since: Some(since) }) => {
            (format!("its agent has not been heard since {since}"), None)
        }
        Some(Decision::InFlight { silent_since: None }) if said.is_empty() => {
            ("about to start".to_owned(), None)
        }
        Some(Decision::Start) => ("about to start".to_owned(), None),
        Some(Decision::Check) => ("its checks are asked for".to_owned(), None),
        Some(Decision::Nothing) if said.is_empty() => match cluster.map(|cluster| &cluster.plan) {
            Some(PlanFact::AtTarget) => ("already at the target".to_owned(), None),
            Some(PlanFact::NoPath { why }) => (format!("no path to the target: {why}"), None),
            Some(PlanFact::Unknown { .. } | PlanFact::Planned | PlanFact::NotConsented) | None => {
                (said, None)
            }
        },
        Some(Decision::InFlight { .. } | Decision::Nothing | Decision::Settle(_)) | None => {
            (said, None)
        }
    }
}

fn moves(plan: &Plan) -> Vec<MoveView> {
    let view = |(package, (from, to)): (&str, (Option<String>, Vec<String>))| MoveView {
        package: package.to_owned(),
        from,
        hops: content::number(to.len()),
        to: to.last().cloned().unwrap_or_default(),
    };
    content::ways(plan).into_iter().map(view).collect()
}

/// The step that the agent is at, counted from 0, and how far it is.
fn at(
    part: &Part,
    status: Option<&ClusterUpgradeStatus>,
    track: Option<&Track>,
) -> Option<(usize, i32)> {
    if let Some(progress) = track.and_then(|track| track.progress(&part.fence)) {
        return Some((progress.step_index as usize, i32::from(progress.percent.min(100))));
    }
    let steps = &status?.steps;
    let running = steps.iter().position(|step| step.state == StepStateName::Running)?;
    Some((running, steps.get(running).map_or(0, |step| step.percent)))
}

fn step(
    member: &Member,
    status: Option<&ClusterUpgradeStatus>,
    track: Option<&Track>,
) -> Option<String> {
    let part = member.part.as_ref().filter(|part| part.is_started())?;
    let all = part.plan.steps.len();
    match (part.is_final(), at(part, status, track)) {
        (false, Some((index, _))) => Some(format!("{}/{all}", (index + 1).min(all))),
        (true, _) | (false, None) => status.and_then(|status| status.step.clone()),
    }
}

fn percent(
    member: &Member,
    status: Option<&ClusterUpgradeStatus>,
    track: Option<&Track>,
) -> Option<i32> {
    let part = member.part.as_ref().filter(|part| part.is_started())?;
    let said = status.and_then(|status| status.percent);
    let all = i32::try_from(part.plan.steps.len()).unwrap_or(i32::MAX);
    match (part.is_final(), at(part, status, track)) {
        (false, Some((index, percent))) if all > 0 => {
            let index = i32::try_from(index).unwrap_or(0).min(all);
            let computed = ((index * 100 + percent) / all).min(100);
            Some(said.map_or(computed, |said| said.max(computed)))
        }
        (true | false, _) => said.or(Some(0)),
    }
}

fn steps(
    member: &Member,
    plan: &Plan,
    status: Option<&ClusterUpgradeStatus>,
    track: Option<&Track>,
) -> Vec<StepView> {
    let spec = PlanSpec::from(plan);
    let known: &[StepStatus] = status.map_or(&[], |status| &status.steps);
    let part = member.part.as_ref().filter(|part| part.is_started() && !part.is_final());
    let at = part.and_then(|part| at(part, status, track));
    let view = |(index, step): (usize, StepSpec)| {
        let known = known.get(index).cloned().unwrap_or_default();
        let told = at.filter(|(at, _)| *at == index).map_or(0, |(_, percent)| percent);
        let is_ended = matches!(known.state, StepStateName::Done | StepStateName::Failed);
        let is_running = !is_ended && at.is_some_and(|(at, _)| at == index);
        StepView {
            namespace: step.namespace,
            moves: step.moves,
            via: step.via,
            state: if is_running { StepStateName::Running } else { known.state },
            percent: if is_ended { known.percent } else { known.percent.max(told) },
            start_time: known.start_time,
            completion_time: known.completion_time,
            install_plan: known.install_plan,
            message: known.message,
        }
    };
    spec.steps.into_iter().enumerate().map(view).collect()
}
