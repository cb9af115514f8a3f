//! Lists, what wraps a single answer, and what the event stream carries.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClusterRow, ClusterView, UpgradeRow, UpgradeView};
use crate::{
    fleet_upgrade::StateCount,
    shared::{CheckOutcome, schema_time},
};

/// Campaigns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeList {
    /// The hub's time: ages are counted from here, not from the reader's clock.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// One page of them.
    pub items: Vec<UpgradeRow>,
    /// How many match, over all pages.
    pub total: u32,
    /// Give this as `continue` for the next page; absent on the last.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// One campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeDetail {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// The campaign.
    pub upgrade: UpgradeView,
}

/// Clusters of one campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterList {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// One page of them.
    pub items: Vec<ClusterRow>,
    /// How many match, over all pages.
    pub total: u32,
    /// How many there are under each value of each filter.
    pub facets: Facets,
    /// Give this as `continue` for the next page; absent on the last.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// One cluster of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDetail {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// The cluster.
    pub cluster: ClusterView,
}

/// For each filter, how many clusters match each of its values and all the other filters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Facets {
    /// By state, in the order in which states are shown.
    pub states: Vec<StateCount>,
    /// By wave, in the order of the waves.
    pub waves: Vec<WaveCount>,
    /// By outcome: clusters with at least one check of this outcome.
    pub checks: Vec<OutcomeCount>,
}

/// How many clusters are in a wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaveCount {
    /// The wave.
    pub wave: String,
    /// How many.
    pub clusters: u32,
}

/// How many clusters have a check of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeCount {
    /// The outcome.
    pub outcome: CheckOutcome,
    /// How many.
    pub clusters: u32,
}

/// Agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentList {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// The hub that answers.
    pub leader: LeaderView,
    /// Agents with a session, over all pages and filters.
    pub connected: u32,
    /// Clusters whose agent has none, over all pages and filters.
    pub silent: u32,
    /// One page of them, by name.
    pub items: Vec<AgentView>,
    /// How many match, over all pages.
    pub total: u32,
    /// Give this as `continue` for the next page; absent on the last.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// One cluster's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// The managed cluster.
    pub cluster: String,
    /// Whether it has a session.
    pub state: AgentStateName,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub since_time: Option<Timestamp>,
    /// When it was last heard; absent when never by this hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub last_heard_time: Option<Timestamp>,
    /// Its version, once it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The cluster's Kubernetes version, once the agent said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_version: Option<String>,
}

/// Whether an agent is heard.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum AgentStateName {
    /// It has a session.
    Connected,
    /// It has none.
    Silent,
    /// Whoever answers cannot tell, e.g. because only the objects were read.
    Unknown,
}

/// The hub that leads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderView {
    /// Its name, as in the lease.
    pub identity: String,
    /// Its number.
    pub term: u64,
}

/// Event `hello`: the first of every stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// Seconds of the hub's time that pass in one real second: 1 but in simulations.
    pub time_factor: f64,
    /// The leader's number.
    pub term: u64,
    /// True when nothing was missed since `Last-Event-ID`; otherwise a snapshot follows.
    pub resumed: bool,
}

/// Event `clusters`: clusters of one campaign that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClustersChanged {
    /// The campaign's namespace.
    pub namespace: String,
    /// The campaign's name.
    pub name: String,
    /// How many changed.
    pub changed: u32,
    /// Names of clusters that left the campaign, at most as many as `items`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The changed ones, at most 100; when `changed` is more, read the list again.
    pub items: Vec<ClusterRow>,
}

/// Event `removed`: a campaign that is gone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What an agent answered when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveAnswer {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// The managed cluster.
    pub cluster: String,
    /// The ClusterUpgrade as it is on the cluster, or null when there is none.
    pub object: serde_json::Value,
}
