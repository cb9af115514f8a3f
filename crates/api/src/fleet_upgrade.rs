//! FleetUpgrade: the campaign.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wavelift_core::campaign;

use crate::shared::{
    AfterUpgrade, Conditions, InsightStatus, PinnedCatalog, PreflightPolicy, Remedy, Targets,
    schema_time, twins,
};

/// Which operators go to which versions, on which clusters, in which waves.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema,
)]
#[kube(
    group = "wavelift.io",
    version = "v1alpha1",
    kind = "FleetUpgrade",
    plural = "fleetupgrades",
    singular = "fleetupgrade",
    shortname = "flup",
    category = "wavelift",
    namespaced,
    status = "FleetUpgradeStatus",
    derive = "PartialEq",
    doc = "A campaign: which operators go to which versions, on which clusters, in which waves.",
    validation = Rule::new("size(self.metadata.name) <= 54").message("a FleetUpgrade's name has at most 54 characters: ClusterUpgrades are named after it"),
    printcolumn = r#"{"name":"STAGE","type":"string","jsonPath":".spec.stage"}"#,
    printcolumn = r#"{"name":"CLUSTERS","type":"integer","jsonPath":".status.summary.clusters"}"#,
    printcolumn = r#"{"name":"DONE","type":"integer","jsonPath":".status.summary.succeeded"}"#,
    printcolumn = r#"{"name":"FAILED","type":"integer","jsonPath":".status.summary.failed"}"#,
    printcolumn = r#"{"name":"READY","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"STATUS","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"WAVE","type":"string","priority":1,"jsonPath":".status.currentWave"}"#,
    printcolumn = r#"{"name":"PLAN","type":"string","priority":1,"jsonPath":".status.planDigest"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("oldSelf.stage != 'Rollout' || self.stage == 'Rollout'")
        .message("the stage cannot go back from Rollout: a new attempt is a new FleetUpgrade"),
    validation = Rule::new("oldSelf.stage != 'Rollout' || self.targets == oldSelf.targets")
        .message("targets cannot change from Rollout on: a new attempt is a new FleetUpgrade"),
    validation = Rule::new("oldSelf.stage != 'Rollout' || self.clusters == oldSelf.clusters")
        .message("clusters cannot change from Rollout on: a new attempt is a new FleetUpgrade"),
    validation = Rule::new(
        "oldSelf.stage != 'Rollout' || self.pinnedCatalog == oldSelf.pinnedCatalog"
    )
    .message("pinnedCatalog cannot change from Rollout on: a new attempt is a new FleetUpgrade"),
    validation = Rule::new(
        "has(self.budget) && has(self.budget.mode) || !has(self.waves) || \
         self.waves.all(w, w.maxConcurrent <= w.maxFailures + 1)"
    )
    .message(
        "a wave has more clusters at once than it tolerates failures plus one: say budget.mode \
         Strict (fewer run at a time, never more than maxFailures + 1 failures) or StopOnBreach \
         (maxConcurrent run, all of those may fail)"
    ),
    validation = Rule::new(
        "has(self.budget) && has(self.budget.mode) || !has(self.waves) || !has(self.budget) || \
         !has(self.budget.maxFailures) || \
         self.waves.all(w, w.maxConcurrent <= self.budget.maxFailures + 1)"
    )
    .message(
        "a wave has more clusters at once than budget.maxFailures plus one: say budget.mode Strict \
         or StopOnBreach"
    ),
    validation = Rule::new("!has(self.offline) || self.offline.policy != 'Skip' || has(self.offline.deadlineSeconds)")
        .message("offline.policy Skip needs offline.deadlineSeconds"),
    validation = Rule::new("!has(self.onPlanChange) || self.onPlanChange != 'WithinRange' || self.targets.operators.exists(o, has(o.versionRange))")
        .message("onPlanChange WithinRange needs a target with versionRange"),
    validation = Rule::new("!has(self.remedies) || !self.remedies.exists(r, r == 'AdoptOrphanCSV')")
        .message(
            "AdoptOrphanCSV is not for fleets: where an orphan CSV is in the way there is no plan to \
             consent to; name it in a ClusterUpgrade of type Targets on that cluster"
        ),
)]
pub struct FleetUpgradeSpec {
    /// What is upgraded, to where.
    pub targets: Targets,
    /// On which clusters.
    pub clusters: ClusterSelection,
    /// How far the campaign may go. Moving it forward is how one asks for the next thing.
    #[serde(default)]
    pub stage: Stage,
    /// Steers a campaign under way.
    #[serde(default)]
    pub control: Control,
    /// In order; a wave starts when the one before is complete. None = one wave of all clusters,
    /// one at a time. Clusters that no wave names form a last wave of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub waves: Option<Vec<WaveSpec>>,
    /// The failure budget over all waves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpec>,
    /// What preflight checks may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<PreflightPolicy>,
    /// Consent: the `status.planDigest` that may run. Empty = any plan within the targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = r"^(sha256:[0-9a-f]{64})?$"))]
    pub plan_digest: Option<String>,
    /// What happens when a cluster's plan is not the consented one any more.
    #[serde(default)]
    pub on_plan_change: OnPlanChange,
    /// What becomes of the Subscriptions' approval.
    #[serde(default)]
    pub after_upgrade: AfterUpgrade,
    /// What the agent may do about dead ends; nothing else is ever repaired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub remedies: Vec<Remedy>,
    /// Whether agents may serve a pinned catalog where OLM would go past a target, or take along an
    /// operator that is no target.
    #[serde(default)]
    pub pinned_catalog: PinnedCatalog,
    /// What is done about clusters that are not heard from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline: Option<OfflineSpec>,
    /// Wishes for single clusters, each done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub actions: Option<Vec<ActionSpec>>,
}

