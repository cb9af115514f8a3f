//! Health findings: what is wrong, since when, how bad, and what to do next.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How loud an insight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Worth knowing.
    Info,
    /// May need somebody.
    Warning,
    /// Needs somebody.
    Error,
    /// Needs somebody now.
    Critical,
}

/// What suffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Impact {
    /// Nothing.
    None,
    /// Could not tell.
    Unknown,
    /// The upgrade is slower than it should be.
    UpdateSpeed,
    /// The upgrade does not move.
    UpdateStalled,
    /// An API may be unreadable.
    ApiAvailability,
    /// The operator's own work may stand still.
    ApplicationAvailability,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Insight {
    /// Stable: the same problem keeps its id from one status to the next.
    pub id: String,
    /// CamelCase kind; `docs/runbooks` has a page of this name.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// How loud.
    pub level: Level,
    /// What suffers.
    pub impact: Impact,
    /// One sentence, with OLM's own text where there is one.
    pub message: String,
    /// What to do next.
    pub remediation: String,
}

impl Level {
    /// As the API and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "Info",
            Self::Warning => "Warning",
            Self::Error => "Error",
            Self::Critical => "Critical",
        }
    }
}

impl Impact {
    /// As `oc adm upgrade status` writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Unknown => "Unknown",
            Self::UpdateSpeed => "Update Speed",
            Self::UpdateStalled => "Update Stalled",
            Self::ApiAvailability => "API Availability",
            Self::ApplicationAvailability => "Application Availability",
        }
    }
}
