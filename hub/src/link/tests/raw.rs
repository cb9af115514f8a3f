//! Peers that speak the wire's own types, so that they can break its rules.

use std::{io, net::SocketAddr, sync::Arc};

use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, sync::mpsc};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Endpoint};
use wavelift_proto::v1::{
    self as wire, AgentMessage, HubMessage, agent_link_client::AgentLinkClient,
    agent_message::Message as ToHub, hub_message::Message as FromHub,
};

/// A session at the level of the wire.
pub(super) struct Raw {
    pub(super) incoming: Streaming<HubMessage>,
    pub(super) out: mpsc::Sender<AgentMessage>,
}

pub(super) async fn tls(
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(config).connect(name, tcp).await
}

pub(super) fn hello(name: &str) -> wire::Hello {
    wire::Hello {
        protocol_min: 1,
        protocol_max: 1,
        agent_version: "0.1.0".to_owned(),
        boot: 1,
        claimed_cluster: name.to_owned(),
        kube_version: String::new(),
        highest_term_seen: 0,
    }
}

pub(super) fn message(message: ToHub) -> AgentMessage {
    AgentMessage { message: Some(message) }
}

pub(super) fn heartbeat() -> AgentMessage {
    message(ToHub::Heartbeat(wire::Heartbeat {}))
}

/// Opens a session with any first message.
pub(super) async fn begin(
    address: SocketAddr,
    config: Arc<ClientConfig>,
    first: AgentMessage,
) -> Result<Raw, Status> {
    let lost = |error: &dyn std::error::Error| Status::unavailable(error.to_string());
    let mut stream = Some(TokioIo::new(tls(address, config).await.map_err(|e| lost(&e))?));
    let once = tower::service_fn(move |_| {
        let stream = stream.take();
        async move { stream.ok_or_else(|| io::Error::other("used")) }
    });
    let channel = Endpoint::from_static("http://localhost")
        .connect_with_connector(once)
        .await
        .map_err(|error| lost(&error))?;
    let (out, messages) = mpsc::channel(64);
    drop(out.try_send(first));
    let response = AgentLinkClient::new(channel).session(ReceiverStream::new(messages)).await?;
    Ok(Raw { incoming: response.into_inner(), out })
}

/// Opens a session as it should be.
pub(super) async fn open(address: SocketAddr, config: Arc<ClientConfig>, name: &str) -> Raw {
    let mut raw = begin(address, config, message(ToHub::Hello(hello(name)))).await.unwrap();
    let FromHub::Welcome(_) = raw.next().await else { panic!("the first message is no Welcome") };
    raw
}

impl Raw {
    pub(super) async fn send(&self, body: ToHub) {
        self.out.send(message(body)).await.unwrap();
    }

    pub(super) async fn next(&mut self) -> FromHub {
        let message = self.incoming.message().await.unwrap();
        message.expect("the stream has ended").message.expect("an empty message")
    }

    /// Reads the stream to its end, and the status it ends with.
    pub(super) async fn end(mut self) -> Result<(), Status> {
        while self.incoming.message().await?.is_some() {}
        Ok(())
    }
}

pub(super) fn status(name: &str, sequence: u64) -> wire::StatusReport {
    wire::StatusReport {
        fence: Some(wire::Fence { uid: "campaign".to_owned(), epoch: 1, attempt: 0 }),
        revision: Some(wire::Revision { boot: 1, sequence }),
        terminal: false,
        upgrade: Some(wire::UpgradeRef { namespace: name.to_owned(), name: "u".to_owned() }),
        status_json: "{}".into(),
    }
}
