//! Writes of objects, carried out beside the driver.
//!
//! Each is guarded twice: by the claim, asked right before the request leaves, and by the resource
//! version that the decision was made on. Whatever goes wrong, the object is read again before
//! anything else is done to it: of a write without an answer nobody knows whether it went through.

use std::{sync::Arc, time::Duration};

use kube::{Api, Client, Resource, ResourceExt as _, core::NamespaceResourceScope};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::{debug, warn};
use wavelift_api::{ClusterUpgrade, FleetUpgrade, labels};
use wavelift_catalog::{Catalog, contents, graph, planner::Planned};
use wavelift_core::{
    ids::{ClusterName, Uid},
    inventory::Inventory,
};
use wavelift_runtime::{
    lease::Claim,
    ssa::{self, FieldManager},
    telemetry::chain,
};

use super::{
    Commands, Driver,
    intake::{InventoryError, read_part, slim},
    memory::Attempt,
};
use crate::{
    cluster::Question,
    link::UpgradeKey,
    metrics::Metrics,
    preview::{Fetched, ImageFailure, Made, Piece, PieceKey},
};

const MANAGER: FieldManager = FieldManager(labels::MANAGER_HUB);

/// A task of the driver that has ended.
#[derive(Debug)]
pub(super) enum Done {
    Part {
        key: UpgradeKey,
        outcome: Outcome<ClusterUpgrade>,
    },
    Fleet {
        key: UpgradeKey,
        uid: Uid,
        outcome: Outcome<FleetUpgrade>,
    },
    Inventory {
        cluster: ClusterName,
        digest: String,
        read: Result<Inventory, InventoryError>,
    },
    Catalog {
        cluster: ClusterName,
        digest: String,
        bytes: usize,
        read: Result<Box<Catalog>, graph::Error>,
    },
    Piece {
        cluster: ClusterName,
        key: PieceKey,
        bytes: usize,
        read: Result<Box<Piece>, contents::Error>,
    },
    Preview {
        made: Box<Made>,
    },
    Image {
        image: String,
        result: Result<Fetched, ImageFailure>,
    },
    Plan {
        question: Box<Question>,
        planned: Planned,
    },
}

/// What became of a write, and what is there now.
#[derive(Debug)]
pub(super) struct Outcome<K> {
    end: End,
    now: Now<K>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It went through.
    Written,
    /// The object was another than thought.
    Changed,
    /// It failed, or nobody knows.
    Failed,
}

/// What is there now.
#[derive(Debug)]
enum Now<K> {
    Object(Box<K>),
    Gone,
    Unread,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Replace,
    ReplaceStatus,
}

/// What every write needs.
#[derive(Clone)]
pub(super) struct Writer {
    client: Client,
    claim: Claim,
    metrics: Metrics,
    room: Arc<Semaphore>,
    call_timeout: Duration,
}

impl Writer {
    /// Writes, and reads again when that did not work.
    async fn write<K>(self, verb: Verb, object: K) -> Outcome<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        let name = object.name_any();
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        let Ok(_room) = self.room.acquire().await else { return Outcome::UNREAD };
        if let Err(expired) = self.claim.check() {
            debug!(%expired, name, "not written");
            return Outcome::UNREAD;
        }
        match self.call(&api, verb, &object).await {
            Ok(written) => {
                self.metrics.writes.with([&*K::kind(&())]).inc();
                Outcome { end: End::Written, now: Now::Object(Box::new(written)) }
            }
            Err(error) => {
                let is_other = self.is_other(&K::kind(&()), &name, error.as_ref());
                self.read_again(&api, verb, &name, is_other).await
            }
        }
    }

    /// The write itself; an error that is `None` means that there was no answer in time.
    async fn call<K>(&self, api: &Api<K>, verb: Verb, object: &K) -> Result<K, Option<ssa::Error>>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        let call = async {
            match verb {
                Verb::Create => MANAGER.create(api, object).await,
                Verb::Replace => MANAGER.replace(api, object).await,
                Verb::ReplaceStatus => MANAGER.replace_status(api, object).await,
            }
        };
        timeout(self.call_timeout, call).await.map_err(|_elapsed| None)?.map_err(Some)
    }

    /// Notes an error; true when it says that the object was another than thought.
    fn is_other(&self, kind: &str, name: &str, error: Option<&ssa::Error>) -> bool {
        let reason = error.map_or("timed_out", ssa::Error::kind);
        self.metrics.write_errors.with([kind, reason]).inc();
        let is_other = matches!(
            error,
            Some(ssa::Error::Stale(_) | ssa::Error::Exists(_) | ssa::Error::NotFound(_))
        );
        let why = error.map_or_else(String::new, |error| chain(error).to_string());
        if is_other {
            debug!(kind, name, why, "not written: another object than thought");
        } else {
            warn!(kind, name, reason, why, "not written");
        }
        is_other
    }

    async fn read_again<K>(
        &self,
        api: &Api<K>,
        verb: Verb,
        name: &str,
        is_other: bool,
    ) -> Outcome<K>
    where
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        let now = match timeout(self.call_timeout, api.get_opt(name)).await {
            Ok(Ok(Some(found))) => Now::Object(Box::new(found)),
            Ok(Ok(None)) => Now::Gone,
            Ok(Err(_)) | Err(_) => Now::Unread,
        };
        // A create that finds no namespace is answered "not found" too, and nothing has changed.
        let is_changed = is_other
            && match &now {
                Now::Object(_) => true,
                Now::Gone => verb != Verb::Create,
                Now::Unread => false,
            };
        Outcome { end: if is_changed { End::Changed } else { End::Failed }, now }
    }
}