/// On which clusters: by name or by label, not both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.names) != has(self.labelSelector)")
        .message("give names or labelSelector, one of them")
)]
pub struct ClusterSelection {
    /// Names of ManagedClusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10000), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub names: Option<Vec<String>>,
    /// Labels of ManagedClusters; an empty selector selects all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Selector>,
}

/// A label selector with limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Labels and their values, all of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectorRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// How its value is compared.
    pub operator: SelectorOperator,
    /// With which values (In, NotIn).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "Kubernetes' own words")]
pub enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// How far the campaign may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    /// Show what would change.
    #[default]
    Preview,
    /// Run the checks everywhere.
    Preflight,
    /// Upgrade.
    Rollout,
}

/// Steers a campaign under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Control {
    /// Goes on.
    #[default]
    Running,
    /// Starts no further cluster.
    Paused,
    /// Also stops running clusters at the next safe point.
    Frozen,
    /// Ends.
    Cancelled,
}

/// An ordered group of clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.names) != has(self.selector)")
        .message("give names or selector, one of them")
)]
pub struct WaveSpec {
    /// Its name.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Its clusters, in the order in which they start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub names: Option<Vec<String>>,
    /// Labels of its clusters; a cluster belongs to the first wave that selects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// Clusters in flight at once.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10000))]
    pub max_concurrent: i32,
    /// Failures tolerated; one more halts the campaign.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10000))]
    pub max_failures: i32,
}

fn one() -> i32 {
    1
}

/// The failure budget over all waves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetSpec {
    /// Failures tolerated over all waves; absent = no further limit than the waves' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub max_failures: Option<i32>,
    /// What the budget bounds. Absent means Strict where a wave leaves no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<BudgetMode>,
}

/// What the budget bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetMode {
    /// Never more than maxFailures + 1 failures: fewer clusters run at a time.
    #[default]
    Strict,
    /// maxConcurrent clusters run; when the budget is spent, those in flight may still fail.
    StopOnBreach,
}

/// What happens when a cluster's plan is not the consented one any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnPlanChange {
    /// The cluster waits for a new consent.
    #[default]
    Stop,
    /// It goes on if the same operators end at the same versions, by whatever steps.
    SameTarget,
    /// It goes on if the same operators move, those with a versionRange to a version within it and
    /// all others to the version that was consented to.
    WithinRange,
}

/// What is done about clusters that are not heard from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfflineSpec {
    /// Wait for them, or leave them out.
    #[serde(default)]
    pub policy: OfflinePolicy,
    /// How long they are waited for in the rollout before they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub deadline_seconds: Option<i64>,
}

/// Wait for clusters that are not heard from, or leave them out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OfflinePolicy {
    /// Their wave waits.
    #[default]
    Wait,
    /// They are left out after `deadlineSeconds`.
    Skip,
}

/// A wish for one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionSpec {
    /// An id of the user's choice; the action is done once and its id is then in
    /// `status.doneActions`.
    #[schemars(length(min = 1, max = 63))]
    pub id: String,
    /// The cluster.
    #[schemars(length(min = 1, max = 63))]
    pub cluster: String,
    /// What to do.
    #[serde(rename = "type")]
    pub kind: ActionType,
}

/// What to do about one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ActionType {
    /// Try again after a failure.
    Retry,
    /// Leave it out.
    Skip,
}

