//! Why a cluster is not moving, typed, with one sentence for people.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a cluster waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum WaitingOn {
    /// The user, to move the stage forward.
    Stage {
        /// The stage that the campaign is in.
        stage: super::Stage,
    },
    /// The user's consent to the plan as it is now.
    Consent,
    /// The agent's first report, or the catalog.
    Inventory {
        /// What is missing.
        missing: String,
    },
    /// An earlier wave.
    Wave {
        /// The wave that must be complete first.
        wave: String,
    },
    /// A slot of its wave.
    Slot {
        /// Clusters in flight at once in this wave.
        max_concurrent: u32,
    },
    /// The failure budget: what is in flight or unknown might fail too.
    FailureBudget {
        /// Failures so far.
        failed: u32,
        /// Clusters whose outcome is open.
        in_flight: u32,
        /// Failures tolerated.
        max_failures: u32,
    },
    /// The user, who paused the campaign.
    Paused,
    /// The user, who froze the campaign.
    Frozen,
    /// Nothing any more: the user cancelled the campaign.
    Cancelled,
    /// A person: the failure budget is spent.
    Halted {
        /// Failures so far.
        failed: u32,
        /// Failures tolerated.
        max_failures: u32,
        /// The wave whose budget is spent; `None` when it is the one over all waves.
        wave: Option<String>,
    },
    /// The answer of its checks.
    Preflight,
    /// Its checks, which hold it.
    Checks {
        /// The checks that hold it.
        checks: Vec<String>,
        /// When they run again.
        next_check_at: Timestamp,
    },
    /// Its agent, which is not heard.
    Agent {
        /// Since when.
        since: Timestamp,
        /// When it will be left out, if ever.
        skip_at: Option<Timestamp>,
    },
    /// Another campaign that holds the cluster.
    Holder {
        /// Its name.
        fleet_upgrade: String,
    },
}

impl WaitingOn {
    /// A stable label.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stage { .. } => "Stage",
            Self::Consent => "Consent",
            Self::Inventory { .. } => "Inventory",
            Self::Wave { .. } => "Wave",
            Self::Slot { .. } => "Slot",
            Self::FailureBudget { .. } => "FailureBudget",
            Self::Paused => "Paused",
            Self::Frozen => "Frozen",
            Self::Cancelled => "Cancelled",
            Self::Halted { .. } => "Halted",
            Self::Preflight => "Preflight",
            Self::Checks { .. } => "Checks",
            Self::Agent { .. } => "Agent",
            Self::Holder { .. } => "Holder",
        }
    }
}

impl fmt::Display for WaitingOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage { stage } => {
                write!(f, "waits for the next stage: the campaign is in {}", stage.as_str())
            }
            Self::Consent => f.write_str(
                "waits for consent: its plan is not the one that was launched, review and launch again",
            ),
            Self::Inventory { missing } => write!(f, "waits for {missing}"),
            Self::Wave { wave } => write!(f, "waits for wave {wave} to complete"),
            Self::Slot { max_concurrent } => {
                write!(f, "waits for a slot: {max_concurrent} at once in this wave")
            }
            Self::FailureBudget { failed, in_flight, max_failures } => write!(
                f,
                "waits for the failure budget: {failed} failed and {in_flight} in flight may not \
                 exceed {max_failures} tolerated",
            ),
            Self::Paused => f.write_str("waits: the campaign is paused"),
            Self::Frozen => f.write_str("waits: the campaign is frozen"),
            Self::Cancelled => f.write_str("not started: the campaign was cancelled"),
            Self::Halted { failed, max_failures, wave } => {
                let of = wave.as_ref().map_or_else(String::new, |wave| format!(" in wave {wave}"));
                write!(f, "not started: {failed} failed{of}, {max_failures} tolerated")
            }
            Self::Preflight => f.write_str("its checks are running"),
            Self::Checks { checks, next_check_at } => {
                let checks =
                    if checks.is_empty() { "its checks".to_owned() } else { checks.join(", ") };
                write!(f, "held by {checks}, checked again at {next_check_at:.0}")
            }
            Self::Agent { since, skip_at } => {
                write!(f, "its agent has not been heard since {since:.0}")?;
                match skip_at {
                    Some(at) => write!(f, ", left out at {at:.0}"),
                    None => Ok(()),
                }
            }
            Self::Holder { fleet_upgrade } => {
                write!(f, "waits: FleetUpgrade {fleet_upgrade} holds the cluster")
            }
        }
    }
}
