//! What the engines look up: every channel entry that has a bundle, and the order of each channel.

use std::{collections::BTreeMap, sync::Arc};

use wavelift_core::{causes::listed, range::Range, version::Version};

use super::traits::Traits;
use crate::graph::{Channel, Graph, Gvk, Package};

/// A channel entry's place in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EntryId(usize);

/// A channel entry with its bundle.
#[derive(Debug)]
pub(crate) struct IndexedEntry {
    pub(crate) package: String,
    pub(crate) channel: String,
    pub(crate) is_in_default_channel: bool,
    pub(crate) name: String,
    pub(crate) version: Option<Version>,
    pub(crate) replaces: Option<String>,
    pub(crate) skips: Vec<String>,
    /// Nothing also where the catalog's text is no range: OLM sees no edge there.
    pub(crate) skip_range: Option<Range>,
    pub(crate) traits: Arc<Traits>,
}

/// Why a channel has no one order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The channel is not there or has no entry with a bundle.
    #[error("channel has no entries")]
    Empty,
    /// Every entry is replaced or skipped by another one.
    #[error("channel has no head")]
    NoHead,
    /// More than one entry is neither replaced nor skipped.
    #[error("channel has {} heads: {}", .heads.len(), listed(.heads))]
    SeveralHeads {
        /// The heads.
        heads: Vec<String>,
    },
    /// The chain of replacement comes back to where it was.
    #[error("channel's chain of replacement from `{head}` is a circle")]
    Circle {
        /// Where the chain starts.
        head: String,
    },
}

pub(crate) type Chain = Result<Vec<EntryId>, ChainError>;

/// Everything the engines look up in one catalog.
#[derive(Debug)]
pub(crate) struct Index {
    entries: Vec<IndexedEntry>,
    packages: BTreeMap<String, BTreeMap<String, IndexedChannel>>,
    providers: BTreeMap<Gvk, Vec<EntryId>>,
}

#[derive(Debug)]
struct IndexedChannel {
    entries: Vec<EntryId>,
    chain: Chain,
}

// === impl ChainError ===

impl ChainError {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::NoHead => "NoHead",
            Self::SeveralHeads { .. } => "SeveralHeads",
            Self::Circle { .. } => "Circle",
        }
    }
}

// === impl IndexedEntry ===

impl IndexedEntry {
    /// Whether OLM v0 may go from the installed CSV to this entry.
    pub(crate) fn follows(&self, csv: &str, version: Option<&Version>) -> bool {
        self.replaces.as_deref() == Some(csv)
            || self.skips.iter().any(|skipped| skipped == csv)
            || self.skip_range.as_ref().zip(version).is_some_and(|(range, v)| range.contains(v))
    }
}

// === impl Index ===

impl Index {
    pub(crate) fn of(graph: &Graph) -> Self {
        let mut index =
            Self { entries: Vec::new(), packages: BTreeMap::new(), providers: BTreeMap::new() };
        for (name, package) in &graph.packages {
            index.add(name, package);
        }
        index
    }

