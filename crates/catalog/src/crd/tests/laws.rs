//! What holds of all definitions.

use proptest::prelude::*;

use super::*;

/// Values that keywords have, and some that they must not have.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(["a", "b"])),
        Just(json!([1, "a", null])),
        (-3i64..4).prop_map(|n| json!(n)),
        "[a-c]{0,2}".prop_map(|text| json!(text)),
        prop_oneof![Just("string"), Just("object"), Just("integer")].prop_map(|text| json!(text)),
    ]
}

const PLAIN: [&str; 17] = [
    "type",
    "format",
    "description",
    "default",
    "maximum",
    "minLength",
    "maxItems",
    "pattern",
    "enum",
    "required",
    "nullable",
    "uniqueItems",
    "title",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "exclusiveMaximum",
];

const ONE: [&str; 3] = ["items", "not", "additionalProperties"];
const LISTS: [&str; 3] = ["anyOf", "allOf", "oneOf"];

/// A schema; most are right, so that they are read and compared.
fn schema(has_errors: bool) -> impl Strategy<Value = Value> {
    let plain = move || {
        let right = |keyword: &str, value: &Value| match keyword {
            "type" | "format" | "description" | "pattern" | "title" | "x-kubernetes-list-type" => {
                value.is_string()
            }
            "maximum" | "minLength" | "maxItems" => value.is_i64(),
            "default" => true,
            "enum" => value.is_array(),
            "required" => *value == json!(["a", "b"]),
            _ => value.is_boolean(),
        };
        proptest::collection::vec((proptest::sample::select(&PLAIN[..]), leaf()), 0..6).prop_map(
            move |fields| {
                let fields = fields.into_iter().filter(|(k, v)| has_errors || right(k, v));
                Value::Object(fields.map(|(k, v)| (k.to_owned(), v)).collect())
            },
        )
    };
    plain().prop_recursive(4, 24, 3, move |inner| {
        (
            plain(),
            proptest::collection::btree_map("[a-c]", inner.clone(), 0..3),
            proptest::option::of((proptest::sample::select(&ONE[..]), inner.clone())),
            proptest::option::of((
                proptest::sample::select(&LISTS[..]),
                proptest::collection::vec(inner, 0..3),
            )),
        )
            .prop_map(|(mut schema, properties, one, list)| {
                if !properties.is_empty() {
                    schema["properties"] = json!(properties);
                }
                if let Some((keyword, value)) = one {
                    schema[keyword] = value;
                }
                if let Some((keyword, value)) = list {
                    schema[keyword] = json!(value);
                }
                schema
            })
    })
}

fn of_two(first: &Value, second: &Value) -> Value {
    definition(json!([version("v1alpha1", first), version("v1", second)]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_does_not_change_has_no_changes(one in schema(false), other in schema(false)) {
        let definition = of_two(&one, &other);
        let diff = diff(&definition, &definition).unwrap();
        // But for members of `oneOf` between versions, which OLM v1 can't know again.
        let changes: Vec<_> =
            diff.changes.iter().filter(|change| change.rule != Rule::OneOf).collect();
        prop_assert_eq!(changes, Vec::<&Change>::new());
        prop_assert_eq!(diff.refused_by_v0, RefusedByV0::Never);
    }

    #[test]
    fn the_counts_are_those_of_the_changes(
        old in (schema(false), schema(false)), new in (schema(false), schema(false)),
    ) {
        let diff = diff(&of_two(&old.0, &old.1), &of_two(&new.0, &new.1)).unwrap();
        let mut counted = std::collections::BTreeMap::new();
        for (_, _, rule) in held(&diff) {
            *counted.entry(rule.to_owned()).or_insert(0) += 1;
        }
        prop_assert_eq!(&counted, &diff.by_rule);
        prop_assert_eq!(diff.refused_by_v1, !counted.is_empty());
        // What may be refused is never called compatible, unless only OLM v1 says so.
        for change in diff.changes.iter().filter(|c| c.refused_by.contains(&Olm::V0)) {
            prop_assert_eq!(change.class, Class::Breaking);
        }
        let is_sorted = diff.changes.is_sorted_by_key(|c| {
            (c.version.clone(), c.property.clone(), c.rule.name(), c.message.clone())
        });
        prop_assert!(is_sorted);
    }

    #[test]
    fn a_wrong_schema_is_an_error_and_nothing_worse(old in schema(true), new in schema(true)) {
        let result = diff(&with_field(&old), &with_field(&new));
        if let Ok(diff) = result {
            prop_assert!(serde_json::to_string(&diff).is_ok());
        }
    }
}
