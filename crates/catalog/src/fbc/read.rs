//! The only I/O of this crate: walking a directory.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Error, Fbc};
use crate::limits::Limits;

const IGNORE_FILE: &str = ".indexignore";

/// How deep folders may be nested.
const FOLDER_DEPTH_MAX: usize = 64;

struct Walk<'a> {
    limits: &'a Limits,
    fbc: Fbc,
    visited: usize,
    bytes: usize,
    /// The ignore files of the folders from the root down to the current one.
    ignores: Vec<Gitignore>,
}

pub(super) fn tree(path: &Path, limits: &Limits) -> Result<Fbc, Error> {
    let mut walk = Walk { limits, fbc: Fbc::default(), visited: 0, bytes: 0, ignores: Vec::new() };
    if fs::metadata(path).map_err(|source| read_error(path, source))?.is_dir() {
        walk.folder(path)?;
    } else {
        walk.file(path)?;
    }
    Ok(walk.fbc)
}

fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

impl Walk<'_> {
    fn folder(&mut self, path: &Path) -> Result<(), Error> {
        at_most(path, "nested folders", self.ignores.len() + 1, FOLDER_DEPTH_MAX)?;
        self.ignores.push(ignores_of(path)?);
        // Sorted, so that errors and the order of documents do not depend on the file system.
        for child in sorted_children(path)? {
            self.visited += 1;
            at_most(path, "files", self.visited, self.limits.files)?;
            let kind = fs::metadata(&child).map_err(|source| read_error(&child, source))?;
            let is_link = fs::symlink_metadata(&child)
                .is_ok_and(|metadata| metadata.file_type().is_symlink());
            if child.file_name().is_some_and(|name| name == IGNORE_FILE)
                || self.is_ignored(&child, kind.is_dir())
            {
                continue;
            }
            // A linked folder is not followed: it may lead back up. Mounted ConfigMaps link their
            // files one by one, so linked files are.
            match (kind.is_dir(), is_link) {
                (true, true) => {}
                (true, false) => self.folder(&child)?,
                (false, _) => self.file(&child)?,
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

    fn file(&mut self, path: &Path) -> Result<(), Error> {
        let file = fs::File::open(path).map_err(|source| read_error(path, source))?;
        let max = self.limits.file_bytes.min(self.limits.total_bytes - self.bytes);
        let mut content = Vec::new();
        // One byte more than allowed is enough to know that there is too much.
        let read = file.take(max as u64 + 1).read_to_end(&mut content);
        read.map_err(|source| read_error(path, source))?;
        at_most(path, "bytes", content.len(), max)?;
        self.bytes += content.len();
        self.fbc.add_file(&path.display().to_string(), &content, self.limits)
    }
}

fn at_most(path: &Path, what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max {
        return Err(Error::TooLarge { file: path.display().to_string(), what, found, max });
    }
    Ok(())
}

fn ignores_of(folder: &Path) -> Result<Gitignore, Error> {
    let path = folder.join(IGNORE_FILE);
    let mut builder = GitignoreBuilder::new(folder);
    if path.is_file()
        && let Some(source) = builder.add(&path)
    {
        return Err(Error::Ignore { path, source });
    }
    builder.build().map_err(|source| Error::Ignore { path, source })
}

fn sorted_children(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut children = list().map_err(|source| read_error(folder, source))?;
    children.sort();
    Ok(children)
}
