//! Server-Sent Events: what changed, as soon as it did, but never faster than a reader can use it.
//!
//! A stream remembers the snapshot that its reader has seen and sends the difference to the newest
//! one. So changes that follow each other quickly become one batch, a slow reader skips what it
//! has missed, and nothing is stored for readers that are not there.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::Arc,
};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Uri, header},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::{Stream, stream};
use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};
use wavelift_api::live::{ClustersChanged, Hello, UpgradeKey};
use wavelift_core::fence::Term;

use super::{
    Context,
    params::{Kind, Param, Params},
    problem::Error,
    upgrades::find,
};
use crate::{
    link::LeaderState,
    view::{Fleet, Upgrade},
};

/// Clusters in one event at most; the reader is told how many there are.
const CLUSTERS_MAX: usize = 100;

/// Query parameters.
pub(super) const PARAMS: &[Param] = &[
    Param { name: "namespace", about: "Only campaigns of this namespace.", kind: Kind::Text },
    Param { name: "name", about: "Only this campaign; needs `namespace`.", kind: Kind::Text },
    Param {
        name: "clusters",
        about: "Whether events of clusters are wanted as well.",
        kind: Kind::OneOf(&["Include", "Exclude"]),
    },
];

/// Which campaigns a stream is about.
#[derive(Debug, Clone)]
struct Scope {
    namespace: Option<String>,
    name: Option<String>,
    clusters: Clusters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clusters {
    Include,
    Exclude,
}

/// One open stream.
struct Follower {
    context: Context,
    scope: Scope,
    term: Term,
    fleet: watch::Receiver<Arc<Fleet>>,
    leader: watch::Receiver<LeaderState>,
    seen: Arc<Fleet>,
    queue: VecDeque<Event>,
    next_batch: Instant,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn get(
    State(context): State<Context>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Error> {
    let scope = Scope::read(&Params::read(&uri, PARAMS)?)?;
    if let (Some(namespace), Some(name)) = (&scope.namespace, &scope.name) {
        find(&context, namespace, name)?;
    }
    let Ok(place) = Arc::clone(&context.streams).try_acquire_owned() else {
        return Err(Error::Streams { max: context.settings.streams_max });
    };
    let term = context.leader.borrow().term.ok_or(Error::NotLeader)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let keep_alive = KeepAlive::new().interval(context.settings.keep_alive).text("alive");
    let follower = Follower::begin(context, scope, term, last, place);
    let mut response = Sse::new(follower.events()).keep_alive(keep_alive).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that would hold back a slow answer are asked not to.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

// === impl Scope ===

impl Scope {
    fn read(params: &Params) -> Result<Self, Error> {
        let text = |name| params.text(name).map(str::to_owned);
        let (namespace, name) = (text("namespace"), text("name"));
        if name.is_some() && namespace.is_none() {
            let why = "needs `namespace` beside it".to_owned();
            return Err(Error::Parameter { name: "name", why });
        }
        let choices = [("Include", Clusters::Include), ("Exclude", Clusters::Exclude)];
        Ok(Self { namespace, name, clusters: params.choice("clusters", &choices)? })
    }

    fn covers(&self, key: &UpgradeKey) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
    }
}

// === impl Follower ===

impl Follower {
    /// The reader gets a greeting and, unless it has seen what there is, all campaigns in scope.
    fn begin(
        context: Context,
        scope: Scope,
        term: Term,
        last: Option<&str>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let mut fleet = context.board.subscribe();
        let seen = Arc::clone(&fleet.borrow_and_update());
        let resumed = last == Some(id(&context, &seen).as_str());
        let hello = Hello {
            time: context.clock.now(),
            time_factor: context.clock.factor(),
            term: term.0,
            resumed,
        };
        let mut queue = VecDeque::from([event("hello", &hello)]);
        if !resumed {
            let upgrades = seen.upgrades.iter().filter(|(key, _)| scope.covers(key));
            queue.extend(upgrades.map(|(_, upgrade)| event("upgrade", &upgrade.view.row)));
        }
        let leader = context.leader.clone();
        let next_batch = Instant::now() + context.settings.batch_interval;
        let mut follower =
            Self { context, scope, term, fleet, leader, seen, queue, next_batch, _place: place };
        follower.mark();
        follower
    }

    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok(event), follower))
        })
    }

    /// The next event; `None` when this hub leads no more, or not in the same term.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            tokio::select! {
                changed = self.fleet.changed() => changed.ok()?,
                () = deposed(&mut self.leader, self.term) => return None,
            }
            tokio::time::sleep_until(self.next_batch).await;
            self.next_batch = Instant::now() + self.context.settings.batch_interval;
            let newest = Arc::clone(&self.fleet.borrow_and_update());
            self.queue.extend(difference(&self.seen, &newest, &self.scope));
            self.seen = newest;
            self.mark();
        }
    }

    /// Gives the last event of a batch the id of the snapshot: a reader that was cut off within a
    /// batch gets all of it again.
    fn mark(&mut self) {
        if let Some(last) = self.queue.pop_back() {
            self.queue.push_back(last.id(id(&self.context, &self.seen)));
        }
    }
}

