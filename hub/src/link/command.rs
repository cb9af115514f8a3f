//! What the hub tells an agent, in the hub's own types. The term is added by the link.

use bytes::Bytes;
use wavelift_core::fence::{Fence, Revision};

use super::event::UpgradeKey;

/// A message to one agent. All are safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubCommand {
    /// Asks for the content of an inventory.
    RequestInventory {
        /// Its digest.
        digest: String,
    },
    /// Asks for the content of a catalog.
    RequestCatalog {
        /// Its digest.
        digest: String,
    },
    /// Asks for a piece of a catalog: what it holds beside its graph.
    RequestPiece {
        /// Its digest.
        digest: String,
    },
    /// Gives the cluster a ClusterUpgrade to carry out.
    Assign(Assignment),
    /// Steers a ClusterUpgrade that was assigned.
    Control(Control),
    /// Asks for preflight checks.
    Check(CheckRequest),
    /// A status is durable here.
    Ack {
        /// The status' fence.
        fence: Fence,
        /// The status' revision.
        revision: Revision,
    },
}

/// A ClusterUpgrade to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// What it belongs to.
    pub fence: Fence,
    /// The ClusterUpgrade.
    pub upgrade: UpgradeKey,
    /// Its spec document, JSON.
    pub spec_json: Bytes,
}

/// How to steer a ClusterUpgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// What it belongs to.
    pub fence: Fence,
    /// The ClusterUpgrade.
    pub upgrade: UpgradeKey,
    /// What to do.
    pub action: ControlAction,
}

/// What to do with a ClusterUpgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlAction {
    /// Go on after a freeze.
    Continue,
    /// Stop at the next safe point and keep everything.
    Freeze,
    /// Stop at the next safe point and end.
    Cancel,
    /// Drop the local object: the hub needs no more word of it.
    Forget,
}

/// Preflight checks to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest {
    /// Unique for the hub, at most 128 characters.
    pub request_id: String,
    /// What it belongs to.
    pub fence: Fence,
    /// The ClusterUpgrade that would be assigned.
    pub upgrade: UpgradeKey,
    /// Its spec document, JSON.
    pub spec_json: Bytes,
}

/// A question to one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What is asked for.
    pub kind: String,
    /// Empty where the kind has none.
    pub namespace: String,
    /// Empty for all.
    pub name: String,
}
