//! Where the snapshot hangs.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::sync::watch;
use uuid::Uuid;

use super::{Fleet, Upgrade};

/// Holds the newest snapshot and wakes those who follow it. Clones share it.
#[derive(Debug, Clone)]
pub struct Board {
    fleet: watch::Sender<Arc<Fleet>>,
    boot: Arc<str>,
}

// === impl Board ===

impl Default for Board {
    fn default() -> Self {
        Self::new()
    }
}

impl Board {
    /// An empty board.
    pub fn new() -> Self {
        let boot = Uuid::new_v4().simple().to_string();
        Self { fleet: watch::Sender::new(Arc::default()), boot: boot.into() }
    }

    /// Shows `fleet`. One that equals what is shown already wakes nobody.
    pub fn publish(&self, mut fleet: Fleet) {
        self.fleet.send_if_modified(|shown| {
            keep_unchanged(shown, &mut fleet);
            fleet.sequence = shown.sequence;
            if **shown == fleet {
                return false;
            }
            fleet.sequence += 1;
            *shown = Arc::new(fleet);
            true
        });
    }

    /// What is shown now.
    pub fn current(&self) -> Arc<Fleet> {
        Arc::clone(&self.fleet.borrow())
    }

    /// Follows what is shown.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Fleet>> {
        self.fleet.subscribe()
    }

    /// Unique to this board: sequences of two boards cannot be compared.
    pub fn boot(&self) -> &str {
        &self.boot
    }
}

/// Gives `new` the pointers of `old` where what they point to is equal.
fn keep_unchanged(old: &Fleet, new: &mut Fleet) {
    keep_equal(&old.agents, &mut new.agents);
    for (key, upgrade) in &mut new.upgrades {
        let Some(before) = old.upgrades.get(key) else { continue };
        if Arc::ptr_eq(before, upgrade) {
            continue;
        }
        keep_clusters(before, Arc::make_mut(upgrade));
        if before == upgrade {
            *upgrade = Arc::clone(before);
        }
    }
}

fn keep_clusters(old: &Upgrade, new: &mut Upgrade) {
    let by_name: HashMap<&str, _> =
        old.clusters.iter().map(|cluster| (cluster.row.name.as_str(), cluster)).collect();
    for cluster in &mut new.clusters {
        if let Some(before) = by_name.get(cluster.row.name.as_str())
            && *before == cluster
        {
            *cluster = Arc::clone(before);
        }
    }
}

fn keep_equal<T: PartialEq>(old: &BTreeMap<String, Arc<T>>, new: &mut BTreeMap<String, Arc<T>>) {
    for (key, value) in new {
        if let Some(before) = old.get(key)
            && before == value
        {
            *value = Arc::clone(before);
        }
    }
}
