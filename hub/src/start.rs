//! Puts a hub together and takes it apart again, in order.

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kube::{Api, Client, api::ListParams, core::DeserializeGuard};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use wavelift_api::FleetUpgrade;
use wavelift_core::{
    fence::Term,
    ids::{ClusterName, Uid},
};
use wavelift_runtime::{
    Clock,
    admin::{self, Readiness},
    lease::{self, Elector},
    metrics,
    pki::{self, AgentCertificateRequest, PrivateKey, RequestedKey, Validity},
    telemetry::chain,
    tls::{self, Material},
};
use wavelift_sources::BundleImages;

use crate::{
    campaign::{self, Leading},
    cluster::Admissions,
    http,
    leader::Leader,
    link::{
        self, LeaderState,
        ca::{self, Authorities, CaStore},
        serving,
    },
    metrics::{Metrics, Writes},
    view::Board,
};

/// The lease that replicas compete for.
const LEASE: &str = "wavelift-hub";
/// How long the link's server certificate lasts; it is renewed in time.
const SERVER_LIFETIME: Duration = Duration::from_hours(30 * 24);
/// How long an agent's certificate lasts.
const AGENT_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// Why a hub did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its authorities are not to be had.
    #[error("failed to have the certificate authorities")]
    Authorities(#[from] ca::Error),
    /// Its own certificate is not to be had.
    #[error("failed to have the link's server certificate")]
    Serving(#[from] serving::Error),
    /// The lease's settings contradict each other.
    #[error("failed to compete for the lease")]
    Lease(#[from] lease::Error),
    /// An address could not be bound.
    #[error("failed to listen")]
    Listen(#[from] admin::Error),
    /// An address that was bound is not to be had.
    #[error("failed to read the address that was bound")]
    Address(#[source] std::io::Error),
    /// The metrics could not be registered.
    #[error("failed to register the metrics")]
    Metrics(#[from] metrics::Error),
    /// The link's metrics could not be registered.
    #[error("failed to register the link's metrics")]
    LinkMetrics(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a hub is made of.
#[derive(Clone)]
pub struct HubOptions {
    /// The hub cluster's API server.
    pub client: Client,
    /// The hub's own namespace: its lease and its authorities' Secrets.
    pub namespace: String,
    /// Who this process is: unique to it.
    pub identity: String,
    /// The clock of all upgrade times.
    pub clock: Clock,
    /// Where agents connect.
    pub link_address: SocketAddr,
    /// Where people and Prometheus connect.
    pub http_address: SocketAddr,
    /// Names and addresses in the link's server certificate.
    pub server_names: Vec<String>,
    /// How the link behaves.
    pub link: link::Settings,
    /// The lease's times.
    pub lease: LeaseTimes,
    /// How campaigns are run.
    pub campaigns: campaign::Settings,
    /// Bounds of the HTTP API.
    pub http: http::Settings,
    /// Where manifests come from that catalogs do not carry: bundle images are fetched with this,
    /// and not at all without it.
    pub images: Option<BundleImages>,
}

/// The times of the lease, all real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// For how long after each renewal nobody else may take it.
    pub duration: Duration,
    /// For how long after its last renewal a leader believes itself to be one.
    pub renew_deadline: Duration,
    /// How often to renew, and how often a standby looks.
    pub retry: Duration,
}

/// A hub that runs.
#[derive(Debug)]
pub struct Hub {
    link_address: SocketAddr,
    http_address: SocketAddr,
    authorities: Arc<Authorities>,
    admissions: Admissions,
    board: Board,
    sessions: link::Registry,
    leader: watch::Receiver<LeaderState>,
    registry: metrics::Metrics,
    metrics: Metrics,
    task: JoinHandle<()>,
}

// === impl Error ===

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Authorities(error) => error.kind(),
            Self::Serving(error) => error.kind(),
            Self::Lease(error) => error.kind(),
            Self::Listen(error) => error.kind(),
            Self::Address(_) => "address",
            Self::Metrics(error) => error.kind(),
            Self::LinkMetrics(_) => "link_metrics",
        }
    }
}

// === impl HubOptions ===

impl HubOptions {
    /// A hub in `namespace` with the usual settings.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            identity: lease::unique_identity(LEASE),
            clock: Clock::real(),
            link_address: SocketAddr::from(([0, 0, 0, 0], 7_443)),
            http_address: SocketAddr::from(([0, 0, 0, 0], 8_080)),
            server_names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            link: link::Settings::default(),
            lease: LeaseTimes::default(),
            campaigns: campaign::Settings::default(),
            http: http::Settings::default(),
            images: None,
        }
    }

    /// Upgrade times by another clock, and what is bounded by them with it.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.campaigns = campaign::Settings::for_factor(clock.factor());
        self.clock = clock;
        self
    }

    fn lease(&self) -> lease::Settings {
        let mut settings = lease::Settings::new(&self.namespace, LEASE, self.identity.clone());
        settings.duration = self.lease.duration;
        settings.renew_deadline = self.lease.renew_deadline;
        settings.retry = self.lease.retry;
        settings.request_timeout = settings.request_timeout.min(self.lease.renew_deadline / 2);
        settings
    }

    /// A write must have ended before anybody else can lead.
    fn campaigns(&self) -> campaign::Settings {
        let mut settings = self.campaigns.clone();
        let gap = self.lease.duration.saturating_sub(self.lease.renew_deadline);
        settings.call_timeout = settings.call_timeout.min(gap * 4 / 5);
        settings
    }
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl std::fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubOptions")
            .field("namespace", &self.namespace)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

// === impl Hub ===

impl Hub {
    /// Starts a hub. It runs until `shutdown`, see [`Hub::join`].
    pub async fn start(options: HubOptions, shutdown: CancellationToken) -> Result<Self, Error> {
        tls::install_crypto();
        let registry = metrics::Metrics::new();
        let metrics = Metrics::register(&registry)?;
        let link_metrics = link::Metrics::register(registry.registry())
            .map_err(|error| Error::LinkMetrics(Box::new(error)))?;
        let authorities = Arc::new(
            CaStore::new(options.client.clone(), &options.namespace).load_or_create().await?,
        );
        let ending = Ending::default();
        let certificates = serving::renewed(
            Arc::clone(&authorities),
            options.server_names.clone(),
            SERVER_LIFETIME,
            ending.link.clone(),
        )?;
        let link_listener = admin::bind(options.link_address).await?;
        let http_listener = admin::bind(options.http_address).await?;
        let (link_address, http_address) = (
            link_listener.local_addr().map_err(Error::Address)?,
            http_listener.local_addr().map_err(Error::Address)?,
        );
        let (leader, leader_seen) = watch::channel(LeaderState { term: None });
        let admissions = Admissions::default();
        let (server, sessions, events) = link::Server::new(
            options.link.clone(),
            Arc::new(admissions.clone()),
            leader_seen.clone(),
            certificates,
            link_metrics,
        );
        let mut lease = options.lease();
        lease.floor = highest_term(&options.client).await;
        let (elector, leadership) = Elector::new(options.client.clone(), lease)?;
        let (readiness, board) = (Readiness::new(), Board::new());
        let leading =
            Leading { leader, readiness: readiness.part("leader", "who leads is not known yet") };
        let router = http::router(http::AppState {
            board: board.clone(),
            clock: options.clock.clone(),
            leader: leader_seen.clone(),
            live: Arc::new(sessions.clone()),
            admin: admin::router(registry.clone(), readiness),
            settings: options.http.clone(),
        });
        let campaigns = Leader {
            client: options.client.clone(),
            clock: options.clock.clone(),
            identity: options.identity.clone(),
            settings: options.campaigns(),
            metrics: metrics.clone(),
            board: board.clone(),
            sessions: sessions.clone(),
            admissions: admissions.clone(),
            leading,
            images: options.images.clone(),
            drain: options.link.shutdown_hint,
        };
        let tasks = Tasks {
            elector: tokio::spawn(elector.run(ending.elector.clone())),
            campaigns: tokio::spawn(campaigns.run(leadership, events, shutdown.clone())),
            link: tokio::spawn(server.serve(link_listener, ending.link.clone())),
            http: tokio::spawn(admin::serve(http_listener, router, ending.http.clone())),
        };
        info!(%link_address, %http_address, identity = options.identity, "hub");
        let task = tokio::spawn(tasks.supervise(shutdown, ending));
        Ok(Self {
            link_address,
            http_address,
            authorities,
            admissions,
            board,
            sessions,
            leader: leader_seen,
            registry,
            metrics,
            task,
        })
    }

    /// Where agents connect.
    pub fn link_address(&self) -> SocketAddr {
        self.link_address
    }

    /// Where people connect.
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// The authorities of agents' and servers' certificates.
    pub fn authorities(&self) -> &Arc<Authorities> {
        &self.authorities
    }

    /// What is shown; empty while standing by.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The agents' sessions.
    pub fn sessions(&self) -> &link::Registry {
        &self.sessions
    }

    /// Whether this hub leads.
    pub fn leader(&self) -> watch::Receiver<LeaderState> {
        self.leader.clone()
    }

    /// Everything that is counted.
    pub fn metrics(&self) -> &metrics::Metrics {
        &self.registry
    }

    /// Writes of this process that went through.
    pub fn writes(&self) -> Writes {
        self.metrics.writes()
    }

    /// Clusters that may have a session, with their uids; empty while standing by.
    pub fn accepted(&self) -> std::collections::BTreeMap<ClusterName, Uid> {
        self.admissions.accepted()
    }

    /// A key and a certificate for the agent of a cluster, and the authority it trusts. Who asks
    /// must be entitled to speak for that cluster.
    pub fn issue_agent(&self, cluster: &ClusterName, uid: &Uid) -> Result<Material, pki::Error> {
        issue_agent(&self.authorities, cluster, uid)
    }

    /// Waits until the hub has ended after its shutdown: sessions drained, lease released.
    pub async fn join(self) {
        if let Err(error) = self.task.await {
            warn!(error = %chain(&error), "the hub broke while ending");
        }
    }
}

/// The highest term in any campaign: a lease that was deleted must not begin below it.
async fn highest_term(client: &Client) -> Term {
    let api: Api<DeserializeGuard<FleetUpgrade>> = Api::all(client.clone());
    match api.list(&ListParams::default()).await {
        Ok(list) => {
            let read = list.items.iter().filter_map(|guard| guard.0.as_ref().ok());
            let terms = read.filter_map(|fleet| fleet.status.as_ref()).map(|status| status.term);
            Term(terms.filter_map(|term| u64::try_from(term).ok()).max().unwrap_or(0))
        }
        Err(error) => {
            warn!(error = %chain(&error), "campaigns' terms could not be read");
            Term(0)
        }
    }
}

/// A key and a certificate for the agent of a cluster.
pub fn issue_agent(
    authorities: &Authorities,
    cluster: &ClusterName,
    uid: &Uid,
) -> Result<Material, pki::Error> {
    let key = PrivateKey::generate()?;
    let request = AgentCertificateRequest {
        cluster: cluster.clone(),
        uid: uid.clone(),
        key: RequestedKey::PublicKeyPem(key.public_key_pem()),
    };
    let validity = Validity::from_now(AGENT_LIFETIME);
    let issued = pki::issue_agent_certificate(&authorities.agents, &request, validity)?;
    Ok(Material {
        certificates: issued.certificate_pem.into_bytes(),
        key: key.key_pem().into_bytes(),
        ca: authorities.servers.certificate_pem().as_bytes().to_vec(),
    })
}

/// The tokens that end a hub's parts, one after another.
#[derive(Debug, Clone, Default)]
struct Ending {
    link: CancellationToken,
    http: CancellationToken,
    elector: CancellationToken,
}

struct Tasks {
    elector: JoinHandle<()>,
    campaigns: JoinHandle<()>,
    link: JoinHandle<()>,
    http: JoinHandle<Result<(), admin::Error>>,
}

impl Tasks {
    /// Ends the parts in order: first what writes, then what is connected, the lease last.
    async fn supervise(mut self, shutdown: CancellationToken, ending: Ending) {
        tokio::select! {
            () = shutdown.cancelled() => log_broken("campaigns", self.campaigns.await),
            ended = &mut self.campaigns => {
                log_broken("campaigns", ended);
                shutdown.cancel();
            }
        }
        ending.link.cancel();
        ending.http.cancel();
        log_broken("link", self.link.await);
        log_broken("http", self.http.await.map(log_served));
        ending.elector.cancel();
        log_broken("elector", self.elector.await);
        info!("hub ended");
    }
}

fn log_served(served: Result<(), admin::Error>) {
    if let Err(error) = served {
        warn!(error = %chain(&error), "http ended");
    }
}

fn log_broken(part: &str, ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        warn!(part, %error, "a part of the hub broke");
    }
}
