//! The local ClusterUpgrades: what the agent was given, and what it has come to.
//!
//! They are the agent's only memory. Assignments are written here before anything is done about
//! them, statuses before they are reported, and the hub's acknowledgement of a last word, so that
//! an agent that starts anew knows what is still to be said.

mod accept;

use std::collections::BTreeMap;

use kube::{Api, Client, ResourceExt as _, api::ListParams};
use serde_json::json;
use wavelift_api::{ClusterUpgrade, ClusterUpgradeSpec, ClusterUpgradeStatus, labels};
use wavelift_core::{
    fence::{Fence, Revision, Term},
    ids::{Namespace, UpgradeName},
    state::ClusterState,
};
use wavelift_runtime::ssa::{self, FieldManager, Ownership};

pub use self::accept::{Refusal, judge};
use crate::link::{Assignment, Control, ControlAction, UpgradeKey};

/// On local ClusterUpgrades: the namespace of their twin on the hub.
pub const HUB_NAMESPACE: &str = "wavelift.io/hub-namespace";
/// On local ClusterUpgrades: the last word that the hub has made durable, `<fence> <revision>`.
pub const ACKNOWLEDGED: &str = "wavelift.io/acknowledged";
/// On local ClusterUpgrades: the hub needs no more word of it.
pub const FORGOTTEN: &str = "wavelift.io/forgotten";

/// How often a status is written again because somebody else wrote in between.
const ATTEMPTS: usize = 4;
const MANAGER: FieldManager = FieldManager(labels::MANAGER_AGENT);

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list of ClusterUpgrades could not be read.
    #[error("cannot list ClusterUpgrades")]
    List(#[source] Box<kube::Error>),
    /// One could not be read.
    #[error("cannot read ClusterUpgrade `{name}`")]
    Read {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// One could not be written.
    #[error("cannot write ClusterUpgrade `{name}`")]
    Write {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: Box<ssa::Error>,
    },
    /// The hub's wish was refused.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
}

/// The local ClusterUpgrades.
#[derive(Debug, Clone)]
pub struct Journal {
    api: Api<ClusterUpgrade>,
    namespace: String,
}

/// What the agent knows when it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Start {
    /// This life's number.
    pub boot: u64,
    /// The highest term that was obeyed.
    pub term: Term,
}

/// What became of a status that was to be written.
#[derive(Debug)]
pub enum Written {
    /// It is there.
    Done(Box<ClusterUpgrade>),
    /// The spec has changed meanwhile, or the object is gone: decide again.
    Superseded,
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Refused(refusal) => refusal.kind(),
        }
    }
}

// === impl Journal ===

impl Journal {
    /// The journal in this namespace.
    pub fn new(client: &Client, namespace: &Namespace) -> Self {
        let api = Api::namespaced(client.clone(), namespace.as_str());
        Self { api, namespace: namespace.to_string() }
    }

    /// The namespace it is in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads what the life before this one left.
    pub async fn start(&self) -> Result<Start, Error> {
        let list = self.api.list(&ListParams::default()).await;
        let list = list.map_err(|error| Error::List(Box::new(error)))?;
        let status = |upgrade: &ClusterUpgrade| upgrade.status.as_ref().map(|s| s.revision().boot);
        let boot = list.iter().filter_map(status).max().unwrap_or(0);
        let term = list.iter().filter_map(term).max().unwrap_or_default();
        Ok(Start { boot: boot.saturating_add(1), term })
    }

    /// Writes an assignment down. Nothing is written when it is there already.
    pub async fn assign(&self, assignment: &Assignment, highest: Term) -> Result<(), Error> {
        let name = assignment.upgrade.name.as_str();
        let current = self.read(name).await?;
        let spec = judge(current.as_ref(), assignment, highest)?;
        let is_same = current
            .as_ref()
            .is_some_and(|current| current.spec == spec && term(current) == Some(assignment.term));
        if is_same {
            return Ok(());
        }
        let uid = |spec: &ClusterUpgradeSpec| spec.fleet_upgrade.as_ref().map(|f| f.uid.clone());
        if current.is_some_and(|current| uid(&current.spec) != uid(&spec)) {
            // What an earlier campaign of this name left would be taken for this one's status.
            self.delete(name).await?;
        }
        self.apply(assignment, &spec).await
    }

