//! ClusterUpgrade: one cluster's part.
//!
//! The same kind in two places: in the managed cluster's namespace on the hub, written by the hub,
//! and in the agent's namespace on the managed cluster, where the agent works from it. There a
//! person may write one too (`origin: Local`), with no hub at all.

use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wavelift_core::state;

use crate::shared::{
    AfterUpgrade, Conditions, FailureKind, InsightStatus, PinnedCatalog, PreflightPolicy,
    PreflightReport, Remedy, Targets, schema_time, twins,
};

/// What one cluster is to do.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema,
)]
#[kube(
    group = "wavelift.io",
    version = "v1alpha1",
    kind = "ClusterUpgrade",
    plural = "clusterupgrades",
    singular = "clusterupgrade",
    shortname = "clup",
    category = "wavelift",
    namespaced,
    status = "ClusterUpgradeStatus",
    derive = "PartialEq",
    doc = "One cluster's part of a FleetUpgrade: its plan, its preflight results, its progress.",
    printcolumn = r#"{"name":"STATE","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"STEP","type":"string","jsonPath":".status.step"}"#,
    printcolumn = r#"{"name":"PERCENT","type":"integer","jsonPath":".status.percent"}"#,
    printcolumn = r#"{"name":"MESSAGE","type":"string","jsonPath":".status.message"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "self.type == 'Plan' ? has(self.plan) && !has(self.targets) : \
         has(self.targets) && !has(self.plan)"
    )
    .message("type Plan goes with plan, type Targets with targets, and not with the other"),
    validation = Rule::new("self.origin != 'Hub' || self.type == 'Plan'")
        .message("the hub writes plans; only a person on the cluster writes targets"),
    validation = Rule::new("self.origin != 'Hub' || has(self.fleetUpgrade)")
        .message("origin Hub names its fleetUpgrade"),
)]
pub struct ClusterUpgradeSpec {
    /// Who wrote it.
    pub origin: Origin,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: UpgradeType,
    /// The steps to take (type Plan).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSpec>,
    /// Where to go (type Targets); the agent makes the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Targets>,
    /// The campaign it is part of (origin Hub).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_upgrade: Option<FleetUpgradeReference>,
    /// Digest of the plan that may run: set by the hub with the plan, by a person after reading
    /// `status.planDigest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = r"^(sha256:[0-9a-f]{64})?$"))]
    pub plan_digest: Option<String>,
    /// Whether `planDigest` must match (type Targets).
    #[serde(default)]
    pub consent: ConsentMode,
    /// The campaign's epoch when this was last started.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Raised by a retry.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub attempt: i32,
    /// How far it may go.
    #[serde(default)]
    pub stage: UpgradeStage,
    /// Steers an upgrade under way.
    #[serde(default)]
    pub control: UpgradeControl,
    /// What preflight checks may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<PreflightPolicy>,
    /// What becomes of the Subscriptions' approval.
    #[serde(default)]
    pub after_upgrade: AfterUpgrade,
    /// What the agent may do about dead ends; nothing else is ever repaired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub remedies: Vec<Remedy>,
    /// Whether steps may be taken by a pinned catalog (type Targets); a plan says it of each step.
    #[serde(default)]
    pub pinned_catalog: PinnedCatalog,
}

/// Who wrote a ClusterUpgrade's spec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Origin {
    /// The hub.
    #[default]
    Hub,
    /// A person, on the cluster itself.
    Local,
}

/// What a ClusterUpgrade holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeType {
    /// Steps.
    #[default]
    Plan,
    /// Targets, from which the agent makes the steps.
    Targets,
}

/// Whether the plan must be consented to by its digest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsentMode {
    /// `planDigest` must equal the plan's.
    #[default]
    Digest,
    /// Any plan within the targets may run.
    Any,
}

/// How far a ClusterUpgrade may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeStage {
    /// Only the checks.
    #[default]
    Preflight,
    /// The steps.
    Rollout,
}

/// Steers an upgrade under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeControl {
    /// Goes on.
    #[default]
    Running,
    /// Stops between two steps.
    Frozen,
    /// Stops between two steps, for good.
    Cancelled,
}

/// The campaign that a ClusterUpgrade is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetUpgradeReference {
    /// Its namespace on the hub.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

/// The ordered steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanSpec {
    /// In the order in which they run.
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<StepSpec>,
}

/// One InstallPlan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepSpec {
    /// The namespace whose InstallPlan it is.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Everything that it moves.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub moves: Vec<MoveSpec>,
    /// Which catalog OLM takes it from.
    #[serde(default, skip_serializing_if = "StepVia::is_cluster")]
    pub via: StepVia,
}

