//! The only I/O of this crate: walking a directory, and reading its files, several at a time.

use std::{
    fs, io,
    io::Read,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Error, Fbc, add};
use crate::limits::Limits;

const IGNORE_FILE: &str = ".indexignore";

/// How deep folders may be nested.
const FOLDER_DEPTH_MAX: usize = 64;

/// How many files are read at a time, at most.
const READERS_MAX: usize = 8;

/// Reads a tree up to the first error, in the order of its files.
pub(super) fn tree(path: &Path, limits: &Limits) -> Result<Fbc, Error> {
    let (fbc, mut errors) = read(path, limits, OnError::Stop);
    if errors.is_empty() { Ok(fbc) } else { Err(errors.swap_remove(0)) }
}

/// Reads a tree and collects all errors.
pub(super) fn tree_all(path: &Path, limits: &Limits) -> (Fbc, Vec<Error>) {
    read(path, limits, OnError::GoOn)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnError {
    Stop,
    GoOn,
}

fn read(path: &Path, limits: &Limits, on_error: OnError) -> (Fbc, Vec<Error>) {
    let mut walk = Walk { limits, files: Vec::new(), visited: 0, bytes: 0, ignores: Vec::new() };
    if let Err(error) = walk.root(path) {
        return (Fbc::default(), vec![error]);
    }
    let files = walk.files;
    let readers = thread::available_parallelism().map_or(1, usize::from).min(READERS_MAX);
    let pool = Pool {
        limits,
        on_error,
        files: &files,
        next: AtomicUsize::new(0),
        is_stopped: AtomicBool::new(false),
        entries: AtomicUsize::new(0),
        skips: AtomicUsize::new(0),
        nodes: AtomicUsize::new(0),
    };
    let mut parts = if files.len() == 1 || readers == 1 {
        pool.work()
    } else {
        thread::scope(|scope| {
            let others: Vec<_> =
                (1..readers.min(files.len())).map(|_| scope.spawn(|| pool.work())).collect();
            let mut parts = pool.work();
            for other in others {
                // A reader that panicked has said so; its files count as not read.
                parts.extend(other.join().unwrap_or_default());
            }
            parts
        })
    };
    // In the order of their names, so that nothing depends on which reader was faster. Files are
    // taken in this order, so whatever comes before an error has been read.
    parts.sort_by_key(|part| part.index);
    let (mut fbc, mut errors) = (Fbc::default(), Vec::new());
    for part in parts {
        fbc.append(part.fbc);
        errors.extend(part.errors);
    }
    (fbc, errors)
}

/// What one file holds.
struct Part {
    index: usize,
    fbc: Fbc,
    errors: Vec<Error>,
}

struct Pool<'a> {
    limits: &'a Limits,
    on_error: OnError,
    files: &'a [PathBuf],
    next: AtomicUsize,
    is_stopped: AtomicBool,
    /// Bundles and channel entries so far, in all files.
    entries: AtomicUsize,
    /// Names in `skips` so far.
    skips: AtomicUsize,
    /// Values so far.
    nodes: AtomicUsize,
}

impl Pool<'_> {
    /// Reads files until there are no more.
    fn work(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        while !self.is_stopped.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = self.files.get(index) else { break };
            let part = self.file(index, path);
            if !part.errors.is_empty() && self.on_error == OnError::Stop {
                self.is_stopped.store(true, Ordering::Relaxed);
            }
            parts.push(part);
        }
        parts
    }

    fn file(&self, index: usize, path: &Path) -> Part {
        let mut part = Part { index, fbc: Fbc::default(), errors: Vec::new() };
        let content = match content(path, self.limits) {
            Ok(content) => content,
            Err(error) => {
                part.errors.push(error);
                return part;
            }
        };
        let Part { fbc, errors, .. } = &mut part;
        let name = path.display().to_string();
        let nodes = add::file(fbc, &name, &content, self.limits, &mut |error| {
            errors.push(error);
            match self.on_error {
                OnError::Stop => ControlFlow::Break(()),
                OnError::GoOn => ControlFlow::Continue(()),
            }
        });
        if let Err(error) = self.count(path, fbc, nodes) {
            errors.push(error);
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        part
    }

    /// Adds one file to what all files hold together.
    fn count(&self, path: &Path, fbc: &Fbc, nodes: usize) -> Result<(), Error> {
        let entries = || fbc.channels.iter().flat_map(|channel| &channel.entries);
        let more = entries().count().max(fbc.bundles.len());
        let skips: usize = entries().map(|entry| entry.skips.len()).sum();
        let add = |to: &AtomicUsize, more: usize| to.fetch_add(more, Ordering::Relaxed) + more;
        let (found, skips) = (add(&self.entries, more), add(&self.skips, skips));
        let nodes = add(&self.nodes, nodes);
        at_most(path, "bundles or channel entries", found, self.limits.entries)?;
        at_most(
            path,
            "skipped entries together with the files before it",
            skips,
            self.limits.skips,
        )?;
        at_most(path, "values together with the files before it", nodes, self.limits.total_nodes)
    }
}

