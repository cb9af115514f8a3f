//! What the demo's operators would install, and what their authors say about it: enough that the
//! preview of the campaign has something of everything to show.
//!
//! Each operator has one Deployment of its package's name and one CRD, whatever its version: what
//! differs is what a preview is about.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{FERRY, KILN, LANTERN, LOOM, SPINDLE, csv, digest};

/// The CRD and the CSV of a bundle, as a catalog carries them.
pub(super) fn objects(package: &str, version: &str, kind: &str) -> Vec<Value> {
    let both = [crd(package, version, kind), csv_of(package, version, kind)];
    let object = |manifest: &Value| {
        json!({
            "type": "olm.bundle.object", "value": {"data": STANDARD.encode(manifest.to_string())},
        })
    };
    both.iter().map(object).collect()
}

/// What the authors say about a package's versions.
pub(super) fn release(package: &str) -> Option<Value> {
    let (notes, steps, assessments) = match package {
        LANTERN => (
            json!([{"version": "1.5.0", "title": "Lamps can be dimmed",
                "text": "A Lantern has a brightness. Those that name none shine as before."}]),
            json!([]),
            json!([]),
        ),
        FERRY => (
            json!([
                {"version": "2.1.0", "title": "Crossings are timed"},
                {"version": "2.2.0", "title": "A ferry has a berth"},
                {"version": "2.3.0", "title": "Berths are checked"},
            ]),
            json!([{"version": "2.3.0", "title": "Name a berth on every Ferry", "when": "Before",
                "description": "2.3.0 refuses a Ferry without `spec.berth`."}]),
            json!([{"id": "ferry-berth", "versions": ">=2.3.0", "impact": "High",
                "title": "A Ferry without a berth is not reconciled any more",
                "action": "Set `spec.berth` before the upgrade."}]),
        ),
        LOOM => (
            json!([{"version": "3.2.0", "title": "Patterns can be kept in Secrets"}]),
            json!([]),
            json!([]),
        ),
        SPINDLE => (
            json!([{"version": "5.1.0", "title": "Works without its own roles"}]),
            json!([]),
            json!([]),
        ),
        _ => return None,
    };
    Some(json!({
        "schema": "io.wavelift.release.v1alpha1", "package": package,
        "releaseNotes": notes, "manualSteps": steps, "assessments": assessments,
    }))
}

fn csv_of(package: &str, version: &str, kind: &str) -> Value {
    let image = |name: &str| {
        let digest = digest(name, version);
        format!("registry.example.invalid/{name}@sha256:{digest}")
    };
    let controller = image(&format!("{package}-controller"));
    let mut related = vec![json!({"name": "controller", "image": controller})];
    if (package, version) == (LANTERN, "1.5.0") {
        related.push(json!({"name": "dimmer", "image": image("lantern-dimmer")}));
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": csv(package, version)},
        "spec": {
            "displayName": kind, "version": version, "minKubeVersion": "1.28.0",
            "customresourcedefinitions": {"owned": [
                {"name": crd_name(kind), "version": "v1", "kind": kind},
            ]},
            "relatedImages": related,
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": package, "rules": own(package, version)}],
                "clusterPermissions": [
                    {"serviceAccountName": package, "rules": wide(package, version, kind)},
                ],
                "deployments": [{"name": package, "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"name": package}},
                    "template": {
                        "metadata": {"labels": {"name": package}},
                        "spec": {
                            "serviceAccountName": package,
                            "containers": [{"name": "manager", "image": controller}],
                        },
                    },
                }}],
            }},
        },
    })
}

/// Rules in the operator's own namespace.
fn own(package: &str, version: &str) -> Value {
    let mut rules = vec![rule("coordination.k8s.io", "leases", &["get", "create", "update"])];
    if (package, version) == (LANTERN, "1.5.0") {
        rules.push(rule("", "configmaps", &["get", "list", "watch"]));
    }
    Value::Array(rules)
}

/// Rules in the whole cluster.
fn wide(package: &str, version: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let mut rules = vec![rule("demo.example.invalid", &plural, &["get", "list", "watch"])];
    match (package, version) {
        (LOOM, "3.2.0") => rules.push(rule("", "secrets", &["get", "list"])),
        (KILN, "1.0.0") => rules.push(rule("", "pods/exec", &["create"])),
        (SPINDLE, "5.0.2") => {
            rules.push(rule("rbac.authorization.k8s.io", "roles", &["create", "update"]));
        }
        _ => {}
    }
    Value::Array(rules)
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn crd_name(kind: &str) -> String {
    format!("{}s.demo.example.invalid", kind.to_lowercase())
}

fn crd(package: &str, version: &str, kind: &str) -> Value {
    let mut fields = json!({"size": {"type": "integer", "minimum": 0}});
    let mut required = vec![];
    match (package, version) {
        (LANTERN, "1.5.0") => {
            fields["brightness"] = json!({"type": "integer", "minimum": 0, "maximum": 100});
        }
        (FERRY, "2.2.0") => fields["berth"] = json!({"type": "string"}),
        (FERRY, "2.3.0") => {
            fields["berth"] = json!({"type": "string", "minLength": 1});
            required.push("berth");
        }
        _ => {}
    }
    let mut spec = json!({"type": "object", "properties": fields});
    if !required.is_empty() {
        spec["required"] = json!(required);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(kind)},
        "spec": {
            "group": "demo.example.invalid", "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{}s", kind.to_lowercase()),
                "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": spec},
                }},
            }],
        },
    })
}
