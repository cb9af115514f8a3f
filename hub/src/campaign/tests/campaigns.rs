//! Campaigns from the preview to their end.

use serde_json::json;
use wavelift_api::cluster_upgrade::UpgradeStage;
use wavelift_core::{fence::Revision, plan::fleet_digest};
use wavelift_sim::apiserver::{Verb, gk};

use super::harness::*;

#[tokio::test]
async fn a_campaign_goes_from_preview_over_preflight_to_its_end() {
    let clusters = ["a", "b", "c"];
    let world = World::new(&clusters);
    world.agents.set_inventory("c", "1.2.0", &tea(&["1.0.0", "1.1.0", "1.2.0"]));
    let leader = world.lead(1);
    world.connect(&leader, &clusters).await;
    let mut spec = campaign(&clusters, 0);
    spec["stage"] = json!("Preview");
    spec["waves"] = json!([{"name": "canary", "names": ["a"]}]);
    spec["budget"] = json!({"mode": "Strict"});
    world.apply_fleet("up", &spec);

    world.until("the preview is complete", || world.phase("up") == "Previewed").await;
    let kinds: Vec<_> = world.writes().into_iter().filter_map(|entry| entry.request.gk).collect();
    assert!(kinds.iter().all(|kind| *kind == gk::FLEET_UPGRADE || *kind == gk::EVENT), "{kinds:?}");
    assert_eq!(world.agents.catalog_requests(), 1, "one catalog is uploaded once");
    let status = world.fleet("up").status.unwrap();
    let paths: Vec<_> = status
        .preview
        .iter()
        .map(|p| (p.from.as_str(), p.to.as_str(), p.hops, p.clusters, p.note.as_str()))
        .collect();
    assert_eq!(
        paths,
        [("1.0.0", "1.2.0", 2, 2, "via 1.1.0"), ("1.2.0", "1.2.0", 0, 1, "already at target")]
    );
    let digest = status.plan_digest.unwrap();

    world.edit_fleet("up", |spec| spec["stage"] = json!("Preflight"));
    world.until("the checks are answered", || world.phase("up") == "Preflighted").await;
    assert_eq!((world.state("a"), world.state("c")), ("Ready".to_owned(), String::new()));
    assert!(world.agents.assignments("a").is_empty());

    world.edit_fleet("up", |spec| {
        spec["stage"] = json!("Rollout");
        spec["planDigest"] = json!(digest);
    });
    let first = world.assigned("a", |_| true).await;
    assert_eq!((first.fence.epoch, first.fence.attempt), (1, 0));
    assert!(world.agents.assignments("b").is_empty(), "b is in a later wave");
    let frozen = world.part("a").unwrap();
    assert_eq!(frozen.spec.stage, UpgradeStage::Rollout);
    let steps = frozen.spec.plan.as_ref().unwrap().steps.len();
    assert_eq!(steps, 2);
    for step in [1_u8, 2] {
        let said = Said {
            fence: &first.fence,
            revision: Revision { boot: 1, sequence: step.into() },
            json: upgrading(step.into()),
        };
        world.report("a", &first.upgrade, said).await;
        let revision = Revision { boot: 1, sequence: step.into() };
        world.until("the step is durable", || world.agents.acks("a").contains(&revision)).await;
    }
    world.end("a", &first, "Succeeded", 3).await;
    let second = world.assigned("b", |_| true).await;
    world.end("b", &second, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;

    let status = world.fleet("up").status.unwrap();
    let summary = status.summary.unwrap();
    assert_eq!((summary.clusters, summary.succeeded), (3, 3));
    assert!(status.starting.is_empty() && status.completion_time.is_some());
    let reasons: Vec<_> = status.history.iter().map(|entry| entry.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "Previewed",
            "PreflightDone",
            "Launched",
            "WaveStarted",
            "WaveComplete",
            "WaveStarted",
            "WaveComplete",
            "Succeeded"
        ]
    );
    let ready = status.conditions.iter().find(|c| c.kind == "Succeeded").unwrap();
    assert_eq!(format!("{:?}", ready.status), "True");
    // Created, preflight, started, two hops, the end: nothing more.
    assert_eq!(world.part_writes("a"), 4 + steps);
    assert!(world.part_writes("b") <= 4 + steps);
    assert_eq!(world.part_writes("c"), 0);
    leader.stop().await;
}

#[tokio::test]
async fn a_start_is_written_ahead_and_told_to_the_agent_last() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    let mut changes = world.api.store().subscribe();
    world.apply_fleet("up", &campaign(&["a"], 0));
    world.assigned("a", |_| true).await;
    let wavelift_sim::apiserver::Batch::Changes(changes) = changes.now() else {
        panic!("too many changes")
    };
    let at = |is_it: &dyn Fn(&wavelift_sim::apiserver::Change) -> bool| {
        changes.iter().position(|change| is_it(change)).expect("it happened")
    };
    let ahead =
        at(&|c| c.gk == gk::FLEET_UPGRADE && c.object["status"]["starting"] == json!(["a"]));
    let entered = at(&|c| c.gk == gk::FLEET_UPGRADE && c.object["status"]["epoch"] == json!(1));
    let created = at(&|c| c.gk == gk::CLUSTER_UPGRADE);
    let started =
        at(&|c| c.gk == gk::CLUSTER_UPGRADE && c.object["spec"]["stage"] == json!("Rollout"));
    assert!(created < ahead && entered < ahead && ahead < started);
    world
        .until("its name has left the list", || {
            world.fleet("up").status.unwrap().starting.is_empty()
        })
        .await;
    leader.stop().await;
}

