//! Situations in which OLM would go astray, or nowhere and without a word: the agent holds, says
//! why, and goes on when the cause is gone.

use serde_json::{Value, json};

use super::{
    Cluster, World, in_both_worlds,
    objects::{CSV, INSTALL_PLAN, SUBSCRIPTION},
    operators::Release,
    rig::Rig,
    upgrades::{chain, checks, held_by},
    workloads::Rollout,
};

/// Waits until the order stands still with these words, and checks that nothing was written.
async fn is_held(rig: &Rig, words: &str) -> Value {
    let says = |text: &Value| text.as_str().is_some_and(|text| text.contains(words));
    let held = rig.until(|status| says(&status["message"])).await.unwrap();
    let mut insights = held["insights"].as_array().into_iter().flatten();
    let is_told = |insight: &Value| says(&insight["message"]) && insight["sinceTime"].is_string();
    assert!(insights.any(is_told), "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    held
}

async fn a_version_whose_dependency_is_nowhere_is_named_and_the_one_below_it_taken(world: World) {
    let mut releases = chain("churn", &["1.0.0", "1.1.0", "1.2.0"]);
    releases[2] = releases[2].clone().skip_range(">=1.0.0 <1.2.0");
    releases[2].properties.push(json!({
        "type": "olm.package.required",
        "value": {"packageName": "butter", "versionRange": ">=3.0.0"}}));
    let mut rig = Rig::start(world, "no-dependency", &releases).await.unwrap();
    rig.install(&[("churn", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order_version("churn", "1.2.0").await.unwrap();
    is_held(&rig, "butter").await;
    // With it both come.
    let more = [releases, vec![Release::new("butter", "3.0.0")]].concat();
    rig.serve(&more).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    let approved = rig.approved().await.unwrap();
    assert_eq!(approved.last().unwrap(), "butter.v3.0.0+churn.v1.2.0", "{approved:?}");
}

async fn an_installed_version_that_was_never_well_is_not_upgraded(world: World) {
    let mut releases = chain("forge", &["1.0.0", "1.1.0"]);
    releases[0].min_kube_version = Some("1.99.0");
    let rig = Rig::start(world, "never-well", &releases).await.unwrap();
    rig.subscribe("forge", Some("1.0.0")).await.unwrap();
    rig.approve_until("forge.v1.0.0", "Pending").await.unwrap();
    rig.until_offered("forge", "forge.v1.1.0").await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["forge"]).await.unwrap();
    let held = rig.until(|status| !held_by(status).is_empty()).await.unwrap();
    assert!(checks(&held).contains(&"installed-csv-healthy".to_owned()), "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
}

async fn an_installed_version_that_lost_its_pod_is_not_upgraded_until_it_is_well(world: World) {
    let rig = Rig::start(world, "lost-pod", &chain("winch", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("winch", "1.0.0")]).await.unwrap();
    rig.workloads.tell_now("winch", Rollout::Lost);
    let at = (rig.namespace.as_str(), "winch.v1.0.0");
    let unwell = |csv: &Value| csv["status"]["phase"] != "Succeeded";
    rig.objects.until_object(CSV, at, unwell).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["winch"]).await.unwrap();
    let held = rig.until(|status| !held_by(status).is_empty()).await.unwrap();
    assert!(checks(&held).contains(&"installed-csv-healthy".to_owned()), "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    rig.workloads.tell_now("winch", Rollout::Well(std::time::Duration::ZERO));
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["winch.v1.1.0"]);
}

async fn a_version_that_failed_is_named_and_the_next_one_waits_for_it(world: World) {
    let releases = chain("auger", &["1.0.0", "1.1.0", "1.2.0"]);
    let rig = Rig::start(world, "failed-before", &releases).await.unwrap();
    rig.install(&[("auger", "1.0.0")]).await.unwrap();
    rig.workloads.tell("auger", Rollout::DeadlineExceeded);
    // A person has approved the first hop, and it failed.
    rig.approve_until("auger.v1.1.0", "Failed").await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["auger"]).await.unwrap();
    let unwell = |status: &Value| {
        status["message"].as_str().is_some_and(|text| text.contains("auger.v1.1.0"))
    };
    let held = rig.until(unwell).await.unwrap();
    assert_eq!(held["state"], "Blocked", "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    rig.workloads.tell_now("auger", Rollout::Well(std::time::Duration::ZERO));
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["auger.v1.2.0"]);
}

async fn a_channel_without_a_way_is_named_and_one_that_gets_a_way_is_gone(world: World) {
    let releases = [Release::new("crane", "1.0.0"), Release::new("crane", "2.0.0").channel("next")];
    let mut rig = Rig::start(world, "no-edge", &releases).await.unwrap();
    rig.install(&[("crane", "1.0.0")]).await.unwrap();
    let at = |rig: &Rig| (rig.namespace.clone(), "crane".to_owned());
    let (namespace, name) = at(&rig);
    let channel = async |channel: &str| {
        let spec = json!({"spec": {"channel": channel}});
        rig.objects.patch(SUBSCRIPTION, (&namespace, &name), &spec).await.unwrap();
    };
    channel("nosuch").await;
    let agent = rig.agent().await.unwrap();
    rig.order_version("crane", "2.0.0").await.unwrap();
    is_held(&rig, "nosuch").await;
    channel("next").await;
    is_held(&rig, "2.0.0").await;
    drop(agent);
    let mut releases = releases;
    releases[1] = releases[1].clone().skip_range(">=1.0.0 <2.0.0");
    rig.serve(&releases).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["crane.v2.0.0"]);
}

async fn a_neighbour_whose_package_is_nowhere_is_named(world: World) {
    let rig = Rig::start(world, "no-package", &chain("drill", &["1.0.0", "1.1.0"])).await.unwrap();
    rig.install(&[("drill", "1.0.0")]).await.unwrap();
    rig.subscribe("gimlet", None).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["drill"]).await.unwrap();
    is_held(&rig, "gimlet").await;
    rig.objects.delete(SUBSCRIPTION, &rig.namespace, "gimlet").await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["drill.v1.1.0"]);
}

