//! An agent on a simulated cluster, from the order to the last word.

mod hub;
mod registries;
pub(crate) mod registry;
pub(crate) mod rig;
mod trouble;

use std::time::Duration;

use jiff::SignedDuration;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use wavelift_api::labels;
use wavelift_sim::{
    apiserver::{Action, ApiError, Batch, Fault, Matcher, Reason, Times, gk},
    cluster::Approval,
    workload::Behaviour,
};

use self::rig::{HOME, Rig};
use crate::objects::Subscription;

use Approval::{Automatic, Manual};

/// Something to wait for.
type Holds = fn(&Rig) -> bool;

#[tokio::test]
async fn a_straight_upgrade_is_approved_once_and_seen_to_stand() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    let mut changes = rig.store().subscribe();
    let agent = rig.agent();
    rig.order("go", &["oak"], &json!({}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 1);
    assert_eq!(rig.approved(), ["oak.v2.0.0"]);
    assert!(!rig.has_csv("trees", "oak.v1.0.0"));
    let status = rig.status("go");
    assert_eq!((status.percent, status.step.as_deref()), (Some(100), Some("1/1")));
    assert_eq!(status.boot, 1);
    let step = &status.steps[0];
    assert!(step.install_plan.is_some());
    let took = step.completion_time.unwrap().duration_since(step.start_time.unwrap());
    assert!(took >= SignedDuration::from_secs(10), "the result was watched: {took}");
    let Batch::Changes(changes) = changes.now() else { panic!("too many changes") };
    let mut shown = 0;
    let mut states = vec![];
    for change in changes.iter().filter(|change| change.gk == gk::CLUSTER_UPGRADE) {
        let percent = change.object["status"]["percent"].as_i64().unwrap_or(0);
        assert!(percent >= shown, "{percent} after {shown}");
        shown = percent;
        states.push(change.object["status"]["state"].as_str().unwrap_or("").to_owned());
    }
    states.dedup();
    assert_eq!(states, ["", "Upgrading", "Verifying", "Succeeded"]);
    let metrics = agent.metrics.encode().unwrap();
    let counted = "wavelift_agent_installplan_approvals_total{result=\"approved\"} 1\n";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn steps_follow_each_other_and_each_is_done_once() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
    assert_eq!(rig.approved(), ["kite.v2.0.0", "kite.v3.0.0", "kite.v4.0.0"]);
    let status = rig.status("go");
    assert_eq!(status.steps.len(), 3);
    for pair in status.steps.windows(2) {
        assert!(pair[0].completion_time <= pair[1].start_time);
    }
}

#[tokio::test]
async fn two_operators_of_a_namespace_move_by_one_approval() {
    let rig = Rig::new(&[("trees", "ash", "1.0.0", Manual), ("trees", "elm", "1.0.0", Manual)]);
    let _agent = rig.agent();
    rig.order("go", &["ash", "elm"], &json!({}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approved(), ["ash.v2.0.0+elm.v2.0.0"]);
    assert_eq!(rig.approvals(), 1);
    assert_eq!(rig.status("go").steps.len(), 1);
}

#[tokio::test]
async fn a_slow_upgrade_is_called_slow_and_ends_well() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    let after = Duration::from_mins(12);
    rig.cluster.with_workload(|w| w.script("oak.v2.0.0", Behaviour::Available { after }));
    let _agent = rig.agent();
    rig.order("go", &["oak"], &json!({}));
    rig.until("it is called slow", |rig| {
        rig.status("go").insights.iter().any(|insight| insight.reason == "UpgradeSlow")
    })
    .await;
    assert!(rig.status("go").percent < Some(90));
    rig.until_state("go", "Succeeded").await;
    assert!(rig.status("go").insights.is_empty());
    assert_eq!(rig.approvals(), 1);
}

