//! What commands without a cluster read: catalogs, questions and definitions in files.

pub(crate) mod lines;

use std::{
    collections::BTreeSet,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use wavelift_catalog::{Catalog, Fbc, Limits, fbc};

use crate::{fault::Fault, printer::Printer};

/// The longest file of definitions or settings that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// One catalog from a directory or file.
pub(crate) fn catalog(path: &Path, printer: &Printer) -> anyhow::Result<Arc<Catalog>> {
    catalogs(std::slice::from_ref(&path.to_path_buf()), printer)
}

/// One catalog from several directories or files.
pub(crate) fn catalogs(paths: &[PathBuf], printer: &Printer) -> anyhow::Result<Arc<Catalog>> {
    catalog_of(documents(paths, printer)?)
}

/// The catalog that documents make.
pub(crate) fn catalog_of(documents: Fbc) -> anyhow::Result<Arc<Catalog>> {
    let catalog = Catalog::from_fbc(documents, &Limits::default());
    Ok(Arc::new(catalog.with_context(|| {
        Fault::usage("the catalog contradicts itself")
            .advice("`wavelift catalog validate` lists all that is wrong with it")
    })?))
}

/// The documents of one catalog in several directories or files. A path that is given twice is
/// read once.
pub(crate) fn documents(paths: &[PathBuf], printer: &Printer) -> anyhow::Result<Fbc> {
    let limits = Limits::default();
    let mut all = Fbc::default();
    let mut seen = BTreeSet::new();
    for path in paths {
        // What has no real path can't be read either, and that is said below.
        if let Ok(real) = path.canonicalize()
            && !seen.insert(real)
        {
            printer.note(&format!("{} is given twice and read once", path.display()));
            continue;
        }
        let read = Fbc::read(path, &limits);
        all.append(read.map_err(|error| unread(path, error))?);
    }
    if all.packages.is_empty() && all.channels.is_empty() && all.bundles.is_empty() {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Fault::usage(format!("there is no package in {}", paths.join(", ")))
            .advice(
                "give a directory or file of a File-Based Catalog: documents with a `schema`, \
                 such as olm.package",
            )
            .into());
    }
    Ok(all)
}

fn unread(path: &Path, error: fbc::Error) -> anyhow::Error {
    let text = format!("cannot read the catalog {}", path.display());
    let fault = match error {
        fbc::Error::Read { .. } => Fault::error(text),
        fbc::Error::Ignore { .. }
        | fbc::Error::TooLarge { .. }
        | fbc::Error::Json { .. }
        | fbc::Error::Yaml { .. }
        | fbc::Error::Text { .. }
        | fbc::Error::Kind { .. }
        | fbc::Error::Document { .. } => Fault::usage(text),
    };
    anyhow::Error::new(error).context(fault)
}

/// A file, or standard input for `-`.
pub(crate) fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_end(&mut bytes)
    } else {
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
    };
    let length = read.with_context(|| format!("cannot read {}", path.display()))?;
    if u64::try_from(length).unwrap_or(u64::MAX) == FILE_BYTES_MAX {
        let text = format!("{} is longer than {FILE_BYTES_MAX} bytes", path.display());
        return Err(Fault::usage(text).into());
    }
    Ok(bytes)
}
