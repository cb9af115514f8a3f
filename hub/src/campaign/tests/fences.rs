//! Which word of an agent counts.

use serde_json::json;
use wavelift_core::fence::{Fence, Revision};
use wavelift_sim::apiserver::{Action, ApiError, Fault, Matcher, Reason, Times, Verb, gk};

use super::harness::*;
use crate::link::{Assignment, ControlAction, UpgradeKey};

async fn started(world: &World, leader: &Leader, cluster: &str) -> Assignment {
    world.connect(leader, &[cluster]).await;
    world.apply_fleet("up", &campaign(&[cluster], 0));
    let assigned = world.assigned(cluster, |_| true).await;
    world
        .until("its name has left the list", || {
            world.fleet("up").status.unwrap().starting.is_empty()
        })
        .await;
    assigned
}

fn at(boot: u64, sequence: u64) -> Revision {
    Revision { boot, sequence }
}

#[tokio::test]
async fn a_word_of_another_fence_changes_nothing() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    let fence = &assigned.fence;
    let others = [
        Fence { epoch: fence.epoch + 1, ..fence.clone() },
        Fence { attempt: fence.attempt + 1, ..fence.clone() },
        Fence { epoch: 0, ..fence.clone() },
    ];
    for other in &others {
        let before = world.agents.assignments("a").len();
        let said = Said { fence: other, revision: at(9, 9), json: ended("Failed") };
        world.report("a", &assigned.upgrade, said).await;
        // The agent is told again what it should be doing.
        world.until("assigned again", || world.agents.assignments("a").len() > before).await;
    }
    let uid = "another-uid".try_into().unwrap();
    let stranger = Fence { uid, ..fence.clone() };
    let said = Said { fence: &stranger, revision: at(9, 9), json: ended("Failed") };
    world.report("a", &assigned.upgrade, said).await;
    let expected = [(stranger.clone(), ControlAction::Cancel), (stranger, ControlAction::Forget)];
    world.until("it is told to stop", || world.agents.controls("a") == expected).await;
    assert!(world.agents.acks("a").is_empty());
    assert_eq!(world.phase("up"), "Running");
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}

#[tokio::test]
async fn a_cluster_cannot_speak_for_another() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    world.connect(&leader, &["b"]).await;
    let said = Said { fence: &assigned.fence, revision: at(1, 1), json: ended("Failed") };
    world.report("b", &assigned.upgrade, said).await;
    world.until("it is counted", || leader.metrics.statuses.with(["foreign"]).get() == 1).await;
    assert!(world.agents.acks("b").is_empty());
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}

#[tokio::test]
async fn words_out_of_order_and_twice_are_acknowledged_and_not_written() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    let say = async |revision, json| {
        let said = Said { fence: &assigned.fence, revision, json };
        world.report("a", &assigned.upgrade, said).await;
    };
    say(at(1, 5), upgrading(1)).await;
    world.until("durable", || world.agents.acks("a") == [at(1, 5)]).await;
    let writes = world.part_writes("a");
    say(at(1, 5), upgrading(1)).await;
    say(at(1, 4), upgrading(0)).await;
    world
        .until("acknowledged again", || world.agents.acks("a") == [at(1, 5), at(1, 5), at(1, 4)])
        .await;
    assert_eq!(world.part_writes("a"), writes);
    // Of one step nothing new has to be durable.
    say(at(1, 6), upgrading(1)).await;
    world.until("acknowledged", || world.agents.acks("a").contains(&at(1, 6))).await;
    assert_eq!(world.part_writes("a"), writes);
    let status = world.part("a").unwrap().status.unwrap();
    assert_eq!((status.boot, status.sequence), (1, 5));
    leader.stop().await;
}

#[tokio::test]
async fn words_between_two_transitions_are_shown_and_never_written() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    let said = Said { fence: &assigned.fence, revision: at(1, 5), json: upgrading(1) };
    world.report("a", &assigned.upgrade, said).await;
    world.until("durable", || world.agents.acks("a") == [at(1, 5)]).await;
    let writes = world.part_writes("a");
    let shown = |leader: &Leader| {
        let row = leader.row("up", "a").unwrap();
        let step = &row["steps"][1];
        let said = &row["operatorConditions"][0]["message"];
        json!([row["message"], step["message"], step["percent"], step["installPlan"], said])
    };
    let words = json!({"message": "step 2 of 2: it comes up",
        "steps": [{"state": "Running", "percent": 40, "message": "it comes up",
            "installPlan": "install-x"}],
        "operatorConditions": [{"csv": "tea.v1.2.0", "type": "Calm", "status": "True",
            "reason": "Still", "message": "no wind"}]});
    let expected = json!(["step 2 of 2: it comes up", "it comes up", 40, "install-x", "no wind"]);
    world.progress("a", &assigned, at(1, 5), &words).await;
    world.until("it is shown", || shown(&leader) == expected).await;
    // Older than what was heard, and of another cluster: no news.
    let late = json!({"message": "late"});
    world.progress("a", &assigned, at(1, 4), &late).await;
    world.progress("a", &assigned, at(1, 5), &json!("no document")).await;
    world.until("refused", || leader.metrics.statuses.with(["invalid"]).get() == 1).await;
    assert_eq!(shown(&leader), expected);
    assert_eq!(world.part_writes("a"), writes);
    // The next leader knows what was written; what is said to it is shown all the same.
    leader.kill().await;
    let leader = world.lead(2);
    world.connect(&leader, &["a"]).await;
    world.until("assigned again", || world.agents.assignments("a").len() == 2).await;
    world.progress("a", &assigned, at(1, 5), &words).await;
    world.until("it is shown again", || shown(&leader) == expected).await;
    world.end("a", &assigned, "Succeeded", 6).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}

