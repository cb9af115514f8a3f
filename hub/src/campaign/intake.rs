//! Takes news into the leader's memory. Nothing is decided here but what a single message needs.

use std::collections::BTreeSet;

use bytes::Bytes;
use jiff::Timestamp;
use kube::Resource;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tracing::{debug, info, warn};
use wavelift_api::{ClusterUpgrade, FleetUpgrade, managed_cluster::ManagedCluster};
use wavelift_core::{
    fence::{self, Admission, Fence},
    ids::ClusterName,
    inventory::Inventory,
};
use wavelift_runtime::telemetry::chain;

use super::{
    Commands, Driver, News, Watched,
    memory::{Answer, Memory, Newest},
    objects::{Index, Kept, key},
    part::Part,
    statuses,
    writes::Done,
};
use crate::{
    cluster::{Held, KeptCatalog, read_catalog},
    link::{
        CheckReport, Content, Control, ControlAction, HubCommand, LinkEvent, Progress,
        StatusReport, UpgradeKey,
    },
};

impl<C: Commands> Driver<C> {
    /// Takes what the API server tells.
    pub(super) fn news(&mut self, news: News) {
        match news {
            News::Cluster(watched) => self.managed(watched),
            News::Fleet(watched) => {
                self.is_dirty |= take(&mut self.objects.fleets, watched, slim);
            }
            News::Part(watched) => {
                let keys = seen(&watched);
                self.is_dirty |= take(&mut self.objects.parts, watched, read_part);
                if let Some(key) = keys {
                    self.acknowledge(&key);
                }
            }
        }
    }

    fn managed(&mut self, watched: Watched<ManagedCluster>) {
        match watched {
            Watched::Restarted => self.clusters.restart(),
            Watched::Listed(object) | Watched::Applied(object) => {
                self.is_dirty |= self.clusters.apply(&object);
            }
            Watched::Complete => {
                self.clusters.complete();
                self.is_dirty = true;
            }
            Watched::Deleted(object) => {
                self.clusters.delete(&object);
                self.is_dirty = true;
            }
        }
    }

    /// Takes what an agent tells.
    pub(super) fn event(&mut self, event: LinkEvent) {
        let now = self.context.clock.now();
        match event {
            LinkEvent::Connected { cluster, session, hello } => {
                self.catalogs.left(&cluster);
                self.pieces.left(&cluster);
                self.clusters.connected(&cluster, session, hello, now);
                self.is_dirty = true;
            }
            LinkEvent::Disconnected { cluster, session, reason } => {
                if self.clusters.disconnected(&cluster, session, now) {
                    debug!(%cluster, reason = reason.kind(), "agent gone");
                    self.catalogs.left(&cluster);
                    self.pieces.left(&cluster);
                    self.want_catalogs();
                    self.is_dirty = true;
                }
            }
            LinkEvent::Heartbeat { cluster } => self.heard(&cluster, now),
            LinkEvent::InventoryDigest { cluster, digest } => {
                self.heard(&cluster, now);
                if let Some(digest) = self.clusters.announced(&cluster, digest)
                    && !self.send(&cluster, HubCommand::RequestInventory { digest: digest.clone() })
                {
                    self.clusters.upload_failed(&cluster, &digest);
                }
                self.is_dirty = true;
            }
            LinkEvent::Upload { cluster, content, digest, bytes } => {
                self.heard(&cluster, now);
                self.uploaded(cluster, content, digest, bytes);
            }
            LinkEvent::UploadDropped { cluster, content, digest, reason } => {
                info!(%cluster, ?content, ?reason, "an upload did not come whole");
                self.upload_failed(&cluster, content, &digest);
            }
            LinkEvent::PieceMissing { cluster, digest, reason } => {
                self.heard(&cluster, now);
                self.piece_failed(&cluster, &digest, &reason);
            }
            LinkEvent::Status { cluster, status } => {
                self.heard(&cluster, now);
                self.status(&cluster, status);
            }
            LinkEvent::Progress { cluster, progress } => {
                self.heard(&cluster, now);
                self.progress(&cluster, progress);
            }
            LinkEvent::CheckReport { cluster, report } => {
                self.heard(&cluster, now);
                self.checked(&cluster, &report, now);
            }
            // Counted and logged by the link.
            LinkEvent::Refused(_) => {}
        }
    }

