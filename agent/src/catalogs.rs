//! What a CatalogSource serves.
//!
//! The planner needs the content, not the object. Where the content comes from is behind one
//! trait: files, or a map in memory that somebody else fills.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use wavelift_catalog::{Catalog, Fbc, Limits, engine::CatalogKey};

/// Reads what a CatalogSource serves.
pub trait CatalogReader: fmt::Debug + Send + Sync + 'static {
    /// The content now.
    fn read<'a>(&'a self, key: &'a CatalogKey) -> BoxFuture<'a, Result<Arc<Catalog>, Error>>;
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
}

/// Catalogs in files: `NAMESPACE/NAME=PATH` each, an FBC directory or file.
#[derive(Debug, Default)]
pub struct Files {
    paths: BTreeMap<CatalogKey, PathBuf>,
    /// What could be read; what could not is tried again.
    read: Mutex<BTreeMap<CatalogKey, Arc<Catalog>>>,
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
        }
    }
}

// === impl Files ===

impl Files {
    /// Catalogs at these paths.
    pub fn new(paths: impl IntoIterator<Item = (CatalogKey, PathBuf)>) -> Self {
        Self { paths: paths.into_iter().collect(), read: Mutex::default() }
    }

    async fn load(&self, key: &CatalogKey) -> Result<Arc<Catalog>, Error> {
        let path = self.paths.get(key).ok_or_else(|| Error::NotKnown(key.clone()))?.clone();
        if let Some(known) = self.read.lock().get(key) {
            return Ok(Arc::clone(known));
        }
        let named = key.clone();
        let read = tokio::task::spawn_blocking(move || load(&named, &path)).await;
        let read = read.unwrap_or_else(|error| {
            Err(Error::Unreadable { key: key.clone(), why: error.to_string() })
        });
        if let Ok(catalog) = &read {
            self.read.lock().insert(key.clone(), Arc::clone(catalog));
        }
        read
    }
}

impl CatalogReader for Files {
    fn read<'a>(&'a self, key: &'a CatalogKey) -> BoxFuture<'a, Result<Arc<Catalog>, Error>> {
        Box::pin(self.load(key))
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
    fn read<'a>(&'a self, key: &'a CatalogKey) -> BoxFuture<'a, Result<Arc<Catalog>, Error>> {
        let found = self.0.read().get(key).cloned();
        let found = found.ok_or_else(|| Error::NotKnown(key.clone()));
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
mod tests {
    use super::*;

    #[test]
    fn a_catalog_flag_names_its_source_and_its_path() {
        let (key, path) = parse_flag("openshift-marketplace/own=/catalogs/own").unwrap();
        assert_eq!(key.to_string(), "openshift-marketplace/own");
        assert_eq!(path, PathBuf::from("/catalogs/own"));
        for bad in ["own=/x", "a/b", "/b=/x", "a/=/x", "a/b="] {
            assert!(parse_flag(bad).is_err(), "`{bad}` was taken");
        }
    }

    #[tokio::test]
    async fn a_catalog_is_read_once_and_one_that_cannot_be_read_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("catalog.json");
        let key = CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() };
        let files = Files::new([(key.clone(), path.clone())]);
        assert_eq!(files.read(&key).await.unwrap_err().kind(), "unreadable");
        let blobs = r#"{"schema": "olm.package", "name": "oak", "defaultChannel": "stable"}
            {"schema": "olm.channel", "package": "oak", "name": "stable",
                "entries": [{"name": "oak.v1.0.0"}]}
            {"schema": "olm.bundle", "package": "oak", "name": "oak.v1.0.0", "image": "oak:1",
                "properties": [{"type": "olm.package",
                    "value": {"packageName": "oak", "version": "1.0.0"}}]}"#;
        std::fs::write(&path, blobs).unwrap();
        let catalog = files.read(&key).await.unwrap();
        assert!(catalog.bundle("oak", "oak.v1.0.0").is_some());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(files.read(&key).await.unwrap().digest(), catalog.digest());
    }

    #[tokio::test]
    async fn a_catalog_that_nobody_named_is_not_known() {
        let key = CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() };
        let files = Files::new([(key.clone(), PathBuf::from("/nonexistent/catalog"))]);
        assert_eq!(files.read(&key).await.unwrap_err().kind(), "unreadable");
        let other = CatalogKey { name: "other".to_owned(), ..key };
        assert_eq!(files.read(&other).await.unwrap_err().kind(), "not_known");
        assert_eq!(Shared::new().read(&other).await.unwrap_err().kind(), "not_known");
    }
}
