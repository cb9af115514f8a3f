//! Pieces of catalogs by digest, each uploaded once for all clusters whose catalogs hold it.
//!
//! A piece is taken only under the SHA-256 of its bytes, and that name comes from the table that
//! the group's own clusters announced: whatever one cluster sends, no other group sees it. When
//! room is short, pieces that fewer clusters need give way to those that more need, so that one
//! cluster cannot push out what others use.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;
use wavelift_catalog::{
    Contents, Digest, Manifests,
    contents::{self, read_documents, read_manifests},
};
use wavelift_core::ids::ClusterName;

/// How much is kept and asked for, at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Pieces.
    pub(crate) pieces: usize,
    /// Bytes of them, as they were sent.
    pub(crate) bytes: usize,
    /// Unanswered questions of one session.
    pub(crate) in_flight: usize,
}

/// How long a cluster has for an answer before another is asked.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a piece that found no room is not asked for again.
const NO_ROOM_PAUSE: Duration = Duration::from_mins(10);

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// The table of a catalog's pieces.
    Table,
    /// The manifests of a bundle.
    Manifests,
    /// The documents of a package.
    Documents,
}

/// A piece that was read.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// The table of a catalog's pieces.
    Table(Arc<Contents>),
    /// The manifests of a bundle.
    Manifests(Arc<Manifests>),
    /// The documents of a package.
    Documents(Arc<[Value]>),
}

/// Where a piece is.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// Here.
    Here(Piece),
    /// On its way, or about to be asked for.
    Awaited,
    /// Nowhere, and why, for people.
    Missing(String),
}

/// Who may be asked for a piece, and how many need it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holders<'a> {
    /// Clusters that are connected and announce it, by name.
    pub(crate) connected: &'a [ClusterName],
    /// Clusters that need it, connected or not.
    pub(crate) users: usize,
}

/// The pieces that were read.
#[derive(Debug)]
pub(crate) struct Pieces {
    room: Room,
    kept: BTreeMap<Key, Entry>,
    /// Of whom a piece was asked. Of several only where no one of them is in another's group: one
    /// group never waits for another's cluster.
    asked: BTreeMap<Key, Vec<Asked>>,
    in_flight: BTreeMap<ClusterName, usize>,
    /// Why a cluster could not give a piece; it is not asked again in this session.
    failed: BTreeMap<Key, BTreeMap<ClusterName, String>>,
    no_room: BTreeMap<Key, Instant>,
    bytes: usize,
    tick: u64,
}

/// A name, and what it was said to be the name of: bytes can be more than one thing.
pub(crate) type Key = (String, Shape);

#[derive(Debug)]
struct Entry {
    piece: Piece,
    bytes: usize,
    users: usize,
    used: u64,
}

#[derive(Debug)]
struct Asked {
    of: ClusterName,
    at: Instant,
    users: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { pieces: 8_192, bytes: 256 << 20, in_flight: 4 }
    }
}

// === impl Pieces ===

