use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::engine::olm_v1::{
    Content, EdgeKind, UpgradePolicy,
    tests::{asked, bundle, catalog, content, entry, named},
};

fn to(version: &str) -> Target {
    Target::Version(Version::parse(version).unwrap())
}

fn within(constraint: &str) -> Target {
    Target::Within(Constraint::parse(constraint).unwrap())
}

fn pins(path: &Result<Path, NoPath>) -> Vec<&str> {
    path.as_ref().unwrap().hops.iter().map(|hop| hop.pin.as_str()).collect()
}

/// `stable`: 1.0.0 to 1.3.0 one after the other. `fast`: 2.0.0 from 1.2.0 and later, 2.1.0 from 2.0.0.
fn graph() -> Content {
    let bundles = ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "2.0.0", "2.1.0"].map(bundle);
    content(&bundles, &entries(), &[])
}

fn entries() -> [(&'static str, Value); 6] {
    [
        ("stable", json!({"name": "op.v1.0.0", "replaces": "op.v0.9.0"})),
        ("stable", entry("1.1.0", "1.0.0")),
        ("stable", entry("1.2.0", "1.1.0")),
        ("stable", entry("1.3.0", "1.2.0")),
        ("fast", json!({"name": "op.v2.0.0", "skipRange": ">=1.2.0 <2.0.0"})),
        ("fast", entry("2.1.0", "2.0.0")),
    ]
}

fn one(content: Content, extension: &Extension, target: &Target) -> Result<Path, NoPath> {
    path(&[catalog("cat", 0, content)], extension, target)
}

#[test]
fn the_way_with_the_fewest_hops_is_taken() {
    let all = asked(Some("1.0.0"), &[], "");
    // Not by 1.3.0, which lies on a longer way.
    assert_eq!(pins(&one(graph(), &all, &to("2.1.0"))), ["1.1.0", "1.2.0", "2.0.0", "2.1.0"]);
    let path = one(graph(), &all, &to("2.1.0")).unwrap();
    assert_eq!(
        (path.hops[2].from.as_deref(), path.hops[2].to.as_str()),
        (Some("op.v1.2.0"), "op.v2.0.0")
    );
    let edge = &path.hops[2].edges[0];
    let kind = EdgeKind::SkipRange(">=1.2.0 <2.0.0".to_owned());
    assert_eq!((edge.channel.as_str(), &edge.kind), ("fast", &kind));
    // What spec.version says now does not bind: the pins take its place.
    assert_eq!(pins(&one(graph(), &asked(Some("1.0.0"), &[], "1.0.0"), &to("1.1.0"))), ["1.1.0"]);
}

#[test]
fn the_target_may_be_here_or_be_installed_anew() {
    let all = asked(Some("1.0.0"), &[], "");
    assert!(pins(&one(graph(), &all, &to("1.0.0"))).is_empty());
    let path = one(graph(), &asked(None, &[], ""), &to("1.2.0")).unwrap();
    assert_eq!((path.hops.len(), &path.hops[0].from), (1, &None));
}

#[test]
fn of_a_range_the_best_that_can_be_reached_is_taken() {
    let all = asked(Some("1.0.0"), &[], "");
    assert_eq!(pins(&one(graph(), &all, &within("<2"))), ["1.1.0", "1.2.0", "1.3.0"]);
    assert_eq!(pins(&one(graph(), &all, &within("*"))).last(), Some(&"2.1.0"));
    // In `stable` alone, 2.x is out of reach, so the best is below.
    let stable = asked(Some("1.0.0"), &["stable"], "");
    assert_eq!(pins(&one(graph(), &stable, &within(">=1.1"))).last(), Some(&"1.3.0"));
    assert!(pins(&one(graph(), &all, &within("1.0.x"))).is_empty());
    // Deprecated ones are the last resort.
    let bundles = ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "2.0.0", "2.1.0"].map(bundle);
    let deprecated = content(&bundles, &entries(), &["op.v1.3.0", "op.v2.1.0"]);
    assert_eq!(pins(&one(deprecated, &all, &within("*"))).last(), Some(&"2.0.0"));
}

#[test]
fn of_ways_of_the_same_length_the_one_over_better_bundles_is_taken() {
    let bundles = ["1.0.0", "1.1.0", "1.2.0", "2.0.0"].map(bundle);
    let entries = [
        ("a", entry("1.1.0", "1.0.0")),
        ("a", entry("1.2.0", "1.0.0")),
        ("a", json!({"name": "op.v2.0.0", "skipRange": ">1.0.0 <2.0.0"})),
    ];
    let all = asked(Some("1.0.0"), &[], "");
    let path = one(content(&bundles, &entries, &[]), &all, &to("2.0.0"));
    assert_eq!(pins(&path), ["1.2.0", "2.0.0"]);
    let path = one(content(&bundles, &entries, &["op.v1.2.0"]), &all, &to("2.0.0"));
    assert_eq!(pins(&path), ["1.1.0", "2.0.0"]);
}

