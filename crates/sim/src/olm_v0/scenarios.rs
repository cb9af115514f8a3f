//! The main situations of an upgrade, each as a short story. They need no recordings.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Persistence, Refusal, Timing, objects::text};
use crate::{
    apiserver::gk,
    cluster::{
        Approval, Operator,
        drive::{Driver, catalog, catalog_of, operator, tea},
    },
    olm_v0::subscription::condition,
    workload::Behaviour,
};

const SUCCEEDED: &str = "Succeeded/InstallSucceeded";

fn cup() -> (&'static str, [(&'static str, Value); 2]) {
    ("cup", [("2.0.0", json!({})), ("2.1.0", json!({ "replaces": "cup.v2.0.0" }))])
}

/// Tea and cup in one namespace; tea has 1.1.0 when `tea_entries` says so.
fn pair(tea_entries: &[(&str, Value)], cup_approval: Approval) -> Driver {
    let (cup, entries) = cup();
    let catalog = catalog_of(&[("tea", tea_entries), (cup, &entries)]);
    Driver::new(|cluster| {
        cluster
            .catalog("ops", "cat", catalog)
            .operator(operator("tea", Some("tea.v1.0.0")))
            .operator(Operator { approval: cup_approval, ..operator("cup", Some("cup.v2.0.0")) })
    })
}

