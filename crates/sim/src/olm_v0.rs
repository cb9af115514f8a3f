//! A simulated OLM v0, which moves as the real one was recorded to move.
//!
//! [`OlmV0`] is a synchronous, deterministic state machine over the objects of one simulated
//! cluster. [`OlmV0::tick`] does what is due and says when to be called again. Each thing it does
//! is a task with a time; changes of objects, its own ones too, put tasks in. The delays come
//! from [`Timing`], the dice from a seed. When it is called late it catches up in order, each
//! task at its own time.
//!
//! It is split as the real one is. The catalog operator: catalog sources (`catalog_source`),
//! resolution of a namespace (`resolution`), subscriptions (`subscription`), install plans
//! (`install_plan`), and what it asks of new CRDs (`definitions`). The OLM operator: CSVs (`csv`,
//! with every decision in `phase`), operator groups and operator conditions (`operator_group`,
//! `operator_condition`).
//!
//! What a client must be able to cope with is here on purpose: a subscription's status runs ahead
//! of or behind the CSV; about half of all good upgrades fall back for a moment right after the
//! old CSV is gone; a plan is `Complete` while its CSV never comes up; while two CSVs of one
//! package exist, resolution of the namespace fails; an unapproved plan stays although the catalog
//! has moved on; a plan that nothing refers to still runs when approved.
//!
//! What is not simulated: bundle unpacking, roles and their checks, copied CSVs, webhooks but for
//! what they do to a CSV. A step that the API server would refuse for another reason than a CRD's is
//! refused when [`OlmV0::refuse`] says so.
//!
//! Recordings of a real OLM are replayed against it; the table is `replay::RECORDINGS`. One of
//! them is left out: 27a, in which a write by hand is lost in a race within the real operator.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use wavelift_catalog::Catalog;

use crate::{apiserver::Store, machine::Machine};

mod bundle;
mod catalog_source;
mod changes;
mod csv;
mod definitions;
mod deployments;
mod install_plan;
pub(crate) mod objects;
mod operator_condition;
mod operator_group;
mod phase;
pub(crate) mod queue;
mod resolution;
mod resolver;
#[cfg(test)]
mod scenarios;
mod settled;
mod subscription;
mod timing;
mod webhooks;

use self::{
    catalog_source::Served,
    install_plan::Run,
    objects::Objects,
    queue::{Queue, after},
    webhooks::Certificate,
};
pub use self::{
    install_plan::{Persistence, Refusal},
    timing::{Delay, Timing},
};

/// The namespace whose catalog sources every other namespace sees.
pub const GLOBAL_CATALOG_NAMESPACE: &str = "openshift-marketplace";

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// A catalog source's connection.
    CatalogSource(Key),
    /// The next install plan of a namespace.
    Resolve(String),
    /// A subscription's state, by the CSV it names.
    Subscription(Key),
    /// A subscription's conditions.
    Conditions(Key),
    InstallPlan(Key),
    Csv(Key),
    /// A namespace's operator groups.
    OperatorGroups(String),
    OperatorCondition(Key),
}

/// The OLM v0 of one simulated cluster.
#[derive(Debug)]
pub struct OlmV0 {
    objects: Objects,
    timing: Timing,
    rng: ChaCha8Rng,
    kube_version: String,
    global_namespace: String,
    queue: Queue<Task>,
    /// The time of what is being done.
    now: Timestamp,
    catalogs: BTreeMap<Key, Served>,
    /// Plans being made or carried out.
    runs: BTreeMap<Key, Run>,
    /// CSVs whose service accounts and roles are not there yet.
    unapplied: BTreeSet<Key>,
    /// CSVs that have fallen back for a moment, and until when.
    flapping: BTreeMap<Key, Timestamp>,
    /// Steps that the API server refuses, by CSV.
    refusals: BTreeMap<String, Refusal>,
    /// Namespaces whose resolution fails over an unfinished upgrade: the CSVs that are there, and
    /// when it is reported.
    failing: BTreeMap<String, (BTreeSet<String>, Timestamp)>,
    /// The certificates of CSVs with webhooks that are not their first.
    certificates: BTreeMap<Key, Certificate>,
}

/// What an [`OlmV0`] is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its delays.
    pub timing: Timing,
    /// The seed of its dice.
    pub seed: u64,
    /// The cluster's Kubernetes version, e.g. `1.31.4`.
    pub kube_version: String,
    /// The namespace of catalog sources that every namespace sees.
    pub global_namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timing: Timing::default(),
            seed: 0,
            kube_version: "1.31.4".to_owned(),
            global_namespace: GLOBAL_CATALOG_NAMESPACE.to_owned(),
        }
    }
}

impl OlmV0 {
    /// An OLM that has still to look at the objects in `store`.
    pub fn new(store: &Store, settings: Settings, now: Timestamp) -> Self {
        let Settings { timing, seed, kube_version, global_namespace } = settings;
        let mut olm = Self {
            objects: Objects::new(store),
            timing,
            rng: ChaCha8Rng::seed_from_u64(seed),
            kube_version,
            global_namespace,
            queue: Queue::default(),
            now,
            catalogs: BTreeMap::new(),
            runs: BTreeMap::new(),
            unapplied: BTreeSet::new(),
            flapping: BTreeMap::new(),
            refusals: BTreeMap::new(),
            failing: BTreeMap::new(),
            certificates: BTreeMap::new(),
        };
        olm.look_at_everything();
        olm
    }

    /// Serves `catalog` as the content of a catalog source, now and until served another.
    ///
    /// To OLM this is a registry that was restarted with new content.
    pub fn serve_catalog(&mut self, namespace: &str, name: &str, catalog: Arc<Catalog>) {
        self.put_catalog(Key::new(namespace, name), Some(catalog));
    }

    /// Takes a catalog source's registry down.
    pub fn stop_catalog(&mut self, namespace: &str, name: &str) {
        self.put_catalog(Key::new(namespace, name), None);
    }

    /// Refuses the steps of `csv` that come after the CSV itself, until [`OlmV0::accept`].
    pub fn refuse(&mut self, csv: &str, refusal: Refusal) {
        self.refusals.insert(csv.to_owned(), refusal);
    }

    /// Takes back a refusal.
    pub fn accept(&mut self, csv: &str) {
        self.refusals.remove(csv);
    }

    /// Does everything that is due at `now` and says when there is more to do.
    pub fn tick(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.now = self.now.max(now);
        self.take_changes();
        while let Some((at, task)) = self.queue.pop_due(now) {
            self.now = at;
            self.run(&task);
            self.take_changes();
        }
        self.now = self.now.max(now);
        self.queue.next()
    }

    fn run(&mut self, task: &Task) {
        match task {
            Task::CatalogSource(key) => self.sync_catalog_source(key),
            Task::Resolve(namespace) => self.resolve(namespace),
            Task::Subscription(key) => self.sync_subscription(key),
            Task::Conditions(key) => self.sync_conditions(key),
            Task::InstallPlan(key) => self.sync_install_plan(key),
            Task::Csv(key) => self.sync_csv(key),
            Task::OperatorGroups(namespace) => self.sync_operator_groups(namespace),
            Task::OperatorCondition(key) => self.sync_operator_condition(key),
        }
    }

    fn later(&mut self, delay: Delay, task: Task) {
        let delay = delay.draw(&mut self.rng);
        self.queue.push(after(self.now, delay), task);
    }
}

impl Machine for OlmV0 {
    fn tick(&mut self, now: Timestamp) -> Option<Timestamp> {
        Self::tick(self, now)
    }
}

// === impl Key ===

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}
