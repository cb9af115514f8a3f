//! Each rule of OLM v1's check on one field.

use super::*;

/// A field of text with more keywords.
fn text(more: Value) -> Value {
    let mut field = json!({ "type": "string" });
    field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    field
}

#[test]
fn a_default_that_comes_goes_or_changes_is_held_against_it() {
    let (none, on, off) =
        (text(json!({})), text(json!({ "default": "on" })), text(json!({ "default": "off" })));
    check(&none, &on, &["default"]);
    check(&on, &none, &["default"]);
    check(&on, &off, &["default"]);
    check(&on, &on, &[]);
    // A default of null is none.
    check(&none, &text(json!({ "default": null })), &[]);
    // How a number is written is not its value.
    check(&json!({ "default": 1 }), &json!({ "default": 1.0 }), &[]);
}

#[test]
fn values_may_be_added_but_not_taken_away() {
    let allowed = |values: Value| text(json!({ "enum": values }));
    let free = text(json!({}));
    check(&free, &allowed(json!(["a"])), &["enum"]);
    check(&allowed(json!(["a", "b"])), &allowed(json!(["a"])), &["enum"]);
    check(&allowed(json!(["a"])), &allowed(json!(["b", "a"])), &[]);
    check(&allowed(json!(["a", "b"])), &allowed(json!(["b", "a"])), &[]);
    // OLM v1 counts it as taken away even if all is allowed then; nothing breaks.
    let diff = check(&allowed(json!(["a"])), &free, &["enum"]);
    assert_eq!(of(&diff, Rule::Enum).class, Class::Compatible);
    check(&allowed(json!(["a"])), &allowed(json!([])), &["enum"]);
}

#[test]
fn upper_bounds_may_not_come_or_fall() {
    for bound in ["maximum", "maxItems", "maxLength", "maxProperties"] {
        let (none, five, six) = (json!({}), json!({ bound: 5 }), json!({ bound: 6 }));
        check(&none, &five, &[bound]);
        check(&six, &five, &[bound]);
        check(&five, &six, &[]);
        check(&five, &none, &[]);
        check(&five, &json!({ bound: 5.0 }), &[]);
    }
    check(&json!({ "maximum": 0.5 }), &json!({ "maximum": 0.25 }), &["maximum"]);
}

#[test]
fn lower_bounds_may_not_come_or_rise() {
    for bound in ["minimum", "minItems", "minLength", "minProperties"] {
        let (none, five, six) = (json!({}), json!({ bound: 5 }), json!({ bound: 6 }));
        check(&none, &five, &[bound]);
        check(&five, &six, &[bound]);
        check(&six, &five, &[]);
        check(&five, &none, &[]);
        // Nothing is shorter than nothing, but OLM v1 does not look at how much it is.
        check(&none, &json!({ bound: 0 }), &[bound]);
    }
}

#[test]
fn what_was_not_required_may_not_be() {
    let required = |names: Value| json!({ "type": "object", "required": names });
    let none = json!({ "type": "object" });
    check(&none, &required(json!(["a"])), &["required"]);
    check(&required(json!(["a"])), &required(json!(["b"])), &["required"]);
    check(&required(json!(["a", "b"])), &required(json!(["b", "a"])), &[]);
    check(&required(json!(["a"])), &none, &[]);
}

#[test]
fn types_patterns_and_null_may_not_change_at_all() {
    check(&json!({ "type": "integer" }), &json!({ "type": "number" }), &["type"]);
    check(&json!({}), &json!({ "type": "object" }), &["type"]);
    let (none, one, other) =
        (text(json!({})), text(json!({ "pattern": "^a" })), text(json!({ "pattern": "^b" })));
    check(&none, &one, &["pattern"]);
    check(&one, &other, &["pattern"]);
    let diff = check(&one, &none, &["pattern"]);
    assert_eq!(of(&diff, Rule::Pattern).class, Class::Compatible);
    let (null, not_null) = (text(json!({ "nullable": true })), text(json!({ "nullable": false })));
    check(&null, &not_null, &["nullable"]);
    check(&none, &null, &["nullable"]);
    check(&none, &not_null, &[]);
}

#[test]
fn words_for_people_may_change() {
    check(&text(json!({})), &text(json!({ "description": "new" })), &[]);
    // But for the title, which no rule knows.
    check(&text(json!({})), &text(json!({ "title": "new" })), &["unhandled"]);
}