fn two_teas(second: Value) -> [(&'static str, Value); 2] {
    let mut second = second;
    second["replaces"] = json!("tea.v1.0.0");
    [("1.0.0", json!({})), ("1.1.0", second)]
}

fn resolution_fails(world: &Driver, subscription: &str) -> Option<String> {
    let subscription = world.get(&gk::SUBSCRIPTION, subscription)?;
    condition(&subscription, "ResolutionFailed").map(|said| text(said, "/reason").to_owned())
}

fn offered(world: &Driver) {
    world.until(60, "v1.1.0 is offered", |w| w.offered("tea") == ["tea.v1.1.0"]);
}

#[test]
fn a_plan_takes_the_operator_one_version_on_and_the_next_is_offered() {
    let world = Driver::new(tea);
    offered(&world);
    world.pass(600);
    assert_eq!(world.csv("tea.v1.1.0"), "", "nothing runs without approval");
    world.approve("tea");
    world.until(60, "v1.2.0 is offered", |w| w.offered("tea") == ["tea.v1.2.0"]);
    world.until(5, "v1.1.0 is well", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
    assert_eq!(world.csv("tea.v1.0.0"), "");
    assert_eq!(world.subscription("tea"), ["UpgradePending", "tea.v1.2.0", "tea.v1.1.0"]);
    assert!(world.get(&gk::OPERATOR_CONDITION, "tea.v1.0.0").is_none());
    assert!(world.get(&gk::OPERATOR_CONDITION, "tea.v1.1.0").is_some());
}

#[test]
fn a_first_installation_goes_from_nothing_to_success() {
    let entries = two_teas(json!({}));
    let world = Driver::new(|cluster| {
        let cluster = cluster.catalog("ops", "cat", catalog("tea", &entries));
        cluster.operator(operator("tea", None))
    });
    world.until(60, "the head is offered", |w| w.offered("tea") == ["tea.v1.1.0"]);
    world.approve("tea");
    world.until(60, "it is there", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
    world.until(60, "its subscription follows", |w| {
        w.subscription("tea") == ["AtLatestKnown", "tea.v1.1.0", "tea.v1.1.0"]
    });
}

#[test]
fn one_plan_moves_all_of_a_namespace_and_one_manual_subscription_holds_it() {
    let world = pair(&two_teas(json!({})), Approval::Automatic);
    world.until(60, "both are offered", |w| w.offered("tea") == ["cup.v2.1.0", "tea.v1.1.0"]);
    assert_eq!(world.offered("cup"), world.offered("tea"));
    world.pass(300);
    assert_eq!(world.csv("cup.v2.1.0"), "", "Automatic, but the plan is Manual");
    world.approve("cup");
    world.until(60, "both are there", |w| {
        w.csv("cup.v2.1.0") == SUCCEEDED && w.csv("tea.v1.1.0") == SUCCEEDED
    });
}

#[test]
fn automatic_subscriptions_need_nobody() {
    let world = Driver::new(|cluster| {
        let operator =
            Operator { approval: Approval::Automatic, ..operator("cup", Some("cup.v2.0.0")) };
        cluster.catalog("ops", "cat", catalog("cup", &cup().1)).operator(operator)
    });
    world.until(60, "v2.1.0 is there", |w| w.csv("cup.v2.1.0") == SUCCEEDED);
}

#[test]
fn a_dependency_comes_along_with_a_subscription_of_its_own() {
    let needs = json!({ "properties": [{
        "type": "olm.package.required",
        "value": { "packageName": "cup", "versionRange": ">=2.0.0" },
    }] });
    let (cup, entries) = cup();
    let catalog = catalog_of(&[("tea", &two_teas(needs)), (cup, &entries)]);
    let world = Driver::new(|cluster| {
        cluster.catalog("ops", "cat", catalog).operator(operator("tea", Some("tea.v1.0.0")))
    });
    world.until(60, "both are offered", |w| w.offered("tea") == ["cup.v2.1.0", "tea.v1.1.0"]);
    world.approve("tea");
    let name = "cup-stable-cat-ops";
    world.until(60, "it has a subscription", |w| w.get(&gk::SUBSCRIPTION, name).is_some());
    let made = world.get(&gk::SUBSCRIPTION, name).unwrap();
    assert_eq!(text(&made, "/spec/installPlanApproval"), "Automatic");
    world.until(60, "it knows what is installed", |w| {
        w.subscription(name) == ["AtLatestKnown", "cup.v2.1.0", "cup.v2.1.0"]
    });
}

#[test]
fn an_unapproved_plan_stays_when_the_catalog_moves_on_and_is_refreshed_by_deleting_it() {
    let world = Driver::new(|cluster| {
        let catalog = catalog("tea", &two_teas(json!({})));
        cluster.catalog("ops", "cat", catalog).operator(operator("tea", Some("tea.v1.0.0")))
    });
    offered(&world);
    let newer = catalog(
        "tea",
        &[
            ("1.0.0", json!({})),
            ("1.1.0", json!({ "replaces": "tea.v1.0.0" })),
            ("1.2.0", json!({ "replaces": "tea.v1.1.0", "skipRange": ">=1.0.0 <1.2.0" })),
        ],
    );
    world.cluster.with_olm(|olm| olm.serve_catalog("ops", "cat", newer));
    world.pass(600);
    assert_eq!(world.offered("tea"), ["tea.v1.1.0"]);
    let plan = world.plan_of("tea").unwrap();
    let name = text(&plan, "/metadata/name");
    world.cluster.store().delete(&gk::INSTALL_PLAN, Some("ops"), name).unwrap();
    world.until(10, "the subscription forgets it", |w| {
        w.subscription("tea") == ["", "", "tea.v1.0.0"]
    });
    world.until(60, "v1.2.0 is offered", |w| w.offered("tea") == ["tea.v1.2.0"]);
}

#[test]
fn of_a_plan_deleted_before_its_subscription_says_that_it_waits_the_reference_stays() {
    let world = Driver::new(tea);
    let plan = |w: &Driver| {
        let subscription = w.get(&gk::SUBSCRIPTION, "tea").unwrap();
        text(&subscription, "/status/installPlanRef/name").to_owned()
    };
    world.until(60, "a plan is referred to", |w| !plan(w).is_empty());
    let early = plan(&world);
    assert!(
        condition(&world.get(&gk::SUBSCRIPTION, "tea").unwrap(), "InstallPlanPending").is_none()
    );
    world.cluster.store().delete(&gk::INSTALL_PLAN, Some("ops"), &early).unwrap();
    world.pass(3600);
    assert_eq!(world.subscription("tea"), ["UpgradePending", "tea.v1.1.0", "tea.v1.0.0"]);
    assert_eq!(plan(&world), early);
    assert!(world.offered("tea").is_empty());
}

#[test]
fn a_plan_that_nothing_refers_to_runs_when_approved_and_two_csvs_fight() {
    let (cup, _) = cup();
    let old_cup = [("2.0.0", json!({}))];
    let first = catalog_of(&[("tea", &two_teas(json!({}))), (cup, &old_cup)]);
    let world = Driver::new(|cluster| {
        cluster
            .catalog("ops", "cat", first)
            .operator(operator("tea", Some("tea.v1.0.0")))
            .operator(operator("cup", Some("cup.v2.0.0")))
    });
    offered(&world);
    let old = world.plan_of("tea").unwrap();
    let newer = catalog_of(&[
        (
            "tea",
            &[
                ("1.0.0", json!({})),
                ("1.1.0", json!({ "replaces": "tea.v1.0.0" })),
                ("1.2.0", json!({ "replaces": "tea.v1.1.0", "skipRange": ">=1.0.0 <1.2.0" })),
            ],
        ),
        (cup, &old_cup),
    ]);
    world.cluster.with_olm(|olm| olm.serve_catalog("ops", "cat", newer));
    world.until(60, "v1.2.0 is offered", |w| w.offered("tea") == ["tea.v1.2.0"]);
    let name = text(&old, "/metadata/name");
    world.patch(&gk::INSTALL_PLAN, name, &json!({ "spec": { "approved": true } }));
    world.until(60, "the old plan runs", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
    world.until(60, "resolution fails", |w| {
        resolution_fails(w, "cup").as_deref() == Some("ConstraintsNotSatisfiable")
    });
    world.approve("tea");
    world.until(60, "v1.2.0 is there", |w| w.csv("tea.v1.2.0") == SUCCEEDED);
    world.until(120, "v1.1.0 misses its Deployment", |w| {
        w.csv("tea.v1.1.0") == "Failed/ComponentUnhealthy"
    });
    world.until(60, "v1.1.0 takes it back", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
}

#[test]
fn a_kubernetes_version_too_low_bites_after_approval_and_stops_the_neighbours() {
    let world = pair(&two_teas(json!({ "minKubeVersion": "1.99.0" })), Approval::Manual);
    world.until(60, "both are offered", |w| w.offered("tea").len() == 2);
    world.approve("tea");
    world.until(60, "the plan is complete", |w| {
        text(&w.plan_of("tea").unwrap(), "/status/phase") == "Complete"
    });
    assert_eq!(world.csv("tea.v1.1.0"), "Pending/RequirementsNotMet");
    assert_eq!(world.csv("tea.v1.0.0"), "Replacing/BeingReplaced");
    world.until(90, "resolution fails for both", |w| {
        ["tea", "cup"].iter().all(|name| resolution_fails(w, name).is_some())
    });
    assert_eq!(world.subscription("tea"), ["AtLatestKnown", "tea.v1.1.0", "tea.v1.1.0"]);
    let csv = world.get(&gk::CSV, "tea.v1.1.0").unwrap();
    let status = csv["status"]["requirementStatus"].to_string();
    assert!(status.contains("minKubeVersion (1.99.0) > server version (1.31.4)"), "{status}");
}

#[test]
fn a_quick_upgrade_never_reports_a_failed_resolution() {
    for seed in 0..20 {
        let world = Driver::new(|cluster| tea(cluster).seed(seed));
        offered(&world);
        world.approve("tea");
        world.until(60, "v1.2.0 is offered", |w| {
            assert_eq!(resolution_fails(w, "tea"), None, "seed {seed}");
            w.offered("tea") == ["tea.v1.2.0"]
        });
    }
}

#[test]
fn the_old_version_may_hold_the_new_one_back_and_an_admin_may_overrule_it() {
    let world = Driver::new(tea);
    offered(&world);
    let busy = json!([{
        "type": "Upgradeable", "status": "False", "reason": "Busy", "message": "wait",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }]);
    world.patch(&gk::OPERATOR_CONDITION, "tea.v1.0.0", &json!({ "spec": { "conditions": busy } }));
    world.approve("tea");
    world.until(60, "v1.1.0 waits", |w| {
        w.csv("tea.v1.1.0") == "Pending/OperatorConditionNotUpgradeable"
    });
    world.pass(600);
    assert_eq!(world.csv("tea.v1.1.0"), "Pending/OperatorConditionNotUpgradeable");
    let overrides = json!([{ "type": "Upgradeable", "status": "True", "reason": "Admin" }]);
    let patch = json!({ "spec": { "overrides": overrides } });
    world.patch(&gk::OPERATOR_CONDITION, "tea.v1.0.0", &patch);
    world.until(60, "v1.1.0 is there", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
}

#[test]
fn a_pod_that_never_comes_up_fails_the_csv_for_a_moment_every_five_minutes() {
    let world = Driver::new(tea);
    world.cluster.with_workload(|workload| workload.script("tea.v1.1.0", Behaviour::Never));
    offered(&world);
    world.approve("tea");
    world.until(60, "it is waited for", |w| w.csv("tea.v1.1.0") == "Installing/InstallWaiting");
    let begun = world.now();
    world.until(400, "it fails", |w| w.csv("tea.v1.1.0") == "Failed/InstallCheckFailed");
    let waited = world.now().duration_since(begun).as_secs();
    assert!((298..=301).contains(&waited), "failed after {waited} s");
    world
        .until(1, "it is waited for again", |w| w.csv("tea.v1.1.0") == "Installing/InstallWaiting");
    let well = Behaviour::Available { after: Duration::ZERO };
    world.cluster.with_workload(|workload| workload.change("ops", "tea", well));
    world.until(5, "it is well", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
    world.until(60, "v1.2.0 is offered", |w| w.offered("tea") == ["tea.v1.2.0"]);
}

#[test]
fn a_missed_deadline_blocks_the_next_version_unless_the_group_fails_forward() {
    let world = Driver::new(tea);
    let late = Behaviour::DeadlineExceeded { after: Duration::from_secs(20) };
    world.cluster.with_workload(|workload| workload.script("tea.v1.1.0", late));
    offered(&world);
    world.approve("tea");
    world.until(60, "it fails", |w| w.csv("tea.v1.1.0") == "Failed/InstallCheckFailed");
    world.pass(600);
    assert_eq!(world.csv("tea.v1.1.0"), "Failed/InstallCheckFailed");
    assert_eq!(world.offered("tea"), [""; 0]);
    let strategy = json!({ "spec": { "upgradeStrategy": "TechPreviewUnsafeFailForward" } });
    world.patch(&gk::OPERATOR_GROUP, "og", &strategy);
    world.until(60, "v1.2.0 is offered", |w| w.offered("tea") == ["tea.v1.2.0"]);
    world.approve("tea");
    world.until(60, "v1.2.0 is there alone", |w| {
        w.csv("tea.v1.2.0") == SUCCEEDED && w.csv("tea.v1.1.0").is_empty()
    });
    assert_eq!(world.csv("tea.v1.0.0"), "");
}

#[test]
fn an_old_version_that_is_unwell_at_approval_keeps_the_new_one_waiting() {
    let world = Driver::new(tea);
    offered(&world);
    world.cluster.with_workload(|workload| workload.change("ops", "tea", Behaviour::Never));
    world.approve("tea");
    world.until(60, "v1.1.0 waits", |w| w.csv("tea.v1.1.0") == "Pending/RequirementsNotMet");
    world.pass(60);
    assert_eq!(world.csv("tea.v1.0.0"), "Installing/InstallWaiting");
    assert_eq!(world.csv("tea.v1.1.0"), "Pending/RequirementsNotMet");
    let well = Behaviour::Available { after: Duration::ZERO };
    world.cluster.with_workload(|workload| workload.change("ops", "tea", well));
    world.until(60, "v1.1.0 is there", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
}

#[test]
fn a_refused_step_fails_the_plan_after_a_minute_and_is_a_dead_end() {
    let world = Driver::new(tea);
    let refusal = Refusal { message: "no".to_owned(), persistence: Persistence::Minute };
    world.cluster.with_olm(|olm| olm.refuse("tea.v1.1.0", refusal));
    offered(&world);
    world.approve("tea");
    let phase = |w: &Driver| text(&w.plan_of("tea").unwrap(), "/status/phase").to_owned();
    world.until(120, "the plan fails", |w| phase(w) == "Failed");
    let plan = world.plan_of("tea").unwrap();
    assert_eq!(text(&plan, "/status/conditions/0/reason"), "InstallComponentFailed");
    assert_eq!(world.csv("tea.v1.1.0"), "Pending/RequirementsNotMet");
    world.cluster.with_olm(|olm| olm.accept("tea.v1.1.0"));
    let name = text(&plan, "/metadata/name");
    world.cluster.store().delete(&gk::INSTALL_PLAN, Some("ops"), name).unwrap();
    world.pass(600);
    assert_eq!(world.offered("tea"), [""; 0], "deleting it brings no new one");
    let tea = world.get(&gk::SUBSCRIPTION, "tea").unwrap();
    assert!(condition(&tea, "InstallPlanMissing").is_some());
}

#[test]
fn a_forbidden_step_is_tried_until_it_is_allowed() {
    let world = Driver::new(tea);
    let refusal = Refusal { message: "no".to_owned(), persistence: Persistence::Endless };
    world.cluster.with_olm(|olm| olm.refuse("tea.v1.1.0", refusal));
    offered(&world);
    world.approve("tea");
    world.pass(600);
    let plan = world.plan_of("tea").unwrap();
    assert_eq!(text(&plan, "/status/phase"), "Installing");
    assert_eq!(text(&plan, "/status/message"), "retrying execution due to error: no");
    world.cluster.with_olm(|olm| olm.accept("tea.v1.1.0"));
    world.until(60, "v1.1.0 is there", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
}

#[test]
fn a_namespace_needs_exactly_one_operator_group() {
    let world = Driver::new(tea);
    offered(&world);
    let store = world.cluster.store();
    let second = json!({ "metadata": { "name": "og2", "namespace": "ops" }, "spec": {} });
    store.create(&gk::OPERATOR_GROUP, second).unwrap();
    world.until(5, "the CSV fails", |w| w.csv("tea.v1.0.0") == "Failed/TooManyOperatorGroups");
    world.approve("tea");
    world.pass(60);
    assert_eq!(world.csv("tea.v1.1.0"), "");
    store.delete(&gk::OPERATOR_GROUP, Some("ops"), "og2").unwrap();
    world.until(60, "the plan runs", |w| w.csv("tea.v1.1.0") == SUCCEEDED);
    store.delete(&gk::OPERATOR_GROUP, Some("ops"), "og").unwrap();
    world.until(5, "the CSV fails", |w| w.csv("tea.v1.1.0") == "Failed/NoOperatorGroup");
}

#[test]
fn only_a_catalog_that_was_never_read_prevents_resolution() {
    let world = Driver::new(|cluster| {
        let timing = Timing { flap_percent: 0, ..Timing::default() };
        tea(cluster).timing(timing)
    });
    offered(&world);
    world.cluster.with_olm(|olm| olm.stop_catalog("ops", "cat"));
    world.until(10, "it is down", |w| {
        let source = w.get(&gk::CATALOG_SOURCE, "cat").unwrap();
        text(&source, "/status/connectionState/lastObservedState") == "TRANSIENT_FAILURE"
    });
    world.approve("tea");
    world.until(60, "v1.2.0 is offered from memory", |w| w.offered("tea") == ["tea.v1.2.0"]);
    world.approve("tea");
    world.until(60, "v1.2.0 is there", |w| w.subscription("tea")[2] == "tea.v1.2.0");
    let other = json!({
        "metadata": { "name": "other", "namespace": "openshift-marketplace" },
        "spec": { "sourceType": "grpc", "address": "nowhere:50051" },
    });
    world.cluster.store().create(&gk::CATALOG_SOURCE, other).unwrap();
    world.until(60, "resolution fails", |w| {
        resolution_fails(w, "tea").as_deref() == Some("ErrorPreventedResolution")
    });
}

#[test]
fn a_csv_without_subscription_is_never_adopted_by_itself() {
    let world = Driver::new(tea);
    offered(&world);
    let store = world.cluster.store();
    let spec = world.get(&gk::SUBSCRIPTION, "tea").unwrap()["spec"].clone();
    store.delete(&gk::SUBSCRIPTION, Some("ops"), "tea").unwrap();
    world.pass(30);
    assert_eq!(world.csv("tea.v1.0.0"), SUCCEEDED);
    assert!(store.list(&gk::INSTALL_PLAN, Some("ops")).is_empty(), "its plans go with it");
    let again = json!({ "metadata": { "name": "tea", "namespace": "ops" }, "spec": spec });
    store.create(&gk::SUBSCRIPTION, again).unwrap();
    world.until(90, "resolution fails", |w| resolution_fails(w, "tea").is_some());
    world.pass(600);
    assert_eq!(world.subscription("tea"), ["", "", ""]);
    let adopt = json!({ "status": { "currentCSV": "tea.v1.0.0" } });
    let status = crate::apiserver::Subresource::Status;
    store.patch_merge(&gk::SUBSCRIPTION, Some("ops"), "tea", status, &adopt).unwrap();
    world.until(60, "it is adopted", |w| w.offered("tea") == ["tea.v1.1.0"]);
}

#[test]
fn a_missing_package_is_loud_and_stops_the_namespace() {
    let world = pair(&two_teas(json!({})), Approval::Manual);
    let store = world.cluster.store();
    let bad = json!({
        "metadata": { "name": "pot", "namespace": "ops" },
        "spec": { "name": "pot", "source": "cat", "sourceNamespace": "ops" },
    });
    store.create(&gk::SUBSCRIPTION, bad).unwrap();
    world.until(30, "resolution fails for all", |w| {
        ["tea", "cup", "pot"].iter().all(|name| resolution_fails(w, name).is_some())
    });
    let tea = world.get(&gk::SUBSCRIPTION, "tea").unwrap();
    let said = condition(&tea, "ResolutionFailed").unwrap();
    assert!(text(said, "/message").contains("no operators found in package pot"), "{said}");
    store.delete(&gk::SUBSCRIPTION, Some("ops"), "pot").unwrap();
    world.until(60, "both are offered", |w| w.offered("tea").len() == 2);
}

#[test]
fn deprecations_are_told_and_hinder_nothing() {
    let world = Driver::new(|cluster| {
        let catalog = crate::cluster::drive::deprecated_tea();
        cluster.catalog("ops", "cat", catalog).operator(operator("tea", Some("tea.v1.0.0")))
    });
    offered(&world);
    let tea = world.get(&gk::SUBSCRIPTION, "tea").unwrap();
    let said = |kind| condition(&tea, kind).map_or("", |condition| text(condition, "/message"));
    assert_eq!(said("BundleDeprecated"), "olm.bundle/tea.v1.0.0: old leaves");
    assert_eq!(said("PackageDeprecated"), "olm.package/tea: drink coffee");
    assert_eq!(said("ChannelDeprecated"), "");
    assert_eq!(
        said("Deprecated"),
        "olm.package/tea: drink coffee; olm.bundle/tea.v1.0.0: old leaves"
    );
}
