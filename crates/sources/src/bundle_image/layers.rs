//! From an image's layers to the files of two of its folders, in memory.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::BTreeMap,
    io::{self, Read},
    rc::Rc,
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry};

/// Marks what a layer takes away from those below it.
const WHITEOUT: &str = ".wh.";
/// Marks a folder of which nothing below this layer is left.
const OPAQUE: &str = ".wh..wh..opq";

/// Archives are made of blocks, and end with two empty ones.
const BLOCK_BYTES: usize = 512;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// How much an image may hold. Bundles have some dozens of files and some hundred kilobytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one layer as it is stored.
    pub layer_bytes: usize,
    /// Bytes of all layers, unpacked, wanted files or not.
    pub unpacked_bytes: usize,
    /// Entries of all layers, wanted files or not.
    pub entries: usize,
    /// Wanted files.
    pub files: usize,
    /// Bytes of one wanted file.
    pub file_bytes: usize,
    /// Bytes of all wanted files.
    pub files_bytes: usize,
}

/// Why an image's layers can't be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A layer is no archive, or it is cut off.
    #[error("layer {layer} is not a whole archive")]
    Archive {
        /// Which layer, counted from 1, the lowest first.
        layer: usize,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A layer is packed in a way that is not supported.
    #[error("layer {layer} is packed with zstd, which is not supported")]
    Zstd {
        /// Which layer, counted from 1, the lowest first.
        layer: usize,
    },
    /// More than the limits allow.
    #[error("the image has more than {max} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many may be.
        max: usize,
    },
    /// A path leads out of the image, or is no text.
    #[error("layer {layer} holds the path `{path}`")]
    Path {
        /// Which layer, counted from 1, the lowest first.
        layer: usize,
        /// The path.
        path: String,
    },
    /// Something in a wanted folder is not a plain file.
    #[error("`{path}` is a link or a special file")]
    NoFile {
        /// Its path.
        path: String,
    },
}

/// Wanted files: by folder (as it is named in the answer), then by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// A folder whose files are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    /// Its path in the image, with no slash at either end.
    pub(super) path: String,
    /// The name it has in the answer.
    pub(super) name: &'static str,
}

struct Unpacking<'a> {
    folders: &'a [Folder],
    limits: &'a Limits,
    /// Files of the layers so far, by their path in the image.
    files: BTreeMap<String, Vec<u8>>,
    unpacked_bytes_left: usize,
    entries: usize,
    layer: usize,
}

/// Unpacks layers, the lowest first.
pub(super) fn unpack(
    layers: &[Vec<u8>],
    folders: &[Folder],
    limits: &Limits,
) -> Result<Files, Error> {
    let mut unpacking = Unpacking {
        folders,
        limits,
        files: BTreeMap::new(),
        unpacked_bytes_left: limits.unpacked_bytes,
        entries: 0,
        layer: 0,
    };
    for layer in layers {
        unpacking.layer += 1;
        unpacking.add_layer(layer)?;
    }
    Ok(unpacking.named())
}

// === impl Unpacking ===

