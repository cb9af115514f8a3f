//! What the plans of a campaign change, by groups of clusters that see the same.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::schema_time;

/// The preview of a campaign: one page of its groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewList {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// Whether everything has been found out that can be.
    pub state: PreviewState,
    /// Clusters of the campaign.
    pub clusters: u32,
    /// Clusters that have nothing to do.
    pub at_target: u32,
    /// Clusters that something stands in the way of.
    pub blocked: u32,
    /// The first of them, at most 20; all by `preview/blockers`.
    pub blockers: Vec<BlockerView>,
    /// Groups beyond the most that are compared.
    pub left_out: u32,
    /// One page of the groups, most clusters first.
    pub items: Vec<PreviewGroup>,
    /// How many match, over all pages.
    pub total: u32,
    /// Give this as `continue` for the next page; absent on the last.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// Whether a preview is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreviewState {
    /// Something is on its way or being compared.
    Making,
    /// What can be known is known; what cannot is named as missing.
    Made,
}

/// Clusters that see the same preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewGroup {
    /// Names the group as long as its clusters see the same.
    pub id: String,
    /// How many clusters.
    pub clusters: u32,
    /// The first of them by name, at most 5.
    pub examples: Vec<String>,
    /// Whether its changes are known.
    pub state: PreviewState,
    /// The way of each package that moves.
    pub ways: Vec<WayView>,
    /// The catalogs that its bundles come from.
    pub catalogs: Vec<CatalogView>,
    /// What changes, in numbers and the gravest by name.
    pub counts: PreviewCounts,
    /// How many changes it has that not every group has, or lacks of those that all others have.
    pub differences: u32,
}

/// The way of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WayView {
    /// Where it is installed.
    pub namespace: String,
    /// The package.
    pub package: String,
    /// The installed version; absent for a dependency that is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The versions that follow.
    pub to: Vec<String>,
    /// Those of them that OLM stops at by a pinned catalog alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
}

/// A catalog as a group's clusters announced it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogView {
    /// Namespace and name of its CatalogSource on the group's first cluster.
    pub source: String,
    /// The digest of its graph.
    pub digest: String,
    /// The digest of what it holds beside its graph; absent from older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
}

/// What changes over the whole way, in numbers. Of what is missing nothing is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreviewCounts {
    /// Permissions gained.
    pub permissions_gained: u32,
    /// Permissions lost.
    pub permissions_lost: u32,
    /// Gained permissions that deserve a look, at most 20, the gravest first.
    pub dangerous: Vec<String>,
    /// How many there are of those.
    pub dangerous_total: u32,
    /// Changes of CRDs.
    pub crd_changes: u32,
    /// CRDs that OLM will refuse, at most 20.
    pub crds_refused: Vec<String>,
    /// Images to pull, over all versions of the way.
    pub images: u32,
    /// Manual steps that the authors ask for, at most 20.
    pub manual_steps: Vec<String>,
    /// How many there are of those.
    pub manual_steps_total: u32,
    /// Release notes.
    pub release_notes: u32,
    /// What could not be looked at and why, at most 20.
    pub missing: Vec<String>,
    /// How many there are of those.
    pub missing_total: u32,
}

/// One group, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewDetail {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// What a list shows of it.
    pub group: PreviewGroup,
    /// Its clusters by name, at most 500.
    pub members: Vec<String>,
    /// What sets it apart from other groups, at most 200.
    pub differences: Vec<DifferenceView>,
    /// What changes, operator by operator; empty while it is being found out.
    pub operators: Vec<OperatorPreview>,
}

/// One operator of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorPreview {
    /// Where it is installed.
    pub namespace: String,
    /// The package.
    pub package: String,
    /// What changes over the whole way, in lines, the most important sections first.
    pub sections: Vec<SectionView>,
    /// Its changes, hop by hop and over the whole way, in the form of
    /// `docs/reference/preview.schema.json`.
    pub preview: serde_json::Value,
}

/// A part of a preview in lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SectionView {
    /// What it is about.
    pub title: String,
    /// How much the most important of it matters.
    pub importance: ImportanceName,
    /// How many changes.
    pub total: u32,
    /// One line for each, and what belongs to it indented below; at most 500.
    pub lines: Vec<String>,
}

/// How much a change matters to whoever decides on an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImportanceName {
    /// It may stop the upgrade, or what runs on the cluster; or nobody could look.
    High,
    /// Somebody should look at it before.
    Medium,
    /// Good to know.
    Low,
}

/// Something that one group has and another has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceView {
    /// Whether this group has it, or lacks what the others have.
    pub kind: DifferenceKind,
    /// The package.
    pub package: String,
    /// The part of the preview, as its sections are called.
    pub section: String,
    /// What it is, in one line.
    pub text: String,
    /// How many of the other groups that move this package have it.
    pub groups: u32,
}

/// Which way two groups differ.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum DifferenceKind {
    /// This group has it, some other has not.
    Has,
    /// All others have it, this group has not.
    Lacks,
}

/// What stands in the way, one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerList {
    /// The hub's time.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// One page of them, by cluster.
    pub items: Vec<BlockerView>,
    /// How many match, over all pages.
    pub total: u32,
    /// Give this as `continue` for the next page; absent on the last.
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// Something in the way of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerView {
    /// The cluster.
    pub cluster: String,
    /// What kind of thing.
    pub kind: BlockerKind,
    /// Why, in one sentence.
    pub why: String,
}

/// What stands in the way.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BlockerKind {
    /// OLM does not lead to the target.
    NoPath,
    /// Something that decides the plan has not been read.
    NotKnown,
    /// Preflight checks hold it.
    Checks,
    /// Another campaign is at work on it.
    Held,
}
