//! Hostile definitions end with a clear error.

use std::collections::BTreeMap;

use super::{
    super::{Error, Side, diff_within, parse, parse::parse_within},
    *,
};

/// Which bound a new definition breaks.
#[track_caller]
fn breaks(new: &Value) -> &'static str {
    match diff(&with_field(&json!({})), new) {
        Err(Error::TooLarge { side: Side::New, what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

/// A schema within a schema within ..., by that keyword.
fn nested(levels: usize, keyword: &str) -> Value {
    let mut schema = json!({});
    for _ in 0..levels {
        schema = match keyword {
            "properties" => json!({ "properties": { "a": schema } }),
            "anyOf" => json!({ "anyOf": [schema] }),
            keyword => json!({ keyword: schema }),
        };
    }
    schema
}

#[test]
fn depth_is_bounded_by_every_way_down() {
    for keyword in ["items", "properties", "additionalProperties", "anyOf", "not"] {
        assert_eq!(breaks(&with_field(&nested(200, keyword))), "levels of schemas");
        let deep = with_field(&nested(60, keyword));
        assert!(diff(&with_field(&json!({})), &deep).is_ok());
    }
    let mut value = json!(1);
    for _ in 0..200 {
        value = json!([value]);
    }
    assert_eq!(breaks(&with_field(&json!({ "default": value }))), "levels in a value");
}

#[test]
fn size_is_bounded() {
    let any_of: Vec<Value> = (0..200_001).map(|_| json!({})).collect();
    assert_eq!(breaks(&with_field(&json!({ "anyOf": any_of }))), "schemas");
    // A long name is on the path of all that is below it.
    let name = "n".repeat(1 << 20);
    let below: serde_json::Map<String, Value> =
        (0..100).map(|n| (n.to_string(), json!({}))).collect();
    let field = json!({ "properties": { name: { "properties": below } } });
    assert_eq!(breaks(&with_field(&field)), "bytes of field names");
    let versions: Vec<Value> = (0..65).map(|n| json!({ "name": format!("v{n}") })).collect();
    assert_eq!(breaks(&definition(json!(versions))), "versions");
}

#[test]
fn the_number_of_changes_is_bounded() {
    let typed = |type_name: &str| with_field(&json!({ "type": type_name, "title": type_name }));
    let (old, new) = (typed("a"), typed("b"));
    let changes = diff(&old, &new).unwrap().changes.len();
    assert_eq!(changes, 2);
    assert!(diff_within(&old, &new, changes).is_ok());
    // What OLM v1 holds against it is counted before all else is looked at, ...
    let held = diff_within(&old, &new, changes - 1);
    assert!(matches!(held, Err(Error::TooManyChanges { max: 1 })), "{held:?}");
    // ... and what it lets pass counts too.
    let described = with_field(&json!({ "type": "a", "title": "a", "description": "a" }));
    assert!(diff_within(&old, &described, 1).is_ok());
    let gentle = diff_within(&old, &described, 0);
    assert!(matches!(gentle, Err(Error::TooManyChanges { max: 0 })), "{gentle:?}");
}

#[test]
fn many_fields_are_compared_one_by_one() {
    let fields = |count: usize, field: &Value| -> Value {
        let fields: serde_json::Map<_, _> =
            (0..count).map(|n| (format!("f{n}"), field.clone())).collect();
        let names: Vec<String> = (0..count).rev().map(|n| format!("f{n}")).collect();
        json!({ "type": "object", "properties": fields, "required": names, "enum": names })
    };
    let (texts, numbers) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let (old, new) = (fields(10_000, &texts), fields(10_000, &numbers));
    let found = diff(&with_field(&old), &with_field(&new)).unwrap();
    assert_eq!(found.by_rule, BTreeMap::from([("type".to_owned(), 10_000)]));
    assert_eq!(found.changes.len(), 10_000);
    assert!(found.changes.iter().all(|change| change.class == Class::Breaking));
    // Each with each would be too many comparisons: that all are within the others can't be told.
    let any_of = |numbers: &mut dyn Iterator<Item = usize>| {
        let members: Vec<_> = numbers.map(|n| json!({ "maxLength": n })).collect();
        with_field(&json!({ "anyOf": members }))
    };
    let same = any_of(&mut (0..1_000));
    assert_eq!(diff(&same, &same).unwrap().refused_by_v0, RefusedByV0::Never);
    let turned = diff(&same, &any_of(&mut (0..1_000).rev())).unwrap();
    assert_eq!(turned.refused_by_v0, RefusedByV0::IfObjectsInvalid);
}

#[test]
fn rules_and_words_about_them_are_bounded() {
    let rules = vec![json!({ "rule": "true" }); 1_001];
    assert_eq!(
        breaks(&with_field(&json!({ "x-kubernetes-validations": rules }))),
        "rules of one schema"
    );
    let long = "n".repeat(1 << 20);
    let field = json!({ "properties": { long: { "type": 1 } } });
    let error = diff(&with_field(&json!({})), &with_field(&field)).unwrap_err();
    assert!(error.to_string().len() < 1_000, "{error}");
}

#[test]
fn words_and_values_are_cut() {
    let long = "ä".repeat(5_000);
    let field = json!({ "type": "string", "pattern": long });
    let diff = diff(&with_field(&json!({ "type": "string" })), &with_field(&field)).unwrap();
    let change = of(&diff, Rule::Pattern);
    assert!(change.message.len() <= 503 && change.message.ends_with('…'));
    assert_eq!(change.new, None);
}

#[test]
fn files_are_bounded() {
    let deep = format!("kind: CustomResourceDefinition\na: {}", "[".repeat(10_000));
    assert!(matches!(parse(deep.as_bytes(), Side::Old), Err(Error::Yaml { .. })));
    let deep = format!("{{\"a\": {}", "[".repeat(10_000));
    assert!(matches!(parse(deep.as_bytes(), Side::Old), Err(Error::Json { .. })));
    // Each line ten times the one above.
    let mut bomb = "kind: CustomResourceDefinition\nl0: &l0 [x]\n".to_owned();
    for n in 1..12 {
        let of = vec![format!("*l{}", n - 1); 10].join(",");
        bomb.push_str(&format!("l{n}: &l{n} [{of}]\n"));
    }
    let bombed = parse_within(bomb.as_bytes(), Side::Old, 20_000);
    assert!(matches!(bombed, Err(Error::Yaml { .. })));
    let many = format!("{{\"a\": [{}1]}}", "1,".repeat(2_000_000));
    let error = parse(many.as_bytes(), Side::Old).unwrap_err();
    assert!(matches!(error, Error::TooLarge { what: "values", .. }), "{error:?}");
    assert!(parse(&[0xff, 0xfe, 0x00], Side::Old).is_err());
}
