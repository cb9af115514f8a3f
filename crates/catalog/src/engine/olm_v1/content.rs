//! What OLM v1 looks at in a catalog. It reads catalogs that `opm` would refuse, so nothing is
//! refused here: a thing that is defined twice is there twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use wavelift_core::{
    range::Range,
    release::{self, VersionRelease},
};

use super::{Edge, EdgeKind, ReleaseSource, candidates::From};
use crate::{
    catalog::Catalog,
    fbc::{self, Fbc},
    graph::{self, Property},
};

/// Properties that make OLM v1 refuse a bundle.
const DEPENDENCIES: [&str; 3] =
    [Property::PACKAGE_REQUIRED, Property::GVK_REQUIRED, Property::CONSTRAINT];

/// A ClusterCatalog that serves and that the ClusterExtension's selector takes in.
#[derive(Debug, Clone)]
pub struct ClusterCatalog {
    /// Its name.
    pub name: String,
    /// `spec.priority`; higher is preferred.
    pub priority: i32,
    /// What it holds.
    pub content: Arc<Content>,
}

/// All packages of one catalog, as OLM v1 looks at them.
#[derive(Debug, Default)]
pub struct Content {
    packages: BTreeMap<String, Package>,
}

/// Why a bundle has no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadVersion {
    /// It has no property `olm.package`.
    #[error("it has no property `olm.package`")]
    NoProperty,
    /// The property does not have its form.
    #[error("its property `olm.package` has a `{field}` that is no text")]
    Form {
        /// The field, or `value`.
        field: &'static str,
    },
    /// The version or release does not parse.
    #[error("its version `{text}` does not parse")]
    Parse {
        /// The version.
        text: String,
        /// What is wrong with it.
        #[source]
        source: release::Error,
    },
}

#[derive(Debug, Default)]
pub(super) struct Package {
    /// In the catalog's order.
    pub(super) bundles: Vec<Bundle>,
    /// By bundle.
    entries: BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) name: String,
    legacy: Result<VersionRelease, BadVersion>,
    /// Where `olm.package` has the field `release`.
    explicit: Option<Result<VersionRelease, BadVersion>>,
    pub(super) deprecation: Option<String>,
    /// The first property that makes OLM v1 refuse it.
    pub(super) dependency: Option<String>,
}

/// A channel entry; its bundle is the key that it stands under.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) channel: String,
    pub(super) replaces: Option<String>,
    pub(super) skips: BTreeSet<String>,
    /// Nothing also where the catalog's text is no range: OLM sees no edge there.
    pub(super) skip_range: Option<Range>,
}

// === impl Content ===

impl Content {
    /// What a File-Based Catalog holds. Of several `olm.deprecations` of a package the first counts.
    pub fn from_fbc(fbc: &Fbc) -> Self {
        let mut content = Self::default();
        for package in &fbc.packages {
            content.packages.entry(package.name.clone()).or_default();
        }
        for channel in &fbc.channels {
            let package = content.packages.entry(channel.package.clone()).or_default();
            for entry in &channel.entries {
                let entries = package.entries.entry(entry.name.clone()).or_default();
                entries.push(Entry::of_fbc(&channel.name, entry));
            }
        }
        for bundle in &fbc.bundles {
            let package = content.packages.entry(bundle.package.clone()).or_default();
            package.bundles.push(Bundle::new(bundle.name.clone(), &bundle.properties));
        }
        let mut seen = BTreeSet::new();
        for deprecations in &fbc.deprecations {
            let package = content.packages.entry(deprecations.package.clone()).or_default();
            if seen.insert(&deprecations.package) {
                package.deprecate(&deprecations.entries);
            }
        }
        content
    }

    /// What a catalog's graph holds. Where two bundles rank the same, OLM goes by the catalog's own
    /// order, which a graph does not have: the names' order stands for it.
    pub fn from_catalog(catalog: &Catalog) -> Self {
        let packages = catalog.graph().packages.iter();
        Self {
            packages: packages.map(|(name, of)| (name.clone(), Package::of_graph(of))).collect(),
        }
    }

    pub(super) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.get(name)
    }
}

// === impl Package ===

impl Package {
    fn of_graph(graph: &graph::Package) -> Self {
        let mut package = Self::default();
        for (channel, content) in &graph.channels {
            for (name, entry) in &content.entries {
                let entries = package.entries.entry(name.clone()).or_default();
                entries.push(Entry::of_graph(channel, entry));
            }
        }
        for (name, bundle) in &graph.bundles {
            let mut added = Bundle::new(name.clone(), &bundle.properties);
            added.deprecation.clone_from(&bundle.deprecation);
            package.bundles.push(added);
        }
        package
    }

