//! Live data, whoever serves it.
//!
//! With `--url` it is the hub; without, what the objects in the cluster say: the same shapes, only
//! without what the hub keeps in memory.

mod http;
mod objects;

pub(crate) use self::objects::cluster;

use futures::future::BoxFuture;
use wavelift_api::live::{
    ClusterDetail, ClusterList, PreviewDetail, PreviewList, UpgradeDetail, UpgradeList,
};

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
    /// What its plans change: all groups.
    fn preview(&self, _: &str, _: &str) -> BoxFuture<'_, anyhow::Result<PreviewList>> {
        only_the_hub()
    }
    /// The id of the group that a cluster is in.
    fn preview_group_of(
        &self,
        _: &str,
        _: &str,
        _cluster: &str,
    ) -> BoxFuture<'_, anyhow::Result<String>> {
        only_the_hub()
    }
    /// One group, whole.
    fn preview_group(
        &self,
        _: &str,
        _: &str,
        _id: &str,
    ) -> BoxFuture<'_, anyhow::Result<PreviewDetail>> {
        only_the_hub()
    }
    /// All groups, or one, as a document.
    fn preview_document(
        &self,
        _: (&str, &str),
        _group: Option<&str>,
        _form: Document,
    ) -> BoxFuture<'_, anyhow::Result<String>> {
        only_the_hub()
    }
}

fn only_the_hub<T: Send + 'static>() -> BoxFuture<'static, anyhow::Result<T>> {
    let error = anyhow::anyhow!("only the hub knows every change: give --url (WAVELIFT_URL)");
    Box::pin(std::future::ready(Err(error)))
}

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    Html,
    Markdown,
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
