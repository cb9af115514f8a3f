use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

/// Package `kite` with 1.0.0 and 1.1.0 in its channels.
fn fbc(channels: &[&str]) -> Vec<Value> {
    let mut blobs =
        vec![json!({"schema": "olm.package", "name": "kite", "defaultChannel": channels[0]})];
    for channel in channels {
        blobs
            .push(json!({"schema": "olm.channel", "package": "kite", "name": channel, "entries": [
            {"name": "kite.v1.0.0"}, {"name": "kite.v1.1.0", "replaces": "kite.v1.0.0"}]}));
    }
    for version in ["1.0.0", "1.1.0"] {
        blobs.push(json!({"schema": "olm.bundle", "package": "kite",
            "name": format!("kite.v{version}"), "image": "registry.example.com/kite",
            "properties": [{"type": "olm.package",
                "value": {"packageName": "kite", "version": version}}]}));
    }
    blobs
}

fn ask(resolver: &Resolver, line: &Value) -> Result<Value, Error> {
    resolver.answer(&line.to_string()).map(|answer| serde_json::to_value(answer).unwrap())
}

fn with_kite() -> Resolver {
    let text: String = fbc(&["stable"]).iter().map(Value::to_string).collect();
    let fbc = Fbc::parse("own", text.as_bytes(), &Limits::default()).unwrap();
    let catalog = Catalog::from_fbc(fbc, &Limits::default()).unwrap();
    Resolver::new(Some(Arc::new(catalog)), Limits::default())
}

#[test]
fn a_namespace_is_answered_with_names() {
    let kite = |installed: &str| {
        json!({"namespace": [{"package": "kite", "channel": "stable",
            "installed": format!("kite.v{installed}"), "version": installed}]})
    };
    let resolver = with_kite();
    assert_eq!(ask(&resolver, &kite("1.0.0")).unwrap(), json!({"moves": ["kite.v1.1.0"]}));
    assert_eq!(ask(&resolver, &kite("1.1.0")).unwrap(), json!({"moves": []}));
    let other = json!({"namespace": [{"package": "oak", "channel": "", "installed": "oak.v1",
        "version": "1.0.0"}]});
    assert_eq!(
        ask(&resolver, &other).unwrap(),
        json!({"error": "package `oak` is not in catalog ns/given"})
    );
}

fn whole(channels: &[&str], more: Value) -> Value {
    let mut line = json!({
        "catalogs": [{"name": "one", "namespace": "global", "priority": 0, "fbc": fbc(channels)}],
        "subscriptions": [{"package": "kite", "channel": "", "catalog": "one",
            "catalogNamespace": "global", "installed": "kite.v1.0.0", "version": "1.0.0",
            "properties": []}],
    });
    let Value::Object(more) = more else { panic!("no object") };
    line.as_object_mut().unwrap().extend(more);
    line
}

#[test]
fn a_line_with_its_catalogs_is_answered_with_places_and_alternatives() {
    let resolver = Resolver::default();
    let place =
        |channel: &str| json!({"name": "kite.v1.1.0", "catalog": "global/one", "channel": channel});
    assert_eq!(
        ask(&resolver, &whole(&["stable"], json!({}))).unwrap(),
        json!({"moves": [place("stable")]})
    );
    // The same bundle in two channels, and none asked for: OLM takes it from either.
    assert_eq!(
        ask(&resolver, &whole(&["stable", "fast"], json!({}))).unwrap(),
        json!({"moves": [place("stable")], "alternatives": [[place("fast")]]})
    );
}

#[test]
fn only_catalogs_of_the_own_and_the_global_namespace_are_visible() {
    let line = whole(&["stable"], json!({"globalNamespace": "elsewhere"}));
    assert_eq!(
        ask(&Resolver::default(), &line).unwrap(),
        json!({"error": "catalog global/one of the Subscription to `kite` is missing or empty"})
    );
    let line = whole(&["stable"], json!({"operatorNamespace": "global", "globalNamespace": "x"}));
    assert!(ask(&Resolver::default(), &line).unwrap()["moves"].is_array());
}

#[test]
fn what_is_no_question_is_an_error_of_its_own() {
    let kind = |resolver: &Resolver, line: &Value| ask(resolver, line).unwrap_err().kind();
    assert_eq!(Resolver::default().answer("{").unwrap_err().kind(), "Parse");
    assert_eq!(kind(&Resolver::default(), &json!({"namespace": []})), "NoCatalog");
    let version =
        json!({"namespace": [{"package": "kite", "installed": "kite.v1", "version": "1"}]});
    assert_eq!(kind(&with_kite(), &version), "Version");
    let broken = json!({"catalogs": [{"name": "one", "namespace": "ns", "fbc": [{"name": "x"}]}],
        "subscriptions": []});
    assert_eq!(kind(&Resolver::default(), &broken), "Catalog");
    let many: Vec<Value> = (0..=LIST_MAX).map(|_| json!({"package": "kite"})).collect();
    assert_eq!(kind(&with_kite(), &json!({"namespace": many})), "TooMany");
}
