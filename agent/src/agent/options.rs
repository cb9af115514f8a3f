//! What an agent is made of, and how long things may take.

use std::{fmt, sync::Arc};

use jiff::SignedDuration;
use kube::Client;
use rustls::ClientConfig;
use tokio::sync::watch;
use wavelift_core::ids::{ClusterName, Namespace};
use wavelift_runtime::{Clock, admin::Readiness, metrics};

use crate::{
    catalogs::{CatalogReader, Shared},
    drivers::olm_v0,
    pins::Serving,
    upgrade::{Settings, Switch},
};

/// What an agent is made of.
pub struct AgentOptions {
    /// The cluster's API server.
    pub client: Client,
    /// The cluster's name on the hub.
    pub cluster: ClusterName,
    /// The agent's namespace, where its ClusterUpgrades are.
    pub namespace: Namespace,
    /// The clock that upgrades go by.
    pub clock: Clock,
    /// The hub; `None` for a cluster on its own.
    pub hub: Option<HubOptions>,
    /// What the catalogs serve.
    pub catalogs: Arc<dyn CatalogReader>,
    /// How long things may take.
    pub timings: Timings,
    /// Where metrics are registered: one registry an agent.
    pub metrics: metrics::Metrics,
    /// What must hold for the process to be ready.
    pub readiness: Readiness,
    /// The namespaces whose catalogs every other one sees.
    pub global_catalog_namespaces: Vec<String>,
    /// Whether remedies that upgrades name are taken.
    pub remedies: Switch,
    /// Where catalogs are served that are pinned for a step; `None` where none can be.
    pub pinned_catalogs: Option<Serving>,
}

/// Where the hub is and how to be known there.
#[derive(Debug, Clone)]
pub struct HubOptions {
    /// A DNS name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The name that the hub's certificate must bear.
    pub server_name: String,
    /// The agent's certificate and the hub's CA; may change at any time.
    pub tls: watch::Receiver<Arc<ClientConfig>>,
}

/// How long things may take; all of it in the clock's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// The driver's.
    pub driver: olm_v0::Timings,
    /// From one check of a held cluster to the next.
    pub recheck: SignedDuration,
    /// How long a changed plan must stay changed before it counts.
    pub settle: SignedDuration,
    /// From one write of a mere percent to the next.
    pub percent_period: SignedDuration,
    /// From one announcement of the inventory to the next, until the hub says otherwise.
    pub inventory_period: SignedDuration,
    /// How long the first announcement waits for catalogs that have not been read before: without
    /// them the cluster would have no plan until the next one.
    pub first_readings: SignedDuration,
}

// === impl AgentOptions ===

impl AgentOptions {
    /// An agent with no hub that knows no catalog's content, in namespace `wavelift-agent`.
    pub fn new(client: Client, cluster: ClusterName, clock: Clock) -> Self {
        let settings = Settings::default();
        Self {
            client,
            cluster,
            namespace: Namespace::try_from("wavelift-agent").expect("a label"),
            clock,
            hub: None,
            catalogs: Arc::new(Shared::new()),
            timings: Timings::default(),
            metrics: metrics::Metrics::new(),
            readiness: Readiness::new(),
            global_catalog_namespaces: settings.global_namespaces,
            remedies: settings.remedies,
            pinned_catalogs: None,
        }
    }
}

// === impl Timings ===

impl Default for Timings {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            driver: settings.driver,
            recheck: settings.recheck,
            settle: settings.settle,
            percent_period: settings.percent_period,
            inventory_period: SignedDuration::from_mins(1),
            first_readings: SignedDuration::from_secs(30),
        }
    }
}

impl fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}
