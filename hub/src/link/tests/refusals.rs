//! Each way to be turned away: its typed kind, and a hub that goes on serving good agents.

use std::sync::Arc;

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use wavelift_core::ids::Uid;
use wavelift_proto::v1::{self as wire, agent_message::Message as ToHub};
use wavelift_runtime::{identity, pki::Ca, tls::Material};

use super::{
    harness::{Hub, agent_material, between, cluster, uid, valid},
    raw,
};
use crate::link::{LeaderState, Limits, LinkEvent, SessionEnd, Settings, ca::Authorities};

/// Shows a certificate, expects this kind, and that the hub goes on.
async fn check_certificate(kind: &str, material: impl FnOnce(&Hub) -> Material) {
    let mut hub = Hub::start(Settings::default()).await;
    hub.import("a");
    let config = hub.trusting(material(&hub));
    let first = raw::message(ToHub::Hello(raw::hello("a")));
    let refused = raw::begin(hub.address, config, first).await;
    assert!(refused.is_err(), "the session was opened");
    assert_eq!(hub.refused().await, kind);
    assert_eq!(hub.metrics.refusals(kind), 1);
    hub.still_serves().await;
}

/// Sends a first message with a good certificate of cluster `a`, expects this kind, also at the
/// agent, and that the hub goes on.
async fn check_first(kind: &str, first: ToHub) {
    let mut hub = Hub::start(Settings::default()).await;
    hub.import("a");
    let refused = raw::begin(hub.address, hub.client("a"), raw::message(first)).await;
    let status = refused.err().expect("the session was opened");
    assert_eq!(status.metadata().get("wavelift-refusal").unwrap(), kind);
    assert_eq!(hub.refused().await, kind);
    assert_eq!(hub.metrics.refusals(kind), 1);
    hub.still_serves().await;
}

/// Sends messages in a good session, expects this kind as the session's end, and that the hub
/// goes on.
async fn check_session(kind: &'static str, messages: impl IntoIterator<Item = ToHub>) {
    let limits = Limits { message_bytes_max: 16_384, messages_burst: 50, ..Limits::default() };
    let mut hub = Hub::start(Settings { limits, ..Settings::default() }).await;
    let name = hub.import("a");
    let session = raw::open(hub.address, hub.client("a"), "a").await;
    for message in messages {
        // The hub may have ended the session already.
        if session.out.send(raw::message(message)).await.is_err() {
            break;
        }
    }
    assert_eq!(hub.refused().await, kind);
    assert_eq!(hub.metrics.refusals(kind), 1);
    let reason = hub
        .event(|event| match event {
            LinkEvent::Disconnected { cluster, reason, .. } if cluster == name => Some(reason),
            _ => None,
        })
        .await;
    assert_eq!(reason, SessionEnd::Refused(kind));
    hub.still_serves().await;
}

