//! What an agent says about its part, brought within the limits of the API and merged with what is
//! the hub's own.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wavelift_api::{
    ClusterUpgradeStatus,
    cluster_upgrade::{
        ClusterStateName, FailureStatus, OperatorConditionStatus, SkipReasonName, StepStateName,
        StepStatus,
    },
    convert::cut,
    shared::{Condition, InsightStatus, PreflightReport},
};
use wavelift_core::{
    check::Finding,
    conditions::{self, Fresh, Truth},
    fence::Revision,
    state::ClusterState,
};

use super::part::Part;

/// The longest document.
const STATUS_BYTES_MAX: usize = 256 << 10;
/// Checks of one preflight.
const CHECKS_MAX: usize = 64;

/// Why an agent's word is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It is too long.
    #[error("{0} bytes are more than {STATUS_BYTES_MAX}")]
    TooLong(usize),
    /// It is no such document.
    #[error("not the document it should be")]
    Parse(#[from] serde_json::Error),
    /// It claims what only the hub may say.
    #[error("an agent cannot say {0:?}")]
    State(Option<ClusterStateName>),
}

/// Whether a state ends an upgrade.
pub(super) fn is_terminal(state: Option<ClusterStateName>) -> bool {
    state.is_some_and(|state| ClusterState::from(state).is_ended())
}

/// Reads an agent's status and brings it within the API's limits.
pub(super) fn read(json: &[u8]) -> Result<ClusterUpgradeStatus, Error> {
    let mut status = document(json)?;
    match status.state {
        None | Some(ClusterStateName::Unreachable) => return Err(Error::State(status.state)),
        // The only reason of its own that an agent has to leave something out.
        Some(ClusterStateName::Skipped) => status.skip_reason = Some(SkipReasonName::Cancelled),
        Some(_) => status.skip_reason = None,
    }
    Ok(status)
}

/// Reads what an agent says between two transitions, which may be nothing.
pub(super) fn words(json: &[u8]) -> Result<Option<ClusterUpgradeStatus>, Error> {
    if json.is_empty() { Ok(None) } else { document(json).map(Some) }
}

fn document(json: &[u8]) -> Result<ClusterUpgradeStatus, Error> {
    if json.len() > STATUS_BYTES_MAX {
        return Err(Error::TooLong(json.len()));
    }
    let mut status = serde_json::from_slice(json)?;
    bound(&mut status);
    Ok(status)
}

/// How many steps are done.
pub(super) fn done_steps(status: &ClusterUpgradeStatus) -> usize {
    status.steps.iter().filter(|step| step.state == StepStateName::Done).count()
}

/// Whether `newest` says something that has to be kept: a step more, or the end.
pub(super) fn is_transition(part: &Part, newest: &ClusterUpgradeStatus) -> bool {
    let known = part.status().map_or(0, done_steps);
    is_terminal(newest.state) || done_steps(newest) > known
}

/// What is written for `newest`: the agent's word, and of the hub's own the fence, the revision,
/// the preflight and the conditions.
pub(super) fn durable(
    part: &Part,
    newest: &ClusterUpgradeStatus,
    revision: Revision,
    preflight: Option<PreflightReport>,
    now: Timestamp,
) -> ClusterUpgradeStatus {
    let before = part.status();
    let mut status = newest.clone();
    status.boot = i64::try_from(revision.boot).unwrap_or(i64::MAX);
    status.sequence = i64::try_from(revision.sequence).unwrap_or(i64::MAX);
    status.preflight = preflight.or_else(|| before.and_then(|before| before.preflight.clone()));
    status.start_time = status.start_time.or_else(|| before.and_then(|before| before.start_time));
    finish(part, &mut status, now);
    status
}

/// What is written for an end that the hub decides itself.
pub(super) fn settled(
    part: &Part,
    state: ClusterStateName,
    skip_reason: Option<SkipReasonName>,
    message: &str,
    now: Timestamp,
) -> ClusterUpgradeStatus {
    let mut status = part.status().cloned().unwrap_or_default();
    status.state = Some(state);
    status.skip_reason = skip_reason;
    status.message = Some(cut(message, 2048));
    status.completion_time = Some(now);
    finish(part, &mut status, now);
    status
}

