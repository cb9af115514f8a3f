//! The status of a ClusterUpgrade: how it begins, what counts as a transition, its conditions.

use ClusterStateName as S;
use jiff::Timestamp;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus,
    cluster_upgrade::{ClusterStateName, PlanSpec, StepStateName, StepStatus},
    convert::cut,
    shared::{InsightImpact, InsightLevel, InsightStatus},
};
use wavelift_core::{
    conditions::{self, Fresh, Truth},
    state::ClusterState,
};

/// The status to go on from: the stored one, or an empty one when that belongs to an earlier
/// attempt or to another plan.
pub(super) fn begin(upgrade: &ClusterUpgrade) -> ClusterUpgradeStatus {
    let stored = upgrade.status.clone().unwrap_or_default();
    let (epoch, attempt) = (upgrade.spec.epoch, upgrade.spec.attempt);
    if stored.state.is_some() && (stored.epoch, stored.attempt) == (epoch, attempt) {
        return stored;
    }
    // A new consent to the same plan does not stop what is under way.
    let is_under_way = stored.start_time.is_some()
        && stored.state.is_some_and(|state| !ClusterState::from(state).is_ended())
        && stored.attempt == attempt
        && upgrade.spec.plan_digest == stored.plan_digest;
    if is_under_way {
        return ClusterUpgradeStatus { epoch, ..stored };
    }
    ClusterUpgradeStatus {
        epoch,
        attempt,
        boot: stored.boot,
        sequence: stored.sequence,
        conditions: stored.conditions,
        ..ClusterUpgradeStatus::default()
    }
}

/// An insight of what is no finding of a driver: how loud it is, what is wrong and what to do. Since
/// when stays, if it was told before.
pub(super) fn insight(
    id: String,
    reason: &str,
    (level, message, advice): (InsightLevel, &str, &str),
    before: &[InsightStatus],
    now: Timestamp,
) -> InsightStatus {
    let known = before.iter().find(|insight| insight.id == id);
    InsightStatus {
        since_time: known.map_or(now, |insight| insight.since_time),
        id,
        reason: reason.to_owned(),
        level,
        impact: InsightImpact::UpdateStalled,
        message: cut(message, 2048),
        remediation: cut(advice, 1024),
        clusters: None,
    }
}

/// One entry a step, none of them begun.
pub(super) fn steps(plan: &PlanSpec) -> Vec<StepStatus> {
    plan.steps.iter().map(|_| StepStatus::default()).collect()
}

/// Whether the hub must hear of it: anything but words, percent and times.
pub(super) fn is_transition(before: &ClusterUpgradeStatus, after: &ClusterUpgradeStatus) -> bool {
    let steps = |status: &ClusterUpgradeStatus| -> Vec<StepStateName> {
        status.steps.iter().map(|step| step.state).collect()
    };
    let findings = |status: &ClusterUpgradeStatus| {
        let results = status.preflight.iter().flat_map(|report| &report.results);
        results.map(|result| (result.check.clone(), result.outcome)).collect::<Vec<_>>()
    };
    let insights = |status: &ClusterUpgradeStatus| {
        let all = status.insights.iter();
        all.map(|insight| (insight.id.clone(), insight.level)).collect::<Vec<_>>()
    };
    before.state != after.state
        || (before.epoch, before.attempt, before.boot) != (after.epoch, after.attempt, after.boot)
        || before.failure != after.failure
        || before.skip_reason != after.skip_reason
        || before.plan_digest != after.plan_digest
        || before.start_time != after.start_time
        || steps(before) != steps(after)
        || findings(before) != findings(after)
        || insights(before) != insights(after)
}

/// Whether anything that people see is different.
pub(super) fn is_other(before: &ClusterUpgradeStatus, after: &ClusterUpgradeStatus) -> bool {
    let shown = |status: &ClusterUpgradeStatus| ClusterUpgradeStatus {
        conditions: vec![],
        ..status.clone()
    };
    shown(before) != shown(after)
}

/// The percent of the whole plan and the `2/3`, from the steps.
pub(super) fn totals(status: &mut ClusterUpgradeStatus) {
    let of = status.steps.len();
    if of == 0 {
        return;
    }
    let sum: i32 = status.steps.iter().map(|step| step.percent).sum();
    let percent = sum / i32::try_from(of).unwrap_or(i32::MAX);
    let shown = status.percent.unwrap_or(0);
    status.percent = Some(shown.max(percent).min(100));
    let done = status.steps.iter().filter(|step| step.state == StepStateName::Done).count();
    status.step = Some(format!("{}/{of}", (done + 1).min(of)));
}

/// Brings the texts under the limits of the schema and gives the conditions their times.
pub(super) fn conditions(
    before: &ClusterUpgradeStatus,
    status: &mut ClusterUpgradeStatus,
    now: Timestamp,
) {
    status.message = status.message.as_deref().map(|message| cut(message, 2048));
    let state = status.state.unwrap_or(ClusterStateName::Pending);
    let message = status.message.clone().unwrap_or_default();
    let reason = status.failure.as_ref().map_or_else(
        || ClusterState::from(state).as_str().to_owned(),
        |failure| failure.reason.clone(),
    );
    let is = |states: &[ClusterStateName]| Truth::from_bool(states.contains(&state));
    let has_ended = is(&[S::Succeeded, S::Failed, S::Stalled, S::Skipped]);
    let reconciling = match has_ended {
        Truth::True => Truth::False,
        Truth::False | Truth::Unknown => Truth::True,
    };
    let succeeded = match has_ended {
        Truth::True => is(&[S::Succeeded]),
        Truth::False | Truth::Unknown => Truth::Unknown,
    };
    let fresh = |kind, truth| Fresh::new(kind, truth, reason.clone(), message.clone());
    let fresh = vec![
        fresh("Ready", is(&[S::Succeeded])),
        fresh("Reconciling", reconciling),
        fresh("Stalled", is(&[S::Failed, S::Stalled])),
        fresh("Succeeded", succeeded),
    ];
    let old: Vec<conditions::Condition> =
        before.conditions.iter().cloned().map(Into::into).collect();
    let generation = status.observed_generation.unwrap_or_default();
    let merged = conditions::merge(&old, fresh, generation, now);
    status.conditions = merged.into_iter().map(Into::into).collect();
}
