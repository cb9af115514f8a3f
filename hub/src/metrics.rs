//! What the hub counts. Every name is listed in `docs/metrics.md`.

use std::sync::Arc;

use prometheus::{Histogram, IntGauge};
use wavelift_core::campaign::Run;
use wavelift_runtime::metrics::{self, Counters, Gauges, Histograms};

use crate::campaign::{Part, Shown};

mod show;

/// From half a minute to four hours.
const UPGRADE_SECONDS: [f64; 9] =
    [30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 3_600.0, 7_200.0, 14_400.0];
const PASS_SECONDS: [f64; 8] = [0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0];

/// The hub's metrics. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub(crate) writes: Counters<1>,
    pub(crate) write_errors: Counters<2>,
    pub(crate) statuses: Counters<1>,
    pub(crate) uploads: Counters<2>,
    pub(crate) images: Counters<1>,
    pub(crate) watch_errors: Counters<1>,
    pub(crate) pass_seconds: Histogram,
    pub(crate) agents: Gauges<1>,
    pub(crate) catalogs: IntGauge,
    pub(crate) leader_term: IntGauge,
    inventory: Gauges<2>,
    upgrades: Counters<2>,
    upgrade_seconds: Histograms<2>,
    campaigns: Arc<show::Campaigns>,
}

/// Writes of this process that went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Writes {
    /// Of FleetUpgrades.
    pub fleet_upgrades: u64,
    /// Of ClusterUpgrades.
    pub cluster_upgrades: u64,
    /// Of Events.
    pub events: u64,
}

impl Metrics {
    /// Registers all of them.
    pub(crate) fn register(metrics: &metrics::Metrics) -> Result<Self, metrics::Error> {
        let build =
            metrics.gauges("wavelift_build_info", "Always 1; what is running.", ["version"])?;
        build.with([env!("CARGO_PKG_VERSION")]).set(1);
        Ok(Self {
            writes: metrics.counters(
                "wavelift_hub_writes_total",
                "Writes to the API server that went through, by kind.",
                ["kind"],
            )?,
            write_errors: metrics.counters(
                "wavelift_hub_write_errors_total",
                "Writes to the API server that did not go through, by kind and reason.",
                ["kind", "reason"],
            )?,
            statuses: metrics.counters(
                "wavelift_hub_statuses_total",
                "Statuses of agents, by what became of them.",
                ["result"],
            )?,
            uploads: metrics.counters(
                "wavelift_hub_uploads_total",
                "Inventories and catalogs of agents, by what became of them.",
                ["content", "result"],
            )?,
            images: metrics.counters(
                "wavelift_hub_bundle_images_total",
                "Bundle images, by what became of them.",
                ["result"],
            )?,
            watch_errors: metrics.counters(
                "wavelift_hub_watch_errors_total",
                "Watches that broke and were begun again, by kind.",
                ["kind"],
            )?,
            pass_seconds: metrics.histogram(
                "wavelift_reconcile_duration_seconds",
                "How long one look at all campaigns took.",
                &PASS_SECONDS,
            )?,
            agents: metrics.gauges(
                "wavelift_agents",
                "Clusters by the state of their agent.",
                ["state"],
            )?,
            catalogs: metrics.gauge("wavelift_hub_catalogs", "Catalogs in memory.")?,
            leader_term: metrics.gauge(
                "wavelift_hub_leader_term",
                "The term of this hub while it leads, otherwise 0.",
            )?,
            inventory: metrics.gauges(
                "wavelift_inventory_clusters",
                "Clusters by installed version of the packages of active campaigns.",
                ["package", "version"],
            )?,
            upgrades: metrics.counters(
                "wavelift_cluster_upgrades_total",
                "Clusters that ended their part of a campaign, by package and result.",
                ["package", "result"],
            )?,
            upgrade_seconds: metrics.histograms(
                "wavelift_cluster_upgrade_duration_seconds",
                "From a cluster's start to its end in upgrade time, by package and result.",
                ["package", "result"],
                &UPGRADE_SECONDS,
            )?,
            campaigns: Arc::new(show::Campaigns::register(metrics)?),
        })
    }

    /// What went through so far.
    pub(crate) fn writes(&self) -> Writes {
        let of = |kind: &str| self.writes.with([kind]).get();
        Writes {
            fleet_upgrades: of("FleetUpgrade"),
            cluster_upgrades: of("ClusterUpgrade"),
            events: of("Event"),
        }
    }

    /// A ClusterUpgrade was written: counts it when it has just ended.
    pub(crate) fn part_written(&self, before: Option<&Arc<Part>>, part: &Part) {
        let was_open = before.is_some_and(|before| matches!(before.run(), Run::InFlight { .. }));
        let result = match part.run() {
            Run::Succeeded => "Succeeded",
            Run::Failed(wavelift_core::campaign::Failure::Failed) => "Failed",
            Run::Failed(wavelift_core::campaign::Failure::Stalled) => "Stalled",
            Run::Skipped(_) | Run::Unreachable | Run::InFlight { .. } | Run::NotStarted => return,
        };
        if !was_open {
            return;
        }
        let took = part.status().and_then(|status| {
            let took = status.completion_time?.duration_since(status.start_time?);
            Some(took.as_secs_f64().max(0.0))
        });
        let moves = part.plan.steps.iter().flat_map(|step| &step.moves);
        let packages: std::collections::BTreeSet<&str> =
            moves.map(|item| item.package.as_str()).collect();
        for package in packages {
            self.upgrades.with([package, result]).inc();
            if let Some(took) = took {
                self.upgrade_seconds.with([package, result]).observe(took);
            }
        }
    }

    /// Shows the campaigns, and of nothing else the series.
    pub(crate) fn show<'a>(&self, shown: impl Iterator<Item = &'a Shown>) {
        self.campaigns.show(shown);
    }

    /// A campaign is gone.
    pub(crate) fn forget(&self, shown: &Shown) {
        self.campaigns.forget(shown);
    }

    /// Shows how many clusters have which version of which package.
    pub(crate) fn show_inventory(
        &self,
        versions: &std::collections::BTreeMap<(String, String), i64>,
    ) {
        self.inventory.clear();
        for ((package, version), clusters) in versions {
            self.inventory.with([package, version]).set(*clusters);
        }
    }
}
