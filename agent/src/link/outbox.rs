//! Statuses that the hub has not acknowledged: the latest of each upgrade, sent until it is.
//!
//! It lives in memory alone. After a restart the agent finds the same statuses in its local
//! ClusterUpgrades and reports them again.

use std::collections::BTreeMap;

use wavelift_core::fence::{Fence, Revision};

use super::message::{StatusReport, UpgradeKey};

/// There are too many upgrades with an unacknowledged status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{max} upgrades wait for the hub's acknowledgement already")]
pub struct OutboxFull {
    /// The limit.
    pub max: usize,
}

#[derive(Debug)]
pub(super) struct Outbox {
    waiting: BTreeMap<UpgradeKey, Waiting>,
    max: usize,
}

#[derive(Debug)]
struct Waiting {
    report: StatusReport,
    is_due: bool,
}

impl Outbox {
    pub(super) fn new(max: usize) -> Self {
        Self { waiting: BTreeMap::new(), max }
    }

    /// Takes a status in the place of an older one of the same upgrade.
    pub(super) fn put(&mut self, report: StatusReport) -> Result<(), OutboxFull> {
        let former = self.waiting.get(&report.upgrade).map(|waiting| &waiting.report);
        match former {
            Some(former) if former.fence == report.fence && former.revision >= report.revision => {
                return Ok(());
            }
            None if self.waiting.len() >= self.max => return Err(OutboxFull { max: self.max }),
            Some(_) | None => {}
        }
        self.waiting.insert(report.upgrade.clone(), Waiting { report, is_due: true });
        Ok(())
    }

    /// Drops the status that is acknowledged; the upgrade it was of.
    pub(super) fn acknowledge(&mut self, fence: &Fence, revision: Revision) -> Option<UpgradeKey> {
        let upgrade = self.waiting.iter().find_map(|(upgrade, Waiting { report, .. })| {
            (report.fence == *fence && report.revision == revision).then(|| upgrade.clone())
        })?;
        self.waiting.remove(&upgrade);
        Some(upgrade)
    }

    /// The next status to send, which then waits for its acknowledgement.
    pub(super) fn next(&mut self) -> Option<StatusReport> {
        let waiting = self.waiting.values_mut().find(|waiting| waiting.is_due)?;
        waiting.is_due = false;
        Some(waiting.report.clone())
    }

    pub(super) fn has_due(&self) -> bool {
        self.waiting.values().any(|waiting| waiting.is_due)
    }

    /// Everything is to be sent again.
    pub(super) fn repeat(&mut self) {
        for waiting in self.waiting.values_mut() {
            waiting.is_due = true;
        }
    }

    pub(super) fn forget(&mut self, upgrade: &UpgradeKey) {
        self.waiting.remove(upgrade);
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wavelift_core::ids::{Namespace, Uid, UpgradeName};

    use super::*;
    use crate::link::message::Finality;

    fn fence(epoch: u64) -> Fence {
        Fence { uid: Uid::try_from("u").unwrap(), epoch, attempt: 0 }
    }

    fn revision(boot: u64, sequence: u64) -> Revision {
        Revision { boot, sequence }
    }

    fn report(name: &str, epoch: u64, boot: u64, sequence: u64) -> StatusReport {
        StatusReport {
            fence: fence(epoch),
            revision: revision(boot, sequence),
            finality: Finality::Running,
            upgrade: UpgradeKey {
                namespace: Namespace::try_from("prod-1").unwrap(),
                name: UpgradeName::try_from(name).unwrap(),
            },
            status_json: Bytes::new(),
        }
    }

    #[test]
    fn the_latest_of_each_upgrade_is_sent_until_it_is_acknowledged() {
        let mut outbox = Outbox::new(10);
        outbox.put(report("a", 1, 1, 1)).unwrap();
        outbox.put(report("b", 1, 1, 2)).unwrap();
        outbox.put(report("a", 1, 1, 3)).unwrap();
        assert_eq!(outbox.next(), Some(report("a", 1, 1, 3)));
        assert_eq!(outbox.next(), Some(report("b", 1, 1, 2)));
        assert_eq!(outbox.next(), None);
        outbox.repeat();
        assert!(outbox.has_due());
        assert_eq!(
            outbox.acknowledge(&fence(1), revision(1, 3)),
            Some(report("a", 1, 1, 3).upgrade)
        );
        assert_eq!(outbox.next(), Some(report("b", 1, 1, 2)));
        assert_eq!(outbox.len(), 1);
    }

    #[test]
    fn only_the_exact_fence_and_revision_acknowledge() {
        let mut outbox = Outbox::new(10);
        outbox.put(report("a", 2, 1, 3)).unwrap();
        assert_eq!(outbox.acknowledge(&fence(1), revision(1, 3)), None);
        assert_eq!(outbox.acknowledge(&fence(2), revision(1, 2)), None);
        assert_eq!(outbox.acknowledge(&fence(2), revision(2, 3)), None);
        assert_eq!(outbox.len(), 1);
    }

    #[test]
    fn an_older_revision_of_the_same_fence_is_no_news_but_a_new_fence_is() {
        let mut outbox = Outbox::new(10);
        outbox.put(report("a", 1, 2, 5)).unwrap();
        assert!(outbox.next().is_some());
        for old in [report("a", 1, 2, 5), report("a", 1, 2, 4), report("a", 1, 1, 9)] {
            outbox.put(old).unwrap();
            assert_eq!(outbox.next(), None);
        }
        outbox.put(report("a", 2, 2, 1)).unwrap();
        assert_eq!(outbox.next(), Some(report("a", 2, 2, 1)));
    }

    #[test]
    fn a_full_outbox_takes_news_of_its_own_upgrades_alone() {
        let mut outbox = Outbox::new(1);
        outbox.put(report("a", 1, 1, 1)).unwrap();
        assert_eq!(outbox.put(report("b", 1, 1, 2)), Err(OutboxFull { max: 1 }));
        outbox.put(report("a", 1, 1, 3)).unwrap();
        outbox.forget(&report("a", 1, 1, 1).upgrade);
        outbox.put(report("b", 1, 1, 2)).unwrap();
    }
}
