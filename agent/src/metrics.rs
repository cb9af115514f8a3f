//! What the agent counts, beside what its link counts. `docs/metrics.md` lists all of it.

use std::time::Duration;

use wavelift_api::cluster_upgrade::OperatorConditionStatus;
use wavelift_core::{check::Outcome, plan::Plan};
use wavelift_runtime::metrics::{self, Counters, Gauges, Histograms};

use crate::link;

/// How long a check may be expected to take, in seconds.
const CHECK_BOUNDS: [f64; 6] = [0.001, 0.01, 0.1, 1.0, 10.0, 60.0];

/// Why the metrics could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of the agent's own.
    #[error("the agent's metrics")]
    Own(#[from] metrics::Error),
    /// One of the link's.
    #[error("the link's metrics")]
    Link(#[source] Box<prometheus::Error>),
}

/// The agent's metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The link's part.
    pub(crate) link: link::Metrics,
    in_progress: Gauges<1>,
    checks: Counters<2>,
    check_duration: Histograms<1>,
    approvals: Counters<1>,
    ended: Counters<1>,
    refused: Counters<1>,
    behind: Gauges<1>,
    conditions: Gauges<3>,
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Own(_) => "own",
            Self::Link(_) => "link",
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers everything.
    pub fn register(metrics: &metrics::Metrics) -> Result<Self, Error> {
        let info = metrics.gauges(
            "wavelift_agent_build_info",
            "1, with the version of the agent.",
            ["version"],
        )?;
        info.with([env!("CARGO_PKG_VERSION")]).set(1);
        Ok(Self {
            link: link::Metrics::register(metrics.registry())
                .map_err(|error| Error::Link(Box::new(error)))?,
            in_progress: metrics.gauges(
                "wavelift_agent_upgrade_in_progress",
                "1 while an upgrade of this package is under way.",
                ["package"],
            )?,
            checks: metrics.counters(
                "wavelift_agent_checks_total",
                "Preflight checks run, by outcome.",
                ["check", "outcome"],
            )?,
            check_duration: metrics.histograms(
                "wavelift_agent_check_duration_seconds",
                "How long a preflight check took to judge what was read.",
                ["check"],
                &CHECK_BOUNDS,
            )?,
            approvals: metrics.counters(
                "wavelift_agent_installplan_approvals_total",
                "InstallPlan approvals: approved, stale (it had changed, nothing was written), refused, \
                 unanswered (whether it was done is not known).",
                ["result"],
            )?,
            ended: metrics.counters(
                "wavelift_agent_upgrades_total",
                "Upgrades that ended, by their last state.",
                ["state"],
            )?,
            refused: metrics.counters(
                "wavelift_agent_refusals_total",
                "Wishes of the hub that were not obeyed, by kind.",
                ["kind"],
            )?,
            behind: metrics.gauges(
                "wavelift_agent_kind_unread",
                "1 while this kind cannot be read, so that nothing is decided on it.",
                ["kind"],
            )?,
            conditions: metrics.gauges(
                "wavelift_agent_operator_condition",
                "Conditions that the operators of the upgrade under way report: 1 for the status that holds.",
                ["csv", "type", "status"],
            )?,
        })
    }

    /// A check has run.
    pub fn checked(&self, check: &str, outcome: Outcome, took: Duration) {
        self.checks.with([check, outcome.as_str()]).inc();
        self.check_duration.with([check]).observe(took.as_secs_f64());
    }

    /// The upgrade that is under way now, if any.
    pub fn in_progress(&self, plan: Option<&Plan>) {
        self.in_progress.clear();
        self.conditions.clear();
        for item in plan.iter().flat_map(|plan| &plan.steps).flat_map(|step| &step.moves) {
            self.in_progress.with([item.package.as_str()]).set(1);
        }
    }

    /// An approval was tried.
    pub fn approved(&self, result: &'static str) {
        self.approvals.with([result]).inc();
    }

    /// An upgrade has ended.
    pub fn ended(&self, state: &'static str) {
        self.ended.with([state]).inc();
    }

    /// The kinds that cannot be read now.
    pub fn unread<'a>(&self, kinds: impl Iterator<Item = &'a str>) {
        self.behind.clear();
        for kind in kinds {
            self.behind.with([kind]).set(1);
        }
    }

    /// What the operators of the upgrade under way report.
    pub fn conditions(&self, all: &[OperatorConditionStatus]) {
        self.conditions.clear();
        for condition in all {
            self.conditions.with([&condition.csv, &condition.kind, &condition.status]).set(1);
        }
    }

    /// A wish of the hub was not obeyed.
    pub fn refused(&self, kind: &'static str) {
        self.refused.with([kind]).inc();
    }
}