impl Pieces {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            room,
            kept: BTreeMap::new(),
            asked: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            failed: BTreeMap::new(),
            no_room: BTreeMap::new(),
            bytes: 0,
            tick: 0,
        }
    }

    /// A piece that is here, without asking anybody.
    pub(crate) fn here(&mut self, key: &Key, users: usize) -> Option<Piece> {
        self.tick += 1;
        let entry = self.kept.get_mut(key)?;
        entry.used = self.tick;
        entry.users = entry.users.max(users);
        Some(entry.piece.clone())
    }

    /// Where a piece is. One that is not here is asked for by `ask`, which says whether the
    /// question could be sent.
    pub(crate) fn find(
        &mut self,
        key: &Key,
        holders: Holders<'_>,
        now: Instant,
        ask: &mut dyn FnMut(&ClusterName) -> bool,
    ) -> Found {
        if let Some(piece) = self.here(key, holders.users) {
            return Found::Here(piece);
        }
        if self.no_room.get(key).is_some_and(|at| now.duration_since(*at) < NO_ROOM_PAUSE) {
            return Found::Missing("the hub has no room for it".to_owned());
        }
        let is_ours = |asked: &&mut Asked| holders.connected.binary_search(&asked.of).is_ok();
        if let Some(asked) = self.asked.get_mut(key).and_then(|all| all.iter_mut().find(is_ours)) {
            asked.users = asked.users.max(holders.users);
            if now.duration_since(asked.at) < PATIENCE {
                return Found::Awaited;
            }
            let of = asked.of.clone();
            self.failed(&of, key, "it did not answer within a minute");
        }
        self.ask(key, holders, now, ask)
    }

    fn ask(
        &mut self,
        key: &Key,
        holders: Holders<'_>,
        now: Instant,
        ask: &mut dyn FnMut(&ClusterName) -> bool,
    ) -> Found {
        let mut is_busy = false;
        for cluster in holders.connected {
            if self.failed.get(key).is_some_and(|failed| failed.contains_key(cluster)) {
                continue;
            }
            let open = self.in_flight.get(cluster).copied().unwrap_or(0);
            if open >= self.room.in_flight || !ask(cluster) {
                is_busy = true;
                continue;
            }
            *self.in_flight.entry(cluster.clone()).or_insert(0) += 1;
            let asked = Asked { of: cluster.clone(), at: now, users: holders.users };
            self.asked.entry(key.clone()).or_default().push(asked);
            return Found::Awaited;
        }
        if is_busy {
            return Found::Awaited;
        }
        let ours = |failed: &BTreeMap<ClusterName, String>| {
            let ours =
                failed.iter().filter(|(name, _)| holders.connected.binary_search(name).is_ok());
            let (cluster, why) = ours.clone().next_back()?;
            Some((ours.count(), cluster.clone(), why.clone()))
        };
        Found::Missing(match self.failed.get(key).and_then(ours) {
            None => "no cluster that holds it is connected".to_owned(),
            Some((1, cluster, why)) => format!("cluster {cluster} was asked: {why}"),
            Some((count, cluster, why)) => {
                format!("{count} clusters were asked in vain, {cluster} the last: {why}")
            }
        })
    }

    /// What was asked of this cluster under this name; `None` for what nobody asked it for.
    pub(crate) fn expected(&self, cluster: &ClusterName, name: &str) -> Option<Key> {
        let shapes = [Shape::Table, Shape::Manifests, Shape::Documents];
        shapes.into_iter().map(|shape| (name.to_owned(), shape)).find(|key| {
            self.asked.get(key).is_some_and(|all| all.iter().any(|asked| asked.of == *cluster))
        })
    }

    /// The piece did not come, or was another: the next cluster may be asked.
    pub(crate) fn failed(&mut self, cluster: &ClusterName, key: &Key, why: &str) {
        if self.answered(cluster, key).is_some() {
            let failed = self.failed.entry(key.clone()).or_default();
            failed.insert(cluster.clone(), why.to_owned());
        }
    }

    /// A question is open no more; how it was asked.
    fn answered(&mut self, cluster: &ClusterName, key: &Key) -> Option<Asked> {
        let all = self.asked.get_mut(key)?;
        let at = all.iter().position(|asked| asked.of == *cluster)?;
        let asked = all.swap_remove(at);
        if all.is_empty() {
            self.asked.remove(key);
        }
        if let Some(open) = self.in_flight.get_mut(cluster) {
            *open = open.saturating_sub(1);
        }
        Some(asked)
    }

    /// A cluster's session is over, and with it what it was asked for and what it failed at.
    pub(crate) fn left(&mut self, cluster: &ClusterName) {
        self.asked.retain(|_, all| {
            all.retain(|asked| asked.of != *cluster);
            !all.is_empty()
        });
        self.in_flight.remove(cluster);
        self.failed.retain(|_, failed| {
            failed.remove(cluster);
            !failed.is_empty()
        });
    }

    /// Keeps a piece that was asked for; what fewer clusters need makes room for it. True when it
    /// is here now.
    pub(crate) fn keep(
        &mut self,
        cluster: &ClusterName,
        key: &Key,
        piece: Piece,
        bytes: usize,
    ) -> bool {
        let Some(Asked { users, .. }) = self.answered(cluster, key) else { return false };
        if self.kept.contains_key(key) {
            return true;
        }
        self.failed.remove(key);
        while self.kept.len() >= self.room.pieces || self.bytes + bytes > self.room.bytes {
            let least = self.kept.iter().min_by_key(|(_, entry)| (entry.users, entry.used));
            let idle = least.filter(|(_, entry)| entry.users < users || entry.users == 0);
            let Some(entry) =
                idle.map(|(key, _)| key.clone()).and_then(|key| self.kept.remove(&key))
            else {
                self.no_room.insert(key.clone(), Instant::now());
                return false;
            };
            self.bytes -= entry.bytes;
        }
        self.no_room.remove(key);
        self.tick += 1;
        self.bytes += bytes;
        self.kept.insert(key.clone(), Entry { piece, bytes, users, used: self.tick });
        true
    }

    /// Begins to count anew who needs what; called before all campaigns are looked at.
    pub(crate) fn recount(&mut self) {
        for entry in self.kept.values_mut() {
            entry.users = 0;
        }
        let now = Instant::now();
        self.no_room.retain(|_, at| now.duration_since(*at) < NO_ROOM_PAUSE);
    }
}

