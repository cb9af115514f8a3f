//! The way of one package to a goal, with all that is to know about it: where it can be stopped, by
//! which other channels the goal can be reached, and if there is no way, why.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct as _};
use wavelift_core::{causes::listed, version::Version};

use super::{CatalogKey, Hop};

/// The way of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The package.
    pub package: String,
    /// The InstallPlans up to the goal, or, where it is not reached, up to where it can no longer be;
    /// each with everything that moves along.
    pub hops: Vec<Hop>,
    /// How it ends.
    pub end: RouteEnd,
    /// Versions that the hops jump over.
    pub jumped: Vec<Jumped>,
    /// Ways to the goal by changing the channel, the shortest first; none where the subscribed
    /// channel leads there.
    pub detours: Vec<Detour>,
}

/// How a way ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum RouteEnd {
    /// At the goal.
    Reached {
        /// The CSV.
        csv: String,
        /// Its version.
        version: Option<Version>,
    },
    /// Elsewhere.
    NoWay(NoWay),
}

/// A version that a hop jumps over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Jumped {
    /// The CSV that is left out.
    pub csv: String,
    /// Its version.
    pub version: Version,
    /// The hop, counted from 0.
    pub hop: usize,
    /// How the way could be stopped there; none where it can't.
    pub stops: Vec<Stop>,
}

/// How a version can be stopped at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stop {
    /// In this channel of the same catalog OLM goes there.
    Channel {
        /// The channel to subscribe to.
        channel: String,
        /// What leads there.
        edge: Edge,
    },
    /// With a pinned catalog, where the channel ends with it, OLM goes there.
    PinnedCatalog {
        /// The channel.
        channel: String,
        /// What leads there.
        edge: Edge,
        /// The entries of the channel that have to be left out.
        without: Vec<String>,
    },
}

/// What leads from one CSV to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Edge {
    /// The entry replaces it by name.
    Replaces,
    /// The entry skips it by name.
    Skips,
    /// The entry's range holds its version.
    SkipRange(String),
}

/// A way through other channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detour {
    /// Its hops, looked at without neighbours and dependencies.
    pub legs: Vec<Leg>,
}

/// One hop of a detour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leg {
    /// The channel to be subscribed to.
    pub channel: String,
    /// Where it starts.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// What leads there.
    pub edge: Edge,
}

/// Why a goal is not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoWay {
    /// There is no Subscription to the package.
    #[error("no Subscription to `{package}` is in the namespace")]
    NotSubscribed {
        /// The package.
        package: String,
    },
    /// Resolution of the namespace fails, at the start or on the way.
    #[error("resolution of the namespace fails after {hops} hops: {why}")]
    Fails {
        /// How many hops went well.
        hops: usize,
        /// Why it fails, with its causes.
        why: String,
    },
    /// The package is beyond its goal already.
    #[error("`{csv}` is beyond the goal already")]
    AlreadyPast {
        /// The installed CSV.
        csv: String,
    },
    /// No bundle of the cluster's catalog is what was asked for.
    #[error("catalog {catalog} has no such version of `{package}`{}", between(.below.as_deref(), .above.as_deref()))]
    NotInCatalog {
        /// The catalog.
        catalog: CatalogKey,
        /// The package.
        package: String,
        /// The nearest older version that it has.
        below: Option<String>,
        /// The nearest newer version that it has.
        above: Option<String>,
    },
    /// The channel's entries have no bundles in the catalog.
    #[error("the catalog lacks bundles on the way: {}", listed(.bundles))]
    MissingBundles {
        /// Their names: what has to be mirrored.
        bundles: Vec<String>,
    },
    /// The goal is in other channels only.
    #[error("`{csv}` is not in channel `{subscribed}`, but in {}", listed(.channels))]
    OtherChannel {
        /// The CSV.
        csv: String,
        /// The subscribed channel.
        subscribed: String,
        /// Where it is.
        channels: Vec<String>,
    },
    /// OLM never goes to a skipped entry.
    #[error("`{csv}` is skipped by `{by}`, so OLM never installs it")]
    Skipped {
        /// The CSV.
        csv: String,
        /// The entry that skips it.
        by: String,
    },
    /// The next hop goes beyond the goal.
    #[error("OLM goes past it, from `{from}` to `{to}`")]
    Overshoots {
        /// Where the hop starts.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// What leads to the goal is something else than what is installed.
    #[error("`{csv}` follows only {}; `{at}` is not among them", listed(.after))]
    NeedsFirst {
        /// The CSV of the goal.
        csv: String,
        /// Where the package stays.
        at: String,
        /// CSVs, or ranges of versions, that it follows.
        after: Vec<String>,
    },
    /// A candidate is there, and something keeps OLM from it.
    #[error("`{at}` stays: `{csv}` {reason}")]
    Kept {
        /// Where the package stays.
        at: String,
        /// The candidate.
        csv: String,
        /// What keeps OLM from it.
        reason: super::Reason,
    },
    /// The hops come back to where they were, or do not end.
    #[error("the hops do not end")]
    Endless,
}

fn between(below: Option<&str>, above: Option<&str>) -> String {
    match (below, above) {
        (None, None) => String::new(),
        (Some(below), None) => format!("; its newest older one is {below}"),
        (None, Some(above)) => format!("; its oldest newer one is {above}"),
        (Some(below), Some(above)) => format!("; the nearest are {below} and {above}"),
    }
}

// === impl NoWay, Edge, Stop ===

impl Serialize for NoWay {
    /// `{"reason", "message"}`: the kind for machines, the sentence for people.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut said = serializer.serialize_struct("NoWay", 2)?;
        said.serialize_field("reason", self.kind())?;
        said.serialize_field("message", &self.to_string())?;
        said.end()
    }
}

impl NoWay {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotSubscribed { .. } => "NotSubscribed",
            Self::Fails { .. } => "Fails",
            Self::AlreadyPast { .. } => "AlreadyPast",
            Self::NotInCatalog { .. } => "NotInCatalog",
            Self::MissingBundles { .. } => "MissingBundles",
            Self::OtherChannel { .. } => "OtherChannel",
            Self::Skipped { .. } => "Skipped",
            Self::Overshoots { .. } => "Overshoots",
            Self::NeedsFirst { .. } => "NeedsFirst",
            Self::Kept { .. } => "Kept",
            Self::Endless => "Endless",
        }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaces => f.write_str("replaces"),
            Self::Skips => f.write_str("skips"),
            Self::SkipRange(range) => write!(f, "skipRange {range}"),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel { channel, edge } => write!(f, "channel `{channel}` ({edge})"),
            Self::PinnedCatalog { channel, edge, without } => {
                write!(f, "a pinned catalog where channel `{channel}` lacks ")?;
                write!(f, "{} ({edge})", listed(without))
            }
        }
    }
}
