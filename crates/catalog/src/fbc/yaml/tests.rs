use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn value(text: &str) -> Result<Value, String> {
    let json = to_json(text, &Limits::default()).map_err(|error| error.to_string())?;
    serde_json::from_str(&json).map_err(|error| format!("`{json}`: {error}"))
}

#[test]
fn documents_become_the_json_they_mean() {
    for (text, expected) in [
        ("", Value::Null),
        ("# only a comment\n", Value::Null),
        ("--- # with a comment\na: 1\n", json!({"a": 1})),
        (
            "a: [1, {b: c}]\nd:\n- e\n-\n  f: g",
            json!({"a": [1, {"b": "c"}], "d": ["e", {"f": "g"}]}),
        ),
        (
            "a: 'on'\nb: on\nc: \"1\"\nd: |\n  x\n  \"y\"\\\n",
            json!({"a": "on", "b": true, "c": "1", "d": "x\n\"y\"\\\n"}),
        ),
        ("1: a\nyes: b\n4.0: c", json!({"1": "a", "true": "b", "4": "c"})),
        ("a: 5.0\nb: 4.20\nc: 1e21", json!({"a": 5, "b": 4.2, "c": 1e21})),
        (
            "a: &x {b: 1}\nc: *x\nd: &y text\ne: [*y, *y]",
            json!({"a": {"b": 1}, "c": {"b": 1}, "d": "text", "e": ["text", "text"]}),
        ),
        (
            "a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}",
            json!({"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ),
        ("a: !!str 1", json!({"a": "1"})),
        ("a: 1\na: 2", json!({"a": 2})),
        ("a: 1\n...\n", json!({"a": 1})),
        ("\u{feff}a: 1", json!({"a": 1})),
        ("a: \"\\x01\\t\\u00fc\"", json!({"a": "\u{1}\tü"})),
        ("{a: {}, b: []}", json!({"a": {}, "b": []})),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, expected) in [
        ("a: 1\nb: [", "line 2"),
        ("a: 1\nb: c: d", "line 2"),
        ("a: .inf", "line 1: a number is not finite"),
        ("a: 1\n~: b", "line 2: the name of a field is null"),
        ("? [a]\n: b", "line 1: the name of a field is no text"),
        ("a: &x [*x]", "line 1: an alias stands within what it names"),
        ("a: *x", "line 1"),
    ] {
        let error = value(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn aliases_can_make_only_so_much() {
    let mut bomb = String::from("l0: &l0 [xxxxxxxxxx]\n");
    for level in 1..=20 {
        let before = format!("*l{},", level - 1).repeat(10);
        bomb.push_str(&format!("l{level}: &l{level} [{before}]\n"));
    }
    assert!(value(&bomb).unwrap_err().contains("aliases make too much"));
    // Depth counts what aliases bring along only where they are looked at; here it stays bounded.
    let few = Limits { file_nodes: 10, ..Limits::default() };
    assert!(to_json("a: [1, 2, 3, 4, 5, 6, 7, 8, 9]", &few).unwrap_err().reason.contains("values"));
    let flat = Limits { depth: 3, ..Limits::default() };
    assert!(to_json("[[[1]]]", &flat).is_ok());
    assert!(to_json("[[[[1]]]]", &flat).unwrap_err().reason.contains("nested"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[a-z0-9.:#'\" \\\\\n-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z<~]{1,4}", inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// JSON is YAML, so it must come back as it was.
    #[test]
    fn json_read_as_yaml_stays_what_it_is(value in any_value()) {
        let text = serde_json::to_string(&value).unwrap();
        let json = to_json(&text, &Limits::default()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
    }

    /// What a YAML writer writes is read as what was written.
    #[test]
    fn written_yaml_is_read_back(value in any_value()) {
        let text = serde_saphyr::to_string(&value).unwrap();
        let json = to_json(&text, &Limits::default()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
    }

    /// No text makes it fail otherwise than with an error.
    #[test]
    fn any_text_is_json_or_an_error(text in "[\\PC\n :&*\\[\\]{}'\"|>!-]{0,200}") {
        if let Ok(json) = to_json(&text, &Limits::default()) {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok());
        }
    }
}
