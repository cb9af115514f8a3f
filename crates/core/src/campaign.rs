//! The wave scheduler: from a campaign and what is known of each cluster, as of now, to a decision
//! with a typed reason for every cluster.
//!
//! [`decide`] is the one function. It reads no clock and keeps nothing: whoever holds the same
//! facts gets the same decisions, so a hub that was killed goes on where it was.

mod decide;
mod facts;
mod report;
mod waiting;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tables;

pub use decide::{Decision, Decisions, Limits, Settled, decide};
pub use facts::{
    Budget, BudgetMode, Campaign, Cluster, Consent, Control, Failure, Link, Offline, PlanFact,
    PreflightFact, Request, Run, SkipReason, Stage, Wave,
};
pub use report::{Counts, Phase, Summary, WaveReport, WaveState, state};
pub use waiting::WaitingOn;
