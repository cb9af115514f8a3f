//! Live data, whoever serves it.
//!
//! With `--url` it is the hub; without, what the objects in the cluster say: the same shapes, only
//! without what the hub keeps in memory.

mod http;
mod objects;

use futures::future::BoxFuture;
use wavelift_api::live::{ClusterDetail, ClusterList, UpgradeDetail, UpgradeList};

use crate::{args::AccessArgs, kubernetes::Kubernetes};

/// Answers of the JSON API.
pub(crate) trait Live: Send + Sync {
    /// Whether clusters are known that have no object yet, and the wave of each.
    fn knows_every_cluster(&self) -> bool;
    /// All campaigns, of one namespace or of all.
    fn upgrades(&self, namespace: Option<&str>) -> BoxFuture<'_, anyhow::Result<UpgradeList>>;
    /// One campaign.
    fn upgrade(&self, namespace: &str, name: &str) -> BoxFuture<'_, anyhow::Result<UpgradeDetail>>;
    /// Its clusters.
    fn clusters(
        &self,
        namespace: &str,
        name: &str,
        query: &ClusterQuery,
    ) -> BoxFuture<'_, anyhow::Result<ClusterList>>;
    /// One of its clusters.
    fn cluster(
        &self,
        namespace: &str,
        name: &str,
        cluster: &str,
    ) -> BoxFuture<'_, anyhow::Result<ClusterDetail>>;
}

/// Which clusters, in which order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterQuery {
    pub(crate) state: Option<String>,
    pub(crate) wave: Option<String>,
    pub(crate) check: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) sort: Option<String>,
}

impl ClusterQuery {
    /// True when it leaves no cluster out.
    pub(crate) fn is_everything(&self) -> bool {
        let Self { state, wave, check, text, sort: _ } = self;
        [state, wave, check, text].iter().all(|filter| filter.is_none())
    }
}

/// The source that the flags ask for.
pub(crate) fn connect(
    access: &AccessArgs,
    kubernetes: &Kubernetes,
) -> anyhow::Result<Box<dyn Live>> {
    Ok(match &access.url {
        Some(url) => Box::new(http::Http::new(url, access.request_timeout)?),
        None => Box::new(objects::Objects::new(kubernetes.client())),
    })
}