/// What is written for a preflight.
pub(super) fn preflighted(
    part: &Part,
    state: ClusterStateName,
    message: &str,
    report: PreflightReport,
    now: Timestamp,
) -> ClusterUpgradeStatus {
    let mut status = part.status().cloned().unwrap_or_default();
    status.state = Some(state);
    status.message = Some(cut(message, 2048));
    status.preflight = Some(report);
    finish(part, &mut status, now);
    status
}

/// Sets what the hub alone says about any status.
fn finish(part: &Part, status: &mut ClusterUpgradeStatus, now: Timestamp) {
    let spec = part.spec();
    let generation = part.object.metadata.generation.unwrap_or(0);
    status.observed_generation = Some(generation);
    status.epoch = spec.epoch;
    status.attempt = spec.attempt;
    status.plan = None;
    status.plan_digest = Some(part.plan_digest.clone());
    let old = part.object.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let old: Vec<conditions::Condition> = old.iter().cloned().map(Into::into).collect();
    let merged = conditions::merge(&old, part_conditions(status), generation, now);
    status.conditions = merged.into_iter().take(16).map(Condition::from).collect();
}

/// The conditions of a ClusterUpgrade, from its state.
fn part_conditions(status: &ClusterUpgradeStatus) -> Vec<Fresh> {
    let state = status.state.unwrap_or(ClusterStateName::Pending);
    let (ready, reconciling, stalled, succeeded) = match state {
        ClusterStateName::Pending
        | ClusterStateName::Preflight
        | ClusterStateName::Ready
        | ClusterStateName::Blocked => (Truth::False, Truth::False, Truth::False, Truth::Unknown),
        ClusterStateName::Upgrading | ClusterStateName::Verifying => {
            (Truth::False, Truth::True, Truth::False, Truth::Unknown)
        }
        ClusterStateName::Succeeded => (Truth::True, Truth::False, Truth::False, Truth::True),
        ClusterStateName::Failed | ClusterStateName::Stalled => {
            (Truth::False, Truth::False, Truth::True, Truth::False)
        }
        ClusterStateName::Skipped | ClusterStateName::Unreachable => {
            (Truth::False, Truth::False, Truth::False, Truth::False)
        }
    };
    let reason = format!("{state:?}");
    let message = status.message.clone().unwrap_or_default();
    [("Ready", ready), ("Reconciling", reconciling), ("Stalled", stalled), ("Succeeded", succeeded)]
        .into_iter()
        .map(|(kind, truth)| Fresh::new(kind, truth, reason.clone(), message.clone()))
        .collect()
}

/// Reads the answer to a check request: bounded, and one finding a check.
pub(super) fn findings(json: &[u8]) -> Result<Vec<Finding>, Error> {
    if json.len() > STATUS_BYTES_MAX {
        return Err(Error::TooLong(json.len()));
    }
    let mut findings: Vec<Finding> = serde_json::from_slice(json)?;
    let mut seen = BTreeSet::new();
    for finding in &mut findings {
        finding.check = cut(&finding.check, 128);
    }
    findings.retain(|finding| !finding.check.is_empty() && seen.insert(finding.check.clone()));
    findings.truncate(CHECKS_MAX);
    Ok(findings)
}

/// Brings every list and text within the limits of the schema: an agent that goes beyond them
/// must not make its own word impossible to keep.
fn bound(status: &mut ClusterUpgradeStatus) {
    cut_opt(&mut status.step, 16);
    cut_opt(&mut status.message, 2048);
    status.percent = status.percent.map(|percent| percent.clamp(0, 100));
    status.steps.truncate(64);
    status.steps.iter_mut().for_each(bound_step);
    if let Some(failure) = &mut status.failure {
        bound_failure(failure);
    }
    status.operator_conditions.truncate(64);
    status.operator_conditions.iter_mut().for_each(bound_condition);
    bound_insights(&mut status.insights);
    // The hub computes its own.
    status.conditions.clear();
    status.preflight = None;
}

fn bound_step(step: &mut StepStatus) {
    step.percent = step.percent.clamp(0, 100);
    cut_opt(&mut step.install_plan, 253);
    cut_opt(&mut step.message, 2048);
}