/// Which catalog a step comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepVia {
    /// The cluster's own.
    #[default]
    Cluster,
    /// One that the agent serves for the duration of the step: of the cluster's own catalog only
    /// what leads there.
    PinnedCatalog,
}

impl StepVia {
    /// True when OLM goes there by itself.
    pub fn is_cluster(&self) -> bool {
        *self == Self::Cluster
    }
}

/// One operator's part of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveSpec {
    /// The package.
    #[schemars(length(min = 1, max = 253))]
    pub package: String,
    /// The CSV before; absent for a dependency that the step adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub from: Option<String>,
    /// The CSV after.
    #[schemars(length(min = 1, max = 253))]
    pub to: String,
    /// Version of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub from_version: Option<String>,
    /// Version of `to`.
    #[schemars(length(max = 128))]
    pub to_version: String,
}

/// What the agent sees and does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterUpgradeStatus {
    /// The generation that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where the cluster stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ClusterStateName>,
    /// The epoch that this status belongs to.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The attempt that this status belongs to.
    #[schemars(range(min = 0))]
    pub attempt: i32,
    /// Raised at each start of the agent.
    #[schemars(range(min = 0))]
    pub boot: i64,
    /// Raised at each status of one boot.
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// `2/3`: the step that is running, of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub step: Option<String>,
    /// Of the whole plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i32>,
    /// One sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub message: Option<String>,
    /// The plan that the agent made (type Targets).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSpec>,
    /// Digest of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub plan_digest: Option<String>,
    /// One entry a step of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<StepStatus>,
    /// The newest preflight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preflight: Option<PreflightReport>,
    /// Why it ended short of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureStatus>,
    /// Why it was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<SkipReasonName>,
    /// When the first step began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub completion_time: Option<Timestamp>,
    /// Conditions that the operators report through their OperatorCondition, as they are, and those
    /// of their authors' status sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub operator_conditions: Vec<OperatorConditionStatus>,
    /// Health findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub insights: Vec<InsightStatus>,
    /// Ready, Reconciling, Stalled, Succeeded, AgentReporting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
}

/// One step of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Where it stands.
    pub state: StepStateName,
    /// From what is observed; never goes back.
    #[schemars(range(min = 0, max = 100))]
    pub percent: i32,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub completion_time: Option<Timestamp>,
    /// The InstallPlan that was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub install_plan: Option<String>,
    /// One sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub message: Option<String>,
}

/// Why an upgrade ended short of its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatus {
    /// Dead end or deadline.
    #[serde(rename = "type")]
    pub kind: FailureKind,
    /// CamelCase; `docs/runbooks` has a page of this name.
    #[schemars(length(min = 1, max = 128))]
    pub reason: String,
    /// What happened, with OLM's own text.
    #[schemars(length(max = 2048))]
    pub message: String,
    /// What to do next.
    #[schemars(length(max = 1024))]
    pub remediation: String,
    /// The step, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 255))]
    pub step: Option<i32>,
}

/// A condition of an OperatorCondition, or of an author's status source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorConditionStatus {
    /// The CSV that it belongs to.
    #[schemars(length(max = 253))]
    pub csv: String,
    /// Its type.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// True, False or Unknown.
    #[schemars(length(max = 16))]
    pub status: String,
    /// Its reason.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Its message.
    #[schemars(length(max = 2048))]
    pub message: String,
}

/// Where a cluster stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "explained in core::state")]
pub enum ClusterStateName {
    Pending,
    Blocked,
    Skipped,
    Preflight,
    Ready,
    Upgrading,
    Verifying,
    Succeeded,
    Failed,
    Stalled,
    Unreachable,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "explained in core::state")]
pub enum StepStateName {
    #[default]
    Pending,
    Running,
    Done,
    Failed,
}

/// Why a cluster was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "explained in core::campaign")]
pub enum SkipReasonName {
    User,
    UserInFlight,
    Cancelled,
}

twins!(
    ClusterStateName,
    state::ClusterState,
    Pending,
    Blocked,
    Skipped,
    Preflight,
    Ready,
    Upgrading,
    Verifying,
    Succeeded,
    Failed,
    Stalled,
    Unreachable
);
twins!(StepVia, wavelift_core::plan::Via, Cluster, PinnedCatalog);
twins!(StepStateName, state::StepState, Pending, Running, Done, Failed);
twins!(SkipReasonName, wavelift_core::campaign::SkipReason, User, UserInFlight, Cancelled);
