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
    /// When the first of them has something to do.
    next: Option<Timestamp>,
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
        self.parts.lock().tick(self.clock.now()).next
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
    loop {
        let (next, mut changes) = {
            let mut parts = parts.lock();
            let ticked = parts.tick(clock.now());
            (ticked.next, parts.store.subscribe_after(ticked.seen))
        };
        let due = async {
            match next {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = due => {}
            () = nudge.notified() => {}
            _ = changes.next() => {}
        }
    }
}

// === impl Parts ===

/// What a tick came to.
struct Ticked {
    /// When there is more to do.
    next: Option<Timestamp>,
    /// Every write up to this revision was seen.
    seen: u64,
}

impl Parts {
    fn new(olm: OlmV0, workload: Workload, store: Store) -> Self {
        Self { olm, workload, store, next: None }
    }

    /// Lets every part do what is due, in the order of time, until nothing is.
    ///
    /// A late tick begins where the last one left off, so that no part runs ahead of another.
    fn tick(&mut self, now: Timestamp) -> Ticked {
        let mut at = self.next.map_or(now, |next| next.min(now));
        loop {
            let seen = self.store.revision();
            let olm = Machine::tick(&mut self.olm, at);
            let workload = Machine::tick(&mut self.workload, at);
            if self.store.revision() != seen {
                // What one part has written the others have still to see.
                continue;
            }
            self.next = [olm, workload].into_iter().flatten().min();
            match self.next {
                Some(next) if next <= now => at = next.max(at),
                next => return Ticked { next, seen },
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
mod real;
#[cfg(test)]
mod tests;
