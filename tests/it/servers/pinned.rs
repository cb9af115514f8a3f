//! A real OLM stopped, or held back, where it would not stop by itself: by a pinned catalog.

use anyhow::Result;
use serde_json::{Value, json};
use wavelift_agent::pins::Serving;

use super::{
    Cluster,
    api::free_port,
    mortal::Mortal,
    objects::{CATALOG_SOURCE, CSV, INSTALL_PLAN, SUBSCRIPTION},
    operators::Release,
    rig::Rig,
};

fn serving() -> Serving {
    let port = free_port().unwrap();
    Serving { listen: ([127, 0, 0, 1], port).into(), address: format!("127.0.0.1:{port}") }
}

/// Three versions, the last of which can be reached from everywhere.
pub(super) fn jumping(package: &str) -> Vec<Release<'_>> {
    vec![
        Release::new(package, "1.0.0"),
        Release::new(package, "1.1.0").replaces("1.0.0"),
        Release::new(package, "1.2.0").replaces("1.1.0").skip_range(">=1.0.0 <1.2.0"),
    ]
}

/// What a person, or git, has said in a Subscription.
async fn said(rig: &Rig, name: &str) -> Result<Value> {
    let found = rig.objects.get(SUBSCRIPTION, &rig.namespace, name).await?.unwrap_or_default();
    let annotations = &found["metadata"]["annotations"];
    let ours = annotations.as_object().into_iter().flatten();
    let ours: Vec<&String> = ours.map(|(key, _)| key).filter(|k| k.contains("wavelift")).collect();
    Ok(json!({"spec": found["spec"], "ours": ours}))
}