    async fn apply(&self, assignment: &Assignment, spec: &ClusterUpgradeSpec) -> Result<(), Error> {
        let name = assignment.upgrade.name.as_str();
        let reference = spec.fleet_upgrade.clone().unwrap_or_default();
        let document = json!({
            "apiVersion": format!("{}/{}", wavelift_api::GROUP, wavelift_api::VERSION),
            "kind": "ClusterUpgrade",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {
                    labels::FLEETUPGRADE_UID: reference.uid,
                    labels::FLEETUPGRADE_NAMESPACE: reference.namespace,
                },
                "annotations": {
                    labels::TERM: assignment.term.to_string(),
                    labels::FLEETUPGRADE_NAME: reference.name,
                    HUB_NAMESPACE: assignment.upgrade.namespace.as_str(),
                },
            },
            "spec": spec,
        });
        let applied = MANAGER.apply(&self.api, name, &document, Ownership::TakeOver).await;
        applied.map(drop).map_err(|source| self.failed(name, source))
    }

    /// Writes the hub's wish down.
    pub async fn control(&self, control: &Control, highest: Term) -> Result<(), Error> {
        let name = control.upgrade.name.as_str();
        let Some(current) = self.read(name).await? else { return Ok(()) };
        accept::judge_control(&current, control, highest)?;
        let word = match control.action {
            ControlAction::Continue => "Running",
            ControlAction::Freeze => "Frozen",
            ControlAction::Cancel => "Cancelled",
            ControlAction::Forget => return self.forget(&current).await,
        };
        let patch = json!({
            "metadata": {"annotations": {labels::TERM: control.term.to_string()}},
            "spec": {"control": word},
        });
        self.merge(name, &patch).await
    }

    /// Drops an upgrade that has ended; one that has not is cancelled first.
    async fn forget(&self, current: &ClusterUpgrade) -> Result<(), Error> {
        let name = current.name_any();
        let has_begun = current.status.as_ref().is_some_and(|s| s.start_time.is_some());
        if !has_begun || is_terminal(current) {
            return self.delete(&name).await;
        }
        let patch = json!({
            "metadata": {"annotations": {FORGOTTEN: "true"}},
            "spec": {"control": "Cancelled"},
        });
        self.merge(&name, &patch).await
    }

    /// Deletes an upgrade; one that is gone already is fine.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.api.delete(name, &kube::api::DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(error) => match ssa::Error::new(name, error) {
                ssa::Error::NotFound(_) => Ok(()),
                source @ (ssa::Error::Owned { .. }
                | ssa::Error::Stale(_)
                | ssa::Error::Exists(_)
                | ssa::Error::Invalid { .. }
                | ssa::Error::Forbidden { .. }
                | ssa::Error::Api { .. }) => Err(self.failed(name, source)),
            },
        }
    }

    /// Writes down that the hub has made a last word durable.
    pub async fn acknowledge(
        &self,
        upgrade: &UpgradeKey,
        fence: &Fence,
        revision: Revision,
    ) -> Result<(), Error> {
        let name = upgrade.name.as_str();
        let Some(current) = self.read(name).await? else { return Ok(()) };
        let is_last = is_terminal(&current)
            && current.status.as_ref().is_some_and(|status| status.revision() == revision);
        let word = acknowledged(fence, revision);
        if !is_last || current.annotations().get(ACKNOWLEDGED) == Some(&word) {
            return Ok(());
        }
        self.merge(name, &json!({"metadata": {"annotations": {ACKNOWLEDGED: word}}})).await
    }

    /// Writes a status, unless the spec that it was made for has changed.
    pub async fn write_status(
        &self,
        upgrade: &ClusterUpgrade,
        status: ClusterUpgradeStatus,
    ) -> Result<Written, Error> {
        let name = upgrade.name_any();
        let mut object = upgrade.clone();
        object.status = Some(status);
        for _ in 0..ATTEMPTS {
            match MANAGER.replace_status(&self.api, &object).await {
                Ok(written) => return Ok(Written::Done(Box::new(written))),
                Err(ssa::Error::NotFound(_)) => return Ok(Written::Superseded),
                Err(ssa::Error::Stale(_)) => {
                    let current = self.read(&name).await?;
                    let same = current.filter(|current| {
                        current.metadata.uid == upgrade.metadata.uid
                            && current.metadata.generation == upgrade.metadata.generation
                    });
                    let Some(current) = same else { return Ok(Written::Superseded) };
                    object.metadata = current.metadata;
                }
                Err(
                    source @ (ssa::Error::Owned { .. }
                    | ssa::Error::Exists(_)
                    | ssa::Error::Invalid { .. }
                    | ssa::Error::Forbidden { .. }
                    | ssa::Error::Api { .. }),
                ) => return Err(self.failed(&name, source)),
            }
        }
        Ok(Written::Superseded)
    }

    async fn merge(&self, name: &str, patch: &serde_json::Value) -> Result<(), Error> {
        match MANAGER.merge(&self.api, name, patch).await {
            Ok(_) | Err(ssa::Error::NotFound(_)) => Ok(()),
            Err(
                source @ (ssa::Error::Owned { .. }
                | ssa::Error::Stale(_)
                | ssa::Error::Exists(_)
                | ssa::Error::Invalid { .. }
                | ssa::Error::Forbidden { .. }
                | ssa::Error::Api { .. }),
            ) => Err(self.failed(name, source)),
        }
    }

    /// All upgrades as they are now.
    pub async fn all(&self) -> Result<Vec<ClusterUpgrade>, Error> {
        let list = self.api.list(&ListParams::default()).await;
        Ok(list.map_err(|error| Error::List(Box::new(error)))?.items)
    }

    /// One upgrade as it is now.
    pub async fn read(&self, name: &str) -> Result<Option<ClusterUpgrade>, Error> {
        let read = self.api.get_opt(name).await;
        read.map_err(|error| Error::Read { name: name.to_owned(), source: Box::new(error) })
    }

    #[expect(clippy::unused_self, reason = "reads as the journal's failure where it is used")]
    fn failed(&self, name: &str, source: ssa::Error) -> Error {
        Error::Write { name: name.to_owned(), source: Box::new(source) }
    }
}

