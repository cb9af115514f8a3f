//! What is around the schemas, the form before today's, and what is missing.

use super::{
    super::{Error, Fate, Side, owned_not_served, parse},
    *,
};

fn plain() -> Value {
    definition(json!([version("v1", &root(json!({})))]))
}

/// The same with something changed.
fn but(change: impl FnOnce(&mut Value)) -> Value {
    let mut definition = plain();
    change(&mut definition);
    definition
}

#[test]
fn a_scope_may_not_change() {
    let new = but(|new| new["spec"]["scope"] = json!("Cluster"));
    let diff = diff(&plain(), &new).unwrap();
    assert_eq!(held(&diff), [("", "", "scope")]);
    assert_eq!(of(&diff, Rule::Scope).class, Class::Breaking);
    let scope = serde_json::to_value(diff.versions.scope).unwrap();
    assert_eq!(scope, json!({ "from": "Namespaced", "to": "Cluster" }));
}

#[test]
fn versions_come_go_and_change_their_part() {
    let free = root(json!({}));
    let version = |name: &str, served: bool, storage: bool| {
        let schema = json!({ "openAPIV3Schema": free });
        json!({ "name": name, "served": served, "storage": storage, "schema": schema })
    };
    let old = definition(json!([
        version("v1alpha1", true, false),
        version("v1beta1", true, true),
        version("v1beta2", false, false),
    ]));
    let new = definition(json!([
        version("v1beta1", false, false),
        version("v1beta2", true, false),
        version("v1", true, true),
    ]));
    let diff = diff(&old, &new).unwrap();
    let expected = json!({
        "added": ["v1"], "noLongerServed": ["v1beta1"], "newlyServed": ["v1beta2"],
        "removed": [{ "name": "v1alpha1", "stored": "Maybe" }],
        "storage": { "from": "v1beta1", "to": "v1" }, "conversion": null, "scope": null,
    });
    assert_eq!(serde_json::to_value(&diff.versions).unwrap(), expected);
    let changes: Vec<_> =
        diff.changes.iter().map(|c| (c.version.as_str(), c.rule.name())).collect();
    assert_eq!(
        changes,
        [
            ("", "storageVersionChanged"),
            ("v1", "versionAdded"),
            ("v1alpha1", "versionRemoved"),
            ("v1beta1", "versionNotServed"),
            ("v1beta2", "versionServed"),
        ]
    );
    assert!(!diff.refused_by_v1);
}