#[tokio::test]
async fn a_version_that_never_comes_up_is_stalled_with_olms_words() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    rig.cluster.with_workload(|w| w.script("oak.v2.0.0", Behaviour::Never));
    let _agent = rig.agent();
    rig.order("go", &["oak"], &json!({}));
    rig.until_state("go", "Stalled").await;
    let status = rig.status("go");
    let failure = status.failure.unwrap();
    assert_eq!(failure.reason, "DeploymentNotAvailable");
    assert!(failure.message.contains("oak.v2.0.0"), "{}", failure.message);
    assert!(failure.message.contains("waiting for"), "{}", failure.message);
    assert!(!failure.remediation.is_empty());
    assert_eq!(failure.step, Some(0));
    let took = status.completion_time.unwrap().duration_since(status.start_time.unwrap());
    assert!(took >= SignedDuration::from_mins(30), "{took}");
}

#[tokio::test]
async fn what_needs_a_newer_kubernetes_is_held_and_nothing_is_touched() {
    let rig = Rig::new(&[("trees", "fir", "1.0.0", Manual)]);
    let _agent = rig.agent();
    rig.order("go", &["fir"], &json!({}));
    rig.until_state("go", "Blocked").await;
    let status = rig.status("go");
    let results = status.preflight.unwrap().results;
    let held = results.iter().find(|result| result.check == "min-kube-version").unwrap();
    assert_eq!(held.reason, "KubeVersionTooLow");
    assert!(held.message.contains("1.99.0") && held.message.contains("1.31.4"), "{}", held.message);
    assert!(rig.touched().is_empty(), "{:?}", rig.touched());
    // It is looked at again, and goes on once the platform has followed.
    rig.cluster.api().set_version("1.99.1");
    let checked = rig.upgrade("go").status.unwrap().preflight.unwrap().observed_time;
    rig.until("it is checked again", |rig| {
        rig.status("go").preflight.is_some_and(|report| report.observed_time > checked)
    })
    .await;
    let status = rig.status("go");
    let again = status.preflight.unwrap().observed_time.duration_since(checked);
    assert!(again >= SignedDuration::from_mins(5), "{again}");
}

#[tokio::test]
async fn an_agent_that_is_killed_goes_on_where_the_cluster_is() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    rig.order("go", &["kite"], &json!({}));
    let moments: [(&str, Holds); 5] = [
        ("it has started", |rig| rig.status("go").start_time.is_some()),
        ("the first is approved", |rig| rig.approvals() >= 1),
        ("the first CSV is there", |rig| rig.has_csv("sky", "kite.v2.0.0")),
        ("the second is approved", |rig| rig.approvals() >= 2),
        ("the last CSV is there", |rig| rig.has_csv("sky", "kite.v4.0.0")),
    ];
    for (what, holds) in moments {
        let agent = rig.agent();
        rig.until(what, holds).await;
        drop(agent);
    }
    let _agent = rig.agent();
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
    assert_eq!(rig.approved(), ["kite.v2.0.0", "kite.v3.0.0", "kite.v4.0.0"]);
    let boot = rig.status("go").boot;
    assert!((2..=6).contains(&boot), "boot {boot}");
}

#[tokio::test]
async fn a_frozen_upgrade_stops_between_two_steps_and_goes_on() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    let after = Duration::from_mins(4);
    rig.cluster.with_workload(|w| w.script("kite.v2.0.0", Behaviour::Available { after }));
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({}));
    rig.until("the first is approved", |rig| rig.approvals() >= 1).await;
    rig.patch("go", &json!({"control": "Frozen"}));
    rig.until("it says that it is frozen", |rig| {
        rig.status("go").message.is_some_and(|message| message.contains("frozen before step 2"))
    })
    .await;
    assert_eq!(rig.approvals(), 1);
    rig.patch("go", &json!({"control": "Running"}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
}

#[tokio::test]
async fn a_cancelled_upgrade_ends_between_two_steps_and_gives_approvals_back() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual), ("trees", "oak", "2.0.0", Automatic)]);
    let approval = |rig: &Rig, namespace: &str, name: &str| {
        rig.subscription(namespace, name)["spec"]["installPlanApproval"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let after = Duration::from_mins(4);
    rig.cluster.with_workload(|w| w.script("kite.v2.0.0", Behaviour::Available { after }));
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({"afterUpgrade": "Restore"}));
    rig.until("the first is approved", |rig| rig.approvals() >= 1).await;
    rig.patch("go", &json!({"control": "Cancelled"}));
    rig.until_state("go", "Skipped").await;
    assert_eq!(rig.approvals(), 1);
    assert!(rig.has_csv("sky", "kite.v2.0.0"), "the step under way was finished");
    assert_eq!(
        rig.status("go").skip_reason.map(|r| format!("{r:?}")).as_deref(),
        Some("Cancelled")
    );
    assert_eq!(approval(&rig, "sky", "kite"), "Manual", "it was Manual before");
    assert_eq!(approval(&rig, "trees", "oak"), "Automatic", "another namespace");
}