    fn heard(&mut self, cluster: &ClusterName, now: Timestamp) {
        self.clusters.heard(cluster, now);
    }

    /// Reads an upload beside the driver: it may be large.
    fn uploaded(&mut self, cluster: ClusterName, content: Content, digest: String, bytes: Bytes) {
        match content {
            Content::Inventory => {
                self.tasks.spawn_blocking(move || {
                    let read = read_inventory(&bytes, &digest);
                    Done::Inventory { cluster, digest, read }
                });
            }
            Content::Catalog => {
                self.tasks.spawn_blocking(move || {
                    let read = read_catalog(&bytes, &digest).map(Box::new);
                    Done::Catalog { cluster, digest, bytes: bytes.len(), read }
                });
            }
            Content::Piece => self.piece_uploaded(cluster, &digest, bytes),
        }
    }

    fn upload_failed(&mut self, cluster: &ClusterName, content: Content, digest: &str) {
        match content {
            Content::Inventory => self.clusters.upload_failed(cluster, digest),
            Content::Catalog => {
                self.catalogs.failed(cluster, digest);
                self.want_catalogs();
            }
            Content::Piece => self.piece_failed(cluster, digest, "it did not come whole"),
        }
    }

    pub(super) fn inventoried(
        &mut self,
        cluster: &ClusterName,
        digest: String,
        read: Result<Inventory, InventoryError>,
    ) {
        match read {
            Ok(inventory) => {
                let held = Held { digest, inventory: inventory.into() };
                self.clusters.inventoried(cluster, held);
                self.context.metrics.uploads.with(["inventory", "taken"]).inc();
                self.want_catalogs_of(cluster);
                self.is_dirty = true;
            }
            Err(error) => {
                warn!(%cluster, error = %chain(&error), "an inventory was refused");
                self.context.metrics.uploads.with(["inventory", "refused"]).inc();
                self.clusters.upload_failed(cluster, &digest);
            }
        }
    }

    pub(super) fn cataloged(
        &mut self,
        cluster: &ClusterName,
        digest: String,
        bytes: usize,
        read: Result<Box<wavelift_catalog::Catalog>, wavelift_catalog::graph::Error>,
    ) {
        let catalog = match read {
            Ok(catalog) => *catalog,
            Err(error) => {
                warn!(%cluster, error = %chain(&error), "a catalog was refused");
                self.context.metrics.uploads.with(["catalog", "refused"]).inc();
                self.upload_failed(cluster, Content::Catalog, &digest);
                return;
            }
        };
        let held = self.clusters.iter().filter_map(|(_, known)| known.inventory.as_ref());
        let in_use: BTreeSet<&str> = held
            .flat_map(|held| &held.inventory.catalogs)
            .filter_map(|source| source.digest.as_deref())
            .collect();
        let result = match self.catalogs.keep(digest, catalog, bytes, &in_use) {
            KeptCatalog::Yes => "taken",
            KeptCatalog::NoRoom => {
                warn!("the catalogs in use leave no room for another one");
                "no_room"
            }
        };
        self.context.metrics.uploads.with(["catalog", result]).inc();
        self.is_dirty = true;
    }

    /// Asks for the catalogs that are missing, each of one cluster that sees it.
    pub(super) fn want_catalogs(&mut self) {
        let connected: Vec<ClusterName> = self
            .clusters
            .iter()
            .filter(|(_, known)| known.is_connected())
            .map(|(name, _)| name.clone())
            .collect();
        for cluster in &connected {
            self.want_catalogs_of(cluster);
        }
    }

    fn want_catalogs_of(&mut self, cluster: &ClusterName) {
        let Some(known) = self.clusters.get(cluster).filter(|known| known.is_connected()) else {
            return;
        };
        let Some(held) = known.current().cloned() else {
            // An inventory that did not come is asked for again.
            if let (Some(digest), None) = (known.announced.clone(), &known.asked)
                && let Some(digest) = self.clusters.announced(cluster, digest)
                && !self.send(cluster, HubCommand::RequestInventory { digest: digest.clone() })
            {
                self.clusters.upload_failed(cluster, &digest);
            }
            return;
        };
        let now = Instant::now();
        for digest in held.inventory.catalogs.iter().filter_map(|source| source.digest.as_ref()) {
            if self.catalogs.want(cluster, digest, now)
                && !self.send(cluster, HubCommand::RequestCatalog { digest: digest.clone() })
            {
                self.catalogs.unasked(cluster, digest);
            }
        }
    }

