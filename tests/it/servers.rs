//! Real servers on loopback, as plain processes: etcd, API servers, OLM v0, `opm serve`. Situations
//! that a simulated cluster knows are gone through on one as well, by the same tests.
//!
//! One set is started for all tests of a run that want it and ends with the last of them. Each
//! test has namespaces of its own.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use anyhow::Result;
use tempfile::TempDir;
use tokio::sync::Mutex;
use wavelift_runtime::testing::{is_long, servers_or_skip};

use self::{
    api::{ApiServer, Etcd},
    certificates::Certificates,
    objects::Objects,
    olm::OlmV0,
};

pub(crate) mod account;
pub(crate) mod api;
mod authors;
pub(crate) mod certificates;
mod crds;
mod fleet;
mod held;
mod isolated;
mod killed;
mod local;
mod mortal;
pub(crate) mod objects;
pub(crate) mod olm;
pub(crate) mod operators;
mod pinned;
pub(crate) mod process;
pub(crate) mod proxy;
mod remedies;
pub(crate) mod rig;
mod rights;
mod simulated;
mod slow;
mod trouble;
mod upgrades;
pub(crate) mod workloads;

/// Where the programs are.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) etcd: PathBuf,
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) controllers: PathBuf,
    pub(crate) catalog: PathBuf,
    pub(crate) olm: PathBuf,
    pub(crate) opm: PathBuf,
    /// A folder.
    pub(crate) olm_crds: PathBuf,
    /// A folder.
    pub(crate) managed_cluster_crds: PathBuf,
}

/// etcd, and whatever API servers are put on it.
pub(crate) struct Ground {
    pub(crate) programs: Programs,
    certificates: Certificates,
    etcd: Etcd,
    /// Dropped last, when nobody writes to it any more.
    dir: TempDir,
}

/// One cluster with OLM v0, shared by all tests.
pub(crate) struct Cluster {
    api: ApiServer,
    _olm: OlmV0,
    /// Dropped last.
    pub(crate) ground: Arc<Ground>,
}

/// Where a situation is gone through.
pub(crate) enum World {
    /// On real servers.
    Real(Arc<Cluster>),
    /// On a simulated cluster.
    Simulated,
}

impl From<Arc<Cluster>> for World {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self::Real(cluster)
    }
}

/// Tests of situations, each a function of the world: on the real cluster that they get by this
/// function, and on a simulated one.
macro_rules! in_both_worlds {
    ($($gate:ident { $($name:ident,)+ })+) => {
        mod real {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let Some(cluster) = super::Cluster::$gate().await else { return };
                    super::$name(cluster.into()).await;
                }
            )+)+
        }

        mod simulated {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(super::World::Simulated).await;
                }
            )+)+
        }
    };
}
use in_both_worlds;

static SHARED: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());

// === impl Programs ===

impl Programs {
    /// The programs, or `None` after saying that they were left out.
    fn or_skip() -> Option<Self> {
        let names = [
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
            "catalog",
            "olm",
            "opm",
            "olm-crds",
            "managed-cluster-crds",
        ];
        let [etcd, kube_apiserver, controllers, catalog, olm, opm, olm_crds, managed_cluster_crds] =
            servers_or_skip(names)?;
        Some(Self {
            etcd,
            kube_apiserver,
            controllers,
            catalog,
            olm,
            opm,
            olm_crds,
            managed_cluster_crds,
        })
    }
}

// === impl Ground ===

impl Ground {
    async fn start(programs: Programs) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let certificates = Certificates::new(dir.path())?;
        let etcd = Etcd::start(&programs, dir.path()).await?;
        Ok(Self { programs, certificates, etcd, dir })
    }

    /// Another cluster, bare.
    pub(crate) async fn cluster(&self, name: &str) -> Result<ApiServer> {
        let Self { programs, certificates, etcd, dir } = self;
        ApiServer::start(programs, etcd, certificates, dir.path(), name).await
    }

    /// A folder for `name`.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

// === impl Cluster ===

impl Cluster {
    /// The one that all tests share, or `None` after saying that it was left out.
    pub(crate) async fn shared() -> Option<Arc<Self>> {
        let programs = Programs::or_skip()?;
        let mut shared = SHARED.lock().await;
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::start(programs).await.expect("the servers start"));
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// The same for a test that takes its minutes; `None` too where only the others are run.
    pub(crate) async fn shared_if_long() -> Option<Arc<Self>> {
        if is_long() { Self::shared().await } else { None }
    }

    /// One for a test alone that takes its minutes, or `None`.
    pub(crate) async fn alone_if_long() -> Option<Arc<Self>> {
        if is_long() { Self::alone().await } else { None }
    }

    /// One for a test alone, or `None` after saying that it was left out.
    pub(crate) async fn alone() -> Option<Arc<Self>> {
        let programs = Programs::or_skip()?;
        Some(Arc::new(Self::start(programs).await.expect("the servers start")))
    }

    async fn start(programs: Programs) -> Result<Self> {
        let ground = Arc::new(Ground::start(programs).await?);
        Self::on(&ground, "one").await
    }

    /// Another one with OLM, for a test that needs several.
    pub(crate) async fn on(ground: &Arc<Ground>, name: &str) -> Result<Self> {
        let api = ground.cluster(name).await?;
        let olm = OlmV0::start(&ground.programs, &api).await?;
        account::install_roles(&Objects::new(api.client().await?)).await?;
        Ok(Self { api, _olm: olm, ground: Arc::clone(ground) })
    }

    /// Its API server.
    pub(crate) fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Its objects, for this test's runtime.
    pub(crate) async fn objects(&self) -> Result<Objects> {
        Ok(Objects::new(self.api.client().await?))
    }
}
