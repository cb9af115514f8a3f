//! What OLM will do next, and by which hops a target is reached.
//!
//! The unit is a namespace: everything that moves in one InstallPlan moves together, so the request
//! holds all Subscriptions of the namespace and the answer is the set of CSVs of the next plan. There
//! is one trait and an engine for each generation of OLM.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use wavelift_core::version::Version;

pub use self::{
    answers::{Answers, Explanation, Listing, Outcome, PassedOver, Reason},
    error::{NoPath, PathError, ResolveError, Unmet},
    path::{Hop, Path, PathEnd},
    route::{Detour, Edge, Jumped, Leg, NoWay, Route, RouteEnd, Stop},
};
use crate::{catalog::Catalog, graph::Property};

mod answers;
mod error;
pub mod line;
pub mod olm_v0;
pub mod olm_v1;
mod path;
mod route;

/// Says what a generation of OLM does.
pub trait Engine: fmt::Debug + Send + Sync {
    /// What the next InstallPlan of the namespace would hold.
    fn next(&self, catalogs: &Catalogs, request: &Request) -> Result<Next, ResolveError>;

    /// The hops that the namespace takes until each named package is at its target, or, with no
    /// target, until it stays.
    fn path(
        &self,
        catalogs: &Catalogs,
        request: &Request,
        targets: &BTreeMap<String, Version>,
    ) -> Result<Path, PathError> {
        let mut next = |request: &Request| self.next(catalogs, request);
        let why_not = |request: &Request, package: &str, version: &Version| {
            self.why_not(catalogs, request, package, version)
        };
        path::follow(&mut next, &why_not, request, targets)
    }

    /// Why a version of a package is not what the namespace takes next, where there is a word on it.
    fn why_not(
        &self,
        _catalogs: &Catalogs,
        _request: &Request,
        _package: &str,
        _version: &Version,
    ) -> Option<Reason> {
        None
    }
}

/// Where a catalog lives on the cluster: the CatalogSource's name and namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CatalogKey {
    /// The CatalogSource's name.
    pub name: String,
    /// The CatalogSource's namespace.
    pub namespace: String,
}

/// One catalog that the namespace sees.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its content.
    pub catalog: Arc<Catalog>,
    /// `spec.priority` of the CatalogSource; higher is preferred.
    pub priority: i64,
}

/// All catalogs that the namespace sees: its own and the global ones.
#[derive(Debug, Clone, Default)]
pub struct Catalogs {
    sources: BTreeMap<CatalogKey, Source>,
}

/// A CSV on the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its name.
    pub csv: String,
    /// `.spec.version` of the CSV on the cluster; decides `skipRange`.
    pub version: Option<Version>,
    /// Its properties.
    pub properties: InstalledProperties,
}

/// Where the properties of an installed CSV are known from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InstalledProperties {
    /// Taken from the bundle of this name in the Subscription's catalog; none if it isn't there.
    #[default]
    AsInCatalog,
    /// Read from the cluster (annotation `operatorframework.io/properties`).
    Known(Vec<Property>),
}

/// A Subscription, as far as resolution looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The package.
    pub package: String,
    /// The channel; empty means all channels, the default one first.
    pub channel: String,
    /// The catalog.
    pub catalog: CatalogKey,
    /// The CSV that `status.installedCSV` names, if it exists.
    pub installed: Option<Installed>,
    /// `spec.startingCSV`; counts only while nothing is installed.
    pub starting_csv: Option<String>,
}

/// A namespace as resolution sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The namespace's name; catalogs in it are preferred over global ones.
    pub namespace: String,
    /// All its Subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// CSVs that no Subscription's `installedCSV` names; they must stay.
    pub unreferenced: Vec<Installed>,
}

/// Why a CSV is in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// A Subscription asks for it.
    Subscription,
    /// Another bundle of the plan needs it; OLM will make a Subscription for it.
    Dependency,
}

/// One CSV of the next InstallPlan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// The package.
    pub package: String,
    /// The CSV it replaces; nothing for a first installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The CSV that will be created.
    pub to: String,
    /// The version of that CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_version: Option<Version>,
    /// The channel it was found in.
    pub channel: String,
    /// The catalog it was found in.
    pub catalog: CatalogKey,
    /// Why it is there.
    pub cause: Cause,
}

/// The answer for a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// OLM makes an InstallPlan with exactly these CSVs, sorted by package.
    Moves(Vec<Move>),
    /// Everything stays; no InstallPlan.
    Stays,
}

// === impl Catalogs ===

impl Catalogs {
    /// A namespace that sees one catalog.
    pub fn one(key: CatalogKey, catalog: Arc<Catalog>) -> Self {
        let mut catalogs = Self::default();
        catalogs.insert(key, Source { catalog, priority: 0 });
        catalogs
    }

    /// Adds a catalog, or replaces the one of this key.
    pub fn insert(&mut self, key: CatalogKey, source: Source) {
        self.sources.insert(key, source);
    }

    /// The catalog of this key.
    pub fn get(&self, key: &CatalogKey) -> Option<&Source> {
        self.sources.get(key)
    }

    /// All catalogs by key.
    pub fn iter(&self) -> impl Iterator<Item = (&CatalogKey, &Source)> {
        self.sources.iter()
    }
}

impl fmt::Display for CatalogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl Request ===

impl Request {
    /// The namespace after an InstallPlan of these moves has run: what moved is installed, and what
    /// was added as a dependency has a Subscription of its own.
    #[must_use]
    pub fn after(&self, moves: &[Move]) -> Self {
        let mut request = self.clone();
        for step in moves {
            let installed = Installed {
                csv: step.to.clone(),
                version: step.to_version.clone(),
                properties: InstalledProperties::AsInCatalog,
            };
            let moved = request.subscriptions.iter_mut().find(|subscription| {
                let current = subscription.installed.as_ref().map(|installed| &installed.csv);
                subscription.package == step.package && current == step.from.as_ref()
            });
            match moved {
                Some(subscription) => subscription.installed = Some(installed),
                None => request.subscriptions.push(Subscription {
                    package: step.package.clone(),
                    channel: step.channel.clone(),
                    catalog: step.catalog.clone(),
                    installed: Some(installed),
                    starting_csv: None,
                }),
            }
        }
        request
    }

    /// The names of all CSVs on the namespace.
    pub fn installed_csvs(&self) -> BTreeSet<&str> {
        let subscribed = self.subscriptions.iter().filter_map(|s| s.installed.as_ref());
        subscribed.chain(&self.unreferenced).map(|installed| installed.csv.as_str()).collect()
    }
}

// === impl Next ===

impl Next {
    /// The moves; none if everything stays.
    pub fn moves(&self) -> &[Move] {
        match self {
            Self::Moves(moves) => moves,
            Self::Stays => &[],
        }
    }

    /// The names of the CSVs of the InstallPlan.
    pub fn csvs(&self) -> BTreeSet<&str> {
        self.moves().iter().map(|step| step.to.as_str()).collect()
    }
}
