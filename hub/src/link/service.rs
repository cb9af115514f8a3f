//! Opens sessions: everything that must hold before an agent is listened to.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{Instant, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, info};
use wavelift_core::{
    fence::Term,
    ids::{ClusterName, Uid},
};
use wavelift_proto::v1::{AgentMessage, HubMessage, agent_link_server::AgentLink};
use wavelift_runtime::identity::{self, AgentIdentity};

use super::{
    convert::{self, Claim},
    event::{LinkEvent, Refused},
    metrics::Metrics,
    parts::Room,
    queries::Queries,
    rate::Bucket,
    refusal::{Denied, Refusal},
    registry::{Entry, Registry},
    session::Session,
    settings::{LeaderState, Settings},
};

/// How long the rest of the hub may take to say whether a cluster is admitted.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a cluster may have a session. The hub answers from its ManagedClusters.
pub trait Admission: Send + Sync + 'static {
    /// Admits the cluster of this name whose certificate was issued to this uid.
    fn admit(
        &self,
        cluster: &ClusterName,
        uid: &Uid,
    ) -> impl Future<Output = Result<(), Denied>> + Send;
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared<A> {
    pub(super) settings: Settings,
    pub(super) admission: Arc<A>,
    pub(super) leader: watch::Receiver<LeaderState>,
    pub(super) tls: watch::Receiver<Arc<ServerConfig>>,
    pub(super) metrics: Metrics,
    pub(super) registry: Registry,
    pub(super) events: mpsc::Sender<LinkEvent>,
    pub(super) handshakes: Arc<Semaphore>,
    pub(super) connections: Arc<Semaphore>,
    pub(super) uploads: Room,
    pub(super) draining: CancellationToken,
    /// Refusals that are logged; the metric counts all.
    pub(super) log: Mutex<Bucket>,
}

/// Where a connection stands, told to the task that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No session was opened yet.
    Fresh,
    /// A session is open.
    InSession,
    /// The session has ended or was refused.
    Over,
}

/// The service of one connection.
#[derive(Debug)]
pub(super) struct Service<A> {
    pub(super) shared: Arc<Shared<A>>,
    pub(super) remote: SocketAddr,
    pub(super) identity: Result<AgentIdentity, identity::Error>,
    pub(super) phase: Arc<watch::Sender<Phase>>,
}

// === impl Shared ===

impl<A> Shared<A> {
    /// Counts a refusal, tells the rest of the hub, and logs it within reason.
    pub(super) fn refuse(
        &self,
        refusal: &Refusal,
        remote: SocketAddr,
        cluster: Option<&ClusterName>,
    ) {
        let (kind, message) = (refusal.kind(), refusal.to_string());
        self.metrics.refusals.with_label_values(&[kind]).inc();
        let shown = cluster.map_or("unknown", ClusterName::as_str);
        if *refusal != Refusal::HandshakeAborted && self.log.lock().take(Instant::now()) {
            info!(kind, cluster = shown, %remote, "refused: {message}");
        } else {
            debug!(kind, cluster = shown, %remote, "refused: {message}");
        }
        let refused = Refused { cluster: cluster.cloned(), kind, message };
        // Whoever attacks must not be able to fill the queue for good agents.
        drop(self.events.try_send(LinkEvent::Refused(refused)));
    }
}

// === impl Service ===

#[tonic::async_trait]
impl<A: Admission> AgentLink for Service<A> {
    type SessionStream = ReceiverStream<Result<HubMessage, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<AgentMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        match self.open(request.into_inner()).await {
            Ok(outgoing) => Ok(Response::new(ReceiverStream::new(outgoing))),
            Err(refusal) => {
                let cluster = self.identity.as_ref().ok().map(|identity| &identity.cluster);
                self.shared.refuse(&refusal, self.remote, cluster);
                self.phase.send_replace(Phase::Over);
                Err(refusal.status())
            }
        }
    }
}

