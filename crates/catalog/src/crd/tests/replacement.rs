//! What OLM v0 holds against a definition on a cluster that has another one.

use super::{
    super::{Fit, Replacement, conversion_faults, data_loss, too_restrictive},
    *,
};

/// How an object with this field fits `new` where `old` is on the cluster.
fn fit(old: &Value, new: &Value, field: &Value) -> Fit {
    let (live, new) = (with_field(old), with_field(new));
    let replacement = Replacement::read(&live, &new).unwrap();
    let object = json!({ "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": "one" }, "spec": { "field": field } });
    replacement.validator("v1").judge(&object)
}

#[track_caller]
fn fits(schema: &Value, field: &Value) {
    assert_eq!(fit(&json!({}), schema, field), Fit::Fits, "{field} in {schema}");
}

#[track_caller]
fn fails(schema: &Value, field: &Value, words: &str) {
    let found = fit(&json!({}), schema, field);
    assert_eq!(found, Fit::Not(vec![words.to_owned()]), "{field} in {schema}");
}

#[test]
fn what_does_not_fit_is_said_in_olms_words() {
    let body = "[].spec.field: Invalid value:";
    let of = |name: &str| json!({ "type": name });
    // The words of the first are from a real OLM.
    fails(
        &json!({ "type": "integer", "maximum": 5 }),
        &json!(9),
        &format!("{body} 9: spec.field in body should be less than or equal to 5"),
    );
    fails(
        &json!({ "minimum": 5, "exclusiveMinimum": true }),
        &json!(5),
        &format!("{body} 5: spec.field in body should be greater than 5"),
    );
    fails(
        &of("integer"),
        &json!("a"),
        &format!("{body} \"string\": spec.field in body must be of type integer: \"string\""),
    );
    fails(
        &of("string"),
        &Value::Null,
        &format!("{body} \"null\": spec.field in body must be of type string: \"null\""),
    );
    fails(
        &json!({ "enum": ["a", "b"] }),
        &json!("c"),
        "[].spec.field: Unsupported value: \"c\": supported values: \"a\", \"b\"",
    );
    fails(
        &json!({ "maxLength": 2 }),
        &json!("abc"),
        "[].spec.field: Too long: may not be more than 2 bytes",
    );
    fails(
        &json!({ "pattern": "^[a-z]+$" }),
        &json!("a1"),
        &format!("{body} \"a1\": spec.field in body should match '^[a-z]+$'"),
    );
    fails(&json!({ "required": ["a"] }), &json!({}), "[].spec.field.a: Required value");
    fails(
        &json!({ "items": { "properties": { "a": of("boolean") } } }),
        &json!([{ "a": true }, { "a": 1 }]),
        "[].spec.field[1].a: Invalid value: \"integer\": spec.field[1].a in body must be of type \
         boolean: \"integer\"",
    );
    fails(
        &json!({ "maxItems": 1 }),
        &json!([1, 2]),
        "[].spec.field: Too many: 2: must have at most 1 items",
    );
    fails(
        &json!({ "additionalProperties": { "maxLength": 1 } }),
        &json!({ "k": "ab" }),
        "[].spec.field.k: Too long: may not be more than 1 bytes",
    );
    fails(
        &json!({ "multipleOf": 2 }),
        &json!(3),
        &format!("{body} 3: spec.field in body should be a multiple of 2"),
    );
    fails(
        &json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 2 }] }),
        &json!(3),
        "[]: Invalid value: \"\": \"spec.field\" must validate one and only one schema (oneOf). Found \
         2 valid alternatives",
    );
    fails(
        &json!({ "not": { "required": ["a"] } }),
        &json!({ "a": 1 }),
        "[]: Invalid value: \"\": \"spec.field\" must not validate the schema (not)",
    );
}

#[test]
fn what_fits_fits() {
    fits(&json!({ "type": "integer", "maximum": 5 }), &json!(5));
    fits(&json!({ "type": "integer" }), &json!(2.0));
    fits(&json!({ "type": "number" }), &json!(2));
    fits(&json!({ "type": "string", "nullable": true }), &Value::Null);
    fits(&json!({ "x-kubernetes-int-or-string": true }), &json!("50%"));
    fits(&json!({ "x-kubernetes-int-or-string": true }), &json!(50));
    fits(&json!({ "enum": [1, 2] }), &json!(1.0));
    fits(&json!({ "type": "string", "format": "date-time" }), &json!("2026-11-30T01:02:03Z"));
    fits(&json!({ "type": "string", "format": "byte" }), &json!("YQ=="));
    fits(&json!({ "type": "string", "format": "nothing-known" }), &json!("?"));
    fits(&json!({ "type": "object", "properties": { "a": {} } }), &json!({ "b": 1 }));
    fits(&json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }), &json!("a"));
    // Rules in CEL are not asked.
    fits(&json!({ "x-kubernetes-validations": [{ "rule": "false" }] }), &json!(1));
}

