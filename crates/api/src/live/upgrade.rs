//! A campaign: its row in a list and its whole view.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wavelift_core::campaign;

use crate::{
    fleet_upgrade::{
        BudgetMode, CheckCounts, Control, GroupChanges, HistoryEntry, PreviewPath, Stage,
        StateCount, SummaryStatus,
    },
    shared::{Conditions, InsightStatus, OperatorTarget, schema_time, twins},
};

/// A campaign, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: a campaign made again under an old name has another.
    pub uid: String,
    /// The generation of its spec that this speaks of.
    pub generation: i64,
    /// When the object was created.
    #[schemars(with = "schema_time::Time")]
    pub creation_time: Timestamp,
    /// How far the user lets it go.
    pub stage: Stage,
    /// How the user steers it.
    pub control: Control,
    /// Where it stands, in one word.
    pub phase: PhaseName,
    /// Where it stands, in one sentence.
    pub message: String,
    /// What is upgraded, to where.
    pub targets: Vec<OperatorTarget>,
    /// The numbers that add up to its clusters.
    pub summary: SummaryStatus,
    /// Clusters by state, in the order in which states are shown; states without clusters left out.
    pub states: Vec<StateCount>,
    /// The wave whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_wave: Option<String>,
    /// Waves that are complete.
    pub waves_complete: u32,
    /// All waves.
    pub waves_total: u32,
    /// How many things need somebody: insights of level Warning and above.
    pub needs_you: u32,
    /// When Rollout was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub rollout_start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub completion_time: Option<Timestamp>,
}

/// A campaign, all of it but its clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub row: UpgradeRow,
    /// Digest over all clusters' plans as they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
    /// The digest that the user consented to; absent before the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consented_digest: Option<String>,
    /// Raised on entering Rollout and on each new consent.
    pub epoch: i64,
    /// In the order in which they run.
    pub waves: Vec<WaveView>,
    /// The failure budget over all waves.
    pub budget: BudgetView,
    /// The paths that clusters take, most clusters first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<PreviewPath>,
    /// What the plans change, for the groups of clusters that are largest; all of it by `preview`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GroupChanges>,
    /// How many clusters have which outcome of each check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<CheckCounts>,
    /// The loudest findings over all clusters, loudest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<InsightStatus>,
    /// What happened, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// The object's conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Conditions,
}

/// One wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaveView {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: WaveStateName,
    /// Its clusters.
    pub clusters: u32,
    /// At the target.
    pub succeeded: u32,
    /// In flight.
    pub running: u32,
    /// Failed or stalled.
    pub failed: u32,
    /// Its clusters by state; states without clusters left out.
    pub states: Vec<StateCount>,
    /// Clusters in flight at once, as the user wrote it.
    pub max_concurrent: u32,
    /// Failures tolerated; one more halts.
    pub max_failures: u32,
    /// Clusters that the failure budget really lets run at once, where that is fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_parallelism: Option<u32>,
}

/// The failure budget over all waves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetView {
    /// Failures tolerated over all waves; absent = no further limit than the waves' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// What the budget bounds.
    pub mode: BudgetMode,
    /// Failures so far.
    pub failed: u32,
    /// Clusters whose outcome is open.
    pub in_flight: u32,
}

/// Where a campaign stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[expect(missing_docs, reason = "explained in core::campaign")]
pub enum PhaseName {
    Planning,
    Previewed,
    Preflighting,
    Preflighted,
    AwaitingConsent,
    Running,
    Paused,
    Frozen,
    Halting,
    Succeeded,
    SucceededWithFailures,
    Failed,
    Cancelled,
}

/// Where a wave stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "explained in core::campaign")]
pub enum WaveStateName {
    Pending,
    Running,
    Complete,
}

twins!(
    PhaseName,
    campaign::Phase,
    Planning,
    Previewed,
    Preflighting,
    Preflighted,
    AwaitingConsent,
    Running,
    Paused,
    Frozen,
    Halting,
    Succeeded,
    SucceededWithFailures,
    Failed,
    Cancelled
);
twins!(WaveStateName, campaign::WaveState, Pending, Running, Complete);
