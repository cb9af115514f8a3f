//! One source read again and again.

use std::{sync::Arc, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::{
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};
use wavelift_catalog::{Catalog, engine::CatalogKey, lifecycle::Lifecycle, release};
use wavelift_core::causes::sentence;
use wavelift_runtime::metrics::Counters;
use wavelift_sources::{
    CatalogSource, Retries,
    catalog_source::{self, CustomSchema, Served, Transport},
};

use super::{Known, Settings, Wanted};

/// The documents of authors that previews are made from.
const SCHEMAS: [&str; 2] = [release::SCHEMA, Lifecycle::SCHEMA];

/// How sources are read. Clones share the room and the bell.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) settings: Settings,
    room: Arc<Semaphore>,
    changed: watch::Sender<u64>,
    results: Counters<1>,
}

/// Why a reading came to nothing.
struct Failure {
    result: &'static str,
    why: String,
}

/// What ends a pause.
enum Reason {
    /// It is over.
    Time,
    /// Something else is wanted.
    Other,
    /// Nobody wants anything any more.
    Gone,
}

// === impl Reading ===

impl Reading {
    pub(super) fn new(settings: Settings, results: Counters<1>) -> Self {
        let room = Arc::new(Semaphore::new(settings.readings_max.max(1)));
        Self { settings, room, changed: watch::channel(0).0, results }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Reads the source until nobody wants it any more.
    pub(super) async fn follow(
        self,
        key: CatalogKey,
        mut wanted: watch::Receiver<Wanted>,
        learnt: watch::Sender<Known>,
    ) {
        let mut pauses = self.pauses();
        loop {
            let now = wanted.borrow().clone();
            let read = tokio::select! {
                read = self.read(&now) => read,
                // There is no use in waiting for where it was.
                is_moved = is(&mut wanted, |other| other.address != now.address) => {
                    if is_moved {
                        continue;
                    }
                    return;
                }
            };
            let pause = match read {
                Ok(catalog) => {
                    pauses = self.pauses();
                    self.keep(&key, &learnt, catalog);
                    self.settings.period
                }
                Err(Failure { result, why }) => {
                    let pause = pauses.next().unwrap_or(self.settings.pause_max);
                    self.results.with([result]).inc();
                    warn!(catalog = %key, address = now.address, why, ?pause, "a catalog was not read");
                    self.failed(&learnt, why);
                    pause
                }
            };
            match reason(&mut wanted, &now, pause).await {
                Reason::Time => {}
                Reason::Gone => return,
                Reason::Other => {
                    pauses = self.pauses();
                    sleep(self.settings.settle).await;
                }
            }
        }
    }

    /// With what is added by chance, no pause is longer than it may be.
    pub(super) fn pauses(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        let Settings { first_pause, pause_max, .. } = self.settings;
        let half = pause_max / 2;
        ExponentialBuilder::new()
            .with_min_delay(first_pause.min(half))
            .with_max_delay(half)
            .without_max_times()
            .with_jitter()
            .build()
    }

    async fn read(&self, wanted: &Wanted) -> Result<Arc<Catalog>, Failure> {
        let _room = self.room.acquire().await;
        let after = self.settings.reading_max;
        timeout(after, self.read_now(wanted)).await.unwrap_or_else(|_| {
            let why = format!("it was not read to its end within {} s", after.as_secs());
            Err(Failure { result: "slow", why })
        })
    }

    async fn read_now(&self, wanted: &Wanted) -> Result<Arc<Catalog>, Failure> {
        let Settings { limits, patience, .. } = self.settings;
        // The pauses between readings are ours.
        let source = CatalogSource::new(
            &wanted.address,
            &Transport::Plaintext,
            limits,
            patience,
            Retries::NONE,
        )?;
        let mut served = source.read().await?;
        // What did not come in time stays unknown.
        drop(
            timeout(self.settings.describing_max, source.describe(&mut served, &wanted.packages))
                .await,
        );
        let packages: Vec<String> =
            served.fbc.packages.iter().map(|package| package.name.clone()).collect();
        let documents = match source.custom_schemas(&SCHEMAS, &packages).await? {
            CustomSchema::Documents(documents) => documents,
            // The registry is too old.
            CustomSchema::NotServed => vec![],
        };
        // A large catalog takes its time: beside everything else.
        let made = tokio::task::spawn_blocking(move || {
            served.add_custom(&documents, &limits).map_err(|error| Failure::invalid(&error))?;
            make(served, &limits)
        });
        made.await.unwrap_or_else(|error| Err(Failure { result: "broken", why: error.to_string() }))
    }

    fn keep(&self, key: &CatalogKey, learnt: &watch::Sender<Known>, catalog: Arc<Catalog>) {
        let is_same = match &*learnt.borrow() {
            Known::Content(before) => {
                before.digest() == catalog.digest()
                    && before.contents_digest() == catalog.contents_digest()
            }
            Known::Nothing | Known::Failed(_) => false,
        };
        let digest = catalog.digest().clone();
        learnt.send_replace(Known::Content(catalog));
        if is_same {
            self.results.with(["same"]).inc();
            debug!(catalog = %key, "a catalog is what it was");
        } else {
            self.results.with(["new"]).inc();
            info!(catalog = %key, %digest, "a catalog was read");
            self.ring();
        }
    }

    /// What was read before stays.
    fn failed(&self, learnt: &watch::Sender<Known>, why: String) {
        let is_news = learnt.send_if_modified(|known| match known {
            Known::Content(_) => false,
            Known::Failed(before) if *before == why => false,
            Known::Nothing | Known::Failed(_) => {
                *known = Known::Failed(why);
                true
            }
        });
        if is_news {
            self.ring();
        }
    }

    fn ring(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

fn make(served: Served, limits: &wavelift_catalog::Limits) -> Result<Arc<Catalog>, Failure> {
    let catalog = served.into_catalog(limits).map_err(|error| Failure::invalid(&error))?;
    catalog.contents();
    Ok(Arc::new(catalog.packed()))
}

/// Waits until that is so; false when nobody wants anything any more.
async fn is(wanted: &mut watch::Receiver<Wanted>, so: impl FnMut(&Wanted) -> bool) -> bool {
    wanted.wait_for(so).await.is_ok()
}

async fn reason(wanted: &mut watch::Receiver<Wanted>, before: &Wanted, pause: Duration) -> Reason {
    match timeout(pause, is(wanted, |now| now.is_more_than(before))).await {
        Err(_) => Reason::Time,
        Ok(true) => Reason::Other,
        Ok(false) => Reason::Gone,
    }
}

// === impl Failure ===

impl Failure {
    fn invalid(error: &dyn std::error::Error) -> Self {
        Self { result: "invalid", why: sentence(error) }
    }
}

impl From<catalog_source::Error> for Failure {
    fn from(error: catalog_source::Error) -> Self {
        use catalog_source::Error as E;
        let result = match &error {
            E::Address { .. } => "address",
            E::Trust(_) => "trust",
            E::Call { .. } => "call",
            E::Silent { .. } => "silent",
            E::TooLarge { .. } => "too_large",
            E::Json { .. } | E::Documents(_) | E::Contradiction { .. } => "invalid",
            E::Changed { .. } => "changed",
            E::Interrupted => "broken",
        };
        Self { result, why: format!("{}; {}", sentence(&error), error.advice()) }
    }
}