async fn deposed(leader: &mut watch::Receiver<LeaderState>, term: Term) {
    while leader.borrow_and_update().term == Some(term) {
        if leader.changed().await.is_err() {
            return;
        }
    }
}

fn id(context: &Context, fleet: &Fleet) -> String {
    format!("{}-{}", context.board.boot(), fleet.sequence)
}

fn event(kind: &str, data: &impl Serialize) -> Event {
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    Event::default().event(kind).data(json)
}

/// What a reader of `old` has to be told to know `new`.
fn difference(old: &Fleet, new: &Fleet, scope: &Scope) -> Vec<Event> {
    let mut events = vec![];
    let gone = old.upgrades.keys().filter(|key| !new.upgrades.contains_key(key));
    events.extend(gone.filter(|key| scope.covers(key)).map(|key| event("removed", key)));
    for (key, upgrade) in new.upgrades.iter().filter(|(key, _)| scope.covers(key)) {
        let before = old.upgrades.get(key);
        if before.is_some_and(|before| Arc::ptr_eq(before, upgrade)) {
            continue;
        }
        if before.is_none_or(|before| before.view != upgrade.view) {
            events.push(event("upgrade", &upgrade.view.row));
        }
        if scope.clusters == Clusters::Include {
            events.extend(clusters(before.map(Arc::as_ref), upgrade, key));
        }
    }
    events
}

/// The event of one campaign's clusters, if any changed. The board keeps the pointers of those
/// that did not.
fn clusters(before: Option<&Upgrade>, upgrade: &Upgrade, key: &UpgradeKey) -> Option<Event> {
    let old = before.map_or(&[][..], |before| &before.clusters);
    let known: HashMap<&str, _> =
        old.iter().map(|cluster| (cluster.row.name.as_str(), cluster)).collect();
    let mut left = known.clone();
    let (mut changed, mut items) = (0, vec![]);
    for cluster in &upgrade.clusters {
        let name = cluster.row.name.as_str();
        left.remove(name);
        if known.get(name).is_some_and(|before| Arc::ptr_eq(before, cluster)) {
            continue;
        }
        changed += 1;
        if items.len() < CLUSTERS_MAX {
            items.push(cluster.row.clone());
        }
    }
    if changed == 0 && left.is_empty() {
        return None;
    }
    let mut removed: Vec<String> = left.into_keys().map(str::to_owned).collect();
    removed.sort();
    changed += u32::try_from(removed.len()).unwrap_or(u32::MAX);
    removed.truncate(CLUSTERS_MAX);
    let UpgradeKey { namespace, name } = key.clone();
    Some(event("clusters", &ClustersChanged { namespace, name, changed, removed, items }))
}
