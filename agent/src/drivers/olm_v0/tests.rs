//! What is decided in the situations that real OLM was seen in. Texts are OLM's own.

mod remedies;
mod replay;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wavelift_catalog::status::Told;
use wavelift_core::{
    insight::Level,
    plan::{Move, Step, Via},
};

use super::{
    Authored, Observed, Remedies, Timings,
    decide::{Action, Decision, DeleteReason, Gates, Memory, Rules, Waiting, decide},
    failure::Reason,
};
use crate::objects::{InstallPlan, PlanResource, PlanStep};

const RULES: Rules = Rules { timings: TIMINGS, gates: Gates::Closed, remedies: Remedies::NONE };
const TIMINGS: Timings = Timings {
    plan_deadline: SignedDuration::from_mins(15),
    step_deadline: SignedDuration::from_mins(30),
    stable: SignedDuration::from_secs(10),
    slow: SignedDuration::from_mins(5),
    refresh_spacing: SignedDuration::from_mins(1),
    refreshes_max: 3,
    holds_max: 8,
    retries_max: 2,
    remakes_max: 1,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn object<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn step(moves: &[(&str, Option<&str>, &str)]) -> Step {
    let item = |(package, from, to): &(&str, Option<&str>, &str)| Move {
        package: (*package).try_into().unwrap(),
        from: from.map(|from| from.try_into().unwrap()),
        to: (*to).try_into().unwrap(),
        from_version: None,
        to_version: "2.0.0".to_owned(),
    };
    Step {
        namespace: "trees".try_into().unwrap(),
        moves: moves.iter().map(item).collect(),
        via: Via::Cluster,
    }
}

/// `oak` from v1 to v2.
fn oak() -> Step {
    step(&[("oak", Some("oak.v1"), "oak.v2")])
}

/// A namespace in which `oak.v1` is well and nothing is offered.
fn quiet() -> Observed {
    let mut observed = Observed { operator_groups: 1, ..Observed::default() };
    subscribe(&mut observed, "oak", "oak.v1", None);
    csv(&mut observed, "oak.v1", "Succeeded", "InstallSucceeded", "");
    rolled_out(&mut observed, "oak.v1");
    observed
}

/// The same with an InstallPlan to v2 that waits for approval.
fn offered() -> Observed {
    let mut observed = quiet();
    plan(&mut observed, "p1", &["oak.v2"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p1");
    observed
}

/// After the approval: both CSVs are there.
fn replacing(phase: &str, reason: &str, message: &str) -> Observed {
    let mut observed = quiet();
    plan(&mut observed, "p1", &["oak.v2"], "Complete", true);
    refer(&mut observed, "oak", "p1");
    csv(&mut observed, "oak.v1", "Replacing", "BeingReplaced", "being replaced by csv: oak.v2");
    csv(&mut observed, "oak.v2", phase, reason, message);
    rolled_out(&mut observed, "oak.v2");
    observed
}

fn upgraded() -> Observed {
    let mut observed = replacing("Succeeded", "InstallSucceeded", "");
    observed.csvs.retain(|csv| csv.metadata.name.as_deref() != Some("oak.v1"));
    observed
}

fn subscribe(observed: &mut Observed, package: &str, installed: &str, more: Option<&Value>) {
    let mut value = json!({
        "metadata": {"name": package, "namespace": "trees", "resourceVersion": "7"},
        "spec": {"name": package, "installPlanApproval": "Manual"},
        "status": {"installedCSV": installed, "state": "AtLatestKnown"},
    });
    for (key, part) in more.iter().flat_map(|more| more.as_object().unwrap()) {
        value[key] = part.clone();
    }
    observed.subscriptions.retain(|s| s.metadata.name.as_deref() != Some(package));
    observed.subscriptions.push(object(value));
}

fn refer(observed: &mut Observed, package: &str, plan: &str) {
    let pending = json!({"type": "InstallPlanPending", "status": "True"});
    let reference = json!({"name": plan});
    let status =
        json!({"state": "UpgradePending", "installPlanRef": reference, "conditions": [pending]});
    subscribe(observed, package, "", Some(&json!({ "status": status })));
}

fn condition(observed: &mut Observed, package: &str, kind: &str, reason: &str, message: &str) {
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
    let status = json!({"state": "AtLatestKnown", "conditions": [condition]});
    subscribe(observed, package, "", Some(&json!({ "status": status })));
}

fn plan(observed: &mut Observed, name: &str, csvs: &[&str], phase: &str, approved: bool) {
    let generation = observed.plans.len() + 1;
    observed.plans.retain(|plan| plan.metadata.name.as_deref() != Some(name));
    observed.plans.push(object(json!({
        "metadata": {"name": name, "namespace": "trees", "uid": format!("uid-{name}"),
            "resourceVersion": format!("rv-{name}")},
        "spec": {"clusterServiceVersionNames": csvs, "approved": approved, "generation": generation},
        "status": {"phase": phase},
    })));
}

fn csv(observed: &mut Observed, name: &str, phase: &str, reason: &str, message: &str) {
    csv_with(observed, name, &json!({"phase": phase, "reason": reason, "message": message}));
}

fn csv_with(observed: &mut Observed, name: &str, status: &Value) {
    observed.csvs.retain(|csv| csv.metadata.name.as_deref() != Some(name));
    observed.csvs.push(object(json!({
        "metadata": {"name": name, "namespace": "trees"},
        "spec": {"install": {"spec": {"deployments": [{"name": "oak"}]}}},
        "status": status,
    })));
}

fn rolled_out(observed: &mut Observed, _csv: &str) {
    deployment(
        observed,
        &json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
        "availableReplicas": 1}),
    );
}

fn deployment(observed: &mut Observed, status: &Value) {
    observed.deployments = vec![object(json!({
        "metadata": {"name": "oak", "namespace": "trees", "generation": 1},
        "spec": {"replicas": 1}, "status": status,
    }))];
}

fn says(observed: &mut Observed, csv: &str, spec: &Value, status: &Value) {
    observed.operator_conditions = vec![object(json!({
        "metadata": {"name": csv, "generation": 3}, "spec": spec, "status": status,
    }))];
}

/// What the author's status source of `oak.v2` says.
fn authored(observed: &mut Observed, progress: Option<u8>, message: &str) {
    let message = Some(message.to_owned());
    let told = Told { progress, message, ..Told::default() };
    observed.authored.push(Authored { csv: "oak.v2".to_owned(), told });
}

fn first(step: &Step, observed: &Observed) -> Decision {
    decide(step, observed, &Memory::default(), RULES, at(0))
}

/// What is decided at `second` when nothing changed since 0.
fn after(step: &Step, observed: &Observed, second: i64) -> Decision {
    let memory = first(step, observed).memory;
    decide(step, observed, &memory, RULES, at(second))
}

fn reason(decision: &Decision) -> (Reason, String, &'static str) {
    let Action::Fail(failure) = &decision.action else { panic!("{:?}", decision.action) };
    let kind = match failure.kind {
        wavelift_core::campaign::Failure::Failed => "Failed",
        wavelift_core::campaign::Failure::Stalled => "Stalled",
    };
    assert!(failure.message.len() > 10, "{failure:?}");
    (failure.reason, failure.message.clone(), kind)
}

/// Waits until `deadline` and then ends so.
#[track_caller]
fn stalls(step: &Step, observed: &Observed, deadline: i64, expected: Reason, text: &str) {
    let waits = after(step, observed, deadline - 1);
    assert!(matches!(waits.action, Action::Wait(_)), "{:?}", waits.action);
    assert_eq!(waits.wake_at, Some(at(deadline)));
    let (found, message, kind) = reason(&after(step, observed, deadline));
    assert_eq!((found, kind), (expected, "Stalled"), "{message}");
    assert!(message.contains(text), "`{text}` is not in `{message}`");
}

/// What closes a gate, the reason it gives, and a part of its text.
type Gate = (fn(&mut Observed), Reason, &'static str);

const PLAN_DEADLINE: i64 = 900;
const STEP_DEADLINE: i64 = 1_800;

#[test]
fn the_referenced_plan_with_exactly_the_set_is_approved_as_it_was_seen() {
    let decision = first(&oak(), &offered());
    let approve = Action::Approve { name: "p1".to_owned(), resource_version: "rv-p1".to_owned() };
    assert_eq!(decision.action, approve);
    assert_eq!(decision.install_plan.as_deref(), Some("p1"));
    // The order of the names varies, and a dependency has no Subscription of its own yet.
    let mut observed = quiet();
    plan(&mut observed, "p1", &["gum.v3", "oak.v2"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p1");
    let both = step(&[("oak", Some("oak.v1"), "oak.v2"), ("gum", None, "gum.v3")]);
    assert_eq!(first(&both, &observed).action, approve);
}

#[test]
fn a_plan_is_not_approved_while_the_subscriptions_of_the_step_do_not_all_refer_to_it() {
    let both = step(&[("oak", Some("oak.v1"), "oak.v2"), ("elm", Some("elm.v1"), "elm.v2")]);
    let mut observed = quiet();
    csv(&mut observed, "elm.v1", "Succeeded", "InstallSucceeded", "");
    subscribe(&mut observed, "elm", "elm.v1", None);
    plan(&mut observed, "p1", &["oak.v2", "elm.v2"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p1");
    assert_eq!(first(&both, &observed).action, Action::Wait(Waiting::Plan));
    refer(&mut observed, "elm", "p1");
    assert!(matches!(first(&both, &observed).action, Action::Approve { .. }));
}

#[test]
fn steps_of_the_plan_that_are_done_count_before_there_is_a_csv() {
    let percent = |statuses: [&str; 4]| {
        let mut observed = quiet();
        plan(&mut observed, "p1", &["oak.v2"], "Installing", true);
        let mut made = InstallPlan::clone(&observed.plans[0]);
        let steps =
            statuses.map(|status| PlanStep { status: status.to_owned(), ..PlanStep::default() });
        made.status.plan = steps.into();
        observed.plans = vec![Arc::new(made)];
        refer(&mut observed, "oak", "p1");
        first(&oak(), &observed).percent
    };
    let unknown = "Unknown";
    // From 30 to 40, by four steps and one CSV.
    assert_eq!(percent([unknown; 4]), 30);
    assert_eq!(percent(["Created", "Present", unknown, unknown]), 34);
    assert_eq!(percent(["Created", "Present", "Created", "Created"]), 38);
}

#[test]
fn the_authors_word_refines_the_percent_and_is_told() {
    let bare = replacing("Installing", "InstallWaiting", "installing");
    let percent = |progress: Option<u8>| {
        let mut observed = bare.clone();
        authored(&mut observed, progress, "rings counted");
        let decision = first(&oak(), &observed);
        assert!(decision.message.ends_with("rings counted"), "{}", decision.message);
        decision.percent
    };
    // From 50 to 90, by 1 replica that stands, 1 CSV that does not, and 100 of the author's.
    assert_eq!([percent(Some(0)), percent(Some(50)), percent(Some(100))], [50, 70, 89]);
    assert_eq!(percent(None), first(&oak(), &bare).percent);
    let mut two = bare.clone();
    authored(&mut two, Some(90), "bark");
    authored(&mut two, Some(10), "rings");
    assert_eq!(first(&oak(), &two).percent, percent(Some(10)));
}

#[test]
fn the_authors_word_holds_no_step_open() {
    let mut observed = upgraded();
    authored(&mut observed, Some(3), "still at it");
    let decision = after(&oak(), &observed, 10);
    assert_eq!(decision.action, Action::Done);
}

#[test]
fn a_plan_that_nothing_refers_to_is_never_approved() {
    let mut observed = quiet();
    plan(&mut observed, "p1", &["oak.v2"], "RequiresApproval", false);
    assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Plan));
    // Planning, or none of its phases yet.
    for phase in ["", "Planning", "Complete"] {
        let mut observed = quiet();
        plan(&mut observed, "p1", &["oak.v2"], phase, false);
        refer(&mut observed, "oak", "p1");
        assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Plan), "{phase}");
    }
}

#[test]
fn every_subscription_of_the_namespace_is_made_manual_first_and_what_it_was_is_kept() {
    let mut observed = offered();
    let automatic = json!({"name": "elm", "installPlanApproval": "Automatic"});
    subscribe(&mut observed, "elm", "elm.v1", Some(&json!({"spec": automatic})));
    let unset = json!({"name": "ash"});
    subscribe(&mut observed, "ash", "ash.v1", Some(&json!({"spec": unset})));
    let kept = json!({"name": "fir", "namespace": "trees", "resourceVersion": "9",
        "annotations": {"wavelift.io/install-plan-approval-before": "Automatic"}});
    subscribe(&mut observed, "fir", "fir.v1", Some(&json!({"metadata": kept, "spec": automatic})));
    let Action::Hold(holds) = first(&oak(), &observed).action else { panic!("not held") };
    let told: Vec<(&str, Option<&str>)> =
        holds.iter().map(|hold| (hold.name.as_str(), hold.before.as_deref())).collect();
    assert_eq!(told, [("elm", Some("Automatic")), ("ash", Some("Automatic")), ("fir", None)]);
}

#[test]
fn who_sets_automatic_again_is_answered_ever_more_slowly_and_the_step_is_given_up_in_the_end() {
    let mut observed = offered();
    let automatic = json!({"name": "elm", "installPlanApproval": "Automatic"});
    subscribe(&mut observed, "elm", "elm.v1", Some(&json!({"spec": automatic})));
    let mut memory = Memory::default();
    let mut now = 0;
    let mut held = vec![];
    let last = loop {
        let decision = decide(&oak(), &observed, &memory, RULES, at(now));
        memory = decision.memory.clone();
        if matches!(decision.action, Action::Hold(_)) {
            held.push(now);
            memory.applied(&decision.action, at(now));
        } else if decision.action == Action::Wait(Waiting::Gate) {
            now += 1;
            assert!(decision.wake_at.is_some_and(|next| at(now) <= next), "{decision:?}");
        } else {
            break decision;
        }
    };
    let (found, message, kind) = reason(&last);
    assert_eq!((found, kind), (Reason::ApprovalContested, "Stalled"), "{message}");
    assert_eq!(held, [0, 0, 5, 15, 30, 50, 75, 105]);
}

#[test]
fn a_step_under_way_is_not_given_up_because_somebody_sets_automatic_again() {
    let mut observed = replacing("Installing", "", "");
    let automatic = json!({"name": "elm", "installPlanApproval": "Automatic"});
    subscribe(&mut observed, "elm", "elm.v1", Some(&json!({"spec": automatic})));
    let memory = Memory { holds: 8, held_at: Some(at(0)), ..Memory::default() };
    let decision = decide(&oak(), &observed, &memory, RULES, at(60));
    assert_eq!(decision.action, Action::Wait(Waiting::Install));
    let memory = Memory { holds: 3, held_at: Some(at(0)), ..Memory::default() };
    let soon = decide(&oak(), &observed, &memory, RULES, at(9));
    assert_eq!(soon.action, Action::Wait(Waiting::Install));
    let later = decide(&oak(), &observed, &memory, RULES, at(10));
    assert!(matches!(later.action, Action::Hold(_)), "{:?}", later.action);
}

#[test]
fn a_plan_that_olm_made_from_another_version_is_never_approved() {
    // As after an approval of the plan before it, which nothing referred to any more.
    let mut observed = offered();
    let status = json!({"installedCSV": "oak.v0", "currentCSV": "oak.v2",
        "state": "UpgradePending", "installPlanRef": {"name": "p1"}});
    subscribe(&mut observed, "oak", "", Some(&json!({ "status": status })));
    let decision = decide(&oak(), &observed, &Memory::default(), RULES, at(0));
    assert_eq!(decision.action, Action::Wait(Waiting::Gate), "{}", decision.message);
    assert!(decision.message.contains("from oak.v0"), "{}", decision.message);
    assert_eq!(decision.insights[0].reason, "PlanMismatch");
    let late = decide(&oak(), &observed, &decision.memory, RULES, at(15 * 60));
    let (found, message, kind) = reason(&late);
    assert_eq!((found, kind), (Reason::PlanMismatch, "Stalled"));
    assert!(message.contains("beside"), "{message}");
}

#[test]
fn a_plan_beside_the_one_that_is_referred_to_is_waited_for_until_it_is_known_which_counts() {
    for generation in [1, 2] {
        let mut observed = offered();
        let twin = json!({"metadata": {"name": "p9", "uid": "uid-p9", "resourceVersion": "rv-p9",
            "creationTimestamp": at(0).to_string()}, "spec": {"generation": generation,
            "clusterServiceVersionNames": ["oak.v3"]}, "status": {"phase": "RequiresApproval"}});
        observed.plans.push(object(twin));
        let memory = Memory::default();
        let decision = decide(&oak(), &observed, &memory, RULES, at(299));
        assert_eq!(decision.action, Action::Wait(Waiting::Plan), "{}", decision.message);
        assert_eq!(decision.wake_at, Some(at(300)));
        let late = decide(&oak(), &observed, &memory, RULES, at(300));
        let Action::DeletePlan { name, why, .. } = late.action else { panic!("{:?}", late.action) };
        assert_eq!((name.as_str(), why), ("p9", DeleteReason::Superseded));
    }
}

#[test]
fn what_the_api_server_refuses_is_told_while_it_is_tried_again() {
    let refused = Some("denied by policy".to_owned());
    let memory = Memory { refused, refusals: 3, ..Memory::default() };
    let decision = decide(&oak(), &offered(), &memory, RULES, at(0));
    assert!(matches!(decision.action, Action::Approve { .. }));
    assert!(decision.message.ends_with("refused so far: denied by policy"), "{}", decision.message);
    let told: Vec<_> = decision.insights.iter().map(|i| (&*i.reason, &*i.message)).collect();
    assert_eq!(told, [("ApiError", "denied by policy")]);
    // Two findings of one kind are one insight: the API takes no two of one id.
    let late = decide(&oak(), &offered(), &decision.memory, RULES, at(15 * 60));
    assert_eq!(reason(&late).0, Reason::ApiError);
    let told: Vec<_> = late.insights.iter().map(|i| (&*i.reason, i.level)).collect();
    assert_eq!(told, [("ApiError", Level::Error)]);
}

#[test]
fn a_plan_with_another_set_is_refreshed_three_times_a_minute_apart_and_then_given_up() {
    let mut observed = quiet();
    plan(&mut observed, "p1", &["oak.v3"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p1");
    let delete = Action::DeletePlan {
        name: "p1".to_owned(),
        uid: "uid-p1".to_owned(),
        resource_version: "rv-p1".to_owned(),
        why: DeleteReason::Refresh,
    };
    let mut memory = Memory::default();
    for minute in 0..3 {
        let decision = decide(&oak(), &observed, &memory, RULES, at(minute * 60));
        assert_eq!(decision.action, delete, "minute {minute}");
        memory = decision.memory;
        memory.applied(&decision.action, at(minute * 60));
        let soon = decide(&oak(), &observed, &memory, RULES, at(minute * 60 + 59));
        assert_eq!(soon.action, Action::Wait(Waiting::Plan));
        assert_eq!(soon.wake_at, Some(at((minute + 1) * 60)));
    }
    let decision = decide(&oak(), &observed, &memory, RULES, at(180));
    let (found, message, kind) = reason(&decision);
    assert_eq!((found, kind), (Reason::PlanMismatch, "Failed"));
    assert!(message.contains("[oak.v3]") && message.contains("[oak.v2]"), "{message}");
}

#[test]
fn a_plan_is_refreshed_when_olm_has_written_it_down_on_all_its_subscriptions() {
    let mut observed = quiet();
    subscribe(&mut observed, "elm", "elm.v1", None);
    plan(&mut observed, "p1", &["oak.v3", "elm.v3"], "RequiresApproval", false);
    Arc::make_mut(&mut observed.plans[0]).metadata.creation_timestamp = Some(Time(at(0)));
    refer(&mut observed, "oak", "p1");
    // Elm still speaks of what was before.
    let early = first(&oak(), &observed);
    assert_eq!(early.action, Action::Wait(Waiting::Plan));
    assert_eq!(early.wake_at, Some(at(300)));
    let late = decide(&oak(), &observed, &Memory::default(), RULES, at(300));
    assert!(matches!(late.action, Action::DeletePlan { .. }), "{:?}", late.action);
    // A new dependency has no Subscription of its own yet.
    let mut of_two = observed.clone();
    let kind = "Subscription".to_owned();
    let dependency = PlanStep { resource: PlanResource { kind }, ..PlanStep::default() };
    Arc::make_mut(&mut of_two.plans[0]).status.plan.push(dependency);
    assert!(matches!(first(&oak(), &of_two).action, Action::DeletePlan { .. }));
    refer(&mut observed, "elm", "p1");
    assert!(matches!(first(&oak(), &observed).action, Action::DeletePlan { .. }));
}

#[test]
fn a_subscription_that_waits_for_a_plan_that_is_gone_is_told_of() {
    let mut observed = quiet();
    refer(&mut observed, "oak", "p0");
    let told = "(UpgradePending, waiting for p0, which is gone)";
    stalls(&oak(), &observed, PLAN_DEADLINE, Reason::PlanNotOffered, told);
}

#[test]
fn after_a_refresh_the_subscription_is_empty_for_a_while_and_that_is_waited_for() {
    let mut observed = quiet();
    subscribe(&mut observed, "oak", "oak.v1", Some(&json!({"status": {"installedCSV": "oak.v1"}})));
    stalls(&oak(), &observed, PLAN_DEADLINE, Reason::PlanNotOffered, "oak has oak.v1");
}

#[test]
fn superseded_plans_are_deleted_before_the_approval_and_those_of_others_are_not() {
    let mut observed = quiet();
    plan(&mut observed, "old", &["oak.v1.5"], "RequiresApproval", false);
    plan(&mut observed, "theirs", &["elm.v2"], "RequiresApproval", false);
    plan(&mut observed, "ran", &["oak.v1"], "Complete", true);
    plan(&mut observed, "p1", &["oak.v2"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p1");
    refer(&mut observed, "elm", "theirs");
    let Action::DeletePlan { name, why, .. } = first(&oak(), &observed).action else {
        panic!("not deleted")
    };
    assert_eq!((name.as_str(), why), ("old", DeleteReason::Superseded));
    observed.plans.retain(|plan| plan.metadata.name.as_deref() != Some("old"));
    assert!(matches!(first(&oak(), &observed).action, Action::Approve { .. }));
}

#[test]
fn another_plan_that_is_approved_is_not_ours() {
    let mut observed = quiet();
    plan(&mut observed, "p1", &["oak.v3"], "Installing", true);
    refer(&mut observed, "oak", "p1");
    let (found, message, _) = reason(&first(&oak(), &observed));
    assert_eq!(found, Reason::ForeignInstallPlan);
    assert!(message.contains("[oak.v3]") && message.contains("[oak.v2]"), "{message}");
}

#[test]
fn nothing_is_approved_while_a_gate_is_closed() {
    let gates: [Gate; 7] = [
        (
            |o| o.catalogs_not_ready = vec!["market/own (TRANSIENT_FAILURE)".to_owned()],
            Reason::CatalogUnavailable,
            "market/own (TRANSIENT_FAILURE)",
        ),
        (|o| o.operator_groups = 2, Reason::TooManyOperatorGroups, "2 OperatorGroups"),
        (|o| o.operator_groups = 0, Reason::NoOperatorGroup, "no OperatorGroup"),
        (
            |o| csv(o, "oak.v1", "Failed", "ComponentUnhealthy", "unhealthy"),
            Reason::InstalledNotHealthy,
            "oak.v1 is Failed/ComponentUnhealthy: unhealthy",
        ),
        (
            |o| {
                deployment(
                    o,
                    &json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}),
                );
            },
            Reason::InstalledNotHealthy,
            "0 of 1 replicas available",
        ),
        (
            |o| {
                let said = json!({"type": "Upgradeable", "status": "False", "reason": "Migrating",
                    "message": "a migration is running", "observedGeneration": 3});
                says(o, "oak.v1", &json!({}), &json!({"conditions": [said]}));
            },
            Reason::OperatorNotUpgradeable,
            "a migration is running",
        ),
        (
            |o| {
                let said =
                    json!({"type": "Upgradeable", "status": "True", "observedGeneration": 2});
                says(o, "oak.v1", &json!({}), &json!({"conditions": [said]}));
            },
            Reason::OperatorNotUpgradeable,
            "outdated",
        ),
    ];
    for (close, expected, text) in gates {
        let mut observed = offered();
        close(&mut observed);
        assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Gate), "{expected}");
        stalls(&oak(), &observed, PLAN_DEADLINE, expected, text);
        // The user said to go on whatever the checks find.
        let open = Rules { gates: Gates::Open, ..RULES };
        let decision = decide(&oak(), &observed, &Memory::default(), open, at(0));
        assert!(matches!(decision.action, Action::Approve { .. }), "{expected}");
    }
}

#[test]
fn an_administrators_override_opens_the_gate() {
    let mut observed = offered();
    let said = json!({"type": "Upgradeable", "status": "False", "observedGeneration": 3});
    let override_ = json!({"overrides": [{"type": "Upgradeable", "status": "True"}]});
    says(&mut observed, "oak.v1", &override_, &json!({"conditions": [said]}));
    assert!(matches!(first(&oak(), &observed).action, Action::Approve { .. }));
}

#[test]
fn why_there_is_no_plan_is_told_in_olms_words() {
    let unread = "error using catalogsource rec-17/cat: failed to list bundles: connection refused";
    let orphan = "clusterserviceversion oak.v1 exists and is not referenced by a subscription";
    let unpack = "bundle unpacking failed. Reason: DeadlineExceeded";
    let rows = [
        ("ResolutionFailed", "ErrorPreventedResolution", unread, Reason::CatalogUnavailable),
        ("ResolutionFailed", "ConstraintsNotSatisfiable", orphan, Reason::ResolutionFailed),
        ("BundleUnpackFailed", "BundleUnpackFailed", unpack, Reason::BundleUnpackFailed),
    ];
    for (kind, because, message, expected) in rows {
        let mut observed = quiet();
        condition(&mut observed, "oak", kind, because, message);
        stalls(&oak(), &observed, PLAN_DEADLINE, expected, message);
        let insights = after(&oak(), &observed, 60).insights;
        assert_eq!(insights.len(), 1, "{insights:?}");
        assert!(insights[0].message.contains(message));
        assert_eq!(insights[0].since, at(0), "it keeps its begin");
    }
}

#[test]
fn a_failing_resolution_beside_a_pair_of_csvs_says_nothing() {
    let mut observed = replacing("Installing", "InstallWaiting", "waiting for deployment");
    let message = "constraints not satisfiable: oak.v1 exists and is not referenced";
    let mut value = json!({"state": "AtLatestKnown", "installPlanRef": {"name": "p1"}});
    value["conditions"] = json!([{"type": "ResolutionFailed", "status": "True",
        "reason": "ConstraintsNotSatisfiable", "message": message}]);
    subscribe(&mut observed, "oak", "oak.v2", Some(&json!({ "status": value })));
    let decision = after(&oak(), &observed, 120);
    assert_eq!(decision.action, Action::Wait(Waiting::Install));
    assert!(decision.insights.is_empty(), "{:?}", decision.insights);
}

#[test]
fn a_subscription_at_its_latest_is_no_success() {
    let mut observed = replacing("Pending", "RequirementsNotMet", "one or more requirements");
    let status = json!({"state": "AtLatestKnown", "installedCSV": "oak.v2", "currentCSV": "oak.v2",
        "installPlanRef": {"name": "p1"}});
    subscribe(&mut observed, "oak", "oak.v2", Some(&json!({ "status": status })));
    assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Install));
}

