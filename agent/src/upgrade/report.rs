//! What goes to the hub: transitions through the outbox, percent and words if there is room.

use bytes::Bytes;
use jiff::SignedDuration;
use kube::ResourceExt as _;
use tokio::time::Instant;
use tracing::{debug, warn};
use wavelift_api::{ClusterUpgrade, ClusterUpgradeStatus, cluster_upgrade::Origin};
use wavelift_core::state::ClusterState;
use wavelift_runtime::tokens::TokenBucket;

use super::{Executor, RETRY, Wake, fence};
use crate::{
    drivers::olm_v0::decide::later,
    journal,
    link::{AgentReport, Finality, Progress, StatusReport},
};

/// What is said between two transitions: so much at once, as OLM's changes come, and so much a second
/// when they do not end.
const WORDS_BURST: u32 = 10;
const WORDS_PER_SECOND: f64 = 2.0;

pub(super) fn pace() -> TokenBucket {
    TokenBucket::new(WORDS_BURST, WORDS_PER_SECOND)
}

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

    /// Tells how far the step is and what is said of it; lost without harm. When it is too soon for
    /// that, it says when it is not.
    pub(super) fn progress(
        &mut self,
        upgrade: &ClusterUpgrade,
        index: usize,
        next: &ClusterUpgradeStatus,
    ) -> Wake {
        let (Some(running), Some(step)) = (&mut self.running, next.steps.get(index)) else {
            return Wake::default();
        };
        let (Some(link), Some(status)) = (&self.link, &upgrade.status) else {
            return Wake::default();
        };
        if upgrade.spec.origin != Origin::Hub {
            return Wake::default();
        }
        let words = Box::new((
            index,
            ClusterUpgradeStatus {
                message: next.message.clone(),
                steps: vec![step.clone()],
                operator_conditions: next.operator_conditions.clone(),
                ..ClusterUpgradeStatus::default()
            },
        ));
        if running.said.as_ref() == Some(&words) {
            return Wake::default();
        }
        let (Some(fence), Some(key)) =
            (fence(upgrade), journal::key(upgrade, self.settings.cluster.as_str()))
        else {
            return Wake::default();
        };
        if let Err(wait) = running.pace.try_take(Instant::now()) {
            let wait = wait.mul_f64(self.clock.factor().max(0.0));
            let wait = SignedDuration::try_from(wait).unwrap_or(RETRY);
            return Wake::at(later(self.clock.now(), wait));
        }
        let Ok(words_json) = serde_json::to_vec(&words.1).map(Bytes::from) else {
            return Wake::default();
        };
        let state = status.state.map_or("", |state| ClusterState::from(state).as_str());
        let progress = Progress {
            fence,
            revision: status.revision(),
            upgrade: key,
            step_index: u32::try_from(index).unwrap_or(u32::MAX),
            percent: u8::try_from(step.percent.clamp(0, 100)).unwrap_or(0),
            state: state.to_owned(),
            words_json,
        };
        if link.try_send(AgentReport::Progress(progress)).is_err() {
            debug!("no room for progress");
            return Wake::at(later(self.clock.now(), RETRY));
        }
        running.said = Some(words);
        Wake::default()
    }
}
