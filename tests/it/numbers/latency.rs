//! From a change of an OLM object to the hub's API showing it.
//!
//! The object is an OperatorCondition: every word in it is relayed, so that each change can be told
//! from the one before. It goes the way of all others: watch, status, link, hub.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::{Result, ensure};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use wavelift_runtime::testing::is_measured;
use wavelift_sim::{
    apiserver::{Store, gk},
    workload::Behaviour,
};

use super::row;
use crate::harness::{
    blueprint::{self, Content},
    campaign::{self, Bounds},
    http, hub, wait,
    world::World,
};

const CLUSTERS: usize = 30;
const PROBES: usize = 300;
/// What comes up everywhere.
const NAMESPACE: &str = "ferry-system";
const CSV: &str = "ferry-operator.v2.1.0";
/// How often the hub is asked.
const LOOK: Duration = Duration::from_millis(1);
/// Between two probes, in milliseconds: one does not wait for the other, and none keeps step with
/// what the hub does at regular times.
const PAUSE: RangeInclusive<u64> = 50..=250;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_olm_to_the_hubs_api() {
    if is_measured() {
        measure().await.unwrap();
    }
}

async fn measure() -> Result<()> {
    let fleet = blueprint::fleet(&[Content::Ferry; CLUSTERS], CLUSTERS);
    let mut world = World::start(&fleet, 1.0).await?;
    for member in &world.members {
        // Every cluster is in the midst of its first step, for as long as this takes.
        member.sim.with_workload(|workload| workload.by_default(Behaviour::Never));
    }
    let stop = CancellationToken::new();
    let running = world.hub.inside(&world.target, stop.clone()).await?;
    world.run_agents()?;
    // A strict budget lets no more go at once than may fail.
    let bounds = Bounds { concurrent: CLUSTERS, failures: CLUSTERS };
    campaign::create(world.hub.store(), &fleet, bounds)?;
    campaign::launch(world.hub.store()).await?;
    for member in &world.members {
        wait::in_store(member.sim.store(), "a version that comes up", |store| {
            let csv = store.get(&gk::CSV, Some(NAMESPACE), CSV)?;
            store.get(&gk::OPERATOR_CONDITION, Some(NAMESPACE), CSV)?;
            (csv["status"]["phase"] == "Installing").then_some(())
        })
        .await?;
    }
    let address = running.http_address();
    let path = |cluster: &str| {
        format!("/api/v1/fleetupgrades/{}/{}/clusters/{cluster}", hub::NAMESPACE, campaign::NAME)
    };
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let mut times = vec![];
    for probe in 0..PROBES {
        let member = &world.members[dice.random_range(0..CLUSTERS)];
        let words = format!("this is probe {probe}");
        let start = Instant::now();
        say(member.sim.store(), &words)?;
        let path = path(member.name());
        while !http::json(address, &path).await?.to_string().contains(&words) {
            ensure!(start.elapsed() < wait::PATIENCE, "probe {probe} was never seen");
            sleep(LOOK).await;
        }
        times.push(start.elapsed());
        sleep(Duration::from_millis(dice.random_range(PAUSE))).await;
    }
    stop.cancel();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1].as_millis();
    let result = format!("p50 {} ms, p90 {} ms, p99 {} ms", at(50), at(90), at(99));
    row(&format!("from OLM to the hub's API, {CLUSTERS} clusters, {PROBES} changes"), &result);
    Ok(())
}

/// Has an operator say something of itself.
fn say(store: &Store, words: &str) -> Result<()> {
    let condition = json!({"type": "Calm", "status": "True", "reason": "Probe", "message": words,
        "lastTransitionTime": store.clock().now()});
    store.modify(&gk::OPERATOR_CONDITION, Some(NAMESPACE), CSV, |object| {
        object["spec"] = json!({"conditions": [condition]});
        object["status"] = json!({"conditions": [condition]});
    })?;
    Ok(())
}