impl<K> Outcome<K> {
    /// Nothing is known.
    const UNREAD: Self = Self { end: End::Failed, now: Now::Unread };
}

impl Attempt {
    fn ended(&mut self, end: End) {
        match end {
            End::Written => self.succeeded(),
            End::Changed => self.refreshed(),
            End::Failed => self.failed(Instant::now()),
        }
    }
}

impl<C: Commands> Driver<C> {
    fn writer(&self) -> Writer {
        Writer {
            client: self.context.client.clone(),
            claim: self.context.claim.clone(),
            metrics: self.context.metrics.clone(),
            room: Arc::clone(&self.writing),
            call_timeout: self.context.settings.call_timeout,
        }
    }

    /// Begins to write a ClusterUpgrade, one write of it at a time; false when one is under way
    /// or has to wait.
    pub(super) fn write_part(
        &mut self,
        key: &UpgradeKey,
        verb: Verb,
        object: ClusterUpgrade,
    ) -> bool {
        let track = self.memory.tracks.entry(key.clone()).or_default();
        if !track.write.is_free(Instant::now()) {
            return false;
        }
        track.write.begun();
        let (writer, key) = (self.writer(), key.clone());
        self.tasks
            .spawn(async move { Done::Part { outcome: writer.write(verb, object).await, key } });
        true
    }

    /// Begins to write a FleetUpgrade's status.
    pub(super) fn write_fleet(&mut self, key: &UpgradeKey, uid: &Uid, object: FleetUpgrade) {
        if let Some(memory) = self.memory.campaigns.get_mut(uid) {
            memory.write.begun();
        }
        // Few, and others wait for them: they do not queue behind the clusters'.
        let writer = Writer { room: Arc::new(Semaphore::new(1)), ..self.writer() };
        let (key, uid) = (key.clone(), uid.clone());
        self.tasks.spawn(async move {
            let outcome = writer.write(Verb::ReplaceStatus, object).await;
            Done::Fleet { key, uid, outcome }
        });
    }

    /// Makes plans that were asked for, some at a time.
    pub(super) fn make_plans(&mut self) {
        while self.plans_open < self.context.settings.plans_max.max(1) {
            let Some(question) = self.planning.next() else { return };
            self.plans_open += 1;
            self.tasks.spawn_blocking(move || {
                let planned = question.answer();
                Done::Plan { question: Box::new(question), planned }
            });
        }
    }

    /// Takes the end of a task.
    pub(super) fn done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        self.is_dirty = true;
        match done {
            Ok(Done::Part { key, outcome }) => self.part_done(&key, outcome),
            Ok(Done::Fleet { key, uid, outcome }) => self.fleet_done(&key, &uid, outcome),
            Ok(Done::Inventory { cluster, digest, read }) => {
                self.inventoried(&cluster, digest, read);
            }
            Ok(Done::Catalog { cluster, digest, bytes, read }) => {
                self.cataloged(&cluster, digest, bytes, read);
            }
            Ok(Done::Plan { question, planned }) => {
                self.plans_open = self.plans_open.saturating_sub(1);
                self.planning.answered(*question, planned);
                self.make_plans();
            }
            Ok(Done::Piece { cluster, key, bytes, read }) => {
                self.pieced(&cluster, &key, bytes, read);
            }
            Ok(Done::Preview { made }) => {
                self.previews_open = self.previews_open.saturating_sub(1);
                self.previews.answered(*made);
                self.make_previews();
            }
            Ok(Done::Image { image, result }) => self.imaged(&image, result),
            // Only a panic ends a task like this; what it was about is asked for again.
            Err(error) => {
                warn!(%error, "a task of the driver broke");
                self.plans_open = 0;
                self.planning.failed();
                self.previews_open = 0;
                self.previews.failed();
                self.images.broke();
                for track in self.memory.tracks.values_mut() {
                    track.write.refreshed();
                }
                for memory in self.memory.campaigns.values_mut() {
                    memory.write.refreshed();
                }
            }
        }
    }

    fn part_done(&mut self, key: &UpgradeKey, outcome: Outcome<ClusterUpgrade>) {
        let Outcome { mut end, now } = outcome;
        match now {
            Now::Object(object) => match read_part(*object) {
                Some(part) => {
                    if end == End::Written {
                        self.context.metrics.part_written(self.objects.parts.get(key), &part);
                    }
                    self.objects.parts.store(key.clone(), part);
                }
                // Somebody else's object stands where ours should be.
                None => end = End::Failed,
            },
            Now::Gone => {
                self.objects.parts.forget(key);
            }
            Now::Unread => {}
        }
        let track = self.memory.tracks.entry(key.clone()).or_default();
        track.write.ended(end);
        match end {
            End::Written => track.unwritten_since = None,
            End::Changed => {}
            End::Failed => {
                let clock = &self.context.clock;
                track.unwritten_since.get_or_insert_with(|| clock.now());
            }
        }
        self.acknowledge(key);
    }

    fn fleet_done(&mut self, key: &UpgradeKey, uid: &Uid, outcome: Outcome<FleetUpgrade>) {
        let Outcome { end, now } = outcome;
        match now {
            Now::Object(object) => {
                if let Some(fleet) = slim(*object) {
                    self.objects.fleets.store(key.clone(), fleet);
                }
            }
            Now::Gone => {
                self.objects.fleets.forget(key);
            }
            Now::Unread => {}
        }
        if let Some(memory) = self.memory.campaigns.get_mut(uid) {
            memory.write.ended(end);
        }
    }
}
