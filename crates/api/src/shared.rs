//! Shapes that both kinds use.

use jiff::Timestamp;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wavelift_core::{
    campaign, check,
    conditions::{self, Truth},
    insight::{Impact, Level},
};

/// Where an operator is to go. Without `version` and `versionRange`: as far as its channel goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(has(self.version) && has(self.versionRange))")
        .message("give version or versionRange, not both")
)]
pub struct OperatorTarget {
    /// The OLM package, e.g. `odf-operator`.
    #[schemars(length(min = 1, max = 253))]
    pub package: String,
    /// The exact version to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub version: Option<String>,
    /// A range of versions, as in `olm.skipRange`; the best reachable one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub version_range: Option<String>,
    /// Only the Subscription in this namespace; absent = wherever the package is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// What is to be upgraded, to where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    /// The operators.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub operators: Vec<OperatorTarget>,
}

/// What a Fail or an Unknown does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnOutcome {
    /// Hold the cluster.
    #[default]
    Block,
    /// Go on; `reason` says why.
    Proceed,
}

/// What preflight checks may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!((has(self.onFail) && self.onFail == 'Proceed') || \
         (has(self.onUnknown) && self.onUnknown == 'Proceed')) || has(self.reason)"
    )
    .message("Proceed needs a reason: it is kept in the history")
)]
pub struct PreflightPolicy {
    /// What a check that fails does.
    #[serde(default)]
    pub on_fail: OnOutcome,
    /// What a check that could not tell does.
    #[serde(default)]
    pub on_unknown: OnOutcome,
    /// Why it goes on all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub reason: Option<String>,
}

/// What the agent may do about a dead end of OLM's, which a person would otherwise get out of by
/// hand. Nothing of it is done that is not named, and nothing where the agent runs with remedies
/// disabled.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Remedy {
    /// Let OLM try an InstallPlan again that it has given up, once nothing is found against it: its
    /// status goes back to Installing.
    RetryFailedInstallPlan,
    /// Take back a step whose InstallPlan OLM has given up, while its new CSVs have not begun to
    /// install: they and the InstallPlan are deleted, the Subscriptions' status goes back to the
    /// installed CSVs, and OLM makes a fresh InstallPlan.
    RemakeFailedInstallPlan,
    /// Give an installed CSV that no Subscription refers to back to the Subscription of its package
    /// (type Targets).
    AdoptOrphanCSV,
}

/// What becomes of `installPlanApproval`, which is Manual during the upgrade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AfterUpgrade {
    /// Stays Manual.
    #[default]
    Hold,
    /// Goes back to what it was; what was Automatic then upgrades by itself again.
    Restore,
}

/// Whether an operator under OLM v0 may be stopped, or left, where OLM alone would not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PinnedCatalog {
    /// Only steps that OLM takes by itself.
    #[default]
    Never,
    /// For the duration of a step the agent may serve a catalog that holds of the cluster's own only
    /// what leads to the target. Operators that are no target then stay where they are.
    Allowed,
}

/// A check's result on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// The check's stable name.
    #[schemars(length(min = 1, max = 128))]
    pub check: String,
    /// What it found.
    pub outcome: CheckOutcome,
    /// What is done about it.
    pub disposition: CheckDisposition,
    /// CamelCase reason.
    #[schemars(length(max = 128))]
    pub reason: String,
    /// One sentence for people, with what to do.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// Stable ids of what it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub subjects: Vec<String>,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the words of DESIGN section 1, explained in core::check")]
pub enum CheckOutcome {
    Pass,
    Warn,
    Fail,
    Unknown,
    Skipped,
}

/// What is done about an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the words of DESIGN section 1, explained in core::check")]
pub enum CheckDisposition {
    Clear,
    Warned,
    Blocked,
    Waived,
}

/// A cluster's preflight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreflightReport {
    /// When the checks ran.
    #[schemars(with = "schema_time::Time")]
    pub observed_time: Timestamp,
    /// One entry a check.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["check"]))]
    pub results: Vec<CheckResult>,
}

