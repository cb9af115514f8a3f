//! What is known of each cluster: its ManagedCluster, its session, its inventory and, of all of
//! them together, the catalogs.
//!
//! This is an index in the leader's memory. Watches and the link feed it, campaigns read it, and a
//! new leader builds it anew.

mod admission;
mod catalogs;
mod planning;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use wavelift_api::managed_cluster::ManagedCluster;
use wavelift_core::{
    campaign::Link,
    ids::{ClusterName, Uid},
    inventory::Inventory,
};

pub(crate) use admission::Admissions;
pub(crate) use admission::Admitted;
pub(crate) use catalogs::{Catalogs, Kept as KeptCatalog, Room, read_catalog};
pub(crate) use planning::{Aims, Planning, Question};

use crate::link::{AgentHello, SessionId};

/// The clusters by name.
#[derive(Debug)]
pub(crate) struct Clusters {
    known: BTreeMap<ClusterName, Known>,
    /// Managed clusters seen since a list began.
    listing: Option<BTreeMap<ClusterName, Managed>>,
    is_complete: bool,
    admissions: Admissions,
    /// Since when this process looks.
    since: Timestamp,
}

/// One cluster.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Its ManagedCluster.
    pub(crate) managed: Option<Managed>,
    /// Its agent's session.
    pub(crate) session: Option<(SessionId, AgentHello)>,
    /// Since when it is connected, or silent.
    pub(crate) since: Timestamp,
    /// When its agent was last heard.
    pub(crate) heard: Option<Timestamp>,
    /// The inventory that its agent announced in this session.
    pub(crate) announced: Option<String>,
    /// The newest inventory that was read.
    pub(crate) inventory: Option<Held>,
    /// The inventory that was asked for and has not come.
    pub(crate) asked: Option<String>,
}

/// An inventory and its digest.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) digest: String,
    pub(crate) inventory: Arc<Inventory>,
}

/// What the hub's admin says about a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Managed {
    pub(crate) uid: Uid,
    pub(crate) is_accepted: bool,
    pub(crate) labels: BTreeMap<String, String>,
}

// === impl Clusters ===

impl Clusters {
    pub(crate) fn new(admissions: Admissions, since: Timestamp) -> Self {
        Self { known: BTreeMap::new(), listing: None, is_complete: false, admissions, since }
    }

