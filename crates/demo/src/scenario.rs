//! What a seed makes of a fleet: its clusters, what is installed on them and what will go wrong.
//!
//! Pure, so that a test can read the faults of a seed as data and work out what a campaign over
//! such a fleet must come to. Nothing else in the demo draws random numbers.

use std::collections::BTreeMap;

use rand::{Rng as _, SeedableRng as _, seq::SliceRandom as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::own_catalog::{FERRY, KILN, LANTERN, LOOM, SPINDLE};

/// A fleet and its faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    /// What it was made from.
    pub seed: u64,
    /// By name.
    pub clusters: Vec<ClusterScript>,
}

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterScript {
    /// Its name.
    pub name: String,
    /// The wave it is in.
    pub ring: Ring,
    /// Its region, a label to look at.
    pub region: String,
    /// Its OpenShift version.
    pub platform: String,
    /// Installed versions by package.
    pub installed: BTreeMap<String, String>,
    /// Seconds until a new Deployment is available, by package.
    pub rollout_seconds: BTreeMap<String, u32>,
    /// What goes wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// The waves of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ring {
    /// A tenth of the fleet.
    Canary,
    /// A third.
    Early,
    /// The rest.
    Broad,
}

/// What goes wrong on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fault {
    /// Its agent never comes.
    Offline,
    /// Everything on it takes much longer, but comes through.
    Slow,
    /// The new version's pod is never available.
    NeverAvailable {
        /// The package.
        package: String,
    },
    /// Its operator says that it cannot be upgraded, and after a while that it can.
    NotUpgradeable {
        /// The package.
        package: String,
        /// Seconds from the beginning.
        until_seconds: u32,
    },
}

impl Ring {
    /// All of them, in the order of the waves.
    pub const ALL: [Self; 3] = [Self::Canary, Self::Early, Self::Broad];

    /// As label and wave name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Canary => "canary",
            Self::Early => "early",
            Self::Broad => "broad",
        }
    }
}

impl Scenario {
    /// The fleet of `clusters` clusters that `seed` makes.
    pub fn new(seed: u64, clusters: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut made: Vec<ClusterScript> =
            (0..clusters).map(|index| cluster(&mut rng, index, clusters)).collect();
        faults(&mut rng, &mut made);
        Self { seed, clusters: made }
    }

    /// How many clusters are in `ring`.
    pub fn size(&self, ring: Ring) -> usize {
        self.clusters.iter().filter(|cluster| cluster.ring == ring).count()
    }

    /// Failures that the wave of `ring` tolerates: a quarter of it and one more.
    pub fn tolerated(&self, ring: Ring) -> usize {
        self.size(ring) / 4 + 1
    }
}

impl ClusterScript {
    /// True when every operator is at its newest version already.
    pub fn is_at_target(&self) -> bool {
        crate::own_catalog::NEWEST
            .iter()
            .all(|(package, newest)| self.installed.get(*package).is_none_or(|v| v == newest))
    }
}

fn cluster(rng: &mut ChaCha8Rng, index: usize, of: usize) -> ClusterScript {
    const REGIONS: [&str; 5] = ["fra", "mad", "osl", "ams", "waw"];
    let region = REGIONS[index % REGIONS.len()];
    let ring = match index {
        i if i < of.div_ceil(10) => Ring::Canary,
        i if i < of.div_ceil(10) + of.div_ceil(3) => Ring::Early,
        _ => Ring::Broad,
    };
    let mut installed: BTreeMap<String, String> = BTreeMap::new();
    let ferry = ["2.0.0", "2.0.0", "2.1.0", "2.2.0"][rng.random_range(0..4)];
    for (package, version) in
        [(LANTERN, "1.4.0"), (FERRY, ferry), (LOOM, "3.1.0"), (SPINDLE, "5.0.2"), (KILN, "0.9.0")]
    {
        installed.insert(package.to_owned(), version.to_owned());
    }
    // One in sixteen has been brought to the target by hand.
    if rng.random_range(0..16) == 0 {
        for (package, newest) in crate::own_catalog::NEWEST {
            installed.insert(package.to_owned(), newest.to_owned());
        }
    }
    let rollout_seconds =
        installed.keys().map(|package| (package.clone(), rng.random_range(20..140))).collect();
    ClusterScript {
        name: format!("prod-{region}-{:03}", index + 1),
        ring,
        region: region.to_owned(),
        platform: ["4.19.21", "4.20.14", "4.20.16"][rng.random_range(0..3)].to_owned(),
        installed,
        rollout_seconds,
        fault: None,
    }
}

/// Hands out the faults, each to a cluster that has something to upgrade and no fault yet.
fn faults(rng: &mut ChaCha8Rng, clusters: &mut [ClusterScript]) {
    let mut free: Vec<usize> =
        (0..clusters.len()).filter(|&index| !clusters[index].is_at_target()).collect();
    free.shuffle(rng);
    let mut free = free.into_iter();
    let total = clusters.len();
    let offline = (total / 60).max(1).min(total / 3);
    for index in free.by_ref().take(offline) {
        clusters[index].fault = Some(Fault::Offline);
    }
    let slow = (total / 40).max(1).min(total / 3);
    for index in free.by_ref().take(slow) {
        let script = &mut clusters[index];
        script.fault = Some(Fault::Slow);
        for seconds in script.rollout_seconds.values_mut() {
            *seconds += 400;
        }
    }
    let held = (total / 50).max(1).min(total / 4);
    for index in free.by_ref().take(held) {
        let until_seconds = rng.random_range(900..2_400);
        clusters[index].fault =
            Some(Fault::NotUpgradeable { package: LANTERN.to_owned(), until_seconds });
    }
    // A canary that fails would be the wrong lesson in a demo: it is there to hold the rest back.
    let failing = (total / 12).max(1).min(total / 4);
    let late: Vec<usize> = free.filter(|&index| clusters[index].ring != Ring::Canary).collect();
    for index in late.into_iter().take(failing) {
        clusters[index].fault = Some(Fault::NeverAvailable { package: KILN.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_makes_the_same_fleet_and_another_one_another() {
        assert_eq!(Scenario::new(7, 60), Scenario::new(7, 60));
        assert_ne!(Scenario::new(7, 60).clusters, Scenario::new(8, 60).clusters);
    }

    #[test]
    fn no_wave_gets_more_failures_than_it_tolerates() {
        for seed in 0..200 {
            for total in [1, 2, 3, 5, 10, 30, 60, 300] {
                let scenario = Scenario::new(seed, total);
                assert_eq!(scenario.clusters.len(), total);
                for ring in Ring::ALL {
                    let fails = |c: &&ClusterScript| {
                        c.ring == ring && matches!(c.fault, Some(Fault::NeverAvailable { .. }))
                    };
                    let failing = scenario.clusters.iter().filter(fails).count();
                    let (seed, tolerated) = (scenario.seed, scenario.tolerated(ring));
                    assert!(failing <= tolerated, "seed {seed}, {total}: {failing} > {tolerated}");
                }
            }
        }
    }

    #[test]
    fn the_default_fleet_shows_every_kind_of_fault() {
        let scenario = Scenario::new(7, 30);
        let has = |wanted: fn(&Fault) -> bool| {
            scenario.clusters.iter().any(|c| c.fault.as_ref().is_some_and(wanted))
        };
        assert!(has(|f| matches!(f, Fault::Offline)));
        assert!(has(|f| matches!(f, Fault::Slow)));
        assert!(has(|f| matches!(f, Fault::NeverAvailable { .. })));
        assert!(has(|f| matches!(f, Fault::NotUpgradeable { .. })));
    }
}
