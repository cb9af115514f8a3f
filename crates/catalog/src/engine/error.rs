//! Why there is no next step, or no path.

use wavelift_core::{causes::sentence, version::Version};

use super::{CatalogKey, answers::Reason};
use crate::catalog::{BadNeed, BadRule, ChainError};

/// Why OLM's resolution of the namespace fails. No Subscription of the namespace moves then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The Subscription's catalog is not there or holds nothing.
    #[error("catalog {catalog} of the Subscription to `{package}` is missing or empty")]
    CatalogMissing {
        /// The subscribed package.
        package: String,
        /// The catalog.
        catalog: CatalogKey,
    },
    /// The catalog does not have the package.
    #[error("package `{package}` is not in catalog {catalog}")]
    PackageMissing {
        /// The package.
        package: String,
        /// The catalog.
        catalog: CatalogKey,
    },
    /// The package does not have the channel.
    #[error("package `{package}` has no channel `{channel}`")]
    ChannelMissing {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// The channel does not have the CSV to start with.
    #[error("package `{package}` has no `{csv}` in channel `{channel}` to start with")]
    StartingCsvMissing {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// `spec.startingCSV`.
        csv: String,
    },
    /// A channel that had to be read has no one chain of replacement.
    #[error("channel `{channel}` of package `{package}` has no order")]
    Channel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// What is wrong with it.
        #[source]
        source: ChainError,
    },
    /// A bundle that had to be read states a need that can't be understood.
    #[error("bundle `{bundle}` states a need that can't be read")]
    Need {
        /// The bundle.
        bundle: String,
        /// What is wrong with it.
        #[source]
        source: BadNeed,
    },
    /// A bundle that had to be read states a rule in CEL that is none, or that is not evaluated.
    #[error("bundle `{bundle}` states a CEL rule that can't be used")]
    Cel {
        /// The bundle.
        bundle: String,
        /// What is wrong with the rule.
        #[source]
        source: BadRule,
    },
    /// No choice of bundles satisfies everything.
    #[error("no choice of bundles satisfies all Subscriptions{}", listed(.unmet))]
    Unsatisfiable {
        /// What nothing satisfies, as far as one bundle alone shows it; at most sixteen.
        unmet: Vec<Unmet>,
    },
    /// The search was given up.
    #[error("no answer after {steps} steps")]
    TooHard {
        /// How many steps were allowed.
        steps: u64,
    },
}

/// A reason why one bundle can't be chosen at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// Nothing satisfies one of its needs.
    #[error("`{bundle}` needs {need}")]
    Need {
        /// The bundle.
        bundle: String,
        /// What it needs.
        need: String,
    },
    /// It is on the cluster without a Subscription that refers to it, and stands in the way of one:
    /// left behind by a deleted Subscription, or so new that OLM has not written it down yet.
    #[error("`{csv}` is installed and no Subscription refers to it")]
    Orphan {
        /// The CSV.
        csv: String,
    },
    /// It has the property `olm.deprecated`.
    #[error("`{bundle}` must not be installed any more (olm.deprecated)")]
    Deprecated {
        /// The bundle.
        bundle: String,
    },
}

fn stays(target: &Version, why: Option<&Reason>) -> String {
    match why {
        Some(why) => format!("{target} {why}"),
        None => format!("no edge leads on to {target}"),
    }
}

fn listed(unmet: &[Unmet]) -> String {
    unmet.iter().fold(String::new(), |text, unmet| text + "; " + &unmet.to_string())
}

impl ResolveError {
    /// The error with its causes, in one line.
    pub fn sentence(&self) -> String {
        sentence(self)
    }

    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::CatalogMissing { .. } => "CatalogMissing",
            Self::PackageMissing { .. } => "PackageMissing",
            Self::ChannelMissing { .. } => "ChannelMissing",
            Self::StartingCsvMissing { .. } => "StartingCsvMissing",
            Self::Channel { .. } => "Channel",
            Self::Need { .. } => "Need",
            Self::Cel { .. } => "Cel",
            Self::Unsatisfiable { .. } => "Unsatisfiable",
            Self::TooHard { .. } => "TooHard",
        }
    }
}

/// Why the hops to the targets are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Resolution fails on the way.
    #[error("resolution fails after {hops} hops")]
    Resolve {
        /// How many hops went well.
        hops: usize,
        /// Why it fails.
        #[source]
        source: Box<ResolveError>,
    },
    /// OLM's way does not lead to the targets.
    #[error(transparent)]
    NoPath(#[from] Box<NoPath>),
}

/// Why OLM's way does not lead to a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPath {
    /// There is no Subscription to the package.
    #[error("no Subscription to `{package}` is in the namespace")]
    NotSubscribed {
        /// The package.
        package: String,
    },
    /// The package is beyond its target already.
    #[error("`{package}` is at {installed}, beyond {target}")]
    AlreadyPast {
        /// The package.
        package: String,
        /// The version it is at.
        installed: Version,
        /// The target.
        target: Version,
    },
    /// The hop that OLM takes next goes beyond the target.
    #[error("`{package}` goes past {target} to {version} (`{csv}`)")]
    Overshoots {
        /// The package.
        package: String,
        /// The target.
        target: Version,
        /// The CSV that OLM takes instead.
        csv: String,
        /// Its version.
        version: Version,
    },
    /// The namespace stays before the target is reached.
    #[error(
        "`{package}` stays at `{}`: {}",
        .installed.as_deref().unwrap_or("nothing"), stays(.target, .why.as_ref())
    )]
    Stays {
        /// The package.
        package: String,
        /// The CSV it stays at.
        installed: Option<String>,
        /// The target.
        target: Version,
        /// Why the target is not taken from there, where there is a word on it.
        why: Option<Reason>,
    },
    /// The hops come back to where they were.
    #[error("the hops go round in a circle after {hops} hops")]
    Circle {
        /// How many hops there were.
        hops: usize,
    },
    /// More hops than any real catalog needs.
    #[error("not at the target after {max} hops")]
    TooManyHops {
        /// The most hops that are followed.
        max: usize,
    },
}

impl PathError {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Resolve { source, .. } => source.kind(),
            Self::NoPath(no_path) => no_path.kind(),
        }
    }
}

impl NoPath {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotSubscribed { .. } => "NotSubscribed",
            Self::AlreadyPast { .. } => "AlreadyPast",
            Self::Overshoots { .. } => "Overshoots",
            Self::Stays { .. } => "Stays",
            Self::Circle { .. } => "Circle",
            Self::TooManyHops { .. } => "TooManyHops",
        }
    }
}
