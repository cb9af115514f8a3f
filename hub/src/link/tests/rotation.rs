//! New certificates on either side, with no restart and nothing lost.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use wavelift_agent::link as agent;
use wavelift_runtime::tls::{self, Material};

use super::{
    harness::{Agent, Hub, agent_material, server_config, uid, valid},
    raw,
    statuses::{ack, report},
};
use crate::link::{LinkEvent, Settings};

/// The serial number of the certificate that the hub shows now.
async fn shown(hub: &Hub) -> Vec<u8> {
    let stream = raw::tls(hub.address, hub.client("a")).await.unwrap();
    let (_, connection) = stream.get_ref();
    let leaf = connection.peer_certificates().unwrap().first().unwrap().clone();
    let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).unwrap();
    leaf.raw_serial().to_vec()
}

#[tokio::test]
async fn the_hub_shows_its_new_certificate_and_keeps_its_sessions() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let session = raw::open(hub.address, hub.client("a"), "a").await;
    let id = hub.connected(&name).await;
    let before = shown(&hub).await;
    assert_eq!(shown(&hub).await, before);
    hub.tls.send_replace(server_config(&hub.authorities));
    assert_ne!(shown(&hub).await, before);
    // The session of before goes on.
    session.out.send(raw::heartbeat()).await.unwrap();
    hub.event(|event| matches!(event, LinkEvent::Heartbeat { .. }).then_some(())).await;
    assert_eq!(hub.registry.session(&name), Some(id));
    hub.still_serves().await;
}

fn write(dir: &Path, material: &Material) {
    fs::write(dir.join("tls.crt"), &material.certificates).unwrap();
    fs::write(dir.join("tls.key"), &material.key).unwrap();
    fs::write(dir.join("ca.crt"), &material.ca).unwrap();
}

/// A fresh certificate of cluster `a`, as the klusterlet would write it.
fn renewed(hub: &Hub) -> Material {
    let ca = hub.authorities.servers.certificate_pem().as_bytes().to_vec();
    Material { ca, ..agent_material(&hub.authorities.agents, "a", &uid("a"), valid()) }
}

#[tokio::test]
async fn an_agent_renews_its_certificate_again_and_again_and_no_status_is_lost() {
    const ROUNDS: u64 = 5;
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &renewed(&hub));
    let shutdown = CancellationToken::new();
    let every = Duration::from_millis(5);
    let files = tls::watch_dir(dir.path(), every, tls::client_config, shutdown.clone());
    let mut files = files.await.unwrap();
    let first = Arc::clone(&files.borrow_and_update());
    let agent = Agent::start(hub.agent_settings("a"), first);
    let mut session = hub.connected(&name).await;
    // What the hub has made durable: the highest sequence of each upgrade.
    let mut durable = BTreeMap::new();
    for round in 1..=ROUNDS {
        agent.link.report(report(&format!("before-{round}"), round)).unwrap();
        write(dir.path(), &renewed(&hub));
        // The reloader may see a half-written set first; it then sees the whole one.
        files.changed().await.unwrap();
        let config = Arc::clone(&files.borrow_and_update());
        agent.tls.send_replace(config);
        agent.link.report(report(&format!("after-{round}"), round)).unwrap();
        session = handed_over(&mut hub, session, &mut durable).await;
    }
    let mut state = agent.link.state();
    let here = |state: &agent::LinkState| match state {
        agent::LinkState::Connected { session: found, .. } => *found == session.0,
        _ => false,
    };
    state.wait_for(here).await.unwrap();
    while durable.len() < 2 * usize::try_from(ROUNDS).unwrap() {
        take(&mut hub, &mut durable, None).await;
    }
    assert_eq!(hub.registry.session(&name), Some(session));
    assert_eq!(hub.registry.len(), 1);
}

/// Takes and acknowledges statuses until another session is there. The cluster is never without.
async fn handed_over(
    hub: &mut Hub,
    former: crate::link::SessionId,
    durable: &mut BTreeMap<String, u64>,
) -> crate::link::SessionId {
    loop {
        if let Some(session) = take(hub, durable, Some(former)).await {
            return session;
        }
    }
}

async fn take(
    hub: &mut Hub,
    durable: &mut BTreeMap<String, u64>,
    former: Option<crate::link::SessionId>,
) -> Option<crate::link::SessionId> {
    match hub.events.recv().await.unwrap() {
        LinkEvent::Status { cluster, status } => {
            durable.insert(status.upgrade.name.to_string(), status.revision.sequence);
            // Between two sessions there may be none that takes it; then it is repeated.
            if let Err(error) = hub.registry.send(&cluster, ack(&status)) {
                assert_eq!(error.kind(), "not_connected");
            }
            None
        }
        LinkEvent::Connected { session, .. } => {
            assert!(Some(session) > former);
            Some(session)
        }
        LinkEvent::Disconnected { reason, .. } => panic!("disconnected: {reason:?}"),
        LinkEvent::Refused(refused) => panic!("refused: {}", refused.message),
        _ => None,
    }
}

#[tokio::test]
async fn an_agent_whose_new_certificate_is_no_good_stays_with_the_former() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let agent = hub.agent("a");
    let session = hub.connected(&name).await;
    let other = crate::link::ca::Authorities::generate().unwrap();
    let bad = hub.trusting(agent_material(&other.agents, "a", &uid("a"), valid()));
    agent.tls.send_replace(bad);
    assert_eq!(hub.refused().await, "unknown_issuer");
    assert_eq!(hub.registry.session(&name), Some(session));
    // The agent tries again by itself, and a good one heals it.
    assert_eq!(hub.refused().await, "unknown_issuer");
    agent.tls.send_replace(hub.client("a"));
    assert!(hub.connected(&name).await > session);
    let refused = agent.counter("wavelift_agent_link_connects_total", "certificate_refused");
    assert!(refused >= 1.0, "the agent counted {:?}", agent.metrics.gather());
}
