//! The states of clusters and steps, as every surface shows them.

use serde::{Deserialize, Serialize};

/// Where one cluster stands in its campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ClusterState {
    /// Not its turn yet.
    Pending,
    /// Held by a check or by something the user must decide.
    Blocked,
    /// Left out by the user's word.
    Skipped,
    /// Its checks are running.
    Preflight,
    /// Checked and clear, waiting for its turn.
    Ready,
    /// A step is running.
    Upgrading,
    /// The last step is done, its result is being watched for stability.
    Verifying,
    /// At the target.
    Succeeded,
    /// Ended by a failure that cannot heal by itself.
    Failed,
    /// A step missed its deadline; counted as a failure.
    Stalled,
    /// Not heard from.
    Unreachable,
}

/// Where one step of a plan stands.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum StepState {
    /// Not begun.
    #[default]
    Pending,
    /// Running.
    Running,
    /// Done and stable.
    Done,
    /// Ended by a failure.
    Failed,
}

impl ClusterState {
    /// All states, in the order in which they are shown.
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Blocked,
        Self::Skipped,
        Self::Preflight,
        Self::Ready,
        Self::Upgrading,
        Self::Verifying,
        Self::Succeeded,
        Self::Failed,
        Self::Stalled,
        Self::Unreachable,
    ];

    /// Whether nothing more follows.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Stalled | Self::Skipped => true,
            Self::Pending
            | Self::Blocked
            | Self::Preflight
            | Self::Ready
            | Self::Upgrading
            | Self::Verifying
            | Self::Unreachable => false,
        }
    }

    /// As the API, the metrics and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Blocked => "Blocked",
            Self::Skipped => "Skipped",
            Self::Preflight => "Preflight",
            Self::Ready => "Ready",
            Self::Upgrading => "Upgrading",
            Self::Verifying => "Verifying",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Stalled => "Stalled",
            Self::Unreachable => "Unreachable",
        }
    }
}

impl StepState {
    /// As the API and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Done => "Done",
            Self::Failed => "Failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_as_serde_writes_them() {
        for state in ClusterState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for state in [StepState::Pending, StepState::Running, StepState::Done, StepState::Failed] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