#[test]
fn a_good_upgrade_that_flaps_is_done_when_it_has_stood_for_the_window() {
    let stands = upgraded();
    let mut fallen = upgraded();
    csv(&mut fallen, "oak.v2", "Failed", "RequirementsNotMet", "requirements no longer met");
    let mut memory = Memory::default();
    let mut look = |observed: &Observed, second| {
        let decision = decide(&oak(), observed, &memory, RULES, at(second));
        memory = decision.memory.clone();
        decision
    };
    assert_eq!(look(&stands, 0).action, Action::Wait(Waiting::Stability));
    assert_eq!(look(&fallen, 1).action, Action::Wait(Waiting::Install));
    let again = look(&stands, 2);
    assert_eq!(again.action, Action::Wait(Waiting::Stability));
    assert_eq!(again.wake_at, Some(at(12)));
    assert_eq!(look(&stands, 11).action, Action::Wait(Waiting::Stability));
    let done = look(&stands, 12);
    assert_eq!((done.action, done.percent), (Action::Done, 100));
}

#[test]
fn it_is_not_done_while_the_old_csv_or_an_old_pod_or_the_plan_is_there() {
    assert_eq!(
        first(&oak(), &replacing("Succeeded", "InstallSucceeded", "")).action,
        Action::Wait(Waiting::Install)
    );
    let mut observed = upgraded();
    let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1,
        "availableReplicas": 2});
    deployment(&mut observed, &status);
    assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Install));
    let mut observed = upgraded();
    plan(&mut observed, "p1", &["oak.v2"], "Installing", true);
    assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Install));
}