    /// Whether the ManagedClusters have been listed once.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(crate) fn get(&self, cluster: &ClusterName) -> Option<&Known> {
        self.known.get(cluster)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ClusterName, &Known)> {
        self.known.iter()
    }

    /// Whether its agent is heard.
    pub(crate) fn link(&self, cluster: &ClusterName) -> Link {
        match self.known.get(cluster) {
            Some(known) if known.session.is_some() => Link::Connected,
            Some(known) => Link::Silent { since: known.since },
            None => Link::Silent { since: self.since },
        }
    }

    /// A list of ManagedClusters begins.
    pub(crate) fn restart(&mut self) {
        self.listing = Some(BTreeMap::new());
    }

    /// A ManagedCluster as it is now.
    pub(crate) fn apply(&mut self, object: &ManagedCluster) -> bool {
        let Some((name, managed)) = read(object) else { return false };
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone(), managed.clone());
        }
        let admitted = Admitted { uid: managed.uid.clone(), is_accepted: managed.is_accepted };
        self.admissions.put(name.clone(), admitted);
        let known = self.entry(&name);
        let is_news = known.managed.as_ref() != Some(&managed);
        if known.managed.as_ref().is_some_and(|before| before.uid != managed.uid) {
            // Another cluster under the same name: nothing that is known is about it.
            known.announced = None;
            known.inventory = None;
            known.asked = None;
        }
        known.managed = Some(managed);
        is_news
    }

    /// A ManagedCluster is gone.
    pub(crate) fn delete(&mut self, object: &ManagedCluster) {
        if let Some((name, managed)) = read(object) {
            self.drop_managed(&name, Some(&managed.uid));
        }
    }

    /// The list is complete.
    pub(crate) fn complete(&mut self) {
        if let Some(listing) = self.listing.take() {
            let gone: Vec<_> =
                self.known.keys().filter(|name| !listing.contains_key(*name)).cloned().collect();
            for name in gone {
                self.drop_managed(&name, None);
            }
        }
        self.is_complete = true;
        self.admissions.open();
    }

    /// Its agent has a session.
    pub(crate) fn connected(
        &mut self,
        cluster: &ClusterName,
        session: SessionId,
        hello: AgentHello,
        now: Timestamp,
    ) {
        let known = self.entry(cluster);
        if known.session.is_none() {
            known.since = now;
        }
        known.session = Some((session, hello));
        known.heard = Some(now);
        known.announced = None;
        known.asked = None;
    }

    /// Its session has ended; true unless a later one is known.
    pub(crate) fn disconnected(
        &mut self,
        cluster: &ClusterName,
        session: SessionId,
        now: Timestamp,
    ) -> bool {
        let Some(known) = self.known.get_mut(cluster) else { return false };
        if known.session.as_ref().is_none_or(|(current, _)| *current != session) {
            return false;
        }
        known.session = None;
        known.since = now;
        known.announced = None;
        known.asked = None;
        if known.managed.is_none() {
            self.known.remove(cluster);
        }
        true
    }

    /// A sign of life.
    pub(crate) fn heard(&mut self, cluster: &ClusterName, now: Timestamp) {
        if let Some(known) = self.known.get_mut(cluster) {
            known.heard = Some(now);
        }
    }

    /// Its agent says what its inventory is now; the digest to ask for, when it is not known.
    pub(crate) fn announced(&mut self, cluster: &ClusterName, digest: String) -> Option<String> {
        let known = self.known.get_mut(cluster)?;
        known.announced = Some(digest.clone());
        if known.inventory.as_ref().is_some_and(|held| held.digest == digest) {
            return None;
        }
        // Asked again even if it was asked before: an agent whose inventory had moved on answers
        // by announcing anew.
        known.asked = Some(digest.clone());
        Some(digest)
    }

    /// An upload did not come whole or was not what it was called: it may be asked for again.
    pub(crate) fn upload_failed(&mut self, cluster: &ClusterName, digest: &str) {
        if let Some(known) = self.known.get_mut(cluster)
            && known.asked.as_deref() == Some(digest)
        {
            known.asked = None;
        }
    }

    /// An inventory has been read.
    pub(crate) fn inventoried(&mut self, cluster: &ClusterName, held: Held) {
        if let Some(known) = self.known.get_mut(cluster) {
            if known.asked.as_ref() == Some(&held.digest) {
                known.asked = None;
            }
            known.inventory = Some(held);
        }
    }

    fn entry(&mut self, cluster: &ClusterName) -> &mut Known {
        let since = self.since;
        self.known.entry(cluster.clone()).or_insert_with(|| Known {
            managed: None,
            session: None,
            since,
            heard: None,
            announced: None,
            inventory: None,
            asked: None,
        })
    }

    fn drop_managed(&mut self, name: &ClusterName, uid: Option<&Uid>) {
        let Some(known) = self.known.get_mut(name) else { return };
        let is_other = |managed: &Managed| uid.is_some_and(|uid| managed.uid != *uid);
        if known.managed.as_ref().is_some_and(is_other) {
            return;
        }
        known.managed = None;
        self.admissions.remove(name);
        if known.session.is_none() {
            self.known.remove(name);
        }
    }
}

// === impl Known ===

impl Known {
    /// The inventory to plan from: of a connected cluster the announced one and no other, of a
    /// silent one the last.
    pub(crate) fn current(&self) -> Option<&Held> {
        let held = self.inventory.as_ref()?;
        match (&self.session, &self.announced) {
            (None, _) => Some(held),
            (Some(_), Some(announced)) if *announced == held.digest => Some(held),
            (Some(_), Some(_) | None) => None,
        }
    }

    /// Whether its agent has a session.
    pub(crate) fn is_connected(&self) -> bool {
        self.session.is_some()
    }
}

fn read(object: &ManagedCluster) -> Option<(ClusterName, Managed)> {
    let name = ClusterName::try_from(object.metadata.name.as_deref()?).ok()?;
    let uid = Uid::try_from(object.metadata.uid.as_deref()?).ok()?;
    let labels = object.metadata.labels.clone().unwrap_or_default();
    let is_accepted =
        object.spec.hub_accepts_client && object.metadata.deletion_timestamp.is_none();
    Some((name, Managed { uid, is_accepted, labels }))
}
