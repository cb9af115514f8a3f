//! Content that was fetched before, on disk by its digest.
//!
//! A file is written under another name and renamed, so that nobody sees half of one, and it is
//! hashed again when it is read: what is on disk is believed no more than what comes from a network.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use super::reference::Digest;

/// Manifests, configurations and layers of images.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    bytes_max: u64,
    /// What is there, as far as this process knows.
    bytes: AtomicU64,
    written: AtomicU64,
}

// === impl Store ===

impl Store {
    /// Opens the folder, and makes it if it is not there. When there is more in it than `bytes_max`,
    /// what was not used for the longest time goes.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        let folder = folder.join("sha256");
        fs::create_dir_all(&folder)?;
        let inner =
            Inner { folder, bytes_max, bytes: AtomicU64::new(0), written: AtomicU64::new(0) };
        inner.prune()?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What has this digest, if it is there and whole, and no longer than `bytes_max`.
    pub(super) async fn get(&self, digest: &Digest, bytes_max: usize) -> Option<Vec<u8>> {
        let (inner, digest) = (Arc::clone(&self.inner), digest.clone());
        let read = tokio::task::spawn_blocking(move || inner.get(&digest, bytes_max)).await;
        read.ok().flatten()
    }

    /// Keeps content. That it can't be kept is no reason to stop: it is fetched again next time.
    pub(super) async fn put(&self, digest: &Digest, content: &[u8]) {
        let (inner, digest) = (Arc::clone(&self.inner), digest.clone());
        let content = content.to_vec();
        let put = tokio::task::spawn_blocking(move || inner.put(&digest, &content)).await;
        if let Ok(Err(error)) = put {
            tracing::warn!(%error, "failed to keep a piece of an image");
        }
    }
}

// === impl Inner ===

impl Inner {
    fn get(&self, digest: &Digest, bytes_max: usize) -> Option<Vec<u8>> {
        let path = self.folder.join(digest.digits());
        if fs::metadata(&path).ok()?.len() > bytes_max as u64 {
            return None;
        }
        let content = fs::read(&path).ok()?;
        if Digest::of(&content) != *digest {
            tracing::warn!(path = %path.display(), "a kept piece of an image is damaged");
            // If it can't go, it is replaced by what is fetched now.
            drop(fs::remove_file(&path));
            return None;
        }
        // Only to know later what was used last.
        drop(fs::File::open(&path).and_then(|file| file.set_modified(SystemTime::now())));
        Some(content)
    }

    fn put(&self, digest: &Digest, content: &[u8]) -> io::Result<()> {
        let length = content.len() as u64;
        if length > self.bytes_max {
            return Ok(());
        }
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let partial = format!("{}.partial-{}-{number}", digest.digits(), std::process::id());
        let partial = self.folder.join(partial);
        let written = fs::write(&partial, content)
            .and_then(|()| fs::rename(&partial, self.folder.join(digest.digits())));
        if written.is_err() {
            drop(fs::remove_file(&partial));
        }
        written?;
        if self.bytes.fetch_add(length, Ordering::Relaxed) + length > self.bytes_max {
            self.prune()?;
        }
        Ok(())
    }

    /// Counts what is there and removes the oldest until it is no more than it may be.
    fn prune(&self) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            // What another process takes away meanwhile is not there.
            let entry = entry?;
            if let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((used, metadata.len(), entry.path()));
            }
        }
        found.sort();
        let mut bytes: u64 = found.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in found {
            if bytes <= self.bytes_max {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                bytes -= length;
            }
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_read_is_what_was_written_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1000).unwrap();
        let digest = Digest::of(b"abc");
        assert_eq!(store.get(&digest, 10).await, None);
        store.put(&digest, b"abc").await;
        assert_eq!(store.get(&digest, 3).await.unwrap(), b"abc");
        assert_eq!(store.get(&digest, 2).await, None);

        let again = Store::open(folder.path(), 1000).unwrap();
        let path = folder.path().join("sha256").join(digest.digits());
        fs::write(&path, b"abd").unwrap();
        assert_eq!(again.get(&digest, 10).await, None);
        assert!(!path.exists(), "what is damaged goes");
    }

    #[tokio::test]
    async fn the_oldest_goes_when_there_is_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 10).unwrap();
        let pieces: [&[u8]; 3] = [b"aaaa", b"bbbb", b"cccc"];
        for (age, piece) in pieces.iter().enumerate() {
            store.put(&Digest::of(piece), piece).await;
            let path = folder.path().join("sha256").join(Digest::of(piece).digits());
            if let Ok(file) = fs::File::open(path) {
                let used = SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64 + 1);
                file.set_modified(used).unwrap();
            }
        }
        let mut left = Vec::new();
        for piece in pieces {
            left.push(store.get(&Digest::of(piece), 10).await.is_some());
        }
        assert_eq!(left, [false, true, true]);
        // More than fits is not kept at all.
        store.put(&Digest::of(b"longer than ten"), b"longer than ten").await;
        assert_eq!(fs::read_dir(folder.path().join("sha256")).unwrap().count(), 2);
    }
}
