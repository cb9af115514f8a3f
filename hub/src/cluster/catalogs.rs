//! Catalogs by digest, each uploaded once for all clusters that see it.
//!
//! The digest is computed here from what was sent. A cluster's plan uses a catalog only by the
//! digest in that cluster's own inventory, so no cluster can give another a catalog.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use wavelift_catalog::{Catalog, Digest, Graph, Limits, graph};
use wavelift_core::ids::ClusterName;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Catalogs.
    pub(crate) catalogs_max: usize,
    /// Bytes of them, as they were sent.
    pub(crate) bytes_max: usize,
}

/// The catalogs that were read.
#[derive(Debug)]
pub(crate) struct Catalogs {
    room: Room,
    kept: BTreeMap<String, Entry>,
    /// Digests that were asked for, of whom and when.
    asked: BTreeMap<String, (ClusterName, Instant)>,
    /// Digests that a cluster could not give: it is not asked again in this session.
    failed: BTreeSet<(ClusterName, String)>,
    bytes: usize,
    tick: u64,
}

#[derive(Debug)]
struct Entry {
    catalog: Arc<Catalog>,
    bytes: usize,
    used: u64,
}

/// How long a cluster has for an upload before another is asked too.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether a catalog found its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It did.
    Yes,
    /// Others that are in use fill the room.
    NoRoom,
}

impl Default for Room {
    fn default() -> Self {
        Self { catalogs_max: 256, bytes_max: 512 << 20 }
    }
}

impl Catalogs {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            room,
            kept: BTreeMap::new(),
            asked: BTreeMap::new(),
            failed: BTreeSet::new(),
            bytes: 0,
            tick: 0,
        }
    }

    pub(crate) fn get(&self, digest: &str) -> Option<&Arc<Catalog>> {
        self.kept.get(digest).map(|entry| &entry.catalog)
    }

    /// Whether it was asked for and may come any moment.
    pub(crate) fn is_awaited(&self, digest: &str) -> bool {
        self.asked.contains_key(digest)
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Notes that `cluster` sees a catalog; true when it should be asked for the content.
    pub(crate) fn want(&mut self, cluster: &ClusterName, digest: &str, now: Instant) -> bool {
        self.tick += 1;
        if let Some(entry) = self.kept.get_mut(digest) {
            entry.used = self.tick;
            return false;
        }
        let is_under_way = self
            .asked
            .get(digest)
            .is_some_and(|(of, at)| of == cluster || now.duration_since(*at) < PATIENCE);
        if is_under_way || self.failed.contains(&(cluster.clone(), digest.to_owned())) {
            return false;
        }
        self.asked.insert(digest.to_owned(), (cluster.clone(), now));
        true
    }

    /// The content did not come, or was another: others may be asked.
    pub(crate) fn failed(&mut self, cluster: &ClusterName, digest: &str) {
        self.unasked(cluster, digest);
        self.failed.insert((cluster.clone(), digest.to_owned()));
    }

    /// The question could not be sent: it will be asked again.
    pub(crate) fn unasked(&mut self, cluster: &ClusterName, digest: &str) {
        if self.asked.get(digest).is_some_and(|(of, _)| of == cluster) {
            self.asked.remove(digest);
        }
    }

    /// A cluster's session is over, and with it what it was asked for and what it failed at.
    pub(crate) fn left(&mut self, cluster: &ClusterName) {
        self.asked.retain(|_, (of, _)| of != cluster);
        self.failed.retain(|(of, _)| of != cluster);
    }

    /// Keeps a catalog; what nobody uses makes room for it.
    pub(crate) fn keep(
        &mut self,
        digest: String,
        catalog: Catalog,
        bytes: usize,
        in_use: &BTreeSet<&str>,
    ) -> Kept {
        self.asked.remove(&digest);
        if self.kept.contains_key(&digest) {
            return Kept::Yes;
        }
        while self.kept.len() >= self.room.catalogs_max || self.bytes + bytes > self.room.bytes_max
        {
            let idle = self.kept.iter().filter(|(digest, _)| !in_use.contains(digest.as_str()));
            let oldest = idle.min_by_key(|(_, entry)| entry.used).map(|(digest, _)| digest.clone());
            match oldest.and_then(|digest| self.kept.remove(&digest)) {
                Some(entry) => self.bytes -= entry.bytes,
                None => return Kept::NoRoom,
            }
        }
        self.tick += 1;
        self.bytes += bytes;
        let entry = Entry { catalog: Arc::new(catalog), bytes, used: self.tick };
        self.kept.insert(digest, entry);
        Kept::Yes
    }
}

/// Reads a catalog that was sent and holds it to its digest.
pub(crate) fn read_catalog(bytes: &Bytes, digest: &str) -> Result<Catalog, graph::Error> {
    let limits = Limits { total_bytes: 64 << 20, ..Limits::default() };
    let Ok(announced) = Digest::try_from(digest) else {
        // Not a digest at all, so what was sent has another.
        let found = Graph::parse(bytes, &limits)?.digest();
        return Err(graph::Error::Digest { announced: found.clone(), found });
    };
    let graph = Graph::parse_announced(bytes, &announced, &limits)?;
    Ok(Catalog::from_graph(graph))
}
