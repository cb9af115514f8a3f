//! Rollouts, moved by hand.

use wavelift_runtime::Clock;

use super::*;
use crate::apiserver::ApiServer;

struct World {
    store: Store,
    workload: Workload,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let now = Timestamp::from_second(1_000).unwrap();
        let (clock, _hand) = Clock::manual(now);
        let store = ApiServer::new(clock).store().clone();
        let workload = Workload::new(&store, 1, now);
        Self { store, workload, now }
    }

    fn roll_out(&self, image: &str) {
        let spec = json!({ "replicas": 1, "image": image });
        let found = self.store.get(&gk::DEPLOYMENT, Some("default"), "d");
        if found.is_some() {
            let change = |d: &mut Value| set(d, "/spec", spec);
            self.store.modify(&gk::DEPLOYMENT, Some("default"), "d", change).unwrap();
        } else {
            let object =
                json!({ "metadata": { "name": "d", "namespace": "default" }, "spec": spec });
            self.store.create(&gk::DEPLOYMENT, object).unwrap();
        }
    }

    fn after(&mut self, seconds: u64) -> Value {
        self.now = after(self.now, Duration::from_secs(seconds));
        self.workload.tick(self.now);
        let deployment = self.store.get(&gk::DEPLOYMENT, Some("default"), "d").unwrap();
        at(&deployment, "/status").clone()
    }
}

#[test]
fn the_old_pod_serves_until_the_new_one_is_available() {
    let mut world = World::new();
    world.roll_out("1");
    world.after(0);
    let first = world.after(5);
    assert_eq!((count(&first, "/replicas"), count(&first, "/availableReplicas")), (1, 1));
    let slow = Behaviour::Available { after: Duration::from_secs(100) };
    world.workload.script("d", slow);
    world.roll_out("2");
    world.after(0);
    let during = world.after(50);
    assert_eq!(count(&during, "/observedGeneration"), 2);
    assert_eq!((count(&during, "/replicas"), count(&during, "/availableReplicas")), (2, 1));
    let done = world.after(51);
    assert_eq!((count(&done, "/replicas"), count(&done, "/availableReplicas")), (1, 1));
}

#[test]
fn a_rollout_that_never_ends_can_be_healed() {
    let mut world = World::new();
    world.workload.by_default(Behaviour::Never);
    world.roll_out("1");
    world.after(0);
    assert_eq!(count(&world.after(9_000), "/availableReplicas"), 0);
    let well = Behaviour::Available { after: Duration::from_secs(1) };
    world.workload.change("default", "d", well);
    assert_eq!(count(&world.after(1), "/availableReplicas"), 1);
}

#[test]
fn pods_may_be_lost_after_success() {
    let mut world = World::new();
    world.workload.by_default(Behaviour::Crashes {
        available_after: Duration::from_secs(2),
        lives: Duration::from_secs(30),
        recovers_after: Some(Duration::from_mins(1)),
    });
    world.roll_out("1");
    world.after(0);
    assert_eq!(count(&world.after(10), "/availableReplicas"), 1);
    assert_eq!(count(&world.after(30), "/availableReplicas"), 0);
    assert_eq!(count(&world.after(60), "/availableReplicas"), 1);
}