#[test]
fn self_certified_goes_straight_and_back() {
    let mut extension = asked(Some("1.3.0"), &[], "");
    let expected =
        NoPath::Older { bundle: "op.v1.0.0".to_owned(), installed: "op.v1.3.0".to_owned() };
    assert_eq!(one(graph(), &extension, &to("1.0.0")).unwrap_err(), expected);
    extension.policy = UpgradePolicy::SelfCertified;
    assert_eq!(pins(&one(graph(), &extension, &to("1.0.0"))), ["1.0.0"]);
    assert_eq!(pins(&one(graph(), &extension, &within("*"))), ["2.1.0"]);
}

#[test]
fn what_no_catalog_has_is_named() {
    let mut extension = asked(Some("1.0.0"), &[], "");
    let error = one(graph(), &extension, &to("3.0.0")).unwrap_err();
    assert!(
        error.to_string().contains("has 3.0.0 of `op`; the newest there are `2.1.0`"),
        "{error}"
    );
    let error = one(graph(), &extension, &within("1.1.1 - 1.1.9")).unwrap_err();
    assert_eq!(error.kind(), "TargetMissing");
    extension.package = "other".to_owned();
    assert_eq!(one(graph(), &extension, &to("1.1.0")).unwrap_err().kind(), "PackageMissing");
}

#[test]
fn channels_that_would_help_are_named() {
    let stable = asked(Some("1.0.0"), &["stable"], "");
    let expected = NoPath::NotInChannels {
        bundle: "op.v2.1.0".to_owned(),
        channels: BTreeSet::from(["fast".to_owned()]),
    };
    assert_eq!(one(graph(), &stable, &to("2.1.0")).unwrap_err(), expected);
    let fast = asked(Some("1.0.0"), &["fast"], "");
    let expected = NoPath::NeedsFirst {
        bundle: "op.v2.1.0".to_owned(),
        installed: "op.v1.0.0".to_owned(),
        from: vec![Predecessor::Unreached("op.v2.0.0".to_owned())],
        other_channels: BTreeSet::from(["stable".to_owned()]),
    };
    let error = one(graph(), &fast, &to("2.1.0")).unwrap_err();
    assert_eq!(error, expected);
    assert!(
        error.to_string().ends_with("with `stable` asked for as well there is a way"),
        "{error}"
    );
}

#[test]
fn the_version_that_is_needed_first_is_named() {
    // 2.0.0 is left behind by 1.1.9 alone, which the catalog has lost.
    let bundles = ["1.0.0", "1.1.0", "2.0.0", "2.1.0"].map(bundle);
    let entries = [
        ("a", entry("1.1.0", "1.0.0")),
        ("a", entry("2.0.0", "1.1.9")),
        ("a", entry("2.1.0", "2.0.0")),
    ];
    let catalogs = || content(&bundles, &entries, &[]);
    let all = asked(Some("1.0.0"), &[], "");
    let needs = |from: Predecessor, bundle: &str| NoPath::NeedsFirst {
        bundle: bundle.to_owned(),
        installed: "op.v1.0.0".to_owned(),
        from: vec![from],
        other_channels: BTreeSet::new(),
    };
    let missing = Predecessor::Missing("op.v1.1.9".to_owned());
    let error = one(catalogs(), &all, &to("2.0.0")).unwrap_err();
    assert_eq!(error, needs(missing, "op.v2.0.0"));
    assert!(error.to_string().contains("`op.v1.1.9` (not in this cluster's catalogs)"), "{error}");
    let unreached = Predecessor::Unreached("op.v2.0.0".to_owned());
    let error = one(catalogs(), &all, &to("2.1.0")).unwrap_err();
    assert_eq!(error, needs(unreached, "op.v2.1.0"));
    // No edge at all.
    let lonely =
        content(&["1.0.0", "3.0.0"].map(bundle), &[("a", json!({"name": "op.v3.0.0"}))], &[]);
    let expected =
        NoPath::NoEdge { bundle: "op.v3.0.0".to_owned(), other_channels: BTreeSet::new() };
    assert_eq!(one(lonely, &all, &to("3.0.0")).unwrap_err(), expected);
}

