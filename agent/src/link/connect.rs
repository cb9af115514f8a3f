//! Opens one session: TCP, TLS, HTTP/2, Hello, Welcome.

use std::{io, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, sync::mpsc, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};
use wavelift_proto::v1::{AgentMessage, HubMessage, agent_link_client::AgentLinkClient};

use super::{
    convert,
    error::Error,
    handle::Shared,
    message::Welcome,
    settings::{HubAddress, Settings},
};

/// What the hub may send ahead of being read.
const WINDOW_BYTES: u32 = 256 << 10;
/// The longest message of the hub: a spec document is bounded by the API server.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Messages between the driver and HTTP/2's own buffers.
const OUT_MAX: usize = 8;

/// An open session.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) welcome: Welcome,
    pub(super) incoming: Streaming<HubMessage>,
    /// Dropping it tells the hub that the agent has said everything.
    pub(super) out: mpsc::Sender<AgentMessage>,
}

/// Opens a session with the certificate in `tls`.
pub(super) async fn open(
    settings: Arc<Settings>,
    tls: Arc<ClientConfig>,
    shared: Arc<Shared>,
) -> Result<Connection, Error> {
    let limit = settings.connect_timeout;
    let channel = channel(&settings.hub, tls, limit).await?;
    let mut client = AgentLinkClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let (out, messages) = mpsc::channel(OUT_MAX);
    let highest_term = *shared.highest_term.borrow();
    // There is room: the channel is new.
    drop(out.try_send(convert::hello(&settings, highest_term)));
    let response = timeout(limit, client.session(ReceiverStream::new(messages)))
        .await
        .map_err(|_| Error::TimedOut("opening the session"))?
        .map_err(Error::from_status)?;
    let mut incoming = response.into_inner();
    let first = timeout(limit, incoming.message())
        .await
        .map_err(|_| Error::TimedOut("Welcome"))?
        .map_err(Error::from_status)?
        .ok_or(Error::NoWelcome)?;
    let welcome = convert::welcome(&first)?;
    let offered = welcome.term;
    shared.take_term(offered).map_err(|seen| Error::OldTerm { seen, offered })?;
    Ok(Connection { welcome, incoming, out })
}

/// One HTTP/2 connection over TLS. It does not come back by itself: that is the driver's work.
async fn channel(
    hub: &HubAddress,
    tls: Arc<ClientConfig>,
    limit: Duration,
) -> Result<Channel, Error> {
    let stream = connect(hub, tls, limit).await?;
    let address = |error: &dyn std::error::Error| Error::Address(error.to_string());
    // TLS is ours, so the endpoint must believe that there is none.
    let endpoint = Endpoint::from_shared(format!("http://{}", authority(hub)))
        .map_err(|error| address(&error))?
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    let mut stream = Some(TokioIo::new(stream));
    let once = tower::service_fn(move |_| {
        let stream = stream.take();
        async move { stream.ok_or_else(|| io::Error::other("the connection was lost")) }
    });
    timeout(limit, endpoint.connect_with_connector(once))
        .await
        .map_err(|_| Error::TimedOut("HTTP/2"))?
        .map_err(Error::from_transport)
}

async fn connect(
    hub: &HubAddress,
    tls: Arc<ClientConfig>,
    limit: Duration,
) -> Result<TlsStream<TcpStream>, Error> {
    let name = ServerName::try_from(hub.server_name.clone())
        .map_err(|error| Error::Address(error.to_string()))?;
    let tcp = timeout(limit, TcpStream::connect((hub.host.as_str(), hub.port)))
        .await
        .map_err(|_| Error::TimedOut("TCP"))?
        .map_err(Error::Tcp)?;
    // Without it small messages wait for each other; a socket that refuses is of no harm.
    drop(tcp.set_nodelay(true));
    timeout(limit, TlsConnector::from(tls).connect(name, tcp))
        .await
        .map_err(|_| Error::TimedOut("TLS"))?
        .map_err(Error::Tls)
}

/// The hub's name as it stands in requests.
fn authority(hub: &HubAddress) -> String {
    let HubAddress { server_name, port, host: _ } = hub;
    if server_name.contains(':') {
        format!("[{server_name}]:{port}")
    } else {
        format!("{server_name}:{port}")
    }
}
