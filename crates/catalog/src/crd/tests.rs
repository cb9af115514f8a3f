//! What is said of small definitions, each expectation worked out by hand.

#![expect(
    clippy::needless_pass_by_value,
    clippy::redundant_clone,
    reason = "values are written where they are used, and cheap"
)]

mod bounds;
mod compatible;
mod definitions;
mod laws;
mod objects;
mod pairs;
mod property;
mod replacement;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Change, Class, CrdDiff, Olm, RefusedByV0, Rule, V1, diff};

/// A definition of today's form with these versions.
fn definition(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "lamps.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Lamp", "plural": "lamps" },
            "versions": versions,
        },
    })
}

/// A served version that objects are stored in.
fn version(name: &str, schema: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
    })
}

/// A definition with one version whose `spec.field` has this schema.
fn with_field(field: &Value) -> Value {
    definition(json!([version("v1", &root(json!({ "field": field })))]))
}

/// A whole schema whose `spec` has these fields.
fn root(fields: Value) -> Value {
    let spec = json!({ "type": "object", "properties": fields });
    json!({ "type": "object", "properties": { "spec": spec } })
}

/// What OLM v1 holds against it: version, property, rule.
fn held(diff: &CrdDiff) -> Vec<(&str, &str, &str)> {
    let held = diff.changes.iter().filter(|change| change.refused_by.contains(&Olm::V1));
    held.map(|c| (c.version.as_str(), c.property.as_str(), c.rule.name())).collect()
}

/// Checks which rules OLM v1 finds at `^.spec.field`, and that nothing is found elsewhere.
#[track_caller]
fn check(old: &Value, new: &Value, rules: &[&str]) -> CrdDiff {
    let diff = diff(&with_field(old), &with_field(new)).unwrap();
    let expected: Vec<_> = rules.iter().map(|rule| ("v1", "^.spec.field", *rule)).collect();
    assert_eq!(held(&diff), expected, "{old} -> {new}");
    assert_eq!(diff.refused_by_v1, !rules.is_empty());
    assert_eq!(diff.by_rule.values().sum::<usize>(), rules.len());
    diff
}

/// The change of that rule.
#[track_caller]
fn of(diff: &CrdDiff, rule: Rule) -> &Change {
    let mut changes = diff.changes.iter().filter(|change| change.rule == rule);
    let change = changes.next().unwrap_or_else(|| panic!("no {rule} in {:#?}", diff.changes));
    assert!(changes.next().is_none(), "several {rule}");
    change
}

#[test]
fn the_output_has_the_names_that_are_promised() {
    let old = with_field(&json!({ "type": "string", "maxLength": 8 }));
    let new = with_field(&json!({ "type": "string", "maxLength": 4, "description": "short" }));
    let output = serde_json::to_value(diff(&old, &new).unwrap()).unwrap();
    let expected = json!({
        "name": "lamps.example.com",
        "refusedByV1": true,
        "v1": "Refuses",
        "byRule": { "maxLength": 1 },
        "refusedByV0": "IfObjectsInvalid",
        "versions": {
            "added": [], "noLongerServed": [], "newlyServed": [], "removed": [],
            "storage": null, "conversion": null, "scope": null,
        },
        "changes": [
            {
                "version": "v1", "property": "^.spec.field", "rule": "descriptionChanged",
                "class": "Compatible", "refusedBy": [], "message": "is described",
                "new": "short",
            },
            {
                "version": "v1", "property": "^.spec.field", "rule": "maxLength",
                "class": "Breaking", "refusedBy": ["v0", "v1"],
                "message": "its maxLength falls from 8 to 4", "old": 8, "new": 4,
            },
        ],
        "unknown": [output["unknown"][0]],
    });
    assert_eq!(output, expected);
}
