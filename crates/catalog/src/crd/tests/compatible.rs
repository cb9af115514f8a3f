//! What OLM v1 lets pass is named all the same, and not counted.

use super::*;

/// The one change that is not OLM v1's, between two schemas of a field.
#[track_caller]
fn only(old: Value, new: Value) -> Change {
    let diff = diff(&with_field(&old), &with_field(&new)).unwrap();
    assert_eq!((diff.refused_by_v1, diff.v1, diff.by_rule.len()), (false, V1::Accepts, 0));
    assert_eq!(diff.changes.len(), 1, "{:#?}", diff.changes);
    let change = diff.changes.into_iter().next().unwrap();
    assert_eq!((change.version.as_str(), change.class), ("v1", Class::Compatible));
    assert!(change.refused_by.is_empty());
    change
}

#[test]
fn what_is_gained_or_loosened_has_a_rule_of_ours() {
    let cases = [
        (json!({ "enum": [1] }), json!({ "enum": [1, 2] }), Rule::EnumValueAdded),
        (json!({ "description": "a" }), json!({}), Rule::DescriptionChanged),
        (json!({ "maximum": 1 }), json!({ "maximum": 2 }), Rule::BoundLoosened),
        (json!({ "minItems": 2 }), json!({ "minItems": 1 }), Rule::BoundLoosened),
        (json!({ "maxLength": 1 }), json!({}), Rule::BoundLoosened),
        (json!({ "required": ["a"] }), json!({}), Rule::RequiredRemoved),
    ];
    for (old, new, rule) in cases {
        let change = only(old, new);
        assert_eq!((change.rule, change.property.as_str()), (rule, "^.spec.field"));
    }
}

#[test]
fn of_new_fields_the_outermost_is_named() {
    let new = json!({ "properties": {
        "a": { "type": "object", "properties": { "b": { "type": "string" } } },
    } });
    let change = only(json!({}), new);
    assert_eq!((change.rule, change.property.as_str()), (Rule::FieldAdded, "^.spec.field.a"));
    assert_eq!(change.new, Some(json!("object")));
}

#[test]
fn classes_of_what_no_rule_knows_go_by_what_it_does() {
    let keeps = json!({ "x-kubernetes-preserve-unknown-fields": true });
    let rule = json!({ "x-kubernetes-validations": [{ "rule": "r" }] });
    let any = json!({ "additionalProperties": true });
    let cases = [
        (keeps.clone(), json!({}), Class::Breaking),
        (json!({}), keeps, Class::Compatible),
        (json!({}), rule.clone(), Class::Risky),
        (rule, json!({}), Class::Compatible),
        (any.clone(), json!({}), Class::Breaking),
        (json!({}), any, Class::Compatible),
        (json!({}), json!({ "x-kubernetes-list-type": "map" }), Class::Risky),
        (json!({ "format": "date" }), json!({}), Class::Compatible),
        (json!({}), json!({ "format": "date", "title": "t" }), Class::Breaking),
        (json!({}), json!({ "title": "t" }), Class::Compatible),
    ];
    for (old, new, class) in cases {
        let diff = check(&old, &new, &["unhandled"]);
        assert_eq!(of(&diff, Rule::Unhandled).class, class, "{old} -> {new}");
    }
}

#[test]
fn a_required_field_that_was_always_filled_in_is_only_risky() {
    let field = |required: Value| {
        let a = json!({ "type": "string", "default": "x" });
        json!({ "type": "object", "properties": { "a": a }, "required": required })
    };
    let diff = check(&field(json!([])), &field(json!(["a"])), &["required"]);
    assert_eq!(of(&diff, Rule::Required).class, Class::Risky);
}