#[test]
fn after_a_restart_what_the_cluster_shows_is_not_done_again() {
    // Approved, nothing else yet; approved but kept back by a second OperatorGroup.
    for phase in ["RequiresApproval", "Installing", "Complete"] {
        let mut observed = quiet();
        plan(&mut observed, "p1", &["oak.v2"], phase, true);
        refer(&mut observed, "oak", "p1");
        assert_eq!(first(&oak(), &observed).action, Action::Wait(Waiting::Install), "{phase}");
    }
    // All done, the InstallPlan cleaned up, the next one offered already.
    let mut observed = upgraded();
    observed.plans.clear();
    plan(&mut observed, "p2", &["oak.v3"], "RequiresApproval", false);
    refer(&mut observed, "oak", "p2");
    assert_eq!(after(&oak(), &observed, 10).action, Action::Done);
}

#[test]
fn a_refused_plan_is_a_dead_end_at_once_and_told_verbatim() {
    let text = "risk of data loss updating \"alphas.s11.example.com\": new CRD removes version \
                v1alpha1 that is listed as a stored version on the existing CRD";
    let mut observed = replacing("Pending", "RequirementsNotMet", "one or more requirements");
    let name = "p1";
    let installing = |phase: &str, message: &str| {
        object(json!({
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": {"clusterServiceVersionNames": ["oak.v2"], "approved": true},
            "status": {"phase": phase, "message": message},
        }))
    };
    observed.plans =
        vec![installing("Installing", &format!("retrying execution due to error: {text}"))];
    let retrying = first(&oak(), &observed);
    assert_eq!(retrying.action, Action::Wait(Waiting::Install));
    assert!(retrying.insights.iter().any(|insight| insight.message.contains(text)));
    observed.plans = vec![installing("Failed", text)];
    let (found, message, kind) = reason(&first(&oak(), &observed));
    assert_eq!((found, kind), (Reason::InstallPlanFailed, "Failed"));
    assert!(message.contains(text), "{message}");
}

