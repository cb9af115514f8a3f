//! Accepts connections: TCP, TLS, then HTTP/2 with one stream.
//!
//! Each connection is served by hyper directly and not by a server over all of them, so that the
//! service of a connection knows its peer from the start, the buffers can be held small for tens
//! of thousands of agents, and one connection can be closed without the others.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper::server::conn::http2;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use wavelift_proto::v1::agent_link_server::AgentLinkServer;
use wavelift_runtime::identity::{self, AgentIdentity};

use super::{
    event::LinkEvent,
    metrics::Metrics,
    parts::Room,
    rate::Bucket,
    refusal::Refusal,
    registry::Registry,
    service::{Admission, Phase, Service, Shared},
    settings::{LeaderState, Settings},
};

/// What a session may send ahead of being read. An agent's messages are small and few; what this
/// costs is bandwidth of catalogs over long distances.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// With one stream this window is never filled, but h2 derives from it how many small messages
/// may wait unread before it breaks the connection (some 250 bytes of half of it for each). It
/// must let `Limits::messages_burst` through, so that a flood meets our limit and has its name.
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// What waits to be sent on one connection.
const SEND_BUFFER_BYTES: usize = 64 << 10;
const HEADER_BYTES_MAX: u32 = 8 << 10;
/// A session is one stream, and a connection is for one session.
const STREAMS_MAX: u32 = 1;
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Refusals logged at once, and a second in the long run.
const LOG_BURST: u32 = 50;
const LOG_PER_SECOND: u32 = 5;

/// The hub's end of the link, ready to accept agents.
#[derive(Debug)]
pub struct Server<A> {
    shared: Arc<Shared<A>>,
}

impl<A: Admission> Server<A> {
    /// Makes the server, the registry of its sessions, and the stream of what agents tell.
    ///
    /// `tls` is looked at for each new connection, so new certificates need no restart. `leader`
    /// must be held open by its sender: a hub without one does not lead.
    pub fn new(
        settings: Settings,
        admission: Arc<A>,
        leader: watch::Receiver<LeaderState>,
        tls: watch::Receiver<Arc<ServerConfig>>,
        metrics: Metrics,
    ) -> (Self, Registry, mpsc::Receiver<LinkEvent>) {
        let limits = &settings.limits;
        let (events, received) = mpsc::channel(limits.events_max);
        let registry = Registry::new(limits.clone(), metrics.sessions.clone());
        let shared = Shared {
            handshakes: Arc::new(Semaphore::new(limits.handshakes_max)),
            connections: Arc::new(Semaphore::new(limits.connections_max)),
            uploads: Room::new(limits.uploads_bytes_max),
            draining: CancellationToken::new(),
            log: Mutex::new(Bucket::new(LOG_BURST, LOG_PER_SECOND, Instant::now())),
            registry: registry.clone(),
            settings,
            admission,
            leader,
            tls,
            metrics,
            events,
        };
        (Self { shared: Arc::new(shared) }, registry, received)
    }

    /// Accepts agents until `shutdown`, then drains the sessions and returns when they have gone
    /// or their grace is over.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let Self { shared } = self;
        let mut connections = JoinSet::new();
        tokio::select! {
            () = accept(&shared, &listener, &mut connections) => {}
            () = shutdown.cancelled() => {}
        }
        drop(listener);
        shared.draining.cancel();
        shared.registry.drain(shared.settings.shutdown_hint);
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(shared.settings.closing_grace * 2, all).await.is_err() {
            debug!("some agents did not leave in time");
        }
    }
}

/// Accepts connections for ever.
async fn accept<A: Admission>(
    shared: &Arc<Shared<A>>,
    listener: &TcpListener,
    connections: &mut JoinSet<()>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = next(shared, listener) => accepted,
            _ = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((tcp, remote, slot)) => {
                connections.spawn(connection(Arc::clone(shared), tcp, remote, slot));
            }
            Err(error) => {
                warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The next connection, once there is room for its handshake.
async fn next<A>(
    shared: &Shared<A>,
    listener: &TcpListener,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(&shared.handshakes).acquire_owned().await.map_err(io::Error::other)?;
    let (tcp, remote) = listener.accept().await?;
    Ok((tcp, remote, slot))
}

async fn connection<A: Admission>(
    shared: Arc<Shared<A>>,
    tcp: TcpStream,
    remote: SocketAddr,
    slot: OwnedSemaphorePermit,
) {
    let tls = match handshake(&shared, tcp).await {
        Ok(tls) => tls,
        Err(refusal) => return shared.refuse(&refusal, remote, None),
    };
    drop(slot);
    let Ok(_place) = Arc::clone(&shared.connections).try_acquire_owned() else {
        return shared.refuse(&Refusal::TooManyConnections, remote, None);
    };
    let identity = identify(&tls);
    serve_connection(shared, tls, remote, identity).await;
}

async fn handshake<A>(shared: &Shared<A>, tcp: TcpStream) -> Result<TlsStream<TcpStream>, Refusal> {
    // Without it small messages wait for each other; a socket that refuses is of no harm.
    drop(tcp.set_nodelay(true));
    let config = Arc::clone(&shared.tls.borrow());
    timeout(shared.settings.handshake_timeout, TlsAcceptor::from(config).accept(tcp))
        .await
        .map_err(|_| Refusal::HandshakeTimeout)?
        .map_err(|error| Refusal::from_handshake(&error))
}

/// Reads who the peer is. A mistake is told to the agent later, as the answer to its session.
fn identify(tls: &TlsStream<TcpStream>) -> Result<AgentIdentity, identity::Error> {
    let (_, connection) = tls.get_ref();
    let leaf = connection.peer_certificates().and_then(<[_]>::first);
    AgentIdentity::from_leaf(leaf.ok_or(identity::Error::Malformed)?, Timestamp::now())
}

async fn serve_connection<A: Admission>(
    shared: Arc<Shared<A>>,
    tls: TlsStream<TcpStream>,
    remote: SocketAddr,
    identity: Result<AgentIdentity, identity::Error>,
) {
    let (phase, phases) = watch::channel(Phase::Fresh);
    let settings = shared.settings.clone();
    let draining = shared.draining.clone();
    let service = Service { shared, remote, identity, phase: Arc::new(phase) };
    let service =
        AgentLinkServer::new(service).max_decoding_message_size(settings.limits.message_bytes_max);
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    let mut served =
        pin!(http.serve_connection(TokioIo::new(tls), TowerToHyperService::new(service)));
    let closing = tokio::select! {
        result = served.as_mut() => result,
        () = over(phases, &settings, draining) => {
            served.as_mut().graceful_shutdown();
            timeout(settings.closing_grace, served).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = closing {
        debug!(%remote, %error, "connection broke");
    }
}

/// Waits until the connection is of no more use: its session has ended, or none came in time.
async fn over(
    mut phases: watch::Receiver<Phase>,
    settings: &Settings,
    draining: CancellationToken,
) {
    let opened = phases.wait_for(|phase| *phase != Phase::Fresh);
    // The Hello has its own limit; this one is for a peer that opens no stream at all.
    let opened = tokio::select! {
        opened = timeout(settings.hello_timeout * 2, opened) => opened.is_ok_and(|it| it.is_ok()),
        () = draining.cancelled() => false,
    };
    if opened {
        // Fails only with the service itself gone, and then the connection ends by itself.
        drop(phases.wait_for(|phase| *phase == Phase::Over).await);
    }
}
