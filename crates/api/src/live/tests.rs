use jiff::Timestamp;
use serde_json::{json, to_value};
use wavelift_core::campaign::{self, WaitingOn};

use super::*;
use crate::{
    cluster_upgrade::ClusterStateName,
    shared::{CheckDisposition, CheckOutcome, CheckResult, PreflightReport},
};

fn every_reason() -> Vec<WaitingOn> {
    let at = Timestamp::UNIX_EPOCH;
    vec![
        WaitingOn::Stage { stage: campaign::Stage::Preview },
        WaitingOn::Consent,
        WaitingOn::Inventory { missing: "its inventory".to_owned() },
        WaitingOn::Wave { wave: "canary".to_owned() },
        WaitingOn::Slot { max_concurrent: 2 },
        WaitingOn::FailureBudget { failed: 1, in_flight: 2, max_failures: 2 },
        WaitingOn::Paused,
        WaitingOn::Frozen,
        WaitingOn::Cancelled,
        WaitingOn::Halted { failed: 1, max_failures: 0, wave: None },
        WaitingOn::Preflight,
        WaitingOn::Checks { checks: vec!["csv".to_owned()], next_check_at: at },
        WaitingOn::Agent { since: at, skip_at: Some(at) },
        WaitingOn::Holder { fleet_upgrade: "other".to_owned() },
    ]
}

#[test]
fn every_reason_survives_json_and_is_in_the_schema() {
    let schema = to_value(schemars::schema_for!(WaitingView)).unwrap();
    let known = schema["properties"].as_object().unwrap();
    let types = schema["properties"]["type"]["enum"].as_array().unwrap();
    for on in every_reason() {
        let view = WaitingView::from(on.clone());
        let json = to_value(&view).unwrap();
        assert_eq!(json["sentence"], on.to_string());
        assert!(types.contains(&json["type"]), "{json}");
        assert_eq!(json["type"], on.kind());
        for field in json.as_object().unwrap().keys() {
            assert!(known.contains_key(field), "{field}");
        }
        assert_eq!(serde_json::from_value::<WaitingView>(json).unwrap(), view);
    }
    assert_eq!(types.len(), every_reason().len());
}

#[test]
fn a_cluster_is_flat_in_json_and_comes_back() {
    let row = ClusterRow {
        name: "prod-1".to_owned(),
        wave: "canary".to_owned(),
        state: ClusterStateName::Ready,
        waiting_on: Some(WaitingOn::Slot { max_concurrent: 2 }.into()),
        message: "waits".to_owned(),
        since_time: None,
        moves: vec![],
        step: None,
        percent: None,
        agent: AgentStateName::Connected,
        last_heard_time: None,
        checks: Some(CheckTally { pass: 3, ..CheckTally::default() }),
        failure_reason: None,
    };
    let view = ClusterView {
        row,
        uid: None,
        epoch: 1,
        attempt: 0,
        agent_version: None,
        plan_digest: None,
        start_time: None,
        completion_time: None,
        steps: vec![],
        preflight: None,
        failure: None,
        insights: vec![],
        operator_conditions: vec![],
    };
    let json = to_value(&view).unwrap();
    assert_eq!(
        json,
        json!({
            "name": "prod-1", "wave": "canary", "state": "Ready", "message": "waits",
            "waitingOn": {"type": "Slot", "maxConcurrent": 2,
                "sentence": "waits for a slot: 2 at once in this wave"},
            "agent": "Connected", "epoch": 1, "attempt": 0,
            "checks": {"pass": 3, "warn": 0, "fail": 0, "unknown": 0, "skipped": 0},
        })
    );
    assert_eq!(serde_json::from_value::<ClusterView>(json).unwrap(), view);
}

#[test]
fn the_worst_outcome_is_what_holds_a_cluster() {
    let result = |outcome| CheckResult {
        check: format!("{outcome:?}"),
        outcome,
        disposition: CheckDisposition::Clear,
        reason: "R".to_owned(),
        message: String::new(),
        subjects: vec![],
    };
    let report = |outcomes: &[CheckOutcome]| PreflightReport {
        observed_time: Timestamp::UNIX_EPOCH,
        results: outcomes.iter().copied().map(result).collect(),
    };
    let worst = |outcomes: &[CheckOutcome]| CheckTally::of(&report(outcomes)).worst();
    assert_eq!(worst(&[]), None);
    assert_eq!(worst(&[CheckOutcome::Skipped, CheckOutcome::Pass]), Some(CheckOutcome::Pass));
    assert_eq!(worst(&[CheckOutcome::Pass, CheckOutcome::Warn]), Some(CheckOutcome::Warn));
    assert_eq!(worst(&[CheckOutcome::Warn, CheckOutcome::Unknown]), Some(CheckOutcome::Unknown));
    assert_eq!(worst(&[CheckOutcome::Unknown, CheckOutcome::Fail]), Some(CheckOutcome::Fail));
}