/// The term that an upgrade was given by.
pub fn term(upgrade: &ClusterUpgrade) -> Option<Term> {
    upgrade.annotations().get(labels::TERM)?.parse().ok().map(Term)
}

/// Whether an upgrade has ended, for its present fence.
pub fn is_terminal(upgrade: &ClusterUpgrade) -> bool {
    let Some(status) = &upgrade.status else { return false };
    let is_present = status.epoch == upgrade.spec.epoch && status.attempt == upgrade.spec.attempt;
    is_present && status.state.is_some_and(|state| ClusterState::from(state).is_ended())
}

/// Whether the hub has made the last word of an upgrade durable.
pub fn is_acknowledged(upgrade: &ClusterUpgrade, fence: &Fence) -> bool {
    let Some(status) = &upgrade.status else { return false };
    let word = acknowledged(fence, status.revision());
    upgrade.annotations().get(ACKNOWLEDGED) == Some(&word)
}

fn acknowledged(fence: &Fence, revision: Revision) -> String {
    format!("{fence} {revision}")
}

/// The upgrade's twin on the hub.
pub fn key(upgrade: &ClusterUpgrade, cluster: &str) -> Option<UpgradeKey> {
    let empty = BTreeMap::new();
    let annotations = upgrade.metadata.annotations.as_ref().unwrap_or(&empty);
    let namespace = annotations.get(HUB_NAMESPACE).map_or(cluster, String::as_str);
    Some(UpgradeKey {
        namespace: Namespace::try_from(namespace).ok()?,
        name: UpgradeName::try_from(upgrade.name_any()).ok()?,
    })
}