#[test]
fn what_no_rule_knows_counts_once() {
    let cases = [
        ("format", json!("date-time")),
        ("exclusiveMaximum", json!(true)),
        ("exclusiveMinimum", json!(true)),
        ("uniqueItems", json!(true)),
        ("multipleOf", json!(2)),
        ("$ref", json!("#/x")),
        ("$schema", json!("s")),
        ("id", json!("i")),
        ("externalDocs", json!({ "url": "u" })),
        ("example", json!(1)),
        ("x-kubernetes-preserve-unknown-fields", json!(true)),
        // Written as false it is another thing than not written.
        ("x-kubernetes-preserve-unknown-fields", json!(false)),
        ("x-kubernetes-embedded-resource", json!(true)),
        ("x-kubernetes-int-or-string", json!(true)),
        ("x-kubernetes-list-map-keys", json!(["a"])),
        ("x-kubernetes-list-type", json!("map")),
        ("x-kubernetes-map-type", json!("atomic")),
        ("x-kubernetes-validations", json!([{ "rule": "self > 1" }])),
        ("additionalProperties", json!(true)),
        ("additionalProperties", json!({ "type": "string" })),
        ("additionalItems", json!({ "type": "string" })),
        ("patternProperties", json!({ "^a": { "type": "string" } })),
        ("dependencies", json!({ "a": ["b"] })),
        ("definitions", json!({ "a": { "type": "string" } })),
        ("allOf", json!([{ "minLength": 1 }])),
        ("anyOf", json!([{ "minLength": 1 }])),
        ("not", json!({ "minLength": 1 })),
    ];
    for (keyword, value) in cases {
        check(&json!({}), &json!({ keyword: value }), &["unhandled"]);
    }
    // Several at once are one.
    let many = json!({ "format": "date", "x-kubernetes-list-type": "set", "title": "t" });
    check(&json!({}), &many, &["unhandled"]);
}

#[test]
fn what_means_nothing_is_nothing() {
    let cases = [
        json!({ "uniqueItems": false }),
        json!({ "x-kubernetes-int-or-string": false }),
        json!({ "x-kubernetes-list-map-keys": [] }),
        json!({ "anyOf": [], "properties": {}, "required": null }),
        // Fields that the API server drops.
        json!({ "deprecated": true, "x-example": 1 }),
    ];
    for new in cases {
        check(&json!({}), &new, &[]);
    }
}

#[test]
fn rules_add_up_at_one_field() {
    let old = text(json!({ "default": "a", "maxLength": 9, "format": "date" }));
    let new = json!({ "type": "integer", "minimum": 1, "maxLength": 3 });
    check(&old, &new, &["default", "maxLength", "minimum", "type", "unhandled"]);
}

#[test]
fn a_field_that_goes_is_held_against_it_with_all_that_it_had() {
    let old = with_field(&json!({
        "type": "array", "minItems": 1, "format": "x", "items": { "type": "string", "enum": ["a"] },
    }));
    let new = definition(json!([version("v1", &root(json!({})))]));
    let diff = diff(&old, &new).unwrap();
    let (field, items) = ("^.spec.field", "^.spec.field.items");
    assert_eq!(
        held(&diff),
        [
            ("v1", field, "existingFieldRemoval"),
            ("v1", field, "type"),
            ("v1", field, "unhandled"),
            ("v1", items, "enum"),
            ("v1", items, "existingFieldRemoval"),
            ("v1", items, "type"),
        ]
    );
    assert!(diff.changes.iter().all(|change| change.class == Class::Breaking));
    // Objects with the field stay valid: it is pruned.
    assert_eq!(diff.refused_by_v0, RefusedByV0::Never);
}

#[test]
fn parts_have_the_paths_that_olm_gives_them() {
    let parts = json!({
        "items": [{ "type": "string" }],
        "allOf": [{ "type": "string" }, { "type": "string" }],
        "anyOf": [{ "type": "string" }],
        "oneOf": [{ "type": "string" }],
        "not": { "type": "string" },
        "properties": { "a": { "type": "string" }, "": { "type": "string" } },
        "additionalProperties": { "items": { "type": "string" } },
        "patternProperties": { "^p": { "type": "string" } },
        "additionalItems": { "type": "string" },
        "definitions": { "d": { "type": "string" } },
        "dependencies": { "n": { "type": "string" }, "o": ["n"] },
    });
    let diff = diff(&with_field(&parts), &with_field(&json!({}))).unwrap();
    let gone: BTreeSet<_> = held(&diff)
        .into_iter()
        .filter(|(_, _, rule)| *rule == "existingFieldRemoval")
        .map(|(_, path, _)| path.strip_prefix("^.spec.field").unwrap())
        .collect();
    let expected = [
        ".items[0]",
        ".allOf[0]",
        ".allOf[1]",
        ".anyOf[0]",
        ".oneOf[0]",
        ".not",
        ".a",
        "[]",
        ".additionalProperties",
        ".additionalProperties.items",
        ".patternProperties[^p]",
        ".additionalItems",
        ".definitions[d]",
        ".dependencies[n]",
    ];
    assert_eq!(gone, BTreeSet::from(expected));
}

