//! What the registries of the cluster's own CatalogSources serve, in the clear as OLM reads them.
//!
//! Each source has a task that reads it when there is a reason to: at first, when OLM has another
//! connection to it, after a failure, and once in a while. The agent's loop never waits for one: it
//! is told what is known, and woken when that has become something else. A reading that fails takes
//! nothing away: whether a catalog is healthy is for the checks to say.

mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;
use wavelift_catalog::{Catalog, Limits, engine::CatalogKey};
use wavelift_runtime::metrics;
use wavelift_sources::Patience;

use self::reading::Reading;
use super::{Asked, CatalogReader, Error};
use crate::objects;

/// How registries are read. All of it in real time.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How much a catalog may hold.
    pub limits: Limits,
    /// How long one call to a registry may take.
    pub patience: Patience,
    /// How long one reading may take in all.
    pub reading_max: Duration,
    /// How long a reading may go on asking for descriptions of single bundles.
    pub describing_max: Duration,
    /// Readings at the same time.
    pub readings_max: usize,
    /// Sources that are read; further ones are not.
    pub sources_max: usize,
    /// From a reading that went well to the next.
    pub period: Duration,
    /// The pause after a first failure. It doubles, and up to as much again is added by chance.
    pub first_pause: Duration,
    /// The longest pause after a failure.
    pub pause_max: Duration,
    /// How long a connection of OLM's must be left to settle before its source is read again.
    pub settle: Duration,
}

/// Reads the registries of CatalogSources.
#[derive(Debug)]
pub struct Registries {
    reading: Reading,
    sources: Mutex<BTreeMap<CatalogKey, Source>>,
    stop: CancellationToken,
}

/// One source and its task, which ends with it.
#[derive(Debug)]
struct Source {
    /// Another object of the same name has another one.
    uid: String,
    wanted: watch::Sender<Wanted>,
    known: watch::Receiver<Known>,
    _end: DropGuard,
}

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    address: String,
    /// OLM's own connection: what is served may be another catalog once it has another one.
    last_connect: Option<String>,
    /// Packages whose bundles are to be described.
    packages: BTreeSet<String>,
}

/// What is known of a source.
#[derive(Debug, Clone)]
enum Known {
    /// Nothing yet.
    Nothing,
    /// Why nothing could be read so far.
    Failed(String),
    /// What was read last.
    Content(Arc<Catalog>),
}

// === impl Settings ===

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            patience: Patience { attempt: Duration::from_mins(2), ..Patience::default() },
            reading_max: Duration::from_mins(5),
            describing_max: Duration::from_mins(1),
            readings_max: 2,
            sources_max: 100,
            period: Duration::from_hours(1),
            first_pause: Duration::from_secs(2),
            pause_max: Duration::from_mins(5),
            settle: Duration::from_secs(3),
        }
    }
}

// === impl Registries ===

impl Registries {
    /// Reads nothing yet. What is read ends with `stop`, or with this.
    pub fn new(
        settings: Settings,
        metrics: &metrics::Metrics,
        stop: CancellationToken,
    ) -> Result<Self, metrics::Error> {
        let readings = metrics.counters(
            "wavelift_agent_catalog_readings_total",
            "Readings of catalogs' registries, by result: new, same, or the kind of failure.",
            ["result"],
        )?;
        let reading = Reading::new(settings, readings);
        Ok(Self { reading, sources: Mutex::default(), stop })
    }

    fn look(&self, asked: &Asked) -> Result<Arc<Catalog>, Error> {
        let key = asked.key();
        let uid = objects::uid(&*asked.source);
        let wanted = Wanted::of(asked);
        let mut sources = self.sources.lock();
        if sources.get(&key).is_some_and(|source| source.uid != uid) {
            sources.remove(&key);
        }
        let count = sources.len();
        let source = match (sources.get(&key), wanted) {
            (Some(source), Some(wanted)) => {
                source.want(wanted);
                source
            }
            // What is known is not unlearned because OLM has no connection for a moment.
            (Some(source), None) => source,
            (None, None) => return Err(Error::NoAddress(key)),
            (None, Some(_)) if count >= self.reading.settings.sources_max => {
                return Err(Error::TooMany { key, max: self.reading.settings.sources_max });
            }
            (None, Some(wanted)) => {
                let source = self.begin(key.clone(), uid, wanted);
                sources.entry(key.clone()).or_insert(source)
            }
        };
        match &*source.known.borrow() {
            Known::Content(catalog) => Ok(Arc::clone(catalog)),
            Known::Nothing => Err(Error::Reading(key)),
            Known::Failed(why) => {
                let within = self.reading.settings.pause_max;
                Err(Error::Failed { key, why: why.clone(), within })
            }
        }
    }

    fn begin(&self, key: CatalogKey, uid: &str, wanted: Wanted) -> Source {
        debug!(catalog = %key, address = wanted.address, "a catalog is to be read");
        let (wanted, to_read) = watch::channel(wanted);
        let (learnt, known) = watch::channel(Known::Nothing);
        let end = self.stop.child_token();
        let (reading, ended) = (self.reading.clone(), end.clone());
        // It ends with its source, or with the agent.
        drop(tokio::spawn(async move {
            ended.run_until_cancelled(reading.follow(key, to_read, learnt)).await;
        }));
        Source { uid: uid.to_owned(), wanted, known, _end: end.drop_guard() }
    }
}

impl CatalogReader for Registries {
    fn read<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Result<Arc<Catalog>, Error>> {
        Box::pin(std::future::ready(self.look(asked)))
    }

    fn retain(&self, sources: &BTreeSet<CatalogKey>) {
        self.sources.lock().retain(|key, _| sources.contains(key));
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.reading.changes())
    }
}

// === impl Source ===

impl Source {
    fn want(&self, wanted: Wanted) {
        self.wanted.send_if_modified(|before| {
            let is_other = *before != wanted;
            if is_other {
                *before = wanted;
            }
            is_other
        });
    }
}

// === impl Wanted ===

impl Wanted {
    /// Nothing where nobody says where the registry is.
    fn of(asked: &Asked) -> Option<Self> {
        Some(Self {
            address: asked.source.address()?.to_owned(),
            last_connect: asked.source.last_connect().map(str::to_owned),
            packages: asked.packages.clone(),
        })
    }

    /// Whether what was read for `before` may not be what is wanted now.
    fn is_more_than(&self, before: &Self) -> bool {
        self.address != before.address
            || self.last_connect != before.last_connect
            || !self.packages.is_subset(&before.packages)
    }
}

#[cfg(test)]
mod tests;