#[tokio::test]
async fn only_the_plan_that_was_consented_to_is_started() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    let mut spec = campaign(&["a"], 0);
    spec["planDigest"] = json!(format!("sha256:{}", "0".repeat(64)));
    world.apply_fleet("up", &spec);
    world.until("it asks for consent", || world.phase("up") == "AwaitingConsent").await;
    assert!(world.part("a").is_none());
    let digest = || world.fleet("up").status.unwrap().plan_digest;
    world.until("the plan is made", || digest().is_some()).await;
    let digest = digest().unwrap();
    world.edit_fleet("up", |spec| spec["planDigest"] = json!(digest));
    let assigned = world.assigned("a", |_| true).await;
    let part = world.part("a").unwrap();
    let plan = wavelift_core::plan::Plan::try_from(part.spec.plan.as_ref().unwrap()).unwrap();
    assert_eq!(fleet_digest([(&name("a"), &plan)]), digest);
    assert_eq!(part.spec.plan_digest, Some(plan.digest()));
    assert_eq!(assigned.fence.epoch, 1);
    leader.stop().await;
}

#[tokio::test]
async fn a_cluster_that_comes_after_the_launch_waits_for_a_new_consent() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["stage"] = json!("Preview");
    world.apply_fleet("up", &spec);
    world.until("the preview is complete", || world.phase("up") == "Previewed").await;
    let launched = world.fleet("up").status.unwrap().plan_digest.unwrap();
    world.edit_fleet("up", |spec| {
        spec["stage"] = json!("Rollout");
        spec["planDigest"] = json!(launched);
    });
    let first = world.assigned("a", |_| true).await;
    world.connect(&leader, &["b"]).await;
    let digest = || world.fleet("up").status.unwrap().plan_digest.unwrap();
    world.until("the digest is another", || digest() != launched).await;
    world
        .until("b waits for consent", || {
            leader.row("up", "b").is_some_and(|row| row["waitingOn"]["type"] == "Consent")
        })
        .await;
    assert!(world.part("b").is_none());

    let second = digest();
    world.edit_fleet("up", |spec| spec["planDigest"] = json!(second));
    let assigned = world.assigned("b", |_| true).await;
    assert_eq!(assigned.fence.epoch, 2);
    let status = world.fleet("up").status.unwrap();
    assert_eq!((status.epoch, status.consented_digest.as_deref()), (2, Some(second.as_str())));
    // What was started keeps its fence, and is heard.
    assert_eq!(world.part("a").unwrap().spec.epoch, 1);
    world.end("a", &first, "Succeeded", 1).await;
    world.end("b", &assigned, "Succeeded", 1).await;
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    leader.stop().await;
}

#[tokio::test]
async fn a_plan_that_changes_before_the_start_is_not_started() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a", "b"]).await;
    let mut spec = campaign(&["a", "b"], 0);
    spec["stage"] = json!("Preview");
    spec["targets"] = json!({"operators": [{"package": "tea"}]});
    spec["waves"] = json!([{"name": "first", "names": ["a"]}, {"name": "second", "names": ["b"]}]);
    world.apply_fleet("up", &spec);
    world.until("the preview is complete", || world.phase("up") == "Previewed").await;
    let launched = world.fleet("up").status.unwrap().plan_digest.unwrap();
    world.edit_fleet("up", |spec| {
        spec["stage"] = json!("Rollout");
        spec["planDigest"] = json!(launched);
    });
    let first = world.assigned("a", |_| true).await;
    // b's catalog gets a newer version while a is under way.
    world.agents.set_inventory("b", "1.0.0", &tea(&["1.0.0", "1.1.0", "1.2.0", "1.3.0"]));
    world.announce("b").await;
    world
        .until("b has another plan", || {
            world.fleet("up").status.unwrap().plan_digest.as_deref() != Some(launched.as_str())
        })
        .await;
    world.end("a", &first, "Succeeded", 1).await;
    world
        .until("b waits for consent", || {
            leader.row("up", "b").is_some_and(|row| row["waitingOn"]["type"] == "Consent")
        })
        .await;
    assert!(world.agents.assignments("b").is_empty());
    let frozen = world.part("b").unwrap().spec.plan.unwrap().steps.len();
    assert_eq!(frozen, 2, "what was consented to stays written");

    let digest = world.fleet("up").status.unwrap().plan_digest.unwrap();
    world.edit_fleet("up", |spec| spec["planDigest"] = json!(digest));
    let second = world.assigned("b", |_| true).await;
    assert_eq!(second.fence.epoch, 2);
    let spec: serde_json::Value = serde_json::from_slice(&second.spec_json).unwrap();
    assert_eq!(spec["plan"]["steps"].as_array().unwrap().len(), 3);
    leader.stop().await;
}

