//! One way of a package compared: the question, and the answer that is kept.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wavelift_catalog::{
    Catalog, Manifests,
    preview::{self, Facts, Step},
};
use wavelift_core::version::Version;

use super::{Way, change, change::Change};

/// A way to be compared, with everything that is needed for it.
#[derive(Debug, Clone)]
pub struct Question {
    key: String,
    package: String,
    deprecated_channel: Option<String>,
    bundles: Vec<Bundle>,
    documents: Result<Arc<[Value]>, String>,
    catalog: Option<Arc<Catalog>>,
}

/// Manifests and their digest, or why there are none.
pub type Content = Result<(String, Arc<Manifests>), String>;

/// One version on the way.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Its CSV.
    pub name: String,
    /// Its version, for people.
    pub version: String,
    /// Its manifests and their digest, or why there are none.
    pub manifests: Content,
    /// The image that they are from, where it is named by a tag and may be another by now.
    pub moving: Option<String>,
    /// The versions that the hop to this one jumps over.
    pub skipped: Vec<Self>,
}

/// A way that was compared.
#[derive(Debug, Clone)]
pub struct Made {
    key: String,
    /// What changes, hop by hop and over all.
    pub preview: preview::Preview,
    /// The changes over the whole way, one line each.
    pub changes: BTreeSet<Change>,
    /// Why the documents of the package are missing, where they are.
    pub documents_missing: Option<String>,
    /// Images that were looked at and are named by a tag: they may be others by now.
    pub moving: BTreeSet<String>,
}

// === impl Question ===

impl Question {
    /// A way, with what was found for it. `documents` come with their digest.
    pub fn new(
        way: &Way,
        bundles: Vec<Bundle>,
        documents: Result<(String, Arc<[Value]>), String>,
        catalog: Option<(String, Arc<Catalog>)>,
    ) -> Self {
        let mut hash = Sha256::new();
        let mut field = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        };
        field(way.package.as_str());
        field(way.deprecated_channel.as_deref().unwrap_or_default());
        for bundle in &bundles {
            for (depth, one) in
                std::iter::once((0, bundle)).chain(bundle.skipped.iter().map(|one| (1, one)))
            {
                field(if depth == 0 { "bundle" } else { "skipped" });
                field(&one.name);
                match &one.manifests {
                    Ok((digest, _)) => field(digest),
                    Err(why) => field(why),
                }
                field(one.moving.as_deref().unwrap_or_default());
            }
        }
        match &documents {
            Ok((digest, _)) => field(digest),
            Err(why) => field(why),
        }
        field(catalog.as_ref().map_or("", |(digest, _)| digest));
        Self {
            key: hex::encode(hash.finalize()),
            package: way.package.to_string(),
            deprecated_channel: way.deprecated_channel.clone(),
            bundles,
            documents: documents.map(|(_, documents)| documents),
            catalog: catalog.map(|(_, catalog)| catalog),
        }
    }

    /// Names the question: equal keys have equal answers.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Compares; takes its time.
    pub fn answer(&self) -> Made {
        let steps: Vec<Step<'_>> = self.bundles.iter().map(|bundle| self.step(bundle)).collect();
        let mut preview = preview::path(&steps);
        preview.package = Some(self.package.clone());
        let all = self.bundles.iter().flat_map(|one| std::iter::once(one).chain(&one.skipped));
        Made {
            moving: all.filter_map(|one| one.moving.clone()).collect(),
            key: self.key.clone(),
            changes: change::of(&preview.overall),
            documents_missing: self.documents.as_ref().err().cloned(),
            preview,
        }
    }

    fn step<'a>(&'a self, bundle: &'a Bundle) -> Step<'a> {
        let missing = bundle.manifests.as_ref().err().cloned();
        Step {
            name: bundle.name.clone(),
            version: Version::parse_tolerant(&bundle.version).ok(),
            manifests: bundle.manifests.as_ref().ok().map(|(_, manifests)| &**manifests),
            missing_because: missing.unwrap_or_default(),
            facts: self.facts(&bundle.name),
            skipped: bundle.skipped.iter().map(|skipped| self.step(skipped)).collect(),
        }
    }

    fn facts(&self, name: &str) -> Facts<'_> {
        let channel = self.deprecated_channel.as_deref();
        let of_graph = self.catalog.as_ref().map_or_else(
            || Facts { package: Some(self.package.clone()), ..Facts::default() },
            |catalog| Facts::of_graph(catalog.graph(), &self.package, channel, name),
        );
        let documents = self.documents.iter().flat_map(|documents| documents.iter()).collect();
        Facts { documents, ..of_graph }
    }
}

// === impl Made ===

impl Made {
    /// The key of the question that this answers.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Equal questions have equal answers.
impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Made {}
