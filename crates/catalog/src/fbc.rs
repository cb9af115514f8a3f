//! File-Based Catalogs as files: a tree of YAML or JSON documents, each with a `schema`.
//!
//! Every file counts, whatever its name, but `.indexignore` files and what they match. A document of
//! an unknown schema is kept as it is: that is how authors extend catalogs.

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use self::meta::FieldError;
use crate::{graph::Property, limits::Limits};

mod decode;
mod meta;
mod read;

/// Why files are not a catalog.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder can't be read.
    #[error("can't read {}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An `.indexignore` file holds a pattern that is none.
    #[error("{} holds a bad pattern", .path.display())]
    Ignore {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: ignore::Error,
    },
    /// More than the limits allow.
    #[error("{file} has {found} {what}, more than {max}")]
    TooLarge {
        /// The file or folder.
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
    /// A document does not have the form of its schema.
    #[error("{file}, document {document}")]
    Document {
        /// The file.
        file: String,
        /// Which document, counted from 1.
        document: usize,
        /// Which field is wrong, and how.
        #[source]
        source: FieldError,
    },
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } => "Read",
            Self::Ignore { .. } => "Ignore",
            Self::TooLarge { .. } => "TooLarge",
            Self::Json { .. } => "Json",
            Self::Yaml { .. } => "Yaml",
            Self::Document { .. } => "Document",
        }
    }
}

/// A catalog as its authors wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fbc {
    /// The `olm.package` documents.
    pub packages: Vec<Package>,
    /// The `olm.channel` documents.
    pub channels: Vec<Channel>,
    /// The `olm.bundle` documents.
    pub bundles: Vec<Bundle>,
    /// The `olm.deprecations` documents.
    pub deprecations: Vec<Deprecations>,
    /// All other documents.
    pub others: Vec<Meta>,
}

/// A document of a schema that this crate does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its schema.
    pub schema: String,
    /// The package it belongs to, or empty.
    pub package: String,
    /// Its name, or empty.
    pub name: String,
    /// The whole document.
    pub value: Value,
}

/// An `olm.package`. Icons are not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The default channel, or empty.
    pub default_channel: String,
    /// What it is, for people.
    pub description: String,
}

/// An `olm.channel`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// Its package.
    pub package: String,
    /// Its name.
    pub name: String,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// An entry of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The bundle.
    pub name: String,
    /// The bundle it follows, or empty.
    pub replaces: String,
    /// Bundles that are left out on the way to it.
    pub skips: Vec<String>,
    /// Versions from which it can be reached at once, or empty.
    pub skip_range: String,
}

/// An `olm.bundle`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Its package.
    pub package: String,
    /// Its name, which is the CSV's name.
    pub name: String,
    /// The bundle image, or empty.
    pub image: String,
    /// Its properties, but manifests and CSV metadata.
    pub properties: Vec<Property>,
    /// The data of its `olm.bundle.object` properties: base64 of one manifest each.
    pub objects: Vec<String>,
    /// Its `olm.csv.metadata`.
    pub csv_metadata: Option<Value>,
    /// Images that it uses.
    pub related_images: Vec<RelatedImage>,
}

/// An image that a bundle uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelatedImage {
    /// What it is for, or empty.
    pub name: String,
    /// The pull specification, or empty.
    pub image: String,
}

/// An `olm.deprecations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deprecations {
    /// Its package.
    pub package: String,
    /// What is deprecated.
    pub entries: Vec<Deprecation>,
}

/// One deprecated thing of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// The channel or bundle; empty for the package.
    pub name: String,
    /// What the author says to users.
    pub message: String,
}

// === impl Fbc ===

impl Fbc {
    /// Reads a directory tree, or one file.
    pub fn read(path: &Path, limits: &Limits) -> Result<Self, Error> {
        read::tree(path, limits)
    }

    /// Reads the content of one file. The name is for messages.
    pub fn parse(name: &str, content: &[u8], limits: &Limits) -> Result<Self, Error> {
        let mut fbc = Self::default();
        fbc.add_file(name, content, limits)?;
        Ok(fbc)
    }

    /// Adds the content of one file. The name is for messages.
    pub fn add_file(&mut self, name: &str, content: &[u8], limits: &Limits) -> Result<(), Error> {
        decode::documents(name, content, limits, &mut |document, value| {
            meta::add(self, value).map_err(|source| Error::Document {
                file: name.to_owned(),
                document,
                source,
            })
        })
    }
}

#[cfg(test)]
mod tests;