#[test]
fn what_is_around_the_schemas_is_named() {
    type Make = fn(&mut Value);
    let cases: [(Make, Rule, Class); 8] = [
        (
            |new| new["spec"]["conversion"] = json!({ "strategy": "Webhook" }),
            Rule::ConversionChanged,
            Class::Risky,
        ),
        (
            |new| new["spec"]["preserveUnknownFields"] = json!(true),
            Rule::PreserveUnknownFieldsChanged,
            Class::Compatible,
        ),
        (
            |new| new["spec"]["names"]["shortNames"] = json!(["l"]),
            Rule::NamesChanged,
            Class::Compatible,
        ),
        (
            |new| new["spec"]["names"]["kind"] = json!("Light"),
            Rule::ImmutableChanged,
            Class::Breaking,
        ),
        (
            |new| new["spec"]["versions"][0]["deprecated"] = json!(true),
            Rule::VersionDeprecated,
            Class::Compatible,
        ),
        (
            |new| new["spec"]["versions"][0]["subresources"] = json!({ "status": {} }),
            Rule::SubresourcesChanged,
            Class::Risky,
        ),
        (
            |new| new["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{ "name": "a" }]),
            Rule::PrinterColumnsChanged,
            Class::Compatible,
        ),
        (
            |new| new["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".a" }]),
            Rule::SelectableFieldsChanged,
            Class::Risky,
        ),
    ];
    for (make, rule, class) in cases {
        let diff = diff(&plain(), &but(make)).unwrap();
        assert_eq!(diff.changes.len(), 1, "{rule}");
        assert_eq!(of(&diff, rule).class, class);
        assert!(!diff.refused_by_v1);
    }
    // A subresource that goes takes its path with it.
    let old = but(|old| old["spec"]["versions"][0]["subresources"] = json!({ "status": {} }));
    assert_eq!(diff(&old, &plain()).unwrap().changes[0].class, Class::Breaking);
}

#[test]
fn a_certificate_or_a_port_that_is_the_usual_changes_no_conversion() {
    let webhook = |more: Value| {
        let mut client = json!({ "service": { "name": "s", "namespace": "n" } });
        client.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let webhook = json!({ "clientConfig": client, "conversionReviewVersions": ["v1"] });
        but(|new| new["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": webhook }))
    };
    let old = webhook(json!({ "caBundle": "a" }));
    let same = webhook(
        json!({ "caBundle": "b", "service": { "name": "s", "namespace": "n", "port": 443 } }),
    );
    assert_eq!(diff(&old, &same).unwrap().changes, []);
    let other = webhook(json!({ "service": { "name": "t", "namespace": "n" } }));
    assert_eq!(
        of(&diff(&old, &other).unwrap(), Rule::ConversionChanged).message,
        "another webhook converts"
    );
}

#[test]
fn the_old_form_is_taken_as_the_api_server_takes_it() {
    let schema = root(json!({ "field": { "type": "string" } }));
    let old_form = json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "lamps.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Lamp", "plural": "lamps" },
            "version": "v1",
            "subresources": { "status": {} },
            "additionalPrinterColumns": [{ "name": "Age", "type": "date", "JSONPath": ".a" }],
            "validation": { "openAPIV3Schema": schema },
        },
    });
    let mut new_form = with_field(&json!({ "type": "string" }));
    let only = &mut new_form["spec"]["versions"][0];
    only["subresources"] = json!({ "status": {} });
    only["additionalPrinterColumns"] = json!([{ "name": "Age", "type": "date", "jsonPath": ".a" }]);
    let diff_of = |old: &Value, new: &Value| diff(old, new).unwrap();
    // But for what it keeps unless told otherwise.
    let diff = diff_of(&old_form, &new_form);
    assert_eq!(diff.changes.len(), 1);
    assert_eq!(of(&diff, Rule::PreserveUnknownFieldsChanged).class, Class::Breaking);
    let mut told = old_form.clone();
    told["spec"]["preserveUnknownFields"] = json!(false);
    assert_eq!(diff_of(&told, &new_form).changes, []);
    // The schema above all counts for each version, even over its own.
    told["spec"]["versions"] = json!([
        { "name": "v1", "served": true, "storage": true },
        { "name": "v2", "served": true, "schema": { "openAPIV3Schema": { "type": "string" } } },
    ]);
    told["spec"].as_object_mut().unwrap().remove("version");
    let diff = diff_of(&new_form, &told);
    assert_eq!((diff.versions.added.clone(), held(&diff)), (vec!["v2".to_owned()], vec![]));
    assert!(diff.unknown.iter().any(|text| text.contains("v1beta1")));
    // Today's form knows no schema above all.
    let mut wrong = told.clone();
    wrong["apiVersion"] = json!("apiextensions.k8s.io/v1");
    wrong["spec"]["scope"] = json!("Namespaced");
    assert_eq!(diff_of(&new_form, &wrong).v1, V1::Crashes);
}

