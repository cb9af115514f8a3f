//! Watches of the three kinds that the hub works from. They end with the leader's term.

use std::fmt::Debug;

use futures::StreamExt as _;
use kube::{
    Api, Client, Resource,
    core::DeserializeGuard,
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use wavelift_api::{ClusterUpgrade, FleetUpgrade, managed_cluster::ManagedCluster};
use wavelift_runtime::telemetry::chain;

use crate::{
    campaign::{News, Watched},
    metrics::Metrics,
};

/// News that waits for the driver.
const WAITING_MAX: usize = 1_024;

/// Begins the watches.
pub(crate) fn spawn(
    client: &Client,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> mpsc::Receiver<News> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let watch = Watch { client: client.clone(), metrics: metrics.clone(), sender };
    tokio::spawn(
        stop.clone().run_until_cancelled_owned(watch.clone().run::<ManagedCluster>(News::Cluster)),
    );
    tokio::spawn(
        stop.clone().run_until_cancelled_owned(watch.clone().run::<FleetUpgrade>(News::Fleet)),
    );
    tokio::spawn(stop.clone().run_until_cancelled_owned(watch.run::<ClusterUpgrade>(News::Part)));
    receiver
}

#[derive(Clone)]
struct Watch {
    client: Client,
    metrics: Metrics,
    sender: mpsc::Sender<News>,
}

impl Watch {
    /// Follows all objects of one kind. One that cannot be read is passed over: it must not keep
    /// the others from being seen.
    async fn run<K>(self, news: fn(Watched<K>) -> News)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
    {
        let kind = K::kind(&()).into_owned();
        let api: Api<DeserializeGuard<K>> = Api::all(self.client.clone());
        let mut stream = watcher(api, watcher::Config::default()).default_backoff().boxed();
        let mut is_broken = false;
        while let Some(next) = stream.next().await {
            let was_broken = std::mem::replace(&mut is_broken, next.is_err());
            let watched = match next {
                Ok(watcher::Event::Init) => Some(Watched::Restarted),
                Ok(watcher::Event::InitDone) => Some(Watched::Complete),
                Ok(watcher::Event::InitApply(object)) => {
                    readable(&kind, object).map(Watched::Listed)
                }
                Ok(watcher::Event::Apply(object)) => readable(&kind, object).map(Watched::Applied),
                Ok(watcher::Event::Delete(object)) => readable(&kind, object).map(Watched::Deleted),
                Err(error) => {
                    self.metrics.watch_errors.with([&kind]).inc();
                    log_broken(&kind, &error, was_broken);
                    None
                }
            };
            if let Some(watched) = watched
                && self.sender.send(news(watched)).await.is_err()
            {
                return;
            }
        }
    }
}

/// One line for a streak.
fn log_broken(kind: &str, error: &watcher::Error, was_broken: bool) {
    let error = chain(error);
    if was_broken {
        debug!(kind, %error, "a watch is still broken");
    } else {
        info!(kind, %error, "a watch broke and is begun again");
    }
}

fn readable<K>(kind: &str, object: DeserializeGuard<K>) -> Option<K> {
    match object.0 {
        Ok(object) => Some(object),
        Err(invalid) => {
            let name = invalid.metadata.name.as_deref().unwrap_or("");
            warn!(kind, name, error = invalid.error, "an object that cannot be read");
            None
        }
    }
}
