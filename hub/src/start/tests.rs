//! Whole hubs against one API server.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use wavelift_runtime::{identity::AgentIdentity, tls};
use wavelift_sim::apiserver::{ApiServer, gk};

use super::*;

fn mk_server() -> ApiServer {
    let api = ApiServer::new(Clock::real());
    for crd in wavelift_api::crds() {
        api.install_crd(&serde_json::to_value(crd).unwrap()).unwrap();
    }
    let store = api.store();
    store.create(&gk::NAMESPACE, json!({"metadata": {"name": "wavelift"}})).unwrap();
    let cluster = json!({"metadata": {"name": "a"}, "spec": {"hubAcceptsClient": true}});
    store.create(&gk::MANAGED_CLUSTER, cluster).unwrap();
    api
}

async fn mk_hub(api: &ApiServer, identity: &str) -> (Hub, CancellationToken) {
    let mut options = HubOptions::new(api.client("wavelift-hub"), "wavelift");
    identity.clone_into(&mut options.identity);
    options.link_address = "127.0.0.1:0".parse().unwrap();
    options.http_address = "127.0.0.1:0".parse().unwrap();
    options.lease.retry = Duration::from_millis(100);
    let shutdown = CancellationToken::new();
    (Hub::start(options, shutdown.clone()).await.unwrap(), shutdown)
}

async fn leads(hub: &Hub) -> u64 {
    let mut leader = hub.leader();
    let state = leader.wait_for(|state| state.term.is_some()).await.unwrap();
    state.term.unwrap().0
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn of_two_hubs_one_leads_and_the_other_follows_when_it_ends() {
    let api = mk_server();
    let (one, stop_one) = mk_hub(&api, "one").await;
    let first = leads(&one).await;
    let (two, stop_two) = mk_hub(&api, "two").await;
    assert!(get(one.http_address(), "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(get(two.http_address(), "/readyz").await.starts_with("HTTP/1.1 503"));
    assert_eq!(one.accepted().len(), 1);
    assert!(two.accepted().is_empty());
    assert_eq!(
        one.authorities().agents.certificate_pem(),
        two.authorities().agents.certificate_pem(),
        "replicas share their authorities"
    );

    stop_one.cancel();
    one.join().await;
    assert!(leads(&two).await > first);
    assert!(get(two.http_address(), "/readyz").await.starts_with("HTTP/1.1 200"));
    stop_two.cancel();
    two.join().await;
    let lease = api.store().get(&gk::LEASE, Some("wavelift"), "wavelift-hub").unwrap();
    assert!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty());
}

#[tokio::test]
async fn an_agents_certificate_names_its_cluster_and_uid() {
    let api = mk_server();
    let (hub, stop) = mk_hub(&api, "one").await;
    leads(&hub).await;
    let accepted: BTreeMap<ClusterName, Uid> = hub.accepted();
    let (cluster, uid) = accepted.first_key_value().unwrap();
    let material = hub.issue_agent(cluster, uid).unwrap();
    assert!(tls::client_config(&material).is_ok());
    let leaf = CertificateDer::from_pem_slice(&material.certificates).unwrap();
    let identity = AgentIdentity::from_leaf(&leaf, Timestamp::now()).unwrap();
    assert_eq!((&identity.cluster, &identity.uid), (cluster, uid));
    assert!(identity.not_after > Timestamp::now());
    stop.cancel();
    hub.join().await;
}

#[tokio::test]
async fn a_lease_that_was_deleted_does_not_lower_the_term() {
    let api = mk_server();
    let object = json!({
        "metadata": {"name": "old", "namespace": "wavelift"},
        "spec": {"targets": {"operators": [{"package": "tea"}]}, "clusters": {"names": ["a"]}},
        "status": {"term": 41},
    });
    api.store().create(&gk::FLEET_UPGRADE, object).unwrap();
    let (hub, stop) = mk_hub(&api, "one").await;
    assert_eq!(leads(&hub).await, 42);
    stop.cancel();
    hub.join().await;
}