/// What the leader knows and has decided. No per-cluster lists but the two bounded ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FleetUpgradeStatus {
    /// The generation that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where the campaign stands, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub phase: Option<String>,
    /// Digest over all clusters' hops and CSV sets as planned now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub plan_digest: Option<String>,
    /// The digest under which the rollout was last begun; empty when any plan may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub consented_digest: Option<String>,
    /// Raised on entering Rollout and on each new consent.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// The term of the leader that wrote this status.
    #[schemars(range(min = 0))]
    pub term: i64,
    /// When Rollout was entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub rollout_start_time: Option<Timestamp>,
    /// When the campaign ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub completion_time: Option<Timestamp>,
    /// Clusters that are about to be started, written ahead of the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), inner(length(max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub starting: Vec<String>,
    /// Ids of `spec.actions` that are done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), inner(length(max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub done_actions: Vec<String>,
    /// The numbers that add up to the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryStatus>,
    /// Clusters by state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 11))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["state"]))]
    pub counts: Vec<StateCount>,
    /// The wave that is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub current_wave: Option<String>,
    /// The waves, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 51))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub waves: Vec<WaveStatus>,
    /// The paths that clusters take, most clusters first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub preview: Vec<PreviewPath>,
    /// What the plans change, for the groups of clusters that are largest; all of it is in the hub's
    /// API. A group whose changes are still being found out is not listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group"]))]
    pub changes: Vec<GroupChanges>,
    /// Preflight checks by outcome.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["check"]))]
    pub preflight: Vec<CheckCounts>,
    /// The loudest findings over all clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub insights: Vec<InsightStatus>,
    /// What happened, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<HistoryEntry>,
    /// Ready, Reconciling, Stalled, Succeeded, Progressing, PlanResolved, PreflightPassed,
    /// Approved, Paused, Halted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
}

/// Five numbers that add up to `clusters`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryStatus {
    /// All of them.
    pub clusters: i32,
    /// At the target.
    pub succeeded: i32,
    /// Failed or stalled.
    pub failed: i32,
    /// Left out by the user.
    pub skipped: i32,
    /// Left out because they were not heard from.
    pub unreachable: i32,
    /// Held, not reached, or in flight.
    pub not_started: i32,
}

/// How many clusters are in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateCount {
    /// The state.
    #[schemars(length(max = 32))]
    pub state: String,
    /// How many.
    #[schemars(range(min = 0))]
    pub clusters: i32,
}

/// One wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaveStatus {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Pending, Running or Complete.
    #[schemars(length(max = 32))]
    pub state: String,
    /// Its clusters.
    #[schemars(range(min = 0))]
    pub clusters: i32,
    /// At the target.
    #[schemars(range(min = 0))]
    pub succeeded: i32,
    /// In flight.
    #[schemars(range(min = 0))]
    pub running: i32,
    /// Failed or stalled.
    #[schemars(range(min = 0))]
    pub failed: i32,
}

/// One path that clusters take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewPath {
    /// The package.
    #[schemars(length(max = 253))]
    pub package: String,
    /// The installed version.
    #[schemars(length(max = 128))]
    pub from: String,
    /// The version after the last hop; empty when there is no path.
    #[schemars(length(max = 128))]
    pub to: String,
    /// How many hops.
    #[schemars(range(min = 0))]
    pub hops: i32,
    /// On how many clusters.
    #[schemars(range(min = 0))]
    pub clusters: i32,
    /// `via 6.1.4`, `already at target`, or why there is no path.
    #[schemars(length(max = 512))]
    pub note: String,
}

/// What the plans of clusters change that see the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupChanges {
    /// Names the group, as in the hub's API.
    #[schemars(length(max = 16))]
    pub group: String,
    /// How many clusters.
    #[schemars(range(min = 0))]
    pub clusters: i32,
    /// What moves, e.g. `loki-operator 6.1.4 -> 6.2.3; cluster-logging 6.1.4 -> 6.2.3`.
    #[schemars(length(max = 512))]
    pub ways: String,
    /// Permissions gained.
    #[schemars(range(min = 0))]
    pub permissions_gained: i32,
    /// How many of those deserve a look.
    #[schemars(range(min = 0))]
    pub dangerous_permissions: i32,
    /// The gravest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dangerous: Vec<String>,
    /// CRDs that OLM will refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub crds_refused: Vec<String>,
    /// Manual steps that the authors ask for.
    #[schemars(range(min = 0))]
    pub manual_steps: i32,
    /// What could not be looked at: bundles without manifests, packages without documents. Nothing
    /// is said of these.
    #[schemars(range(min = 0))]
    pub missing: i32,
}

/// How many clusters have which outcome of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckCounts {
    /// The check.
    #[schemars(length(max = 128))]
    pub check: String,
    /// As it should be.
    pub pass: i32,
    /// Worth knowing.
    pub warn: i32,
    /// In the way.
    pub fail: i32,
    /// Could not tell.
    pub unknown: i32,
    /// Does not apply.
    pub skipped: i32,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// When.
    #[schemars(with = "schema_time::Time")]
    pub time: Timestamp,
    /// CamelCase.
    #[schemars(length(max = 128))]
    pub reason: String,
    /// One sentence.
    #[schemars(length(max = 1024))]
    pub message: String,
}

twins!(Stage, campaign::Stage, Preview, Preflight, Rollout);
twins!(Control, campaign::Control, Running, Paused, Frozen, Cancelled);
twins!(BudgetMode, campaign::BudgetMode, Strict, StopOnBreach);