    fn add(&mut self, name: &str, package: &Package) {
        let traits: BTreeMap<&str, Arc<Traits>> = package
            .bundles
            .iter()
            .map(|(name, bundle)| {
                (name.as_str(), Arc::new(Traits::of_all(bundle.properties.iter().map(Arc::as_ref))))
            })
            .collect();
        for (channel_name, channel) in &package.channels {
            let first = self.entries.len();
            for entry in entries(name, package, channel_name, channel, &traits) {
                let id = EntryId(self.entries.len());
                for gvk in &entry.traits.provides {
                    self.providers.entry(gvk.clone()).or_default().push(id);
                }
                self.entries.push(entry);
            }
            let ids: Vec<EntryId> = (first..self.entries.len()).map(EntryId).collect();
            if !ids.is_empty() {
                let chain = self.chain_of(&ids);
                let channel = IndexedChannel { entries: ids, chain };
                let channels = self.packages.entry(name.to_owned()).or_default();
                channels.insert(channel_name.clone(), channel);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entry(&self, id: EntryId) -> &IndexedEntry {
        &self.entries[id.0]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = EntryId> {
        (0..self.entries.len()).map(EntryId)
    }

    /// The package's channels that have entries; nothing if it has none.
    pub(crate) fn channels(&self, package: &str) -> Option<impl Iterator<Item = &str>> {
        self.packages.get(package).map(|channels| channels.keys().map(String::as_str))
    }

    pub(crate) fn channel_entries(&self, package: &str, channel: &str) -> &[EntryId] {
        self.channel(package, channel).map_or(&[], |channel| channel.entries.as_slice())
    }

    pub(crate) fn chain(&self, package: &str, channel: &str) -> Option<&Chain> {
        self.channel(package, channel).map(|channel| &channel.chain)
    }

    /// The entries that provide an API.
    pub(crate) fn providers(&self, gvk: &Gvk) -> &[EntryId] {
        self.providers.get(gvk).map_or(&[], Vec::as_slice)
    }

    fn channel(&self, package: &str, channel: &str) -> Option<&IndexedChannel> {
        self.packages.get(package)?.get(channel)
    }

    /// The order of a channel's entries: from the one head along `replaces`. Skipped entries are left
    /// out but walked through; an entry that the walk does not reach is no candidate.
    fn chain_of(&self, ids: &[EntryId]) -> Chain {
        let by_name: BTreeMap<&str, EntryId> =
            ids.iter().map(|id| (self.entry(*id).name.as_str(), *id)).collect();
        let replaced = |id: EntryId| -> Option<EntryId> {
            by_name.get(self.entry(id).replaces.as_deref()?).copied()
        };
        let mut is_skipped: BTreeMap<EntryId, bool> = ids.iter().map(|id| (*id, false)).collect();
        let mut is_head: BTreeMap<EntryId, bool> = ids.iter().map(|id| (*id, true)).collect();
        for id in ids {
            let skips = self.entry(*id).skips.iter();
            for skipped in skips.filter_map(|name| by_name.get(name.as_str())) {
                is_skipped.insert(*skipped, true);
                is_head.insert(*skipped, false);
            }
            if let Some(replaced) = replaced(*id) {
                is_head.insert(replaced, false);
            }
        }
        let heads: Vec<EntryId> = ids.iter().copied().filter(|id| is_head[id]).collect();
        let [head] = heads.as_slice() else {
            let name = |id: &EntryId| self.entry(*id).name.clone();
            return Err(if heads.is_empty() {
                ChainError::NoHead
            } else {
                ChainError::SeveralHeads { heads: heads.iter().map(name).collect() }
            });
        };
        let mut chain = Vec::new();
        let mut at = *head;
        // A walk of more steps than there are entries has met one of them twice.
        for _ in 0..ids.len() {
            if !is_skipped[&at] {
                chain.push(at);
            }
            match replaced(at) {
                Some(next) => at = next,
                None => return Ok(chain),
            }
        }
        Err(ChainError::Circle { head: self.entry(*head).name.clone() })
    }
}

fn entries<'a>(
    package_name: &'a str,
    package: &'a Package,
    channel_name: &'a str,
    channel: &'a Channel,
    traits: &'a BTreeMap<&str, Arc<Traits>>,
) -> impl Iterator<Item = IndexedEntry> + 'a {
    channel.entries.iter().filter_map(move |(name, entry)| {
        let bundle = package.bundles.get(name)?;
        Some(IndexedEntry {
            package: package_name.to_owned(),
            channel: channel_name.to_owned(),
            is_in_default_channel: package.default_channel.as_deref() == Some(channel_name),
            name: name.clone(),
            version: bundle.version.clone(),
            replaces: entry.replaces.clone(),
            skips: entry.skips.iter().cloned().collect(),
            skip_range: entry.skip_range.as_deref().and_then(|text| Range::parse(text).ok()),
            traits: Arc::clone(traits.get(name.as_str())?),
        })
    })
}
