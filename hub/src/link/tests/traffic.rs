//! What passes in a session: commands, queries, uploads; and a leader that the agent refuses.

use std::time::Duration;

use bytes::Bytes;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use wavelift_agent::link as agent;
use wavelift_core::{
    fence::{Fence, Term},
    ids::{Namespace, Uid, UpgradeName},
};
use wavelift_proto::v1::{
    self as wire, AgentMessage, HubMessage,
    agent_link_server::{AgentLink, AgentLinkServer},
    hub_message::Message as FromHub,
};

use super::harness::{Agent, Hub, TERM, cluster, digest, server_config};
use crate::link::{
    Assignment, CheckRequest, Content, Control, ControlAction, HubCommand, Limits, LinkEvent,
    Query, QueryError, SendError, Settings, UpgradeKey,
};

const LONG: Duration = Duration::from_mins(10);

fn fence() -> Fence {
    Fence { uid: Uid::try_from("campaign").unwrap(), epoch: 2, attempt: 1 }
}

fn upgrade() -> UpgradeKey {
    UpgradeKey {
        namespace: Namespace::try_from("a").unwrap(),
        name: UpgradeName::try_from("storage-12ab34cd").unwrap(),
    }
}

fn query() -> Query {
    Query { kind: "ClusterUpgrade".to_owned(), namespace: String::new(), name: "u".to_owned() }
}

#[tokio::test]
async fn commands_arrive_in_order_with_the_leaders_term() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let command = HubCommand::RequestInventory { digest: digest(1) };
    assert_eq!(hub.registry.send(&name, command.clone()), Err(SendError::NotConnected));
    let mut agent = hub.agent("a");
    hub.connected(&name).await;
    let spec_json = Bytes::from_static(b"{\"origin\":\"Hub\"}");
    let request_id = "check-1".to_owned();
    for command in [
        command,
        HubCommand::Assign(Assignment {
            fence: fence(),
            upgrade: upgrade(),
            spec_json: spec_json.clone(),
        }),
        HubCommand::Control(Control {
            fence: fence(),
            upgrade: upgrade(),
            action: ControlAction::Freeze,
        }),
        HubCommand::Check(CheckRequest {
            request_id: request_id.clone(),
            fence: fence(),
            upgrade: upgrade(),
            spec_json: spec_json.clone(),
        }),
    ] {
        hub.registry.send(&name, command).unwrap();
    }
    let key = agent::UpgradeKey { namespace: upgrade().namespace, name: upgrade().name };
    let (fence, upgrade, term) = (fence(), key, TERM);
    let expected = [
        agent::HubCommand::InventoryRequest { digest: digest(1) },
        agent::HubCommand::Assign(agent::Assignment {
            fence: fence.clone(),
            term,
            upgrade: upgrade.clone(),
            spec_json: spec_json.clone(),
        }),
        agent::HubCommand::Control(agent::Control {
            fence: fence.clone(),
            term,
            upgrade: upgrade.clone(),
            action: agent::ControlAction::Freeze,
        }),
        agent::HubCommand::Check(agent::CheckRequest {
            request_id,
            fence,
            term,
            upgrade,
            spec_json,
        }),
    ];
    for expected in expected {
        assert_eq!(agent.command().await, expected);
    }
}