impl Unpacking<'_> {
    fn add_layer(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let content: Box<dyn Read + '_> = if bytes.starts_with(GZIP_MAGIC) {
            Box::new(MultiGzDecoder::new(bytes))
        } else if bytes.starts_with(ZSTD_MAGIC) {
            return Err(Error::Zstd { layer: self.layer });
        } else {
            Box::new(bytes)
        };
        let mut content = Archived {
            content,
            left: self.unpacked_bytes_left,
            is_exceeded: false,
            given: 0,
            to_invent: None,
            invented: Rc::default(),
        };
        let outcome = self.add_archive(&mut content);
        self.unpacked_bytes_left = content.left;
        if content.is_exceeded {
            let max = self.limits.unpacked_bytes;
            return Err(Error::TooLarge { what: "bytes when unpacked", max });
        }
        outcome
    }

    fn add_archive(&mut self, content: &mut Archived<'_>) -> Result<(), Error> {
        let layer = self.layer;
        let broken = |source| Error::Archive { layer, source };
        let mut added = BTreeMap::new();
        let invented = Rc::clone(&content.invented);
        let mut archive = Archive::new(content);
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(Error::TooLarge { what: "entries", max: self.limits.entries });
            }
            let path = path(layer, &entry.path_bytes())?;
            self.add_entry(&path, &mut entry, &mut added)?;
            if invented.get() > 0 && added.contains_key(&path) {
                return Err(broken(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.files.append(&mut added);
        let (count, bytes) = (self.files.len(), self.files.values().map(Vec::len).sum::<usize>());
        if count > self.limits.files {
            return Err(Error::TooLarge { what: "files", max: self.limits.files });
        }
        if bytes > self.limits.files_bytes {
            return Err(Error::TooLarge { what: "bytes of files", max: self.limits.files_bytes });
        }
        Ok(())
    }

    /// Whiteouts and replaced folders act on what lower layers brought; files of this layer wait in
    /// `added`.
    fn add_entry<R: Read>(
        &mut self,
        path: &str,
        entry: &mut Entry<'_, R>,
        added: &mut BTreeMap<String, Vec<u8>>,
    ) -> Result<(), Error> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == OPAQUE {
            self.remove_below(parent);
            return Ok(());
        }
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            let hidden = joined(parent, hidden);
            self.files.remove(&hidden);
            self.remove_below(&hidden);
            return Ok(());
        }
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            self.files.remove(path);
            return Ok(());
        }
        if !self.is_in_the_way(path) {
            return Ok(());
        }
        if !(kind.is_file() || kind.is_contiguous()) {
            return Err(Error::NoFile { path: path.to_owned() });
        }
        self.remove_below(path);
        if self.is_wanted(path) {
            let content = self.content(path, entry)?;
            added.insert(path.to_owned(), content);
            if added.len() > self.limits.files {
                return Err(Error::TooLarge { what: "files", max: self.limits.files });
            }
        }
        Ok(())
    }

    fn content<R: Read>(&self, path: &str, entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Error> {
        let broken = |source| Error::Archive { layer: self.layer, source };
        let (max, size) = (self.limits.file_bytes, entry.size());
        let mut content = Vec::new();
        // A sparse file may be much longer than what is stored of it.
        entry.take(max as u64 + 1).read_to_end(&mut content).map_err(broken)?;
        if content.len() > max {
            tracing::debug!(path, max, "a file of a bundle image is too long");
            return Err(Error::TooLarge { what: "bytes in one file", max });
        }
        if content.len() as u64 != size {
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(content)
    }

    /// Whether the path is a file directly in a wanted folder. OLM reads no deeper.
    fn is_wanted(&self, path: &str) -> bool {
        let (parent, _) = path.rsplit_once('/').unwrap_or(("", path));
        self.folders.iter().any(|folder| folder.path == parent)
    }

    /// Whether the path is in a wanted folder, or is such a folder or one above it.
    fn is_in_the_way(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| {
            is_below(path, &folder.path) || folder.path == path || is_below(&folder.path, path)
        })
    }

    fn remove_below(&mut self, folder: &str) {
        self.files.retain(|path, _| !is_below(path, folder));
    }

    fn named(self) -> Files {
        let mut named = Files::new();
        for (path, content) in self.files {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
            for folder in self.folders.iter().filter(|folder| folder.path == parent) {
                named.insert(format!("{}/{name}", folder.name), content.clone());
            }
        }
        named
    }
}

/// The path without `.` and empty parts.
fn path(layer: usize, bytes: &[u8]) -> Result<String, Error> {
    let text = String::from_utf8_lossy(bytes);
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if matches!(text, Cow::Owned(_)) || parts.contains(&"..") || text.contains('\0') {
        return Err(Error::Path { layer, path: text.escape_debug().take(200).collect() });
    }
    Ok(parts.join("/"))
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn joined(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

/// The bytes of an archive. Ends with an error where there are more than there may be.
///
/// Some tools leave out the end of an archive: the last block's padding and the empty blocks after
/// it. Runtimes do not mind, so what is missing of these is made up here.
struct Archived<'a> {
    content: Box<dyn Read + 'a>,
    left: usize,
    is_exceeded: bool,
    given: usize,
    to_invent: Option<usize>,
    /// How many bytes were made up. None of them may belong to a file.
    invented: Rc<Cell<usize>>,
}

impl Archived<'_> {
    fn invent(&mut self, into: &mut [u8]) -> usize {
        let padding = self.given.next_multiple_of(BLOCK_BYTES) - self.given;
        let to_invent = self.to_invent.get_or_insert(padding + 2 * BLOCK_BYTES);
        let count = into.len().min(*to_invent);
        *to_invent -= count;
        self.invented.set(self.invented.get() + count);
        into.iter_mut().take(count).for_each(|byte| *byte = 0);
        count
    }
}

impl Read for Archived<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(into)?;
        if read == 0 {
            return Ok(self.invent(into));
        }
        if read > self.left {
            self.is_exceeded = true;
            return Err(io::Error::other("more than may be unpacked"));
        }
        self.left -= read;
        self.given += read;
        Ok(read)
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            layer_bytes: 64 << 20,
            unpacked_bytes: 256 << 20,
            entries: 100_000,
            files: 2000,
            file_bytes: 16 << 20,
            files_bytes: 64 << 20,
        }
    }
}

#[cfg(test)]
mod tests;
