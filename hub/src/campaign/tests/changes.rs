//! A plan that changes between the user's word and the cluster's start.

use serde_json::{Value, json};

use super::harness::*;
use crate::link::Assignment;

/// A campaign on `a` and then `b` that was launched and is under way on `a`.
struct Launched {
    world: World,
    leader: Leader,
    first: Assignment,
    digest: String,
}

impl Launched {
    async fn new(rule: &str, target: Value) -> Self {
        let world = World::new(&["a", "b"]);
        let leader = world.lead(1);
        world.connect(&leader, &["a", "b"]).await;
        let mut spec = campaign(&["a", "b"], 0);
        spec["stage"] = json!("Preview");
        spec["targets"] = json!({"operators": [target]});
        spec["onPlanChange"] = json!(rule);
        spec["waves"] =
            json!([{"name": "first", "names": ["a"]}, {"name": "second", "names": ["b"]}]);
        world.apply_fleet("up", &spec);
        world.until("the preview is complete", || world.phase("up") == "Previewed").await;
        let digest = world.fleet("up").status.unwrap().plan_digest.unwrap();
        world.edit_fleet("up", |spec| {
            spec["stage"] = json!("Rollout");
            spec["planDigest"] = json!(digest);
        });
        let first = world.assigned("a", |_| true).await;
        Self { world, leader, first, digest }
    }

    /// `b` is another one now, and `a` is done.
    async fn b_becomes(&self, installed: &str, versions: &[&str]) {
        let Self { world, first, digest, .. } = self;
        world.agents.set_inventory("b", installed, &tea(versions));
        world.announce("b").await;
        let is_another = || world.fleet("up").status.unwrap().plan_digest.as_ref() != Some(digest);
        world.until("b has another plan", is_another).await;
        world.end("a", first, "Succeeded", 1).await;
    }

    async fn b_waits_for_consent(&self) {
        let waits = || {
            let row = self.leader.row("up", "b");
            row.is_some_and(|row| row["waitingOn"]["type"] == "Consent")
        };
        self.world.until("b waits for consent", waits).await;
        assert!(self.world.agents.assignments("b").is_empty());
    }

    /// The versions that the steps of `b`'s assignment lead to.
    async fn b_starts(&self) -> Vec<Value> {
        let second = self.world.assigned("b", |_| true).await;
        assert_eq!(second.fence.epoch, 1, "it is the same consent");
        let spec: Value = serde_json::from_slice(&second.spec_json).unwrap();
        let steps = spec["plan"]["steps"].as_array().unwrap();
        assert_eq!(self.world.part("b").unwrap().spec.plan.unwrap().steps.len(), steps.len());
        self.world.end("b", &second, "Succeeded", 1).await;
        let world = &self.world;
        world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
        let history = world.fleet("up").status.unwrap().history;
        let told: Vec<&str> =
            history.iter().filter(|e| e.reason == "PlanChanged").map(|e| &*e.message).collect();
        assert_eq!(told, ["the plan has changed within onPlanChange and goes on: b"]);
        steps.iter().map(|step| step["moves"][0]["toVersion"].clone()).collect()
    }
}

#[tokio::test]
async fn the_same_target_by_fewer_steps_goes_on() {
    let launched = Launched::new("SameTarget", json!({"package": "tea"})).await;
    // Somebody has taken the first step by hand.
    launched.b_becomes("1.1.0", &["1.0.0", "1.1.0", "1.2.0"]).await;
    assert_eq!(launched.b_starts().await, ["1.2.0"]);
    launched.leader.stop().await;
}

#[tokio::test]
async fn another_target_waits_for_consent_though_the_same_one_would_not() {
    let launched = Launched::new("SameTarget", json!({"package": "tea"})).await;
    launched.b_becomes("1.0.0", &["1.0.0", "1.1.0", "1.2.0", "1.3.0"]).await;
    launched.b_waits_for_consent().await;
    launched.leader.stop().await;
}

#[tokio::test]
async fn a_newer_version_within_the_range_goes_on() {
    let target = json!({"package": "tea", "versionRange": ">=1.2.0 <1.4.0"});
    let launched = Launched::new("WithinRange", target).await;
    launched.b_becomes("1.0.0", &["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"]).await;
    assert_eq!(launched.b_starts().await, ["1.1.0", "1.2.0", "1.3.0"]);
    launched.leader.stop().await;
}

#[tokio::test]
async fn without_the_users_word_fewer_steps_wait_for_consent() {
    let launched = Launched::new("Stop", json!({"package": "tea"})).await;
    launched.b_becomes("1.1.0", &["1.0.0", "1.1.0", "1.2.0"]).await;
    launched.b_waits_for_consent().await;
    launched.leader.stop().await;
}