/// A health finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InsightStatus {
    /// Stable from one status to the next.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,
    /// CamelCase kind; `docs/runbooks` has a page of this name.
    #[schemars(length(min = 1, max = 128))]
    pub reason: String,
    /// Since when.
    #[schemars(with = "schema_time::Time")]
    pub since_time: Timestamp,
    /// How loud.
    pub level: InsightLevel,
    /// What suffers.
    pub impact: InsightImpact,
    /// One sentence, with OLM's own text where there is one.
    #[schemars(length(max = 2048))]
    pub message: String,
    /// What to do next.
    #[schemars(length(max = 1024))]
    pub remediation: String,
    /// On how many clusters (FleetUpgrade only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub clusters: Option<i32>,
}

/// How loud an insight is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[expect(missing_docs, reason = "explained in core::insight")]
pub enum InsightLevel {
    Info,
    Warning,
    Error,
    Critical,
}

/// What suffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "explained in core::insight")]
pub enum InsightImpact {
    None,
    Unknown,
    UpdateSpeed,
    UpdateStalled,
    ApiAvailability,
    ApplicationAvailability,
}

/// A condition, as `metav1.Condition` with its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// CamelCase, e.g. `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation that it speaks of.
    #[serde(default)]
    pub observed_generation: i64,
    /// When `status` last changed.
    #[schemars(with = "schema_time::Time")]
    pub last_transition_time: Timestamp,
    /// CamelCase.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// One sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "Kubernetes' own words")]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

/// `status.conditions` of both kinds.
pub type Conditions = Vec<Condition>;

/// Schemas of foreign types.
pub(crate) mod schema_time {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    /// RFC 3339, as Kubernetes' own times.
    pub(crate) struct Time;

    impl JsonSchema for Time {
        fn schema_name() -> Cow<'static, str> {
            "Time".into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "format": "date-time" })
        }
    }
}

// === impl conversions to and from core ===

impl From<PreflightPolicy> for check::Policy {
    fn from(policy: PreflightPolicy) -> Self {
        Self { on_fail: policy.on_fail.into(), on_unknown: policy.on_unknown.into() }
    }
}

impl From<OnOutcome> for check::OnOutcome {
    fn from(on: OnOutcome) -> Self {
        match on {
            OnOutcome::Block => Self::Block,
            OnOutcome::Proceed => Self::Proceed,
        }
    }
}

macro_rules! twins {
    ($ours:ty, $core:ty, $($variant:ident),+) => {
        impl From<$core> for $ours {
            fn from(value: $core) -> Self {
                match value { $(<$core>::$variant => Self::$variant),+ }
            }
        }
        impl From<$ours> for $core {
            fn from(value: $ours) -> Self {
                match value { $(<$ours>::$variant => Self::$variant),+ }
            }
        }
    };
}
pub(crate) use twins;

twins!(ConditionStatus, Truth, True, False, Unknown);

impl From<conditions::Condition> for Condition {
    fn from(condition: conditions::Condition) -> Self {
        Self {
            kind: condition.kind,
            status: condition.status.into(),
            observed_generation: condition.observed_generation,
            last_transition_time: condition.last_transition,
            reason: condition.reason,
            message: condition.message,
        }
    }
}

impl From<Condition> for conditions::Condition {
    fn from(condition: Condition) -> Self {
        Self {
            kind: condition.kind,
            status: condition.status.into(),
            observed_generation: condition.observed_generation,
            last_transition: condition.last_transition_time,
            reason: condition.reason,
            message: condition.message,
        }
    }
}

twins!(CheckOutcome, check::Outcome, Pass, Warn, Fail, Unknown, Skipped);
twins!(CheckDisposition, check::Disposition, Clear, Warned, Blocked, Waived);
twins!(InsightLevel, Level, Info, Warning, Error, Critical);
twins!(
    InsightImpact,
    Impact,
    None,
    Unknown,
    UpdateSpeed,
    UpdateStalled,
    ApiAvailability,
    ApplicationAvailability
);

/// `Failed` or `Stalled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailureKind {
    /// A dead end that does not heal by itself.
    Failed,
    /// A step missed its deadline.
    Stalled,
}

twins!(FailureKind, campaign::Failure, Failed, Stalled);