#[test]
fn what_cannot_be_told_is_neither() {
    let odd = json!({ "type": "string", "format": "date-time" });
    let doubt = Fit::Unsure(vec!["[].spec.field: whether it is of format date-time".to_owned()]);
    assert_eq!(fit(&json!({ "type": "string" }), &odd, &json!("2026-11-30t01:02:03+01:00")), doubt);
    // Where the cluster's schema asks the same, the API server has looked.
    assert_eq!(fit(&odd, &odd, &json!("2026-11-30t01:02:03+01:00")), Fit::Fits);
    let letters = json!({ "type": "string", "pattern": "^\\w+$" });
    let text = "whether it matches '^\\w+$'";
    let doubt = Fit::Unsure(vec![format!("[].spec.field: {text}")]);
    assert_eq!(fit(&json!({ "type": "string" }), &letters, &json!("größe")), doubt);
    // One that certainly does not fit is a no, whatever else is in doubt.
    let both = json!({ "type": "string", "pattern": "^\\w+$", "enum": ["a"] });
    assert!(matches!(fit(&json!({}), &both, &json!("größe")), Fit::Not(_)));
}

#[test]
fn what_was_written_under_an_older_schema_is_held_against_a_new_one_of_the_same_words() {
    let strict = json!({ "type": "integer", "maximum": 5 });
    assert!(matches!(fit(&strict, &strict, &json!(9)), Fit::Not(_)));
}

#[test]
fn versions_that_are_stored_must_stay_and_those_that_both_serve_are_validated() {
    let schema = root(json!({}));
    let mut live = definition(json!([
        version("v1alpha1", &schema),
        version("v1beta1", &schema),
        version("v1", &schema),
    ]));
    live["status"] = json!({ "storedVersions": ["v1alpha1", "v1"] });
    let mut hidden = version("v1beta1", &schema);
    hidden["served"] = json!(false);
    let new = definition(json!([hidden, version("v1", &schema), version("v2", &schema)]));
    let replacement = Replacement::read(&live, &new).unwrap();
    assert_eq!(replacement.stored_and_gone(), ["v1alpha1"]);
    assert_eq!(replacement.validated(), ["v1"]);
    assert!(!replacement.trusts_webhook());
    let mut converted = new.clone();
    converted["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    assert!(Replacement::read(&live, &converted).unwrap().trusts_webhook());
    // As a real OLM says it.
    assert_eq!(
        data_loss("alphas.s11.example.com", "v1alpha1"),
        "risk of data loss updating \"alphas.s11.example.com\": new CRD removes version v1alpha1 \
         that is listed as a stored version on the existing CRD"
    );
    let words = too_restrictive(&replacement, "v1", "ns/one", &["a".to_owned(), "b".to_owned()]);
    let end = "\"ns/one\": updated validation is too restrictive: [a, b]";
    assert!(words.starts_with("error validating existing CRs against new CRD's schema for \""));
    assert!(words.ends_with(end), "{words}");
}

#[test]
fn a_conversion_webhook_is_for_all_namespaces_and_of_owned_definitions() {
    let mode = |name: &str, supported: bool| json!({ "type": name, "supported": supported });
    let csv = |own: bool, definitions: &[&str]| {
        json!({ "metadata": { "name": "oak.v2" }, "spec": {
            "installModes": [mode("OwnNamespace", own), mode("AllNamespaces", true)],
            "customresourcedefinitions": { "owned": [{ "name": "oaks.example.com" }] },
            "webhookdefinitions": [
                { "type": "ValidatingAdmissionWebhook" },
                { "type": "ConversionWebhook", "conversionCRDs": definitions },
            ],
        } })
    };
    let there = json!({ "spec": {} });
    let keeping = json!({ "spec": { "preserveUnknownFields": true } });
    let faults = |csv: &Value, found: Option<&Value>| conversion_faults(csv, |_| found);
    assert!(faults(&csv(false, &["oaks.example.com"]), Some(&there)).is_empty());
    assert_eq!(
        faults(&csv(true, &["oaks.example.com"]), Some(&there)),
        ["unable to manage conversion webhook: CSVs with conversion webhooks must support only \
          AllNamespaces"]
    );
    let elms = csv(false, &["elms.example.com"]);
    assert_eq!(faults(&elms, Some(&there)), ["csv oak.v2 does not own CRD elms.example.com"]);
    assert!(faults(&elms, None)[0].starts_with("unable to get CRD elms.example.com specified"));
    let oaks = csv(false, &["oaks.example.com"]);
    assert!(faults(&oaks, Some(&keeping))[0].starts_with("crd.Spec.PreserveUnknownFields"));
    assert!(faults(&csv(false, &[]), None)[0].ends_with("at least one CRD specified"));
    assert!(faults(&json!({ "spec": {} }), None).is_empty());
}
