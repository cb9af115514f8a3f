//! What a message or a status belongs to, and which of two is newer.
//!
//! A status counts only if it carries the current fence and a newer revision; an agent obeys only
//! a leader whose term is not lower than the highest it has seen.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::Uid;

/// The (FleetUpgrade uid, epoch, attempt) that a message or status belongs to.
///
/// The leader raises the epoch on entering Rollout and on each new consent; a retry raises the
/// attempt of one cluster; pause, freeze and edits of waves raise nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// The FleetUpgrade's uid (for an upgrade with no hub, the ClusterUpgrade's own).
    pub uid: Uid,
    /// Raised on entering Rollout and on each new consent.
    pub epoch: u64,
    /// Raised by a retry.
    pub attempt: u32,
}

/// Where a status stands in its agent's life: boot first, then sequence.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Stored in the local ClusterUpgrade and raised at each agent start.
    pub boot: u64,
    /// Raised at each status of one boot.
    pub sequence: u64,
}

/// The leader's number, raised at each change of leader.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Term(pub u64);

/// What to do with a status that has just arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is news.
    Accept,
    /// It belongs to another campaign, epoch or attempt.
    OtherFence,
    /// The same revision has been taken already: acknowledge it again, change nothing.
    Duplicate,
    /// A newer revision has been taken already.
    Stale,
}

/// Judges a status by the current fence and the last revision that was taken.
pub fn admit(
    current: &Fence,
    taken: Option<Revision>,
    fence: &Fence,
    revision: Revision,
) -> Admission {
    if fence != current {
        return Admission::OtherFence;
    }
    match taken {
        Some(taken) if revision == taken => Admission::Duplicate,
        Some(taken) if revision < taken => Admission::Stale,
        Some(_) | None => Admission::Accept,
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.uid, self.epoch, self.attempt)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.boot, self.sequence)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Term {
    /// The term of the leader after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(uid: &str, epoch: u64, attempt: u32) -> Fence {
        Fence { uid: Uid::try_from(uid).unwrap(), epoch, attempt }
    }

    fn revision(boot: u64, sequence: u64) -> Revision {
        Revision { boot, sequence }
    }

    #[test]
    fn a_status_counts_only_with_the_current_fence_and_a_newer_revision() {
        let current = fence("u", 2, 1);
        let check = |taken, other: &Fence, revision, expected| {
            assert_eq!(admit(&current, taken, other, revision), expected);
        };
        check(None, &current, revision(1, 1), Admission::Accept);
        check(Some(revision(1, 1)), &current, revision(1, 2), Admission::Accept);
        check(Some(revision(1, 2)), &current, revision(1, 2), Admission::Duplicate);
        check(Some(revision(1, 2)), &current, revision(1, 1), Admission::Stale);
        // A restarted agent begins its sequence again with a higher boot.
        check(Some(revision(1, 9)), &current, revision(2, 1), Admission::Accept);
        check(Some(revision(2, 1)), &current, revision(1, 10), Admission::Stale);
        for other in [fence("v", 2, 1), fence("u", 1, 1), fence("u", 3, 1), fence("u", 2, 0)] {
            check(None, &other, revision(9, 9), Admission::OtherFence);
        }
    }
}
