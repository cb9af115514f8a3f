//! What is in the picture: bundles, and the edges that lead from one to the next.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use wavelift_catalog::{
    Catalog,
    graph::{Bundle, Channel, Entry},
};
use wavelift_core::{range::Range, version::Version};

/// The most edges that are drawn; a picture with more shows nothing.
const EDGES_MAX: usize = 20_000;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No such package.
    #[error("there is no package `{package}` in this catalog; it has: {}", has.join(", "))]
    NoPackage { package: String, has: Vec<String> },
    /// No such channel.
    #[error("package `{package}` has no channel `{channel}`; it has: {}", has.join(", "))]
    NoChannel { package: String, channel: String, has: Vec<String> },
    /// It would be black all over.
    #[error(
        "package `{package}` has more than {EDGES_MAX} edges to draw: choose one with --channel"
    )]
    TooMany { package: String },
}

/// Which part of a package is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The package.
    pub(crate) package: &'a str,
    /// Only this channel.
    pub(crate) channel: Option<&'a str>,
}

/// A picture, before it has a form; as JSON, that is its form.
#[derive(Debug, Serialize)]
pub(crate) struct Model {
    pub(crate) package: String,
    /// The default one first, then by name.
    pub(crate) channels: Vec<Lane>,
    /// Newest version first; what has no version last.
    pub(crate) nodes: Vec<Node>,
}

/// One channel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) is_default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deprecation: Option<String>,
    /// What OLM would install today, newest first, or why it refuses the channel.
    #[serde(flatten, serialize_with = "chain_or_refusal")]
    pub(crate) chain: Result<Vec<String>, String>,
    pub(crate) edges: Vec<Edge>,
    /// Everything the channel names, with what it says of it.
    #[serde(skip)]
    pub(crate) entries: BTreeMap<String, Entry>,
}

/// One bundle, or a name that an edge speaks of.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<Version>,
    pub(crate) presence: Presence,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deprecation: Option<String>,
}

/// Whether a name stands for something that can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Presence {
    /// The catalog has the bundle.
    Here,
    /// Something is said of it, but the catalog has it not.
    Missing,
}

/// A way from one bundle to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) by: By,
}

/// What makes the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum By {
    /// `replaces`
    Replaces,
    /// `skips`
    Skips,
    /// `skipRange`
    SkipRange,
}

// === impl Model ===

impl Model {
    /// What a catalog says of a package.
    pub(crate) fn of(catalog: &Catalog, scope: Scope<'_>) -> Result<Self, Error> {
        let packages = &catalog.graph().packages;
        let package = packages.get(scope.package).ok_or_else(|| Error::NoPackage {
            package: scope.package.to_owned(),
            has: packages.keys().take(20).cloned().collect(),
        })?;
        if let Some(channel) = scope.channel
            && !package.channels.contains_key(channel)
        {
            return Err(Error::NoChannel {
                package: scope.package.to_owned(),
                channel: channel.to_owned(),
                has: package.channels.keys().cloned().collect(),
            });
        }
        let is_default = |name: &str| package.default_channel.as_deref() == Some(name);
        let mut channels = vec![];
        let mut left = EDGES_MAX;
        for (name, channel) in &package.channels {
            if scope.channel.is_some_and(|only| only != name) {
                continue;
            }
            let edges = edges(channel, &package.bundles, left)
                .ok_or_else(|| Error::TooMany { package: scope.package.to_owned() })?;
            left -= edges.len();
            let chain = catalog.chain(scope.package, name);
            channels.push(Lane {
                name: name.clone(),
                is_default: is_default(name),
                deprecation: channel.deprecation.clone(),
                chain: chain
                    .map(|chain| chain.into_iter().map(str::to_owned).collect())
                    .map_err(|error| error.to_string()),
                edges,
                entries: channel.entries.clone(),
            });
        }
        channels.sort_by(|a, b| b.is_default.cmp(&a.is_default).then_with(|| a.name.cmp(&b.name)));
        let nodes = nodes(&channels, &package.bundles);
        Ok(Self { package: scope.package.to_owned(), channels, nodes })
    }

    /// The node of this name.
    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

/// `"chain": [...]`, or `"refusedByV0": "why"`.
fn chain_or_refusal<S: Serializer>(
    chain: &Result<Vec<String>, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    match chain {
        Ok(chain) => map.serialize_entry("chain", chain)?,
        Err(why) => map.serialize_entry("refusedByV0", why)?,
    }
    map.end()
}

/// The edges of one channel; `None` when there are more than `most`.
fn edges(channel: &Channel, bundles: &BTreeMap<String, Bundle>, most: usize) -> Option<Vec<Edge>> {
    let mut edges = BTreeSet::new();
    for (to, entry) in &channel.entries {
        let mut add = |from: &str, by| {
            edges.insert(Edge { from: from.to_owned(), to: to.clone(), by });
        };
        if let Some(replaces) = &entry.replaces {
            add(replaces, By::Replaces);
        }
        for skipped in &entry.skips {
            add(skipped, By::Skips);
        }
        // A range that does not parse is no edge: so OLM takes it.
        let range = entry.skip_range.as_deref().and_then(|range| Range::parse(range).ok());
        for (from, bundle) in bundles {
            let is_in = |range: &Range| bundle.version.as_ref().is_some_and(|v| range.contains(v));
            let is_said = entry.replaces.as_ref() == Some(from) || entry.skips.contains(from);
            if from != to && !is_said && range.as_ref().is_some_and(is_in) {
                add(from, By::SkipRange);
            }
        }
        if edges.len() > most {
            return None;
        }
    }
    Some(edges.into_iter().collect())
}

fn nodes(channels: &[Lane], bundles: &BTreeMap<String, Bundle>) -> Vec<Node> {
    let mut names = BTreeSet::new();
    for channel in channels {
        names.extend(channel.entries.keys());
        names.extend(channel.edges.iter().flat_map(|edge| [&edge.from, &edge.to]));
    }
    let node = |name: &String| {
        let bundle = bundles.get(name);
        Node {
            name: name.clone(),
            version: bundle.and_then(|bundle| bundle.version.clone()),
            presence: if bundle.is_some() { Presence::Here } else { Presence::Missing },
            deprecation: bundle.and_then(|bundle| bundle.deprecation.clone()),
        }
    };
    let mut nodes: Vec<_> = names.into_iter().map(node).collect();
    nodes.sort_by(|a, b| match (&a.version, &b.version) {
        (Some(a_version), Some(b_version)) => {
            b_version.cmp_precedence(a_version).then_with(|| b.name.cmp(&a.name))
        }
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => b.name.cmp(&a.name),
    });
    nodes
}

impl By {
    /// The word of the catalog's own format.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Replaces => "replaces",
            Self::Skips => "skips",
            Self::SkipRange => "skipRange",
        }
    }
}

impl Node {
    /// Its version, or its name where it has none.
    pub(crate) fn title(&self) -> String {
        self.version.as_ref().map_or_else(|| self.name.clone(), ToString::to_string)
    }
}
