use std::sync::Arc;

use serde_json::{Value, json};
use wavelift_core::range::Range;

use super::*;
use crate::{
    Fbc, Limits,
    engine::{CatalogKey, InstalledProperties},
};

/// Package `kite`: the channels with their entries, and bundles for all but the ones in `without`.
fn catalogs(channels: &[(&str, &[Value])], without: &[&str], needs: &[(&str, Value)]) -> Catalogs {
    let mut text =
        json!({"schema": "olm.package", "name": "kite", "defaultChannel": channels[0].0})
            .to_string();
    let mut names = BTreeSet::new();
    for (name, entries) in channels {
        text += &json!({"schema": "olm.channel", "package": "kite", "name": name,
            "entries": entries})
        .to_string();
        names.extend(entries.iter().filter_map(|entry| entry["name"].as_str()));
    }
    for name in names.iter().filter(|name| !without.contains(name)) {
        let version = name.trim_start_matches("kite.v");
        let mut properties = vec![json!({"type": "olm.package",
            "value": {"packageName": "kite", "version": version}})];
        let own = needs.iter().filter(|(of, _)| of == name);
        properties.extend(own.map(|(_, property)| property.clone()));
        text += &json!({"schema": "olm.bundle", "package": "kite", "name": name,
            "image": "registry.example.com/kite", "properties": properties})
        .to_string();
    }
    let fbc = Fbc::parse("own", text.as_bytes(), &Limits::default()).unwrap();
    Catalogs::one(key(), Arc::new(Catalog::from_fbc(fbc, &Limits::default()).unwrap()))
}

fn key() -> CatalogKey {
    CatalogKey { name: "own".to_owned(), namespace: "ns".to_owned() }
}

fn at(channel: &str, version: &str) -> Request {
    let installed = Installed {
        csv: format!("kite.v{version}"),
        version: Some(Version::parse(version).unwrap()),
        properties: InstalledProperties::AsInCatalog,
    };
    Request {
        namespace: "ns".to_owned(),
        subscriptions: vec![Subscription {
            package: "kite".to_owned(),
            channel: channel.to_owned(),
            catalog: key(),
            installed: Some(installed),
            starting_csv: None,
        }],
        unreferenced: Vec::new(),
    }
}

fn to(version: &str) -> Goal {
    Goal::Version(Version::parse(version).unwrap())
}

fn route(catalogs: &Catalogs, request: &Request, goal: &Goal) -> Route {
    OlmV0.route(catalogs, request, "kite", goal)
}

fn no_way(route: &Route) -> &NoWay {
    match &route.end {
        RouteEnd::NoWay(no_way) => no_way,
        RouteEnd::Reached { csv, .. } => panic!("reached {csv}"),
    }
}

fn names(route: &Route) -> Vec<&str> {
    route.hops.iter().flat_map(|hop| hop.csvs()).collect()
}

fn entry(version: &str, edges: &Value) -> Value {
    let mut entry = edges.clone();
    entry["name"] = json!(format!("kite.v{version}"));
    entry
}

/// `stable` jumps from anything below to 1.3.0, `slow` goes step by step.
fn fast_and_slow() -> Catalogs {
    let chain = |last: Value| {
        [
            entry("1.0.0", &json!({})),
            entry("1.1.0", &json!({"replaces": "kite.v1.0.0"})),
            entry("1.2.0", &json!({"replaces": "kite.v1.1.0"})),
            last,
        ]
    };
    let jump = entry("1.3.0", &json!({"replaces": "kite.v1.2.0", "skipRange": "<1.3.0"}));
    let step = entry("1.3.0", &json!({"replaces": "kite.v1.2.0"}));
    catalogs(&[("stable", &chain(jump)), ("slow", &chain(step))], &[], &[])
}

#[test]
fn hops_lead_to_a_version_and_to_the_last_one_of_a_range() {
    let catalogs = fast_and_slow();
    let reached = route(&catalogs, &at("slow", "1.0.0"), &to("1.2.0"));
    assert_eq!(names(&reached), ["kite.v1.1.0", "kite.v1.2.0"]);
    assert!(matches!(&reached.end, RouteEnd::Reached { csv, .. } if csv == "kite.v1.2.0"));
    let range = Goal::Range(Range::parse(">=1.0.0 <1.2.0").unwrap());
    let reached = route(&catalogs, &at("slow", "1.0.0"), &range);
    assert_eq!(names(&reached), ["kite.v1.1.0"]);
    let latest = route(&catalogs, &at("stable", "1.0.0"), &Goal::Latest);
    assert_eq!(names(&latest), ["kite.v1.3.0"]);
    assert!(latest.detours.is_empty());
}

#[test]
fn a_jump_says_where_it_could_be_stopped() {
    let jump = route(&fast_and_slow(), &at("stable", "1.0.0"), &to("1.3.0"));
    let jumped: Vec<&str> = jump.jumped.iter().map(|jumped| jumped.csv.as_str()).collect();
    assert_eq!(jumped, ["kite.v1.1.0", "kite.v1.2.0"]);
    // 1.1.0 follows 1.0.0: in `slow` as it is, in `stable` once 1.2.0 and 1.3.0 are gone.
    let slow = Stop::Channel { channel: "slow".to_owned(), edge: Edge::Replaces };
    let pinned = Stop::PinnedCatalog {
        channel: "stable".to_owned(),
        edge: Edge::Replaces,
        without: vec!["kite.v1.2.0".to_owned(), "kite.v1.3.0".to_owned()],
    };
    assert_eq!(jump.jumped[0].stops, [slow, pinned]);
    // Nothing but 1.1.0 leads to 1.2.0.
    assert_eq!(jump.jumped[1].stops, []);
}