#[test]
fn a_change_below_shows_above_where_olm_v1_compares_the_whole() {
    let (one, other) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let whole = [
        ("additionalProperties", one.clone(), other.clone(), ".additionalProperties"),
        ("anyOf", json!([one]), json!([other]), ".anyOf[0]"),
        ("allOf", json!([one]), json!([other]), ".allOf[0]"),
        ("not", one.clone(), other.clone(), ".not"),
    ];
    for (keyword, before, after, path) in whole {
        let diff =
            diff(&with_field(&json!({ keyword: before })), &with_field(&json!({ keyword: after })));
        let path = format!("^.spec.field{path}");
        let expected = [("v1", "^.spec.field", "unhandled"), ("v1", path.as_str(), "type")];
        assert_eq!(held(&diff.unwrap()), expected);
    }
    // Fields and elements have their own paths only.
    for (keyword, before, after, path) in [
        ("properties", json!({ "a": one }), json!({ "a": other }), "^.spec.field.a"),
        ("items", one.clone(), other.clone(), "^.spec.field.items"),
    ] {
        let diff =
            diff(&with_field(&json!({ keyword: before })), &with_field(&json!({ keyword: after })));
        assert_eq!(held(&diff.unwrap()), [("v1", path, "type")]);
    }
    // Even a field that is only added, or a word for people.
    let map = |value: Value| json!({ "additionalProperties": value });
    let described = json!({ "type": "string", "description": "new" });
    check(&map(one), &map(described), &["unhandled"]);
    let added = json!({ "properties": { "a": { "type": "string" } } });
    let diff = check(&map(json!({})), &map(added), &["unhandled"]);
    assert_eq!(of(&diff, Rule::Unhandled).class, Class::Risky);
}

#[test]
fn members_of_one_of_are_compared_as_a_set() {
    let one_of = |members: Value| json!({ "oneOf": members });
    let rules = |old: Value, new: Value| -> Vec<String> {
        let diff = diff(&with_field(&one_of(old)), &with_field(&one_of(new))).unwrap();
        let at_field = held(&diff).into_iter().filter(|(_, path, _)| *path == "^.spec.field");
        at_field.map(|(_, _, rule)| rule.to_owned()).collect()
    };
    let (a, b) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    assert_eq!(rules(json!([]), json!([a])), ["oneOf"]);
    assert_eq!(rules(json!([a]), json!([])), ["oneOf"]);
    assert_eq!(rules(json!([a]), json!([a, b])), ["oneOf"]);
    assert_eq!(rules(json!([a, b]), json!([b])), ["oneOf"]);
    assert_eq!(rules(json!([a, b]), json!([b, a])), [""; 0]);
    assert_eq!(rules(json!([a, a]), json!([a])), [""; 0]);
    // A member's own words don't count, those further down do.
    let described = json!({ "type": "string", "description": "d", "title": "t", "example": 1 });
    assert_eq!(rules(json!([a]), json!([described])), [""; 0]);
    let deeper = |text: &str| json!({ "items": { "description": text } });
    assert_eq!(rules(json!([deeper("a")]), json!([deeper("b")])), ["oneOf"]);
}

/// Seen in the real check: it compares texts, and those of some members hold memory addresses.
#[test]
fn a_one_of_that_olm_can_not_print_counts_as_changed_with_anything_else() {
    let field = |description: &str, member: &Value| json!({ "description": description, "oneOf": [member] });
    let cases = [
        (json!({ "minLength": 1 }), false),
        (json!({ "properties": { "a": { "minLength": 1 } } }), true),
        (json!({ "properties": { "a": { "default": 1, "enum": [1] } } }), false),
        (json!({ "properties": { "a": { "items": { "minLength": 1 } } } }), false),
        (
            json!({ "properties": { "a": { "items": { "properties": { "b": { "maximum": 1 } } } } } }),
            true,
        ),
        (json!({ "properties": { "a": { "allOf": [{ "minLength": 1 }] } } }), true),
        (json!({ "allOf": [{ "minLength": 1 }] }), false),
        (json!({ "properties": { "a": { "not": { "minLength": 1 } } } }), false),
        (json!({ "properties": { "a": { "x-kubernetes-preserve-unknown-fields": true } } }), true),
        (json!({ "properties": { "a": { "x-kubernetes-list-type": "set" } } }), true),
        (
            json!({ "properties": { "a": { "x-kubernetes-validations": [{ "rule": "r" }] } } }),
            false,
        ),
        (
            json!({ "properties": { "a": { "x-kubernetes-validations":
                [{ "rule": "r", "optionalOldSelf": true }] } } }),
            true,
        ),
        (json!({ "properties": { "a": { "additionalProperties": { "minLength": 1 } } } }), false),
        (json!({ "properties": { "a": { "dependencies": { "d": { "minLength": 1 } } } } }), false),
    ];
    for (member, is_changed) in cases {
        let rules: &[&str] = if is_changed { &["oneOf"] } else { &[] };
        check(&field("old", &member), &field("new", &member), rules);
        // With nothing else changed it is not even looked at.
        check(&field("old", &member), &field("old", &member), &[]);
    }
}
