//! What the plans of a campaign change, over all its clusters.
//!
//! Clusters that see the same are one [`Group`]; each way of a package is compared once however
//! many groups take it. What the comparison needs (manifests of bundles, documents of packages)
//! comes from the clusters themselves, each piece once by its digest (`pieces`), and, where their
//! catalogs do not carry manifests, from bundle images (`images`). What cannot be had is shown as
//! missing, with the reason: never as "no change".

mod change;
mod differ;
mod group;
mod images;
mod made;
mod pieces;
mod report;
mod summary;

use std::sync::Arc;

use wavelift_api::live::BlockerKind;
use wavelift_core::ids::ClusterName;

pub(crate) use self::{
    differ::Counted,
    images::{Failure as ImageFailure, Fetched, Image, ImageRoom, Images, Named},
    pieces::{Found, Holders, Key as PieceKey, Piece, Pieces, Room, Shape},
    report::sections,
    summary::{counts, status},
};
pub use self::{
    group::{Graphs, Group, Planned, Seen, Unread, Version, Way, groups},
    made::{Bundle, Content, Made, Question},
    report::{Form, report},
};

/// Groups whose changes are computed; those of the fewest clusters are left out and counted.
pub(crate) const GROUPS_MAX: usize = 256;
/// Ways that are kept though nobody looks at them.
const MADE_MAX: usize = 1_024;

/// The preview of one campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Clusters of the campaign.
    pub clusters: u32,
    /// Those that have nothing to do.
    pub at_target: u32,
    /// The groups of those with a plan, most clusters first.
    pub groups: Vec<Arc<GroupPreview>>,
    /// Groups beyond the most that are compared, and their clusters.
    pub left_out: (u32, u32),
    /// What stands in the way of which cluster, by cluster.
    pub blockers: Vec<Blocker>,
}

/// One group and what its plan changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPreview {
    /// The group.
    pub group: Group,
    /// What each of its ways changes, in their order; `None` while it is being found out.
    pub made: Option<Vec<Arc<Made>>>,
}

/// Something in the way of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The cluster.
    pub cluster: ClusterName,
    /// What kind of thing.
    pub kind: BlockerKind,
    /// Why, for people.
    pub why: String,
}

/// What was compared, by what it was made from.
#[derive(Debug, Default)]
pub(crate) struct Previews {
    made: std::collections::BTreeMap<String, (Arc<Made>, u64)>,
    open: std::collections::BTreeSet<String>,
    queue: std::collections::VecDeque<Question>,
    tick: u64,
}

// === impl Preview ===

impl Preview {
    /// The group of this id.
    pub fn group(&self, id: &str) -> Option<&Arc<GroupPreview>> {
        self.groups.iter().find(|shown| shown.group.id == id)
    }

    /// The group that a cluster is in.
    pub fn group_of(&self, cluster: &str) -> Option<&Arc<GroupPreview>> {
        self.groups.iter().find(|shown| shown.group.clusters.iter().any(|c| c.as_str() == cluster))
    }

    /// Whether something is still being found out.
    pub fn is_making(&self) -> bool {
        self.groups.iter().any(|shown| shown.made.is_none())
    }
}

// === impl Previews ===

impl Previews {
    /// What a question was answered with; one that was not asked before is queued.
    pub(crate) fn made(&mut self, question: Question) -> Option<Arc<Made>> {
        self.tick += 1;
        if let Some((made, used)) = self.made.get_mut(question.key()) {
            *used = self.tick;
            return Some(Arc::clone(made));
        }
        if self.open.insert(question.key().to_owned()) {
            self.queue.push_back(question);
        }
        None
    }

    /// The next question.
    pub(crate) fn next(&mut self) -> Option<Question> {
        self.queue.pop_front()
    }

    /// A question has been answered.
    pub(crate) fn answered(&mut self, made: Made) {
        self.open.remove(made.key());
        if self.made.len() >= MADE_MAX {
            let oldest = self.made.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.made.remove(&key);
            }
        }
        self.tick += 1;
        self.made.insert(made.key().to_owned(), (Arc::new(made), self.tick));
    }

    /// A question could not be answered; it will be asked again.
    pub(crate) fn failed(&mut self) {
        self.open.clear();
        self.queue.clear();
    }
}