    /// Takes an agent's status: news is kept, what is durable already is acknowledged again, and
    /// what belongs elsewhere is answered by what the agent should be doing.
    fn status(&mut self, cluster: &ClusterName, report: StatusReport) {
        let key = report.upgrade.clone();
        if key.namespace.as_str() != cluster.as_str() {
            self.context.metrics.statuses.with(["foreign"]).inc();
            warn!(%cluster, upgrade = %key, "an agent reported another cluster's upgrade");
            return;
        }
        let Some(part) = self.objects.parts.get(&key).cloned() else {
            if self.is_ready() {
                self.disown(cluster, &key, &report.fence);
            }
            return;
        };
        let track = self.memory.tracks.entry(key.clone()).or_default();
        let newest = track.heard(&part.fence).map(|newest| newest.revision);
        let taken = part.taken().max(newest);
        match fence::admit(&part.fence, taken, &report.fence, report.revision) {
            Admission::Accept if part.is_started() => self.accept(cluster, &part, report),
            Admission::Accept | Admission::OtherFence => {
                self.context.metrics.statuses.with(["other_fence"]).inc();
                if report.fence.uid == part.campaign {
                    // An older attempt: the agent has not seen the present one yet.
                    track.assigned = None;
                    self.is_dirty = true;
                } else {
                    self.disown(cluster, &key, &report.fence);
                }
            }
            Admission::Duplicate | Admission::Stale => {
                self.context.metrics.statuses.with(["old"]).inc();
                let is_durable = part.taken().is_some_and(|taken| report.revision <= taken);
                let is_spent = track.heard(&part.fence).is_none_or(|newest| newest.is_acknowledged);
                if is_durable || is_spent {
                    let StatusReport { fence, revision, .. } = report;
                    self.send(cluster, HubCommand::Ack { fence, revision });
                }
            }
        }
    }

    /// Takes what an agent says between two transitions; nothing of it is written.
    fn progress(&mut self, cluster: &ClusterName, progress: Progress) {
        if progress.upgrade.namespace.as_str() != cluster.as_str() {
            return;
        }
        let part = self.objects.parts.get(&progress.upgrade);
        let Some(part) = part.filter(|part| part.fence == progress.fence && !part.is_final())
        else {
            return;
        };
        let track = self.memory.tracks.entry(progress.upgrade.clone()).or_default();
        match statuses::words(&progress.words_json) {
            Ok(words) => track.said(part, &progress, words),
            Err(error) => {
                self.context.metrics.statuses.with(["invalid"]).inc();
                warn!(%cluster, error = %chain(&error), "an agent's words were refused");
            }
        }
        track.progress = Some(progress);
        self.is_shown = true;
    }

    fn accept(&mut self, cluster: &ClusterName, part: &Part, report: StatusReport) {
        let StatusReport { fence, revision, upgrade: key, status_json, .. } = report;
        let status = match statuses::read(&status_json) {
            Ok(status) => status,
            Err(error) => {
                self.context.metrics.statuses.with(["invalid"]).inc();
                warn!(%cluster, error = %chain(&error), "an agent's status was refused");
                return;
            }
        };
        self.context.metrics.statuses.with(["taken"]).inc();
        // The last word was taken, or there is nothing in it that must be durable.
        let is_spent = part.is_final() || !statuses::is_transition(part, &status);
        if !part.is_final() {
            let track = self.memory.tracks.entry(key).or_default();
            let fence = fence.clone();
            track.newest = Some(Newest { fence, revision, status, is_acknowledged: is_spent });
        }
        if is_spent {
            self.send(cluster, HubCommand::Ack { fence, revision });
        }
        self.is_dirty = true;
    }

    /// The agent works on something that no campaign knows any more.
    fn disown(&mut self, cluster: &ClusterName, upgrade: &UpgradeKey, fence: &Fence) {
        self.context.metrics.statuses.with(["unknown"]).inc();
        info!(%cluster, %upgrade, %fence, "an agent works on what no campaign knows: cancelled");
        for action in [ControlAction::Cancel, ControlAction::Forget] {
            let (fence, upgrade) = (fence.clone(), upgrade.clone());
            self.send(cluster, HubCommand::Control(Control { fence, upgrade, action }));
        }
    }