/// The CatalogSources of the namespace.
async fn sources(rig: &Rig) -> Result<Vec<String>> {
    let sources = rig.objects.list(CATALOG_SOURCE, &rig.namespace).await?;
    let name = |source: &Value| source["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Ok(sources.iter().map(name).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_the_head_jumps_over_is_stopped_at() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let rig = Rig::start(cluster, "stop-below", &jumping("ladder")).await.unwrap();
    rig.allow_pins().await.unwrap();
    rig.install(&[("ladder", "1.0.0")]).await.unwrap();
    // By itself OLM goes past the target.
    rig.until_offered("ladder", "ladder.v1.2.0").await.unwrap();
    let before = said(&rig, "ladder").await.unwrap();
    let _agent = rig.pinning_agent(&serving()).await.unwrap();
    rig.order_pinned(&[("ladder", "1.1.0")]).await.unwrap();
    let done = rig.until_state("Succeeded").await.unwrap();
    assert_eq!(done["plan"]["steps"][0]["via"], "PinnedCatalog", "{done}");
    assert_eq!(rig.approved().await.unwrap(), ["ladder.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["ladder.v1.1.0"]);
    assert_eq!(said(&rig, "ladder").await.unwrap(), before);
    assert_eq!(sources(&rig).await.unwrap(), ["own"]);
    // What was installed is the real bundle, and the real catalog leads on from it.
    let csv = rig.objects.get(CSV, &rig.namespace, "ladder.v1.1.0").await.unwrap().unwrap();
    let container = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/image";
    assert_eq!(csv.pointer(container).unwrap(), "registry.example.com/ladder:1.1.0");
    rig.until_offered("ladder", "ladder.v1.2.0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_is_no_target_stays_while_the_other_goes() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let neighbour =
        vec![Release::new("bucket", "2.0.0"), Release::new("bucket", "2.1.0").replaces("2.0.0")];
    let mut releases = jumping("hawser");
    releases.extend(neighbour);
    let rig = Rig::start(cluster, "stay-behind", &releases).await.unwrap();
    rig.allow_pins().await.unwrap();
    rig.install(&[("bucket", "2.0.0"), ("hawser", "1.0.0")]).await.unwrap();
    let both = || async {
        let plans = rig.objects.list(INSTALL_PLAN, &rig.namespace).await?;
        let of = |plan: &Value| plan["spec"]["clusterServiceVersionNames"].to_string();
        let is_both = |set: String| set.contains("hawser.v1.2.0") && set.contains("bucket.v2.1.0");
        Ok(plans.iter().map(of).any(is_both).then_some(()))
    };
    rig.objects.until("a plan that moves both", both).await.unwrap();
    let before = [said(&rig, "bucket").await.unwrap(), said(&rig, "hawser").await.unwrap()];
    let _agent = rig.pinning_agent(&serving()).await.unwrap();
    rig.order_pinned(&[("hawser", "1.2.0")]).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["hawser.v1.2.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["bucket.v2.0.0", "hawser.v1.2.0"]);
    let after = [said(&rig, "bucket").await.unwrap(), said(&rig, "hawser").await.unwrap()];
    assert_eq!(after, before);
    assert_eq!(sources(&rig).await.unwrap(), ["own"]);
    rig.until_offered("bucket", "bucket.v2.1.0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_die_after_each_of_their_writes_leave_everything_as_it_was() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let mut releases = jumping("anchor");
    releases.push(Release::new("chain", "2.0.0"));
    releases.push(Release::new("chain", "2.1.0").replaces("2.0.0"));
    let rig = Rig::start(cluster, "dying-pins", &releases).await.unwrap();
    rig.allow_pins().await.unwrap();
    rig.install(&[("anchor", "1.0.0"), ("chain", "2.0.0")]).await.unwrap();
    let before = [said(&rig, "anchor").await.unwrap(), said(&rig, "chain").await.unwrap()];
    let serving = serving();
    rig.order_pinned(&[("anchor", "1.1.0")]).await.unwrap();
    let mut deaths = 0;
    loop {
        let mortal = Mortal::new(&rig.namespace);
        let agent = rig.mortal_agent(&serving, &mortal).await.unwrap();
        let has_died = tokio::select! {
            () = mortal.dead() => true,
            done = rig.until_state("Succeeded") => {
                done.unwrap();
                false
            }
        };
        drop(agent);
        if !has_died {
            break;
        }
        deaths += 1;
    }
    // CatalogSource made, two Subscriptions to it, plan deleted or not, approval, two Subscriptions
    // back, CatalogSource deleted.
    assert!(deaths >= 7, "{deaths}");
    assert_eq!(rig.approved().await.unwrap(), ["anchor.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["anchor.v1.1.0", "chain.v2.0.0"]);
    let after = [said(&rig, "anchor").await.unwrap(), said(&rig, "chain").await.unwrap()];
    assert_eq!(after, before);
    assert_eq!(sources(&rig).await.unwrap(), ["own"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_has_left_of_an_upgrade_that_is_gone_is_taken_away() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let rig = Rig::start(cluster, "left-pins", &jumping("buoy")).await.unwrap();
    rig.allow_pins().await.unwrap();
    rig.install(&[("buoy", "1.0.0")]).await.unwrap();
    let before = said(&rig, "buoy").await.unwrap();
    let serving = serving();
    rig.order_pinned(&[("buoy", "1.1.0")]).await.unwrap();
    // The second write points the Subscription at the pinned catalog.
    for _ in 0..2 {
        let mortal = Mortal::new(&rig.namespace);
        let agent = rig.mortal_agent(&serving, &mortal).await.unwrap();
        mortal.dead().await;
        drop(agent);
    }
    let during = said(&rig, "buoy").await.unwrap();
    assert!(during["spec"]["source"].as_str().unwrap().starts_with("wavelift-pinned-"), "{during}");
    rig.withdraw().await.unwrap();
    let _agent = rig.pinning_agent(&serving).await.unwrap();
    let look = || async {
        let is_back = said(&rig, "buoy").await? == before && sources(&rig).await? == ["own"];
        Ok(is_back.then_some(()))
    };
    rig.objects.until("everything as it was", look).await.unwrap();
    assert!(rig.approved().await.unwrap().is_empty());
    assert_eq!(rig.csvs().await.unwrap(), ["buoy.v1.0.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_gitops_manages_is_left_alone_and_it_is_named() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let rig = Rig::start(cluster, "managed-pins", &jumping("cleat")).await.unwrap();
    rig.allow_pins().await.unwrap();
    rig.install(&[("cleat", "1.0.0")]).await.unwrap();
    let spec = json!({"spec": {"source": "own", "sourceNamespace": rig.namespace}});
    rig.objects
        .apply_as("argocd-controller", SUBSCRIPTION, (&rig.namespace, "cleat"), &spec)
        .await
        .unwrap();
    let before = said(&rig, "cleat").await.unwrap();
    let _agent = rig.pinning_agent(&serving()).await.unwrap();
    rig.order_pinned_whatever(&[("cleat", "1.1.0")]).await.unwrap();
    let failed = rig.until_state("Failed").await.unwrap();
    assert_eq!(failed["failure"]["reason"], "PinnedCatalogRefused", "{failed}");
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("is managed by argocd-controller"), "{message}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    assert_eq!(said(&rig, "cleat").await.unwrap(), before);
}
