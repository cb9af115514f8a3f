//! What the program prints as JSON, against the schemas that are published of it.

use std::{fs, path::Path};

use serde_json::{Value, json};
use wavelift_runtime::testing::{shared_dir, workspace_root};

use super::run;

fn schema(name: &str) -> Value {
    let path = workspace_root().join("docs/reference").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What of `value` is not as `schema` says, in the keywords that the published schemas have.
fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut faults = vec![];
    let Some(rules) = schema.as_object() else {
        // `true` takes everything.
        return if schema == true { faults } else { vec![format!("{at}: refused")] };
    };
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                faults.extend(self::faults(root, root.pointer(pointer).unwrap(), value, at));
            }
            "type" => {
                let is_one = |name: &Value| is_of_type(value, name.as_str().unwrap());
                let fits =
                    rule.as_array().map_or_else(|| is_one(rule), |all| all.iter().any(is_one));
                if !fits {
                    faults.push(format!("{at}: {value} is no {rule}"));
                }
            }
            "const" if rule != value => faults.push(format!("{at}: {value} is not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                faults.push(format!("{at}: {value} is not in {rule}"));
            }
            "anyOf" | "oneOf" => {
                let fits = rule.as_array().unwrap().iter();
                let fits = fits.filter(|one| self::faults(root, one, value, at).is_empty()).count();
                if fits == 0 || keyword == "oneOf" && fits > 1 {
                    faults.push(format!("{at}: {value} fits {fits} of {rule}"));
                }
            }
            "required" => {
                let names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let absent = names.filter(|name| value.get(name).is_none());
                faults.extend(absent.map(|name| format!("{at}: no {name}")));
            }
            "properties" => {
                for (name, below) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        faults.extend(self::faults(root, below, value, &format!("{at}/{name}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !known.is_some_and(|known| known.contains_key(name)) {
                        faults.extend(self::faults(root, rule, value, &format!("{at}/{name}")));
                    }
                }
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    faults.extend(self::faults(root, rule, value, &format!("{at}/{index}")));
                }
            }
            "minimum" if value.as_f64() < rule.as_f64() => faults.push(format!("{at}: {value}")),
            // The first three where they hold; the others say nothing that is looked at here.
            "const" | "enum" | "minimum" | "maximum" | "format" | "default" | "description"
            | "title" | "$schema" | "$defs" | "prefixItems" | "minItems" | "maxItems"
            | "uniqueItems" => {}
            other => faults.push(format!("{at}: the schema has {other}, which nobody checks here")),
        }
    }
    faults
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other}"),
    }
}

/// A field of an answer that its schema does not speak of would be no part of the promise.
fn unknown_fields(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let schema = match schema["$ref"].as_str() {
        Some(pointer) => root.pointer(pointer.strip_prefix('#').unwrap()).unwrap(),
        None => schema,
    };
    let mut unknown = vec![];
    if let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, value) in fields {
            let at = format!("{at}/{name}");
            match known.get(name) {
                Some(below) => unknown.extend(unknown_fields(root, below, value, &at)),
                None => unknown.push(at),
            }
        }
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        unknown.extend(unknown_fields(root, &schema["items"], value, &format!("{at}/{index}")));
    }
    unknown
}

#[track_caller]
fn check(schema: &Value, answer: &Value) {
    let mut found = faults(schema, schema, answer, "");
    found.extend(
        unknown_fields(schema, schema, answer, "").iter().map(|at| format!("{at}: unknown")),
    );
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn bundles(root: &Path, names: &[&str]) -> Value {
    let mut args = vec!["preview", "-o", "json"];
    for name in names {
        args.extend(["--bundle", name]);
    }
    run(root, &args).json()
}

#[test]
fn previews_are_as_their_schema_says() {
    let schema = schema("preview.schema.json");
    let examples = workspace_root().join("docs/examples");
    let versions = ["ferry-operator/1.4.0", "ferry-operator/2.0.0", "ferry-operator/2.1.0"];
    let answer = bundles(&examples, &versions);
    check(&schema, &answer);
    assert_eq!(answer["hops"].as_array().unwrap().len(), 2);
    let of_catalog = "preview --catalog catalog --package ferry-operator --from 1.4.0 -o json";
    let of_catalog = run(&examples, &of_catalog.split(' ').collect::<Vec<_>>()).json();
    check(&schema, &of_catalog);
    assert!(!of_catalog["overall"]["missing"].as_array().unwrap().is_empty());

    let mut wrong = answer;
    wrong["hops"][0]["permissions"][0]["change"] = json!("Found");
    wrong["overall"].as_object_mut().unwrap().remove("from");
    let found = faults(&schema, &schema, &wrong, "");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|fault| fault == "/overall: no from"), "{found:?}");
    wrong["more"] = json!(1);
    assert_eq!(unknown_fields(&schema, &schema, &wrong, ""), ["/more"]);
}

#[test]
fn previews_of_real_operators_are_as_their_schema_says() {
    // That it is missing is said by the tests that can do nothing without it.
    let Some(shared) = shared_dir() else { return };
    let schema = schema("preview.schema.json");
    let root = shared.join("catalogs/bundles");
    for (operator, versions) in [
        ("opendatahub-operator", ["1.11.0", "2.0.0", "2.1.0"]),
        ("aqua", ["1.0.0", "5.3.0", "6.5.1"]),
    ] {
        let names = versions.map(|version| format!("{operator}/{version}"));
        check(&schema, &bundles(&root, &names.each_ref().map(String::as_str)));
    }
}

#[test]
fn definitions_side_by_side_are_as_their_schema_says() {
    let schema = schema("diff-crd.schema.json");
    let examples = workspace_root().join("docs/examples/ferry-operator");
    let file = |version: &str| format!("{version}/manifests/timetables.crd.yaml");
    let mut rules = std::collections::BTreeSet::new();
    for (old, new) in [("1.4.0", "2.0.0"), ("2.0.0", "2.1.0"), ("2.1.0", "1.4.0")] {
        let answer = run(&examples, &["diff-crd", &file(old), &file(new), "-o", "json"]).json();
        check(&schema, &answer);
        for change in answer["changes"].as_array().unwrap() {
            rules.insert(change["rule"].as_str().unwrap().to_owned());
        }
    }
    assert!(rules.contains("storedVersionRemoval") && rules.contains("versionAdded"), "{rules:?}");
}