#[tokio::test]
async fn a_command_over_the_limit_and_one_too_many_are_the_senders_to_know() {
    let limits = Limits { command_bytes_max: 10_000, commands_max: 4, ..Limits::default() };
    let mut hub = Hub::start(Settings { limits, ..Settings::default() }).await;
    let name = hub.import("a");
    let mut agent = hub.agent("a");
    hub.connected(&name).await;
    let assign = |bytes| {
        let spec_json = vec![b' '; bytes].into();
        HubCommand::Assign(Assignment { fence: fence(), upgrade: upgrade(), spec_json })
    };
    let sent = hub.registry.send(&name, assign(10_000));
    assert!(matches!(sent, Err(SendError::TooLarge { max: 10_000, .. })), "{sent:?}");
    // The agent does not take its commands, so everything on the way fills up.
    let mut taken = 0;
    loop {
        match hub.registry.send(&name, assign(8_000)) {
            Ok(()) => taken += 1,
            Err(SendError::QueueFull) => break,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(taken >= 4, "only {taken} were taken");
    for _ in 0..taken {
        assert!(matches!(agent.command().await, agent::HubCommand::Assign(_)));
    }
}

#[tokio::test]
async fn a_query_has_the_agents_answer_or_a_reason() {
    let mut hub = Hub::start(Settings::default()).await;
    let name = hub.import("a");
    let missing = hub.registry.query(&name, query(), LONG).await;
    assert_eq!(missing, Err(QueryError::NotConnected));
    let mut agent = hub.agent("a");
    hub.connected(&name).await;
    let answers = tokio::spawn(async move {
        for result in [Ok(Bytes::from_static(b"[1]")), Err("no such kind".to_owned())] {
            let agent::HubCommand::Query(asked) = agent.command().await else { panic!("no query") };
            assert_eq!((asked.kind.as_str(), asked.name.as_str()), ("ClusterUpgrade", "u"));
            let answer = agent::AgentReport::QueryAnswer { id: asked.id, result };
            agent.link.send(answer).await.unwrap();
        }
        agent
    });
    assert_eq!(hub.registry.query(&name, query(), LONG).await, Ok(Bytes::from_static(b"[1]")));
    let failed = hub.registry.query(&name, query(), LONG).await;
    assert_eq!(failed, Err(QueryError::Agent("no such kind".to_owned())));
    // The agent goes away with a question open.
    let mut agent = answers.await.unwrap();
    let registry = hub.registry.clone();
    let open = tokio::spawn(async move { registry.query(&name, query(), LONG).await });
    assert!(matches!(agent.command().await, agent::HubCommand::Query(_)));
    agent.shutdown.cancel();
    assert_eq!(open.await.unwrap(), Err(QueryError::Disconnected));
}

#[tokio::test]
async fn an_upload_of_many_parts_arrives_whole_and_one_too_long_is_dropped() {
    let limits = Limits {
        message_bytes_max: 8_192,
        inventory_bytes_max: 400_000,
        catalog_bytes_max: 50_000,
        ..Limits::default()
    };
    let mut hub = Hub::start(Settings { limits, ..Settings::default() }).await;
    let name = hub.import("a");
    let agent = hub.agent("a");
    hub.connected(&name).await;
    let content: Bytes = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let inventory = agent::AgentReport::Inventory { digest: digest(1), content: content.clone() };
    let catalog = agent::AgentReport::Catalog { digest: digest(2), content: content.clone() };
    agent.link.send(inventory).await.unwrap();
    agent.link.send(catalog).await.unwrap();
    let upload = hub
        .event(|event| match event {
            LinkEvent::Upload { content, digest, bytes, .. } => Some((content, digest, bytes)),
            _ => None,
        })
        .await;
    assert_eq!(upload, (Content::Inventory, digest(1), content));
    let dropped = hub
        .event(|event| match event {
            LinkEvent::UploadDropped { content, digest, reason, .. } => {
                Some((content, digest, reason))
            }
            _ => None,
        })
        .await;
    let too_large = crate::link::UploadDropped::TooLarge;
    assert_eq!(dropped, (Content::Catalog, digest(2), too_large));
    hub.still_serves().await;
}

/// A hub that welcomes everybody in the name of an old term.
struct Lying;

#[tonic::async_trait]
impl AgentLink for Lying {
    type SessionStream = ReceiverStream<Result<HubMessage, Status>>;

    async fn session(
        &self,
        _: Request<Streaming<AgentMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (out, messages) = mpsc::channel(1);
        let welcome = wire::Welcome {
            protocol: 1,
            term: 1,
            session_id: 1,
            heartbeat_interval_ms: 1_000,
            message_bytes_max: 1_000,
            status_repeat_ms: 1_000,
            inventory_period_seconds: 1,
        };
        let message = HubMessage { message: Some(FromHub::Welcome(welcome)) };
        out.send(Ok(message)).await.unwrap();
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}

#[tokio::test]
async fn an_agent_refuses_a_leader_of_an_old_term() {
    let hub = Hub::start(Settings::default()).await;
    hub.import("a");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = hub.agent_settings("a");
    settings.hub.port = listener.local_addr().unwrap().port();
    settings.highest_term = Term(5);
    let acceptor = TlsAcceptor::from(server_config(&hub.authorities));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let stream = acceptor.accept(tcp).await.unwrap();
            let service = TowerToHyperService::new(AgentLinkServer::new(Lying));
            let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    let agent = Agent::start(settings, hub.client("a"));
    let mut state = agent.link.state();
    let waiting = |state: &agent::LinkState| match state {
        agent::LinkState::Waiting { why } => why.contains("term 1") && why.contains("term 5"),
        _ => false,
    };
    state.wait_for(waiting).await.unwrap();
    assert!(agent.counter("wavelift_agent_link_connects_total", "old_term") >= 1.0);
    assert_eq!(agent.link.highest_term(), Term(5));
    assert!(!hub.registry.is_connected(&cluster("a")));
}
