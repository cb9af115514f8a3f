//! What the hub shows: one snapshot of the whole fleet in memory, replaced as a whole.
//!
//! Who runs campaigns publishes; the HTTP API and the metrics read. A reader holds an `Arc` and
//! never waits for a writer. What did not change keeps its `Arc` from one snapshot to the next, so
//! that "what is new" is a comparison of pointers, however large the fleet is.

mod board;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use wavelift_api::live::{
    AgentStateName, AgentView, ClusterView, LeaderView, UpgradeKey, UpgradeView,
};

pub use board::Board;

use crate::preview::Preview;

/// Everything that is shown, as of one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Raised by the board whenever something changed; what a publisher writes here is ignored.
    pub sequence: u64,
    /// The hub that leads.
    pub leader: LeaderView,
    /// Every cluster's agent, by cluster name.
    pub agents: BTreeMap<String, Arc<AgentView>>,
    /// Every campaign.
    pub upgrades: BTreeMap<UpgradeKey, Arc<Upgrade>>,
}

/// One campaign with its clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// All of it but its clusters.
    pub view: UpgradeView,
    /// Its clusters by wave, then in the order in which they start.
    pub clusters: Vec<Arc<ClusterView>>,
    /// What its plans change.
    pub preview: Arc<Preview>,
}

// === impl Fleet ===

impl Fleet {
    /// One campaign.
    pub fn upgrade(&self, namespace: &str, name: &str) -> Option<&Arc<Upgrade>> {
        let key = UpgradeKey { namespace: namespace.to_owned(), name: name.to_owned() };
        self.upgrades.get(&key)
    }

    /// How many agents are in a state.
    pub fn agents_in(&self, state: AgentStateName) -> u32 {
        let count = self.agents.values().filter(|agent| agent.state == state).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

// === impl Upgrade ===

impl Upgrade {
    /// The campaign's key.
    pub fn key(&self) -> UpgradeKey {
        let row = &self.view.row;
        UpgradeKey { namespace: row.namespace.clone(), name: row.name.clone() }
    }

    /// One of its clusters.
    pub fn cluster(&self, name: &str) -> Option<&Arc<ClusterView>> {
        self.clusters.iter().find(|cluster| cluster.row.name == name)
    }
}
