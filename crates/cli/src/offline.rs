//! What commands without a cluster read: catalogs and questions in files.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use wavelift_catalog::{Catalog, Fbc, Limits};

/// The longest file of questions or definitions that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// One catalog from a directory or file.
pub(crate) fn catalog(path: &Path) -> anyhow::Result<Arc<Catalog>> {
    catalogs(std::slice::from_ref(&path.to_path_buf()))
}

/// One catalog from several directories or files.
pub(crate) fn catalogs(paths: &[PathBuf]) -> anyhow::Result<Arc<Catalog>> {
    catalog_of(documents(paths)?)
}

/// The catalog that documents make.
pub(crate) fn catalog_of(documents: Fbc) -> anyhow::Result<Arc<Catalog>> {
    let catalog = Catalog::from_fbc(documents, &Limits::default());
    Ok(Arc::new(catalog.context("the catalog contradicts itself")?))
}

/// The documents of one catalog in several directories or files.
pub(crate) fn documents(paths: &[PathBuf]) -> anyhow::Result<Fbc> {
    let limits = Limits::default();
    let mut all = Fbc::default();
    for path in paths {
        let one = Fbc::read(path, &limits);
        all.append(one.with_context(|| format!("cannot read the catalog {}", path.display()))?);
    }
    if all.packages.is_empty() && all.channels.is_empty() && all.bundles.is_empty() {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "there is no package in {}: a catalog is a directory or file of documents with a \
             `schema`, such as olm.package",
            paths.join(", ")
        );
    }
    Ok(all)
}

/// A text file, or standard input for `-`.
pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
    };
    let length = read.with_context(|| format!("cannot read {}", path.display()))?;
    if u64::try_from(length).unwrap_or(u64::MAX) == FILE_BYTES_MAX {
        bail!("{} is longer than {FILE_BYTES_MAX} bytes", path.display());
    }
    Ok(text)
}
