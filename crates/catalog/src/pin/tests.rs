//! Catalogs in which OLM would go past the target, or take a neighbour along.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{Fbc, Limits, OlmV0, engine::InstalledProperties};

fn key() -> CatalogKey {
    CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() }
}

/// Channel `stable` of each package, with these entries.
fn catalogs(packages: &[(&str, Value)], properties: &[(&str, Value)]) -> Catalogs {
    let mut documents = vec![];
    for (package, entries) in packages {
        documents
            .push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        for entry in entries.as_array().unwrap() {
            let name = entry["name"].as_str().unwrap();
            let version = name.split_once(".v").unwrap().1;
            let value = json!({"packageName": package, "version": version});
            let mut all = vec![json!({"type": "olm.package", "value": value})];
            let own = properties.iter().filter(|(of, _)| *of == name);
            all.extend(own.map(|(_, property)| property.clone()));
            documents.push(json!({"schema": "olm.bundle", "package": package, "name": name,
                "image": "example.invalid/x", "properties": all}));
        }
        documents.push(json!({"schema": "olm.channel", "package": package, "name": "stable",
            "entries": entries}));
    }
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let fbc = Fbc::parse("own", text.join("\n").as_bytes(), &Limits::default()).unwrap();
    Catalogs::one(key(), Arc::new(Catalog::from_fbc(fbc, &Limits::default()).unwrap()))
}

fn request(installed: &[(&str, &str)]) -> Request {
    let subscription = |(package, version): &(&str, &str)| Subscription {
        package: (*package).to_owned(),
        channel: "stable".to_owned(),
        catalog: key(),
        installed: Some(Installed {
            csv: format!("{package}.v{version}"),
            version: Some(Version::parse(version).unwrap()),
            properties: InstalledProperties::AsInCatalog,
        }),
        starting_csv: None,
    };
    Request {
        namespace: "yard".to_owned(),
        subscriptions: installed.iter().map(subscription).collect(),
        unreferenced: vec![],
    }
}

fn wanted(moves: &[(&str, &str)]) -> BTreeMap<String, String> {
    moves.iter().map(|(package, csv)| ((*package).to_owned(), (*csv).to_owned())).collect()
}

/// What OLM does with the pinned catalog, asked afresh of the engine.
fn resolved(catalogs: &Catalogs, request: &Request, kept: &[Kept]) -> Vec<String> {
    let (catalogs, request) = pinned(catalogs, request, kept);
    let next = OlmV0.next(&catalogs, &request).unwrap();
    next.csvs().into_iter().map(str::to_owned).collect()
}

fn names(kept: &[Kept]) -> Vec<&str> {
    kept.iter().map(|kept| kept.csv.as_str()).collect()
}

/// The head can be reached from everywhere.
fn mast() -> Value {
    json!([
        {"name": "mast.v1.0.0"},
        {"name": "mast.v1.1.0", "replaces": "mast.v1.0.0"},
        {"name": "mast.v1.2.0", "replaces": "mast.v1.1.0"},
        {"name": "mast.v1.3.0", "replaces": "mast.v1.2.0", "skipRange": ">=1.0.0 <1.3.0"},
    ])
}

fn sail() -> Value {
    json!([{"name": "sail.v2.0.0"}, {"name": "sail.v2.1.0", "replaces": "sail.v2.0.0"}])
}

#[test]
fn a_head_that_jumps_over_the_target_is_left_out() {
    let (catalogs, request) = (catalogs(&[("mast", mast())], &[]), request(&[("mast", "1.0.0")]));
    let natural = OlmV0.next(&catalogs, &request).unwrap();
    assert_eq!(natural.csvs().into_iter().collect::<Vec<_>>(), ["mast.v1.3.0"]);
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.1.0")])).unwrap();
    assert_eq!(names(&pinned.kept), ["mast.v1.1.0"]);
    assert_eq!(resolved(&catalogs, &request, &pinned.kept), ["mast.v1.1.0"]);
}

