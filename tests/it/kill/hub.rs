//! The hub, a child process, over a fleet of forty.

use anyhow::{Context as _, Result, ensure};

use super::{Aim, Size, Victim, counting, runs};
use crate::harness::{
    blueprint::{self, Blueprint, Content},
    campaign::{self, Bounds},
    laws,
    outcome::Outcome,
    wait,
    world::World,
};

const CLUSTERS: usize = 40;
const WAVE: usize = 10;
/// In a wave all run at once, and what fails is within what is tolerated.
const BOUNDS: Bounds = Bounds { concurrent: 10, failures: 9 };
/// Simulated seconds in a second.
const FACTOR: f64 = 200.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_killed_at_any_moment_loses_nothing() {
    let (wanted, size) = undisturbed().await.unwrap();
    runs("hub", |number| disturbed(number, size, wanted.clone())).await.unwrap();
}

/// Two of the forty fail, one is at its target already.
fn fleet() -> Vec<Blueprint> {
    let content = |index: usize| match index {
        3 | 31 => Content::BrokenKiln,
        12 => Content::Newest,
        _ if index.is_multiple_of(10) => Content::FerryAndWeaving,
        _ if index % 5 == 2 => Content::Ferry,
        _ => Content::Weaving,
    };
    blueprint::fleet(&(0..CLUSTERS).map(content).collect::<Vec<_>>(), WAVE)
}

async fn undisturbed() -> Result<(Outcome, Size)> {
    let mut world = world().await?;
    let counter = counting(&world.hub.api);
    let victim = Victim::new();
    let hub = &world.hub;
    victim.start(|| Ok(hub.spawn("hub-1")?.child))?;
    let ended = through(&world).await;
    ended.with_context(|| format!("undisturbed\n{}", world.logs()))?;
    let size = Size { writes: world.hub.api.faults().seen(counter), records: world.meter.seen() };
    let outcome = Outcome::read(&world)?;
    let summary = &outcome.campaign["summary"];
    ensure!(
        summary["succeeded"] == CLUSTERS - 2 && summary["failed"] == 2,
        "the undisturbed run is not as it should be: {summary}"
    );
    laws::hold(&mut world, BOUNDS).context("undisturbed")?;
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

/// One campaign; what was hit, or nothing when it ended before.
async fn once(aim: Aim, wanted: &Outcome) -> Result<Option<String>> {
    let mut world = world().await?;
    let victim = Victim::new();
    aim.arm(&world.hub.api, &world.meter, &victim);
    let hub = &world.hub;
    victim.start(|| Ok(hub.spawn("hub-1")?.child))?;
    let hit = async {
        let restarted = async {
            let hit = victim.killed().await;
            world.target.send_replace(None);
            victim.start(|| Ok(hub.spawn("hub-2")?.child))?;
            anyhow::Ok(hit)
        };
        let through = through(&world);
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
    let hit = hit.with_context(|| format!("{aim:?}\n{}", world.logs()))?;
    let Some(hit) = hit else { return Ok(None) };
    let differences = Outcome::read(&world)?.differences(wanted);
    ensure!(differences.is_empty(), "{hit}\n{}\n{}", differences.join("\n"), world.logs());
    laws::hold(&mut world, BOUNDS).with_context(|| format!("{hit}\n{}", world.logs()))?;
    Ok(Some(hit))
}

async fn world() -> Result<World> {
    let fleet = fleet();
    let mut world = World::start(&fleet, FACTOR).await?;
    campaign::create(world.hub.store(), &fleet, BOUNDS)?;
    world.follow_leader();
    world.run_agents()?;
    Ok(world)
}

/// The campaign from its preview to its end, and until every cluster knows of its own.
async fn through(world: &World) -> Result<()> {
    campaign::launch(world.hub.store()).await?;
    campaign::ended(world.hub.store()).await?;
    for member in &world.members {
        wait::in_store(member.sim.store(), "a cluster's own end", |_| {
            member.local().is_none_or(|local| laws::is_ended(&local)).then_some(())
        })
        .await?;
    }
    Ok(())
}
