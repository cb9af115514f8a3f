//! One catalog in memory: its graph, its digest, what the engines look up in it, and the manifests
//! that it carries inline.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::Value;

use crate::{
    contents::Contents,
    fbc::Fbc,
    graph::{self, Bundle, Digest, Graph},
    limits::Limits,
    manifests::Manifests,
};

pub use self::{index::ChainError, traits::BadNeed};
pub(crate) use self::{
    index::{EntryId, Index, IndexedEntry},
    traits::{Need, Traits},
};

mod index;
mod traits;

/// Manifests by package and bundle.
type ManifestsByBundle = BTreeMap<String, BTreeMap<String, Manifests>>;

/// One catalog as a cluster sees it.
#[derive(Debug)]
pub struct Catalog {
    graph: Graph,
    digest: Digest,
    index: Index,
    manifests: ManifestsByBundle,
    documents: BTreeMap<String, Vec<Value>>,
    contents: OnceLock<Contents>,
}

// === impl Catalog ===

impl Catalog {
    /// Takes the graph and the inline manifests out of a File-Based Catalog. What `opm` would refuse
    /// is not refused here, as OLM v1 reads such catalogs all the same; only what has two meanings
    /// (one thing defined twice) is.
    pub fn from_fbc(fbc: Fbc, limits: &Limits) -> Result<Self, graph::Error> {
        let mut fbc = fbc;
        let mut documents: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for other in std::mem::take(&mut fbc.others) {
            documents.entry(other.package).or_default().push(other.value);
        }
        let (graph, manifests) = Graph::from_fbc(fbc, limits)?;
        let mut catalog = Self::from_graph(graph);
        catalog.manifests = manifests;
        catalog.documents = documents;
        Ok(catalog)
    }

    /// A catalog without manifests.
    pub fn from_graph(graph: Graph) -> Self {
        let digest = graph.digest();
        let index = Index::of(&graph);
        Self {
            graph,
            digest,
            index,
            manifests: BTreeMap::new(),
            documents: BTreeMap::new(),
            contents: OnceLock::new(),
        }
    }

    /// The upgrade graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The digest of the upgrade graph.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// One bundle.
    pub fn bundle(&self, package: &str, name: &str) -> Option<&Bundle> {
        self.graph.packages.get(package)?.bundles.get(name)
    }

    /// The manifests that the catalog carries inline for a bundle. Nothing means that they have to be
    /// looked for elsewhere, never that there are none.
    pub fn manifests(&self, package: &str, name: &str) -> Option<&Manifests> {
        self.manifests.get(package)?.get(name)
    }

    /// The documents of schemas that are not OLM's own which authors wrote for a package, as they
    /// stand in the catalog; those of no package are under the empty name.
    pub fn documents(&self, package: &str) -> &[Value] {
        self.documents.get(package).map_or(&[], Vec::as_slice)
    }

    /// The packages that have manifests or documents.
    pub(crate) fn beside(&self) -> (&ManifestsByBundle, &BTreeMap<String, Vec<Value>>) {
        (&self.manifests, &self.documents)
    }

    /// The table of what the catalog holds beside its graph; made when it is first asked for.
    pub fn contents(&self) -> &Contents {
        self.contents.get_or_init(|| Contents::of(self))
    }

    /// The bundle at the head of a channel: the one OLM v0 would install now.
    pub fn head(&self, package: &str, channel: &str) -> Result<&str, ChainError> {
        let chain = self.index.chain(package, channel).ok_or(ChainError::Empty)?;
        let head = chain.as_ref().map_err(Clone::clone)?.first().ok_or(ChainError::Empty)?;
        Ok(&self.index.entry(*head).name)
    }

    /// The bundles of a channel that OLM v0 may install, the newest first: the chain of replacement
    /// from the head down, without the skipped ones.
    pub fn chain(&self, package: &str, channel: &str) -> Result<Vec<&str>, ChainError> {
        let chain = self.index.chain(package, channel).ok_or(ChainError::Empty)?;
        let chain = chain.as_ref().map_err(Clone::clone)?;
        Ok(chain.iter().map(|id| self.index.entry(*id).name.as_str()).collect())
    }

    /// The same catalog with only these packages.
    #[must_use]
    pub fn subset(&self, packages: &[&str]) -> Self {
        let mut subset = Self::from_graph(self.graph.subset(packages.iter().copied()));
        let kept = packages.iter().filter_map(|name| self.manifests.get_key_value(*name));
        subset.manifests = kept.map(|(name, of)| (name.clone(), of.clone())).collect();
        let kept = packages.iter().filter_map(|name| self.documents.get_key_value(*name));
        subset.documents = kept.map(|(name, of)| (name.clone(), of.clone())).collect();
        subset
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
}
