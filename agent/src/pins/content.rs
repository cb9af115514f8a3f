//! What is served, and by whom it is fetched.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use backon::{ConstantBuilder, Retryable as _};
use parking_lot::Mutex;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};
use wavelift_catalog::{Limits, engine::CatalogKey, pin::Kept};
use wavelift_core::causes::sentence;
use wavelift_sources::{
    CatalogSource, Patience, Retries,
    catalog_source::{Pinned, Transport},
};

use super::Serving;
use crate::mirror::Changed;

/// How long all registries together may take.
const FETCH_MAX: Duration = Duration::from_mins(2);
/// From one try to the next after a failure, at least, in real time.
const PAUSE: Duration = Duration::from_secs(5);

/// From one try to listen to the next, and how often it is tried again.
const LISTEN_AGAIN: Duration = Duration::from_millis(100);
const LISTENS_MAX: usize = 19;

/// A catalog of the cluster and where its registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// The catalog.
    pub key: CatalogKey,
    /// Host and port.
    pub address: String,
}

/// The one pinned catalog that is served, if any.
#[derive(Debug)]
pub struct Pins {
    serving: Option<Serving>,
    state: Option<State>,
}

/// How far the catalog that is wanted is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// It is being read, or looked at.
    Reading,
    /// It is served.
    Served,
    /// It could not be; asking again tries again.
    Failed(String),
}

/// The catalog that is wanted.
#[derive(Debug)]
struct State {
    kept: Vec<Kept>,
    digest: String,
    content: Arc<Mutex<Content>>,
    since: Instant,
    /// The reading, and then the serving, end with it.
    _end: DropGuard,
}

// === impl Pins ===

impl Pins {
    /// Serves nothing yet, and never anything without an address.
    pub fn new(serving: Option<Serving>) -> Self {
        Self { serving, state: None }
    }

    /// The address that OLM is told; none where nothing can be pinned.
    pub fn address(&self) -> Option<&str> {
        self.serving.as_ref().map(|serving| serving.address.as_str())
    }

    /// Serves what is kept of these registries from now on, if it is the catalog of this digest.
    /// Never waits: `changed` is raised when there is news.
    pub fn serve(
        &mut self,
        kept: &[Kept],
        digest: &str,
        registries: &[Registry],
        changed: &Changed,
    ) -> Content {
        let Some(serving) = &self.serving else {
            return Content::Failed("the agent has no address to serve it at".to_owned());
        };
        let known = self.state.as_ref().filter(|s| s.kept == kept && s.digest == digest);
        if let Some(state) = known {
            let content = state.content.lock().clone();
            if matches!(content, Content::Failed(_)) && state.since.elapsed() >= PAUSE {
                self.state = None;
            }
            return content;
        }
        // What was served before ends first: there is one port.
        self.state = None;
        let end = CancellationToken::new();
        let content = Arc::new(Mutex::new(Content::Reading));
        let task = Task {
            kept: kept.to_vec(),
            digest: digest.to_owned(),
            registries: registries.to_vec(),
            serving: serving.clone(),
            content: Arc::clone(&content),
            changed: changed.clone(),
        };
        let ended = end.clone();
        drop(tokio::spawn(async move {
            ended.clone().run_until_cancelled(task.run(ended)).await;
        }));
        let state = State {
            kept: kept.to_vec(),
            digest: digest.to_owned(),
            content,
            since: Instant::now(),
            _end: end.drop_guard(),
        };
        self.state = Some(state);
        Content::Reading
    }

    /// Serves nothing any more.
    pub fn stop(&mut self) {
        self.state = None;
    }
}

struct Task {
    kept: Vec<Kept>,
    digest: String,
    registries: Vec<Registry>,
    serving: Serving,
    content: Arc<Mutex<Content>>,
    changed: Changed,
}

// === impl Task ===

impl Task {
    async fn run(self, end: CancellationToken) {
        let read = timeout(FETCH_MAX, self.read()).await;
        let read = read.unwrap_or_else(|_| {
            Err(format!("the registries took more than {} s", FETCH_MAX.as_secs()))
        });
        let ready = match read {
            Ok(pinned) => self.listen().await.map(|listener| (pinned, listener)),
            Err(why) => Err(why),
        };
        match ready {
            Err(why) => self.tell(Content::Failed(why)),
            Ok((pinned, listener)) => {
                let Serving { listen, address } = &self.serving;
                info!(%listen, address, "a pinned catalog is served");
                self.tell(Content::Served);
                let ended = pinned.serve(listener, end).await;
                let why = ended.map_or_else(|error| sentence(&error), |()| "it ended".to_owned());
                self.tell(Content::Failed(why));
            }
        }
    }

    async fn read(&self) -> Result<Pinned, String> {
        let mut pinned = Pinned::default();
        for registry in &self.registries {
            let of = |kept: &&Kept| kept.catalog == registry.key;
            let kept: Vec<Kept> = self.kept.iter().filter(of).cloned().collect();
            let source = CatalogSource::new(
                &registry.address,
                &Transport::Plaintext,
                Limits::default(),
                Patience::default(),
                Retries::default(),
            );
            let kept = async { source?.keep(&kept).await }.await;
            pinned.add(kept.map_err(|error| format!("{}; {}", sentence(&error), error.advice()))?);
        }
        let catalog = pinned.catalog(&Limits::default()).map_err(|error| sentence(&error))?;
        if catalog.digest().as_str() == self.digest {
            Ok(pinned)
        } else {
            Err("the registries serve something else than what was planned with".to_owned())
        }
    }

    /// The listener of a catalog that was served before may take a moment to end.
    async fn listen(&self) -> Result<TcpListener, String> {
        let at = self.serving.listen;
        let pauses =
            ConstantBuilder::default().with_delay(LISTEN_AGAIN).with_max_times(LISTENS_MAX);
        let listener = (|| TcpListener::bind(at)).retry(pauses).await;
        listener.map_err(|error| format!("cannot listen on {at}: {error}"))
    }

    fn tell(&self, content: Content) {
        if let Content::Failed(why) = &content {
            warn!(why, "a pinned catalog is not served");
        }
        *self.content.lock() = content;
        self.changed.raise();
    }
}
