//! Keeps a configuration as new as the files it comes from.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Error, Material};

/// How a configuration is made of its material.
type Build<T> = fn(&Material) -> Result<Arc<T>, Error>;

/// A configuration that never changes.
pub fn fixed<T>(config: Arc<T>) -> watch::Receiver<Arc<T>> {
    watch::channel(config).1
}

/// Reads a configuration from `dir` and again whenever the files' content has changed.
///
/// The content is compared, not the times: a Secret's mount swaps a symbolic link, and what counts
/// is what stands in it. Files that make no configuration are reported once and leave the former
/// configuration in force, so a swap that is read half way heals at the next look.
pub async fn watch_dir<T: Send + Sync + 'static>(
    dir: &Path,
    every: Duration,
    build: Build<T>,
    shutdown: CancellationToken,
) -> Result<watch::Receiver<Arc<T>>, Error> {
    let seen = Material::read_dir(dir).await?;
    let (sender, receiver) = watch::channel(build(&seen)?);
    let reloader = Reloader { dir: dir.to_owned(), seen, build, sender, is_unreadable: false };
    tokio::spawn(reloader.run(every, shutdown));
    Ok(receiver)
}

struct Reloader<T> {
    dir: PathBuf,
    /// What was looked at last, usable or not.
    seen: Material,
    build: Build<T>,
    sender: watch::Sender<Arc<T>>,
    is_unreadable: bool,
}

impl<T> Reloader<T> {
    async fn run(mut self, every: Duration, shutdown: CancellationToken) {
        let mut looks = interval_at(Instant::now() + every, every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = looks.tick() => self.look().await,
                () = self.sender.closed() => return,
                () = shutdown.cancelled() => return,
            }
        }
    }

    async fn look(&mut self) {
        match Material::read_dir(&self.dir).await {
            Ok(found) if found == self.seen => self.is_unreadable = false,
            Ok(found) => {
                self.is_unreadable = false;
                self.take(&found);
                self.seen = found;
            }
            Err(error) => {
                if !self.is_unreadable {
                    self.keep("files can't be read", &error);
                }
                self.is_unreadable = true;
            }
        }
    }

    fn take(&self, found: &Material) {
        match (self.build)(found) {
            Ok(config) => {
                self.sender.send_replace(config);
                info!(dir = %self.dir.display(), "certificates reloaded");
            }
            Err(error) => self.keep("files can't be used", &error),
        }
    }

    fn keep(&self, what: &str, error: &Error) {
        let source = std::error::Error::source(error).map(ToString::to_string);
        let (dir, kind) = (self.dir.display(), error.kind());
        warn!(%dir, kind, source, "new certificate {what}, the former stays: {error}");
    }
}