impl<A: Admission> Service<A> {
    async fn open(
        &self,
        mut incoming: Streaming<AgentMessage>,
    ) -> Result<mpsc::Receiver<Result<HubMessage, Status>>, Refusal> {
        let shared = &self.shared;
        let identity = self.identity.as_ref().map_err(|error| Refusal::Identity(error.clone()))?;
        if shared.draining.is_cancelled() {
            return Err(Refusal::Draining);
        }
        let term = shared.leader.borrow().term.ok_or(Refusal::NotLeader)?;
        let first = timeout(shared.settings.hello_timeout, incoming.message());
        let first = match first.await {
            Ok(Ok(Some(message))) => message,
            Ok(Err(status)) => {
                let limits = &shared.settings.limits;
                return Err(Refusal::from_stream(&status, limits).unwrap_or(Refusal::NoHello));
            }
            Ok(Ok(None)) | Err(_) => return Err(Refusal::NoHello),
        };
        let claim = convert::claim(first)?;
        judge(&claim, identity, term)?;
        let admitted = shared.admission.admit(&identity.cluster, &identity.uid);
        timeout(ADMISSION_TIMEOUT, admitted)
            .await
            .map_err(|_| Denied::Unavailable("no answer in time".to_owned()))??;
        self.start(incoming, identity, claim, term)
    }

    /// Registers the session and lets it run. Nothing waits between the two, so a caller that
    /// goes away here leaves nothing behind.
    fn start(
        &self,
        incoming: Streaming<AgentMessage>,
        identity: &AgentIdentity,
        claim: Claim,
        term: Term,
    ) -> Result<mpsc::Receiver<Result<HubMessage, Status>>, Refusal> {
        let shared = &self.shared;
        let limits = &shared.settings.limits;
        let id = shared.registry.next_id();
        // One place beyond the commands is kept for the Welcome, one for the stream's last word.
        let (out, outgoing) = mpsc::channel(limits.commands_max + 2);
        let full = |_| Refusal::TooManySessions;
        let last = out.clone().try_reserve_owned().map_err(full)?;
        out.try_reserve().map_err(|_| Refusal::TooManySessions)?.send(Ok(convert::welcome(
            term,
            id,
            &shared.settings,
        )));
        let (closing, closed) = watch::channel(None);
        let queries = Queries::new(limits.queries_max);
        let entry = Entry {
            id,
            term,
            hello: claim.hello.clone(),
            since: Timestamp::now(),
            remote: self.remote,
            out: out.clone(),
            closing,
            queries: Arc::clone(&queries),
        };
        shared.registry.register(identity.cluster.clone(), entry)?;
        self.phase.send_replace(Phase::InSession);
        let session = Session {
            shared: Arc::clone(shared),
            phase: Arc::clone(&self.phase),
            remote: self.remote,
            identity: identity.clone(),
            id,
            term,
            hello: claim.hello,
            incoming,
            out,
            last,
            closed,
            queries,
        };
        tokio::spawn(session.run());
        Ok(outgoing)
    }
}

/// What a Hello must fulfil, whoever the cluster is.
fn judge(claim: &Claim, identity: &AgentIdentity, term: Term) -> Result<(), Refusal> {
    if claim.cluster != identity.cluster.as_str() {
        return Err(Refusal::OtherCluster {
            claimed: claim.cluster.clone(),
            certified: identity.cluster.clone(),
        });
    }
    let (hub_min, hub_max) = (convert::PROTOCOL_MIN, convert::PROTOCOL_MAX);
    let (min, max) = (claim.protocol_min, claim.protocol_max);
    if min > hub_max || max < hub_min || min > max {
        return Err(Refusal::Protocol { min, max, hub_min, hub_max });
    }
    if claim.highest_term > term {
        return Err(Refusal::OldTerm { seen: claim.highest_term, term });
    }
    Ok(())
}
