//! A cluster with three namespaces on a catalog of our own.

use std::sync::Arc;

use serde_json::json;
use wavelift_core::{
    inventory::{CatalogSource, Csv, Inventory, NamespaceInventory, Subscription},
    range::Range,
    target::{Goal, Target},
    version::Version,
};

use wavelift_core::plan::{Step, Via};

use super::{Pins, Planned, plan, plan_with};
use crate::{Catalog, Fbc, Limits, OlmV0};

/// Package `kite` steps 1.0.0, 1.1.0, 1.2.0 one by one; `oak` jumps from anything to 2.0.0.
fn catalog() -> Arc<Catalog> {
    let bundle = |package: &str, version: &str| {
        json!({
            "schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
            "image": format!("example.invalid/{package}:{version}"),
            "properties": [{"type": "olm.package",
                "value": {"packageName": package, "version": version}}],
        })
    };
    let documents = [
        json!({"schema": "olm.package", "name": "kite", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": "kite", "name": "stable", "entries": [
            {"name": "kite.v1.0.0"},
            {"name": "kite.v1.1.0", "replaces": "kite.v1.0.0"},
            {"name": "kite.v1.2.0", "replaces": "kite.v1.1.0"}]}),
        bundle("kite", "1.0.0"),
        bundle("kite", "1.1.0"),
        bundle("kite", "1.2.0"),
        json!({"schema": "olm.package", "name": "oak", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": "oak", "name": "stable", "entries": [
            {"name": "oak.v1.0.0"},
            {"name": "oak.v2.0.0", "replaces": "oak.v1.0.0", "skipRange": "<2.0.0"}]}),
        bundle("oak", "1.0.0"),
        bundle("oak", "2.0.0"),
    ];
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let fbc = Fbc::parse("own.json", text.join("\n").as_bytes(), &Limits::default()).unwrap();
    Arc::new(Catalog::from_fbc(fbc, &Limits::default()).unwrap())
}

fn namespace(name: &str, operators: &[(&str, &str)]) -> NamespaceInventory {
    let csv = |(package, version): &(&str, &str)| format!("{package}.v{version}");
    NamespaceInventory {
        namespace: name.try_into().unwrap(),
        operator_groups: 1,
        global_catalogs_excluded: false,
        subscriptions: operators
            .iter()
            .map(|operator| Subscription {
                name: operator.0.to_owned(),
                package: operator.0.to_owned(),
                channel: "stable".to_owned(),
                source: "own".to_owned(),
                source_namespace: "marketplace".to_owned(),
                installed_csv: Some(csv(operator)),
                ..Subscription::default()
            })
            .collect(),
        csvs: operators
            .iter()
            .map(|operator| Csv {
                name: csv(operator),
                version: operator.1.to_owned(),
                phase: "Succeeded".to_owned(),
                ..Csv::default()
            })
            .collect(),
    }
}

fn inventory(namespaces: Vec<NamespaceInventory>) -> Inventory {
    let source = CatalogSource {
        namespace: "marketplace".to_owned(),
        name: "own".to_owned(),
        digest: Some("sha256:0".to_owned()),
        ..CatalogSource::default()
    };
    Inventory { namespaces, catalogs: vec![source], ..Inventory::default() }
}

fn target(package: &str, goal: Goal) -> Target {
    Target { package: package.try_into().unwrap(), goal, namespace: None }
}

fn version(text: &str) -> Goal {
    Goal::Version(Version::parse(text).unwrap())
}

fn check(inventory: &Inventory, targets: &[Target], expected: &[&str]) {
    let catalog = catalog();
    let lookup = |_: &CatalogSource| Some(Arc::clone(&catalog));
    let planned = plan(&OlmV0, inventory, &lookup, targets);
    let steps: Vec<String> = match &planned {
        Planned::Plan(plan) => plan.steps.iter().map(Step::summary).collect(),
        Planned::AtTarget => vec![],
        Planned::NoPath { why } | Planned::Unknown { missing: why } => panic!("{why}"),
    };
    assert_eq!(steps, expected);
}

#[test]
fn steps_follow_the_hops_namespace_by_namespace() {
    let inventory =
        inventory(vec![namespace("b", &[("oak", "1.0.0")]), namespace("c", &[("kite", "1.0.0")])]);
    let targets = [target("kite", version("1.2.0")), target("oak", Goal::Latest)];
    check(
        &inventory,
        &targets,
        &["b: oak 1.0.0 -> 2.0.0", "c: kite 1.0.0 -> 1.1.0", "c: kite 1.1.0 -> 1.2.0"],
    );
}

#[test]
fn what_shares_a_namespace_moves_along_though_nobody_asked() {
    let inventory = inventory(vec![namespace("a", &[("kite", "1.0.0"), ("oak", "1.0.0")])]);
    check(
        &inventory,
        &[target("kite", version("1.1.0"))],
        &["a: kite 1.0.0 -> 1.1.0, oak 1.0.0 -> 2.0.0"],
    );
}

