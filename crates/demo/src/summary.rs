//! What came of a demo, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wavelift_api::{
    cluster_upgrade::{ClusterStateName, StepStateName},
    live::{PhaseName, WaveStateName},
};
use wavelift_hub::view::Upgrade;

/// What a demo prints with `-o json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All of them; the five numbers below add up to it.
    pub clusters: u32,
    /// At the target, those that were there already included.
    pub succeeded: u32,
    /// Stalled or failed.
    pub failed: u32,
    /// Left out by the user.
    pub skipped: u32,
    /// Not heard from by the deadline.
    pub unreachable: u32,
    /// Held or never reached.
    pub not_started: u32,
    /// All the hub's writes of ClusterUpgrades divided by the clusters.
    pub writes_per_cluster: f64,
    /// The waves, in order.
    pub waves: Vec<WaveSummary>,
    /// How the campaign ended.
    pub phase: PhaseName,
    /// The seed.
    pub seed: u64,
    /// Minutes of simulated time from launch to end.
    pub simulated_minutes: i64,
    /// Seconds of real time from start to end.
    pub seconds: f64,
    /// The most memory this process has had resident, MiB; 0 where it cannot be read.
    pub resident_mib: u64,
    /// Clusters that ended otherwise than the seed's faults say.
    pub unexpected: Vec<String>,
    /// Every hop that was taken (real catalogs only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopSummary>,
}

/// One wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveSummary {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub state: WaveStateName,
    /// Its clusters.
    pub clusters: u32,
    /// At the target.
    pub succeeded: u32,
    /// Stalled or failed.
    pub failed: u32,
}

/// One InstallPlan that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HopSummary {
    /// On which cluster.
    pub cluster: String,
    /// Its place in the cluster's plan, from 0.
    pub step: usize,
    /// The channel of the Subscription.
    pub channel: String,
    /// The package of the Subscription.
    pub package: String,
    /// The CSV before.
    pub from: Option<String>,
    /// All CSVs of the plan.
    pub csvs: BTreeSet<String>,
}

/// What is not on the board.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The hub's writes of ClusterUpgrades.
    pub writes: u64,
    /// The seed.
    pub seed: u64,
    /// Seconds of real time.
    pub seconds: f64,
}

impl Summary {
    /// From the last picture of the campaign.
    pub fn of(upgrade: &Upgrade, measured: Measured, unexpected: Vec<String>) -> Self {
        let row = &upgrade.view.row;
        let count = |number: i32| u32::try_from(number).unwrap_or(0);
        let minutes = match (row.rollout_start_time, row.completion_time) {
            (Some(start), Some(end)) => end.duration_since(start).as_mins(),
            (Some(_) | None, _) => 0,
        };
        let clusters = count(row.summary.clusters);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let writes_per_cluster = if clusters == 0 {
            0.0
        } else {
            (measured.writes as f64 / f64::from(clusters) * 100.0).round() / 100.0
        };
        Self {
            clusters,
            succeeded: count(row.summary.succeeded),
            failed: count(row.summary.failed),
            skipped: count(row.summary.skipped),
            unreachable: count(row.summary.unreachable),
            not_started: count(row.summary.not_started),
            writes_per_cluster,
            waves: upgrade
                .view
                .waves
                .iter()
                .map(|wave| WaveSummary {
                    name: wave.name.clone(),
                    state: wave.state,
                    clusters: wave.clusters,
                    succeeded: wave.succeeded,
                    failed: wave.failed,
                })
                .collect(),
            phase: row.phase,
            seed: measured.seed,
            simulated_minutes: minutes,
            seconds: (measured.seconds * 10.0).round() / 10.0,
            resident_mib: resident_mib().unwrap_or(0),
            unexpected,
            hops: vec![],
        }
    }
}

/// Every step that was carried out, by cluster; `channels` gives each cluster's channel.
pub fn hops(upgrade: &Upgrade, channels: &BTreeMap<String, (String, String)>) -> Vec<HopSummary> {
    let mut hops = vec![];
    for cluster in &upgrade.clusters {
        let name = &cluster.row.name;
        let Some((package, channel)) = channels.get(name) else { continue };
        for (index, step) in cluster.steps.iter().enumerate() {
            if step.state != StepStateName::Done {
                continue;
            }
            let from = step.moves.iter().find(|m| m.package == *package);
            hops.push(HopSummary {
                cluster: name.clone(),
                step: index,
                channel: channel.clone(),
                package: package.clone(),
                from: from.and_then(|m| m.from.clone()),
                csvs: step.moves.iter().map(|m| m.to.clone()).collect(),
            });
        }
    }
    hops
}

/// Clusters that ended otherwise than `expected` says, one a line.
pub fn unexpected(
    upgrade: &Upgrade,
    expected: impl Fn(&str) -> &'static [ClusterStateName],
) -> Vec<String> {
    let mut lines = vec![];
    for cluster in &upgrade.clusters {
        let row = &cluster.row;
        if !expected(&row.name).contains(&row.state) {
            lines.push(format!("{}: {:?}: {}", row.name, row.state, row.message));
        }
    }
    lines
}

/// The process' peak of resident memory.
fn resident_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}