async fn automatic_and_manual_neighbours_move_by_one_approval_and_are_held(world: World) {
    let first = [Release::new("awl", "1.0.0"), Release::new("rasp", "1.0.0")];
    let mut rig = Rig::start(world, "mixed-approval", &first).await.unwrap();
    rig.install(&[("awl", "1.0.0"), ("rasp", "1.0.0")]).await.unwrap();
    let newer = [chain("awl", &["1.0.0", "1.1.0"]), chain("rasp", &["1.0.0", "1.1.0"])].concat();
    rig.serve(&newer).await.unwrap();
    let both = json!(["awl.v1.1.0", "rasp.v1.1.0"]);
    let is_offered = || async {
        let plans = rig.objects.list(INSTALL_PLAN, &rig.namespace).await?;
        let sorted = |plan: &Value| {
            let names = plan["spec"]["clusterServiceVersionNames"].as_array().cloned();
            let mut names = names.unwrap_or_default();
            names.sort_by_key(Value::to_string);
            json!(names)
        };
        Ok(plans.iter().any(|plan| sorted(plan) == both).then_some(()))
    };
    rig.objects.until("an offer of both", is_offered).await.unwrap();
    // The plan was made while both were Manual: as it is, nobody but a person will approve it.
    let automatic = json!({"spec": {"installPlanApproval": "Automatic"}});
    for name in ["awl", "rasp"] {
        let at = (rig.namespace.as_str(), name);
        rig.objects.patch(SUBSCRIPTION, at, &automatic).await.unwrap();
    }
    let _agent = rig.agent().await.unwrap();
    rig.order(&["awl", "rasp"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["awl.v1.1.0+rasp.v1.1.0"]);
    for subscription in rig.objects.list(SUBSCRIPTION, &rig.namespace).await.unwrap() {
        assert_eq!(subscription["spec"]["installPlanApproval"], "Manual", "{subscription}");
    }
}

async fn what_its_author_deprecated_is_upgraded_all_the_same(world: World) {
    let releases = chain("sickle", &["1.0.0", "1.1.0"]);
    let mut rig = Rig::start(world, "deprecated", &releases).await.unwrap();
    rig.install(&[("sickle", "1.0.0")]).await.unwrap();
    let entry =
        |reference: Value, message: &str| json!({"reference": reference, "message": message});
    let deprecations = json!({"schema": "olm.deprecations", "package": "sickle", "entries": [
        entry(json!({"schema": "olm.bundle", "name": "sickle.v1.0.0"}), "it has a hole"),
        entry(json!({"schema": "olm.channel", "name": "stable"}), "take another one"),
        entry(json!({"schema": "olm.package"}), "take a scythe"),
    ]});
    rig.serve_with(&releases, vec![deprecations]).await.unwrap();
    let at = (rig.namespace.as_str(), "sickle");
    let is_told = |subscription: &Value| {
        subscription["status"]["conditions"].to_string().contains("take a scythe")
    };
    rig.objects.until_object(SUBSCRIPTION, at, is_told).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["sickle"]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["sickle.v1.1.0"]);
}

in_both_worlds! {
    shared_if_long {
        a_version_whose_dependency_is_nowhere_is_named_and_the_one_below_it_taken,
        an_installed_version_that_was_never_well_is_not_upgraded,
        an_installed_version_that_lost_its_pod_is_not_upgraded_until_it_is_well,
        a_version_that_failed_is_named_and_the_next_one_waits_for_it,
        a_channel_without_a_way_is_named_and_one_that_gets_a_way_is_gone,
        a_neighbour_whose_package_is_nowhere_is_named,
        automatic_and_manual_neighbours_move_by_one_approval_and_are_held,
        what_its_author_deprecated_is_upgraded_all_the_same,
    }
}
