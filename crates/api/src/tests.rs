//! What must hold of the generated definitions.

use serde_json::{Value, json};

use crate::{ClusterUpgrade, FleetUpgrade, crds, labels};

fn definitions() -> Vec<Value> {
    crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

fn schema(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Calls `visit` with the path and the node of every schema below `node`.
fn walk(path: &str, node: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    if let Some(properties) = node["properties"].as_object() {
        for (name, child) in properties {
            walk(&format!("{path}.{name}"), child, visit);
        }
    }
    if node["items"].is_object() {
        walk(&format!("{path}[]"), &node["items"], visit);
    }
    if node["additionalProperties"].is_object() {
        walk(&format!("{path}{{}}"), &node["additionalProperties"], visit);
    }
}

#[test]
fn every_field_is_typed_and_everything_that_can_grow_has_a_limit() {
    for definition in definitions() {
        let name = definition["metadata"]["name"].as_str().unwrap();
        let mut problems = vec![];
        walk(name, schema(&definition), &mut |path, node| {
            if path.contains(".metadata") {
                return;
            }
            match node["type"].as_str() {
                None => problems.push(format!("{path}: no type")),
                Some("string") => {
                    let bounded = node["enum"].is_array()
                        || node["format"] == "date-time"
                        || node["maxLength"].is_u64();
                    if !bounded {
                        problems.push(format!("{path}: no maxLength"));
                    }
                }
                Some("array") => {
                    if !node["maxItems"].is_u64() {
                        problems.push(format!("{path}: no maxItems"));
                    }
                    if !node["x-kubernetes-list-type"].is_string() {
                        problems.push(format!("{path}: no list type"));
                    }
                }
                Some("object") => {
                    let map = node["additionalProperties"].is_object();
                    if map && !node["maxProperties"].is_u64() {
                        problems.push(format!("{path}: no maxProperties"));
                    }
                }
                Some("boolean") => problems.push(format!("{path}: a boolean, make it an enum")),
                Some(_) => {}
            }
        });
        // The root's own apiVersion and kind are the API server's.
        problems.retain(|p| {
            !p.starts_with(&format!("{name}.apiVersion")) && !p.starts_with(&format!("{name}.kind"))
        });
        assert!(problems.is_empty(), "{problems:#?}");
    }
}

#[test]
fn the_schemas_use_nothing_that_an_api_server_refuses() {
    for definition in definitions() {
        let text = schema(&definition).to_string();
        for word in ["anyOf", "oneOf", "allOf", "$ref", "definitions", "patternProperties", "const"]
        {
            assert!(!text.contains(&format!("\"{word}\"")), "{word} in {}", definition["metadata"]);
        }
    }
}

#[test]
fn names_categories_and_columns_are_what_people_type_and_read() {
    let [fleet, cluster] = definitions().try_into().unwrap();
    assert_eq!(fleet["metadata"]["name"], "fleetupgrades.wavelift.io");
    assert_eq!(fleet["spec"]["names"]["categories"], json!(["wavelift"]));
    assert_eq!(fleet["spec"]["names"]["shortNames"], json!(["flup"]));
    assert_eq!(cluster["spec"]["names"]["shortNames"], json!(["clup"]));
    for definition in [&fleet, &cluster] {
        assert_eq!(definition["spec"]["scope"], "Namespaced");
        assert_eq!(definition["spec"]["versions"][0]["subresources"]["status"], json!({}));
        let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
        let names: Vec<_> = columns.unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names.last(), Some(&"AGE"));
        assert!(names.iter().all(|name| !name.contains(' ') && *name == name.to_uppercase()));
    }
}

#[test]
fn the_smallest_objects_read_with_their_defaults() {
    let fleet: FleetUpgrade = serde_json::from_value(json!({
        "apiVersion": "wavelift.io/v1alpha1", "kind": "FleetUpgrade",
        "metadata": {"name": "a"},
        "spec": {
            "targets": {"operators": [{"package": "x"}]},
            "clusters": {"labelSelector": {}},
            "waves": [{"name": "w", "selector": {"matchLabels": {"a": "b"}}}],
        }
    }))
    .unwrap();
    let wave = &fleet.spec.waves.as_ref().unwrap()[0];
    assert_eq!((wave.max_concurrent, wave.max_failures), (1, 0));
    assert_eq!(fleet.spec.stage, crate::fleet_upgrade::Stage::Preview);
    let cluster: ClusterUpgrade = serde_json::from_value(json!({
        "apiVersion": "wavelift.io/v1alpha1", "kind": "ClusterUpgrade",
        "metadata": {"name": "a"},
        "spec": {"origin": "Local", "type": "Targets", "targets": {"operators": []}}
    }))
    .unwrap();
    assert_eq!(cluster.spec.stage, crate::cluster_upgrade::UpgradeStage::Preflight);
}

#[test]
fn budget_mode_has_no_default_so_that_its_absence_can_be_seen() {
    let [fleet, _] = definitions().try_into().unwrap();
    let mode = &schema(&fleet)["properties"]["spec"]["properties"]["budget"]["properties"]["mode"];
    assert_eq!(mode["enum"], json!(["Strict", "StopOnBreach"]));
    assert!(mode["default"].is_null());
}

#[test]
fn a_cluster_upgrade_is_named_after_name_and_uid() {
    let name = labels::cluster_upgrade_name("logging-6-2", "3f2a9c1e-77aa-4bbb-8ccc-0123456789ab");
    assert_eq!(name, "logging-6-2-3f2a9c1e");
}