#[tokio::test]
async fn approvals_are_held_written_down_and_given_back_or_not() {
    for (after, expected) in [("Restore", "Automatic"), ("Hold", "Manual")] {
        // Both of a namespace become Manual, though only one moves.
        let rig =
            Rig::new(&[("trees", "oak", "1.0.0", Manual), ("trees", "elm", "2.0.0", Automatic)]);
        let _agent = rig.agent();
        rig.order("go", &["oak"], &json!({"afterUpgrade": after}));
        rig.until("it is held", |rig| {
            rig.subscription("trees", "elm")["metadata"]["annotations"][labels::APPROVAL_BEFORE]
                == "Automatic"
        })
        .await;
        rig.until_state("go", "Succeeded").await;
        let elm = rig.subscription("trees", "elm");
        assert_eq!(elm["spec"]["installPlanApproval"], expected);
        let holder = &elm["metadata"]["annotations"][labels::HELD_BY];
        if after == "Hold" {
            assert_eq!(*holder, format!("{HOME}/go"));
        } else {
            assert!(holder.is_null(), "{holder}");
        }
    }
}

#[tokio::test]
async fn a_person_reads_the_plan_and_consents_to_it() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    let _agent = rig.agent();
    rig.order("go", &["oak"], &json!({"consent": "Digest", "stage": "Preflight"}));
    rig.until_state("go", "Ready").await;
    let status = rig.status("go");
    let moves = &status.plan.as_ref().unwrap().steps[0].moves;
    assert_eq!(
        (moves[0].from.as_deref(), moves[0].to.as_str()),
        (Some("oak.v1.0.0"), "oak.v2.0.0")
    );
    assert!(rig.touched().is_empty());
    rig.patch("go", &json!({"stage": "Rollout"}));
    rig.until("it waits for consent", |rig| {
        rig.status("go").message.is_some_and(|message| message.contains("waits for consent"))
    })
    .await;
    assert!(rig.touched().is_empty());
    rig.patch("go", &json!({"planDigest": status.plan_digest.unwrap()}));
    rig.until_state("go", "Succeeded").await;
}

#[tokio::test]
async fn one_upgrade_holds_the_cluster_and_the_next_says_so() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual), ("sky", "kite", "3.0.0", Manual)]);
    let _agent = rig.agent();
    let after = Duration::from_mins(4);
    rig.cluster.with_workload(|w| w.script("oak.v2.0.0", Behaviour::Available { after }));
    rig.order("first", &["oak"], &json!({}));
    rig.until("the first has started", |rig| rig.status("first").start_time.is_some()).await;
    rig.order("second", &["kite"], &json!({}));
    rig.until("the second says who holds", |rig| {
        rig.status("second").message.is_some_and(|message| message.contains("waits for `first`"))
    })
    .await;
    rig.until_state("second", "Succeeded").await;
    let (first, second) = (rig.status("first"), rig.status("second"));
    assert!(first.completion_time <= second.start_time);
}

#[tokio::test]
async fn a_plan_that_the_cluster_does_not_resolve_to_is_not_begun() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    let _agent = rig.agent();
    let step = json!({"namespace": "trees", "moves": [{"package": "oak", "from": "oak.v1.0.0",
        "to": "oak.v1.5.0", "fromVersion": "1.0.0", "toVersion": "1.5.0"}]});
    rig.create(
        "go",
        &json!({"origin": "Hub", "type": "Plan", "stage": "Rollout", "plan": {"steps": [step]},
            "fleetUpgrade": {"namespace": "ops", "name": "autumn", "uid": "u-1"},
            "control": "Running", "consent": "Digest", "afterUpgrade": "Hold", "epoch": 1, "attempt": 0}),
    );
    rig.until_state("go", "Failed").await;
    let failure = rig.status("go").failure.unwrap();
    assert_eq!(failure.reason, "PlanChanged");
    assert!(rig.touched().is_empty(), "{:?}", rig.touched());
}

