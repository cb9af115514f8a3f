//! What the user does to a campaign under way.

use std::time::Duration;

use serde_json::json;

use super::harness::*;
use crate::link::ControlAction;

#[tokio::test]
async fn a_spent_budget_halts_and_a_retry_goes_on() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["waves"][0]["maxConcurrent"] = json!(1);
    world.apply_fleet("up", &spec);
    let first = world.assigned("a", |_| true).await;
    world.end("a", &first, "Failed", 1).await;
    world.until("the campaign has failed", || world.phase("up") == "Failed").await;
    assert!(world.agents.assignments("b").is_empty());
    let status = world.fleet("up").status.unwrap();
    assert_eq!(status.insights[0].reason, "InstallPlanFailed");
    let halted = status.conditions.iter().find(|c| c.kind == "Halted").unwrap();
    assert_eq!(format!("{:?}", halted.status), "True");

    world.edit_fleet("up", |spec| {
        spec["actions"] = json!([{"id": "again", "cluster": "a", "type": "Retry"}]);
    });
    let second = world.assigned("a", |one| one.fence.attempt == 1).await;
    world.end("a", &second, "Succeeded", 1).await;
    let other = world.assigned("b", |_| true).await;
    world.end("b", &other, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    let status = world.fleet("up").status.unwrap();
    assert_eq!(status.done_actions, ["again"]);
    assert!(status.history.iter().any(|entry| entry.reason == "Retried"));
    leader.stop().await;
}

#[tokio::test]
async fn a_skip_leaves_a_cluster_out_and_is_done_once() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["waves"][0]["maxConcurrent"] = json!(1);
    spec["actions"] = json!([
        {"id": "out", "cluster": "a", "type": "Skip"},
        {"id": "nobody", "cluster": "z", "type": "Skip"},
    ]);
    world.apply_fleet("up", &spec);
    let other = world.assigned("b", |_| true).await;
    world.end("b", &other, "Succeeded", 1).await;
    world.until("it has ended", || world.phase("up") == "SucceededWithFailures").await;
    let status = world.fleet("up").status.unwrap();
    let summary = status.summary.unwrap();
    assert_eq!((summary.succeeded, summary.skipped), (1, 1));
    let mut done = status.done_actions;
    done.sort();
    assert_eq!(done, ["nobody", "out"]);
    assert_eq!(world.state("a"), "Skipped");
    assert!(world.agents.assignments("a").is_empty());
    leader.stop().await;
}

#[tokio::test]
async fn a_silent_cluster_is_left_out_at_its_deadline() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["offline"] = json!({"policy": "Skip", "deadlineSeconds": 3600});
    world.apply_fleet("up", &spec);
    let other = world.assigned("b", |_| true).await;
    world.end("b", &other, "Succeeded", 1).await;
    world.until("b is done", || world.state("b") == "Succeeded").await;
    world.hand.advance(Duration::from_secs(3_599));
    world
        .until("a is waited for", || {
            leader.row("up", "a").is_some_and(|row| row["waitingOn"]["type"] == "Agent")
        })
        .await;
    assert!(world.part("a").is_none());
    world.hand.advance(Duration::from_secs(1));
    world.until("it has ended", || world.phase("up") == "SucceededWithFailures").await;
    assert_eq!(world.state("a"), "Unreachable");
    let summary = world.fleet("up").status.unwrap().summary.unwrap();
    assert_eq!((summary.succeeded, summary.unreachable), (1, 1));
    // Created, and settled.
    assert_eq!(world.part_writes("a"), 2);
    leader.stop().await;
}

#[tokio::test]
async fn a_silent_cluster_in_flight_keeps_its_reservation() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["budget"] = json!({"mode": "Strict"});
    world.apply_fleet("up", &spec);
    let first = world.assigned("a", |_| true).await;
    world
        .until("a's name has left the list", || {
            world.fleet("up").status.unwrap().starting.is_empty()
        })
        .await;
    world.disconnect("a").await;
    world
        .until("a is silent", || {
            leader.row("up", "a").is_some_and(|row| row["state"] == "Unreachable")
        })
        .await;
    world.edit_fleet("up", |spec| {
        spec["actions"] = json!([{"id": "out", "cluster": "a", "type": "Skip"}]);
    });
    world.until("a is left out", || world.state("a") == "Skipped").await;
    world
        .until("b waits for the budget", || {
            leader.row("up", "b").is_some_and(|row| row["waitingOn"]["type"] == "FailureBudget")
        })
        .await;
    assert!(world.agents.assignments("b").is_empty());
    // It comes back and ends after all: that frees what it held.
    world.connect(&leader, &["a"]).await;
    world.end("a", &first, "Succeeded", 1).await;
    world.assigned("b", |_| true).await;
    assert_eq!(world.state("a"), "Succeeded");
    leader.stop().await;
}

