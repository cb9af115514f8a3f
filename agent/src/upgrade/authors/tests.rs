use serde_json::{Value, json};
use wavelift_catalog::{Fbc, Limits};
use wavelift_core::plan::{Move, Via};

use super::*;

fn csv(name: &str, version: &str, document: Option<&Value>) -> Arc<Csv> {
    let properties = document.map(|document| {
        let property = json!({"type": release::SCHEMA, "value": document});
        json!({"properties": [{"type": "olm.package", "value": {}}, property]}).to_string()
    });
    let annotations = properties.map(|text| json!({objects::PROPERTIES: text}));
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "sea", "annotations": annotations},
            "spec": {"version": version},
        }))
        .unwrap(),
    )
}

fn source(name: &str, versions: &str, message: &str) -> Value {
    json!({"name": name, "versions": versions, "message": format!("'{message}'")})
}

fn catalog(sources: &[Value]) -> Arc<Catalog> {
    let documents = [
        json!({"schema": "olm.package", "name": "buoy", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "buoy", "name": "a", "entries": [{"name": "buoy.v1"}]}),
        json!({"schema": "olm.bundle", "package": "buoy", "name": "buoy.v1", "image": "r/b:1",
            "properties": [{"type": "olm.package", "value": {"packageName": "buoy", "version": "1.0.0"}}]}),
        json!({"schema": release::SCHEMA, "package": "buoy", "statusSources": sources}),
    ];
    let text: Vec<String> = documents.iter().map(Value::to_string).collect();
    let limits = Limits::default();
    let fbc = Fbc::parse("own.json", text.join("\n").as_bytes(), &limits).unwrap();
    Arc::new(Catalog::from_fbc(fbc, &limits).unwrap())
}

fn messages(sources: &[Source]) -> Vec<String> {
    sources.iter().map(|source| source.tell(&[]).message.unwrap()).collect()
}

#[test]
fn those_about_the_version_count_and_the_bundles_own_first() {
    let catalogs = [catalog(&[
        source("depth", "<3.0.0", "catalog"),
        source("lamp", "=2.0.0", "lit"),
        source("chain", ">=3.0.0", "not yet"),
    ])];
    let own = json!({"statusSources": [source("depth", ">=2.0.0", "bundle")]});
    let two = csv("buoy.v2", "2.0.0", Some(&own));
    assert_eq!(messages(&sources("buoy", &two, &catalogs)), ["bundle", "lit"]);
    let three = csv("buoy.v3", "3.0.0", None);
    assert_eq!(messages(&sources("buoy", &three, &catalogs)), ["not yet"]);
    assert!(sources("raft", &three, &catalogs).is_empty());
}

#[test]
fn what_cannot_be_read_says_nothing_and_hinders_nothing() {
    let broken = json!({"statusSources": [{"name": "depth", "versions": "deep"}]});
    let two = csv("buoy.v2", "2.0.0", Some(&broken));
    let catalogs = [catalog(&[source("lamp", "=2.0.0", "lit")])];
    assert_eq!(messages(&sources("buoy", &two, &catalogs)), ["lit"]);
    let many: Vec<Value> = (0..20).map(|n| source(&format!("s{n}"), ">=1.0.0", "said")).collect();
    assert_eq!(sources("buoy", &two, &[catalog(&many)]).len(), SOURCES_MAX);
    assert!(sources("buoy", &csv("buoy.v2", "none", None), &catalogs).is_empty());
}

#[test]
fn the_new_version_speaks_as_soon_as_it_is_there() {
    let step = Step {
        namespace: "sea".try_into().unwrap(),
        moves: vec![Move {
            package: "buoy".try_into().unwrap(),
            from: Some("buoy.v1".try_into().unwrap()),
            to: "buoy.v2".try_into().unwrap(),
            from_version: None,
            to_version: "2.0.0".to_owned(),
        }],
        via: Via::Cluster,
    };
    let names = |csvs: &[Arc<Csv>]| {
        let observed = Observed { csvs: csvs.to_vec(), ..Observed::default() };
        let found = present(&step, &observed);
        found.map(|(package, csv)| format!("{package} {}", objects::name(csv))).collect::<Vec<_>>()
    };
    let (old, new) = (csv("buoy.v1", "1.0.0", None), csv("buoy.v2", "2.0.0", None));
    assert_eq!(names(&[Arc::clone(&old)]), ["buoy buoy.v1"]);
    assert_eq!(names(&[old, new]), ["buoy buoy.v2"]);
    assert!(names(&[]).is_empty());
}
