//! What users and authors ask for: the first line is a version, the second what a user asks of OLM v1,
//! the rest what a bundle asks of another one (`olm.constraint`, or the rule of one in CEL).
//!
//! An answer or an error, never a crash; what is written can be read back and means the same.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use wavelift_catalog::{
    Catalog, Engine as _, Fbc, Limits, OlmV0,
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, Subscription,
        olm_v1::{ClusterCatalog, Content, Query, answer},
    },
};
use wavelift_core::{
    constraint::{Constraint, Fit},
    version::Version,
};

fuzz_target!(|text: &str| {
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (version, constraint, need) = (next(), next(), next());
    let parsed = Version::parse(version).ok();
    if let Ok(constraint) = Constraint::parse(constraint) {
        let again =
            Constraint::parse(&constraint.to_string()).expect("it is written as it was read");
        if let Some(version) = &parsed {
            assert_eq!(constraint.fit(version), again.fit(version));
            assert_eq!(constraint.contains(version), constraint.fit(version) == Fit::Fits);
        }
    }
    if let Some(parsed) = &parsed {
        assert!(Constraint::exactly(parsed).contains(&parsed.without_build()));
        resolve(version, constraint, need);
    }
});

/// Asks both engines on a small catalog in which `oak` may need `elm`.
fn resolve(version: &str, constraint: &str, need: &str) {
    let need = if need.is_empty() {
        None
    } else {
        Some(serde_json::from_str(need).unwrap_or_else(|_| json!({"cel": {"rule": need}})))
    };
    let text = catalog(version, need.as_ref());
    let Ok(fbc) = Fbc::parse("fuzzed", text.as_bytes(), &Limits::default()) else { return };
    let content = Arc::new(Content::from_fbc(&fbc));
    let query = Query {
        package: "elm".to_owned(),
        constraint: Some(constraint.to_owned()),
        installed: Some("elm.v1".to_owned()),
        version: Some(version.to_owned()),
        ..Query::default()
    };
    let catalogs = [ClusterCatalog { name: "cat".to_owned(), priority: 0, content }];
    assert_eq!(answer(&catalogs, &query), answer(&catalogs, &query));
    let Ok(catalog) = Catalog::from_fbc(fbc, &Limits::default()) else { return };
    let key = CatalogKey { name: "cat".to_owned(), namespace: "ns".to_owned() };
    let catalogs = Catalogs::one(key.clone(), Arc::new(catalog));
    let installed = Installed {
        csv: "elm.v0".to_owned(),
        version: None,
        properties: InstalledProperties::AsInCatalog,
    };
    for installed in [None, Some(installed)] {
        let subscription = Subscription {
            package: "oak".to_owned(),
            channel: String::new(),
            catalog: key.clone(),
            installed,
            starting_csv: None,
        };
        let request = Request {
            namespace: "ns".to_owned(),
            subscriptions: vec![subscription],
            unreferenced: Vec::new(),
        };
        let next = OlmV0.next(&catalogs, &request);
        if let Ok(next) = &next {
            let csvs = next.csvs();
            // Nothing but what somebody asks for is ever added.
            assert!(!csvs.contains("elm.v1") || need.is_some());
            assert!(csvs.is_empty() || csvs.contains("oak.v1"));
        }
        assert_eq!(next, OlmV0.next(&catalogs, &request));
    }
}

fn catalog(version: &str, need: Option<&Value>) -> String {
    let mut text = String::new();
    for package in ["oak", "elm"] {
        let mut properties = vec![
            json!({"type": "olm.package", "value": {"packageName": package, "version": version}}),
        ];
        match (package, need) {
            ("oak", Some(need)) => {
                properties.push(json!({"type": "olm.constraint", "value": need}))
            }
            ("elm", _) => properties.extend([
                json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}}),
                json!({"type": "olm.label", "value": {"label": "tall"}}),
                json!({"type": "certified", "value": [1, 2.5, null, "x", {"a": true}]}),
            ]),
            (_, _) => {}
        }
        let name = format!("{package}.v1");
        for document in [
            json!({"schema": "olm.package", "name": package, "defaultChannel": "c"}),
            json!({"schema": "olm.channel", "package": package, "name": "c",
                "entries": [{"name": name}]}),
            json!({"schema": "olm.bundle", "package": package, "name": name, "image": "r/x",
                "properties": properties}),
        ] {
            text.push_str(&document.to_string());
        }
    }
    text
}
