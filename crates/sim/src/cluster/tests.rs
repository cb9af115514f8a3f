//! A cluster as a whole: it settles, moves by its clock, catches up, and repeats itself by its seed.

use jiff::Timestamp;
use serde_json::{Value, json};
use wavelift_runtime::Clock;

use super::{
    SimCluster,
    drive::{Driver, operator, tea},
};
use crate::{
    apiserver::{Batch, Limits, gk},
    olm_v0::objects::text,
};

#[test]
fn a_new_cluster_is_as_an_upgrade_leaves_one_behind() {
    let world = Driver::new(|cluster| tea(cluster).platform("4.17.3"));
    assert_eq!(world.csv("tea.v1.0.0"), "Succeeded/InstallSucceeded");
    assert_eq!(world.subscription("tea"), ["AtLatestKnown", "tea.v1.0.0", "tea.v1.0.0"]);
    let store = world.cluster.store();
    let version = store.get(&gk::CLUSTER_VERSION, None, "version").unwrap();
    assert_eq!(text(&version, "/status/desired/version"), "4.17.3");
    assert_eq!(text(&version, "/spec/clusterID"), world.cluster.uid());
    let deployment = world.get(&gk::DEPLOYMENT, "tea").unwrap();
    assert_eq!(deployment["status"]["availableReplicas"], 1);
    let source = world.get(&gk::CATALOG_SOURCE, "cat").unwrap();
    assert_eq!(text(&source, "/status/connectionState/lastObservedState"), "READY");
}

#[test]
fn an_operator_that_no_catalog_has_is_refused() {
    let (clock, _hand) = Clock::manual(Timestamp::UNIX_EPOCH);
    let cluster = SimCluster::builder("c1", clock).operator(operator("tea", Some("tea.v1.0.0")));
    assert!(cluster.build().is_err());
}

#[tokio::test]
async fn a_started_cluster_moves_by_its_clock_and_stops() {
    let origin = Timestamp::from_second(1_600_000_000).unwrap();
    let cluster = tea(SimCluster::builder("c1", Clock::scaled(origin, 1_000.0))).build().unwrap();
    let mut changes = cluster.store().subscribe();
    cluster.start();
    let is_offered = || {
        let found = cluster.store().get(&gk::SUBSCRIPTION, Some("ops"), "tea");
        found.is_some_and(|tea| tea["status"]["state"] == "UpgradePending")
    };
    while !is_offered() {
        changes.next().await;
    }
    cluster.stop().await;
    let revision = cluster.store().revision();
    cluster.with_olm(|olm| olm.stop_catalog("ops", "cat"));
    tokio::task::yield_now().await;
    assert_eq!(cluster.store().revision(), revision, "nothing moves after the stop");
}

/// What happened to CSVs: names, phases and reasons in order.
fn history(world: &Driver, changes: &mut crate::apiserver::Changes) -> Vec<[String; 3]> {
    let Batch::Changes(changes) = changes.now() else { panic!("too many changes") };
    let of = |object: &Value| {
        ["/metadata/name", "/status/phase", "/status/reason"].map(|p| text(object, p).to_owned())
    };
    let mut history: Vec<[String; 3]> =
        changes.iter().filter(|c| c.gk == gk::CSV).map(|c| of(&c.object)).collect();
    history.dedup();
    assert!(!world.csv("tea.v1.1.0").is_empty());
    history
}

fn upgraded(seed: u64, move_on: impl Fn(&Driver)) -> Vec<[String; 3]> {
    let limits = Limits { history_bytes: 64 << 20, ..Limits::default() };
    let world = Driver::new(|cluster| tea(cluster).seed(seed).limits(limits));
    world.until(60, "v1.1.0 is offered", |w| w.offered("tea") == ["tea.v1.1.0"]);
    let mut changes = world.cluster.store().subscribe();
    world.approve("tea");
    move_on(&world);
    history(&world, &mut changes)
}

#[test]
fn a_cluster_that_is_looked_at_late_has_done_the_same_in_the_same_order() {
    for seed in 0..10 {
        let in_steps = upgraded(seed, |world| world.pass(120));
        let at_once = upgraded(seed, |world| {
            // The approval has to be noticed when it is given.
            world.cluster.tick();
            world.jump(120);
        });
        assert_eq!(in_steps, at_once, "seed {seed}");
        assert!(in_steps.len() >= 9, "{in_steps:?}");
    }
}

#[test]
fn the_seed_decides_what_is_left_to_chance() {
    let flaps = |seed| {
        let history = upgraded(seed, |world| world.pass(120));
        history.iter().any(|[_, phase, reason]| phase == "Failed" && reason == "RequirementsNotMet")
    };
    let with: Vec<bool> = (0..40).map(flaps).collect();
    let again: Vec<bool> = (0..40).map(flaps).collect();
    assert_eq!(with, again);
    let count = with.iter().filter(|flaps| **flaps).count();
    assert!((8..=30).contains(&count), "{count} of 40 good upgrades fell back");
}

#[test]
fn an_install_plan_says_what_it_is_for() {
    let world = Driver::new(tea);
    world.until(60, "v1.1.0 is offered", |w| w.offered("tea") == ["tea.v1.1.0"]);
    let plan = world.plan_of("tea").unwrap();
    assert_eq!(
        plan["spec"],
        json!({
            "approval": "Manual",
            "approved": false,
            "clusterServiceVersionNames": ["tea.v1.1.0"],
            "generation": 1,
        })
    );
    let owner = &plan["metadata"]["ownerReferences"][0];
    assert_eq!((text(owner, "/kind"), text(owner, "/name")), ("Subscription", "tea"));
    let kinds: Vec<&str> = plan["status"]["plan"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| text(step, "/resource/kind"))
        .collect();
    assert_eq!(kinds, ["ClusterServiceVersion", "ServiceAccount"]);
}