#[test]
fn where_olm_goes_by_itself_nothing_is_pinned() {
    let (catalogs, request) = (catalogs(&[("mast", mast())], &[]), request(&[("mast", "1.0.0")]));
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.3.0")])).unwrap();
    assert!(pinned.kept.is_empty());
    assert_eq!(pinned.moves[0].to, "mast.v1.3.0");
}

#[test]
fn a_neighbour_stays_and_only_its_subscription_is_pinned() {
    let catalogs = catalogs(&[("mast", mast()), ("sail", sail())], &[]);
    let request = request(&[("mast", "1.0.0"), ("sail", "2.0.0")]);
    let both = OlmV0.next(&catalogs, &request).unwrap();
    assert_eq!(both.csvs().into_iter().collect::<Vec<_>>(), ["mast.v1.3.0", "sail.v2.1.0"]);
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.3.0")])).unwrap();
    assert_eq!(names(&pinned.kept), ["sail.v2.0.0"]);
    assert_eq!(resolved(&catalogs, &request, &pinned.kept), ["mast.v1.3.0"]);
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.2.0")]));
    assert!(matches!(pinned, Err(Error::NoEdge { .. })), "{pinned:?}");
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.1.0")])).unwrap();
    assert_eq!(names(&pinned.kept), ["mast.v1.1.0", "sail.v2.0.0"]);
    assert_eq!(resolved(&catalogs, &request, &pinned.kept), ["mast.v1.1.0"]);
}

#[test]
fn what_the_catalog_has_no_more_stays_by_one_that_does_not_follow_it() {
    let catalogs = catalogs(&[("mast", mast()), ("sail", sail())], &[]);
    // Between the two: nothing in the catalog is it.
    let mut request = request(&[("mast", "1.2.0"), ("sail", "2.0.0")]);
    let odd = request.subscriptions[0].installed.as_mut().unwrap();
    odd.csv = "mast.v1.2.5".to_owned();
    odd.version = Some(Version::parse("1.2.5").unwrap());
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("sail", "sail.v2.1.0")])).unwrap();
    assert_eq!(names(&pinned.kept), ["mast.v1.0.0"]);
    assert_eq!(resolved(&catalogs, &request, &pinned.kept), ["sail.v2.1.0"]);
}

#[test]
fn a_need_for_a_newer_neighbour_is_no_pin_and_says_so() {
    let need = json!({"type": "olm.package.required",
        "value": {"packageName": "sail", "versionRange": ">=2.1.0"}});
    let catalogs = catalogs(&[("mast", mast()), ("sail", sail())], &[("mast.v1.1.0", need)]);
    let request = request(&[("mast", "1.0.0"), ("sail", "2.0.0")]);
    let error = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.1.0")])).unwrap_err();
    let said = "with all of that pinned OLM moves nothing, not [mast.v1.1.0]";
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_dependency_that_is_new_comes_along() {
    let need = json!({"type": "olm.package.required",
        "value": {"packageName": "sail", "versionRange": ">=2.0.0"}});
    let catalogs = catalogs(&[("mast", mast()), ("sail", sail())], &[("mast.v1.1.0", need)]);
    let request = request(&[("mast", "1.0.0")]);
    let pinned = pin(&OlmV0, &catalogs, &request, &wanted(&[("mast", "mast.v1.1.0")])).unwrap();
    assert_eq!(names(&pinned.kept), ["mast.v1.1.0"]);
    let moves: Vec<&str> = pinned.moves.iter().map(|step| step.to.as_str()).collect();
    assert_eq!(moves, ["mast.v1.1.0", "sail.v2.1.0"]);
}

#[test]
fn the_way_is_the_shortest_that_stays_at_or_below_the_target() {
    let catalogs = catalogs(&[("mast", mast())], &[]);
    let request = request(&[("mast", "1.0.0")]);
    let to = |version: &str| {
        way(&catalogs, &request.subscriptions[0], &Version::parse(version).unwrap())
    };
    assert_eq!(to("1.2.0"), ["mast.v1.1.0", "mast.v1.2.0"]);
    assert_eq!(to("1.3.0"), ["mast.v1.3.0"]);
    assert!(to("1.2.5").is_empty());
}
