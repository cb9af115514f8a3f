//! The manifests of one bundle: inline ones of a catalog, decoded when somebody asks, or the files
//! of a bundle, read and checked at once.

use std::{borrow::Cow, collections::BTreeMap, path::Path, path::PathBuf, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use self::packed::Packed;
pub use self::read::Limits;
use crate::{fbc::FieldError, graph::Property};

mod metadata;
mod packed;
mod read;
pub(crate) mod view;

/// The manifests of one bundle.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    documents: Vec<Document>,
    annotations: BTreeMap<String, String>,
    properties: Vec<Property>,
}

#[derive(Debug, Clone)]
enum Document {
    /// Base64 of JSON or YAML, as it stands in the catalog.
    Inline(Arc<str>),
    /// The same, packed.
    Packed(Packed),
    /// Read from a file of the bundle.
    Read { place: Arc<str>, value: Arc<Value> },
}

/// Why manifests can't be read.
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
    /// A file or folder can't be read.
    #[error("can't read {}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Something in a bundle directory is called like a file and is none, as a pipe or a device.
    #[error("{} is no file", .path.display())]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// A link in a bundle directory leads out of it: what lies there is no part of the bundle.
    #[error("{} leads out of the bundle directory", .path.display())]
    Outside {
        /// The link, or a file in a linked folder.
        path: PathBuf,
    },
    /// More than the limits allow.
    #[error("{file} has {found} {what}, more than {max}")]
    TooLarge {
        /// The file, or the bundle.
        file: String,
        /// What is too many.
        what: &'static str,
        /// How many there are, at least.
        found: usize,
        /// How many may be.
        max: usize,
    },
    /// A document of a JSON file does not parse.
    #[error("{file}, document {document}: not JSON")]
    Json {
        /// The file.
        file: String,
        /// Which document, counted from 1.
        document: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A document of a YAML file does not parse.
    #[error("{file}, document {document}: not YAML")]
    Yaml {
        /// The file.
        file: String,
        /// Which document, counted from 1.
        document: usize,
        /// What is wrong with it.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// A document does not have the form of what it is.
    #[error("{place}")]
    Field {
        /// The file and the document, or which inline manifest.
        place: String,
        /// Which field is wrong, and how.
        #[source]
        source: FieldError,
    },
    /// No manifest is a ClusterServiceVersion.
    #[error("bundle has no ClusterServiceVersion")]
    NoCsv,
    /// Several manifests are ClusterServiceVersions.
    #[error("bundle has {} ClusterServiceVersions: {}", .places.len(), .places.join("; "))]
    SeveralCsvs {
        /// Where they are.
        places: Vec<String>,
    },
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Base64 { .. } => "Base64",
            Self::Parse { .. } => "Parse",
            Self::Read { .. } => "Read",
            Self::Kind { .. } => "Kind",
            Self::Outside { .. } => "Outside",
            Self::TooLarge { .. } => "TooLarge",
            Self::Json { .. } => "Json",
            Self::Yaml { .. } => "Yaml",
            Self::Field { .. } => "Field",
            Self::NoCsv => "NoCsv",
            Self::SeveralCsvs { .. } => "SeveralCsvs",
        }
    }
}

/// One decoded manifest and where it is from.
#[derive(Debug, Clone)]
pub(crate) struct Placed<'a> {
    /// The file and the document, or which inline manifest.
    pub(crate) place: Cow<'a, str>,
    pub(crate) value: Cow<'a, Value>,
}

// === impl Manifests ===

impl Manifests {
    /// From base64 of JSON or YAML each, as a catalog carries them.
    pub fn from_encoded(encoded: impl IntoIterator<Item = String>) -> Self {
        Self::new(encoded)
    }

    /// Each manifest as it stands in the catalog, or would: base64 of JSON.
    pub fn encoded(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.documents.iter().map(|document| match document {
            Document::Inline(data) => Cow::Borrowed(&**data),
            Document::Packed(packed) => Cow::Owned(packed.encoded()),
            Document::Read { value, .. } => Cow::Owned(STANDARD.encode(value.to_string())),
        })
    }

    /// Holds inline manifests deflated from now on: less room, and more work for who looks into one.
    pub(crate) fn pack(&mut self) {
        for document in &mut self.documents {
            if let Document::Inline(data) = document
                && let Some(packed) = Packed::of(data)
            {
                *document = Document::Packed(packed);
            }
        }
    }

    pub(crate) fn new(encoded: impl IntoIterator<Item = String>) -> Self {
        let documents = encoded.into_iter().map(|text| Document::Inline(Arc::from(text)));
        Self { documents: documents.collect(), ..Self::default() }
    }

    /// Reads the files of a bundle, by their paths in it. `metadata/` holds what is said about the
    /// bundle; every other `.yaml`, `.yml` or `.json` file holds manifests. The annotations, e.g. the
    /// labels of a bundle image, count where no file says otherwise.
    ///
    /// There must be exactly one ClusterServiceVersion, of the form that the preview reads.
    pub fn from_files(
        files: &BTreeMap<String, Vec<u8>>,
        annotations: BTreeMap<String, String>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        read::files(files, annotations, limits)
    }

    /// Reads a bundle directory: `manifests/` and `metadata/`, or all in one folder.
    pub fn from_dir(path: &Path, limits: &Limits) -> Result<Self, Error> {
        read::files(&read::dir(path, limits)?, BTreeMap::new(), limits)
    }

    /// How many manifests there are.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Each manifest, decoded.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value, Error>> {
        self.placed().map(|placed| Ok(placed?.value.into_owned()))
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

    /// The bundle's annotations, from its metadata or its image's labels.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.annotations
    }

    /// The properties that the bundle's own files state: `dependencies.yaml`, `properties.yaml` and
    /// the CSV's annotation. Inline manifests have those of the catalog instead.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// The bundle's package, where its annotations say so.
    pub fn package(&self) -> Option<&str> {
        let package = self.annotations.get("operators.operatorframework.io.bundle.package.v1");
        package.map(String::as_str)
    }

    /// Each manifest, decoded where need be, with its place.
    pub(crate) fn placed(&self) -> impl Iterator<Item = Result<Placed<'_>, Error>> {
        self.documents.iter().enumerate().map(|(index, document)| match document {
            Document::Inline(data) => inline(index, &decode(index, data)?),
            Document::Packed(packed) => inline(index, &packed.bytes()),
            Document::Read { place, value } => {
                Ok(Placed { place: Cow::Borrowed(place), value: Cow::Borrowed(value) })
            }
        })
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = Value> {
        let objects = self.placed().filter_map(Result::ok);
        objects.filter(move |o| o.value["kind"] == kind).map(|o| o.value.into_owned())
    }
}

fn decode(index: usize, data: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(data).map_err(|source| Error::Base64 { index, source })
}

fn inline(index: usize, bytes: &[u8]) -> Result<Placed<'static>, Error> {
    let value = read::inline(index, bytes, &Limits::default())?;
    let place = format!("inline manifest {index}");
    Ok(Placed { place: Cow::Owned(place), value: Cow::Owned(value) })
}

#[cfg(test)]
mod tests;
