//! What was recorded of OLM v0, gone through with an agent on a real one.
//!
//! All of them share a cluster, and an order names packages wherever they are: so each test has
//! packages of its own. Each is one of the recorded situations, and says how it must end: upgraded, held before
//! anything moved, or stopped; each with the reason that a person is told.

use jiff::SignedDuration;
use serde_json::json;

use super::{
    Cluster, World, in_both_worlds,
    objects::{CATALOG_SOURCE, INSTALL_PLAN, OPERATOR_CONDITION, OPERATOR_GROUP, SUBSCRIPTION},
    operators::Release,
    rig::Rig,
    workloads::Rollout,
};

/// A chain of versions of one package.
pub(super) fn chain<'a>(package: &'a str, versions: &[&'a str]) -> Vec<Release<'a>> {
    let mut releases = vec![];
    let mut before = None;
    for version in versions {
        let release = Release::new(package, version);
        releases.push(match before {
            None => release,
            Some(before) => release.replaces(before),
        });
        before = Some(*version);
    }
    releases
}

/// The preflight checks that hold the cluster, with their reasons.
pub(super) fn held_by(status: &serde_json::Value) -> Vec<(String, String)> {
    let results = status["preflight"]["results"].as_array().into_iter().flatten();
    let failed = results.filter(|result| result["outcome"] == "Fail");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let held: Vec<(String, String)> =
        failed.map(|result| (text(&result["check"]), text(&result["reason"]))).collect();
    if status["state"] == "Blocked" {
        let insights = status["insights"].as_array().into_iter().flatten();
        let ids: Vec<String> = insights.map(|insight| text(&insight["id"])).collect();
        let is_told =
            |(check, reason): &(String, String)| ids.contains(&format!("{reason}/{check}"));
        assert!(held.iter().all(is_told), "what holds is an insight: {held:?} {ids:?}");
    }
    held
}

/// The names of these checks.
pub(super) fn checks(status: &serde_json::Value) -> Vec<String> {
    held_by(status).into_iter().map(|(check, _)| check).collect()
}

async fn a_path_of_two_hops_is_gone_hop_by_hop(world: World) {
    let releases = chain("lamp", &["1.0.0", "1.1.0", "1.2.0"]);
    let rig = Rig::start(world, "two-hops", &releases).await.unwrap();
    rig.install(&[("lamp", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["lamp"]).await.unwrap();
    let done = rig.until_state("Succeeded").await.unwrap();
    assert_eq!(done["steps"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!(rig.approved().await.unwrap(), ["lamp.v1.1.0", "lamp.v1.2.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["lamp.v1.2.0"]);
}

async fn a_skip_range_is_one_hop(world: World) {
    let mut releases = chain("torch", &["1.0.0", "1.1.0", "1.2.0"]);
    releases[2] = releases[2].clone().skip_range(">=1.0.0 <1.2.0");
    let rig = Rig::start(world, "skip-range", &releases).await.unwrap();
    rig.install(&[("torch", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["torch"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["torch.v1.2.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["torch.v1.2.0"]);
}

async fn two_operators_of_a_namespace_move_by_one_approval(world: World) {
    let first = [Release::new("fan", "2.0.0"), Release::new("vane", "1.0.0")];
    let mut rig = Rig::start(world, "two-operators", &first).await.unwrap();
    rig.install(&[("fan", "2.0.0"), ("vane", "1.0.0")]).await.unwrap();
    rig.serve(&[chain("fan", &["2.0.0", "2.1.0"]), chain("vane", &["1.0.0", "1.1.0"])].concat())
        .await
        .unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["fan", "vane"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["fan.v2.1.0+vane.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["fan.v2.1.0", "vane.v1.1.0"]);
}

async fn a_new_dependency_comes_with_the_step_that_needs_it(world: World) {
    let needs = json!({"type": "olm.package.required",
        "value": {"packageName": "cord", "versionRange": ">=3.0.0"}});
    let mut kettle = chain("kettle", &["1.0.0", "1.1.0"]);
    kettle[1].properties.push(needs);
    let releases = [kettle, chain("cord", &["2.0.0", "3.1.0"])].concat();
    let rig = Rig::start(world, "dependency", &releases).await.unwrap();
    rig.install(&[("kettle", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["kettle"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["cord.v3.1.0+kettle.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["cord.v3.1.0", "kettle.v1.1.0"]);
}

async fn what_needs_a_newer_kubernetes_is_held_and_nothing_is_written(world: World) {
    let mut releases = chain("stove", &["1.0.0", "1.1.0"]);
    releases[1].min_kube_version = Some("1.99.0");
    let rig = Rig::start(world, "min-kube", &releases).await.unwrap();
    rig.install(&[("stove", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["stove"]).await.unwrap();
    let held = rig.until(|status| !held_by(status).is_empty()).await.unwrap();
    assert_eq!(held_by(&held), [("min-kube-version".to_owned(), "KubeVersionTooLow".to_owned())]);
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    assert_eq!(rig.csvs().await.unwrap(), ["stove.v1.0.0"]);
}

async fn an_operator_that_must_not_be_upgraded_now_is_held_until_it_may(world: World) {
    let rig = Rig::start(world, "upgradeable", &chain("loom", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("loom", "1.0.0")]).await.unwrap();
    let say = async |status: &str| {
        let condition = json!({"type": "Upgradeable", "status": status, "reason": "Migrating",
            "message": "a migration is running", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let at = (rig.namespace.as_str(), "loom.v1.0.0");
        let patch = json!({"spec": {"conditions": [condition]}});
        rig.objects.patch(OPERATOR_CONDITION, at, &patch).await.unwrap();
    };
    say("False").await;
    let _agent = rig.agent().await.unwrap();
    rig.order(&["loom"]).await.unwrap();
    let held = rig.until(|status| !held_by(status).is_empty()).await.unwrap();
    let checks = checks(&held);
    assert_eq!(checks, ["operator-upgradeable"], "{held}");
    assert!(held.to_string().contains("a migration is running"), "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    say("True").await;
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["loom.v1.1.0"]);
}

async fn two_operatorgroups_hold_until_one_is_gone(world: World) {
    let rig = Rig::start(world, "two-groups", &chain("wheel", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("wheel", "1.0.0")]).await.unwrap();
    rig.group("another").await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["wheel"]).await.unwrap();
    let held = rig.until(|status| !held_by(status).is_empty()).await.unwrap();
    let checks = checks(&held);
    assert!(checks.contains(&"operatorgroup-single".to_owned()), "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    rig.objects.delete(OPERATOR_GROUP, &rig.namespace, "another").await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["wheel.v1.1.0"]);
}

async fn a_plan_that_the_catalog_has_overtaken_is_refreshed_and_not_approved(world: World) {
    let mut rig =
        Rig::start(world, "overtaken", &chain("clock", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("clock", "1.0.0")]).await.unwrap();
    rig.until_offered("clock", "clock.v1.1.0").await.unwrap();
    let mut newer = chain("clock", &["1.0.0", "1.1.0", "1.2.0"]);
    newer[2] = newer[2].clone().skip_range(">=1.0.0 <1.2.0");
    rig.serve(&newer).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["clock"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["clock.v1.2.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["clock.v1.2.0"]);
}

async fn a_catalog_that_is_down_holds_until_it_is_back(world: World) {
    let mut rig =
        Rig::start(world, "catalog-down", &chain("bell", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("bell", "1.0.0")]).await.unwrap();
    rig.kill_registry();
    let look = || async {
        let sources = rig.objects.list(CATALOG_SOURCE, &rig.namespace).await?;
        let state = &sources[0]["status"]["connectionState"]["lastObservedState"];
        Ok((state == "TRANSIENT_FAILURE").then_some(()))
    };
    rig.objects.until("a catalog that is down", look).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["bell"]).await.unwrap();
    // What the agent has never read it cannot plan with.
    let names_it = |status: &serde_json::Value| {
        let message = status["message"].as_str().unwrap_or_default();
        status["state"] == "Blocked" && message.contains("catalog-down/own")
    };
    rig.until(names_it).await.unwrap();
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    rig.restart_registry().unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["bell.v1.1.0"]);
}

async fn a_version_that_never_comes_up_is_stalled_with_olms_words(world: World) {
    let rig = Rig::start(world, "never-up", &chain("pump", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("pump", "1.0.0")]).await.unwrap();
    rig.workloads.tell("pump", Rollout::Never);
    let _agent = rig.agent_with_deadline(SignedDuration::from_mins(1)).await.unwrap();
    rig.order(&["pump"]).await.unwrap();
    let stalled = rig.until_state("Stalled").await.unwrap();
    assert_eq!(stalled["failure"]["reason"], "DeploymentNotAvailable", "{stalled}");
    let message = stalled["failure"]["message"].as_str().unwrap();
    assert!(message.contains("waiting for deployment pump to become ready"), "{message}");
    assert_eq!(rig.approved().await.unwrap(), ["pump.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["pump.v1.0.0", "pump.v1.1.0"]);
}

async fn a_rollout_past_its_deadline_is_named_with_olms_words(world: World) {
    let rig =
        Rig::start(world, "past-deadline", &chain("mill", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("mill", "1.0.0")]).await.unwrap();
    rig.workloads.tell("mill", Rollout::DeadlineExceeded);
    let _agent = rig.agent_with_deadline(SignedDuration::from_mins(1)).await.unwrap();
    rig.order(&["mill"]).await.unwrap();
    let stalled = rig.until_state("Stalled").await.unwrap();
    assert_eq!(stalled["failure"]["reason"], "DeploymentNotAvailable", "{stalled}");
    let message = stalled["failure"]["message"].as_str().unwrap();
    assert!(message.contains("exceeded its progress deadline"), "{message}");
}

async fn a_csv_that_no_subscription_refers_to_is_named(world: World) {
    let rig = Rig::start(world, "orphan", &chain("sail", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("sail", "1.0.0")]).await.unwrap();
    rig.until_offered("sail", "sail.v1.1.0").await.unwrap();
    rig.objects.delete(SUBSCRIPTION, &rig.namespace, "sail").await.unwrap();
    rig.subscribe("sail", None).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["sail"]).await.unwrap();
    let says = "`sail.v1.0.0` is installed and no Subscription refers to it";
    let is_named = |status: &serde_json::Value| {
        status["message"].as_str().is_some_and(|message| message.contains(says))
    };
    let held = rig.until(is_named).await.unwrap();
    assert_eq!(held["state"], "Blocked");
    // OLM says so too, in its way.
    let at = (rig.namespace.as_str(), "sail");
    let says = |subscription: &serde_json::Value| {
        subscription["status"]
            .to_string()
            .contains("sail.v1.0.0 exists and is not referenced by a subscription")
    };
    rig.objects.until_object(SUBSCRIPTION, at, says).await.unwrap();
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
}

async fn without_an_operatorgroup_nothing_moves_until_there_is_one(world: World) {
    let rig = Rig::start(world, "no-group", &chain("plough", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("plough", "1.0.0")]).await.unwrap();
    rig.objects.delete(OPERATOR_GROUP, &rig.namespace, "group").await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["plough"]).await.unwrap();
    let held = rig.until(|status| !held_by(status).is_empty()).await.unwrap();
    let checks = checks(&held);
    assert!(checks.contains(&"operatorgroup-single".to_owned()), "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    rig.group("group").await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["plough.v1.1.0"]);
}

async fn a_plan_that_no_subscription_refers_to_any_more_is_deleted_and_never_run(world: World) {
    let neighbour = chain("anvil", &["1.0.0"]);
    let first = [chain("hammer", &["1.0.0", "1.1.0"]), neighbour.clone()].concat();
    let mut rig = Rig::start(world, "superseded", &first).await.unwrap();
    rig.install(&[("anvil", "1.0.0"), ("hammer", "1.0.0")]).await.unwrap();
    rig.until_offered("hammer", "hammer.v1.1.0").await.unwrap();
    let mut newer = chain("hammer", &["1.0.0", "1.1.0", "1.2.0"]);
    newer[2] = newer[2].clone().skip_range(">=1.0.0 <1.2.0");
    // The neighbour waits for nothing, so that OLM resolves the namespace again by itself.
    rig.serve(&[newer, neighbour].concat()).await.unwrap();
    rig.until_offered("hammer", "hammer.v1.2.0").await.unwrap();
    let plans = rig.objects.list(INSTALL_PLAN, &rig.namespace).await.unwrap();
    let old = json!(["hammer.v1.1.0"]);
    let is_old = |plan: &serde_json::Value| plan["spec"]["clusterServiceVersionNames"] == old;
    assert!(plans.iter().any(is_old), "the old plan is still there");
    let _agent = rig.agent().await.unwrap();
    rig.order(&["hammer"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["hammer.v1.2.0"]);
    let plans = rig.objects.list(INSTALL_PLAN, &rig.namespace).await.unwrap();
    assert!(!plans.iter().any(is_old), "{plans:?}");
    assert_eq!(rig.csvs().await.unwrap(), ["anvil.v1.0.0", "hammer.v1.2.0"]);
}

async fn an_agent_that_dies_and_comes_back_approves_nothing_twice(world: World) {
    let releases = chain("bellows", &["1.0.0", "1.1.0", "1.2.0"]);
    let rig = Rig::start(world, "comes-back", &releases).await.unwrap();
    rig.install(&[("bellows", "1.0.0")]).await.unwrap();
    rig.order(&["bellows"]).await.unwrap();
    for wanted in [1, 2] {
        let agent = rig.agent().await.unwrap();
        let look = || async { Ok((rig.approved().await?.len() >= wanted).then_some(())) };
        rig.objects.until("an approval", look).await.unwrap();
        drop(agent);
    }
    let _agent = rig.agent().await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["bellows.v1.1.0", "bellows.v1.2.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["bellows.v1.2.0"]);
}

in_both_worlds! {
    shared {
        a_path_of_two_hops_is_gone_hop_by_hop,
        a_skip_range_is_one_hop,
        two_operators_of_a_namespace_move_by_one_approval,
        a_new_dependency_comes_with_the_step_that_needs_it,
        what_needs_a_newer_kubernetes_is_held_and_nothing_is_written,
        an_operator_that_must_not_be_upgraded_now_is_held_until_it_may,
        two_operatorgroups_hold_until_one_is_gone,
        a_plan_that_the_catalog_has_overtaken_is_refreshed_and_not_approved,
        a_catalog_that_is_down_holds_until_it_is_back,
        a_version_that_never_comes_up_is_stalled_with_olms_words,
        a_rollout_past_its_deadline_is_named_with_olms_words,
        a_csv_that_no_subscription_refers_to_is_named,
        without_an_operatorgroup_nothing_moves_until_there_is_one,
        a_plan_that_no_subscription_refers_to_any_more_is_deleted_and_never_run,
        an_agent_that_dies_and_comes_back_approves_nothing_twice,
    }
}
