//! A hub on loopback and its certificates.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rustls::{ClientConfig, ServerConfig};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use wavelift_agent::link as agent;
use wavelift_core::{
    fence::Term,
    ids::{ClusterName, Uid},
};
use wavelift_runtime::{
    pki::{
        AgentCertificateRequest, Ca, PrivateKey, RequestedKey, Validity, issue_agent_certificate,
    },
    tls::{self, Material},
};

use crate::link::{
    Admission, Denied, LeaderState, LinkEvent, Metrics, Registry, Server, SessionId, Settings,
    ca::Authorities, serving,
};

pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const TERM: Term = Term(3);

/// A hub that listens.
pub(super) struct Hub {
    pub(super) address: SocketAddr,
    pub(super) registry: Registry,
    pub(super) events: mpsc::Receiver<LinkEvent>,
    pub(super) metrics: Metrics,
    pub(super) leader: watch::Sender<LeaderState>,
    pub(super) tls: watch::Sender<Arc<ServerConfig>>,
    pub(super) authorities: Authorities,
    pub(super) shutdown: CancellationToken,
    pub(super) served: JoinHandle<()>,
    clusters: Arc<Clusters>,
}

/// The ManagedClusters: names and uids.
#[derive(Debug, Default)]
struct Clusters(Mutex<BTreeMap<ClusterName, Uid>>);

impl Admission for Clusters {
    async fn admit(&self, cluster: &ClusterName, uid: &Uid) -> Result<(), Denied> {
        match self.0.lock().get(cluster) {
            None => Err(Denied::UnknownCluster),
            Some(expected) if expected != uid => {
                Err(Denied::OtherUid { expected: expected.clone() })
            }
            Some(_) => Ok(()),
        }
    }
}

/// Settings that repeat and notice fast, in tests that wait for repetition and silence.
pub(super) fn quick() -> Settings {
    Settings {
        heartbeat_interval: Duration::from_millis(100),
        status_repeat: Duration::from_millis(20),
        ..Settings::default()
    }
}

impl Hub {
    pub(super) async fn start(settings: Settings) -> Self {
        tls::install_crypto();
        let authorities = Authorities::generate().unwrap();
        let config = server_config(&authorities);
        let (tls, current) = watch::channel(config);
        let (leader, leading) = watch::channel(LeaderState { term: Some(TERM) });
        let metrics = Metrics::register(&prometheus::Registry::new()).unwrap();
        let clusters = Arc::new(Clusters::default());
        let (server, registry, events) =
            Server::new(settings, Arc::clone(&clusters), leading, current, metrics.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(server.serve(listener, shutdown.clone()));
        Self {
            address,
            registry,
            events,
            metrics,
            leader,
            tls,
            authorities,
            shutdown,
            served,
            clusters,
        }
    }

    /// Makes a ManagedCluster of this name, whose uid is `uid-of-<name>`.
    pub(super) fn import(&self, name: &str) -> ClusterName {
        let cluster = cluster(name);
        self.clusters.0.lock().insert(cluster.clone(), uid(name));
        cluster
    }

    /// What an agent of this cluster connects with.
    pub(super) fn client(&self, name: &str) -> Arc<ClientConfig> {
        let certificate = agent_material(&self.authorities.agents, name, &uid(name), valid());
        self.trusting(certificate)
    }

    /// A client that trusts this hub and shows the given certificate.
    pub(super) fn trusting(&self, material: Material) -> Arc<ClientConfig> {
        let ca = self.authorities.servers.certificate_pem().as_bytes().to_vec();
        tls::client_config(&Material { ca, ..material }).unwrap()
    }

    pub(super) fn agent_settings(&self, name: &str) -> agent::Settings {
        let hub = agent::HubAddress {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            server_name: "localhost".to_owned(),
        };
        let mut settings = agent::Settings::new(hub, cluster(name), "0.1.0", 1);
        settings.backoff =
            agent::Backoff { base: Duration::from_millis(5), cap: Duration::from_millis(50) };
        settings
    }

    /// Starts a real agent's link.
    pub(super) fn agent(&self, name: &str) -> Agent {
        Agent::start(self.agent_settings(name), self.client(name))
    }

    /// The next event that `pick` picks; those before it are passed over.
    pub(super) async fn event<T>(&mut self, mut pick: impl FnMut(LinkEvent) -> Option<T>) -> T {
        loop {
            let event = self.events.recv().await.expect("the hub has ended");
            if let Some(picked) = pick(event) {
                return picked;
            }
        }
    }

    /// Waits until `cluster` has a session, and which.
    pub(super) async fn connected(&mut self, cluster: &ClusterName) -> SessionId {
        self.event(|event| match event {
            LinkEvent::Connected { cluster: found, session, .. } if found == *cluster => {
                Some(session)
            }
            _ => None,
        })
        .await
    }

    /// Waits for the next refusal: its kind, after a look at the metric.
    pub(super) async fn refused(&mut self) -> &'static str {
        let refused = self
            .event(|event| match event {
                LinkEvent::Refused(refused) => Some(refused),
                _ => None,
            })
            .await;
        assert!(self.metrics.refusals(refused.kind) > 0, "{} is not counted", refused.kind);
        assert!(!refused.message.is_empty());
        refused.kind
    }