fn bound_failure(failure: &mut FailureStatus) {
    failure.reason = cut(&failure.reason, 128);
    if failure.reason.is_empty() {
        "Unknown".clone_into(&mut failure.reason);
    }
    failure.message = cut(&failure.message, 2048);
    failure.remediation = cut(&failure.remediation, 1024);
    failure.step = failure.step.map(|step| step.clamp(0, 63));
}

fn bound_condition(condition: &mut OperatorConditionStatus) {
    let OperatorConditionStatus { csv, kind, status, reason, message } = condition;
    for (text, max) in [(csv, 253), (kind, 316), (status, 16), (reason, 1024), (message, 2048)] {
        *text = cut(text, max);
    }
}

fn bound_insights(insights: &mut Vec<InsightStatus>) {
    let mut seen = BTreeSet::new();
    for insight in insights.iter_mut() {
        insight.id = cut(&insight.id, 253);
        insight.reason = cut(&insight.reason, 128);
        insight.message = cut(&insight.message, 2048);
        insight.remediation = cut(&insight.remediation, 1024);
        insight.clusters = None;
    }
    insights.retain(|insight| {
        !insight.id.is_empty() && !insight.reason.is_empty() && seen.insert(insight.id.clone())
    });
    insights.truncate(20);
}

fn cut_opt(text: &mut Option<String>, max: usize) {
    if let Some(text) = text {
        *text = cut(text, max);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: &serde_json::Value) -> Result<ClusterUpgradeStatus, Error> {
        read(status.to_string().as_bytes())
    }

    #[test]
    fn what_only_the_hub_may_say_is_not_taken_from_an_agent() {
        assert!(matches!(of(&json!({})), Err(Error::State(None))));
        assert!(matches!(of(&json!({"state": "Unreachable"})), Err(Error::State(Some(_)))));
        assert!(matches!(of(&json!({"state": "Happy"})), Err(Error::Parse(_))));
        let skipped = of(&json!({"state": "Skipped", "skipReason": "User"})).unwrap();
        assert_eq!(skipped.skip_reason, Some(SkipReasonName::Cancelled));
        let conditions = json!([{"type": "Ready", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
        let ready = of(&json!({"state": "Upgrading", "conditions": conditions})).unwrap();
        assert!(ready.conditions.is_empty());
        assert!(matches!(read(&vec![b' '; STATUS_BYTES_MAX + 1]), Err(Error::TooLong(_))));
    }

    #[test]
    fn a_status_beyond_the_schema_is_brought_within_it() {
        let insight = |id: &str| {
            json!({"id": id, "reason": "R", "sinceTime": "2020-01-01T00:00:00Z",
            "level": "Error", "impact": "None", "message": "m".repeat(5_000), "remediation": ""})
        };
        let mut insights: Vec<_> = (0..30).map(|n| insight(&format!("i{n}"))).collect();
        insights.insert(0, insight("i1"));
        let status = of(&json!({
            "state": "Failed", "percent": 900, "message": "x".repeat(5_000), "insights": insights,
            "steps": vec![json!({"state": "Done", "percent": -4}); 80],
            "failure": {"type": "Failed", "reason": "", "message": "", "remediation": "", "step": 99},
        }))
        .unwrap();
        assert_eq!(status.percent, Some(100));
        assert_eq!(status.message.unwrap().chars().count(), 2048);
        assert_eq!(status.steps.len(), 64);
        assert_eq!(status.steps[0].percent, 0);
        assert_eq!(status.insights.len(), 20);
        assert_eq!(status.insights.iter().filter(|insight| insight.id == "i1").count(), 1);
        let failure = status.failure.unwrap();
        assert_eq!((failure.reason.as_str(), failure.step), ("Unknown", Some(63)));
    }

    #[test]
    fn findings_are_one_a_check() {
        let finding = |check: &str| {
            json!({"check": check, "outcome": "Pass", "reason": "R",
            "message": "", "disposition": "Clear"})
        };
        let json = serde_json::to_vec(&vec![finding("a"), finding("b"), finding("a"), finding("")]);
        let checks: Vec<_> =
            findings(&json.unwrap()).unwrap().into_iter().map(|finding| finding.check).collect();
        assert_eq!(checks, ["a", "b"]);
        assert!(findings(b"{}").is_err());
    }
}
