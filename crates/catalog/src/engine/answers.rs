//! More than the one answer: what else may happen, and why the rest will not.

use std::fmt;

use serde::{Deserialize, Serialize};
use wavelift_core::version::Version;

use super::{CatalogKey, Next};

/// What the next InstallPlan holds, and what else it may hold.
///
/// OLM hands its solver some things in an order that changes from run to run. Where that decides the
/// answer, no tool can know it; these are the ways it may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    /// What OLM does where its order is the one of the request.
    pub next: Next,
    /// What it may do as well; empty where the answer is certain.
    pub alternatives: Vec<Next>,
    /// Whether these are all.
    pub listing: Listing,
}

/// How much of what may happen is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Listing {
    /// There may be more answers than the listed ones.
    Part,
    /// There are no other answers.
    All,
}

/// What becomes of a Subscription, and why of nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The package.
    pub package: String,
    /// The installed CSV.
    pub installed: Option<String>,
    /// What becomes of it.
    pub outcome: Outcome,
    /// Bundles that are not taken, the newest first; at most two hundred. Without what is older than
    /// the installed one in other channels and catalogs.
    pub passed: Vec<PassedOver>,
}

/// What becomes of a Subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It moves.
    Moves {
        /// To this CSV.
        to: String,
    },
    /// It stays, with no word about it in its status.
    Stays,
    /// Resolution of its namespace fails.
    Fails,
}

/// A bundle that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// Its name.
    pub csv: String,
    /// Its version.
    pub version: Option<Version>,
    /// The channel.
    pub channel: String,
    /// The catalog.
    pub catalog: CatalogKey,
    /// Why it is not taken.
    pub reason: Reason,
}

/// Why a bundle is not taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is not newer than what is installed, and nothing leads there.
    NotNewer,
    /// Nothing leads there from what is installed: no `replaces`, no `skips`, no `skipRange`.
    NoEdge {
        /// The installed CSV.
        from: String,
    },
    /// Another entry of its channel skips it, so OLM never installs it.
    Skipped {
        /// That entry.
        by: String,
    },
    /// The channel's chain of replacement does not lead to it.
    OutOfChain,
    /// The Subscription asks for one CSV to start with.
    StartingCsv {
        /// That CSV.
        csv: String,
    },
    /// It is in another channel than the subscribed one.
    OtherChannel {
        /// The subscribed channel.
        subscribed: String,
    },
    /// It is in another catalog than the subscribed one.
    OtherCatalog {
        /// The subscribed catalog.
        subscribed: CatalogKey,
    },
    /// Another candidate is preferred: nearer to the head of its channel, or in a channel before.
    Preferred {
        /// That candidate.
        by: String,
    },
    /// Its author forbids it (`olm.deprecated`).
    Deprecated,
    /// It needs what nothing can give.
    Needs {
        /// What it needs.
        need: String,
    },
    /// It needs what only something could give that excludes another chosen CSV.
    NeedBlocked {
        /// What it needs.
        need: String,
        /// The chosen CSV.
        by: String,
    },
    /// It and another chosen CSV exclude each other.
    Conflicts {
        /// The chosen CSV.
        with: String,
        /// What only one may have.
        over: String,
    },
    /// OLM may take it: that is left to chance.
    Chance,
    /// It does not go with the rest, for no one reason that could be named alone.
    Search,
}

// === impl Outcome, Reason, PassedOver, Explanation ===

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moves { to } => write!(f, "moves to `{to}`"),
            Self::Stays => f.write_str("stays"),
            Self::Fails => f.write_str("can't be resolved"),
        }
    }
}

impl Reason {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotNewer => "NotNewer",
            Self::NoEdge { .. } => "NoEdge",
            Self::Skipped { .. } => "Skipped",
            Self::OutOfChain => "OutOfChain",
            Self::StartingCsv { .. } => "StartingCsv",
            Self::OtherChannel { .. } => "OtherChannel",
            Self::OtherCatalog { .. } => "OtherCatalog",
            Self::Preferred { .. } => "Preferred",
            Self::Deprecated => "Deprecated",
            Self::Needs { .. } => "Needs",
            Self::NeedBlocked { .. } => "NeedBlocked",
            Self::Conflicts { .. } => "Conflicts",
            Self::Chance => "Chance",
            Self::Search => "Search",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNewer => f.write_str("is not newer than what is installed"),
            Self::NoEdge { from } => {
                write!(f, "does not follow `{from}`: no replaces, skips or skipRange leads there")
            }
            Self::Skipped { by } => write!(f, "is skipped by `{by}`, so OLM never installs it"),
            Self::OutOfChain => f.write_str("is not on its channel's chain of replacement"),
            Self::StartingCsv { csv } => write!(f, "is not the startingCSV `{csv}`"),
            Self::OtherChannel { subscribed } => {
                write!(f, "is not in the subscribed channel `{subscribed}`")
            }
            Self::OtherCatalog { subscribed } => {
                write!(f, "is not in the subscribed catalog {subscribed}")
            }
            Self::Preferred { by } => write!(f, "comes after `{by}` in OLM's order"),
            Self::Deprecated => f.write_str("must not be installed any more (olm.deprecated)"),
            Self::Needs { need } => write!(f, "needs {need}, which nothing visible can give"),
            Self::NeedBlocked { need, by } => {
                write!(f, "needs {need}, which can't be given beside `{by}`")
            }
            Self::Conflicts { with, over } => {
                write!(f, "excludes `{with}`: only one may have {over}")
            }
            Self::Chance => f.write_str("may be taken instead: OLM leaves it to chance"),
            Self::Search => f.write_str("does not go with the rest of the namespace"),
        }
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (channel `{}` of {}) {}", self.csv, self.channel, self.catalog, self.reason)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.package, self.outcome)?;
        self.passed.iter().try_for_each(|passed| write!(f, "\n  {passed}"))
    }
}
