//! What is looked at before an approval and after success, and the ways out of a dead end.

use wavelift_api::shared::Remedy::{self, RemakeFailedInstallPlan, RetryFailedInstallPlan};

use super::*;

fn with(remedies: &[Remedy]) -> Rules {
    Rules { remedies: Remedies::of(remedies), ..RULES }
}

fn decided(observed: &Observed, memory: &Memory, rules: Rules, second: i64) -> Decision {
    decide(&oak(), observed, memory, rules, at(second))
}

/// OLM has given the plan up, and the new CSV waits.
fn given_up() -> Observed {
    let mut observed = replacing("Pending", "RequirementsNotMet", "");
    plan(&mut observed, "p1", &["oak.v2"], "Failed", true);
    observed
}

fn retry() -> Action {
    Action::RetryPlan { name: "p1".to_owned(), resource_version: "rv-p1".to_owned() }
}

#[test]
fn what_is_held_against_the_apis_keeps_a_plan_from_approval() {
    let mut observed = offered();
    observed.objection = Some((Reason::CustomResourcesInvalid, "too restrictive".to_owned()));
    let held = first(&oak(), &observed);
    assert_eq!(held.action, Action::Wait(Waiting::Gate));
    let insight = &held.insights[0];
    assert_eq!(insight.reason, "CustomResourcesInvalid");
    assert_eq!(insight.message, "too restrictive");
    stalls(&oak(), &observed, PLAN_DEADLINE, Reason::CustomResourcesInvalid, "too restrictive");
    let open = Rules { gates: Gates::Open, ..RULES };
    let decision = decided(&observed, &Memory::default(), open, 0);
    assert!(matches!(decision.action, Action::Approve { .. }));
}

#[test]
fn what_cannot_be_read_after_success_is_told_until_the_deadline() {
    let mut observed = upgraded();
    observed.unreadable = vec!["oaks.v1.example.com: conversion webhook failed".to_owned()];
    let memory = first(&oak(), &observed).memory;
    let decision = decided(&observed, &memory, RULES, 11);
    assert_eq!(decision.action, Action::Wait(Waiting::Stability));
    assert_eq!(decision.insights[0].reason, "CustomResourcesUnreadable");
    let (found, message, kind) = reason(&decided(&observed, &memory, RULES, STEP_DEADLINE));
    assert_eq!((found, kind), (Reason::CustomResourcesUnreadable, "Stalled"));
    assert!(message.contains("oaks.v1.example.com: conversion webhook failed"), "{message}");
    observed.unreadable.clear();
    assert_eq!(decided(&observed, &memory, RULES, 12).action, Action::Done);
}

#[test]
fn nothing_is_repaired_that_was_not_named() {
    let observed = given_up();
    let (found, ..) = reason(&first(&oak(), &observed));
    assert_eq!(found, Reason::InstallPlanFailed);
    let only = with(&[Remedy::AdoptOrphanCSV]);
    let (found, ..) = reason(&decided(&observed, &Memory::default(), only, 0));
    assert_eq!(found, Reason::InstallPlanFailed);
    assert!(!Remedies::of(&[Remedy::AdoptOrphanCSV]).any());
}

#[test]
fn a_plan_is_tried_again_when_nothing_is_against_it_and_so_often_only() {
    let mut observed = given_up();
    let rules = with(&[RetryFailedInstallPlan]);
    observed.objection = Some((Reason::CustomResourcesInvalid, "too restrictive".to_owned()));
    let waits = decided(&observed, &Memory::default(), rules, 0);
    assert_eq!(waits.action, Action::Wait(Waiting::Remedy));
    assert!(waits.message.contains("too restrictive"), "{}", waits.message);
    let reasons: Vec<&str> = waits.insights.iter().map(|i| i.reason.as_str()).collect();
    assert!(reasons.contains(&"InstallPlanFailed"), "{reasons:?}");
    assert!(reasons.contains(&"CustomResourcesInvalid"), "{reasons:?}");
    let late = decided(&observed, &waits.memory, rules, STEP_DEADLINE);
    assert_eq!(reason(&late).0, Reason::InstallPlanFailed);
    observed.objection = None;
    let mut memory = waits.memory;
    for second in 1..=2 {
        let decision = decided(&observed, &memory, rules, second);
        assert_eq!(decision.action, retry());
        memory = decision.memory;
        memory.applied(&decision.action, at(second));
    }
    assert_eq!(reason(&decided(&observed, &memory, rules, 3)).0, Reason::InstallPlanFailed);
}

#[test]
fn a_step_is_taken_back_piece_by_piece_and_begins_anew() {
    let rules = with(&[RemakeFailedInstallPlan]);
    let mut observed = given_up();
    let mut memory = Memory::default();
    let mut next = |observed: &Observed, second| {
        let decision = decided(observed, &memory, rules, second);
        memory = decision.memory;
        memory.applied(&decision.action, at(second));
        decision.action
    };
    let Action::DeleteCsv { name, .. } = next(&observed, 0) else { panic!("not the CSV") };
    assert_eq!(name, "oak.v2");
    observed.csvs.retain(|csv| csv.metadata.name.as_deref() != Some("oak.v2"));
    let Action::DeletePlan { name, why, .. } = next(&observed, 1) else { panic!("not the plan") };
    assert_eq!((name.as_str(), why), ("p1", DeleteReason::Remake));
    observed.plans.clear();
    let left = json!({"currentCSV": "oak.v2", "installedCSV": "oak.v2", "state": "AtLatestKnown",
        "installPlanRef": {"name": "p1"}});
    subscribe(&mut observed, "oak", "", Some(&json!({ "status": left })));
    let reset = Action::ResetSubscription {
        name: "oak".to_owned(),
        resource_version: "7".to_owned(),
        csv: "oak.v1".to_owned(),
    };
    assert_eq!(next(&observed, 2), reset);
    // OLM may have written its own at the same moment: after a while once more.
    assert_eq!(next(&observed, 3), Action::Wait(Waiting::Remedy));
    assert_eq!(next(&observed, 8), reset);
    let back = json!({"currentCSV": "oak.v1", "installedCSV": "oak.v1"});
    subscribe(&mut observed, "oak", "", Some(&json!({ "status": back })));
    assert_eq!(next(&observed, 9), Action::Wait(Waiting::Plan));
    plan(&mut observed, "p2", &["oak.v2"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p2");
    // The old one stays Replacing, and that is no reason to wait.
    assert!(matches!(next(&observed, 10), Action::Approve { name, .. } if name == "p2"));
    // Once only.
    plan(&mut observed, "p2", &["oak.v2"], "Failed", true);
    csv(&mut observed, "oak.v2", "Pending", "RequirementsNotMet", "");
    let Action::Fail(failure) = next(&observed, 11) else { panic!("not the end") };
    assert_eq!(failure.reason, Reason::InstallPlanFailed);
}

#[test]
fn what_has_begun_to_install_is_never_taken_back() {
    let rules = with(&[RemakeFailedInstallPlan]);
    for phase in ["InstallReady", "Installing", "Failed"] {
        let mut observed = given_up();
        csv(&mut observed, "oak.v2", phase, "", "");
        let decision = decided(&observed, &Memory::default(), rules, 0);
        assert_eq!(reason(&decision).0, Reason::InstallPlanFailed, "{phase}");
    }
    // What it replaces is gone already.
    let mut observed = given_up();
    observed.csvs.retain(|csv| csv.metadata.name.as_deref() != Some("oak.v1"));
    let decision = decided(&observed, &Memory::default(), rules, 0);
    assert_eq!(reason(&decision).0, Reason::InstallPlanFailed);
}