#[tokio::test]
async fn a_paused_campaign_starts_nothing_and_goes_on() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["waves"][0]["maxConcurrent"] = json!(1);
    world.apply_fleet("up", &spec);
    let first = world.assigned("a", |_| true).await;
    world.edit_fleet("up", |spec| spec["control"] = json!("Paused"));
    world.until("it is paused", || world.phase("up") == "Paused").await;
    world.end("a", &first, "Succeeded", 1).await;
    world.until("a is done", || world.state("a") == "Succeeded").await;
    world
        .until("b says why", || {
            leader.row("up", "b").is_some_and(|row| row["waitingOn"]["type"] == "Paused")
        })
        .await;
    assert!(world.agents.controls("a").is_empty(), "paused clusters run on");
    world.edit_fleet("up", |spec| spec["control"] = json!("Running"));
    world.assigned("b", |_| true).await;
    leader.stop().await;
}

#[tokio::test]
async fn frozen_and_cancelled_are_told_to_those_in_flight_and_again_to_who_comes_back() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["waves"][0]["maxConcurrent"] = json!(1);
    world.apply_fleet("up", &spec);
    let first = world.assigned("a", |_| true).await;
    let writes = world.part_writes("a");
    let told = || -> Vec<ControlAction> {
        world.agents.controls("a").into_iter().map(|(_, action)| action).collect()
    };
    world.edit_fleet("up", |spec| spec["control"] = json!("Frozen"));
    world.until("frozen", || told() == [ControlAction::Freeze]).await;
    world.edit_fleet("up", |spec| spec["control"] = json!("Running"));
    world.until("goes on", || told() == [ControlAction::Freeze, ControlAction::Continue]).await;
    world.edit_fleet("up", |spec| spec["control"] = json!("Cancelled"));
    world.until("cancelled", || told().last() == Some(&ControlAction::Cancel)).await;
    assert_eq!(world.part_writes("a"), writes, "control is not written to the ClusterUpgrade");

    world.disconnect("a").await;
    world.connect(&leader, &["a"]).await;
    let again = world
        .assigned("a", |one| {
            let spec: serde_json::Value = serde_json::from_slice(&one.spec_json).unwrap();
            spec["control"] == "Cancelled"
        })
        .await;
    assert_eq!(again.fence, first.fence);
    world.end("a", &first, "Skipped", 1).await;
    world.until("it has ended", || world.phase("up") == "Cancelled").await;
    let summary = world.fleet("up").status.unwrap().summary.unwrap();
    assert_eq!((summary.skipped, summary.not_started), (1, 1));
    assert!(world.agents.assignments("b").is_empty());
    leader.stop().await;
}

#[tokio::test]
async fn one_cluster_is_in_one_campaign_at_a_time() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("one", &campaign(&["a"], 0));
    let first = world.assigned("a", |_| true).await;
    world.apply_fleet("two", &campaign(&["a"], 0));
    world
        .until("the second waits", || {
            let row = leader.row("two", "a");
            row.is_some_and(|row| row["waitingOn"]["fleetUpgrade"] == "one")
        })
        .await;
    assert_eq!(world.agents.assignments("a").len(), 1);
    world.end("a", &first, "Succeeded", 1).await;
    let second = world.assigned("a", |one| one.fence.uid != first.fence.uid).await;
    assert_ne!(second.upgrade.name, first.upgrade.name);
    leader.stop().await;
}

#[tokio::test]
async fn a_cluster_that_is_not_there_can_be_left_out() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    let mut spec = campaign(&["a", "ghost"], 0);
    spec["actions"] = json!([{"id": "out", "cluster": "ghost", "type": "Skip"}]);
    world.apply_fleet("up", &spec);
    let assigned = world.assigned("a", |_| true).await;
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("it has ended", || world.phase("up") == "SucceededWithFailures").await;
    let summary = world.fleet("up").status.unwrap().summary.unwrap();
    assert_eq!((summary.succeeded, summary.skipped), (1, 1));
    leader.stop().await;
}

#[tokio::test]
async fn a_started_cluster_stays_in_its_wave_whatever_its_labels_say() {
    let world = World::new(&["a", "b", "c", "d"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b", "c", "d"]).await;
    world.relabel("b", "a");
    let wave = |name: &str, label: &str| json!({"name": name, "selector": {"matchLabels": {"cluster": label}}});
    let mut spec = campaign(&["a", "b", "c", "d"], 0);
    spec["waves"] = json!([wave("first", "a"), wave("second", "c")]);
    spec["budget"] = json!({"mode": "Strict"});
    world.apply_fleet("up", &spec);
    let first = world.assigned("a", |_| true).await;
    let label = || world.part("a").unwrap().metadata.labels.unwrap().remove("wavelift.io/wave");
    assert_eq!(label().as_deref(), Some("first"));

    world.relabel("a", "c");
    // News of clusters come in order: who has heard of d has heard of a.
    world.relabel("d", "c");
    let of = |cluster: &str| leader.row("up", cluster).map(|row| row["wave"].clone());
    world.until("the hub has seen both", || of("d") == Some(json!("second"))).await;
    assert_eq!(of("a"), Some(json!("first")));
    world.end("a", &first, "Failed", 1).await;
    world.until("the campaign has failed", || world.phase("up") == "Failed").await;
    assert!(world.agents.assignments("b").is_empty(), "the failure counts where a started");
    leader.stop().await;
}
