//! Campaigns as metrics: set anew from the last pass, so that no series outlives what it shows.

use parking_lot::Mutex;
use wavelift_core::{conditions::Truth, state::ClusterState};
use wavelift_runtime::metrics::{self, Gauges, Ratios};

use crate::campaign::Shown;

/// Campaigns whose series are shown; of more than these the rest is left out.
const CAMPAIGNS_MAX: usize = 50;
/// Conditions of operators, with their status, of which one campaign has series.
const OPERATORS_MAX: usize = 60;
/// Waves of one campaign whose series are shown.
const WAVES_MAX: usize = 10;

/// The families that are about campaigns.
#[derive(Debug)]
pub(super) struct Campaigns {
    families: Mutex<Families>,
}

#[derive(Debug)]
struct Families {
    info: Gauges<4>,
    clusters: Gauges<4>,
    conditions: Gauges<4>,
    halted: Gauges<2>,
    completion: Ratios<2>,
    started: Gauges<2>,
    progress: Gauges<2>,
    preflight: Gauges<4>,
    operators: Gauges<4>,
}

impl Campaigns {
    pub(super) fn register(metrics: &metrics::Metrics) -> Result<Self, metrics::Error> {
        let families = Families {
            info: metrics.gauges(
                "wavelift_fleetupgrade_info",
                "Always 1; what a campaign upgrades.",
                ["namespace", "fleetupgrade", "package", "target_version"],
            )?,
            clusters: metrics.gauges(
                "wavelift_fleetupgrade_clusters",
                "Clusters of a campaign by wave and state.",
                ["namespace", "fleetupgrade", "wave", "state"],
            )?,
            conditions: metrics.gauges(
                "wavelift_fleetupgrade_status_condition",
                "Conditions of a campaign: 1 for the status that holds.",
                ["namespace", "fleetupgrade", "condition", "status"],
            )?,
            halted: metrics.gauges(
                "wavelift_fleetupgrade_halted",
                "1 when the failure budget of a campaign is spent.",
                ["namespace", "fleetupgrade"],
            )?,
            completion: metrics.ratios(
                "wavelift_fleetupgrade_completion_ratio",
                "The part of a campaign's clusters to which nothing more will happen.",
                ["namespace", "fleetupgrade"],
            )?,
            started: metrics.gauges(
                "wavelift_fleetupgrade_started_timestamp_seconds",
                "When Rollout was entered.",
                ["namespace", "fleetupgrade"],
            )?,
            progress: metrics.gauges(
                "wavelift_fleetupgrade_last_progress_timestamp_seconds",
                "When a campaign last came to a new line of its history.",
                ["namespace", "fleetupgrade"],
            )?,
            preflight: metrics.gauges(
                "wavelift_preflight_clusters",
                "Clusters by check and outcome.",
                ["namespace", "fleetupgrade", "check", "outcome"],
            )?,
            operators: metrics.gauges(
                "wavelift_fleetupgrade_operator_conditions",
                "Clusters by the conditions that their operators and their authors' status sources report.",
                ["namespace", "fleetupgrade", "type", "status"],
            )?,
        };
        Ok(Self { families: Mutex::new(families) })
    }

    pub(super) fn show<'a>(&self, shown: impl Iterator<Item = &'a Shown>) {
        let families = self.families.lock();
        families.clear();
        for one in shown.take(CAMPAIGNS_MAX) {
            families.show(one);
        }
    }

    pub(super) fn forget(&self, _gone: &Shown) {
        self.families.lock().clear();
    }
}

impl Families {
    fn clear(&self) {
        self.info.clear();
        self.clusters.clear();
        self.conditions.clear();
        self.halted.clear();
        self.completion.clear();
        self.started.clear();
        self.progress.clear();
        self.preflight.clear();
        self.operators.clear();
    }

    fn show(&self, shown: &Shown) {
        let (namespace, name) = shown.names();
        for target in shown.targets() {
            let version = target.version.as_deref().or(target.version_range.as_deref());
            self.info.with([namespace, name, &target.package, version.unwrap_or("latest")]).set(1);
        }
        let status = shown.status();
        for condition in &status.conditions {
            for truth in ["True", "False", "Unknown"] {
                let holds = i64::from(Truth::from(condition.status).as_str() == truth);
                let lower = truth.to_lowercase();
                self.conditions.with([namespace, name, &condition.kind, &lower]).set(holds);
            }
        }
        let is_halted = status.conditions.iter().any(|condition| {
            condition.kind == "Halted" && Truth::from(condition.status) == Truth::True
        });
        self.halted.with([namespace, name]).set(i64::from(is_halted));
        if let Some(summary) = status.summary.filter(|summary| summary.clusters > 0) {
            let done = f64::from(summary.clusters - summary.not_started);
            let ratio = done / f64::from(summary.clusters);
            self.completion.with([namespace, name]).set(ratio);
        }
        if let Some(at) = status.rollout_start_time {
            self.started.with([namespace, name]).set(at.as_second());
        }
        if let Some(entry) = status.history.last() {
            self.progress.with([namespace, name]).set(entry.time.as_second());
        }
        for wave in shown.waves().iter().take(WAVES_MAX) {
            for state in ClusterState::ALL {
                let clusters = wave.counts.get(&state).copied().unwrap_or(0);
                let labels = [namespace, name, &wave.name, state.as_str()];
                self.clusters.with(labels).set(i64::from(clusters));
            }
        }
        for ((kind, truth), clusters) in shown.operator_conditions().into_iter().take(OPERATORS_MAX)
        {
            self.operators.with([namespace, name, kind, truth]).set(clusters);
        }
        if status.completion_time.is_none() {
            for check in &status.preflight {
                let outcomes = [
                    ("Pass", check.pass),
                    ("Warn", check.warn),
                    ("Fail", check.fail),
                    ("Unknown", check.unknown),
                    ("Skipped", check.skipped),
                ];
                for (outcome, clusters) in outcomes {
                    let labels = [namespace, name, &check.check, outcome];
                    self.preflight.with(labels).set(i64::from(clusters));
                }
            }
        }
    }
}
