//! A simulated cluster: an API server, an OLM v0, Deployments, a platform version; and what makes
//! them move.
//!
//! A [`Builder`] puts a cluster into a settled state: operators installed long ago, catalogs read.
//! [`SimCluster::start`] lets it move by its clock: one task sleeps until an object changes or
//! something is due, however many hundred clusters there are. Without it a test moves the cluster
//! by hand with [`SimCluster::tick`].

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use wavelift_runtime::Clock;

pub use self::builder::{Approval, Builder, Operator};
use crate::{
    apiserver::{ApiServer, Store, gk, meta},
    machine::Machine,
    olm_v0::OlmV0,
    workload::Workload,
};

mod builder;
#[cfg(test)]
pub(crate) mod drive;

/// One simulated cluster. Dropping it ends its task.
#[derive(Debug)]
pub struct SimCluster {
    name: String,
    uid: String,
    api: ApiServer,
    clock: Clock,
    parts: Arc<Mutex<Parts>>,
    /// Wakes the runner when a part was changed from outside.
    nudge: Arc<Notify>,
    stop: CancellationToken,
    runner: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Parts {
    olm: OlmV0,
    workload: Workload,
    store: Store,
}

impl SimCluster {
    /// Starts describing a cluster.
    pub fn builder(name: impl Into<String>, clock: Clock) -> Builder {
        Builder::new(name.into(), clock)
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster's own id: the uid of its namespace `kube-system`.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Its API server.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Its objects.
    pub fn store(&self) -> &Store {
        self.api.store()
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Changes its OLM: another catalog, a refused step.
    pub fn with_olm<T>(&self, change: impl FnOnce(&mut OlmV0) -> T) -> T {
        let result = change(&mut self.parts.lock().olm);
        self.nudge.notify_one();
        result
    }

    /// Changes how its Deployments roll out.
    pub fn with_workload<T>(&self, change: impl FnOnce(&mut Workload) -> T) -> T {
        let result = change(&mut self.parts.lock().workload);
        self.nudge.notify_one();
        result
    }

    /// Does everything that is due by the clock, and says when there is more to do.
    ///
    /// Only for clusters that were not started.
    pub fn tick(&self) -> Option<Timestamp> {
        self.parts.lock().tick(self.clock.now())
    }

    /// Lets the cluster move by its clock until it is stopped.
    pub fn start(&self) {
        let mut runner = self.runner.lock();
        if runner.is_none() && !self.stop.is_cancelled() {
            *runner = Some(tokio::spawn(run(
                Arc::clone(&self.parts),
                self.clock.clone(),
                Arc::clone(&self.nudge),
                self.stop.clone(),
            )));
        }
    }

    /// Stops the cluster for good and waits until nothing of it runs.
    pub async fn stop(&self) {
        self.stop.cancel();
        let runner = self.runner.lock().take();
        if let Some(runner) = runner
            && let Err(error) = runner.await
        {
            tracing::warn!(cluster = self.name, %error, "a simulated cluster did not end well");
        }
    }
}

impl Drop for SimCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn run(parts: Arc<Mutex<Parts>>, clock: Clock, nudge: Arc<Notify>, stop: CancellationToken) {
    let mut changes = parts.lock().store.subscribe();
    loop {
        let next = parts.lock().tick(clock.now());
        let due = async {
            match next {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // What the tick itself has written is no reason to look again.
        drop(changes.now());
        tokio::select! {
            () = stop.cancelled() => return,
            () = due => {}
            () = nudge.notified() => {}
            _ = changes.next() => {}
        }
    }
}

// === impl Parts ===

impl Parts {
    /// Lets every part do what is due, in the order of time, until nothing is.
    fn tick(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut at = now;
        loop {
            let before = self.store.revision();
            let olm = Machine::tick(&mut self.olm, at);
            let workload = Machine::tick(&mut self.workload, at);
            let next = [olm, workload].into_iter().flatten().min();
            let is_quiet = self.store.revision() == before;
            match next {
                Some(next) if next <= now => at = next.max(at.min(now)),
                _ if is_quiet => return next,
                _ => {}
            }
        }
    }
}

/// The uid of `kube-system`, by which a cluster is known.
fn cluster_uid(store: &Store) -> String {
    let namespace = store.get(&gk::NAMESPACE, None, "kube-system");
    namespace.map(|namespace| meta::uid(&namespace).to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
