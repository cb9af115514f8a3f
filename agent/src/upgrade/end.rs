//! The end of an upgrade: approvals given back, the last word written.

use jiff::Timestamp;
use kube::ResourceExt as _;
use tracing::warn;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus,
    cluster_upgrade::{ClusterStateName, FailureStatus, StepStateName},
    convert::cut,
    labels,
    shared::{AfterUpgrade, InsightLevel},
};
use wavelift_core::{campaign, plan::Plan};

use super::{Executor, RETRY, Seen, Wake, namespaces, status};
use crate::{
    drivers::olm_v0::{
        Failure,
        apply::{self, Applied, Target},
        decide::later,
    },
    journal,
    mirror::Mirror,
    objects,
};

impl Executor {
    pub(super) async fn end_succeeded(
        &mut self,
        upgrade: &ClusterUpgrade,
        mut next: ClusterUpgradeStatus,
        plan: &Plan,
        seen: Seen<'_>,
    ) -> Result<Wake, journal::Error> {
        self.succeed(&mut next, "at the target");
        self.end(upgrade, next, Some(plan), seen).await
    }

    pub(super) async fn end_failed(
        &mut self,
        upgrade: &ClusterUpgrade,
        mut next: ClusterUpgradeStatus,
        at: Option<(usize, &Plan)>,
        failure: Failure,
        seen: Seen<'_>,
    ) -> Result<Wake, journal::Error> {
        let now = self.clock.now();
        let plan = at.map(|(_, plan)| plan);
        if let Some((index, _)) = at
            && let Some(step) = next.steps.get_mut(index)
        {
            step.state = StepStateName::Failed;
            step.message = Some(cut(&failure.message, 2048));
            step.completion_time = Some(now);
        }
        next.state = Some(match failure.kind {
            campaign::Failure::Failed => ClusterStateName::Failed,
            campaign::Failure::Stalled => ClusterStateName::Stalled,
        });
        next.message = Some(failure.message.clone());
        next.completion_time = Some(now);
        told(&failure, now, &mut next);
        next.failure = Some(FailureStatus {
            kind: failure.kind.into(),
            reason: failure.reason.to_string(),
            message: cut(&failure.message, 2048),
            remediation: failure.reason.remediation().to_owned(),
            step: at.and_then(|(index, _)| i32::try_from(index).ok()),
        });
        self.end(upgrade, next, plan, seen).await
    }

    /// Gives approvals back if that is wanted, then writes the last word.
    pub(super) async fn end(
        &mut self,
        upgrade: &ClusterUpgrade,
        mut next: ClusterUpgradeStatus,
        plan: Option<&Plan>,
        seen: Seen<'_>,
    ) -> Result<Wake, journal::Error> {
        if !self.unpin_all(seen.mirror).await {
            return Ok(Wake::at(later(self.clock.now(), RETRY)));
        }
        if let Some(left) = &self.left_pinned {
            let message = next.message.take().unwrap_or_default();
            next.message = Some(format!("{message}; {left}"));
        }
        if upgrade.spec.after_upgrade == AfterUpgrade::Restore
            && let Some(plan) = plan
            && let Err(why) = self.restore(upgrade, plan, seen.mirror).await
        {
            let mut waiting = status::begin(upgrade);
            waiting.message = Some(why);
            self.write(upgrade, waiting, seen.mirror).await?;
            return Ok(Wake::at(later(self.clock.now(), RETRY)));
        }
        if self.write(upgrade, next, seen.mirror).await?.is_some() {
            self.running = None;
            self.metrics.in_progress(None);
        }
        // Whoever waits may start now.
        Ok(Wake::at(self.clock.now()))
    }

    /// Well when everything that was held in this upgrade's name is given back, or cannot be.
    async fn restore(
        &self,
        upgrade: &ClusterUpgrade,
        plan: &Plan,
        mirror: &Mirror,
    ) -> Result<(), String> {
        let holder = format!("{}/{}", self.journal.namespace(), upgrade.name_any());
        let mut outcome = Ok(());
        for namespace in namespaces(plan, 0) {
            for subscription in mirror.subscriptions.of(namespace) {
                if objects::annotation(&*subscription, labels::HELD_BY) != Some(holder.as_str()) {
                    continue;
                }
                let name = objects::name(&*subscription);
                let target =
                    Target { client: &self.client, mirror, namespace, holder: holder.as_str() };
                match apply::restore(&subscription, target).await {
                    Applied::Done => {}
                    Applied::Stale => {
                        outcome = Err(format!("giving back the approval of {name}"));
                    }
                    Applied::Unanswered(why) => {
                        outcome =
                            Err(format!("the approval of {name} is not given back yet: {why}"));
                    }
                    Applied::Refused(why) => {
                        warn!(subscription = name, why, "approval cannot be given back");
                    }
                }
            }
        }
        outcome
    }
}

/// A failure is an insight too, whoever decided it.
fn told(failure: &Failure, now: Timestamp, next: &mut ClusterUpgradeStatus) {
    let reason = failure.reason.to_string();
    if next.insights.iter().any(|insight| insight.reason == reason) {
        return;
    }
    let told = (InsightLevel::Error, failure.message.as_str(), failure.reason.remediation());
    next.insights.push(status::insight(reason.clone(), &reason, told, &[], now));
}
