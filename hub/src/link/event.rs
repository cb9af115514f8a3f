//! What agents tell the hub, in the hub's own types.

use std::fmt;

use bytes::Bytes;
use wavelift_core::{
    fence::{Fence, Revision},
    ids::{ClusterName, Namespace, UpgradeName},
};

/// A session of one cluster's agent, unique in this process. A later one has a higher id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Something that came over the link or happened to it.
#[derive(Debug, Clone)]
pub enum LinkEvent {
    /// A cluster's agent has a session. A second one of the same cluster takes the first's place.
    Connected {
        /// The cluster, from the certificate.
        cluster: ClusterName,
        /// The session.
        session: SessionId,
        /// What the agent says of itself.
        hello: AgentHello,
    },
    /// The last session of a cluster has ended. Of no interest if a later one is known already.
    Disconnected {
        /// The cluster.
        cluster: ClusterName,
        /// The session that ended.
        session: SessionId,
        /// Why.
        reason: SessionEnd,
    },
    /// A sign of life.
    Heartbeat {
        /// The cluster.
        cluster: ClusterName,
    },
    /// What the agent's inventory is now; its content can be asked for.
    InventoryDigest {
        /// The cluster.
        cluster: ClusterName,
        /// `sha256:<hex>`.
        digest: String,
    },
    /// An inventory or a catalog, whole. Whether it has this digest is for the receiver to see.
    Upload {
        /// The cluster.
        cluster: ClusterName,
        /// Which of the two.
        content: Content,
        /// `sha256:<hex>`, as the agent calls it.
        digest: String,
        /// What was sent.
        bytes: Bytes,
    },
    /// An inventory or a catalog that did not come whole. It can be asked for again.
    UploadDropped {
        /// The cluster.
        cluster: ClusterName,
        /// Which of the two.
        content: Content,
        /// What it was called.
        digest: String,
        /// Why it was dropped.
        reason: UploadDropped,
    },
    /// A piece of a catalog that was asked for and is not there.
    PieceMissing {
        /// The cluster.
        cluster: ClusterName,
        /// What was asked for.
        digest: String,
        /// Why, for people.
        reason: String,
    },
    /// The state of a ClusterUpgrade at a transition; to be acknowledged once durable.
    Status {
        /// The cluster.
        cluster: ClusterName,
        /// The status.
        status: StatusReport,
    },
    /// How far a running upgrade is.
    Progress {
        /// The cluster.
        cluster: ClusterName,
        /// How far.
        progress: Progress,
    },
    /// The answer to a check request.
    CheckReport {
        /// The cluster.
        cluster: ClusterName,
        /// The answer.
        report: CheckReport,
    },
    /// Somebody was refused. Dropped when nobody reads fast enough; the metric counts all.
    Refused(Refused),
}

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHello {
    /// Its version.
    pub agent_version: String,
    /// The version of its cluster's API server; empty when not known.
    pub kube_version: String,
    /// Its boot, the first part of its revisions.
    pub boot: u64,
}

/// A ClusterUpgrade on the hub.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpgradeKey {
    /// The managed cluster's namespace.
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
    /// The step's state in words of the API.
    pub state: String,
    /// What is said of it, as JSON; empty from agents that do not say it.
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

/// What comes in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A cluster's inventory.
    Inventory,
    /// A catalog's canonical content.
    Catalog,
    /// A piece of what a catalog holds beside its graph.
    Piece,
}

/// Why an upload did not come whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadDropped {
    /// It is longer than the limit.
    TooLarge,
    /// Its parts did not come in order, or the session ended in between.
    Incomplete,
    /// All sessions' unfinished uploads together have reached their limit.
    NoRoom,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The agent closed it.
    ClosedByAgent,
    /// The connection broke.
    ConnectionLost,
    /// The agent gave no sign of life.
    Silent,
    /// The cluster opened another session.
    Replaced,
    /// The hub asked the agent to leave.
    Drained,
    /// The hub does not lead any more.
    NotLeader,
    /// The certificate has reached its end.
    CertificateExpired,
    /// The agent broke a rule; the kind of the refusal.
    Refused(&'static str),
}

/// Somebody was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The cluster, where the certificate was good enough to name one.
    pub cluster: Option<ClusterName>,
    /// The refusal's kind, as in the metric.
    pub kind: &'static str,
    /// What was wrong and what to do, for people.
    pub message: String,
}

// === impl SessionEnd ===

impl SessionEnd {
    /// A short name for metrics and logs.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ClosedByAgent => "closed_by_agent",
            Self::ConnectionLost => "connection_lost",
            Self::Silent => "silent",
            Self::Replaced => "replaced",
            Self::Drained => "drained",
            Self::NotLeader => "not_leader",
            Self::CertificateExpired => "certificate_expired",
            Self::Refused(_) => "refused",
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for UpgradeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
