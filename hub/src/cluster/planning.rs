//! Plans, computed beside the driver and kept as long as what they were made from stays the same.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};
use wavelift_catalog::{
    Catalog, OlmV0,
    planner::{self, Pins, Planned},
};
use wavelift_core::{
    inventory::{CatalogSource, Inventory},
    target::Target,
};

use super::{Catalogs, Held};

/// Plans kept; past this the cache begins anew.
const PLANS_MAX: usize = 50_000;

/// What a plan is made from.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    key: String,
    inventory: Arc<Inventory>,
    catalogs: BTreeMap<String, Arc<Catalog>>,
    aims: Aims,
}

/// Where plans lead, and by which means.
#[derive(Debug, Clone)]
pub(crate) struct Aims {
    targets: Arc<[Target]>,
    pins: Pins,
    digest: String,
}

/// The plans that were made.
#[derive(Debug, Default)]
pub(crate) struct Planning {
    answers: BTreeMap<String, Arc<Planned>>,
    open: BTreeSet<String>,
    queue: VecDeque<Question>,
}

impl Planning {
    /// The plan for a cluster; `None` while it is being made.
    pub(crate) fn plan(
        &mut self,
        held: &Held,
        catalogs: &Catalogs,
        aims: &Aims,
    ) -> Option<Arc<Planned>> {
        let question = Question::new(held, catalogs, aims);
        if let Some(planned) = self.answers.get(&question.key) {
            return Some(Arc::clone(planned));
        }
        if self.open.insert(question.key.clone()) {
            self.queue.push_back(question);
        }
        None
    }

    /// The next plan to be made.
    pub(crate) fn next(&mut self) -> Option<Question> {
        self.queue.pop_front()
    }

    /// A plan has been made.
    pub(crate) fn answered(&mut self, question: Question, planned: Planned) {
        if self.answers.len() >= PLANS_MAX {
            self.answers.clear();
        }
        self.open.remove(&question.key);
        self.answers.insert(question.key, Arc::new(planned));
    }

    /// The plan could not be made; it will be asked for again.
    pub(crate) fn failed(&mut self) {
        self.open.clear();
        self.queue.clear();
    }
}

impl Question {
    fn new(held: &Held, catalogs: &Catalogs, aims: &Aims) -> Self {
        let digests = held.inventory.catalogs.iter().filter_map(|source| source.digest.as_ref());
        let known: BTreeMap<String, Arc<Catalog>> = digests
            .filter_map(|digest| Some((digest.clone(), Arc::clone(catalogs.get(digest)?))))
            .collect();
        let mut key = format!("{} {}", held.digest, aims.digest);
        for digest in known.keys() {
            key.push(' ');
            key.push_str(digest);
        }
        let (inventory, aims) = (Arc::clone(&held.inventory), aims.clone());
        Self { key, inventory, catalogs: known, aims }
    }

    /// Makes the plan; takes its time.
    pub(crate) fn answer(&self) -> Planned {
        let lookup = |source: &CatalogSource| {
            source.digest.as_ref().and_then(|digest| self.catalogs.get(digest)).map(Arc::clone)
        };
        let Aims { targets, pins, .. } = &self.aims;
        planner::plan_with(&OlmV0, &self.inventory, &lookup, targets, *pins)
    }
}

impl Aims {
    /// These targets, by pinned catalogs where that is allowed.
    pub(crate) fn new(targets: Vec<Target>, pins: Pins) -> Self {
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(&targets).unwrap_or_default());
        match pins {
            Pins::Never => {}
            Pins::Allowed => hash.update("pins"),
        }
        Self { targets: targets.into(), pins, digest: hex::encode(hash.finalize()) }
    }

    /// What is to be upgraded, to where.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }
}
