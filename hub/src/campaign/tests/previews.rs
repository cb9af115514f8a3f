//! What a campaign's plans change: groups, differences, what is missing, and who lies about it.

use serde_json::json;
use wavelift_api::live::{BlockerKind, DifferenceKind};
use wavelift_catalog::{Catalog, Fbc, Limits};

use super::harness::*;
use crate::preview::{Counted, Preview, counts};

pub(super) const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "1.2.0"];

pub(super) fn preview_of(clusters: &[&str]) -> serde_json::Value {
    let mut spec = campaign(clusters, 0);
    spec["stage"] = json!("Preview");
    spec
}

/// The newest version may read secrets, which none before could.
#[expect(clippy::unnecessary_wraps, reason = "one of several answers to what has manifests")]
fn reads_secrets(version: &str) -> Option<Vec<&'static str>> {
    Some(if version == "1.2.0" { vec!["get"] } else { vec![] })
}

pub(super) fn clusters(preview: &Preview, group: usize) -> Vec<&str> {
    preview.groups[group].group.clusters.iter().map(AsRef::as_ref).collect()
}

/// Waits until all that can be known is known of `groups` groups.
pub(super) async fn made(world: &World, leader: &Leader, groups: usize) -> std::sync::Arc<Preview> {
    let done = || {
        let preview = leader.preview("up");
        preview.groups.len() == groups && !preview.is_making()
    };
    world.until("the preview is made", done).await;
    leader.preview("up")
}

#[tokio::test]
async fn clusters_that_see_the_same_are_one_group_and_each_piece_travels_once() {
    let all = ["a", "b", "c", "d", "e"];
    let world = World::new(&all);
    let note = json!({"schema": "io.wavelift.release.v1alpha1", "package": "tea"});
    let catalog = brew(&VERSIONS, &reads_secrets, Some(note));
    for (cluster, version) in [("a", "1.0.0"), ("b", "1.0.0"), ("c", "1.1.0"), ("d", "1.2.0")] {
        world.agents.set_inventory(cluster, version, &catalog);
    }
    world.agents.set_inventory("e", "1.0.0", &tea(&["1.0.0", "1.1.0"]));
    let leader = world.lead(1);
    world.connect(&leader, &all).await;
    world.apply_fleet("up", &preview_of(&all));
    let preview = made(&world, &leader, 2).await;
    assert_eq!((clusters(&preview, 0), clusters(&preview, 1)), (vec!["a", "b"], vec!["c"]));
    assert_eq!((preview.clusters, preview.at_target), (5, 1));
    let blockers: Vec<_> =
        preview.blockers.iter().map(|one| (one.cluster.as_str(), one.kind)).collect();
    assert_eq!(blockers, [("e", BlockerKind::NoPath)]);
    for shown in &preview.groups {
        let counts = counts(shown);
        assert_eq!(
            (counts.permissions_gained, counts.dangerous_total, counts.missing_total),
            (1, 1, 0)
        );
        assert!(counts.dangerous[0].contains("secrets"), "{:?}", counts.dangerous);
    }
    let mut asked: Vec<String> = all.iter().flat_map(|c| world.agents.piece_requests(c)).collect();
    let requests = asked.len();
    asked.sort();
    asked.dedup();
    // The table, three bundles and the documents.
    assert_eq!((requests, asked.len()), (5, 5));
    let changes = || world.fleet("up").status.unwrap().changes;
    world.until("it is in the status", || changes().len() == 2).await;
    let first = &changes()[0];
    assert_eq!((first.clusters, first.permissions_gained, first.missing), (2, 1, 0));
    assert_eq!(first.ways, "tea 1.0.0 -> 1.1.0 -> 1.2.0");
    leader.stop().await;
}

#[tokio::test]
async fn what_cannot_be_had_is_missing_and_never_no_change() {
    let all = ["a", "b", "c"];
    let world = World::new(&all);
    let only_new = |version: &str| (version == "1.2.0").then(|| vec!["get"]);
    world.agents.set_inventory("a", "1.1.0", &brew(&VERSIONS, &only_new, None));
    world.agents.set_inventory("b", "1.1.0", &brew(&VERSIONS, &reads_secrets, None));
    world.agents.forget_contents("b");
    let other = |_: &str| Some(vec!["list"]);
    world.agents.set_inventory("c", "1.1.0", &brew(&VERSIONS, &other, None));
    world.agents.lose_pieces("c");
    let leader = world.lead(1);
    world.connect(&leader, &all).await;
    world.apply_fleet("up", &preview_of(&all));
    let preview = made(&world, &leader, 3).await;
    let missing = |group: usize| counts(&preview.groups[group]).missing;
    assert_eq!((clusters(&preview, 0), clusters(&preview, 1)), (vec!["a"], vec!["b"]));
    assert_eq!(missing(0).len(), 1, "{:?}", missing(0));
    assert!(missing(0)[0].starts_with("tea.v1.1.0: "), "{:?}", missing(0));
    assert!(missing(0)[0].contains("does not carry them"), "{:?}", missing(0));
    assert!(missing(1).iter().all(|line| line.contains("too old to tell")), "{:?}", missing(1));
    assert!(missing(2).iter().all(|line| line.contains("the test says so")), "{:?}", missing(2));
    assert!(!missing(1).is_empty() && !missing(2).is_empty());
    let changes = || world.fleet("up").status.unwrap().changes;
    world.until("it is in the status", || changes().len() == 3).await;
    assert!(changes().iter().all(|group| group.missing > 0));
    leader.stop().await;
}

