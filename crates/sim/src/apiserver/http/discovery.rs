//! What the server serves: `/api`, `/apis` and below, plain and aggregated.

use std::{collections::BTreeMap, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{body_response, json_response, route::Call};
use crate::apiserver::{
    ApiServer,
    error::ApiError,
    kind::Kind,
    kinds::{Kinds, gk},
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Kinds by group and version.
pub(super) type Served = BTreeMap<(String, String), Vec<Arc<Kind>>>;

/// Everything there is, with the second place where events are served.
pub(super) fn served(kinds: &Kinds) -> Served {
    let mut served = Served::new();
    for kind in kinds.iter() {
        for version in kind.versions() {
            let at = (kind.gk.group().to_owned(), version.to_owned());
            served.entry(at).or_default().push(Arc::clone(kind));
        }
        if kind.gk == gk::EVENT {
            let at = ("events.k8s.io".to_owned(), "v1".to_owned());
            served.entry(at).or_default().push(Arc::clone(kind));
        }
    }
    served
}

pub(super) fn answer(
    server: &ApiServer,
    call: &Call,
    path: &[String],
) -> Result<Response<Body>, ApiError> {
    let served = served(&server.store().kinds());
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_aggregated = call.accept.contains("as=APIGroupDiscoveryList")
        && call.accept.split(',').any(|a| a.contains("v=v2") && !a.contains("v2beta1"));
    let body = match words.as_slice() {
        [root @ ("api" | "apis")] if is_aggregated => {
            let list = aggregated(&served, *root == "api");
            let bytes = Bytes::from(list.to_string());
            return Ok(body_response(StatusCode::OK, AGGREGATED, bytes));
        }
        [] => json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2",
            "/openapi/v3", "/readyz", "/version"]}),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let names = group_names(&served).filter(|name| !name.is_empty());
            let groups: Vec<Value> = names.map(|name| group(&served, name)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", name] if group_names(&served).any(|group| group == *name) => {
            let mut found = group(&served, name);
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            found
        }
        ["api", version] => resources(&served, "", version)?,
        ["apis", group, version] => resources(&served, group, version)?,
        _ => return Err(ApiError::unknown_resource()),
    };
    Ok(json_response(StatusCode::OK, &body))
}

fn group_names(served: &Served) -> impl Iterator<Item = &str> {
    let mut last = None;
    served.keys().map(|(group, _)| group.as_str()).filter(move |group| {
        let is_new = last != Some(*group);
        last = Some(*group);
        is_new
    })
}

fn versions<'a>(
    served: &'a Served,
    group: &str,
) -> impl Iterator<Item = (&'a str, &'a [Arc<Kind>])> {
    let mut found: Vec<(&str, &[Arc<Kind>])> = served
        .iter()
        .filter(|((of, _), _)| of == group)
        .map(|((_, version), kinds)| (version.as_str(), kinds.as_slice()))
        .collect();
    // Stable before alpha, newer before older: `v2`, `v1`, `v1alpha1`.
    found.sort_by_key(|(version, _)| {
        (version.contains(|c: char| c.is_alphabetic() && c != 'v'), std::cmp::Reverse(*version))
    });
    found.into_iter()
}

fn group(served: &Served, name: &str) -> Value {
    let versions: Vec<Value> = versions(served, name)
        .map(
            |(version, _)| json!({"groupVersion": format!("{name}/{version}"), "version": version}),
        )
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn resources(served: &Served, group: &str, version: &str) -> Result<Value, ApiError> {
    let at = (group.to_owned(), version.to_owned());
    let kinds = served.get(&at).ok_or_else(ApiError::unknown_resource)?;
    let mut resources = Vec::new();
    for kind in kinds {
        let mut resource = json!({"name": kind.plural, "singularName": kind.singular,
            "namespaced": kind.is_namespaced(), "kind": kind.gk.kind(), "verbs": VERBS});
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        resources.push(resource);
        if kind.has_status() {
            resources.push(json!({"name": format!("{}/status", kind.plural), "singularName": "",
                "namespaced": kind.is_namespaced(), "kind": kind.gk.kind(),
                "verbs": ["get", "patch", "update"]}));
        }
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources}))
}

fn aggregated(served: &Served, is_core: bool) -> Value {
    let wanted = group_names(served).filter(|group| group.is_empty() == is_core);
    let items: Vec<Value> = wanted
        .map(|group| {
            let versions: Vec<Value> = versions(served, group)
                .map(|(version, kinds)| {
                    let resources: Vec<Value> = kinds
                        .iter()
                        .map(|kind| aggregated_resource(kind, group, version))
                        .collect();
                    json!({"version": version, "freshness": "Current", "resources": resources})
                })
                .collect();
            json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &Kind, group: &str, version: &str) -> Value {
    let response = json!({"group": group, "version": version, "kind": kind.gk.kind()});
    let scope = if kind.is_namespaced() { "Namespaced" } else { "Cluster" };
    let mut resource = json!({"resource": kind.plural, "responseKind": response, "scope": scope,
        "singularResource": kind.singular, "verbs": VERBS});
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    if kind.has_status() {
        resource["subresources"] = json!([{"subresource": "status", "responseKind": response,
            "verbs": ["get", "patch", "update"]}]);
    }
    resource
}