#[tokio::test]
async fn a_retry_begins_anew_and_ends_well_when_the_cause_is_gone() {
    let mut rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    rig.timings.driver.step_deadline = SignedDuration::from_mins(3);
    rig.cluster.with_workload(|w| w.script("oak.v2.0.0", Behaviour::Never));
    let _agent = rig.agent();
    rig.order("go", &["oak"], &json!({}));
    rig.until_state("go", "Stalled").await;
    let at_once = Behaviour::Available { after: Duration::ZERO };
    rig.cluster.with_workload(|w| w.change("trees", "oak", at_once));
    rig.patch("go", &json!({"attempt": 1}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.status("go").attempt, 1);
    assert!(rig.status("go").failure.is_none());
    assert_eq!(rig.approvals(), 1);
}

#[tokio::test]
async fn killed_again_and_again_it_does_each_step_once() {
    for seed in 1_u64..=8 {
        let rig = Rig::with(&[("sky", "kite", "1.0.0", Manual)], |cluster| cluster.seed(seed));
        rig.order("go", &["kite"], &json!({}));
        let mut changes = rig.store().subscribe();
        let mut lives = 0;
        // A life lasts for some changes of the cluster, another number each time.
        while rig.state("go") != "Succeeded" && lives < 12 {
            let agent = rig.agent();
            lives += 1;
            let mut left = (seed * 7 + lives * 13) % 29 + 5;
            while left > 0 && rig.state("go") != "Succeeded" {
                if let Batch::Changes(batch) = changes.next().await {
                    left = left.saturating_sub(batch.len() as u64);
                }
            }
            drop(agent);
        }
        let _agent = rig.agent();
        rig.until_state("go", "Succeeded").await;
        assert_eq!(rig.approvals(), 3, "seed {seed}, {lives} lives");
        assert_eq!(rig.approved(), ["kite.v2.0.0", "kite.v3.0.0", "kite.v4.0.0"], "seed {seed}");
    }
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_done_again() {
    for action in [Action::DropAfter, Action::DropBefore] {
        let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
        let faults = rig.cluster.api().faults();
        for nth in [1, 3, 4, 6, 7, 9, 10, 12, 15] {
            let on = Matcher::writes_of("wavelift-agent");
            faults.add(Fault { on, times: Times::nth(nth), action: action.clone() });
        }
        let _agent = rig.agent();
        rig.order("go", &["kite"], &json!({}));
        rig.until_state("go", "Succeeded").await;
        assert_eq!(rig.approvals(), 3, "{action:?}");
        assert_eq!(rig.approved(), ["kite.v2.0.0", "kite.v3.0.0", "kite.v4.0.0"]);
    }
}

/// The API server lets the agent write no InstallPlan.
fn refuse_plans(rig: &Rig, words: &str) {
    rig.cluster.api().faults().add(Fault {
        on: Matcher { gk: Some(gk::INSTALL_PLAN.clone()), ..Matcher::writes_of("wavelift-agent") },
        times: Times::all(),
        action: Action::Refuse(ApiError::new(Reason::Forbidden, words)),
    });
}

#[tokio::test]
async fn an_approval_that_is_refused_stalls_with_the_api_servers_words() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    refuse_plans(&rig, "denied by policy `no-upgrades`");
    let agent = rig.agent();
    rig.order("go", &["oak"], &json!({}));
    rig.until_state("go", "Stalled").await;
    let failure = rig.status("go").failure.unwrap();
    assert_eq!(failure.reason, "ApiError");
    assert!(failure.message.contains("denied by policy"), "{}", failure.message);
    assert_eq!(rig.approvals(), 0);
    let metrics = agent.metrics.encode().unwrap();
    let refused = metrics.lines().find_map(|line| {
        line.strip_prefix("wavelift_agent_installplan_approvals_total{result=\"refused\"} ")
    });
    let refused: u64 = refused.unwrap().parse().unwrap();
    assert!((2..40).contains(&refused), "it slows down: {refused}");
}

#[tokio::test]
async fn who_sets_automatic_again_and_again_is_named() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    // Else it would be approved between two of the other's writes.
    refuse_plans(&rig, "not now");
    let api: Api<Subscription> =
        Api::namespaced(rig.cluster.api().client("stubborn-controller"), "trees");
    let mut changes = rig.store().subscribe();
    let store = rig.store().clone();
    let stubborn = tokio::spawn(async move {
        let automatic = Patch::Merge(json!({"spec": {"installPlanApproval": "Automatic"}}));
        let field_manager = Some("stubborn-controller".to_owned());
        let params = PatchParams { field_manager, ..PatchParams::default() };
        loop {
            let oak = store.get(&gk::SUBSCRIPTION, Some("trees"), "oak").unwrap();
            if oak["spec"]["installPlanApproval"] == "Manual" {
                drop(api.patch("oak", &params, &automatic).await.unwrap());
            }
            changes.next().await;
        }
    });
    let _agent = rig.agent();
    rig.order("go", &["oak"], &json!({}));
    rig.until_state("go", "Stalled").await;
    stubborn.abort();
    let status = rig.status("go");
    let failure = status.failure.unwrap();
    assert_eq!(failure.reason, "ApprovalContested");
    assert!(failure.message.ends_with("managed by stubborn-controller"), "{}", failure.message);
    assert_eq!(status.insights[0].reason, "ApprovalContested");
    assert_eq!(rig.approvals(), 0);
}

