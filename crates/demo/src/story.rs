//! What happens, one line an event, as a person would like to read it.
//!
//! Pure: the difference between two pictures of a campaign.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use wavelift_api::{
    cluster_upgrade::ClusterStateName,
    live::{ClusterView, WaveStateName},
};
use wavelift_hub::view::Upgrade;

/// Keeps what was told, so that everything is told once.
#[derive(Debug, Default)]
pub struct Story {
    waves: BTreeMap<String, WaveStateName>,
    clusters: BTreeMap<String, (ClusterStateName, i32)>,
}

impl Story {
    /// The lines for what is new in `upgrade` at `now`.
    pub fn tell(&mut self, upgrade: &Upgrade, now: Timestamp) -> Vec<String> {
        let mut lines = vec![];
        for wave in &upgrade.view.waves {
            let before = self.waves.insert(wave.name.clone(), wave.state);
            match (before, wave.state) {
                (Some(WaveStateName::Pending) | None, WaveStateName::Running) => {
                    let tolerated = wave.max_failures;
                    lines.push(format!(
                        "▶ wave {}: {} clusters, {} at once, {tolerated} failures tolerated",
                        wave.name, wave.clusters, wave.max_concurrent
                    ));
                }
                (Some(WaveStateName::Running), WaveStateName::Complete) => {
                    lines.push(format!(
                        "■ wave {} complete: {} done, {} failed",
                        wave.name, wave.succeeded, wave.failed
                    ));
                }
                (_, WaveStateName::Pending | WaveStateName::Running | WaveStateName::Complete) => {}
            }
        }
        for cluster in &upgrade.clusters {
            lines.extend(self.cluster(cluster, now));
        }
        let clock = now.strftime("%H:%M");
        lines.iter().map(|line| format!("{clock}  {line}")).collect()
    }

    fn cluster(&mut self, cluster: &Arc<ClusterView>, now: Timestamp) -> Option<String> {
        let row = &cluster.row;
        let news = (row.state, cluster.attempt);
        let before = self.clusters.insert(row.name.clone(), news);
        if before == Some(news) {
            return None;
        }
        let first = before.is_none();
        let name = &row.name;
        let why = row.waiting_on.as_ref().map_or(&row.message, |waiting| &waiting.sentence);
        match row.state {
            ClusterStateName::Upgrading => {
                let path: Vec<String> =
                    row.moves.iter().map(|m| format!("{} {}", short(&m.package), m.to)).collect();
                Some(format!("  {name}  upgrading: {}", path.join(", ")))
            }
            ClusterStateName::Succeeded if first => None,
            ClusterStateName::Succeeded => {
                let took = cluster.start_time.map(|start| {
                    let end = cluster.completion_time.unwrap_or(now);
                    format!(" after {} min", end.duration_since(start).as_mins().max(1))
                });
                let steps = cluster.steps.len();
                Some(format!("✔ {name}  done{}, {steps} steps", took.unwrap_or_default()))
            }
            ClusterStateName::Failed | ClusterStateName::Stalled => {
                let (reason, next) = cluster
                    .failure
                    .as_ref()
                    .map_or((why.as_str(), ""), |f| (f.message.as_str(), f.remediation.as_str()));
                let next = if next.is_empty() { String::new() } else { format!(" → {next}") };
                Some(format!("✖ {name}  {:?}: {reason}{next}", row.state))
            }
            ClusterStateName::Blocked => Some(format!("⚠ {name}  {why}")),
            ClusterStateName::Unreachable => Some(format!("? {name}  {why}")),
            ClusterStateName::Skipped => Some(format!("- {name}  left out")),
            ClusterStateName::Pending
            | ClusterStateName::Preflight
            | ClusterStateName::Ready
            | ClusterStateName::Verifying => None,
        }
    }
}

fn short(package: &str) -> &str {
    package.strip_suffix("-operator").unwrap_or(package)
}
