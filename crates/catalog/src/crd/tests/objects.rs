//! What existing objects may fail, and versions that they may be stored in.

use super::{super::refused_by_v0_for, *};

/// Checks where OLM v0 may find an object invalid.
#[track_caller]
fn fails(old: &Value, new: &Value, expected: &[(&str, &str)]) {
    let diff = diff(old, new).unwrap();
    let held = diff.changes.iter().filter(|change| change.refused_by.contains(&Olm::V0));
    let held: Vec<_> = held.map(|c| (c.property.as_str(), c.rule.name())).collect();
    assert_eq!(held, expected);
    let is_held = diff.refused_by_v0 == RefusedByV0::IfObjectsInvalid;
    assert_eq!(is_held, !expected.is_empty());
}

#[track_caller]
fn field_fails(old: &Value, new: &Value, expected: &[&str]) {
    let expected: Vec<_> = expected.iter().map(|rule| ("^.spec.field", *rule)).collect();
    fails(&with_field(old), &with_field(new), &expected);
}

#[test]
fn less_is_let_through() {
    let none = json!({});
    let cases = [
        (json!({ "type": "string" }), json!({ "type": "integer" }), "type"),
        (json!({ "type": "number" }), json!({ "type": "integer" }), "type"),
        (none.clone(), json!({ "type": "string" }), "type"),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!({ "x-kubernetes-int-or-string": false, "type": "string" }),
            "type",
        ),
        (json!({ "type": "string", "nullable": true }), json!({ "type": "string" }), "nullable"),
        (none.clone(), json!({ "enum": [1] }), "enum"),
        (json!({ "enum": [1, 2] }), json!({ "enum": [2, 3] }), "enum"),
        (none.clone(), json!({ "maximum": 1 }), "maximum"),
        (json!({ "minimum": 1 }), json!({ "minimum": 2 }), "minimum"),
        (none.clone(), json!({ "pattern": "a" }), "pattern"),
        (none.clone(), json!({ "format": "date-time" }), "unhandled"),
        (none.clone(), json!({ "uniqueItems": true }), "unhandled"),
        (none.clone(), json!({ "multipleOf": 2 }), "unhandled"),
        (json!({ "maximum": 1 }), json!({ "maximum": 1, "exclusiveMaximum": true }), "unhandled"),
        (none.clone(), json!({ "allOf": [{ "minLength": 1 }] }), "unhandled"),
        (none.clone(), json!({ "anyOf": [{ "minLength": 1 }] }), "unhandled"),
        (none.clone(), json!({ "not": { "minLength": 1 } }), "unhandled"),
        (json!({ "type": "object" }), json!({ "type": "object", "required": ["a"] }), "required"),
    ];
    for (old, new, rule) in cases {
        // Only those that OLM v0 sees; the types' own finding may stand beside it.
        let diff = diff(&with_field(&old), &with_field(&new)).unwrap();
        let held = diff.changes.iter().filter(|change| change.refused_by.contains(&Olm::V0));
        let rules: Vec<_> = held.map(|change| change.rule.name()).collect();
        assert_eq!(rules, [rule], "{old} -> {new}");
        assert_eq!(diff.refused_by_v0, RefusedByV0::IfObjectsInvalid);
    }
}

