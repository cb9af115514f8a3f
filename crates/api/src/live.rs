//! The shapes of the hub's JSON API: what the page and the CLI read.
//!
//! They say no more than the hub knows: what is not there is absent, never a guess. Within `/api/v1`
//! they only grow, and readers ignore fields that they do not know.

mod cluster;
mod list;
mod preview;
mod problem;
mod upgrade;

#[cfg(test)]
mod tests;

pub use self::{
    cluster::{CheckTally, ClusterRow, ClusterView, MoveView, StepView, WaitingView},
    list::{
        AgentList, AgentStateName, AgentView, ClusterDetail, ClusterList, ClustersChanged, Facets,
        Hello, LeaderView, LiveAnswer, OutcomeCount, UpgradeDetail, UpgradeKey, UpgradeList,
        WaveCount,
    },
    preview::{
        BlockerKind, BlockerList, BlockerView, CatalogView, DifferenceKind, DifferenceView,
        ImportanceName, OperatorPreview, PreviewCounts, PreviewDetail, PreviewGroup, PreviewList,
        PreviewState, SectionView, WayView,
    },
    problem::Problem,
    upgrade::{BudgetView, PhaseName, UpgradeRow, UpgradeView, WaveStateName, WaveView},
};
