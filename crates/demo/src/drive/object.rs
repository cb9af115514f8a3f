//! The FleetUpgrade of the demo.

use kube::api::ObjectMeta;
use wavelift_api::{
    FleetUpgrade, FleetUpgradeSpec,
    fleet_upgrade::{
        BudgetMode, BudgetSpec, ClusterSelection, OfflinePolicy, OfflineSpec, Selector, WaveSpec,
    },
    shared::{OperatorTarget, Targets},
};

use crate::{fleet::NAMESPACE, pace, scenario::Ring};

/// The campaign's name.
pub const NAME: &str = "demo";
/// How long a cluster that is not heard from is waited for: half an hour of simulated time.
const OFFLINE_DEADLINE_SECONDS: i64 = 1_800;

/// The campaign over all clusters labelled for the demo, in three waves.
///
/// `sizes` gives each wave's clusters and the failures it tolerates.
/// Time runs `factor` times as fast.
pub fn object(
    operators: Vec<OperatorTarget>,
    sizes: &[(Ring, usize, usize)],
    factor: f64,
) -> FleetUpgrade {
    let wave = |&(ring, clusters, tolerated): &(Ring, usize, usize)| WaveSpec {
        name: ring.as_str().to_owned(),
        selector: Some(select("ring", ring.as_str())),
        names: None,
        max_concurrent: number(concurrent(ring, clusters)),
        max_failures: number(tolerated),
    };
    let tolerated: usize = sizes.iter().map(|(_, _, tolerated)| tolerated).sum();
    let spec = FleetUpgradeSpec {
        targets: Targets { operators },
        clusters: ClusterSelection { names: None, label_selector: Some(select("fleet", "demo")) },
        waves: Some(sizes.iter().filter(|(_, clusters, _)| *clusters > 0).map(wave).collect()),
        budget: Some(BudgetSpec {
            max_failures: Some(number(tolerated)),
            mode: Some(BudgetMode::StopOnBreach),
        }),
        offline: Some(OfflineSpec {
            policy: OfflinePolicy::Skip,
            deadline_seconds: Some(pace::offline_seconds(OFFLINE_DEADLINE_SECONDS, factor)),
        }),
        ..FleetUpgradeSpec::default()
    };
    let metadata = ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: Some(NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    };
    FleetUpgrade { metadata, spec, status: None }
}

/// Two canaries at once, then half of a wave.
fn concurrent(ring: Ring, clusters: usize) -> usize {
    let share = match ring {
        Ring::Canary => 2,
        Ring::Early | Ring::Broad => clusters.div_ceil(2),
    };
    share.clamp(1, clusters.max(1))
}

fn select(label: &str, value: &str) -> Selector {
    Selector {
        match_labels: [(label.to_owned(), value.to_owned())].into(),
        match_expressions: vec![],
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_without_clusters_is_left_out() {
        let object = object(vec![], &[(Ring::Canary, 1, 1), (Ring::Early, 0, 1)], 60.0);
        let waves = object.spec.waves.unwrap();
        assert_eq!(waves.len(), 1);
        assert_eq!((waves[0].max_concurrent, waves[0].max_failures), (1, 1));
    }
}
