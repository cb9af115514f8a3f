//! One catalog in memory: its graph, its digest, what the engines look up in it, and the manifests
//! that it carries inline.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::Value;

use crate::{
    contents::Contents,
    fbc::{Fbc, Meta, RelatedImage},
    graph::{self, Bundle, Details, Digest, Graph},
    json::{self, Json},
    lifecycle::Lifecycle,
    limits::Limits,
    manifests::Manifests,
};

pub use self::{index::ChainError, rule::BadRule, traits::BadNeed};
pub(crate) use self::{
    index::{EntryId, Index, IndexedEntry},
    traits::{Candidate, Need, Origin, Properties, Traits},
};

mod index;
mod rule;
mod traits;

/// One catalog as a cluster sees it.
#[derive(Debug)]
pub struct Catalog {
    graph: Graph,
    digest: Digest,
    index: Index,
    coverage: Coverage,
    /// By package and bundle.
    details: BTreeMap<String, BTreeMap<String, Details>>,
    /// By package.
    documents: BTreeMap<String, Documents>,
    contents: OnceLock<(Contents, Digest)>,
}

/// The documents of schemas that are not OLM's own, of one package: as text and as values.
#[derive(Debug, Clone, Default)]
struct Documents {
    metas: Vec<Meta>,
    values: Vec<Value>,
}

/// How much of a catalog was read. What was not read is unknown, never absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// Only the upgrade graph in its canonical form.
    Graph,
    /// What OLM v0's registry serves: the graph, documents of schemas that were asked for, and the
    /// manifests of bundles without an image.
    Registry,
    /// All that the authors wrote: from files, or from OLM v1's catalog server.
    Full,
}

/// What an author states, if it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stated<T> {
    /// This is stated.
    As(T),
    /// Nothing is stated.
    Nothing,
    /// Nobody looked.
    Unread,
}

// === impl Catalog ===

impl Catalog {
    /// Takes the graph and the inline manifests out of a File-Based Catalog. What `opm` would refuse
    /// is not refused here, as OLM v1 reads such catalogs all the same; only what has two meanings
    /// (one thing defined twice) is.
    pub fn from_fbc(fbc: Fbc, limits: &Limits) -> Result<Self, graph::Error> {
        Self::from_fbc_as(Coverage::Full, fbc, limits)
    }

    /// The same for readers that get less than whole files. They fill an [`Fbc`] with what they get
    /// ([`crate::fbc::Interner`] makes the properties; a least Kubernetes version that is known goes
    /// into the bundle's `csv_metadata`) and say how much that is. The digest is the one of the files.
    pub fn from_fbc_as(
        coverage: Coverage,
        mut fbc: Fbc,
        limits: &Limits,
    ) -> Result<Self, graph::Error> {
        let mut documents: BTreeMap<String, Documents> = BTreeMap::new();
        // As text they are small; what they become in memory has a bound of its own.
        let nodes = fbc.others.iter().map(|meta| json::size(meta.json.as_str()).nodes).sum();
        graph::within("values in other documents", nodes, limits.total_nodes)?;
        for meta in std::mem::take(&mut fbc.others) {
            let of_package = documents.entry(meta.package.clone()).or_default();
            of_package.values.push(meta.json.value().map_err(graph::Error::Parse)?);
            of_package.metas.push(meta);
        }
        let (graph, details) = Graph::from_fbc(fbc, limits)?;
        Ok(Self { coverage, details, documents, ..Self::from_graph(graph) })
    }

    /// A catalog of which nothing but the graph is known.
    pub fn from_graph(graph: Graph) -> Self {
        let digest = graph.digest();
        let index = Index::of(&graph);
        Self {
            graph,
            digest,
            index,
            coverage: Coverage::Graph,
            details: BTreeMap::new(),
            documents: BTreeMap::new(),
            contents: OnceLock::new(),
        }
    }

    /// Holds inline manifests packed from now on: for who keeps a catalog and seldom looks into them.
    #[must_use]
    pub fn packed(mut self) -> Self {
        let all = self.details.values_mut().flat_map(BTreeMap::values_mut);
        all.for_each(|details| details.manifests.pack());
        self
    }

