//! One cluster of a campaign: its row in a list and its whole view.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use wavelift_core::campaign::WaitingOn;

use crate::{
    cluster_upgrade::{
        ClusterStateName, FailureStatus, MoveSpec, OperatorConditionStatus, StepStateName, StepVia,
    },
    shared::{CheckOutcome, InsightStatus, PreflightReport, schema_time},
};

/// One cluster, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRow {
    /// The managed cluster.
    pub name: String,
    /// Its wave.
    pub wave: String,
    /// Where it stands.
    pub state: ClusterStateName,
    /// What it waits for; absent when it waits for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<WaitingView>,
    /// One sentence that says why it is where it is.
    pub message: String,
    /// Since when it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub since_time: Option<Timestamp>,
    /// From where to where each package of its plan goes; empty while the plan is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<MoveView>,
    /// `2/3`: the step that is running, of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Of the whole plan; absent before it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i32>,
    /// Whether its agent has a session.
    pub agent: super::AgentStateName,
    /// When its agent was last heard; absent when never by this hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub last_heard_time: Option<Timestamp>,
    /// The newest preflight in numbers; absent when none was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<CheckTally>,
    /// How it failed; absent when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
}

/// One cluster, all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub row: ClusterRow,
    /// The ManagedCluster's uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The campaign's epoch when it was last started; 0 before.
    pub epoch: i64,
    /// Raised by a retry.
    pub attempt: i32,
    /// The agent's version, once it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Digest of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
    /// When its first step began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema_time::Time>")]
    pub completion_time: Option<Timestamp>,
    /// Its plan, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepView>,
    /// The newest preflight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<PreflightReport>,
    /// Why it ended short of its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureStatus>,
    /// Health findings, loudest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<InsightStatus>,
    /// What its operators report through their OperatorCondition, as it is, and what their authors'
    /// status sources say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operator_conditions: Vec<OperatorConditionStatus>,
}

/// What a cluster waits for: the typed reason and its sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    /// The reason, with what belongs to it; `type` says which.
    #[serde(flatten)]
    pub on: WaitingOn,
    /// The same for people.
    pub sentence: String,
}

/// One package's way over the whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveView {
    /// The package.
    pub package: String,
    /// The installed version; absent for a dependency that the plan adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version after the last hop.
    pub to: String,
    /// How many hops.
    pub hops: u32,
}

/// The newest preflight in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckTally {
    /// As it should be.
    pub pass: u32,
    /// Worth knowing.
    pub warn: u32,
    /// In the way.
    pub fail: u32,
    /// Could not tell.
    pub unknown: u32,
    /// Does not apply.
    pub skipped: u32,
}

/// One step of a plan, with how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    /// The namespace whose InstallPlan it is.
    pub namespace: String,
    /// Everything that it moves.
    pub moves: Vec<MoveSpec>,
    /// Which catalog OLM takes it from.
    #[serde(default, skip_serializing_if = "StepVia::is_cluster")]
    pub via: StepVia,
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
    pub install_plan: Option<String>,
    /// One sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

// === impl WaitingView ===

impl From<WaitingOn> for WaitingView {
    fn from(on: WaitingOn) -> Self {
        Self { sentence: on.to_string(), on }
    }
}

impl JsonSchema for WaitingView {
    fn schema_name() -> Cow<'static, str> {
        "WaitingView".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What a cluster waits for: the typed reason, what belongs to it, and its sentence.",
            "type": "object",
            "required": ["type", "sentence"],
            "properties": {
                "type": {"type": "string", "enum": [
                    "Stage", "Consent", "Inventory", "Wave", "Slot", "FailureBudget", "Paused",
                    "Frozen", "Cancelled", "Halted", "Preflight", "Checks", "Agent", "Holder"
                ]},
                "sentence": {"type": "string"},
                "stage": {"type": "string"},
                "missing": {"type": "string"},
                "wave": {"type": ["string", "null"]},
                "maxConcurrent": {"type": "integer"},
                "failed": {"type": "integer"},
                "inFlight": {"type": "integer"},
                "maxFailures": {"type": "integer"},
                "checks": {"type": "array", "items": {"type": "string"}},
                "nextCheckAt": {"type": "string", "format": "date-time"},
                "since": {"type": "string", "format": "date-time"},
                "skipAt": {"type": ["string", "null"], "format": "date-time"},
                "fleetUpgrade": {"type": "string"}
            }
        })
    }
}

// === impl CheckTally ===

impl CheckTally {
    /// Counts the results of one preflight.
    pub fn of(report: &PreflightReport) -> Self {
        let mut tally = Self::default();
        for result in &report.results {
            let place = match result.outcome {
                CheckOutcome::Pass => &mut tally.pass,
                CheckOutcome::Warn => &mut tally.warn,
                CheckOutcome::Fail => &mut tally.fail,
                CheckOutcome::Unknown => &mut tally.unknown,
                CheckOutcome::Skipped => &mut tally.skipped,
            };
            *place += 1;
        }
        tally
    }

    /// The outcome that matters most: Fail, Unknown, Warn, Pass, Skipped in this order; `None`
    /// without results.
    pub fn worst(&self) -> Option<CheckOutcome> {
        [
            (self.fail, CheckOutcome::Fail),
            (self.unknown, CheckOutcome::Unknown),
            (self.warn, CheckOutcome::Warn),
            (self.pass, CheckOutcome::Pass),
            (self.skipped, CheckOutcome::Skipped),
        ]
        .into_iter()
        .find_map(|(count, outcome)| (count > 0).then_some(outcome))
    }
}