#[test]
fn a_kubernetes_that_is_too_old_is_a_dead_end_at_once() {
    let mut observed = replacing("Pending", "", "");
    let text = "CSV version requirement not met: minKubeVersion (1.99.0) > server version (1.36.3)";
    csv_with(
        &mut observed,
        "oak.v2",
        &json!({"phase": "Pending", "reason": "RequirementsNotMet",
            "message": "one or more requirements couldn't be found",
            "requirementStatus": [{"kind": "ClusterServiceVersion", "name": "oak.v2",
                "status": "PresentNotSatisfied", "message": text}]}),
    );
    let (found, message, kind) = reason(&first(&oak(), &observed));
    assert_eq!((found, kind), (Reason::RequirementsNotMet, "Failed"));
    assert!(message.contains(text), "{message}");
}

#[test]
fn a_requirement_that_is_not_met_is_normal_at_first_and_told_at_the_end() {
    let mut observed = replacing("Pending", "", "");
    let text = "Policy rule not satisfied for service account";
    csv_with(
        &mut observed,
        "oak.v2",
        &json!({"phase": "Pending", "reason": "RequirementsNotMet",
            "message": "one or more requirements couldn't be found",
            "requirementStatus": [
                {"kind": "CustomResourceDefinition", "name": "oaks", "status": "Present", "message": "fine"},
                {"kind": "ServiceAccount", "name": "oak", "status": "PresentNotSatisfied", "message": text}]}),
    );
    assert!(after(&oak(), &observed, 5).insights.is_empty());
    let insights = after(&oak(), &observed, 40).insights;
    assert_eq!(insights[0].reason, "RequirementsNotMet");
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::RequirementsNotMet, text);
    let (_, message, _) = reason(&after(&oak(), &observed, STEP_DEADLINE));
    assert!(!message.contains("fine"), "{message}");
}

