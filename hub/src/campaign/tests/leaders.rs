//! Leaders that end at any moment, and those that come after them.

use serde_json::json;
use wavelift_sim::apiserver::{Action, Fault, Matcher, Times, Verb, Verbs, gk};

use super::harness::*;

/// Drops every write of a ClusterUpgrade's spec, before or after it is done.
fn drop_starts(world: &World, action: Action) {
    world.api.faults().add(Fault {
        on: Matcher {
            user_agent: Some(HUB.to_owned()),
            verbs: Verbs::Only(Verb::Update),
            gk: Some(gk::CLUSTER_UPGRADE.clone()),
            subresource: Some(String::new()),
            ..Matcher::default()
        },
        times: Times::all(),
        action,
    });
}

#[tokio::test]
async fn a_new_leader_finishes_the_starts_that_were_written_ahead() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    // Every write that would start a cluster is lost.
    drop_starts(&world, Action::DropBefore);
    let mut spec = campaign(&["a", "b"], 0);
    spec["waves"][0]["maxConcurrent"] = json!(1);
    world.apply_fleet("up", &spec);
    let starting = || world.fleet("up").status.unwrap_or_default().starting;
    world.until("a is written ahead", || starting() == ["a"]).await;
    leader.kill().await;
    world.api.faults().clear();
    assert!(world.agents.assignments("a").is_empty());

    // The next leader counts a as in flight and finishes its start, though its agent is silent.
    let leader = world.lead(2);
    world.connect(&leader, &["b"]).await;
    world
        .until("a is started", || {
            world.part("a").is_some_and(|part| format!("{:?}", part.spec.stage) == "Rollout")
        })
        .await;
    world
        .until("b waits for the slot that a holds", || {
            leader.row("up", "b").is_some_and(|row| row["waitingOn"]["type"] == "Slot")
        })
        .await;
    assert_eq!(world.fleet("up").status.unwrap().term, 2);
    world.connect(&leader, &["a"]).await;
    let assigned = world.assigned("a", |_| true).await;
    assert_eq!((assigned.fence.epoch, assigned.fence.attempt), (1, 0));
    world.end("a", &assigned, "Succeeded", 1).await;
    let second = world.assigned("b", |_| true).await;
    world.end("b", &second, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}

#[tokio::test]
async fn a_start_whose_write_went_through_unheard_is_not_begun_twice() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    drop_starts(&world, Action::DropAfter);
    world.apply_fleet("up", &campaign(&["a"], 0));
    let assigned = world.assigned("a", |_| true).await;
    world.end("a", &assigned, "Failed", 1).await;
    world.until("it has failed", || world.state("a") == "Failed").await;
    world.until("the campaign has failed", || world.phase("up") == "Failed").await;
    leader.kill().await;
    let leader = world.lead(2);
    world.connect(&leader, &["a"]).await;
    world.until("the board is there", || leader.row("up", "a").is_some()).await;
    assert_eq!(world.part("a").unwrap().spec.attempt, 0);
    assert_eq!(world.agents.assignments("a").len(), 1);
    leader.stop().await;
}

#[tokio::test]
async fn a_leader_that_was_replaced_writes_nothing_more() {
    let world = World::new(&["a", "b"]);
    let old = world.lead(1);
    world.connect(&old, &["a"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["waves"][0]["maxConcurrent"] = json!(1);
    world.apply_fleet("up", &spec);
    let first = world.assigned("a", |_| true).await;
    // Its claim never ends in this test: the term in the campaign alone must stop it.
    let new = world.lead(2);
    world
        .until("the new leader's term is written", || world.fleet("up").status.unwrap().term == 2)
        .await;
    old.given_up().await;
    world.connect(&new, &["a", "b"]).await;
    world.end("a", &first, "Succeeded", 1).await;
    let second = world.assigned("b", |_| true).await;
    world.end("b", &second, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    assert_eq!(world.fleet("up").status.unwrap().term, 2);
    new.stop().await;
}

#[tokio::test]
async fn a_retry_that_was_written_ahead_raises_the_attempt_once() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &campaign(&["a"], 0));
    let first = world.assigned("a", |_| true).await;
    world.end("a", &first, "Failed", 1).await;
    world.until("the campaign has failed", || world.phase("up") == "Failed").await;
    drop_starts(&world, Action::DropBefore);
    world.edit_fleet("up", |spec| {
        spec["actions"] = json!([{"id": "again", "cluster": "a", "type": "Retry"}]);
    });
    world
        .until("the retry is written ahead", || {
            let status = world.fleet("up").status.unwrap();
            status.starting == ["a"] && status.done_actions == ["again"]
        })
        .await;
    leader.kill().await;
    world.api.faults().clear();
    let leader = world.lead(2);
    world.connect(&leader, &["a"]).await;
    let second = world.assigned("a", |one| one.fence.attempt == 1).await;
    world.end("a", &second, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    assert_eq!(world.part("a").unwrap().spec.attempt, 1);
    leader.stop().await;
}

#[tokio::test]
async fn an_ended_campaign_stays_as_it_was_written_under_a_new_leader() {
    let world = World::new(&["a", "b"]);
    world.agents.set_inventory("b", "1.2.0", &tea(&["1.0.0", "1.1.0", "1.2.0"]));
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    world.apply_fleet("up", &campaign(&["a", "b"], 0));
    let first = world.assigned("a", |_| true).await;
    world.end("a", &first, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
    let before = world.fleet("up").metadata.resource_version;
    // b, which was at the target, is not there to say so; and a newer version waits for it.
    world.agents.set_inventory("b", "1.1.0", &tea(&["1.0.0", "1.1.0", "1.2.0"]));
    let leader = world.lead(2);
    world.connect(&leader, &["a", "b"]).await;
    world
        .until("b was looked at", || {
            leader.row("up", "b").is_some_and(|row| row["moves"].is_array())
        })
        .await;
    assert_eq!(world.fleet("up").metadata.resource_version, before);
    assert!(world.part("b").is_none());
    leader.stop().await;
}

#[tokio::test]
async fn a_broken_watch_and_conflicts_change_nothing() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &campaign(&["a"], 0));
    let assigned = world.assigned("a", |_| true).await;
    world.api.cut_watches();
    // Somebody else touches the objects, so that what the driver knows is old.
    let touch = |kind, namespace: &str, name: &str| {
        let touched = world.api.store().modify(kind, Some(namespace), name, |object| {
            object["metadata"]["annotations"] = json!({"touched": "yes"});
        });
        touched.unwrap();
    };
    touch(&gk::CLUSTER_UPGRADE, "a", assigned.upgrade.name.as_str());
    touch(&gk::FLEET_UPGRADE, NAMESPACE, "up");
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}
