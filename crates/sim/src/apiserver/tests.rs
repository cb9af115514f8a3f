//! The rules of the server, seen from the store, from a kube client and from kubectl.

mod apply;
mod client;
mod faults;
mod kubectl;
mod recorded;
mod schema;
mod store;
mod watch;

use std::time::Duration;

use jiff::Timestamp;
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use wavelift_runtime::{Clock, clock::Hand};

use super::{ApiServer, Gk, Limits, read_yaml};

static GADGET: Gk = Gk::of("test.wavelift.io", "Gadget");

/// A server that knows gadgets, at noon on 1 February 2026.
fn server() -> ApiServer {
    server_with(Limits::default()).0
}

fn server_with(limits: Limits) -> (ApiServer, Hand) {
    let noon: Timestamp = "2026-02-01T12:00:00Z".parse().unwrap();
    let (clock, hand) = Clock::manual(noon);
    let server = ApiServer::with_limits(clock, limits);
    server.install_crd(&read_yaml(include_str!("tests/gadgets.yaml")).unwrap()).unwrap();
    (server, hand)
}

fn mk_gadget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.wavelift.io/v1alpha1", "kind": "Gadget",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn gadgets(client: &Client) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("test.wavelift.io", "v1alpha1", "Gadget");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "gadgets");
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn dynamic(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

/// Fails the test instead of hanging it; no expectation about speed.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_mins(1), future).await.expect("it never came")
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
