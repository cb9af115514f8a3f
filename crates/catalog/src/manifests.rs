//! Manifests that a catalog carries inline, decoded when somebody asks.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// The manifests of one bundle.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    /// Base64 of JSON or YAML, as it stands in the catalog.
    encoded: Vec<Arc<str>>,
}

/// Why an inline manifest can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data is not base64.
    #[error("manifest {index} is not base64")]
    Base64 {
        /// Which manifest of the bundle, counted from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: base64::DecodeError,
    },
    /// The data is neither JSON nor YAML.
    #[error("manifest {index} is neither JSON nor YAML")]
    Parse {
        /// Which manifest of the bundle, counted from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
}

// === impl Manifests ===

impl Manifests {
    /// From base64 of JSON or YAML each, as a catalog carries them.
    pub fn from_encoded(encoded: impl IntoIterator<Item = String>) -> Self {
        Self::new(encoded)
    }

    /// Each manifest as it stands in the catalog.
    pub fn encoded(&self) -> impl Iterator<Item = &str> {
        self.encoded.iter().map(|data| &**data)
    }

    pub(crate) fn new(encoded: impl IntoIterator<Item = String>) -> Self {
        Self { encoded: encoded.into_iter().map(Arc::from).collect() }
    }

    /// How many manifests there are.
    pub fn len(&self) -> usize {
        self.encoded.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Each manifest, decoded.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value, Error>> {
        self.encoded.iter().enumerate().map(|(index, data)| decode(index, data))
    }

    /// All manifests, decoded; the first that can't be read is an error.
    pub fn objects(&self) -> Result<Vec<Value>, Error> {
        self.iter().collect()
    }

    /// The ClusterServiceVersion. Manifests that can't be read are passed over.
    pub fn csv(&self) -> Option<Value> {
        self.of_kind("ClusterServiceVersion").next()
    }

    /// The CustomResourceDefinitions. Manifests that can't be read are passed over.
    pub fn crds(&self) -> Vec<Value> {
        self.of_kind("CustomResourceDefinition").collect()
    }

    /// The Deployments that the CSV asks for: objects with `name` and `spec`.
    pub fn deployments(&self) -> Vec<Value> {
        let csv = self.csv().unwrap_or_default();
        let deployments = csv.pointer("/spec/install/spec/deployments");
        deployments.and_then(Value::as_array).cloned().unwrap_or_default()
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = Value> {
        self.iter().filter_map(Result::ok).filter(move |object| object["kind"] == kind)
    }
}

fn decode(index: usize, data: &str) -> Result<Value, Error> {
    let bytes = STANDARD.decode(data).map_err(|source| Error::Base64 { index, source })?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(value),
        Err(_) => serde_saphyr::from_slice(&bytes)
            .map_err(|source| Error::Parse { index, source: Box::new(source) }),
    }
}