#[test]
fn what_never_comes_up_stalls_at_the_deadline_with_the_failure_that_lasted_thirty_milliseconds() {
    let waiting = "installing: waiting for deployment oak to become ready: deployment \"oak\" \
                   waiting for 1 outdated replica(s) to be terminated";
    let mut observed = replacing("Installing", "", "");
    csv_with(
        &mut observed,
        "oak.v2",
        &json!({"phase": "Installing", "reason": "InstallWaiting", "message": waiting, "conditions": [
            {"phase": "Installing", "reason": "InstallWaiting", "message": waiting},
            {"phase": "Failed", "reason": "InstallCheckFailed", "message": "install timeout"},
            {"phase": "Pending", "reason": "NeedsReinstall", "message": waiting}]}),
    );
    let old_pod = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1,
        "availableReplicas": 1});
    deployment(&mut observed, &old_pod);
    let reasons = |seconds| {
        let insights = after(&oak(), &observed, seconds).insights;
        insights.into_iter().map(|insight| insight.reason).collect::<Vec<_>>()
    };
    assert_eq!(reasons(300), ["DeploymentNotAvailable", "UpgradeSlow"]);
    assert_eq!(reasons(299), ["DeploymentNotAvailable"]);
    let told = &after(&oak(), &observed, 299).insights[0].message;
    assert!(told.ends_with("(before that: install timeout)"), "{told}");
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::DeploymentNotAvailable, waiting);
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::DeploymentNotAvailable, "install timeout");
    // Failed for good: heals by itself too, so the deadline decides.
    let text = "install failed: deployment oak not ready before timeout: deployment \"oak\" \
                exceeded its progress deadline";
    csv(&mut observed, "oak.v2", "Failed", "InstallCheckFailed", text);
    let mut status = old_pod.clone();
    status["conditions"] =
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    deployment(&mut observed, &status);
    let insights = after(&oak(), &observed, 60).insights;
    assert_eq!(insights[0].reason, "DeploymentNotAvailable");
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::DeploymentNotAvailable, text);
}