#[test]
fn as_much_or_more_is_let_through() {
    let none = json!({});
    let int_or_string = json!({ "x-kubernetes-int-or-string": true });
    let said_again = json!({
        "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }],
    });
    let cases = [
        (json!({ "type": "integer" }), json!({ "type": "number" })),
        (json!({ "type": "string" }), none.clone()),
        (json!({ "type": "string" }), int_or_string.clone()),
        (json!({ "type": "integer" }), said_again.clone()),
        (int_or_string, said_again),
        (json!({ "enum": [1] }), json!({ "enum": [1, 2] })),
        (json!({ "enum": [1] }), none.clone()),
        (json!({ "maximum": 1 }), json!({ "maximum": 2 })),
        (none.clone(), json!({ "minLength": 0 })),
        (json!({ "pattern": "a" }), none.clone()),
        // Formats that are not looked at, or hold what can be stored anyway.
        (none.clone(), json!({ "type": "", "format": "something" })),
        (json!({ "type": "integer" }), json!({ "type": "integer", "format": "int64" })),
        (json!({ "anyOf": [{ "minLength": 1 }] }), json!({ "anyOf": [{ "minLength": 1 }, {}] })),
        (json!({ "allOf": [{ "minLength": 1 }, {}] }), json!({ "allOf": [{}] })),
        // Rules in CEL are not evaluated, repeated elements not looked for.
        (none.clone(), json!({ "x-kubernetes-validations": [{ "rule": "false" }] })),
        (json!({ "type": "array" }), json!({ "type": "array", "x-kubernetes-list-type": "set" })),
        // A default is not filled in by the old definition, and need not be.
        (none, json!({ "default": 1 })),
    ];
    for (old, new) in cases {
        field_fails(&old, &new, &[]);
    }
}

#[test]
fn a_required_field_is_there_if_the_old_definition_fills_it_in() {
    let object = |field: Value, required: bool| {
        let required = if required { json!(["a"]) } else { json!([]) };
        json!({ "type": "object", "properties": { "a": field }, "required": required })
    };
    let (plain, filled) =
        (json!({ "type": "string" }), json!({ "type": "string", "default": "x" }));
    field_fails(&object(filled.clone(), false), &object(filled.clone(), true), &[]);
    // The new default comes too late: objects are listed through the old definition.
    let (old, new) = (object(plain, false), object(filled, true));
    field_fails(&old, &new, &["required"]);
}

#[test]
fn fields_that_were_pruned_can_not_be_wrong() {
    let object = json!({ "type": "object" });
    let with = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    field_fails(&object, &with, &[]);
    let a = [("^.spec.field.a", "tightened")];
    // But those that were kept can.
    let kept = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    fails(&with_field(&kept), &with_field(&with), &a);
    let any = json!({ "type": "object", "additionalProperties": true });
    fails(&with_field(&any), &with_field(&with), &a);
    let mut all_kept = with_field(&object);
    all_kept["spec"]["preserveUnknownFields"] = json!(true);
    fails(&all_kept, &with_field(&with), &a);
    // And values of a map that are named now.
    let map = |each: Value| json!({ "type": "object", "additionalProperties": each });
    let numbers = map(json!({ "type": "integer" }));
    fails(&with_field(&numbers), &with_field(&with), &a);
    fails(&with_field(&map(json!({ "type": "string" }))), &with_field(&with), &[]);
}

#[test]
fn maps_and_lists_are_looked_into() {
    let cases = [("additionalProperties", ".additionalProperties"), ("items", ".items")];
    for (keyword, step) in cases {
        let of = |type_name: &str| with_field(&json!({ keyword: { "type": type_name } }));
        let path = format!("^.spec.field{step}");
        fails(&of("string"), &of("integer"), &[(&path, "type")]);
        // Anything was allowed.
        let any = with_field(&json!({ "x-kubernetes-preserve-unknown-fields": true }));
        fails(&any, &of("integer"), &[(&path, "tightened")]);
    }
    let closed = json!({ "additionalProperties": false });
    field_fails(&json!({ "additionalProperties": true }), &closed, &["unhandled"]);
    field_fails(&json!({}), &closed, &[]);
    // Fields that had a name are values of the map now.
    let named = json!({ "properties": { "a": { "type": "integer" } } });
    let map = json!({ "additionalProperties": { "type": "string" } });
    let at_map = [("^.spec.field.additionalProperties", "tightened")];
    fails(&with_field(&named), &with_field(&map), &at_map);
}