#[tokio::test]
async fn watches_that_break_are_taken_up_again() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({}));
    for approvals in 1..=3 {
        rig.until("the next is approved", |rig| rig.approvals() >= approvals).await;
        rig.cluster.api().cut_watches();
    }
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
}

#[tokio::test]
async fn a_catalog_that_is_down_holds_the_next_step_until_it_is_back() {
    let rig = Rig::new(&[("sky", "kite", "2.0.0", Manual)]);
    let after = Duration::from_mins(3);
    rig.cluster.with_workload(|w| w.script("kite.v3.0.0", Behaviour::Available { after }));
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({}));
    rig.until("the first is approved", |rig| rig.approvals() >= 1).await;
    rig.cluster.with_olm(|olm| olm.stop_catalog(rig::MARKET, "own"));
    rig.until("it says what it waits for", |rig| {
        rig.status("go").message.is_some_and(|message| message.contains("catalogs not READY"))
    })
    .await;
    assert_eq!(rig.approvals(), 1);
    let catalog = rig::catalog();
    rig.cluster.with_olm(|olm| olm.serve_catalog(rig::MARKET, "own", catalog));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 2);
}

#[tokio::test]
async fn a_retry_of_what_is_still_stuck_is_held_until_the_cause_is_gone() {
    let mut rig = Rig::new(&[("sky", "kite", "2.0.0", Manual)]);
    rig.timings.driver.step_deadline = SignedDuration::from_mins(3);
    rig.cluster.with_workload(|w| w.script("kite.v3.0.0", Behaviour::Never));
    let _agent = rig.agent();
    let hop = |from: u32, to: u32| {
        let (from, to) = (format!("{from}.0.0"), format!("{to}.0.0"));
        json!({"namespace": "sky", "moves": [{"package": "kite", "from": format!("kite.v{from}"),
            "to": format!("kite.v{to}"), "fromVersion": from, "toVersion": to}]})
    };
    rig.create(
        "go",
        &json!({"origin": "Hub", "type": "Plan", "stage": "Rollout", "epoch": 1, "attempt": 0,
            "plan": {"steps": [hop(2, 3), hop(3, 4)]}, "control": "Running", "consent": "Digest",
            "fleetUpgrade": {"namespace": "ops", "name": "autumn", "uid": "u-1"}, "afterUpgrade": "Hold"}),
    );
    rig.until_state("go", "Stalled").await;
    rig.patch("go", &json!({"attempt": 1}));
    rig.until_state("go", "Blocked").await;
    let message = rig.status("go").message.unwrap();
    assert!(message.contains("installed-csv-healthy"), "{message}");
    let at_once = Behaviour::Available { after: Duration::ZERO };
    rig.cluster.with_workload(|w| w.change("sky", "kite", at_once));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 2);
    assert!(rig.has_csv("sky", "kite.v4.0.0"));
}