#[test]
fn a_goal_that_is_jumped_over_can_be_reached_by_another_channel() {
    let past = route(&fast_and_slow(), &at("stable", "1.0.0"), &to("1.2.0"));
    assert_eq!(
        *no_way(&past),
        NoWay::Overshoots { from: "kite.v1.0.0".to_owned(), to: "kite.v1.3.0".to_owned() }
    );
    let leg = |from: &str, to: &str| Leg {
        channel: "slow".to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        edge: Edge::Replaces,
    };
    let legs = vec![leg("kite.v1.0.0", "kite.v1.1.0"), leg("kite.v1.1.0", "kite.v1.2.0")];
    assert_eq!(past.detours, [Detour { legs }]);
}

#[test]
fn every_way_that_is_none_has_its_own_reason() {
    let catalogs_of = |entries: &[Value]| catalogs(&[("stable", entries)], &[], &[]);
    let start = entry("1.0.0", &json!({}));
    let kind = |catalogs: &Catalogs, from: &str, goal: &str| {
        no_way(&route(catalogs, &at("stable", from), &to(goal))).clone()
    };
    let two = [start.clone(), entry("1.2.0", &json!({"replaces": "kite.v1.0.0"}))];
    let two = catalogs_of(&two);
    assert_eq!(
        kind(&two, "1.0.0", "1.1.0").to_string(),
        "catalog ns/own has no such version of `kite`; the nearest are 1.0.0 and 1.2.0"
    );
    assert_eq!(kind(&two, "1.2.0", "1.0.0").kind(), "AlreadyPast");
    let island = entry("2.0.0", &json!({"replaces": "kite.v1.5.0", "skipRange": ">=1.4.0 <2.0.0"}));
    assert_eq!(
        kind(&catalogs_of(&[island]), "1.0.0", "2.0.0"),
        NoWay::NeedsFirst {
            csv: "kite.v2.0.0".to_owned(),
            at: "kite.v1.0.0".to_owned(),
            after: vec!["`kite.v1.5.0`".to_owned(), "versions >=1.4.0 <2.0.0".to_owned()],
        }
    );
    let skipping = [
        start.clone(),
        entry("1.1.0", &json!({"replaces": "kite.v1.0.0"})),
        entry("1.2.0", &json!({"replaces": "kite.v1.0.0", "skips": ["kite.v1.1.0"]})),
    ];
    let skipped = kind(&catalogs_of(&skipping), "1.0.0", "1.1.0");
    assert_eq!(
        skipped.to_string(),
        "`kite.v1.1.0` is skipped by `kite.v1.2.0`, so OLM never installs it"
    );
    let gap = [
        start,
        entry("1.1.0", &json!({"replaces": "kite.v1.0.0"})),
        entry("1.2.0", &json!({"replaces": "kite.v1.1.0"})),
    ];
    let gap = catalogs(&[("stable", &gap)], &["kite.v1.1.0", "kite.v1.0.0"], &[]);
    assert_eq!(
        kind(&gap, "1.0.0", "1.2.0"),
        NoWay::MissingBundles { bundles: vec!["kite.v1.1.0".to_owned()] }
    );
    assert_eq!(
        OlmV0.route(&two, &at("stable", "1.0.0"), "oak", &Goal::Latest).end,
        RouteEnd::NoWay(NoWay::NotSubscribed { package: "oak".to_owned() })
    );
    let fails = kind(&two, "1.0.0", "1.2.0-rc.1").kind();
    assert_eq!(fails, "NotInCatalog");
    let no_channel = route(&two, &at("fast", "1.0.0"), &to("1.2.0"));
    assert_eq!(no_way(&no_channel).kind(), "Fails");
}

#[test]
fn what_keeps_olm_from_the_goal_is_named() {
    let entries = [entry("1.0.0", &json!({})), entry("1.1.0", &json!({"replaces": "kite.v1.0.0"}))];
    let need = json!({"type": "olm.package.required",
        "value": {"packageName": "oak", "versionRange": ">=1.0.0"}});
    let catalogs = catalogs(&[("stable", &entries)], &[], &[("kite.v1.1.0", need)]);
    let kept = route(&catalogs, &at("stable", "1.0.0"), &to("1.1.0"));
    assert_eq!(
        no_way(&kept).to_string(),
        "`kite.v1.0.0` stays: `kite.v1.1.0` needs package `oak` in >=1.0.0, which nothing visible \
         can give"
    );
}

#[test]
fn the_goal_in_another_channel_is_said_with_the_way_there() {
    let stable = [entry("1.0.0", &json!({}))];
    let fast = [entry("2.0.0", &json!({"skipRange": "<2.0.0"}))];
    let catalogs = catalogs(&[("stable", &stable), ("fast", &fast)], &[], &[]);
    let other = route(&catalogs, &at("stable", "1.0.0"), &to("2.0.0"));
    assert_eq!(no_way(&other).kind(), "OtherChannel");
    let legs = vec![Leg {
        channel: "fast".to_owned(),
        from: "kite.v1.0.0".to_owned(),
        to: "kite.v2.0.0".to_owned(),
        edge: Edge::SkipRange("<2.0.0".to_owned()),
    }];
    assert_eq!(other.detours, [Detour { legs }]);
}
