//! What goes to the hub: transitions through the outbox, percent if there is room.

use bytes::Bytes;
use kube::ResourceExt as _;
use tracing::{debug, warn};
use wavelift_api::{ClusterUpgrade, ClusterUpgradeStatus, cluster_upgrade::Origin};
use wavelift_core::state::ClusterState;

use super::{Executor, fence};
use crate::{
    journal,
    link::{AgentReport, Finality, Progress, StatusReport},
};

impl Executor {
    /// Reports a transition; the link repeats it until the hub has made it durable.
    ///
    /// False when it has to be tried again.
    pub(super) fn tell(&mut self, upgrade: &ClusterUpgrade, status: &ClusterUpgradeStatus) -> bool {
        let Some(link) = &self.link else { return true };
        let (Some(fence), Some(key)) =
            (fence(upgrade), journal::key(upgrade, self.settings.cluster.as_str()))
        else {
            return true;
        };
        let status_json = match serde_json::to_vec(status) {
            Ok(json) => Bytes::from(json),
            Err(error) => {
                warn!(%error, "a status cannot be written as JSON");
                return true;
            }
        };
        let is_last = status.state.is_some_and(|state| ClusterState::from(state).is_ended());
        let report = StatusReport {
            fence,
            revision: status.revision(),
            finality: if is_last { Finality::Terminal } else { Finality::Running },
            upgrade: key,
            status_json,
        };
        let reported = link.report(report);
        if let Err(error) = &reported {
            warn!(upgrade = upgrade.name_any(), %error, "a status waits for its turn");
        }
        if reported.is_ok() {
            self.reported.insert(upgrade.name_any(), status.revision());
        }
        reported.is_ok()
    }

    /// Tells how far the step is; lost without harm.
    pub(super) fn progress(&mut self, upgrade: &ClusterUpgrade, step: usize, percent: u8) {
        let Some(running) = &mut self.running else { return };
        let is_news = running.shown.replace((step, percent)) != Some((step, percent));
        if upgrade.spec.origin != Origin::Hub || !is_news {
            return;
        }
        let (Some(link), Some(status)) = (&self.link, &upgrade.status) else { return };
        let (Some(fence), Some(key)) =
            (fence(upgrade), journal::key(upgrade, self.settings.cluster.as_str()))
        else {
            return;
        };
        let state = status.state.map_or("", |state| ClusterState::from(state).as_str());
        let progress = Progress {
            fence,
            revision: status.revision(),
            upgrade: key,
            step_index: u32::try_from(step).unwrap_or(u32::MAX),
            percent,
            state: state.to_owned(),
        };
        if link.try_send(AgentReport::Progress(progress)).is_err() {
            debug!("no room for progress");
        }
    }
}