#[test]
fn a_range_takes_the_last_version_within_it_and_latest_the_last_of_all() {
    let inventory = inventory(vec![namespace("a", &[("kite", "1.0.0")])]);
    let range = Goal::Range(Range::parse(">=1.0.0 <1.2.0").unwrap());
    check(&inventory, &[target("kite", range)], &["a: kite 1.0.0 -> 1.1.0"]);
    check(
        &inventory,
        &[target("kite", Goal::Latest)],
        &["a: kite 1.0.0 -> 1.1.0", "a: kite 1.1.0 -> 1.2.0"],
    );
}

#[test]
fn a_cluster_that_is_there_or_lacks_the_package_has_nothing_to_do() {
    let there = inventory(vec![namespace("a", &[("kite", "1.2.0")])]);
    check(&there, &[target("kite", version("1.2.0"))], &[]);
    check(&there, &[target("kite", Goal::Latest)], &[]);
    check(&there, &[target("oak", version("2.0.0"))], &[]);
}

#[test]
fn no_way_and_not_known_are_told_apart_with_their_reason() {
    let catalog = catalog();
    let known = |_: &CatalogSource| Some(Arc::clone(&catalog));
    let inventory = inventory(vec![namespace("a", &[("oak", "1.0.0")])]);
    let past = [target("oak", version("1.5.0"))];
    let Planned::NoPath { why } = plan(&OlmV0, &inventory, &known, &past) else {
        panic!("a path");
    };
    assert!(why.contains("namespace a") && why.contains("past 1.5.0 to 2.0.0"), "{why}");
    let unknown = plan(&OlmV0, &inventory, &|_: &CatalogSource| None, &past);
    assert_eq!(
        unknown,
        Planned::Unknown { missing: "the content of catalog marketplace/own".to_owned() }
    );
}

fn exact(package: &str, at: &str) -> Target {
    target(package, version(at))
}

fn by_pins(namespaces: Vec<NamespaceInventory>, targets: &[Target]) -> Planned {
    let lookup = |_: &CatalogSource| Some(catalog());
    plan_with(&OlmV0, &inventory(namespaces), &lookup, targets, Pins::Allowed)
}

/// The CSVs of each step, and whether a pinned catalog leads there.
fn told(planned: &Planned) -> Vec<(String, Via)> {
    let Planned::Plan(plan) = planned else { panic!("{planned:?}") };
    let csvs = |step: &Step| step.csv_names().into_iter().collect::<Vec<_>>().join("+");
    plan.steps.iter().map(|step| (csvs(step), step.via)).collect()
}

#[test]
fn with_pins_a_neighbour_that_is_no_target_stays() {
    let yard = || vec![namespace("yard", &[("kite", "1.0.0"), ("oak", "1.0.0")])];
    let target = exact("kite", "1.2.0");
    // By itself OLM takes both along at once.
    let lookup = |_: &CatalogSource| Some(catalog());
    let alone = plan(&OlmV0, &inventory(yard()), &lookup, std::slice::from_ref(&target));
    assert_eq!(told(&alone)[0], ("kite.v1.1.0+oak.v2.0.0".to_owned(), Via::Cluster));
    let planned = by_pins(yard(), &[target]);
    let pinned = |csv: &str| (csv.to_owned(), Via::PinnedCatalog);
    assert_eq!(told(&planned), [pinned("kite.v1.1.0"), pinned("kite.v1.2.0")]);
}

#[test]
fn with_pins_what_olm_does_by_itself_is_left_to_it() {
    let planned = by_pins(vec![namespace("yard", &[("kite", "1.0.0")])], &[exact("kite", "1.1.0")]);
    assert_eq!(told(&planned), [("kite.v1.1.0".to_owned(), Via::Cluster)]);
    let latest = Target { goal: Goal::Latest, ..exact("kite", "1.1.0") };
    let planned = by_pins(vec![namespace("yard", &[("kite", "1.1.0")])], &[latest]);
    assert_eq!(told(&planned), [("kite.v1.2.0".to_owned(), Via::Cluster)]);
}

#[test]
fn with_pins_what_is_past_its_target_or_has_no_way_says_so() {
    let yard = |version| vec![namespace("yard", &[("kite", version)])];
    let no_path = |planned| {
        let Planned::NoPath { why } = planned else { panic!("{planned:?}") };
        why
    };
    let past = no_path(by_pins(yard("1.2.0"), &[exact("kite", "1.1.0")]));
    assert!(past.contains("`kite` is at 1.2.0, past its target 1.1.0 already"), "{past}");
    let none = no_path(by_pins(yard("1.0.0"), &[exact("kite", "1.1.5")]));
    assert!(none.contains("leads from `kite.v1.1.0` to 1.1.5 neither"), "{none}");
}