#[tokio::test]
async fn an_agent_that_was_restarted_is_newer_than_before() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    let say = async |revision, json| {
        let said = Said { fence: &assigned.fence, revision, json };
        world.report("a", &assigned.upgrade, said).await;
    };
    say(at(1, 7), upgrading(1)).await;
    say(at(2, 1), ended("Succeeded")).await;
    world.until("the end is durable", || world.state("a") == "Succeeded").await;
    // The end was taken once; whatever comes after it changes nothing and need not be repeated.
    let writes = world.part_writes("a");
    say(at(1, 8), ended("Failed")).await;
    say(at(3, 1), ended("Failed")).await;
    world.until("acknowledged", || world.agents.acks("a").contains(&at(3, 1))).await;
    assert_eq!((world.state("a"), world.part_writes("a")), ("Succeeded".to_owned(), writes));
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}

#[tokio::test]
async fn an_end_that_could_not_be_stored_is_not_acknowledged_until_it_is() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    let refuse = Fault {
        on: Matcher {
            gk: Some(gk::CLUSTER_UPGRADE.clone()),
            subresource: Some("status".to_owned()),
            ..Matcher::writes_of(HUB)
        },
        times: Times::all(),
        action: Action::Refuse(ApiError::new(Reason::InternalError, "not now")),
    };
    let id = world.api.faults().add(refuse);
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("it was tried", || world.api.faults().seen(id) >= 2).await;
    assert!(world.agents.acks("a").is_empty());
    // The hub is killed before it could store it; the agent repeats it to the next.
    leader.kill().await;
    world.api.faults().remove(id);
    let leader = world.lead(2);
    world.connect(&leader, &["a"]).await;
    world.until("assigned again", || world.agents.assignments("a").len() == 2).await;
    assert_ne!(world.state("a"), "Succeeded");
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    world.until("acknowledged", || world.agents.acks("a") == [at(1, 1)]).await;
    leader.stop().await;
}

#[tokio::test]
async fn an_end_that_was_stored_unheard_is_acknowledged_without_a_second_write() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    world.api.faults().add(Fault {
        on: Matcher {
            gk: Some(gk::CLUSTER_UPGRADE.clone()),
            subresource: Some("status".to_owned()),
            ..Matcher::writes_of(HUB)
        },
        times: Times::nth(1),
        action: Action::DropAfter,
    });
    world.end("a", &assigned, "Succeeded", 1).await;
    world.until("acknowledged", || world.agents.acks("a") == [at(1, 1)]).await;
    let ends = world.api.audit().into_iter().filter(|entry| {
        entry.request.gk.as_ref() == Some(&gk::CLUSTER_UPGRADE)
            && entry.request.subresource == "status"
            && entry.request.verb == Verb::Update
    });
    // The preflight, and the end whose answer was lost.
    assert_eq!(ends.count(), 2);
    leader.stop().await;
}

#[tokio::test]
async fn a_campaign_made_again_under_its_old_name_is_another() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let old = started(&world, &leader, "a").await;
    world.api.store().delete(&gk::FLEET_UPGRADE, Some(NAMESPACE), "up").unwrap();
    let cancelled = [(old.fence.clone(), ControlAction::Cancel)];
    world.until("the old one is told to stop", || world.agents.controls("a") == cancelled).await;
    world.apply_fleet("up", &campaign(&["a"], 0));
    world
        .until("the new one waits for the old one", || {
            leader.row("up", "a").is_some_and(|row| row["waitingOn"]["type"] == "Holder")
        })
        .await;
    assert_eq!(world.agents.assignments("a").len(), 1);

    // The old one fails: that is no failure of the new one.
    world.end("a", &old, "Failed", 1).await;
    let new = world.assigned("a", |one| one.fence.uid != old.fence.uid).await;
    assert_ne!(new.upgrade, old.upgrade);
    world
        .until("the old one may be dropped", || {
            world.agents.controls("a").contains(&(old.fence.clone(), ControlAction::Forget))
        })
        .await;
    assert_eq!(world.fleet("up").status.unwrap().summary.unwrap().failed, 0);
    world.end("a", &new, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    let states: Vec<_> =
        world.parts("a").into_iter().map(|part| part.status.unwrap().state.unwrap()).collect();
    assert_eq!(states.len(), 2);
    leader.stop().await;
}

#[tokio::test]
async fn an_agent_at_work_on_what_nobody_knows_is_told_to_stop() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    let assigned = started(&world, &leader, "a").await;
    let name = "gone-12345678".try_into().unwrap();
    let unknown = UpgradeKey { name, ..assigned.upgrade.clone() };
    let fence = Fence { uid: "gone".try_into().unwrap(), epoch: 1, attempt: 0 };
    let said = Said { fence: &fence, revision: at(1, 1), json: json!({"state": "Upgrading"}) };
    world.report("a", &unknown, said).await;
    let expected = [(fence.clone(), ControlAction::Cancel), (fence, ControlAction::Forget)];
    world.until("it is told to stop", || world.agents.controls("a") == expected).await;
    leader.stop().await;
}
