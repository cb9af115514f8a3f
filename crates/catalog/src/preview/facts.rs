//! What a catalog says about a bundle, beside its manifests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{fbc::RelatedImage, graph::Property};

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