    /// Of several words on one bundle the last counts.
    fn deprecate(&mut self, entries: &[fbc::Deprecation]) {
        let of_bundles = entries.iter().filter(|entry| entry.schema == "olm.bundle");
        let messages: BTreeMap<&str, &String> =
            of_bundles.map(|entry| (entry.name.as_str(), &entry.message)).collect();
        for bundle in &mut self.bundles {
            if let Some(message) = messages.get(bundle.name.as_str()) {
                bundle.deprecation = Some((*message).clone());
            }
        }
    }

    /// The entries of a bundle in these channels; no channels means all.
    pub(super) fn entries<'a>(
        &'a self,
        bundle: &str,
        channels: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = &'a Entry> {
        let entries = self.entries.get(bundle).into_iter().flatten();
        entries.filter(|entry| channels.is_empty() || channels.contains(&entry.channel))
    }

    /// The channels that a bundle is in.
    pub(super) fn channels(&self, bundle: &str) -> BTreeSet<String> {
        let entries = self.entries.get(bundle).into_iter().flatten();
        entries.map(|entry| entry.channel.clone()).collect()
    }
}

// === impl Bundle ===

impl Bundle {
    fn new(name: String, properties: &[Arc<Property>]) -> Self {
        let stated = properties.iter().find(|property| property.kind == Property::PACKAGE);
        let (legacy, explicit) = versions(stated.map(|property| &property.value));
        let is_dependency =
            |property: &&Arc<Property>| DEPENDENCIES.contains(&property.kind.as_str());
        let dependency =
            properties.iter().find(is_dependency).map(|property| property.kind.clone());
        Self { name, legacy, explicit, deprecation: None, dependency }
    }

    pub(super) fn version(&self, source: ReleaseSource) -> Result<&VersionRelease, &BadVersion> {
        match (source, &self.explicit) {
            (ReleaseSource::ReleaseField, Some(explicit)) => explicit.as_ref(),
            (ReleaseSource::ReleaseField, None) | (ReleaseSource::BuildMetadata, _) => {
                self.legacy.as_ref()
            }
        }
    }

    pub(super) const fn is_deprecated(&self) -> bool {
        self.deprecation.is_some()
    }
}

type Version = Result<VersionRelease, BadVersion>;

/// The version by the legacy rule, and by the explicit one where there is a release field.
fn versions(value: Option<&Value>) -> (Version, Option<Version>) {
    let read = || {
        let value = value.ok_or(BadVersion::NoProperty)?;
        text(value, "packageName")?;
        Ok((text(value, "version")?.unwrap_or_default(), text(value, "release")?))
    };
    let (version, release) = match read() {
        Ok(read) => read,
        Err(bad) => return (Err(bad), None),
    };
    let bad = |source| BadVersion::Parse { text: version.to_owned(), source };
    let legacy = VersionRelease::parse_legacy(version).map_err(bad);
    let explicit =
        release.map(|release| VersionRelease::parse_explicit(version, release).map_err(bad));
    (legacy, explicit)
}

/// A field in any spelling of upper and lower case, the exact one first.
fn text<'v>(value: &'v Value, field: &'static str) -> Result<Option<&'v str>, BadVersion> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Ok(None),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(BadVersion::Form { field: "value" });
        }
    };
    let folded = || fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(field)).map(|(_, v)| v);
    match fields.get(field).or_else(folded) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(BadVersion::Form { field })
        }
    }
}

// === impl Entry ===

impl Entry {
    fn of_fbc(channel: &str, entry: &fbc::Entry) -> Self {
        Self {
            channel: channel.to_owned(),
            replaces: (!entry.replaces.is_empty()).then(|| entry.replaces.clone()),
            skips: entry.skips.iter().cloned().collect(),
            skip_range: Range::parse(&entry.skip_range).ok(),
        }
    }

    fn of_graph(channel: &str, entry: &graph::Entry) -> Self {
        Self {
            channel: channel.to_owned(),
            replaces: entry.replaces.clone(),
            skips: entry.skips.clone(),
            skip_range: entry.skip_range.as_deref().and_then(|text| Range::parse(text).ok()),
        }
    }

    /// The edge from the installed bundle to this entry.
    pub(super) fn edge(&self, from: &From<'_>) -> Option<Edge> {
        let range =
            || self.skip_range.as_ref().filter(|range| range.contains(&from.version.version));
        let kind = if self.replaces.as_deref() == Some(from.name) {
            EdgeKind::Replaces
        } else if self.skips.contains(from.name) {
            EdgeKind::Skips
        } else {
            EdgeKind::SkipRange(range()?.as_str().to_owned())
        };
        Some(Edge { channel: self.channel.clone(), kind })
    }

    /// Whether there is such an edge.
    pub(super) fn follows(&self, from: &From<'_>) -> bool {
        self.replaces.as_deref() == Some(from.name)
            || self.skips.contains(from.name)
            || self.skip_range.as_ref().is_some_and(|range| range.contains(&from.version.version))
    }
}
