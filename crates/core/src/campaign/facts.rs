//! What the scheduler is told: the campaign as the user wrote it, and each cluster as it is known.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ids::{ClusterName, WaveName};

/// What the user has asked for so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Show what would change.
    #[default]
    Preview,
    /// Run the checks everywhere.
    Preflight,
    /// Upgrade.
    Rollout,
}

/// How the user steers a campaign under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    /// Goes on.
    #[default]
    Running,
    /// Starts no further cluster.
    Paused,
    /// Also stops running clusters at the next safe point.
    Frozen,
    /// Ends: starts nothing, running clusters stop at the next safe point.
    Cancelled,
}

/// Whether the failure budget bounds failures or starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetMode {
    /// A cluster starts only while failed + unknown + in flight ≤ F: at most F + 1 failures, ever.
    #[default]
    Strict,
    /// `maxConcurrent` clusters run; a breach stops further starts, those in flight may still fail.
    StopOnBreach,
}

/// The failure budget over all waves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Failures tolerated over all waves; `None` sets no further limit than the waves' own.
    pub max_failures: Option<u32>,
    /// What the budget bounds.
    pub mode: BudgetMode,
}

/// What to do about a cluster that is not heard from and was not started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Offline {
    /// Its wave waits for it.
    #[default]
    Wait,
    /// It is left out once it was silent this long in the rollout.
    Skip {
        /// How long it is waited for.
        deadline: SignedDuration,
    },
}

/// A wave with its members resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wave {
    /// Its name, unique in the campaign.
    pub name: WaveName,
    /// In the order in which they start. A cluster is in one wave only.
    pub members: Vec<ClusterName>,
    /// Clusters in flight at once; at least 1.
    pub max_concurrent: u32,
    /// Failures tolerated in this wave.
    pub max_failures: u32,
}

/// Whether the user's word covers the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// It does, or any plan within the targets may run.
    Given,
    /// The user consented to another plan than the present one.
    Stale,
}

/// The campaign as the scheduler sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// What the user has asked for so far.
    pub stage: Stage,
    /// How the user steers.
    pub control: Control,
    /// In order; a wave opens when the one before is complete.
    pub waves: Vec<Wave>,
    /// The failure budget over all waves.
    pub budget: Budget,
    /// The offline policy.
    pub offline: Offline,
    /// Whether the plan may run.
    pub consent: Consent,
    /// When Rollout was entered, durably; `None` before.
    pub rollout_since: Option<Timestamp>,
}

/// One cluster as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its plan.
    pub plan: PlanFact,
    /// Whether its agent is heard.
    pub link: Link,
    /// How far its upgrade is, from durable state.
    pub run: Run,
    /// Its newest preflight.
    pub preflight: PreflightFact,
    /// What the user asked for this cluster alone and has not been done yet.
    pub request: Request,
    /// Another campaign that holds the cluster.
    pub holder: Option<String>,
}

/// What is known of a cluster's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanFact {
    /// Its inventory or catalog has not been read yet.
    Unknown {
        /// What is missing, for people.
        missing: String,
    },
    /// Nothing to do.
    AtTarget,
    /// OLM offers no way to the target.
    NoPath {
        /// Why, for people.
        why: String,
    },
    /// There is a plan and the user's word covers it.
    Planned,
    /// There is a plan, but it is not the one that the user consented to.
    NotConsented,
}

/// Whether a cluster's agent is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// A session is open.
    Connected,
    /// None is open.
    Silent {
        /// Since when; the hub's own start at the latest.
        since: Timestamp,
    },
}

/// How far a cluster's upgrade is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// Not started.
    NotStarted,
    /// Started, or written ahead as about to be.
    InFlight {
        /// The last step is done and being watched.
        verifying: bool,
    },
    /// At the target.
    Succeeded,
    /// Ended short of it.
    Failed(Failure),
    /// Left out.
    Skipped(SkipReason),
    /// Left out because it was not heard from in time.
    Unreachable,
}

/// How an upgrade failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// A dead end that does not heal by itself.
    Failed,
    /// A step missed its deadline.
    Stalled,
}

/// Why a cluster was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SkipReason {
    /// The user skipped it before it started.
    User,
    /// The user skipped it while it was in flight and silent: it keeps its reservation.
    UserInFlight,
    /// The campaign was cancelled while it was between two steps.
    Cancelled,
}

/// The newest preflight of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreflightFact {
    /// None yet.
    None,
    /// Asked for, not answered.
    Running {
        /// When it was asked for.
        asked_at: Timestamp,
    },
    /// Answered, nothing in the way.
    Clear {
        /// When.
        at: Timestamp,
    },
    /// Answered, held.
    Blocked {
        /// When.
        at: Timestamp,
        /// By which checks.
        checks: Vec<String>,
    },
}

/// What the user asked for one cluster and has not been done yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Request {
    /// Nothing.
    #[default]
    None,
    /// Leave it out.
    Skip,
    /// Try it again after its failure.
    Retry,
}

impl Stage {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preview => "Preview",
            Self::Preflight => "Preflight",
            Self::Rollout => "Rollout",
        }
    }
}

impl Run {
    /// True when nothing more will happen to the cluster by itself.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::NotStarted | Self::InFlight { .. } => false,
            Self::Succeeded | Self::Failed(_) | Self::Skipped(_) | Self::Unreachable => true,
        }
    }
}
