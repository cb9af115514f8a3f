//! The upgrade graph of a catalog: what decides which version comes next, and nothing else.
//!
//! Maps are sorted, lists stand in the catalog's own order where the order has a meaning. Names are
//! spelled as the catalog spells them; they become checked ids where they leave this crate's callers.
//!
//! The canonical form is what is hashed and sent between agent and hub. It holds exactly what every
//! way of reading a catalog can tell, so that one catalog has one digest wherever it was read. OLM
//! v0's registry tells neither entries without a bundle nor the CSV's least Kubernetes version, so
//! those two are part of the graph where it was read, but not of its canonical form: a graph that
//! was sent does not have them, and nobody can slip them in under another graph's digest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use wavelift_core::version::Version;

pub(crate) use self::build::Details;
pub use self::digest::Digest;
use crate::{json, limits::Limits};

mod build;
pub(crate) mod canonical;
mod digest;

/// Why bytes are not a graph, or a catalog has none.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More than the limits allow.
    #[error("graph has {found} {what}, more than {max}")]
    TooLarge {
        /// What is too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many may be.
        max: usize,
    },
    /// Not the JSON of a graph.
    #[error("graph does not parse")]
    Parse(#[source] serde_json::Error),
    /// The bytes are a graph, but not the announced one.
    #[error("graph has digest {found}, announced was {announced}")]
    Digest {
        /// The digest that was announced.
        announced: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// One thing is defined twice.
    #[error("{what} `{name}` of package `{package}` is defined twice")]
    Duplicate {
        /// Which kind of thing.
        what: &'static str,
        /// The package.
        package: String,
        /// The thing.
        name: String,
    },
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "TooLarge",
            Self::Parse(_) => "Parse",
            Self::Digest { .. } => "Digest",
            Self::Duplicate { .. } => "Duplicate",
        }
    }
}

/// All packages of one catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Graph {
    /// By package name.
    pub packages: BTreeMap<String, Package>,
}

/// One package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Package {
    /// The channel a Subscription without one prefers; absent where the catalog names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<String>,
    /// By channel name.
    #[serde(default)]
    pub channels: BTreeMap<String, Channel>,
    /// By bundle name, which is the CSV's name.
    #[serde(default)]
    pub bundles: BTreeMap<String, Bundle>,
    /// The author's word that the package is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
}

/// One channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Channel {
    /// By entry name, which is a bundle name.
    #[serde(default)]
    pub entries: BTreeMap<String, Entry>,
    /// The author's word that the channel is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
}

/// The edges that lead to one bundle within one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The bundle that it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Bundles that are left out on the way to it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub skips: BTreeSet<String>,
    /// Versions from which it can be reached at once. Kept as text: one that does not parse is no edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// One bundle: one version of an operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    /// Its version; absent where the catalog's text is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The release that tells rebuilds of one version apart, in catalogs that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The bundle image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Everything the author says about it, but manifests and descriptions. Equal ones are shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Arc<Property>>,
    /// The least Kubernetes version, as the author wrote it. Not in the canonical form, see
    /// [`crate::Catalog::min_kube_version`] for whether it is known.
    #[serde(skip)]
    pub min_kube_version: Option<String>,
    /// The author's word that the bundle is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
}

/// A property: a type and a value whose form depends on it. Unknown types are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Its type, e.g. `olm.gvk`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its value.
    #[serde(default)]
    pub value: serde_json::Value,
}

/// An API: group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// The API group.
    #[serde(default)]
    pub group: String,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The kind.
    #[serde(default)]
    pub kind: String,
}

// === impl Graph ===