#[test]
fn metadata_is_what_it_is_in_every_object() {
    let whole = |properties: Value| {
        definition(json!([version("v1", &json!({ "type": "object", "properties": properties }))]))
    };
    let usual = json!({
        "apiVersion": { "type": "string" },
        "kind": { "type": "string" },
        "metadata": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    fails(&whole(json!({})), &whole(usual), &[]);
    let limited = json!({
        "metadata": {
            "type": "object", "properties": { "name": { "type": "string", "maxLength": 9 } },
            "required": ["name"],
        },
    });
    // Every object has a name, though no definition said so; not all have so short a one.
    fails(&whole(json!({})), &whole(limited), &[("^.metadata.name", "tightened")]);
}

#[test]
fn a_webhook_makes_olm_v0_only_warn() {
    let old = with_field(&json!({ "type": "string" }));
    let mut new = with_field(&json!({ "type": "integer" }));
    fails(&old, &new, &[("^.spec.field", "type")]);
    new["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    let diff = diff(&old, &new).unwrap();
    assert_eq!(diff.refused_by_v0, RefusedByV0::Never);
    assert_eq!(of(&diff, Rule::ConversionChanged).class, Class::Risky);
}

#[test]
fn versions_that_go_are_refused_if_objects_are_stored_in_them() {
    let free = root(json!({}));
    let mut both = definition(json!([version("v1alpha1", &free), version("v1", &free)]));
    both["spec"]["versions"][0]["storage"] = json!(false);
    let new = definition(json!([version("v1", &free)]));
    let answer = |old: &Value, expected: RefusedByV0, refused_by_v1: bool| {
        let diff = diff(old, &new).unwrap();
        assert_eq!((diff.refused_by_v0, diff.refused_by_v1), (expected, refused_by_v1));
        let rule = if refused_by_v1 { vec![("", "", "storedVersionRemoval")] } else { vec![] };
        assert_eq!(held(&diff), rule);
        serde_json::to_value(diff.versions.removed).unwrap()
    };
    // Not the storage version now, maybe once.
    let removed = answer(&both, RefusedByV0::IfStored, false);
    assert_eq!(removed, json!([{ "name": "v1alpha1", "stored": "Maybe" }]));
    // The cluster knows.
    both["status"] = json!({ "storedVersions": ["v1"] });
    let removed = answer(&both, RefusedByV0::Never, false);
    assert_eq!(removed, json!([{ "name": "v1alpha1", "stored": "No" }]));
    both["status"] = json!({ "storedVersions": ["v1alpha1", "v1"] });
    let removed = answer(&both, RefusedByV0::IfStored, true);
    assert_eq!(removed, json!([{ "name": "v1alpha1", "stored": "Yes" }]));
    // The storage version itself, with a field that a bundle leaves empty.
    both["status"] = json!({ "storedVersions": null });
    both["spec"]["versions"][0]["storage"] = json!(true);
    answer(&both, RefusedByV0::IfStored, true);
}

#[test]
fn a_stored_version_that_goes_is_the_worse() {
    let schema = |type_name: &str| root(json!({ "field": { "type": type_name } }));
    let old = definition(json!([
        version("v1alpha1", &schema("string")),
        version("v1", &schema("string"))
    ]));
    let new = definition(json!([version("v1", &schema("integer"))]));
    let diff = diff(&old, &new).unwrap();
    assert_eq!(diff.refused_by_v0, RefusedByV0::IfStored);
    assert!(of(&diff, Rule::Type).refused_by.contains(&Olm::V0));
    assert!(RefusedByV0::Never < RefusedByV0::IfObjectsInvalid);
}

#[test]
fn stored_versions_of_a_cluster_can_be_held_against_a_definition_alone() {
    let new = definition(json!([version("v1", &root(json!({})))]));
    assert_eq!(refused_by_v0_for(&["v1"], &new).unwrap(), RefusedByV0::Never);
    assert_eq!(refused_by_v0_for(&["v1", "v1beta1"], &new).unwrap(), RefusedByV0::IfStored);
    assert_eq!(refused_by_v0_for(&[], &new).unwrap(), RefusedByV0::Never);
}
