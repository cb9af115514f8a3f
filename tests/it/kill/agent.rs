//! One agent, a child process, beside three others.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Aim, Size, Victim, counting, runs};
use crate::harness::{
    blueprint::{self, Blueprint, Content},
    campaign::{self, Bounds},
    laws,
    outcome::Outcome,
    router::{Meter, Router},
    world::World,
};

const BOUNDS: Bounds = Bounds { concurrent: 4, failures: 3 };
/// The child goes by the usual deadlines, which a busy machine must not make it miss.
const FACTOR: f64 = 100.0;
/// The one whose agent is killed: three hops, and an InstallPlan for two.
const KILLED: usize = 0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_at_any_moment_goes_on_from_what_its_cluster_shows() {
    let (wanted, size) = undisturbed().await.unwrap();
    runs("agent", |number| disturbed(number, size, wanted.clone())).await.unwrap();
}

fn fleet() -> Vec<Blueprint> {
    use Content::{Ferry, FerryAndWeaving, Newest, Weaving};
    blueprint::fleet(&[FerryAndWeaving, Ferry, Weaving, Newest], 4)
}

/// A fleet with its hub; the agent in question has a way of its own to it.
struct Stage {
    world: World,
    meter: Arc<Meter>,
    stop: CancellationToken,
    hub: wavelift_hub::Hub,
}

impl Stage {
    async fn set() -> Result<Self> {
        let fleet = fleet();
        let mut world = World::start(&fleet, FACTOR).await?;
        let stop = CancellationToken::new();
        let hub = world.hub.inside(&world.target, stop.clone()).await?;
        let meter = Arc::new(Meter::default());
        world.routers[KILLED] = Router::start(&world.target, &meter).await?;
        campaign::create(world.hub.store(), &fleet, BOUNDS)?;
        let dir = world.dir().to_path_buf();
        for index in 0..world.members.len() {
            if index == KILLED {
                world.members[index].serve(&dir).await?;
            } else {
                world.run_agent(index)?;
            }
        }
        Ok(Self { world, meter, stop, hub })
    }

    fn start_agent(&self, victim: &Victim) -> Result<()> {
        let (member, router) = (&self.world.members[KILLED], &self.world.routers[KILLED]);
        victim.start(|| member.spawn(router.addr, self.world.dir()))
    }

    async fn through(&self) -> Result<()> {
        campaign::launch(self.world.hub.store()).await?;
        campaign::ended(self.world.hub.store()).await?;
        Ok(())
    }

    async fn clear(self) {
        self.stop.cancel();
        drop(self.world);
        self.hub.join().await;
    }
}

async fn undisturbed() -> Result<(Outcome, Size)> {
    let mut stage = Stage::set().await?;
    let api = stage.world.members[KILLED].sim.api().clone();
    let counter = counting(&api);
    let victim = Victim::new();
    stage.start_agent(&victim)?;
    let ended = stage.through().await;
    ended.with_context(|| format!("undisturbed\n{}", stage.world.logs()))?;
    let size = Size { writes: api.faults().seen(counter), records: stage.meter.seen() };
    let outcome = Outcome::read(&stage.world)?;
    ensure!(
        outcome.campaign["summary"]["succeeded"] == 4,
        "the undisturbed run is not as it should be: {}",
        outcome.campaign
    );
    laws::hold(&mut stage.world, BOUNDS).context("undisturbed")?;
    stage.clear().await;
    Ok((outcome, size))
}

async fn disturbed(number: u64, size: Size, wanted: Outcome) -> Result<String> {
    let mut aim = Aim::of(number, size);
    loop {
        if let Some(hit) = once(aim, &wanted).await? {
            return Ok(hit);
        }
        aim = aim.sooner();
    }
}

async fn once(aim: Aim, wanted: &Outcome) -> Result<Option<String>> {
    let mut stage = Stage::set().await?;
    let victim = Victim::new();
    aim.arm(stage.world.members[KILLED].sim.api(), &stage.meter, &victim);
    stage.start_agent(&victim)?;
    let before = Mutex::new(None);
    let hit = async {
        let restarted = async {
            let hit = victim.killed().await;
            *before.lock() = Some(boot(&stage));
            stage.start_agent(&victim)?;
            anyhow::Ok(hit)
        };
        let through = stage.through();
        tokio::pin!(restarted, through);
        tokio::select! {
            hit = &mut restarted => {
                through.await?;
                Ok(Some(hit?))
            }
            ended = &mut through => ended.map(|()| None),
        }
    };
    let hit: Result<Option<String>> = hit.await;
    let hit = hit.with_context(|| format!("{aim:?}\n{}", stage.world.logs()))?;
    let Some(hit) = hit else { return Ok(None) };
    let logs = || stage.world.logs();
    let differences = Outcome::read(&stage.world)?.differences(wanted);
    ensure!(differences.is_empty(), "{hit}\n{}\n{}", differences.join("\n"), logs());
    if let Some(Boot { boot: before, ended: false }) = before.into_inner() {
        let after = boot(&stage).boot;
        // The first life's very first word may still have been under way when it was killed.
        let is_next = after == before + 1 || (before, after) == (0, 2);
        ensure!(is_next, "{hit}: boot {after} after boot {before}\n{}", logs());
    }
    let logs = stage.world.logs();
    laws::hold(&mut stage.world, BOUNDS).with_context(|| format!("{hit}\n{logs}"))?;
    stage.clear().await;
    Ok(Some(hit))
}

/// What the killed agent left in its local ClusterUpgrade.
#[derive(Debug, Clone, Copy)]
struct Boot {
    boot: i64,
    ended: bool,
}

fn boot(stage: &Stage) -> Boot {
    let member = &stage.world.members[KILLED];
    let local = member.local();
    let boot = local.as_ref().and_then(|local| local["status"]["boot"].as_i64()).unwrap_or(0);
    Boot { boot, ended: local.is_some_and(|local| laws::is_ended(&local)) }
}
