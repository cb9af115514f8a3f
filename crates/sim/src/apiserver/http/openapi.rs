//! `/openapi/v3` by group and version, enough for `kubectl explain` and `kubectl apply`, and an
//! empty `/openapi/v2`.

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    body_response,
    discovery::{Served, served},
    json_response,
    route::Call,
};
use crate::apiserver::{ApiServer, error::ApiError, kind::Kind};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The document of version 2, empty but valid, in the protobuf form kubectl insists on:
/// `swagger: "2.0"`, `info {title, version}`, `paths {}`.
const V2_PROTOBUF: &[u8] = b"\x0a\x032.0\x12\x11\x0a\x0akubernetes\x12\x03sim\x42\x00";

pub(super) fn answer(
    server: &ApiServer,
    call: &Call,
    path: &[String],
) -> Result<Response<Body>, ApiError> {
    let served = served(&server.store().kinds());
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let body = match words.as_slice() {
        ["openapi", "v2"] if call.accept.contains("protobuf") => {
            let content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
            let bytes = Bytes::from_static(V2_PROTOBUF);
            return Ok(body_response(StatusCode::OK, content_type, bytes));
        }
        ["openapi", "v2"] => json!({"swagger": "2.0", "paths": {}, "definitions": {},
            "info": {"title": "kubernetes", "version": "sim"}}),
        ["openapi", "v3"] => index(&served),
        ["openapi", "v3", "api", version] => document(&served, "", version)?,
        ["openapi", "v3", "apis", group, version] => document(&served, group, version)?,
        _ => return Err(ApiError::unknown_resource()),
    };
    Ok(json_response(StatusCode::OK, &body))
}

fn index(served: &Served) -> Value {
    let mut paths = Map::new();
    for (group, version) in served.keys() {
        let path = root(group, version);
        let document = document(served, group, version).unwrap_or_default();
        let hash = hex::encode(Sha256::digest(document.to_string().as_bytes()));
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(served: &Served, group: &str, version: &str) -> Result<Value, ApiError> {
    let kinds = served
        .get(&(group.to_owned(), version.to_owned()))
        .ok_or_else(ApiError::unknown_resource)?;
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert(OBJECT_META.to_owned(), object_meta());
    for kind in kinds {
        let gvk = json!({"group": group, "version": version, "kind": kind.gk.kind()});
        let name = schema_name(group, version, kind);
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        let base = format!("/{}", root(group, version));
        let collection = if kind.is_namespaced() {
            format!("{base}/namespaces/{{namespace}}/{}", kind.plural)
        } else {
            format!("{base}/{}", kind.plural)
        };
        let item = format!("{collection}/{{name}}");
        let (many, one) = operations(kind, &gvk, &reference);
        paths.insert(collection, many);
        paths.insert(item, one);
        schemas.insert(name, schema(kind, &gvk));
    }
    Ok(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.33.0"},
        "paths": paths, "components": {"schemas": schemas}}))
}

fn operations(kind: &Kind, gvk: &Value, reference: &Value) -> (Value, Value) {
    let content = json!({"application/json": {"schema": reference}});
    let operation = |action: &str| {
        let is_write = matches!(action, "post" | "put" | "patch");
        let mut operation = json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
            "operationId": format!("{action}{}{}", kind.version, kind.gk.kind()),
            "responses": {"200": {"description": "OK", "content": content}},
        });
        if is_write {
            let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
            operation["parameters"] = json!([
                parameter("dryRun"),
                parameter("fieldManager"),
                parameter("fieldValidation")
            ]);
            let body = if action == "patch" {
                json!({"application/merge-patch+json": {}, "application/json-patch+json": {},
                    "application/apply-patch+yaml": {}})
            } else {
                content.clone()
            };
            operation["requestBody"] = json!({"content": body});
        }
        operation
    };
    let many = json!({"get": operation("list"), "post": operation("post")});
    let one = json!({"get": operation("get"), "put": operation("put"),
        "patch": operation("patch"), "delete": operation("delete")});
    (many, one)
}

/// `io.wavelift.v1alpha1.FleetUpgrade`: the group turned around, as the real server names schemas.
fn schema_name(group: &str, version: &str, kind: &Kind) -> String {
    let group = if group.is_empty() { "core.api.k8s.io" } else { group };
    let turned: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{}", turned.join("."), kind.gk.kind())
}

fn schema(kind: &Kind, gvk: &Value) -> Value {
    let mut schema = kind.openapi.as_deref().cloned().unwrap_or_else(|| {
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "description": format!("{}, accepted as it is.", kind.gk.kind())})
    });
    schema["x-kubernetes-group-version-kind"] = json!([gvk]);
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = json!({"type": "string",
        "description": "The versioned schema of this representation of the object."});
    schema["properties"]["kind"] =
        json!({"type": "string", "description": "The REST resource this object represents."});
    schema["properties"]["metadata"] = json!({"description": "Standard object's metadata.",
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}]});
    schema
}

fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "description": "ObjectMeta is metadata that all persisted resources must have.",
    "properties": {
        "name": text, "namespace": text, "generateName": text, "uid": text,
        "resourceVersion": text, "creationTimestamp": text, "deletionTimestamp": text,
        "generation": {"type": "integer", "format": "int64"},
        "labels": map, "annotations": map,
        "finalizers": {"type": "array", "items": text},
        "ownerReferences": {"type": "array", "items": {"type": "object"}},
        "managedFields": {"type": "array", "items": {"type": "object"}},
    }})
}
