//! A hub that is gone while a cluster upgrades.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use wavelift_sim::apiserver::gk;

use crate::harness::{
    blueprint::{self, Content},
    campaign::{self, Bounds},
    hub, laws, wait,
    world::World,
};

const BOUNDS: Bounds = Bounds { concurrent: 1, failures: 0 };
const FACTOR: f64 = 300.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_hub_is_gone_finishes_and_reports_late_and_once() {
    let fleet = blueprint::fleet(&[Content::FerryAndWeaving, Content::Weaving], 2);
    let mut world = World::start(&fleet, FACTOR).await.unwrap();
    campaign::create(world.hub.store(), &fleet, BOUNDS).unwrap();
    world.follow_leader();
    world.run_agents().unwrap();
    let gone = without_hub(&world).await;
    gone.with_context(|| world.logs()).unwrap();
    let logs = world.logs();
    laws::hold(&mut world, BOUNDS).context(logs).unwrap();
}

async fn without_hub(world: &World) -> Result<()> {
    let (side, first) = (&world.hub, &world.members[0]);
    let mut process = side.spawn("hub-1")?;
    campaign::launch(side.store()).await?;
    wait::in_store(first.sim.store(), "the first cluster to begin", |_| {
        (first.local()?["status"]["state"] == "Upgrading").then_some(())
    })
    .await?;
    process.child.kill();
    world.target.send_replace(None);

    let told = durable(world).context("it was started")?;
    ensure!(!laws::is_ended(&told), "it had ended before the hub was gone: {}", told["status"]);
    let local = wait::in_store(first.sim.store(), "the first cluster to finish alone", |_| {
        first.local().filter(|local| laws::is_ended(local))
    })
    .await?;
    ensure!(local["status"]["state"] == "Succeeded", "{}", local["status"]);
    ensure!(durable(world) == Some(told), "somebody else wrote on the hub");

    let mut process = side.spawn("hub-2")?;
    let campaign = campaign::ended(side.store()).await?;
    ensure!(campaign["status"]["summary"]["succeeded"] == 2, "{}", campaign["status"]);
    let late = durable(world).context("it is still there")?;
    for field in ["state", "startTime", "completionTime", "boot", "sequence"] {
        let (hub, own) = (&late["status"][field], &local["status"][field]);
        ensure!(hub == own, "{field} is {hub} on the hub and {own} on the cluster");
    }
    let status = process.child.end().await?;
    ensure!(status.success(), "a hub that is asked to end does so: {status}");
    ensure!(hub::holder(world.hub.store()).is_none(), "it gives the Lease back");
    Ok(())
}

/// The first cluster's ClusterUpgrade on the hub.
fn durable(world: &World) -> Option<Value> {
    let parts = world.hub.store().list(&gk::CLUSTER_UPGRADE, Some(world.members[0].name()));
    parts.first().map(|part| Value::clone(part))
}