/// A certificate that our own signer would never make.
fn foreign(ca: &Ca, change: impl FnOnce(&mut CertificateParams)) -> Material {
    let authority_key = KeyPair::from_pem(&ca.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(ca.certificate_pem(), authority_key).unwrap();
    let name = cluster("a");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, identity::common_name(&name));
    params.distinguished_name.push(DnType::OrganizationName, identity::organization(&name));
    let uri = identity::uid_uri(&uid("a"));
    params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    Material {
        certificates: params.signed_by(&key, &issuer).unwrap().pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
        ca: Vec::new(),
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    check_certificate("unknown_issuer", |_| {
        let other = Authorities::generate().unwrap();
        agent_material(&other.agents, "a", &uid("a"), valid())
    })
    .await;
}

#[tokio::test]
async fn a_certificate_of_our_server_authority_is_refused() {
    check_certificate("unknown_issuer", |hub| {
        agent_material(&hub.authorities.servers, "a", &uid("a"), valid())
    })
    .await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    check_certificate("certificate_expired", |hub| {
        agent_material(&hub.authorities.agents, "a", &uid("a"), between(-7_200, -3_600))
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_yet_is_refused() {
    check_certificate("certificate_not_yet_valid", |hub| {
        agent_material(&hub.authorities.agents, "a", &uid("a"), between(3_600, 7_200))
    })
    .await;
}

#[tokio::test]
async fn a_certificate_for_servers_is_refused() {
    check_certificate("certificate_invalid", |hub| {
        foreign(&hub.authorities.agents, |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        })
    })
    .await;
}

#[tokio::test]
async fn a_certificate_without_our_subject_form_is_refused() {
    check_certificate("subject_form", |hub| {
        foreign(&hub.authorities.agents, |params| {
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, "a");
        })
    })
    .await;
}

#[tokio::test]
async fn a_certificate_with_another_clusters_organization_is_refused() {
    check_certificate("subject_organization", |hub| {
        foreign(&hub.authorities.agents, |params| {
            let other = identity::organization(&cluster("b"));
            params.distinguished_name.push(DnType::OrganizationName, other);
        })
    })
    .await;
}

#[tokio::test]
async fn a_certificate_of_an_earlier_life_of_the_cluster_is_refused() {
    check_certificate("other_uid", |hub| {
        let earlier = Uid::try_from("uid-of-an-earlier-a").unwrap();
        agent_material(&hub.authorities.agents, "a", &earlier, valid())
    })
    .await;
}

#[tokio::test]
async fn a_peer_without_certificate_is_refused() {
    let mut hub = Hub::start(Settings::default()).await;
    let ca = CertificateDer::from_pem_slice(hub.authorities.servers.certificate_pem().as_bytes());
    let mut roots = RootCertStore::empty();
    roots.add(ca.unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let first = raw::message(ToHub::Hello(raw::hello("a")));
    assert!(raw::begin(hub.address, Arc::new(config), first).await.is_err());
    assert_eq!(hub.refused().await, "no_certificate");
    assert_eq!(hub.metrics.refusals("no_certificate"), 1);
    hub.still_serves().await;
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_is_refused() {
    let mut hub = Hub::start(Settings::default()).await;
    let mut tcp = TcpStream::connect(hub.address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n").await.unwrap();
    assert_eq!(hub.refused().await, "handshake");
    hub.still_serves().await;
}

#[tokio::test]
async fn a_probe_that_just_connects_is_counted_apart() {
    let mut hub = Hub::start(Settings::default()).await;
    drop(TcpStream::connect(hub.address).await.unwrap());
    assert_eq!(hub.refused().await, "handshake_aborted");
    hub.still_serves().await;
}

#[tokio::test]
async fn a_hello_that_claims_another_cluster_is_refused() {
    // The certificate is `a`'s, and `b` is a good cluster as well.
    check_first("other_cluster", ToHub::Hello(raw::hello("b"))).await;
}

#[tokio::test]
async fn a_hello_that_has_seen_a_later_term_is_refused() {
    // The hub leads term 3.
    let hello = wire::Hello { highest_term_seen: 4, ..raw::hello("a") };
    check_first("old_term", ToHub::Hello(hello)).await;
}

#[tokio::test]
async fn a_hello_of_another_protocol_is_refused() {
    let hello = wire::Hello { protocol_min: 2, protocol_max: 5, ..raw::hello("a") };
    check_first("protocol", ToHub::Hello(hello)).await;
}

#[tokio::test]
async fn a_first_message_that_is_no_hello_is_refused() {
    check_first("no_hello", ToHub::Heartbeat(wire::Heartbeat {})).await;
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_refused() {
    let mut hub = Hub::start(Settings::default()).await;
    let first = raw::message(ToHub::Hello(raw::hello("a")));
    assert!(raw::begin(hub.address, hub.client("a"), first).await.is_err());
    assert_eq!(hub.refused().await, "unknown_cluster");
    hub.still_serves().await;
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_session() {
    let large =
        wire::StatusReport { status_json: vec![b' '; 20_000].into(), ..raw::status("a", 1) };
    check_session("message_too_large", [ToHub::Status(large)]).await;
}

#[tokio::test]
async fn a_flood_ends_the_session() {
    // 50 at once are allowed, and 100 a second: ten thousand are a flood on any machine.
    let flood = std::iter::repeat_n(ToHub::Heartbeat(wire::Heartbeat {}), 10_000);
    check_session("flood", flood).await;
}

#[tokio::test]
async fn a_flood_has_its_name_also_when_the_hub_is_too_busy_to_read_it() {
    let limits = Limits { events_max: 1, ..Limits::default() };
    let mut hub = Hub::start(Settings { limits, ..Settings::default() }).await;
    let name = hub.import("a");
    let session = raw::open(hub.address, hub.client("a"), "a").await;
    // Nobody takes the events, so the session's messages are not read either. Each goes out in a
    // frame of its own: a peer that packs many into one is just made to wait.
    for _ in 0..5_000 {
        if session.out.send(raw::heartbeat()).await.is_err() {
            break;
        }
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
    assert!(session.end().await.is_err());
    let reason = hub
        .event(|event| match event {
            LinkEvent::Disconnected { cluster, reason, .. } if cluster == name => Some(reason),
            _ => None,
        })
        .await;
    assert_eq!(reason, SessionEnd::Refused("flood"));
    assert_eq!(hub.metrics.refusals("flood"), 1);
    hub.still_serves().await;
}

#[tokio::test]
async fn a_malformed_message_ends_the_session() {
    let malformed = wire::StatusReport { fence: None, ..raw::status("a", 1) };
    check_session("malformed", [ToHub::Status(malformed)]).await;
}

#[tokio::test]
async fn a_standby_refuses_and_a_new_leader_takes_the_agent() {
    let mut hub = Hub::start(Settings::default()).await;
    hub.leader.send_replace(LeaderState { term: None });
    let name = hub.import("a");
    let agent = hub.agent("a");
    assert_eq!(hub.refused().await, "not_leader");
    hub.leader.send_replace(LeaderState { term: Some(wavelift_core::fence::Term(8)) });
    hub.connected(&name).await;
    let mut state = agent.link.state();
    state
        .wait_for(|state| matches!(state, wavelift_agent::link::LinkState::Connected { .. }))
        .await
        .unwrap();
    assert_eq!(agent.link.highest_term(), wavelift_core::fence::Term(8));
}

#[tokio::test]
async fn one_session_too_many_is_refused_but_a_replacement_is_not() {
    let limits = Limits { sessions_max: 1, ..Limits::default() };
    let mut hub = Hub::start(Settings { limits, ..Settings::default() }).await;
    let name = hub.import("a");
    hub.import("b");
    let first = raw::open(hub.address, hub.client("a"), "a").await;
    hub.connected(&name).await;
    let hello = raw::message(ToHub::Hello(raw::hello("b")));
    assert!(raw::begin(hub.address, hub.client("b"), hello).await.is_err());
    assert_eq!(hub.refused().await, "too_many_sessions");
    let second = raw::open(hub.address, hub.client("a"), "a").await;
    hub.connected(&name).await;
    assert_eq!(hub.registry.len(), 1);
    drop((first, second));
    hub.event(|event| matches!(event, LinkEvent::Disconnected { .. }).then_some(())).await;
    assert_eq!(hub.registry.len(), 0);
    hub.still_serves().await;
}
