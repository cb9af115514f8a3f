//! The main transitions of an OLM v0, each in a scenario of its own.

use serde_json::json;
use wavelift_runtime::Clock;

use super::{
    Builder, Operator, SimCluster,
    drive::{Driver, catalog},
};
use crate::apiserver::gk;

fn operator(package: &str, installed: Option<&str>) -> Operator {
    Operator {
        namespace: "ops".to_owned(),
        package: package.to_owned(),
        channel: "stable".to_owned(),
        source: ("ops".to_owned(), "cat".to_owned()),
        installed: installed.map(str::to_owned),
        approval: super::Approval::Manual,
    }
}

fn chain() -> std::sync::Arc<wavelift_catalog::Catalog> {
    catalog(
        "tea",
        &[
            ("1.0.0", json!({})),
            ("1.1.0", json!({ "replaces": "tea.v1.0.0" })),
            ("1.2.0", json!({ "replaces": "tea.v1.1.0" })),
        ],
    )
}

fn tea(builder: Builder) -> Builder {
    builder.catalog("ops", "cat", chain()).operator(operator("tea", Some("tea.v1.0.0")))
}

#[test]
fn an_approved_plan_takes_the_operator_one_version_on_and_the_next_is_offered() {
    let world = Driver::new(tea);
    assert_eq!(world.csv("tea.v1.0.0"), "Succeeded/InstallSucceeded");
    world.until(60, "v1.1.0 is offered", |w| w.offered("tea") == ["tea.v1.1.0"]);
    assert_eq!(world.subscription("tea"), ["UpgradePending", "tea.v1.1.0", "tea.v1.0.0"]);
    world.pass(600);
    assert_eq!(world.csv("tea.v1.1.0"), "", "nothing runs without approval");
    world.approve("tea");
    world.until(60, "v1.2.0 is offered", |w| w.offered("tea") == ["tea.v1.2.0"]);
    assert_eq!(world.csv("tea.v1.0.0"), "");
    world.until(5, "v1.1.0 is well", |w| w.csv("tea.v1.1.0") == "Succeeded/InstallSucceeded");
    assert_eq!(world.subscription("tea"), ["UpgradePending", "tea.v1.2.0", "tea.v1.1.0"]);
    assert!(world.get(&gk::OPERATOR_CONDITION, "tea.v1.0.0").is_none());
    assert!(world.get(&gk::OPERATOR_CONDITION, "tea.v1.1.0").is_some());
}

#[tokio::test]
async fn a_started_cluster_moves_by_its_clock_and_stops() {
    let origin = jiff::Timestamp::from_second(1_600_000_000).unwrap();
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
}
