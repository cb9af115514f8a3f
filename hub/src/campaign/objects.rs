//! The objects that the leader works from, kept as an index that watches and own writes feed.
//!
//! The answer of an own write is as good as a watch event, and earlier. Whichever comes later with
//! an older resource version is passed over, so that a slow watch never undoes what was written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::{Resource, ResourceExt as _};
use wavelift_api::FleetUpgrade;
use wavelift_core::ids::{Namespace, Uid, UpgradeName};

use super::part::Part;
use crate::link::UpgradeKey;

/// What a watch tells.
#[derive(Debug)]
pub(crate) enum Watched<K> {
    /// A list begins.
    Restarted,
    /// An object of that list.
    Listed(K),
    /// The list is complete.
    Complete,
    /// An object as it is now.
    Applied(K),
    /// An object that is gone.
    Deleted(K),
}

/// What can be kept here.
pub(crate) trait Kept {
    /// The object's resource version.
    fn version(&self) -> u64;
    /// The object's uid.
    fn uid(&self) -> &str;
}

/// Objects of one kind.
#[derive(Debug)]
pub(crate) struct Index<T> {
    objects: BTreeMap<UpgradeKey, Arc<T>>,
    /// While a list is under way: what has been seen since it began.
    listing: Option<BTreeSet<UpgradeKey>>,
    is_complete: bool,
}

/// FleetUpgrades and ClusterUpgrades.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) fleets: Index<FleetUpgrade>,
    pub(crate) parts: Index<Part>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listing: None, is_complete: false }
    }
}

impl<T: Kept> Index<T> {
    /// Whether everything has been listed once.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(crate) fn get(&self, key: &UpgradeKey) -> Option<&Arc<T>> {
        self.objects.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&UpgradeKey, &Arc<T>)> {
        self.objects.iter()
    }

    /// Takes an object as a watch or the answer of a write shows it; true when it is news.
    pub(crate) fn store(&mut self, key: UpgradeKey, object: T) -> bool {
        if let Some(listing) = &mut self.listing {
            listing.insert(key.clone());
        }
        match self.objects.get(&key) {
            Some(known) if known.version() >= object.version() => false,
            Some(_) | None => {
                self.objects.insert(key, Arc::new(object));
                true
            }
        }
    }

    /// An object is gone, as of `version`; true when it was there.
    pub(crate) fn remove(&mut self, key: &UpgradeKey, version: u64) -> bool {
        match self.objects.get(key) {
            // Made again in the meantime.
            Some(known) if known.version() > version => false,
            Some(_) => self.objects.remove(key).is_some(),
            None => false,
        }
    }

    /// An object was looked for and is not there.
    pub(crate) fn forget(&mut self, key: &UpgradeKey) -> bool {
        self.objects.remove(key).is_some()
    }

    /// A list begins.
    pub(crate) fn restart(&mut self) {
        self.listing = Some(BTreeSet::new());
    }

    /// The list is complete: what was not seen since it began is gone.
    pub(crate) fn complete(&mut self) {
        if let Some(seen) = self.listing.take() {
            self.objects.retain(|key, _| seen.contains(key));
        }
        self.is_complete = true;
    }
}

impl Objects {
    /// The campaign of this uid.
    pub(crate) fn campaign(&self, uid: &Uid) -> Option<(&UpgradeKey, &Arc<FleetUpgrade>)> {
        self.fleets.iter().find(|(_, fleet)| Kept::uid(fleet.as_ref()) == uid.as_str())
    }

    /// Whether a campaign of this uid exists.
    pub(crate) fn has_campaign(&self, uid: &Uid) -> bool {
        self.campaign(uid).is_some()
    }
}

impl Kept for FleetUpgrade {
    fn version(&self) -> u64 {
        version(self)
    }

    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }
}

impl Kept for Part {
    fn version(&self) -> u64 {
        version(&self.object)
    }

    fn uid(&self) -> &str {
        self.object.meta().uid.as_deref().unwrap_or_default()
    }
}

/// An object's key; `None` for a name that no API server would take.
pub(crate) fn key<K: Resource>(object: &K) -> Option<UpgradeKey> {
    let namespace = Namespace::try_from(object.meta().namespace.as_deref()?).ok()?;
    let name = UpgradeName::try_from(object.meta().name.as_deref()?).ok()?;
    Some(UpgradeKey { namespace, name })
}

/// An object's resource version as a number: an API server's own are.
pub(crate) fn version<K: Resource>(object: &K) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Object(u64);

    impl Kept for Object {
        fn version(&self) -> u64 {
            self.0
        }

        fn uid(&self) -> &'static str {
            ""
        }
    }

    fn mk_key(name: &str) -> UpgradeKey {
        UpgradeKey { namespace: "a".try_into().unwrap(), name: name.try_into().unwrap() }
    }

    #[test]
    fn a_slow_watch_does_not_undo_a_write() {
        let mut index = Index::default();
        assert!(index.store(mk_key("x"), Object(5)));
        assert!(!index.store(mk_key("x"), Object(4)));
        assert!(!index.store(mk_key("x"), Object(5)));
        assert!(!index.remove(&mk_key("x"), 3));
        assert_eq!(index.get(&mk_key("x")).map(|object| object.0), Some(5));
        assert!(index.remove(&mk_key("x"), 6));
    }

    #[test]
    fn a_list_drops_what_is_gone_and_keeps_what_was_written_meanwhile() {
        let mut index = Index::default();
        index.store(mk_key("gone"), Object(1));
        index.store(mk_key("stays"), Object(2));
        index.restart();
        assert!(!index.store(mk_key("stays"), Object(2)));
        index.store(mk_key("written"), Object(3));
        assert!(!index.is_complete());
        index.complete();
        assert!(index.is_complete());
        let names: Vec<_> = index.iter().map(|(key, _)| key.name.to_string()).collect();
        assert_eq!(names, ["stays", "written"]);
    }
}
