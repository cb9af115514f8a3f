//! What a CatalogSource serves.
//!
//! The planner needs the content, not the object. Where the content comes from is behind one
//! trait: the registry that the source names, files, or a map in memory that somebody else fills.

mod registries;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use wavelift_catalog::{Catalog, Fbc, Limits, engine::CatalogKey};

pub use self::registries::{Registries, Settings};
use crate::objects::{self, CatalogSource};

/// Reads what a CatalogSource serves.
pub trait CatalogReader: fmt::Debug + Send + Sync + 'static {
    /// The content as it is known now. Never waits for anybody else.
    fn read<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Result<Arc<Catalog>, Error>>;

    /// Forgets all sources but these.
    fn retain(&self, sources: &BTreeSet<CatalogKey>) {
        let _: &BTreeSet<CatalogKey> = sources;
    }

    /// Tells when reading has become worth while; nothing where contents never change by themselves.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// A CatalogSource whose content is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The source.
    pub source: Arc<CatalogSource>,
    /// The packages that are subscribed to from it: of these more is worth knowing.
    pub packages: BTreeSet<String>,
}

/// Why a catalog's content is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nobody said where it is.
    #[error("the content of catalog {0} is not known to the agent")]
    NotKnown(CatalogKey),
    /// It could not be read.
    #[error("cannot read catalog {key}: {why}")]
    Unreadable {
        /// The catalog.
        key: CatalogKey,
        /// Why, with all causes.
        why: String,
    },
    /// Nobody says where its registry is.
    #[error(
        "catalog {0} has no address yet: neither its status nor its spec says where its registry is"
    )]
    NoAddress(CatalogKey),
    /// It has not been read before, and is under way.
    #[error("catalog {0} is being read for the first time")]
    Reading(CatalogKey),
    /// Its registry could not be read so far.
    #[error("cannot read catalog {key}: {why}; tried again within {} s", .within.as_secs())]
    Failed {
        /// The catalog.
        key: CatalogKey,
        /// Why, with all causes, and what can be done about it.
        why: String,
        /// The longest pause before the next try.
        within: Duration,
    },
    /// There are more sources than are read.
    #[error("catalog {key} is not read: the agent reads {max} catalogs at most")]
    TooMany {
        /// The catalog.
        key: CatalogKey,
        /// How many are.
        max: usize,
    },
}

/// Catalogs in files: `NAMESPACE/NAME=PATH` each, an FBC directory or file.
#[derive(Debug, Default)]
pub struct Files {
    paths: BTreeMap<CatalogKey, PathBuf>,
    /// What could be read; what could not is tried again.
    read: Mutex<BTreeMap<CatalogKey, Arc<Catalog>>>,
}

/// Files for those sources that have one, the registries for all others.
#[derive(Debug)]
pub struct FilesFirst {
    files: Files,
    registries: Registries,
}

/// Catalogs in memory, shared with whoever fills it: the simulator and the demo.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<RwLock<BTreeMap<CatalogKey, Arc<Catalog>>>>);

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotKnown(_) => "not_known",
            Self::Unreadable { .. } => "unreadable",
            Self::NoAddress(_) => "no_address",
            Self::Reading(_) => "reading",
            Self::Failed { .. } => "failed",
            Self::TooMany { .. } => "too_many",
        }
    }
}

// === impl Asked ===

impl Asked {
    /// A source of which nothing but the catalog matters.
    pub fn of(source: Arc<CatalogSource>) -> Self {
        Self { source, packages: BTreeSet::new() }
    }

    /// Its namespace and name.
    pub fn key(&self) -> CatalogKey {
        CatalogKey {
            name: objects::name(&*self.source).to_owned(),
            namespace: objects::namespace(&*self.source).to_owned(),
        }
    }
}

// === impl Files ===

impl Files {
    /// Catalogs at these paths.
    pub fn new(paths: impl IntoIterator<Item = (CatalogKey, PathBuf)>) -> Self {
        Self { paths: paths.into_iter().collect(), read: Mutex::default() }
    }

    /// Whether this source has a file.
    pub fn has(&self, key: &CatalogKey) -> bool {
        self.paths.contains_key(key)
    }

    async fn load(&self, key: CatalogKey) -> Result<Arc<Catalog>, Error> {
        let path = self.paths.get(&key).ok_or_else(|| Error::NotKnown(key.clone()))?.clone();
        if let Some(known) = self.read.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let named = key.clone();
        let read = tokio::task::spawn_blocking(move || load(&named, &path)).await;
        let read = read.unwrap_or_else(|error| {
            Err(Error::Unreadable { key: key.clone(), why: error.to_string() })
        });
        if let Ok(catalog) = &read {
            self.read.lock().insert(key, Arc::clone(catalog));
        }
        read
    }
}

impl CatalogReader for Files {
    fn read<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Result<Arc<Catalog>, Error>> {
        Box::pin(self.load(asked.key()))
    }
}

// === impl FilesFirst ===

impl FilesFirst {
    /// What has a file is never asked of a registry.
    pub fn new(files: Files, registries: Registries) -> Self {
        Self { files, registries }
    }
}

impl CatalogReader for FilesFirst {
    fn read<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Result<Arc<Catalog>, Error>> {
        if self.files.has(&asked.key()) {
            self.files.read(asked)
        } else {
            self.registries.read(asked)
        }
    }

    fn retain(&self, sources: &BTreeSet<CatalogKey>) {
        self.registries.retain(sources);
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.registries.changes()
    }
}

fn load(key: &CatalogKey, path: &Path) -> Result<Arc<Catalog>, Error> {
    let unreadable = |error: &(dyn std::error::Error + 'static)| Error::Unreadable {
        key: key.clone(),
        why: wavelift_runtime::telemetry::chain(error).to_string(),
    };
    let limits = Limits::default();
    let fbc = Fbc::read(path, &limits).map_err(|error| unreadable(&error))?;
    let catalog = Catalog::from_fbc(fbc, &limits).map_err(|error| unreadable(&error))?;
    // Made here, beside the agent's loop: a large catalog takes its time.
    catalog.contents();
    Ok(Arc::new(catalog))
}

// === impl Shared ===

impl Shared {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what a CatalogSource serves from now on.
    pub fn set(&self, key: CatalogKey, catalog: Arc<Catalog>) {
        self.0.write().insert(key, catalog);
    }

    /// Says that a CatalogSource's content is not known any more.
    pub fn remove(&self, key: &CatalogKey) {
        self.0.write().remove(key);
    }
}

impl CatalogReader for Shared {
    fn read<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Result<Arc<Catalog>, Error>> {
        let key = asked.key();
        let found = self.0.read().get(&key).cloned();
        let found = found.ok_or(Error::NotKnown(key));
        Box::pin(std::future::ready(found))
    }
}

/// Reads `NAMESPACE/NAME=PATH`.
pub fn parse_flag(text: &str) -> Result<(CatalogKey, PathBuf), String> {
    let form = "is not NAMESPACE/NAME=PATH";
    let (key, path) = text.split_once('=').ok_or_else(|| format!("`{text}` {form}"))?;
    let (namespace, name) = key.split_once('/').ok_or_else(|| format!("`{text}` {form}"))?;
    if namespace.is_empty() || name.is_empty() || path.is_empty() {
        return Err(format!("`{text}` {form}"));
    }
    let key = CatalogKey { name: name.to_owned(), namespace: namespace.to_owned() };
    Ok((key, PathBuf::from(path)))
}

#[cfg(test)]
mod tests;
