//! The store against a Secrets API that is an axum router.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

/// The API server's Secrets, and what another replica writes just before our own create.
#[derive(Default)]
struct Api {
    secrets: Mutex<BTreeMap<String, Value>>,
    faster: Mutex<BTreeMap<String, Value>>,
}

fn failure(code: StatusCode, reason: &str) -> (StatusCode, Json<Value>) {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16(),
    });
    (code, Json(body))
}

async fn read(State(api): State<Arc<Api>>, Path(name): Path<String>) -> (StatusCode, Json<Value>) {
    let found = api.secrets.lock().get(&name).cloned();
    found.map_or_else(
        || failure(StatusCode::NOT_FOUND, "NotFound"),
        |secret| (StatusCode::OK, Json(secret)),
    )
}

async fn create(
    State(api): State<Arc<Api>>,
    Json(secret): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
    let mut secrets = api.secrets.lock();
    if let Some(faster) = api.faster.lock().remove(&name) {
        secrets.insert(name.clone(), faster);
    }
    if secrets.contains_key(&name) {
        return failure(StatusCode::CONFLICT, "AlreadyExists");
    }
    secrets.insert(name, secret.clone());
    (StatusCode::CREATED, Json(secret))
}

fn store(api: &Arc<Api>) -> CaStore {
    let router = Router::new()
        .route("/api/v1/namespaces/wavelift/secrets/{name}", get(read))
        .route("/api/v1/namespaces/wavelift/secrets", post(create))
        .with_state(Arc::clone(api));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let router = router.clone();
        async move { router.oneshot(request.map(axum::body::Body::new)).await }
    });
    CaStore::new(Client::new(service, "default"), "wavelift")
}

#[tokio::test]
async fn authorities_are_made_once_and_read_ever_after() {
    let api = Arc::default();
    let made = store(&api).load_or_create().await.unwrap();
    let read = store(&api).load_or_create().await.unwrap();
    assert_eq!(made.agents.certificate_pem(), read.agents.certificate_pem());
    assert_eq!(made.servers.certificate_pem(), read.servers.certificate_pem());
    assert_ne!(made.agents.certificate_pem(), made.servers.certificate_pem());
    let secret = api.secrets.lock()[AGENT_CA_SECRET].clone();
    assert_eq!(secret["type"], "kubernetes.io/tls");
    let keys: Vec<_> = secret["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ca.crt", "tls.crt", "tls.key"]);
}

#[tokio::test]
async fn a_replica_that_was_faster_wins() {
    let elsewhere = Arc::default();
    let theirs = store(&elsewhere).load_or_create().await.unwrap();
    let api = Arc::new(Api::default());
    *api.faster.lock() = elsewhere.secrets.lock().clone();
    let ours = store(&api).load_or_create().await.unwrap();
    assert_eq!(ours.agents.certificate_pem(), theirs.agents.certificate_pem());
    assert_eq!(ours.agents.key_pem(), theirs.agents.key_pem());
    assert_eq!(ours.servers.certificate_pem(), theirs.servers.certificate_pem());
}

#[tokio::test]
async fn a_secret_that_holds_no_authority_is_an_error_and_stays_as_it_is() {
    let api = Arc::new(Api::default());
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": AGENT_CA_SECRET, "namespace": "wavelift"},
        "data": {"tls.crt": "bm9uc2Vuc2U=", "tls.key": "bm9uc2Vuc2U="},
    });
    api.secrets.lock().insert(AGENT_CA_SECRET.to_owned(), broken.clone());
    assert_eq!(store(&api).load_or_create().await.unwrap_err().kind(), "pki");
    let mut empty = broken.clone();
    empty["data"] = json!({});
    api.secrets.lock().insert(AGENT_CA_SECRET.to_owned(), empty.clone());
    assert_eq!(store(&api).load_or_create().await.unwrap_err().kind(), "missing");
    assert_eq!(api.secrets.lock()[AGENT_CA_SECRET], empty);
}
