//! An API server that cannot be read, or written, for a while.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use wavelift_api::labels;
use wavelift_sim::{
    apiserver::{Action, ApiError, Fault, Matcher, Reason, Times, Verb, Verbs, gk},
    cluster::Approval::{Automatic, Manual},
    workload::Behaviour,
};

use super::rig::Rig;

fn refuse(reason: Reason) -> Action {
    Action::Refuse(ApiError::new(reason, "the API server is not well"))
}

fn of_the_agent(verbs: Verbs) -> Matcher {
    Matcher { verbs, ..Matcher::writes_of("wavelift-agent") }
}

#[tokio::test]
async fn while_the_cluster_cannot_be_read_nothing_is_decided_and_no_deadline_passes() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    // The next approval is not due before nobody can see that it is.
    let after = Duration::from_mins(20);
    rig.cluster.with_workload(|w| w.script("kite.v2.0.0", Behaviour::Available { after }));
    let agent = rig.agent();
    rig.order("go", &["kite"], &json!({}));
    rig.until("the first is approved", |rig| rig.approvals() >= 1).await;
    let faults = rig.cluster.api().faults();
    for verb in [Verb::List, Verb::Watch] {
        let action = refuse(Reason::InternalError);
        faults.add(Fault { on: of_the_agent(Verbs::Only(verb)), times: Times::all(), action });
    }
    rig.cluster.api().cut_watches();
    // That is said after some seconds, in which the cluster's clock passes all deadlines.
    rig.until("it says so", |rig| {
        rig.status("go")
            .message
            .is_some_and(|message| message.contains("cannot tell how it stands"))
    })
    .await;
    assert_eq!(rig.state("go"), "Upgrading");
    assert_eq!(rig.approvals(), 1);
    let unread = "wavelift_agent_kind_unread{kind=\"Subscriptions\"} 1";
    assert!(agent.metrics.encode().unwrap().contains(unread));
    faults.clear();
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
    assert!(!agent.metrics.encode().unwrap().contains(unread));
}

#[tokio::test]
async fn before_the_start_it_waits_until_it_can_tell() {
    let mut rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    rig.timings.recheck = SignedDuration::from_hours(1000);
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({"stage": "Preflight"}));
    rig.until_state("go", "Ready").await;
    let faults = rig.cluster.api().faults();
    for verb in [Verb::List, Verb::Watch] {
        let on = Matcher { gk: Some(gk::CSV.clone()), ..of_the_agent(Verbs::Only(verb)) };
        faults.add(Fault { on, times: Times::all(), action: refuse(Reason::InternalError) });
    }
    rig.cluster.api().cut_watches();
    rig.until("it says so", |rig| {
        rig.status("go").message.is_some_and(|message| {
            message.contains("cannot tell how it stands, ClusterServiceVersions cannot be read")
        })
    })
    .await;
    faults.clear();
    rig.until("it is checked anew", |rig| {
        rig.status("go").message.is_some_and(|message| message.contains("nothing in the way"))
    })
    .await;
    assert_eq!(rig.approvals(), 0);
    rig.patch("go", &json!({"stage": "Rollout"}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
}

#[tokio::test]
async fn an_api_server_with_too_much_to_do_is_asked_again() {
    let rig = Rig::new(&[("sky", "kite", "1.0.0", Manual)]);
    let _agent = rig.agent();
    rig.order("go", &["kite"], &json!({}));
    let action = refuse(Reason::TooManyRequests);
    let times = Times { first: 12, count: 15 };
    rig.cluster.api().faults().add(Fault { on: of_the_agent(Verbs::Any), times, action });
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.approvals(), 3);
}

#[tokio::test]
async fn an_approval_is_given_back_however_often_the_api_server_cannot_take_it() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual), ("trees", "elm", "2.0.0", Automatic)]);
    let _agent = rig.agent();
    // The first write makes it Manual, the next ones would give it back.
    let on = Matcher { gk: Some(gk::SUBSCRIPTION.clone()), ..of_the_agent(Verbs::Mutating) };
    let times = Times { first: 2, count: 4 };
    let action = refuse(Reason::InternalError);
    let fault = rig.cluster.api().faults().add(Fault { on, times, action });
    rig.order("go", &["oak"], &json!({"afterUpgrade": "Restore"}));
    rig.until_state("go", "Succeeded").await;
    assert_eq!(rig.cluster.api().faults().seen(fault), 6);
    let elm = rig.subscription("trees", "elm");
    assert_eq!(elm["spec"]["installPlanApproval"], "Automatic");
    assert!(elm["metadata"]["annotations"][labels::HELD_BY].is_null());
}
