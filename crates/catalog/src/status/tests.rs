use serde_json::json;

use super::*;
use crate::release::Release;

fn harbour() -> Json {
    json!({
        "name": "move", "versions": ">=2.0.0",
        "objects": [
            {"variable": "harbour", "apiVersion": "ferry.example.com/v1", "kind": "Harbour", "name": "main"},
            {"variable": "ships", "apiVersion": "ferry.example.com/v1", "kind": "Ship"},
        ],
        "progress": "harbour.status.moved * 100 / harbour.spec.berths",
        "message": "string(harbour.status.moved) + ' of ' + string(size(ships)) + ' ships moved'",
        "conditions": [
            {"type": "Moving", "status": "harbour.status.moved < harbour.spec.berths"},
            {"type": "Watched", "reason": "LampsLit", "status": "ships.all(s, s.spec.lamps >= 1.5)",
                "message": "'at ' + harbour.metadata.name"},
        ],
    })
}

fn source(json: &Json) -> Source {
    let release = Release::parse(&json!({"statusSources": [json]})).unwrap();
    Source::new(&release.status_sources[0]).unwrap()
}

fn refused(change: impl FnOnce(&mut Json)) -> String {
    let mut json = harbour();
    change(&mut json);
    Release::parse(&json!({"statusSources": [json]})).unwrap_err().to_string()
}

fn found(moved: &Json) -> [Found; 2] {
    let harbour =
        json!({"metadata": {"name": "main"}, "spec": {"berths": 8}, "status": {"moved": moved}});
    let ships = json!([{"spec": {"lamps": 2}}, {"spec": {"lamps": 1.5}}]);
    [Found::Is(harbour), Found::Is(ships)]
}

fn said(told: &Told) -> Vec<(&str, &str, &str, &str)> {
    let each = told.conditions.iter();
    each.map(|c| (c.kind.as_str(), c.status.as_str(), c.reason.as_str(), c.message.as_str()))
        .collect()
}

#[test]
fn progress_message_and_conditions_are_those_of_the_objects() {
    let told = source(&harbour()).tell(&found(&json!(3)));
    assert_eq!(told.progress, Some(37));
    assert_eq!(told.message.as_deref(), Some("3 of 2 ships moved"));
    let expected = [("Moving", "True", "Moving", ""), ("Watched", "True", "LampsLit", "at main")];
    assert_eq!(said(&told), expected);
    let done = source(&harbour()).tell(&found(&json!(8)));
    assert_eq!((done.progress, said(&done)[0].1), (Some(100), "False"));
}

#[test]
fn what_is_out_of_bounds_is_brought_within() {
    let mut json = harbour();
    for (progress, percent) in [
        ("-5", Some(0)),
        ("250", Some(100)),
        ("uint(101)", Some(100)),
        ("99.9", Some(99)),
        ("double('NaN')", None),
        ("1.0 / 0.0", None),
        ("1 / 0", None),
    ] {
        json["progress"] = json!(progress);
        assert_eq!(source(&json).tell(&found(&json!(1))).progress, percent, "{progress}");
    }
    json["message"] = json!("harbour.metadata.name");
    let long = json!({"metadata": {"name": "x".repeat(9000)}});
    let told = source(&json).tell(&[Found::Is(long), Found::Is(json!([]))]);
    assert_eq!(told.message.unwrap().len(), 2048);
}

#[test]
fn what_cannot_be_told_is_unknown_with_the_reason() {
    let source = source(&harbour());
    let told = source.tell(&found(&json!("three")));
    assert_eq!((told.progress, told.message.as_deref()), (None, Some("three of 2 ships moved")));
    assert_eq!(said(&told)[0].1, "Unknown");
    assert_eq!(said(&told)[0].2, "NotEvaluated");
    assert_eq!(said(&told)[1].1, "True");
    let [harbour, ships] = found(&json!(3));
    let told = source.tell(&[harbour, Found::Unread("not allowed: no".to_owned())]);
    assert_eq!(told.progress, None);
    let unknown = |kind| (kind, "Unknown", "ObjectNotRead", "not allowed: no");
    assert_eq!(said(&told), [unknown("Moving"), unknown("Watched")]);
    let told = source.tell(&[Found::Missing("Harbour main".to_owned()), ships]);
    assert_eq!(said(&told)[0], ("Moving", "Unknown", "ObjectNotFound", "Harbour main"));
}

#[test]
fn hostile_objects_are_too_much_and_nothing_worse() {
    let mut json = harbour();
    json["conditions"][1]["status"] = json!("ships.all(a, ships.all(b, a.x == b.x))");
    let many = Json::Array(vec![json!({"x": 1}); 2000]);
    let [harbour, _] = found(&json!(3));
    let told = source(&json).tell(&[harbour.clone(), Found::Is(many)]);
    assert_eq!(said(&told)[1].2, "NotEvaluated");
    assert!(said(&told)[1].3.contains("too much work"), "{told:?}");
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let told = source(&json).tell(&[harbour, Found::Is(deep)]);
    assert_eq!(said(&told)[1].2, "ObjectNotRead");
}

#[test]
fn what_is_no_source_is_refused_with_its_field() {
    let progress = |text: &str| {
        let text = json!(text);
        refused(|json| json["progress"] = text)
    };
    assert_eq!(progress("'far'"), "field `statusSources[0].progress` does not end in a number");
    let other = "field `statusSources[0].progress` names `port`, which is not known";
    assert_eq!(progress("port.status.moved"), other);
    assert!(progress("1 +").starts_with("field `statusSources[0].progress` does not parse"));
    let secret = |json: &mut Json| {
        json["objects"][1] = json!({"variable": "s", "apiVersion": "v1", "kind": "Secret"});
    };
    let told = "field `statusSources[0].objects[1].kind` is Secret, which is not read";
    assert_eq!(refused(secret), told);
    let twice = refused(|json| json["objects"][1]["variable"] = json!("harbour"));
    assert_eq!(twice, "field `statusSources[0].objects[1].variable` is there already");
    let dashed = refused(|json| json["objects"][1]["variable"] = json!("a-b"));
    assert!(dashed.contains("objects[1].variable` is no name"), "{dashed}");
    let status = refused(|json| json["conditions"][0]["status"] = json!("1"));
    assert_eq!(
        status,
        "field `statusSources[0].conditions[0].status` does not end in a truth value"
    );
    let many = refused(|json| {
        json["conditions"] = Json::Array(vec![json!({"type": "A", "status": "true"}); 17]);
    });
    assert_eq!(many, "field `statusSources[0].conditions` has 17 items, more than 16");
}

#[test]
fn fields_that_are_not_known_are_named() {
    let mut json = harbour();
    json["objects"][0]["labels"] = json!({});
    json["conditions"][1]["severity"] = json!("Low");
    let release = Release::parse(&json!({"statusSources": [json]})).unwrap();
    let expected =
        ["statusSources[0].objects[0].labels", "statusSources[0].conditions[1].severity"];
    assert_eq!(release.unknown_fields(), expected);
}
