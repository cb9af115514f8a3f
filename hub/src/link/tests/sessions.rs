//! How sessions begin, take each other's place, and end.

use std::time::Duration;

use wavelift_agent::link::LinkState;
use wavelift_core::{fence::Term, ids::ClusterName};
use wavelift_proto::v1::{
    agent_message::Message as ToHub, drain::Reason, hub_message::Message as FromHub,
};

use super::{
    harness::{Hub, agent_material, between, quick, uid},
    raw,
};
use crate::link::{
    DrainHint, DrainReason, LeaderState, LinkEvent, SessionEnd, SessionId, Settings,
};

/// Waits for the end of the cluster's last session.
async fn disconnected(hub: &mut Hub, name: &ClusterName) -> (SessionId, SessionEnd) {
    hub.event(|event| match event {
        LinkEvent::Disconnected { cluster, session, reason } if cluster == *name => {
            Some((session, reason))
        }
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_second_session_takes_the_firsts_place_and_nothing_under_way_is_lost() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let mut first = raw::open(hub.address, hub.client("a"), "a").await;
    let one = hub.connected(&name).await;
    let second = raw::open(hub.address, hub.client("a"), "a").await;
    let two = hub.connected(&name).await;
    assert!(two > one);
    assert_eq!(hub.registry.session(&name), Some(two));

    let FromHub::Drain(drain) = first.next().await else { panic!("no drain notice") };
    assert_eq!(drain.reason(), Reason::Replaced);
    // What the first still says is heard, and then it is closed without complaint.
    first.send(ToHub::Status(raw::status("a", 1))).await;
    let raw::Raw { incoming, out } = first;
    drop(out);
    let (closing, _) = tokio::sync::mpsc::channel(1);
    raw::Raw { incoming, out: closing }.end().await.unwrap();
    let mut has_heard = false;
    drop(second);
    let (last, reason) = hub
        .event(|event| match event {
            LinkEvent::Status { .. } => {
                has_heard = true;
                None
            }
            LinkEvent::Disconnected { session, reason, .. } => Some((session, reason)),
            _ => None,
        })
        .await;
    assert!(has_heard, "the first session's last status was lost");
    // The first one's end was no disconnection of the cluster.
    assert_eq!(last, two);
    assert!(matches!(reason, SessionEnd::ClosedByAgent | SessionEnd::ConnectionLost));
    assert!(!hub.registry.is_connected(&name));
}

#[tokio::test]
async fn a_first_session_that_does_not_leave_is_closed_after_its_grace() {
    let grace = Duration::from_millis(50);
    let mut hub = Hub::start(Settings { closing_grace: grace, ..Settings::default() }).await;
    let name = hub.import("a");
    let first = raw::open(hub.address, hub.client("a"), "a").await;
    hub.connected(&name).await;
    let _second = raw::open(hub.address, hub.client("a"), "a").await;
    first.end().await.unwrap();
    assert!(hub.registry.is_connected(&name));
}

#[tokio::test]
async fn a_hub_that_ends_tells_its_agents_when_to_come_back() {
    let hint = DrainHint {
        after: Duration::from_millis(1_500),
        spread: Duration::from_secs(20),
        reason: DrainReason::Shutdown,
    };
    let mut hub = Hub::start(Settings { shutdown_hint: hint, ..Settings::default() }).await;
    let (a, b) = (hub.import("a"), hub.import("b"));
    let mut peer = raw::open(hub.address, hub.client("a"), "a").await;
    hub.connected(&a).await;
    let agent = hub.agent("b");
    hub.connected(&b).await;
    hub.shutdown.cancel();
    let FromHub::Drain(drain) = peer.next().await else { panic!("no drain notice") };
    assert_eq!((drain.reconnect_after_ms, drain.spread_ms), (1_500, 20_000));
    assert_eq!(drain.reason(), Reason::Shutdown);
    drop(peer);
    // The real agent leaves by itself and waits as it was told.
    let mut state = agent.link.state();
    let waiting = state.wait_for(|state| matches!(state, LinkState::Waiting { .. })).await;
    let LinkState::Waiting { why } = waiting.unwrap().clone() else { panic!("not waiting") };
    assert_eq!(why, "the hub asked to come back later");
    hub.served.await.unwrap();
    assert!(hub.registry.is_empty());
}

#[tokio::test]
async fn a_deposed_leader_ends_its_sessions_and_agents_come_back_to_the_next_term() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let agent = hub.agent("a");
    let first = hub.connected(&name).await;
    hub.leader.send_replace(LeaderState { term: Some(Term(4)) });
    assert_eq!(disconnected(&mut hub, &name).await, (first, SessionEnd::NotLeader));
    let second = hub.connected(&name).await;
    assert!(second > first);
    let mut state = agent.link.state();
    let connected = LinkState::Connected { session: second.0, term: Term(4) };
    state.wait_for(|state| *state == connected).await.unwrap();
}

#[tokio::test]
async fn a_session_ends_with_its_certificate() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let soon = between(-60, 2);
    let material = agent_material(&hub.authorities.agents, "a", &uid("a"), soon);
    let session = raw::open(hub.address, hub.trusting(material), "a").await;
    hub.connected(&name).await;
    let status = session.end().await.unwrap_err();
    assert_eq!(status.metadata().get("wavelift-refusal").unwrap(), "certificate_expired");
    let (_, reason) = disconnected(&mut hub, &name).await;
    assert_eq!(reason, SessionEnd::CertificateExpired);
}

#[tokio::test]
async fn a_session_without_signs_of_life_ends_and_one_with_them_does_not() {
    let mut hub = Hub::start(quick()).await;
    let (a, b) = (hub.import("a"), hub.import("b"));
    let _silent = raw::open(hub.address, hub.client("a"), "a").await;
    hub.connected(&a).await;
    let agent = hub.agent("b");
    hub.connected(&b).await;
    let (_, reason) = disconnected(&mut hub, &a).await;
    assert_eq!(reason, SessionEnd::Silent);
    for _ in 0..3 {
        hub.event(|event| match event {
            LinkEvent::Heartbeat { cluster } => (cluster == b).then_some(()),
            LinkEvent::Disconnected { cluster, .. } => panic!("{cluster} was disconnected"),
            _ => None,
        })
        .await;
    }
    agent.shutdown.cancel();
    let (_, reason) = disconnected(&mut hub, &b).await;
    assert_eq!(reason, SessionEnd::ClosedByAgent);
}