#[test]
fn what_holds_the_new_csv_back_is_named_at_the_deadline() {
    let text =
        "operator is not upgradeable: the operator is not upgradeable: a migration is running";
    let observed = replacing("Pending", "OperatorConditionNotUpgradeable", text);
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::OperatorNotUpgradeable, text);
    // The installed version lost its pod at the approval: it is the one to heal.
    let mut observed = replacing("Pending", "RequirementsNotMet", "one or more requirements");
    csv(&mut observed, "oak.v1", "Installing", "InstallWaiting", "waiting for deployment oak");
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::InstalledNotHealthy, "oak.v1");
    let text =
        "csv created in namespace with multiple operatorgroups, can't pick one automatically";
    let observed = replacing("Failed", "TooManyOperatorGroups", text);
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::TooManyOperatorGroups, text);
    let observed =
        replacing("Failed", "NoOperatorGroup", "csv in namespace with no operatorgroups");
    stalls(&oak(), &observed, STEP_DEADLINE, Reason::NoOperatorGroup, "no operatorgroups");
}

#[test]
fn what_the_api_server_refuses_is_told_at_the_deadline() {
    let mut memory = first(&oak(), &offered()).memory;
    memory.refused = Some("not allowed to write `p1`: denied by policy".to_owned());
    let observed = quiet();
    let decision = decide(&oak(), &observed, &memory, RULES, at(PLAN_DEADLINE));
    let (found, message, kind) = reason(&decision);
    assert_eq!((found, kind), (Reason::ApiError, "Stalled"));
    assert!(message.contains("denied by policy"));
}

