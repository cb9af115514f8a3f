//! The same requests as a real API server (1.36.3) was sent, and its answers: ours must agree.
//!
//! `recorded.json` holds them in order, as [method, path, content type, body, code, answer], the
//! answers without what differs from run to run. Of refusals the code, the reason and the causes
//! count, not the wording; what differs is listed in `DIFFERS`, and must differ.

use std::collections::BTreeSet;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::server;
use crate::apiserver::http::respond;

/// Requests that are answered otherwise here, by index, and why.
const DIFFERS: [(usize, &str); 3] = [
    (51, "the real server loses the name of an object whose annotations an applier gives up"),
    (52, "the spec of a built-in kind is always there, so nobody owns it as such"),
    (58, "the real server gives no reason; it is told in words"),
];

/// What no two runs share.
const VOLATILE: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "time", "selfLink", "deletionTimestamp"];

fn stable(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), stable(value))).collect())
        }
        Value::Array(items) => items.iter().map(stable).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// An answer as far as it must agree.
fn essence(answer: &Value) -> Value {
    let answer = stable(answer);
    if answer["kind"] != "Status" || answer["status"] == "Success" {
        return answer;
    }
    let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    let causes: BTreeSet<String> =
        causes.iter().map(|cause| format!("{} {}", cause["reason"], cause["field"])).collect();
    json!({"code": answer["code"], "reason": answer["reason"], "causes": causes})
}

#[tokio::test]
async fn a_real_server_answers_the_same() {
    let server = server();
    let recorded: Vec<(String, String, String, Value, u16, Value)> =
        serde_json::from_str(include_str!("recorded.json")).unwrap();
    let mut wrong = Vec::new();
    for (index, (method, path, content_type, body, code, expected)) in
        recorded.into_iter().enumerate()
    {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).unwrap() };
        let request = http::Request::builder()
            .method(method.as_str())
            .uri(&path)
            .header("content-type", content_type)
            .header("user-agent", "tester/1")
            .body(axum::body::Body::from(bytes))
            .unwrap();
        let response = respond(&server, request).await.unwrap();
        let found_code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let found: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let agrees = (found_code, essence(&found)) == (code, essence(&expected));
        if agrees == DIFFERS.iter().any(|(known, _)| *known == index) {
            let (expected, found) = (essence(&expected), essence(&found));
            wrong.push(format!(
                "{index}: {method} {path} {body}\n  real {code} {expected}\n  here {found_code} {found}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}