#[test]
fn a_bundle_with_dependencies_ends_every_way_through_it() {
    let needy = named("op.v1.1.0", "1.1.0", &[json!({"type": "olm.gvk.required", "value": {}})]);
    let bundles = [bundle("1.0.0"), needy, bundle("1.2.0")];
    let entries = [("a", entry("1.1.0", "1.0.0")), ("a", entry("1.2.0", "1.1.0"))];
    let catalogs = || content(&bundles, &entries, &[]);
    let all = asked(Some("1.0.0"), &[], "");
    let error = one(catalogs(), &all, &to("1.1.0")).unwrap_err();
    let (bundle, property) = ("op.v1.1.0".to_owned(), "olm.gvk.required".to_owned());
    assert_eq!(error, NoPath::Dependencies { bundle, property });
    assert_eq!(one(catalogs(), &all, &to("1.2.0")).unwrap_err().kind(), "NeedsFirst");
}

#[test]
fn a_pin_takes_the_newest_build_of_its_version() {
    let bundles = ["1.0.0", "1.1.0+1", "1.1.0+2", "1.2.0"].map(bundle);
    let from = |version: &str| entry(version, "1.0.0");
    let entries =
        [("a", from("1.1.0+1")), ("a", from("1.1.0+2")), ("a", entry("1.2.0", "1.1.0+1"))];
    let catalogs = || content(&bundles, &entries, &[]);
    let all = asked(Some("1.0.0"), &[], "");
    let path = one(catalogs(), &all, &to("1.1.0")).unwrap();
    assert_eq!((path.hops[0].pin.as_str(), path.hops[0].to_version.as_str()), ("1.1.0", "1.1.0+2"));
    assert!(one(catalogs(), &all, &to("1.1.0+2")).is_ok());
    let expected =
        NoPath::Shadowed { bundle: "op.v1.1.0+1".to_owned(), taken: "op.v1.1.0+2".to_owned() };
    assert_eq!(one(catalogs(), &all, &to("1.1.0+1")).unwrap_err(), expected);
    // So no way leads on from the older build.
    assert_eq!(one(catalogs(), &all, &to("1.2.0")).unwrap_err().kind(), "NeedsFirst");
}

#[test]
fn hops_may_change_the_catalog_and_ties_stop_them() {
    let of = |versions: &[&str], entries: &[(&str, Value)]| {
        let bundles: Vec<Value> = versions.iter().map(|version| bundle(version)).collect();
        content(&bundles, entries, &[])
    };
    let all = asked(Some("1.0.0"), &[], "");
    let first = || of(&["1.0.0", "1.1.0"], &[("a", entry("1.1.0", "1.0.0"))]);
    let second = || of(&["1.2.0"], &[("a", entry("1.2.0", "1.1.0"))]);
    let catalogs = [catalog("one", 0, first()), catalog("two", 0, second())];
    let way = path(&catalogs, &all, &to("1.2.0")).unwrap();
    let from: Vec<&str> = way.hops.iter().map(|hop| hop.catalog.as_str()).collect();
    assert_eq!(from, ["one", "two"]);
    let tied =
        [catalog("one", 0, first()), catalog("three", 0, first()), catalog("two", 0, second())];
    let expected = NoPath::SeveralCatalogs {
        bundle: "op.v1.1.0".to_owned(),
        catalogs: vec!["one".to_owned(), "three".to_owned()],
    };
    assert_eq!(path(&tied, &all, &to("1.1.0")).unwrap_err(), expected);
    let untied =
        [catalog("one", 0, first()), catalog("three", 1, first()), catalog("two", 0, second())];
    assert_eq!(path(&untied, &all, &to("1.2.0")).unwrap().hops[0].catalog, "three");
}

#[test]
fn an_unreadable_installed_version_is_named() {
    assert_eq!(
        one(graph(), &asked(Some("one"), &[], ""), &to("1.0.0")).unwrap_err().kind(),
        "InstalledVersion"
    );
}

#[test]
fn no_catalog_makes_the_search_endless() {
    // Every bundle follows every other one: twenty squared looks see all of it.
    let versions: Vec<String> = (0..20).map(|patch| format!("1.0.{patch}")).collect();
    let bundles: Vec<Value> = versions.iter().map(|version| bundle(version)).collect();
    let entries: Vec<(&str, Value)> = versions
        .iter()
        .map(|version| ("a", json!({"name": format!("op.v{version}"), "skipRange": ">=0.0.0"})))
        .collect();
    let catalogs = [catalog("cat", 0, content(&bundles, &entries, &[]))];
    let extension = asked(Some("1.0.0"), &[], "");
    let all = |looks: usize| {
        let start = From::installed(&extension).unwrap();
        search::all(&catalogs, &extension, start, looks).map(|reached| reached.goal(&to("1.0.9")))
    };
    assert!(all(400).unwrap().is_some());
    assert_eq!(all(399).unwrap_err(), NoPath::TooHard { looks: 399 });
}
