//! The fleet, alive: one hub on an API server of its own, and a simulated cluster with an agent for
//! each script.

mod cluster;
mod hub;

use std::{path::Path, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use wavelift_agent::catalogs::Shared;
use wavelift_catalog::engine::CatalogKey;
use wavelift_hub::{Hub, Writes};
use wavelift_runtime::Clock;
use wavelift_sim::{apiserver, cluster::Operator};

pub use self::cluster::Member;
use crate::{
    cast::Cast,
    kubeconfig::{self, Server},
    scenario::Fault,
    spread::SOURCE,
};

/// The hub's namespace, where the campaign lives too.
pub const NAMESPACE: &str = "wavelift";
/// How far back simulated time begins, so that it never passes real time.
const ORIGIN_DAYS_AGO: i64 = 1_000;

/// One cluster to be.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// Its name.
    pub name: String,
    /// Labels of its ManagedCluster.
    pub labels: Vec<(String, String)>,
    /// Its OpenShift version.
    pub platform: String,
    /// What is installed.
    pub operators: Vec<Operator>,
    /// Seconds until a new Deployment is available, by Deployment.
    pub rollout_seconds: Vec<(String, u32)>,
    /// CSVs whose Deployment never gets available.
    pub never: Vec<String>,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Its own dice.
    pub seed: u64,
}

/// Why a fleet does not come to life.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An API server refused what the fleet needs.
    #[error("cannot set up the simulated API server of {of}")]
    ApiServer {
        /// Whose.
        of: String,
        /// Why.
        #[source]
        source: Box<apiserver::ApiError>,
    },
    /// A socket or a file.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The hub.
    #[error("cannot start the hub")]
    Hub(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An agent's certificate.
    #[error("cannot issue the certificate of {cluster}")]
    Certificate {
        /// Whose.
        cluster: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A living fleet; it ends when it is stopped.
pub struct Fleet {
    hub: Hub,
    server: hub::HubServer,
    members: Vec<Member>,
    clock: Clock,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("members", &self.members.len()).finish_non_exhaustive()
    }
}

impl Fleet {
    /// Brings the clusters of `cast` to life, `factor` times as fast as real time.
    pub async fn start(
        cast: &Cast,
        factor: f64,
        http: std::net::SocketAddr,
    ) -> Result<Self, Error> {
        let (blueprints, catalog) = (&cast.blueprints, &cast.catalog);
        let clock = Clock::scaled(origin(Timestamp::now()), factor);
        let shutdown = CancellationToken::new();
        let server = hub::HubServer::start(&clock, blueprints).await?;
        let hub = server.hub(&clock, http, &shutdown).await?;
        let catalogs = Shared::new();
        let key = CatalogKey { namespace: SOURCE.0.to_owned(), name: SOURCE.1.to_owned() };
        catalogs.set(key, Arc::clone(catalog));
        let mut members = Vec::with_capacity(blueprints.len());
        for blueprint in blueprints {
            let member =
                Member::start(blueprint, catalog, &catalogs, &clock, &hub, &server, &shutdown)
                    .await?;
            members.push(member);
        }
        Ok(Self { hub, server, members, clock, shutdown })
    }

    /// The hub.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// A client for the hub's API server.
    pub fn client(&self) -> kube::Client {
        self.server.api().client("wavelift-demo")
    }

    /// The hub's API server.
    pub fn hub_api(&self) -> &apiserver::ApiServer {
        self.server.api()
    }

    /// The clusters.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Simulated time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Where the page is.
    pub fn page(&self) -> String {
        format!("http://{}/", self.hub.http_address())
    }

    /// What the hub has written so far.
    pub fn writes(&self) -> Writes {
        self.hub.writes()
    }

    /// Writes a kubeconfig with the hub and every cluster.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), Error> {
        let hub = Server { name: "hub".to_owned(), url: self.server.url(), namespace: NAMESPACE };
        let mut servers = vec![hub];
        servers.extend(self.members.iter().map(|member| Server {
            name: member.name().to_owned(),
            url: member.url(),
            namespace: cluster::AGENT_NAMESPACE,
        }));
        kubeconfig::write(path, &servers)
            .map_err(|source| Error::Io { doing: "write the kubeconfig", source })
    }

    /// Ends everything in order.
    pub async fn stop(self) {
        self.shutdown.cancel();
        for member in self.members {
            member.stop().await;
        }
        // A hub that does not come to its end within this time has nothing to lose here.
        drop(tokio::time::timeout(Duration::from_secs(10), self.hub.join()).await);
    }
}

/// Ten in the evening, long ago.
fn origin(now: Timestamp) -> Timestamp {
    let long_ago = now.checked_sub(SignedDuration::from_hours(24 * ORIGIN_DAYS_AGO)).unwrap_or(now);
    let midnight = long_ago.as_second() - long_ago.as_second().rem_euclid(86_400);
    Timestamp::from_second(midnight + 22 * 3_600).unwrap_or(long_ago)
}