#[tokio::test]
async fn without_a_digest_any_plan_within_the_targets_runs() {
    let world = World::new(&["a", "b"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &campaign(&["a", "b"], 0));
    world.assigned("a", |_| true).await;
    world.connect(&leader, &["b"]).await;
    let second = world.assigned("b", |_| true).await;
    assert_eq!(second.fence.epoch, 1);
    leader.stop().await;
}

#[tokio::test]
async fn a_held_cluster_keeps_its_wave_open_and_is_checked_again() {
    let world = World::new(&["a"]);
    world.agents.fail_checks("a");
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &campaign(&["a"], 0));
    world.until("a is held", || world.state("a") == "Blocked").await;
    world.until("the campaign runs", || world.phase("up") == "Running").await;
    let asked = world.agents.checks("a").len();
    world.hand.advance(std::time::Duration::from_secs(299));
    world.agents.pass_checks("a");
    world.hand.advance(std::time::Duration::from_secs(1));
    world.assigned("a", |_| true).await;
    assert_eq!(world.agents.checks("a").len(), asked + 1);
    let status = world.fleet("up").status.unwrap();
    assert_eq!(status.summary.unwrap().failed, 0);
    leader.stop().await;
}

#[tokio::test]
async fn a_check_that_is_not_answered_is_asked_again_with_the_same_id() {
    let world = World::new(&["a"]);
    world.agents.ignore_checks("a");
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &campaign(&["a"], 0));
    world.until("it was asked", || world.agents.checks("a").len() == 1).await;
    world.hand.advance(std::time::Duration::from_mins(5));
    world.until("it was asked again", || world.agents.checks("a").len() == 2).await;
    let checks = world.agents.checks("a");
    assert_eq!(checks[0], checks[1]);
    leader.stop().await;
}

#[tokio::test]
async fn a_campaign_that_cannot_be_read_says_so_and_touches_nothing() {
    let world = World::new(&["a"]);
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    let mut spec = campaign(&["a"], 0);
    spec["targets"] = json!({"operators": [{"package": "tea", "version": "latest"}]});
    world.apply_fleet("up", &spec);
    let ready = || {
        let status = world.fleet("up").status.unwrap_or_default();
        status.conditions.into_iter().find(|condition| condition.kind == "Stalled")
    };
    world.until("it says so", || ready().is_some()).await;
    let stalled = ready().unwrap();
    assert_eq!(stalled.reason, "PlanUnresolvable");
    assert!(stalled.message.contains("the version of tea"), "{}", stalled.message);
    world.edit_fleet("up", |spec| spec["targets"]["operators"][0]["version"] = json!("1.2.0"));
    world.assigned("a", |_| true).await;
    leader.stop().await;
}

#[tokio::test]
async fn the_hub_writes_no_more_than_its_bucket_allows() {
    let names: Vec<String> = (0..14).map(|n| format!("c{n:02}")).collect();
    let clusters: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&clusters);
    let leader = world.lead(1);
    world.connect(&leader, &clusters).await;
    world.apply_fleet("up", &campaign(&clusters, 0));
    let began = tokio::time::Instant::now();
    for cluster in &clusters {
        let assigned = world.assigned(cluster, |_| true).await;
        world.end(cluster, &assigned, "Succeeded", 1).await;
    }
    world.until("the campaign has ended", || world.phase("up") == "Succeeded").await;
    let is_status = |entry: &&wavelift_sim::apiserver::AuditEntry| {
        entry.request.gk.as_ref() == Some(&gk::FLEET_UPGRADE) && entry.request.verb == Verb::Update
    };
    let writes = world.writes().iter().filter(is_status).count();
    let allowed = 20 + began.elapsed().as_secs() + 1;
    assert!(writes as u64 <= allowed, "{writes} writes, {allowed} allowed");
    for cluster in &clusters {
        assert!(world.part_writes(cluster) <= 4 + 2);
    }
    assert_eq!(leader.metrics.writes().fleet_upgrades, writes as u64);
    leader.stop().await;
}

#[tokio::test]
async fn a_cluster_whose_namespace_is_missing_is_named() {
    let world = World::new(&["a"]);
    world.api.store().delete(&gk::NAMESPACE, None, "a").unwrap();
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &campaign(&["a"], 0));
    let insights = || world.fleet("up").status.unwrap_or_default().insights;
    world.until("it says so", || !insights().is_empty()).await;
    assert_eq!(insights()[0].reason, "ClusterUpgradeNotWritten");
    assert!(insights()[0].remediation.contains("namespace a"));
    world.api.store().create(&gk::NAMESPACE, json!({"metadata": {"name": "a"}})).unwrap();
    world.assigned("a", |_| true).await;
    world.until("it says so no more", || insights().is_empty()).await;
    leader.stop().await;
}
