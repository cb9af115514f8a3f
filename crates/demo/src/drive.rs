//! The campaign: its object, and its way through the stages as a person would take it.

mod object;

use std::sync::Arc;

use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::watch;
use wavelift_api::{FleetUpgrade, live::PhaseName};
use wavelift_hub::view::{Fleet, Upgrade};

pub use object::{NAME, object};

use crate::fleet::NAMESPACE;

/// Why a campaign cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused something.
    #[error("cannot {doing} the FleetUpgrade")]
    Kubernetes {
        /// What was being done.
        doing: &'static str,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
    /// The hub is gone.
    #[error("the hub ended before the campaign did")]
    HubGone,
    /// The preview has no digest to consent to.
    #[error("the hub gave no plan digest")]
    NoDigest,
}

/// Drives one campaign.
#[derive(Debug)]
pub struct Driver {
    api: Api<FleetUpgrade>,
    board: watch::Receiver<Arc<Fleet>>,
}

impl Driver {
    /// A driver that acts through `client` and reads `board`.
    pub fn new(client: Client, board: watch::Receiver<Arc<Fleet>>) -> Self {
        Self { api: Api::namespaced(client, NAMESPACE), board }
    }

    /// Waits until `agents` agents are connected.
    pub async fn agents(&mut self, agents: usize) -> Result<(), Error> {
        let connected = |fleet: &Arc<Fleet>| {
            fleet.agents_in(wavelift_api::live::AgentStateName::Connected) as usize >= agents
        };
        self.board.wait_for(connected).await.map(drop).map_err(|_| Error::HubGone)
    }

    /// Makes the campaign; it begins in stage Preview.
    pub async fn create(&self, object: &FleetUpgrade) -> Result<(), Error> {
        let created = self.api.create(&PostParams::default(), object).await;
        created.map(drop).map_err(|source| failed("make", source))
    }

    /// Moves the campaign to stage Preflight.
    pub async fn preflight(&self) -> Result<(), Error> {
        self.patch("move", json!({"spec": {"stage": "Preflight"}})).await
    }

    /// Consents to the plan as it is and begins.
    pub async fn launch(&self) -> Result<(), Error> {
        let digest = self.upgrade().and_then(|u| u.view.plan_digest.clone());
        let digest = digest.ok_or(Error::NoDigest)?;
        self.patch("launch", json!({"spec": {"stage": "Rollout", "planDigest": digest}})).await
    }

    /// The campaign as the hub shows it now.
    pub fn upgrade(&self) -> Option<Arc<Upgrade>> {
        self.board.borrow().upgrade(NAMESPACE, NAME).cloned()
    }

    /// Waits until the campaign is in a phase that `wanted` names.
    pub async fn until(&self, wanted: impl Fn(PhaseName) -> bool) -> Result<Arc<Upgrade>, Error> {
        let mut board = self.board.clone();
        let there = |fleet: &Arc<Fleet>| {
            let upgrade = fleet.upgrade(NAMESPACE, NAME);
            upgrade.is_some_and(|upgrade| wanted(upgrade.view.row.phase))
        };
        let fleet = board.wait_for(there).await.map_err(|_| Error::HubGone)?;
        fleet.upgrade(NAMESPACE, NAME).cloned().ok_or(Error::HubGone)
    }

    async fn patch(&self, doing: &'static str, patch: serde_json::Value) -> Result<(), Error> {
        let params = PatchParams::default();
        let patched = self.api.patch(NAME, &params, &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|source| failed(doing, source))
    }
}

fn failed(doing: &'static str, source: kube::Error) -> Error {
    Error::Kubernetes { doing, source: Box::new(source) }
}

/// True when nothing more will happen by itself.
pub fn is_ended(phase: PhaseName) -> bool {
    wavelift_core::campaign::Phase::from(phase).is_ended()
}
