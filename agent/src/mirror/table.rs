//! One kind of object, watched.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::Arc,
    time::{Duration, Instant},
};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures::StreamExt as _;
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;
use tracing::debug;

use super::Changed;
use crate::objects::{self, Trim};

/// Whether a kind could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Health {
    /// The first list is under way.
    #[default]
    Loading,
    /// It is watched.
    Ready,
    /// What is held may be old: the API server is asked again and again.
    Behind(Behind),
    /// The API server refuses it, with its words.
    Broken(String),
}

/// Since when a kind could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// In real time.
    pub since: Instant,
    /// In words.
    pub why: String,
}

/// From one try to the next, in real time, once it has failed.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// A break that is over before then is nobody's business.
const BRIEF: Duration = Duration::from_secs(5);

/// The objects of one kind. The watch ends when this is dropped.
#[derive(Debug)]
pub struct Watched<K> {
    table: Arc<RwLock<Table<K>>>,
    changed: Changed,
    task: AbortHandle,
}

#[derive(Debug)]
struct Table<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// The list that is being read.
    next: BTreeMap<Key, Arc<K>>,
    health: Health,
    /// Whether there was ever a whole list.
    was_read: bool,
}

type Key = (String, String);

// === impl Watched ===

impl<K> Watched<K>
where
    K: Resource<DynamicType = ()> + Trim + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Begins to watch.
    pub(super) fn start(api: Api<K>, config: watcher::Config, changed: Changed) -> Self {
        let table = Arc::new(RwLock::new(Table::default()));
        let task = tokio::spawn(follow(api, config, Arc::clone(&table), changed.clone()));
        Self { table, changed, task: task.abort_handle() }
    }

    /// All objects, by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.table.read().objects.values().cloned().collect()
    }

    /// The objects of one namespace, by name.
    pub fn of(&self, namespace: &str) -> Vec<Arc<K>> {
        let table = self.table.read();
        let from = (namespace.to_owned(), String::new());
        let within = table.objects.range(from..).take_while(|((at, _), _)| at == namespace);
        within.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.table.read().objects.get(&key).cloned()
    }

    /// Takes in what a write of our own gave back, before the watch tells of it. An object that is
    /// not there any more was deleted in between and stays away.
    pub fn assume(&self, object: K) {
        let mut table = self.table.write();
        let is_there = table
            .objects
            .get(&key(&object))
            .is_some_and(|kept| objects::uid(&**kept) == objects::uid(&object));
        if is_there && table.apply(object) {
            drop(table);
            self.changed.raise();
        }
    }

    /// True once the first list is there, or was refused.
    pub fn is_settled(&self) -> bool {
        self.table.read().health != Health::Loading
    }

    /// Why it may not be read.
    pub fn broken(&self) -> Option<String> {
        match &self.table.read().health {
            Health::Broken(error) => Some(error.clone()),
            Health::Loading | Health::Ready | Health::Behind(_) => None,
        }
    }

    /// Why it has never been read.
    pub fn unread(&self) -> Option<String> {
        let table = self.table.read();
        match &table.health {
            Health::Broken(error) => Some(error.clone()),
            Health::Behind(behind) if !table.was_read => Some(behind.why.clone()),
            Health::Loading | Health::Ready | Health::Behind(_) => None,
        }
    }

    /// Why what is held may be old.
    pub fn behind(&self) -> Option<Behind> {
        match &self.table.read().health {
            Health::Behind(behind) => Some(behind.clone()),
            Health::Loading | Health::Ready | Health::Broken(_) => None,
        }
    }
}

impl<K> Drop for Watched<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    table: Arc<RwLock<Table<K>>>,
    changed: Changed,
) where
    K: Resource<DynamicType = ()> + Trim + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let mut pauses = pauses();
    loop {
        // After a failure it is read whole: only then is it known to be current.
        let mut events = std::pin::pin!(watcher(api.clone(), config.clone()));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if matches!(event, Event::InitDone) {
                        pauses = self::pauses();
                    }
                    if table.write().take(event) {
                        changed.raise();
                    }
                }
                Err(error) => {
                    debug!(kind = %K::kind(&()), %error, "watch");
                    if table.write().fail(&error) {
                        changed.raise();
                    }
                    break;
                }
            }
        }
        tokio::time::sleep(pauses.next().unwrap_or(PAUSE_MAX)).await;
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_jitter()
        .without_max_times()
        .build()
}

/// Whether the API server says that there will be no answer, rather than none now.
fn is_refusal(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) =
        error
    else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if matches!(status.code, 403 | 404))
}

// === impl Behind ===

impl Behind {
    /// Whether it has lasted long enough to be told.
    pub fn is_long(&self) -> bool {
        self.since.elapsed() >= BRIEF
    }
}

// === impl Table ===

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            next: BTreeMap::new(),
            health: Health::Loading,
            was_read: false,
        }
    }
}

impl<K: Resource<DynamicType = ()> + Trim> Table<K> {
    /// True when something that can be seen from outside changed.
    fn take(&mut self, event: Event<K>) -> bool {
        match event {
            Event::Init => {
                self.next.clear();
                false
            }
            Event::InitApply(mut object) => {
                object.trim();
                self.next.insert(key(&object), Arc::new(object));
                false
            }
            Event::InitDone => {
                self.objects = std::mem::take(&mut self.next);
                self.health = Health::Ready;
                self.was_read = true;
                true
            }
            Event::Apply(object) => self.apply(object),
            Event::Delete(object) => self.objects.remove(&key(&object)).is_some(),
        }
    }

    fn apply(&mut self, mut object: K) -> bool {
        object.trim();
        let key = key(&object);
        if self.objects.get(&key).is_some_and(|kept| is_newer(&**kept, &object)) {
            return false;
        }
        self.objects.insert(key, Arc::new(object));
        true
    }

    /// What was read stays, and counts as old until it has been read again. Each failure is news:
    /// whoever waits may have waited long enough to say so.
    fn fail(&mut self, error: &watcher::Error) -> bool {
        let why = error.to_string();
        if is_refusal(error) && !self.was_read {
            let broken = Health::Broken(why);
            let is_news = self.health != broken;
            self.health = broken;
            return is_news;
        }
        let since = match &self.health {
            Health::Behind(behind) => behind.since,
            Health::Loading | Health::Ready | Health::Broken(_) => Instant::now(),
        };
        self.health = Health::Behind(Behind { since, why });
        true
    }
}

fn key<K: Resource>(object: &K) -> Key {
    (objects::namespace(object).to_owned(), objects::name(object).to_owned())
}

/// True when `kept` is a later version of the same object than `told`: what a write of ours gave
/// back can be ahead of the watch.
fn is_newer<K: Resource>(kept: &K, told: &K) -> bool {
    let number = |object: &K| objects::version(object).parse::<u64>().ok();
    objects::uid(kept) == objects::uid(told)
        && number(kept).zip(number(told)).is_some_and(|(kept, told)| kept > told)
}