/// The content of a file. One that has grown beyond the limit since it was looked at is refused.
fn content(path: &Path, limits: &Limits) -> Result<Vec<u8>, Error> {
    let file = fs::File::open(path).map_err(|source| read_error(path, source))?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let max = limits.file_bytes;
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(max).min(max));
    // One byte more than allowed is enough to know that there is too much.
    let read = file.take(max as u64 + 1).read_to_end(&mut content);
    read.map_err(|source| read_error(path, source))?;
    at_most(path, "bytes", content.len(), max)?;
    Ok(content)
}

struct Walk<'a> {
    limits: &'a Limits,
    files: Vec<PathBuf>,
    visited: usize,
    bytes: usize,
    /// The ignore files of the folders from the root down to the current one.
    ignores: Vec<Gitignore>,
}

impl Walk<'_> {
    fn root(&mut self, path: &Path) -> Result<(), Error> {
        let metadata = fs::metadata(path).map_err(|source| read_error(path, source))?;
        if metadata.is_dir() { self.folder(path) } else { self.file(path, &metadata) }
    }

    fn folder(&mut self, path: &Path) -> Result<(), Error> {
        at_most(path, "nested folders", self.ignores.len() + 1, FOLDER_DEPTH_MAX)?;
        self.ignores.push(ignores_of(path)?);
        // Sorted, so that errors and the order of documents do not depend on the file system.
        for child in self.sorted_children(path)? {
            let metadata = fs::metadata(&child).map_err(|source| read_error(&child, source))?;
            let is_link = fs::symlink_metadata(&child)
                .is_ok_and(|metadata| metadata.file_type().is_symlink());
            if child.file_name().is_some_and(|name| name == IGNORE_FILE)
                || self.is_ignored(&child, metadata.is_dir())
            {
                continue;
            }
            // A linked folder is not followed: it may lead back up. Mounted ConfigMaps link their
            // files one by one, so linked files are.
            match (metadata.is_dir(), is_link) {
                (true, true) => {}
                (true, false) => self.folder(&child)?,
                (false, _) => self.file(&child, &metadata)?,
            }
        }
        self.ignores.pop();
        Ok(())
    }

    /// The ignore file nearest to a path has the last word.
    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        for ignores in self.ignores.iter().rev() {
            let matched = ignores.matched(path, is_dir);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        false
    }

    /// Notes a file. Nothing but files is opened: a pipe would be waited for, a device has no end.
    fn file(&mut self, path: &Path, metadata: &fs::Metadata) -> Result<(), Error> {
        if !metadata.is_file() {
            return Err(Error::Kind { path: path.to_owned() });
        }
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        at_most(path, "bytes", size, self.limits.file_bytes)?;
        self.bytes = self.bytes.saturating_add(size);
        at_most(
            path,
            "bytes together with the files before it",
            self.bytes,
            self.limits.total_bytes,
        )?;
        self.files.push(path.to_owned());
        Ok(())
    }

    fn sorted_children(&mut self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut children = Vec::new();
        for entry in fs::read_dir(folder).map_err(|source| read_error(folder, source))? {
            self.visited += 1;
            at_most(folder, "files", self.visited, self.limits.files)?;
            children.push(entry.map_err(|source| read_error(folder, source))?.path());
        }
        children.sort();
        Ok(children)
    }
}

fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

fn at_most(path: &Path, what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max {
        return Err(Error::TooLarge { file: path.display().to_string(), what, found, max });
    }
    Ok(())
}

fn ignores_of(folder: &Path) -> Result<Gitignore, Error> {
    /// Far more than any list of names needs.
    const IGNORE_BYTES_MAX: usize = 1 << 20;
    let path = folder.join(IGNORE_FILE);
    let mut builder = GitignoreBuilder::new(folder);
    if let Ok(metadata) = fs::metadata(&path)
        && metadata.is_file()
    {
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        at_most(&path, "bytes", size, IGNORE_BYTES_MAX)?;
        if let Some(source) = builder.add(&path) {
            return Err(Error::Ignore { path, source });
        }
    }
    builder.build().map_err(|source| Error::Ignore { path, source })
}
