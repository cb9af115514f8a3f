//! A status is repeated until it is acknowledged, whatever happens to the session.

use bytes::Bytes;
use wavelift_agent::link as agent;
use wavelift_core::{
    fence::{Fence, Revision, Term},
    ids::{Namespace, Uid, UpgradeName},
};

use super::harness::{Hub, quick};
use crate::link::{Finality, HubCommand, LeaderState, LinkEvent, Settings, StatusReport};

pub(super) fn report(upgrade: &str, sequence: u64) -> agent::StatusReport {
    agent::StatusReport {
        fence: Fence { uid: Uid::try_from("campaign").unwrap(), epoch: 2, attempt: 1 },
        revision: Revision { boot: 1, sequence },
        finality: agent::Finality::Terminal,
        upgrade: agent::UpgradeKey {
            namespace: Namespace::try_from("a").unwrap(),
            name: UpgradeName::try_from(upgrade).unwrap(),
        },
        status_json: Bytes::from_static(b"{\"state\":\"Succeeded\"}"),
    }
}

pub(super) async fn status(hub: &mut Hub) -> StatusReport {
    hub.event(|event| match event {
        LinkEvent::Status { status, .. } => Some(status),
        _ => None,
    })
    .await
}

pub(super) fn ack(status: &StatusReport) -> HubCommand {
    HubCommand::Ack { fence: status.fence.clone(), revision: status.revision }
}

#[tokio::test]
async fn a_status_is_repeated_until_exactly_it_is_acknowledged() {
    let mut hub = Hub::start(quick()).await;
    let name = hub.import("a");
    let mut agent = hub.agent("a");
    hub.connected(&name).await;
    agent.link.report(report("u", 5)).unwrap();
    let first = status(&mut hub).await;
    assert_eq!(first.finality, Finality::Terminal);
    assert_eq!(first.revision, Revision { boot: 1, sequence: 5 });
    assert_eq!(first.status_json, "{\"state\":\"Succeeded\"}");
    // Another revision's and another epoch's acknowledgement leave it where it is.
    let other = Revision { boot: 1, sequence: 4 };
    let fence = first.fence.clone();
    hub.registry.send(&name, HubCommand::Ack { fence, revision: other }).unwrap();
    let fence = Fence { epoch: 1, ..first.fence.clone() };
    hub.registry.send(&name, HubCommand::Ack { fence, revision: first.revision }).unwrap();
    for _ in 0..3 {
        assert_eq!(status(&mut hub).await, first);
    }
    hub.registry.send(&name, ack(&first)).unwrap();
    let expected = agent::HubCommand::Acknowledged {
        upgrade: report("u", 5).upgrade,
        fence: first.fence.clone(),
        revision: first.revision,
    };
    assert_eq!(agent.command().await, expected);
    assert_eq!(agent.link.unacknowledged(), 0);
}

#[tokio::test]
async fn a_status_that_the_hub_lost_comes_again_in_the_next_session() {
    // The repetition within a session is far off: only the new session can bring it.
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let mut agent = hub.agent("a");
    hub.connected(&name).await;
    agent.link.report(report("u", 5)).unwrap();
    let before = status(&mut hub).await;
    hub.leader.send_replace(LeaderState { term: Some(Term(9)) });
    hub.connected(&name).await;
    let after = status(&mut hub).await;
    assert_eq!(after, before);
    hub.registry.send(&name, ack(&after)).unwrap();
    let acknowledged = agent.command().await;
    assert!(matches!(acknowledged, agent::HubCommand::Acknowledged { .. }), "{acknowledged:?}");
}

#[tokio::test]
async fn what_was_reported_with_no_hub_there_arrives_when_it_is() {
    let mut hub = Hub::start(Settings::default()).await;
    hub.leader.send_replace(LeaderState { term: None });
    hub.import("a");
    let agent = hub.agent("a");
    for sequence in 1..=3 {
        agent.link.report(report("u", sequence)).unwrap();
    }
    agent.link.report(report("v", 4)).unwrap();
    assert_eq!(hub.refused().await, "not_leader");
    hub.leader.send_replace(LeaderState { term: Some(Term(3)) });
    // Of each upgrade the latest, and no earlier one.
    let mut sequences = [status(&mut hub).await, status(&mut hub).await]
        .map(|status| (status.upgrade.name.to_string(), status.revision.sequence));
    sequences.sort();
    assert_eq!(sequences, [("u".to_owned(), 3), ("v".to_owned(), 4)]);
}