#[test]
fn percent_follows_what_is_observed_and_never_goes_back() {
    let mut memory = Memory::default();
    let mut observed = quiet();
    let mut installing = offered();
    plan(&mut installing, "p1", &["oak.v2"], "Installing", true);
    observed.plans.clear();
    let rows = [
        (observed, 5),
        (offered(), 15),
        (installing, 30),
        (replacing("Pending", "RequirementsNotMet", ""), 40),
        (replacing("Installing", "InstallWaiting", ""), 50),
        (replacing("Pending", "RequirementsNotMet", ""), 50),
        (upgraded(), 90),
        (replacing("Pending", "NeedsReinstall", ""), 90),
    ];
    for (index, (observed, least)) in (0..).zip(rows) {
        let decision = decide(&oak(), &observed, &memory, RULES, at(index));
        assert!(decision.percent >= least, "row {index}: {} < {least}", decision.percent);
        assert!(decision.percent >= memory.percent, "row {index}");
        assert!(decision.percent < 100, "row {index}");
        memory = decision.memory;
    }
}

#[test]
fn every_reason_says_what_to_do() {
    for reason in Reason::ALL {
        assert!(reason.remediation().ends_with('.'), "{reason}");
        assert!(reason.remediation().len() <= 1_024, "{reason}");
    }
}