/// The head can be reached from everything below it, and OLM takes the head.
fn jumping() -> Catalog {
    let bundle = |version: &str| {
        json!({"schema": "olm.bundle", "name": format!("tea.v{version}"), "package": "tea",
            "image": format!("img/tea.v{version}"), "properties": [{"type": "olm.package",
                "value": {"packageName": "tea", "version": version}}]})
    };
    let entries = json!([
        {"name": "tea.v1.0.0"},
        {"name": "tea.v1.1.0", "replaces": "tea.v1.0.0"},
        {"name": "tea.v1.2.0", "replaces": "tea.v1.1.0", "skipRange": "<1.2.0"},
    ]);
    let mut documents = vec![
        json!({"schema": "olm.package", "name": "tea", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "name": "stable", "package": "tea", "entries": entries}),
    ];
    documents.extend(VERSIONS.map(bundle));
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let fbc = Fbc::parse("tea.json", text.join("\n").as_bytes(), &Limits::default()).unwrap();
    Catalog::from_fbc(fbc, &Limits::default()).unwrap()
}

#[tokio::test]
async fn a_target_that_the_head_jumps_over_is_reached_by_a_pinned_catalog_where_that_is_allowed() {
    let world = World::new(&["a"]);
    world.agents.set_inventory("a", "1.0.0", &jumping());
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    let mut spec = preview_of(&["a"]);
    spec["targets"] = json!({"operators": [{"package": "tea", "version": "1.1.0"}]});
    world.apply_fleet("up", &spec);
    let blockers = || {
        let preview = leader.preview("up");
        preview.blockers.iter().map(|one| (one.cluster.to_string(), one.kind)).collect::<Vec<_>>()
    };
    let has_no_path = || blockers() == [("a".to_owned(), BlockerKind::NoPath)];
    world.until("it is said that OLM jumps", has_no_path).await;
    world.edit_fleet("up", |spec| spec["pinnedCatalog"] = json!("Allowed"));
    world.until("there is a way", || leader.preview("up").groups.len() == 1).await;
    assert!(blockers().is_empty(), "{:?}", blockers());
    let ways = || world.fleet("up").status.unwrap().changes.into_iter().map(|one| one.ways);
    let way = "tea 1.0.0 -> 1.1.0, stops at 1.1.0 by a pinned catalog";
    world.until("it is in the status", || ways().collect::<Vec<_>>() == [way]).await;
    world.edit_fleet("up", |spec| spec["stage"] = json!("Rollout"));
    let assignment = world.assigned("a", |_| true).await;
    let spec: serde_json::Value = serde_json::from_slice(&assignment.spec_json).unwrap();
    let step = &spec["plan"]["steps"][0];
    assert_eq!(
        (&step["via"], &step["moves"][0]["toVersion"]),
        (&json!("PinnedCatalog"), &json!("1.1.0"))
    );
    leader.stop().await;
}

#[tokio::test]
async fn an_agent_that_sends_something_else_harms_nobody() {
    let all = ["a", "b", "c"];
    let world = World::new(&all);
    let catalog = brew(&VERSIONS, &reads_secrets, None);
    for cluster in ["a", "b"] {
        world.agents.set_inventory(cluster, "1.1.0", &catalog);
    }
    // The first to be asked, in the honest group.
    world.agents.lie("a");
    // The same graph, other manifests: as if nothing changed.
    let harmless = |_: &str| Some(vec![]);
    let forged = brew(&VERSIONS, &harmless, None);
    assert_eq!(forged.digest(), catalog.digest());
    world.agents.set_inventory("c", "1.1.0", &forged);
    let leader = world.lead(1);
    world.connect(&leader, &all).await;
    world.apply_fleet("up", &preview_of(&all));
    let preview = made(&world, &leader, 2).await;
    assert_eq!((clusters(&preview, 0), clusters(&preview, 1)), (vec!["a", "b"], vec!["c"]));
    let gained = |group: usize| {
        let counts = counts(&preview.groups[group]);
        (counts.permissions_gained, counts.missing_total)
    };
    assert_eq!((gained(0), gained(1)), ((1, 0), (0, 0)));
    assert!(!world.agents.piece_requests("a").is_empty());
    // What sets the two apart is said on both sides.
    let counted = Counted::of(&preview);
    let kinds = |group: usize| -> Vec<DifferenceKind> {
        counted.differences(&preview.groups[group]).iter().map(|one| one.kind).collect()
    };
    assert_eq!((kinds(0), kinds(1)), (vec![DifferenceKind::Has], vec![DifferenceKind::Lacks]));
    leader.stop().await;
}

#[tokio::test]
async fn a_session_that_dies_in_the_middle_is_followed_by_the_next() {
    let all = ["a", "b"];
    let world = World::new(&all);
    let catalog = brew(&VERSIONS, &reads_secrets, None);
    for cluster in all {
        world.agents.set_inventory(cluster, "1.1.0", &catalog);
    }
    world.agents.ignore_pieces("a");
    let leader = world.lead(1);
    world.connect(&leader, &all).await;
    world.apply_fleet("up", &preview_of(&all));
    world.until("a was asked", || !world.agents.piece_requests("a").is_empty()).await;
    world.until("it is shown as in the making", || leader.preview("up").is_making()).await;
    assert!(world.agents.piece_requests("b").is_empty());
    world.disconnect("a").await;
    let preview = made(&world, &leader, 1).await;
    assert_eq!(clusters(&preview, 0), ["a", "b"], "a is still in the group");
    assert_eq!(counts(&preview.groups[0]).permissions_gained, 1);
    leader.stop().await;
}