    /// How much of it was read.
    pub fn coverage(&self) -> Coverage {
        self.coverage
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

    /// The APIs that a bundle provides, each version of a kind for itself.
    pub fn provided_apis(&self, package: &str, name: &str) -> Vec<graph::Gvk> {
        let bundle = self.bundle(package, name);
        let properties = bundle.into_iter().flat_map(|bundle| &bundle.properties);
        Traits::of_all(properties.map(AsRef::as_ref)).provides
    }

    /// The manifests that the catalog carries inline for a bundle. Nothing means that they have to be
    /// looked for elsewhere, never that there are none.
    pub fn manifests(&self, package: &str, name: &str) -> Option<&Manifests> {
        Some(&self.details(package, name)?.manifests).filter(|manifests| !manifests.is_empty())
    }

    /// The descriptive fields of a bundle's CSV, where the catalog has them apart from manifests.
    pub fn csv_metadata(&self, package: &str, name: &str) -> Option<&Json> {
        self.details(package, name)?.csv_metadata.as_ref()
    }

    /// The images that a bundle is said to use. Nothing means that they are not known.
    pub fn related_images(&self, package: &str, name: &str) -> Option<&[RelatedImage]> {
        match self.coverage {
            Coverage::Full => Some(&self.details(package, name)?.related_images),
            Coverage::Registry | Coverage::Graph => None,
        }
    }

    /// The least Kubernetes version of a bundle, as its author wrote it.
    pub fn min_kube_version(&self, package: &str, name: &str) -> Stated<&str> {
        let stated = self.bundle(package, name).and_then(|b| b.min_kube_version.as_deref());
        match (stated, self.coverage) {
            (Some(version), _) => Stated::As(version),
            // A bundle without metadata and manifests inline states it in its image only.
            (None, Coverage::Full | Coverage::Registry)
                if self.details(package, name).is_some_and(|details| {
                    details.csv_metadata.is_some() || details.manifests.csv().is_some()
                }) =>
            {
                Stated::Nothing
            }
            (None, Coverage::Full | Coverage::Registry | Coverage::Graph) => Stated::Unread,
        }
    }

    /// The documents of a schema that are not OLM's own, of one package, as their author wrote them.
    pub fn blobs<'a>(
        &'a self,
        package: &str,
        schema: &'a str,
    ) -> impl Iterator<Item = &'a Json> + use<'a> {
        let of_package = self.documents.get(package).into_iter().flat_map(|of| &of.metas);
        of_package.filter(move |meta| meta.schema == schema).map(|meta| &meta.json)
    }

    /// All documents of schemas that are not OLM's own which authors wrote for a package, as they
    /// stand in the catalog; those of no package are under the empty name.
    pub fn documents(&self, package: &str) -> &[Value] {
        self.documents.get(package).map_or(&[], |of| of.values.as_slice())
    }

    /// The packages that have documents.
    pub(crate) fn with_documents(&self) -> impl Iterator<Item = &str> {
        self.documents.keys().map(String::as_str)
    }

    /// The manifests that the catalog carries: package, bundle, manifests.
    pub(crate) fn all_manifests(&self) -> impl Iterator<Item = (&str, &str, &Manifests)> {
        let all = self.details.iter().flat_map(|(package, bundles)| {
            bundles.iter().map(|(bundle, of)| (package.as_str(), bundle.as_str(), &of.manifests))
        });
        all.filter(|(_, _, manifests)| !manifests.is_empty())
    }

    /// The table of what the catalog holds beside its graph; made when it is first asked for.
    pub fn contents(&self) -> &Contents {
        &self.named_contents().0
    }

    /// The digest of that table.
    pub fn contents_digest(&self) -> &Digest {
        &self.named_contents().1
    }

    fn named_contents(&self) -> &(Contents, Digest) {
        self.contents.get_or_init(|| {
            let contents = Contents::of(self);
            let digest = contents.digest();
            (contents, digest)
        })
    }

    /// When each minor version of a package is supported, and on which platforms; nothing where its
    /// authors say nothing. A document that does not have the form is an error of its own.
    pub fn lifecycle(&self, package: &str) -> Option<Result<Lifecycle, serde_json::Error>> {
        self.blobs(package, Lifecycle::SCHEMA).next().map(Json::read)
    }

    fn details(&self, package: &str, name: &str) -> Option<&Details> {
        self.details.get(package)?.get(name)
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
        Self {
            coverage: self.coverage,
            details: only(&self.details, packages),
            documents: only(&self.documents, packages),
            ..Self::from_graph(self.graph.subset(packages.iter().copied()))
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
}

fn only<T: Clone>(all: &BTreeMap<String, T>, packages: &[&str]) -> BTreeMap<String, T> {
    let kept = packages.iter().filter_map(|name| all.get_key_value(*name));
    kept.map(|(name, of)| (name.clone(), of.clone())).collect()
}

#[cfg(test)]
mod tests;
