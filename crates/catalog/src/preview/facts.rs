//! What a catalog says about a bundle, beside its manifests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    fbc::RelatedImage,
    graph::{Graph, Property},
};

/// What a catalog says about one bundle. Everything may be empty.
#[derive(Debug, Clone, Default)]
pub struct Facts<'a> {
    /// The package.
    pub package: Option<String>,
    /// The bundle image.
    pub image: Option<String>,
    /// The bundle's properties.
    pub properties: Vec<Property>,
    /// The value of its `olm.csv.metadata`.
    pub csv_metadata: Option<&'a Value>,
    /// Images that it uses.
    pub related_images: Vec<RelatedImage>,
    /// What the catalog calls deprecated: the package, the channel that the path takes, the bundle.
    pub deprecated: Vec<(Deprecated, String)>,
    /// The package's documents of custom schemas: lifecycle and release documents are read.
    pub documents: Vec<&'a Value>,
}

impl Facts<'_> {
    /// What the graph says of a bundle that is reached through `channel`, if that is known.
    pub fn of_graph(graph: &Graph, package: &str, channel: Option<&str>, bundle: &str) -> Self {
        let mut facts = Self { package: Some(package.to_owned()), ..Self::default() };
        let Some(package) = graph.packages.get(package) else { return facts };
        if let Some(why) = &package.deprecation {
            facts.deprecated.push((Deprecated::Package, why.clone()));
        }
        if let Some(name) = channel
            && let Some(why) = package.channels.get(name).and_then(|c| c.deprecation.as_ref())
        {
            facts.deprecated.push((Deprecated::Channel(name.to_owned()), why.clone()));
        }
        if let Some(bundle) = package.bundles.get(bundle) {
            facts.image.clone_from(&bundle.image);
            let properties = bundle.properties.iter();
            facts.properties = properties.map(|property| (**property).clone()).collect();
            if let Some(why) = &bundle.deprecation {
                facts.deprecated.push((Deprecated::Bundle, why.clone()));
            }
        }
        facts
    }
}

/// What is deprecated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Deprecated {
    /// The whole package.
    Package,
    /// The channel of this name.
    Channel(String),
    /// The bundle.
    Bundle,
}
