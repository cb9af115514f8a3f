//! The rights as objects of the RBAC API.

use serde_json::{Value, json};

use super::{AGGREGATE, Grant, NAME, NAMESPACE, Place, RIGHTS};

/// Through this role the cluster's administrator gives the agent more to read.
const FURTHER: &str = "wavelift-agent-further";
/// Kubernetes' own role for who may look at everything but Secrets.
const VIEW: &str = "view";

/// The objects that give the agent what `grant` stands for, in the order in which they are made.
pub fn manifests(grant: Grant) -> Vec<Value> {
    let role = grant.role();
    let everywhere =
        object("ClusterRole", role, &json!({ "rules": rules(grant, Place::Everywhere) }));
    let bound = binding(role, role);
    match grant {
        Grant::Remedies | Grant::PinnedCatalogs => vec![everywhere, bound],
        Grant::Always => vec![
            object("ServiceAccount", NAME, &json!({})),
            everywhere,
            object("ClusterRole", FURTHER, &further()),
            object("Role", NAME, &json!({ "rules": rules(grant, Place::OwnNamespace) })),
            bound,
            binding(FURTHER, FURTHER),
            binding("wavelift-agent-view", VIEW),
            object("RoleBinding", NAME, &bound_to("Role", NAME)),
        ],
    }
}

/// A role that Kubernetes puts together from those with the label.
fn further() -> Value {
    let selector = json!({"matchLabels": {AGGREGATE: "true"}});
    json!({"aggregationRule": {"clusterRoleSelectors": [selector]}, "rules": []})
}

fn rules(grant: Grant, place: Place) -> Vec<Value> {
    let mut rules: Vec<(&str, &str, Vec<&str>)> = vec![];
    for right in RIGHTS.iter().filter(|right| right.grant == grant && right.place == place) {
        let same = rules.iter_mut().find(|rule| (rule.0, rule.1) == (right.group, right.resource));
        match same {
            Some((_, _, verbs)) => verbs.extend(right.verbs),
            None => rules.push((right.group, right.resource, right.verbs.to_vec())),
        }
    }
    let rule = |(group, resource, verbs)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    rules.into_iter().map(rule).collect()
}

fn binding(name: &str, role: &str) -> Value {
    object("ClusterRoleBinding", name, &bound_to("ClusterRole", role))
}

fn bound_to(kind: &str, role: &str) -> Value {
    json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    })
}

fn object(kind: &str, name: &str, content: &Value) -> Value {
    let (api_version, is_namespaced) = match kind {
        "ServiceAccount" => ("v1", true),
        "Role" | "RoleBinding" => ("rbac.authorization.k8s.io/v1", true),
        _ => ("rbac.authorization.k8s.io/v1", false),
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if is_namespaced {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    if let (Some(object), Some(content)) = (object.as_object_mut(), content.as_object()) {
        object.extend(content.clone());
    }
    object
}
