//! File-Based Catalogs as files: a tree of YAML or JSON documents, each with a `schema`.
//!
//! Every file counts, whatever its name, but `.indexignore` files and what they match. A document of
//! an unknown schema is kept as it is: that is how authors extend catalogs.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::{intern::Interner, meta::FieldError, yaml::Error as YamlError};
use crate::{graph::Property, json::Json, limits::Limits};

mod add;
mod decode;
mod fields;
mod intern;
mod meta;
mod read;
mod scalar;
mod yaml;

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
        /// What is wrong with it, and in which line of the file.
        #[source]
        source: YamlError,
    },
    /// A file holds bytes that are no text.
    #[error("{file}, line {line}: not UTF-8")]
    Text {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// Something in a catalog is neither a file nor a folder, as a pipe or a device.
    #[error("{} is neither a file nor a folder", .path.display())]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// A document does not have the form of its schema.
    #[error("{file}, document {document} (line {line})")]
    Document {
        /// The file.
        file: String,
        /// Which document, counted from 1.
        document: usize,
        /// The line in which the document begins, counted from 1.
        line: usize,
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
            Self::Text { .. } => "Text",
            Self::Kind { .. } => "Kind",
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Its schema.
    pub schema: String,
    /// The package it belongs to, or empty.
    pub package: String,
    /// Its name, or empty.
    pub name: String,
    /// The whole document.
    pub json: Json,
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
    /// Its properties, but manifests and CSV metadata. Equal ones are shared between bundles.
    pub properties: Vec<Arc<Property>>,
    /// The types of properties that have no value at all. `null` is a value.
    pub without_value: Vec<String>,
    /// The data of its `olm.bundle.object` properties: base64 of one manifest each.
    pub objects: Vec<String>,
    /// Its `olm.csv.metadata`. More than one is a mistake; the first counts.
    pub csv_metadata: Vec<Json>,
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

    /// Reads a directory tree, or one file, and goes on after documents and files that are wrong, so
    /// that all of them can be named. What could be read is incomplete then.
    pub fn read_all(path: &Path, limits: &Limits) -> (Self, Vec<Error>) {
        read::tree_all(path, limits)
    }

    /// Reads the content of one file. The name is for messages.
    pub fn parse(name: &str, content: &[u8], limits: &Limits) -> Result<Self, Error> {
        let mut fbc = Self::default();
        fbc.add_file(name, content, limits)?;
        Ok(fbc)
    }

    /// Adds the content of one file. The name is for messages.
    pub fn add_file(&mut self, name: &str, content: &[u8], limits: &Limits) -> Result<(), Error> {
        let mut first = None;
        add::file(self, name, content, limits, &mut |error| {
            first = Some(error);
            ControlFlow::Break(())
        });
        first.map_or(Ok(()), Err)
    }

    /// Adds all documents of another part.
    pub fn append(&mut self, mut other: Self) {
        self.packages.append(&mut other.packages);
        self.channels.append(&mut other.channels);
        self.bundles.append(&mut other.bundles);
        self.deprecations.append(&mut other.deprecations);
        self.others.append(&mut other.others);
    }
}

/// Whether a text is one YAML document.
pub(crate) fn is_yaml(text: &str) -> bool {
    yaml::to_json(text, &Limits::default()).is_ok()
}

#[cfg(test)]
mod tests;
