//! Paging by key: a page begins after the last item of the one before, wherever that stands now.
//!
//! A list that changes between two pages may show an item twice or not at all where it moved past
//! the key, but items that stayed are neither lost nor repeated, and a token never goes stale.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    params::{Order, Params},
    problem::Error,
};

/// Where an item stands in its list: by rank, then by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    #[serde(rename = "r")]
    pub(super) rank: i64,
    #[serde(rename = "n")]
    pub(super) name: String,
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) total: u32,
    pub(super) next: Option<String>,
}

/// What the caller asked for.
#[derive(Debug)]
pub(super) struct Paging {
    order: Order,
    limit: usize,
    after: Option<Key>,
    list: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Token {
    #[serde(rename = "l")]
    list: String,
    #[serde(flatten)]
    key: Key,
}

// === impl Paging ===

impl Paging {
    /// Reads `limit` and `continue`. `path` and the other parameters name the list that a token
    /// belongs to.
    pub(super) fn read(
        params: &Params,
        path: &str,
        order: Order,
        (default, max): (usize, usize),
    ) -> Result<Self, Error> {
        let mut hash = Sha256::new();
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(params.fingerprint().as_bytes());
        let list = hex::encode(hash.finalize()).chars().take(16).collect();
        let mut paging = Self { order, limit: params.limit(default, max)?, after: None, list };
        if let Some(token) = params.text("continue") {
            paging.after = Some(paging.open(token)?);
        }
        Ok(paging)
    }

    /// The page that was asked for out of all matching items.
    pub(super) fn cut<T>(&self, mut all: Vec<(Key, T)>) -> Page<T> {
        let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
        all.sort_by(|(a, _), (b, _)| self.compare(a, b));
        let from = self.after.as_ref().map_or(0, |after| {
            all.partition_point(|(key, _)| self.compare(key, after) != Ordering::Greater)
        });
        let more = all.len() > from + self.limit;
        let page: Vec<_> = all.into_iter().skip(from).take(self.limit).collect();
        let next = page.last().filter(|_| more).map(|(key, _)| self.seal(key.clone()));
        Page { items: page.into_iter().map(|(_, item)| item).collect(), total, next }
    }

    /// Names run forward within a rank whatever the order, unless all ranks are equal: then the
    /// list is sorted by name and the order is that of names.
    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        let (ranks, names) = (a.rank.cmp(&b.rank), a.name.cmp(&b.name));
        match self.order {
            Order::Asc => ranks.then(names),
            Order::Desc if a.rank == 0 && b.rank == 0 => names.reverse(),
            Order::Desc => ranks.reverse().then(names),
        }
    }

    fn seal(&self, key: Key) -> String {
        let token = Token { list: self.list.clone(), key };
        hex::encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn open(&self, token: &str) -> Result<Key, Error> {
        let bytes = hex::decode(token).map_err(|_| Error::Continue { why: "is not a token" })?;
        let token: Token = serde_json::from_slice(&bytes)
            .map_err(|_| Error::Continue { why: "is not a token" })?;
        if token.list == self.list {
            Ok(token.key)
        } else {
            Err(Error::Continue { why: "belongs to a list with another filter or order" })
        }
    }
}