    /// The hub still takes a good agent and hears it.
    pub(super) async fn still_serves(&mut self) {
        let good = self.import("good");
        let agent = self.agent("good");
        self.connected(&good).await;
        let digest = digest(7);
        agent.link.send(agent::AgentReport::InventoryDigest(digest.clone())).await.unwrap();
        let heard = self
            .event(|event| match event {
                LinkEvent::InventoryDigest { cluster, digest } => Some((cluster, digest)),
                _ => None,
            })
            .await;
        assert_eq!(heard, (good, digest));
    }
}

/// A real agent's link.
pub(super) struct Agent {
    pub(super) link: agent::LinkHandle,
    pub(super) commands: mpsc::Receiver<agent::HubCommand>,
    pub(super) tls: watch::Sender<Arc<ClientConfig>>,
    pub(super) metrics: prometheus::Registry,
    pub(super) shutdown: CancellationToken,
}

impl Agent {
    pub(super) fn start(settings: agent::Settings, config: Arc<ClientConfig>) -> Self {
        let metrics = prometheus::Registry::new();
        let registered = agent::Metrics::register(&metrics).unwrap();
        let (tls, current) = watch::channel(config);
        let shutdown = CancellationToken::new();
        let (link, commands) = agent::spawn(settings, current, registered, shutdown.clone());
        Self { link, commands, tls, metrics, shutdown }
    }

    /// The next command that is not the beginning of a session.
    pub(super) async fn command(&mut self) -> agent::HubCommand {
        loop {
            let command = self.commands.recv().await.expect("the link has ended");
            if !matches!(command, agent::HubCommand::Connected(_)) {
                return command;
            }
        }
    }

    /// The value of a counter with one label.
    pub(super) fn counter(&self, name: &str, value: &str) -> f64 {
        let families = self.metrics.gather();
        let metrics = families.iter().filter(|family| family.name() == name);
        metrics
            .flat_map(prometheus::proto::MetricFamily::get_metric)
            .filter(|metric| metric.get_label().iter().any(|label| label.value() == value))
            .map(|metric| metric.get_counter().get_value())
            .sum()
    }
}

pub(super) fn cluster(name: &str) -> ClusterName {
    ClusterName::try_from(name).unwrap()
}

pub(super) fn uid(name: &str) -> Uid {
    Uid::try_from(format!("uid-of-{name}")).unwrap()
}

pub(super) fn digest(seed: u8) -> String {
    format!("sha256:{}", hex::encode([seed; 32]))
}

pub(super) fn valid() -> Validity {
    Validity::from_now(HOUR)
}

/// From `start` to `end` seconds after now.
pub(super) fn between(start: i64, end: i64) -> Validity {
    let now = Timestamp::now();
    Validity {
        not_before: now + SignedDuration::from_secs(start),
        not_after: now + SignedDuration::from_secs(end),
    }
}

pub(super) fn server_config(authorities: &Authorities) -> Arc<ServerConfig> {
    serving::server_config(authorities, &["localhost".to_owned()], HOUR).unwrap()
}

/// A certificate of our form and its key. The authority to trust is for the caller to set.
pub(super) fn agent_material(ca: &Ca, name: &str, uid: &Uid, validity: Validity) -> Material {
    let key = PrivateKey::generate().unwrap();
    let request = AgentCertificateRequest {
        cluster: cluster(name),
        uid: uid.clone(),
        key: RequestedKey::PublicKeyPem(key.public_key_pem()),
    };
    let issued = issue_agent_certificate(ca, &request, validity).unwrap();
    Material {
        certificates: issued.certificate_pem.into_bytes(),
        key: key.key_pem().into_bytes(),
        ca: Vec::new(),
    }
}