// === impl Piece ===

impl Piece {
    /// Reads a piece that was sent, and holds it to its name.
    pub(crate) fn read(bytes: &Bytes, (name, shape): &Key) -> Result<Self, contents::Error> {
        let Ok(name) = Digest::try_from(name.as_str()) else {
            // Not a digest at all, so what was sent has another name.
            let found = Digest::of(bytes);
            return Err(contents::Error::Digest { announced: found.clone(), found });
        };
        Ok(match shape {
            Shape::Table => Self::Table(Contents::read(bytes, &name)?.into()),
            Shape::Manifests => Self::Manifests(read_manifests(bytes, &name)?.into()),
            Shape::Documents => Self::Documents(read_documents(bytes, &name)?.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(cluster: &str) -> ClusterName {
        ClusterName::try_from(cluster).unwrap()
    }

    fn documents() -> Piece {
        Piece::Documents(Arc::default())
    }

    fn holders(connected: &[ClusterName]) -> Holders<'_> {
        Holders { connected, users: connected.len() }
    }

    fn key(text: &str) -> Key {
        (text.to_owned(), Shape::Documents)
    }

    #[test]
    fn a_piece_is_asked_of_one_cluster_and_of_the_next_when_that_fails() {
        let mut pieces = Pieces::new(Room::default());
        let (a, b) = (name("a"), name("b"));
        let both = [a.clone(), b.clone()];
        let now = Instant::now();
        let mut log = vec![];
        let x = key("x");
        let mut ask = |cluster: &ClusterName| {
            log.push(cluster.to_string());
            true
        };
        assert!(matches!(pieces.find(&x, holders(&both), now, &mut ask), Found::Awaited));
        assert!(matches!(pieces.find(&x, holders(&both), now, &mut ask), Found::Awaited));
        assert_eq!(pieces.expected(&a, "x"), Some(key("x")));
        assert_eq!(pieces.expected(&b, "x"), None, "nobody asked b");
        pieces.failed(&b, &x, "b was not asked");
        pieces.failed(&a, &x, "gone");
        assert!(matches!(pieces.find(&x, holders(&both), now, &mut ask), Found::Awaited));
        pieces.failed(&b, &x, "lost");
        let Found::Missing(why) = pieces.find(&x, holders(&both), now, &mut ask) else {
            panic!("not missing")
        };
        assert_eq!(why, "2 clusters were asked in vain, b the last: lost");
        // A new session is asked anew.
        pieces.left(&a);
        assert!(matches!(pieces.find(&x, holders(&both), now, &mut ask), Found::Awaited));
        assert!(pieces.keep(&a, &x, documents(), 2));
        assert!(matches!(pieces.find(&x, holders(&both), now, &mut ask), Found::Here(_)));
        assert_eq!(log, ["a", "b", "a"]);
    }

    #[test]
    fn a_session_has_few_questions_open_and_a_minute_for_each() {
        let mut pieces = Pieces::new(Room { in_flight: 1, ..Room::default() });
        let a = [name("a")];
        let now = Instant::now();
        let find = |pieces: &mut Pieces, what: &str, at| {
            pieces.find(&key(what), holders(&a), at, &mut |_| true)
        };
        assert!(matches!(find(&mut pieces, "x", now), Found::Awaited));
        assert!(matches!(find(&mut pieces, "y", now), Found::Awaited));
        assert_eq!(pieces.expected(&a[0], "y"), None);
        let later = now + PATIENCE;
        let Found::Missing(why) = find(&mut pieces, "x", later) else { panic!("not missing") };
        assert_eq!(why, "cluster a was asked: it did not answer within a minute");
        assert!(matches!(find(&mut pieces, "y", later), Found::Awaited));
        assert_eq!(pieces.expected(&a[0], "y"), Some(key("y")));
        // An answer after its time is not taken.
        assert!(!pieces.keep(&a[0], &key("x"), documents(), 2));
    }

    #[test]
    fn a_group_never_waits_for_a_cluster_of_another() {
        let mut pieces = Pieces::new(Room::default());
        let (a, b) = ([name("a")], [name("b")]);
        let now = Instant::now();
        let x = key("x");
        assert!(matches!(pieces.find(&x, holders(&a), now, &mut |_| true), Found::Awaited));
        assert!(matches!(pieces.find(&x, holders(&b), now, &mut |_| true), Found::Awaited));
        assert!(pieces.expected(&a[0], "x").is_some() && pieces.expected(&b[0], "x").is_some());
        pieces.failed(&a[0], &x, "it lies");
        assert!(pieces.keep(&b[0], &x, documents(), 2));
        assert!(matches!(pieces.find(&x, holders(&a), now, &mut |_| true), Found::Here(_)));
        // The same bytes under another meaning are another piece.
        let table = ("x".to_owned(), Shape::Table);
        assert!(pieces.here(&table, 1).is_none());
    }

    #[test]
    fn what_one_cluster_needs_pushes_out_nothing_that_two_need() {
        let mut pieces = Pieces::new(Room { bytes: 10, ..Room::default() });
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let now = Instant::now();
        let put = |pieces: &mut Pieces, what: &str, of: &[ClusterName], bytes| {
            pieces.find(&key(what), holders(of), now, &mut |_| true);
            pieces.keep(&of[0], &key(what), documents(), bytes)
        };
        assert!(put(&mut pieces, "two", &[a.clone(), b.clone()], 6));
        let only = std::slice::from_ref(&c);
        assert!(!put(&mut pieces, "one", only, 6));
        let found = pieces.find(&key("one"), holders(only), now, &mut |_| true);
        let Found::Missing(why) = found else { panic!("not missing") };
        assert_eq!(why, "the hub has no room for it");
        assert!(put(&mut pieces, "three", &[a, b, c.clone()], 6));
        pieces.recount();
        assert!(put(&mut pieces, "other", only, 6), "what nobody needs any more gives way");
    }

    #[test]
    fn bytes_are_held_to_their_name() {
        let good = Digest::of(b"[]");
        let bytes = Bytes::from_static(b"[]");
        assert!(Piece::read(&bytes, &(good.to_string(), Shape::Documents)).is_ok());
        let other = Bytes::from_static(b"[1]");
        assert!(Piece::read(&other, &(good.to_string(), Shape::Documents)).is_err());
        let one = Digest::of(&other);
        assert!(Piece::read(&other, &(one.to_string(), Shape::Table)).is_err());
        assert!(Piece::read(&bytes, &("sha256:short".to_owned(), Shape::Documents)).is_err());
    }
}
