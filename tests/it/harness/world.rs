//! Everything together: a hub's side, clusters, and the ways between them.

use std::{fs, path::Path, sync::Arc};

use anyhow::Result;
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use wavelift_agent::catalogs::Shared;
use wavelift_catalog::engine::CatalogKey;
use wavelift_demo::{own_catalog, spread::SOURCE};
use wavelift_runtime::{Clock, tls};
use wavelift_sim::apiserver::Changes;

use super::{
    binaries,
    blueprint::Blueprint,
    child,
    hub::HubSide,
    member::Member,
    router::{Meter, Router, Target},
};

/// Set: the children's logs are kept, in the folder for temporary files.
const KEEP: &str = "WAVELIFT_KEEP_LOGS";

/// Fleets at the same time, over all tests: two cores carry no more in good time.
const SEATS_MAX: usize = 4;
static SEATS: Semaphore = Semaphore::const_new(SEATS_MAX);

/// A fleet. Dropping it ends all of it.
#[derive(Debug)]
pub(crate) struct World {
    /// The hub's side.
    pub(crate) hub: Arc<HubSide>,
    /// Everything that changes on the hub's API server from the start on.
    pub(crate) changes: Changes,
    /// The clusters, in the order of their blueprints.
    pub(crate) members: Vec<Member>,
    /// The hub that agents are sent to.
    pub(crate) target: Target,
    /// Counts what passes between them.
    pub(crate) meter: Arc<Meter>,
    /// One way for each cluster.
    pub(crate) routers: Vec<Router>,
    catalogs: Shared,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    dir: TempDir,
    /// Kept until the end.
    #[expect(dead_code, reason = "held, not read")]
    seat: SemaphorePermit<'static>,
}

impl World {
    /// Brings a fleet to life, without hub and agents.
    pub(crate) async fn start(fleet: &[Blueprint], factor: f64) -> Result<Self> {
        let seat = SEATS.acquire().await?;
        tls::install_crypto();
        // Before time begins to run.
        tokio::task::spawn_blocking(binaries::programs).await??;
        // Long ago, so that simulated time never passes real time.
        let clock = Clock::scaled(Timestamp::from_second(1_700_000_000)?, factor);
        let mut dir = TempDir::with_prefix("wavelift-")?;
        // To look into what was left when a test has failed.
        dir.disable_cleanup(std::env::var_os(KEEP).is_some());
        let catalog = own_catalog::own()?;
        let catalogs = Shared::new();
        let key = CatalogKey { namespace: SOURCE.0.to_owned(), name: SOURCE.1.to_owned() };
        catalogs.set(key, Arc::clone(&catalog));
        let hub = Arc::new(HubSide::start(&clock, fleet, dir.path()).await?);
        let changes = hub.store().subscribe();
        let target = watch::Sender::new(None);
        let meter = Arc::new(Meter::default());
        let (mut members, mut routers) = (vec![], vec![]);
        for blueprint in fleet {
            let material = hub.material(&blueprint.name)?;
            members.push(Member::start(blueprint, &catalog, &clock, material)?);
            routers.push(Router::start(&target, &meter).await?);
        }
        let (tasks, stop) = (JoinSet::new(), CancellationToken::new());
        Ok(Self { hub, changes, members, target, meter, routers, catalogs, tasks, stop, dir, seat })
    }

    /// Where files are kept.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Sends agents to whichever child process leads, from now on.
    pub(crate) fn follow_leader(&mut self) {
        let (hub, target) = (Arc::clone(&self.hub), self.target.clone());
        self.tasks.spawn(async move { hub.follow_leader(&target).await });
    }

    /// Runs a cluster's agent in this process.
    pub(crate) fn run_agent(&mut self, index: usize) -> Result<()> {
        let (member, router) = (&self.members[index], &self.routers[index]);
        self.tasks.spawn(member.agent(router.addr, &self.catalogs, self.stop.clone())?);
        Ok(())
    }

    /// Runs all of them in this process.
    pub(crate) fn run_agents(&mut self) -> Result<()> {
        (0..self.members.len()).try_for_each(|index| self.run_agent(index))
    }

    /// The ends of all children's logs, for whoever has to find out what went wrong.
    pub(crate) fn logs(&self) -> String {
        let Ok(files) = fs::read_dir(self.dir.path()) else { return String::new() };
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        let mut logs: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
        logs.sort();
        logs.iter().map(|log| child::tail(log)).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
