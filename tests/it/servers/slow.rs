//! Situations that take their minutes, because OLM's own times are minutes. They run when
//! everything is run.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    Cluster, World, in_both_worlds,
    objects::{CATALOG_SOURCE, CSV, Objects},
    olm::HOME,
    rig::Rig,
    upgrades::chain,
    workloads::Rollout,
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The phases and reasons that a CSV has been through, as it tells of them.
async fn history(rig: &Rig, csv: &str) -> Vec<(String, String)> {
    let found = rig.objects.get(CSV, &rig.namespace, csv).await.unwrap().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = found["status"]["conditions"].as_array().unwrap().clone();
    conditions.iter().map(|c| (text(&c["phase"]), text(&c["reason"]))).collect()
}

async fn a_rollout_past_olms_timeout_is_waited_for_and_ends_well(world: World) {
    let rig = Rig::start(world, "timeout", &chain("barrel", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("barrel", "1.0.0")]).await.unwrap();
    rig.workloads.tell("barrel", Rollout::Never);
    let _agent = rig.agent_with_deadline(HOUR).await.unwrap();
    rig.order(&["barrel"]).await.unwrap();
    // OLM gives up after five minutes, for thirty milliseconds.
    let timed_out = || async {
        let Some(csv) = rig.objects.get(CSV, &rig.namespace, "barrel.v1.1.0").await? else {
            return Ok(None);
        };
        Ok(csv["status"]["conditions"].to_string().contains("install timeout").then_some(()))
    };
    rig.objects.until_late("OLM's timeout", timed_out).await.unwrap();
    let is_told = |status: &Value| {
        let insights = status["insights"].to_string();
        insights.contains("DeploymentNotAvailable") && insights.contains("install timeout")
    };
    let now = rig.until(is_told).await.unwrap();
    assert_eq!(now["state"], "Upgrading", "{now}");
    rig.workloads.tell_now("barrel", Rollout::Well(Duration::ZERO));
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["barrel.v1.1.0"]);
    let history = history(&rig, "barrel.v1.1.0").await;
    assert!(history.contains(&("Failed".to_owned(), "InstallCheckFailed".to_owned())));
}

async fn a_rollout_that_fails_for_a_while_is_told_of_and_ends_well(world: World) {
    let rig = Rig::start(world, "heals", &chain("pail", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("pail", "1.0.0")]).await.unwrap();
    rig.workloads.tell("pail", Rollout::DeadlineExceeded);
    let _agent = rig.agent_with_deadline(HOUR).await.unwrap();
    rig.order(&["pail"]).await.unwrap();
    let said = rig.until(|s| s.to_string().contains("exceeded its progress deadline")).await;
    assert_eq!(said.unwrap()["state"], "Upgrading");
    rig.workloads.tell_now("pail", Rollout::Well(Duration::ZERO));
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["pail.v1.1.0"]);
}

async fn a_slow_rollout_is_waited_for(world: World) {
    let rig = Rig::start(world, "slow", &chain("jug", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("jug", "1.0.0")]).await.unwrap();
    rig.workloads.tell("jug", Rollout::Well(Duration::from_secs(100)));
    let _agent = rig.agent_with_deadline(HOUR).await.unwrap();
    rig.order(&["jug"]).await.unwrap();
    let waits = |status: &Value| status.to_string().contains("waiting for deployment");
    assert_eq!(rig.until(waits).await.unwrap()["state"], "Upgrading");
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["jug.v1.1.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_catalog_that_never_answered_holds_and_is_named() {
    let Some(shared) = Cluster::shared_if_long().await else { return };
    // On a cluster of its own: it would hold all other tests too.
    let cluster = Cluster::on(&shared.ground, "foreign").await.unwrap();
    let objects: Objects = cluster.objects().await.unwrap();
    let cluster = std::sync::Arc::new(cluster);
    let rig = Rig::start(cluster, "foreign", &chain("ladle", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("ladle", "1.0.0")]).await.unwrap();
    let port = super::api::free_port().unwrap();
    let spec = json!({"sourceType": "grpc", "address": format!("127.0.0.1:{port}")});
    let source = json!({"metadata": {"name": "unrelated", "namespace": HOME}, "spec": spec});
    objects.create(CATALOG_SOURCE, HOME, &source).await.unwrap();
    let at = (HOME, "unrelated");
    let is_down = |source: &Value| {
        source["status"]["connectionState"]["lastObservedState"] == "TRANSIENT_FAILURE"
    };
    objects.until_object(CATALOG_SOURCE, at, is_down).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["ladle"]).await.unwrap();
    let held = rig.until(|status| status.to_string().contains("unrelated")).await.unwrap();
    assert_eq!(held["state"], "Blocked", "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    objects.delete(CATALOG_SOURCE, HOME, "unrelated").await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["ladle.v1.1.0"]);
}

in_both_worlds! {
    shared_if_long {
        a_rollout_past_olms_timeout_is_waited_for_and_ends_well,
        a_rollout_that_fails_for_a_while_is_told_of_and_ends_well,
        a_slow_rollout_is_waited_for,
    }
}
