use std::{path::PathBuf, sync::Arc};

use wavelift_catalog::{
    Catalog, Manifests,
    compare::{Operator, compare},
    crd::{self, Side},
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, Route, Subscription,
        olm_v1::{self, ClusterCatalog, Content, Extension, InstalledBundle, Target},
    },
    fbc::Fbc,
    limits::Limits,
    manifests,
    preview::{
        self, Step,
        render::{Detail, text},
    },
};
use wavelift_core::{target::Goal, version::Version};

use super::printer;
use crate::{
    commands::catalog::listing_of,
    picture::{Model, Scope, tree},
    render::{comparison, definitions, extension_path, listing, package, route},
};

/// The examples of the documentation.
fn examples(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

fn fbc(change: impl Fn(&str) -> String) -> Fbc {
    let text = std::fs::read_to_string(examples("catalog/ferry-operator.yaml")).unwrap();
    Fbc::parse("ferry-operator.yaml", change(&text).as_bytes(), &Limits::default()).unwrap()
}

fn catalog(change: impl Fn(&str) -> String) -> Arc<Catalog> {
    Arc::new(Catalog::from_fbc(fbc(change), &Limits::default()).unwrap())
}

fn ferry() -> Arc<Catalog> {
    catalog(str::to_owned)
}

/// The same operator in a catalog whose stable channel ends with 2.0.0.
fn earlier() -> Arc<Catalog> {
    catalog(|text| {
        let (before, after) = text.split_once("- name: ferry-operator.v2.1.0\n").unwrap();
        let (_, after) = after.split_once("skips: [ferry-operator.v2.0.1]\n").unwrap();
        format!("{before}{after}")
    })
}

fn way(channel: &str, goal: &Goal) -> Route {
    let key = CatalogKey { name: "catalog".to_owned(), namespace: "catalogs".to_owned() };
    let request = Request {
        namespace: "operators".to_owned(),
        subscriptions: vec![Subscription {
            package: "ferry-operator".to_owned(),
            channel: channel.to_owned(),
            catalog: key.clone(),
            installed: Some(Installed {
                csv: "ferry-operator.v1.4.0".to_owned(),
                version: Version::parse("1.4.0").ok(),
                properties: InstalledProperties::AsInCatalog,
            }),
            starting_csv: None,
        }],
        unreferenced: vec![],
    };
    wavelift_catalog::OlmV0.route(&Catalogs::one(key, ferry()), &request, "ferry-operator", goal)
}

#[test]
fn a_catalog_is_listed_by_packages() {
    insta::assert_snapshot!(listing(&listing_of(&ferry()), &printer()));
}

#[test]
fn a_package_has_channels_and_bundles() {
    let catalog = ferry();
    let scope = Scope { package: "ferry-operator", channel: None };
    let model = Model::of(&catalog, scope).unwrap();
    let whole = &catalog.graph().packages["ferry-operator"];
    insta::assert_snapshot!(package(&model, whole, &printer()));
    insta::assert_snapshot!("a_graph_is_a_tree", tree(&model));
}

#[test]
fn a_path_has_a_line_for_each_hop() {
    insta::assert_snapshot!(route(&way("stable", &Goal::Latest), &printer()));
}

#[test]
fn a_path_that_jumps_says_where_it_could_stop() {
    let goal = Goal::Version(Version::parse("2.0.0").unwrap());
    insta::assert_snapshot!(route(&way("fast", &goal), &printer()));
}

#[test]
fn the_path_of_an_extension_names_its_pins() {
    let content = Content::from_fbc(&fbc(str::to_owned));
    let catalogs =
        [ClusterCatalog { name: "catalog".to_owned(), priority: 0, content: Arc::new(content) }];
    let extension = Extension {
        package: "ferry-operator".to_owned(),
        channels: ["stable".to_owned()].into(),
        installed: Some(InstalledBundle {
            name: "ferry-operator.v1.4.0".to_owned(),
            version: "1.4.0".to_owned(),
            release: None,
        }),
        ..Extension::default()
    };
    let target = Target::Version(Version::parse("2.1.0").unwrap());
    let path = olm_v1::path(&catalogs, &extension, &target).unwrap();
    insta::assert_snapshot!(extension_path(&path, &printer()));
}

#[test]
fn a_new_catalog_is_judged_for_what_is_installed() {
    let operator = |installed: &str| Operator {
        package: "ferry-operator".to_owned(),
        channel: "stable".to_owned(),
        installed: format!("ferry-operator.v{installed}"),
        version: None,
    };
    let operators = [operator("1.4.0"), operator("2.0.0")];
    insta::assert_snapshot!(comparison(&compare(&ferry(), &earlier(), &operators), &printer()));
}

#[test]
fn definitions_say_who_refuses_them() {
    let read = |version: &str, side| {
        let file = examples(&format!("ferry-operator/{version}/manifests/timetables.crd.yaml"));
        crd::parse(&std::fs::read(file).unwrap(), side).unwrap()
    };
    let diff = |old, new| crd::diff(&read(old, Side::Old), &read(new, Side::New)).unwrap();
    insta::assert_snapshot!(definitions(&diff("1.4.0", "2.1.0"), &printer()));
    insta::assert_snapshot!(
        "the_same_definition",
        definitions(&diff("2.1.0", "2.1.0"), &printer())
    );
}

#[test]
fn a_preview_begins_with_what_matters() {
    let read = |version: &str| {
        let bundle = examples("ferry-operator").join(version);
        Manifests::from_dir(&bundle, &manifests::Limits::default()).unwrap()
    };
    let bundles = ["1.4.0", "2.0.0", "2.1.0"].map(read);
    let steps: Vec<Step<'_>> = bundles.iter().map(|b| Step::of_manifests(b).unwrap()).collect();
    insta::assert_snapshot!(text(&preview::path(&steps), Detail::Summary));
}
