//! One kind of object, watched.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use futures::StreamExt as _;
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
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
    /// The API server refuses it, with its words.
    Broken(String),
}

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

    /// Why it could not be read.
    pub fn broken(&self) -> Option<String> {
        match &self.table.read().health {
            Health::Broken(error) => Some(error.clone()),
            Health::Loading | Health::Ready => None,
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
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    while let Some(event) = events.next().await {
        let is_news = match event {
            Ok(event) => table.write().take(event),
            Err(error) => {
                debug!(kind = %K::kind(&()), %error, "watch");
                table.write().fail(&error)
            }
        };
        if is_news {
            changed.raise();
        }
    }
}

// === impl Table ===

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), next: BTreeMap::new(), health: Health::Loading }
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

    /// A list that is refused makes the kind unreadable; a watch that breaks is begun again.
    fn fail(&mut self, error: &watcher::Error) -> bool {
        let watcher::Error::InitialListFailed(error) = error else { return false };
        let broken = Health::Broken(error.to_string());
        let is_news = self.health != broken;
        self.health = broken;
        is_news
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