    /// Tells the agent that its newest status need not be repeated, once it is durable.
    pub(super) fn acknowledge(&mut self, key: &UpgradeKey) {
        let Some(part) = self.objects.parts.get(key).cloned() else { return };
        let Some(track) = self.memory.tracks.get_mut(key) else { return };
        let is_open = |newest: &&mut Newest| newest.fence == part.fence && !newest.is_acknowledged;
        let Some(newest) = track.newest.as_mut().filter(is_open) else {
            return;
        };
        let revision = newest.revision;
        if part.taken().is_some_and(|taken| taken >= revision) {
            newest.is_acknowledged = true;
            let fence = part.fence.clone();
            self.send(&part.cluster, HubCommand::Ack { fence, revision });
        }
    }

    fn checked(&mut self, cluster: &ClusterName, report: &CheckReport, now: Timestamp) {
        let Memory { tracks, requests, .. } = &mut self.memory;
        let key = requests
            .get(&report.request_id)
            .filter(|key| key.namespace.as_str() == cluster.as_str());
        let track = key.and_then(|key| tracks.get_mut(key));
        let Some(track) = track.filter(|track| {
            track.asked.as_ref().is_some_and(|asked| {
                asked.request_id == report.request_id && asked.fence == report.fence
            })
        }) else {
            debug!(%cluster, "an answer to a check that nobody waits for");
            return;
        };
        match statuses::findings(&report.results_json) {
            Ok(findings) => {
                if let Some(asked) = track.asked.take() {
                    requests.remove(&asked.request_id);
                    track.answer =
                        Some(Answer { at: now, findings, plan_digest: asked.plan_digest });
                }
                self.is_dirty = true;
            }
            // The question stays open and is asked again when its time is over.
            Err(error) => {
                warn!(%cluster, error = %chain(&error), "an answer to a check was refused");
            }
        }
    }
}

/// Why an inventory is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum InventoryError {
    /// It is no such document.
    #[error("not an inventory")]
    Parse(#[from] serde_json::Error),
    /// It is another one than announced.
    #[error("announced as {announced}, but it is {found}")]
    Digest {
        /// Its name.
        announced: String,
        /// Its digest.
        found: String,
    },
}

/// Reads an inventory and holds it to its digest: that of its bytes, or of its sorted form.
fn read_inventory(bytes: &Bytes, announced: &str) -> Result<Inventory, InventoryError> {
    let mut inventory: Inventory = serde_json::from_slice(bytes)?;
    inventory.sort();
    let of_bytes = format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
    let found = inventory.digest();
    if announced == of_bytes || announced == found {
        Ok(inventory)
    } else {
        Err(InventoryError::Digest { announced: announced.to_owned(), found })
    }
}

/// Feeds an index from a watch; true when something may have to be done.
fn take<K, T>(index: &mut Index<T>, watched: Watched<K>, read: fn(K) -> Option<T>) -> bool
where
    K: Resource,
    T: Kept,
{
    match watched {
        Watched::Restarted => {
            index.restart();
            false
        }
        Watched::Listed(object) | Watched::Applied(object) => {
            let Some(key) = key(&object) else { return false };
            read(object).is_some_and(|object| index.store(key, object))
        }
        Watched::Complete => {
            index.complete();
            true
        }
        Watched::Deleted(object) => {
            let version = super::objects::version(&object);
            key(&object).is_some_and(|key| index.remove(&key, version))
        }
    }
}

fn seen(watched: &Watched<ClusterUpgrade>) -> Option<UpgradeKey> {
    match watched {
        Watched::Applied(object) | Watched::Listed(object) => key(object),
        Watched::Restarted | Watched::Complete | Watched::Deleted(_) => None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one of two readers, the other can fail")]
pub(super) fn slim(mut fleet: FleetUpgrade) -> Option<FleetUpgrade> {
    fleet.metadata.managed_fields = None;
    Some(fleet)
}

/// Reads a ClusterUpgrade; one that is none of ours is passed over.
pub(super) fn read_part(object: ClusterUpgrade) -> Option<Part> {
    let name = object.metadata.name.clone().unwrap_or_default();
    match Part::read(object) {
        Ok(part) => Some(part),
        Err(error) => {
            info!(name, error = %chain(&error), "a ClusterUpgrade that is none of ours");
            None
        }
    }
}
