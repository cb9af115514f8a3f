//! Hostile definitions end with a clear error.

use super::{
    super::{Error, Side, parse},
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
    let fields = |type_name: &str| -> Value {
        (0..4_000)
            .map(|n| (format!("f{n}"), json!({ "type": type_name })))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let served = |name: &str, type_name: &str| version(name, &root(fields(type_name)));
    let versions: Vec<Value> =
        (1..20).map(|n| served(&format!("v{n}"), &format!("t{n}"))).collect();
    let old = definition(json!([served("v1", "t1")]));
    let result = diff(&old, &definition(json!(versions)));
    assert!(matches!(result, Err(Error::TooManyChanges { .. })));
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
    assert!(matches!(parse(bomb.as_bytes(), Side::Old), Err(Error::Yaml { .. })));
    assert!(parse(&[0xff, 0xfe, 0x00], Side::Old).is_err());
}