impl Graph {
    /// The canonical bytes: JSON without spaces, every object's keys sorted. This is what is hashed.
    pub fn to_canonical_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        canonical::write_graph(self, &mut out);
        out
    }

    /// The SHA-256 of the canonical bytes.
    pub fn digest(&self) -> Digest {
        let mut hasher = digest::Hasher::default();
        canonical::write_graph(self, &mut hasher);
        hasher.finish()
    }

    /// Reads a graph that somebody sent.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, Error> {
        within("bytes", bytes.len(), limits.total_bytes)?;
        let mut graph: Self = serde_json::from_slice(bytes).map_err(Error::Parse)?;
        graph.check(limits)?;
        graph.share();
        Ok(graph)
    }

    /// Reads a graph that somebody sent and refuses one that is not what was announced. The digest is
    /// computed again here, whatever form the bytes had.
    pub fn parse_announced(
        bytes: &[u8],
        announced: &Digest,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let graph = Self::parse(bytes, limits)?;
        let found = graph.digest();
        if found == *announced {
            Ok(graph)
        } else {
            Err(Error::Digest { announced: announced.clone(), found })
        }
    }

    /// The same graph with only these packages.
    #[must_use]
    pub fn subset<'a>(&self, packages: impl IntoIterator<Item = &'a str>) -> Self {
        let kept = packages.into_iter().filter_map(|name| self.packages.get_key_value(name));
        Self { packages: kept.map(|(name, package)| (name.clone(), package.clone())).collect() }
    }

    /// Keeps equal properties once, and drops entries that the canonical form does not have.
    fn share(&mut self) {
        for package in self.packages.values_mut() {
            let mut known: BTreeMap<(String, String), Arc<Property>> = BTreeMap::new();
            for property in package.bundles.values_mut().flat_map(|b| &mut b.properties) {
                let key = (property.kind.clone(), property.value.to_string());
                *property = Arc::clone(known.entry(key).or_insert_with(|| Arc::clone(property)));
            }
            for channel in package.channels.values_mut() {
                channel.entries.retain(|name, _| package.bundles.contains_key(name));
            }
        }
    }

    fn check(&self, limits: &Limits) -> Result<(), Error> {
        let channels = || self.packages.values().flat_map(|package| package.channels.values());
        within("channel entries", channels().map(|c| c.entries.len()).sum(), limits.entries)?;
        within("bundles", self.packages.values().map(|p| p.bundles.len()).sum(), limits.entries)
    }
}

pub(crate) fn within(what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max { Err(Error::TooLarge { what, found, max }) } else { Ok(()) }
}

// === impl Package ===

impl Package {
    /// The bundles with a version between two others, in the channels that hold `bundle`; oldest
    /// first.
    pub fn between(&self, bundle: &str, low: &Version, high: &Version) -> Vec<(&Version, &str)> {
        let holding = self.channels.values().filter(|c| c.entries.contains_key(bundle));
        let names: BTreeSet<&String> = holding.flat_map(|c| c.entries.keys()).collect();
        let versions = names.into_iter().filter_map(|name| {
            let version = self.bundles.get(name)?.version.as_ref()?;
            (version > low && version < high).then_some((version, name.as_str()))
        });
        let mut between: Vec<_> = versions.collect();
        between.sort();
        between
    }
}

// === impl Bundle ===

impl Bundle {
    /// The values of all properties of a type.
    pub fn values<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a serde_json::Value> {
        self.properties.iter().filter(move |p| p.kind == kind).map(|p| &p.value)
    }

    /// The APIs that it provides.
    pub fn provides(&self) -> Vec<Gvk> {
        self.values(Property::GVK).filter_map(|value| Gvk::deserialize(value).ok()).collect()
    }

    /// The last OpenShift minor that it supports, as the author wrote it: text or number.
    pub fn max_openshift_version(&self) -> Option<String> {
        let value = self.values(Property::MAX_OPENSHIFT_VERSION).next()?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }
}

// === impl Property ===

impl Property {
    /// The property of this type whose value is this JSON text. [`crate::fbc::Interner`] makes many.
    pub fn parse(kind: &str, value: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::new(kind, serde_json::from_str(value)?))
    }

    /// A property. Numbers get the form that they have wherever a catalog is read.
    pub fn new(kind: &str, mut value: serde_json::Value) -> Self {
        json::normalise(&mut value);
        Self { kind: kind.to_owned(), value }
    }

    /// An API that the bundle provides.
    pub const GVK: &str = "olm.gvk";
    /// An API that the bundle needs.
    pub const GVK_REQUIRED: &str = "olm.gvk.required";
    /// The package and version of the bundle.
    pub const PACKAGE: &str = "olm.package";
    /// A package that the bundle needs.
    pub const PACKAGE_REQUIRED: &str = "olm.package.required";
    /// A label of the bundle.
    pub const LABEL: &str = "olm.label";
    /// A label that the bundle needs another one to have.
    pub const LABEL_REQUIRED: &str = "olm.label.required";
    /// A compound of needs.
    pub const CONSTRAINT: &str = "olm.constraint";
    /// The last OpenShift minor that the bundle supports.
    pub const MAX_OPENSHIFT_VERSION: &str = "olm.maxOpenShiftVersion";
    /// OLM v0 never installs a bundle with this.
    pub const DEPRECATED: &str = "olm.deprecated";
    /// A whole manifest, inline.
    pub const BUNDLE_OBJECT: &str = "olm.bundle.object";
    /// A CSV's descriptive fields.
    pub const CSV_METADATA: &str = "olm.csv.metadata";
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

#[cfg(test)]
mod tests;