#[test]
fn without_a_schema_what_is_not_known_is_said() {
    let without = but(|new| {
        new["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    });
    let with = with_field(&json!({ "type": "string" }));
    for (old, new) in [(&without, &without), (&without, &with), (&with, &without)] {
        let diff = diff(old, new).unwrap();
        assert_eq!((diff.v1, diff.refused_by_v1), (V1::Crashes, true));
        assert!(diff.unknown[0].contains("crashes") && diff.unknown[0].contains("v1"));
    }
    // Everything was valid before: not everything has a text there.
    let schemas = diff(&without, &with).unwrap();
    assert_eq!(schemas.refused_by_v0, RefusedByV0::IfObjectsInvalid);
    assert_eq!(diff(&with, &without).unwrap().refused_by_v0, RefusedByV0::Never);
    // The place for a schema is enough for the check of OLM v1.
    let empty = but(|new| new["spec"]["versions"][0]["schema"] = json!({}));
    let diff = diff(&with, &empty).unwrap();
    assert_eq!((diff.v1, diff.by_rule.get("existingFieldRemoval")), (V1::Refuses, Some(&3)));
}

#[test]
fn the_check_crashes_only_where_it_compares() {
    let free = root(json!({}));
    let without = |name: &str, served: bool| json!({ "name": name, "served": served });
    let old = definition(json!([version("v1", &free)]));
    let crashes = |versions: Value| diff(&old, &definition(versions)).unwrap().v1;
    // A new version is compared with other served ones.
    assert_eq!(crashes(json!([version("v1", &free), without("v2", true)])), V1::Crashes);
    assert_eq!(crashes(json!([version("v1", &free), without("v2", false)])), V1::Accepts);
    assert_eq!(crashes(json!([without("v2", true)])), V1::Refuses);
}

#[test]
fn what_is_no_definition_is_an_error() {
    let wrong: [(Value, &str); 9] = [
        (json!(1), "`spec` of the new definition is not a mapping"),
        (json!({ "kind": "Secret", "apiVersion": "v1" }), "no CustomResourceDefinition"),
        (json!({ "spec": { "versions": [] } }), "no versions"),
        (
            json!({ "spec": { "versions": {} } }),
            "`spec.versions` of the new definition is not a list",
        ),
        (json!({ "spec": { "versions": [1] } }), "`spec.versions[0]` of"),
        (json!({ "spec": { "versions": [{}] } }), "`spec.versions[0].name` of"),
        (with_field(&json!({ "type": 1 })), "schema.openAPIV3Schema.spec.field.type` of"),
        (with_field(&json!({ "items": 1 })), "field.items` of the new definition is not a mapping"),
        (
            with_field(&json!({ "maxLength": 1.5 })),
            "maxLength` of the new definition is not a whole",
        ),
    ];
    for (new, text) in wrong {
        let error = diff(&plain(), &new).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let mut other = plain();
    other["metadata"]["name"] = json!("lights.example.com");
    assert!(matches!(diff(&plain(), &other), Err(Error::TwoNames { .. })));
}

#[test]
fn files_are_yaml_or_json_with_one_definition() {
    let yaml = b"---\nkind: Secret\n---\nkind: CustomResourceDefinition\nspec: {a: 1}\n";
    assert_eq!(parse(yaml, Side::New).unwrap()["spec"]["a"], 1);
    let json = br#"{"kind": "CustomResourceDefinition", "spec": 2}"#;
    assert_eq!(parse(json, Side::Old).unwrap()["spec"], 2);
    assert!(matches!(parse(b"a: [", Side::Old), Err(Error::Yaml { .. })));
    assert!(matches!(parse(b"{", Side::Old), Err(Error::Json { .. })));
    assert!(matches!(parse(b"a: 1", Side::Old), Err(Error::NotADefinition { .. })));
    let twice = [yaml.as_slice(), yaml].concat();
    assert!(matches!(parse(&twice, Side::New), Err(Error::Several { side: Side::New })));
}

#[test]
fn an_owned_version_that_is_not_served_is_found() {
    let own =
        |name: &str, version: &str| json!({ "name": name, "version": version, "kind": "Lamp" });
    let csv = json!({ "spec": { "customresourcedefinitions": { "owned": [
        own("lamps.example.com", "v1"), own("lamps.example.com", "v1beta1"),
        own("lamps.example.com", "v1alpha1"), own("others.example.com", "v1alpha1"), {},
    ] } } });
    let free = root(json!({}));
    let mut new = definition(json!([version("v1beta1", &free), version("v1", &free)]));
    new["spec"]["versions"][0]["served"] = json!(false);
    let found = owned_not_served(&csv, &new).unwrap();
    let found: Vec<_> = found.iter().map(|owned| (owned.version.as_str(), owned.fate)).collect();
    assert_eq!(found, [("v1beta1", Fate::NotServed), ("v1alpha1", Fate::Removed)]);
    assert_eq!(owned_not_served(&json!({}), &new).unwrap(), []);
}

#[test]
fn two_versions_of_one_name_are_refused() {
    let free = root(json!({}));
    let one = definition(json!([version("v1", &free)]));
    let twice =
        definition(json!([version("v2", &free), version("v1", &free), version("v2", &free)]));
    let error = diff(&one, &twice).unwrap_err();
    assert_eq!(error.to_string(), "the new definition has version `v2` twice");
    let error = diff(&twice, &one).unwrap_err();
    assert_eq!(error.to_string(), "the old definition has version `v2` twice");
}
