//! What passes between the agent and its hub, in the agent's own types.

use std::{fmt, time::Duration};

use bytes::Bytes;
use wavelift_core::{
    fence::{Fence, Revision, Term},
    ids::{Namespace, UpgradeName},
};

/// Something for the hub. Sent once; what must arrive is a [`StatusReport`] and goes through
/// [`LinkHandle::report`](super::LinkHandle::report).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentReport {
    /// What the inventory is now, `sha256:<hex>`.
    InventoryDigest(String),
    /// The content of an inventory that was asked for; the link cuts it into parts.
    Inventory {
        /// The digest that was asked for.
        digest: String,
        /// The content.
        content: Bytes,
    },
    /// The content of a catalog that was asked for; the link cuts it into parts.
    Catalog {
        /// The digest that was asked for.
        digest: String,
        /// The content.
        content: Bytes,
    },
    /// The content of a piece of a catalog that was asked for; the link cuts it into parts.
    Piece {
        /// The digest that was asked for.
        digest: String,
        /// The content.
        content: Bytes,
    },
    /// A piece of a catalog that was asked for and is not here.
    PieceMissing {
        /// The digest that was asked for.
        digest: String,
        /// Why, for people; at most 1024 characters.
        reason: String,
    },
    /// How far a running upgrade is.
    Progress(Progress),
    /// The answer to a check request. If the link breaks just then, the hub asks again.
    CheckReport(CheckReport),
    /// The answer to a query.
    QueryAnswer {
        /// The query's id.
        id: u64,
        /// JSON, or why there is none.
        result: Result<Bytes, String>,
    },
}

/// A ClusterUpgrade on the hub.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpgradeKey {
    /// The managed cluster's namespace on the hub.
    pub namespace: Namespace,
    /// Its name.
    pub name: UpgradeName,
}

/// Whether an upgrade may still change by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    /// It may.
    Running,
    /// It will not.
    Terminal,
}

/// The state of a ClusterUpgrade at a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReport {
    /// What it belongs to.
    pub fence: Fence,
    /// Where it stands in the agent's life.
    pub revision: Revision,
    /// Whether it is the last word.
    pub finality: Finality,
    /// The ClusterUpgrade.
    pub upgrade: UpgradeKey,
    /// Its status document, JSON.
    pub status_json: Bytes,
}

/// How far a running upgrade is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What it belongs to.
    pub fence: Fence,
    /// Where it stands in the agent's life.
    pub revision: Revision,
    /// The ClusterUpgrade.
    pub upgrade: UpgradeKey,
    /// The plan's step, from 0.
    pub step_index: u32,
    /// Of that step, 0 to 100.
    pub percent: u8,
    /// The step's state in words of the API, at most 128 characters.
    pub state: String,
    /// What is said of it: a status with nothing but the message, this step and the operators'
    /// conditions.
    pub words_json: Bytes,
}

/// The answer to a check request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The request's id.
    pub request_id: String,
    /// What it belongs to.
    pub fence: Fence,
    /// A list of check results, JSON.
    pub results_json: Bytes,
}

/// Something from the hub. A term in it is never lower than one seen before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubCommand {
    /// A session has begun: tell the hub the inventory's digest again.
    Connected(Welcome),
    /// Send the content of an inventory.
    InventoryRequest {
        /// Its digest.
        digest: String,
    },
    /// Send the content of a catalog.
    CatalogRequest {
        /// Its digest.
        digest: String,
    },
    /// Send a piece of a catalog: what it holds beside its graph.
    PieceRequest {
        /// Its digest.
        digest: String,
    },
    /// Carry out a ClusterUpgrade.
    Assign(Assignment),
    /// Steer a ClusterUpgrade.
    Control(Control),
    /// Run preflight checks.
    Check(CheckRequest),
    /// Answer a question.
    Query(Query),
    /// A status is durable on the hub.
    Acknowledged {
        /// The ClusterUpgrade.
        upgrade: UpgradeKey,
        /// The status' fence.
        fence: Fence,
        /// The status' revision.
        revision: Revision,
    },
}

/// What the hub said when it took the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The leader's term.
    pub term: Term,
    /// The session, for logs.
    pub session: u64,
    /// How often to give a sign of life.
    pub heartbeat_interval: Duration,
    /// The longest message the hub takes.
    pub message_bytes_max: usize,
    /// How often to repeat a status that is not acknowledged.
    pub status_repeat: Duration,
    /// How often to look at the inventory anew, in upgrade time.
    pub inventory_period: Duration,
}

/// A ClusterUpgrade to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// What it belongs to.
    pub fence: Fence,
    /// The leader's term.
    pub term: Term,
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
    /// The leader's term.
    pub term: Term,
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
    /// Drop the local object.
    Forget,
}

/// Preflight checks to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest {
    /// To be repeated in the answer.
    pub request_id: String,
    /// What it belongs to.
    pub fence: Fence,
    /// The leader's term.
    pub term: Term,
    /// The ClusterUpgrade that would be assigned.
    pub upgrade: UpgradeKey,
    /// Its spec document, JSON.
    pub spec_json: Bytes,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// To be repeated in the answer.
    pub id: u64,
    /// What is asked for.
    pub kind: String,
    /// Empty where the kind has none.
    pub namespace: String,
    /// Empty for all.
    pub name: String,
}

impl fmt::Display for UpgradeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
