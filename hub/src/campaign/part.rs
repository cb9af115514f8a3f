//! One cluster's part of a campaign, as its ClusterUpgrade on the hub says.

use kube::api::ObjectMeta;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeSpec, ClusterUpgradeStatus, FleetUpgrade,
    cluster_upgrade::{
        ClusterStateName, ConsentMode, FleetUpgradeReference, Origin, PlanSpec, UpgradeControl,
        UpgradeStage, UpgradeType,
    },
    convert, labels,
};
use wavelift_core::{
    campaign::{Failure, Run, SkipReason},
    fence::{Fence, Revision},
    ids::{self, ClusterName, Namespace, Uid, UpgradeName, WaveName},
    plan::Plan,
};

use crate::link::UpgradeKey;

/// Why a ClusterUpgrade is none of ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A name in it is not one.
    #[error("its names")]
    Name(#[from] ids::Error),
    /// Its content is not what the hub writes.
    #[error("its content")]
    Content(#[from] convert::Error),
    /// It belongs to no FleetUpgrade.
    #[error("it names no FleetUpgrade")]
    NoCampaign,
    /// It holds no plan.
    #[error("it holds no plan")]
    NoPlan,
}

/// A ClusterUpgrade and what was read from it.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) object: ClusterUpgrade,
    pub(crate) campaign: Uid,
    pub(crate) cluster: ClusterName,
    pub(crate) fence: Fence,
    pub(crate) plan: Plan,
    pub(crate) plan_digest: String,
}

impl Part {
    /// Reads a ClusterUpgrade of the hub.
    pub(crate) fn read(mut object: ClusterUpgrade) -> Result<Self, Error> {
        object.metadata.managed_fields = None;
        let reference = object.spec.fleet_upgrade.as_ref().ok_or(Error::NoCampaign)?;
        let campaign = Uid::try_from(reference.uid.as_str())?;
        let cluster = ClusterName::try_from(object.metadata.namespace.as_deref().unwrap_or(""))?;
        let fence = object.spec.fence(campaign.as_str())?;
        let plan = Plan::try_from(object.spec.plan.as_ref().ok_or(Error::NoPlan)?)?;
        let plan_digest = plan.digest();
        Ok(Self { object, campaign, cluster, fence, plan, plan_digest })
    }

    pub(crate) fn spec(&self) -> &ClusterUpgradeSpec {
        &self.object.spec
    }

    /// Its status, as long as it belongs to the present epoch and attempt.
    pub(crate) fn status(&self) -> Option<&ClusterUpgradeStatus> {
        let spec = &self.object.spec;
        self.object
            .status
            .as_ref()
            .filter(|status| status.epoch == spec.epoch && status.attempt == spec.attempt)
    }

    /// Whether it was started.
    pub(crate) fn is_started(&self) -> bool {
        self.object.spec.stage == UpgradeStage::Rollout
    }

    /// How far it is.
    pub(crate) fn run(&self) -> Run {
        let status = self.status();
        let not_ended = |verifying| {
            if self.is_started() { Run::InFlight { verifying } } else { Run::NotStarted }
        };
        match status.and_then(|status| status.state) {
            Some(ClusterStateName::Skipped) => {
                let reason = status.and_then(|status| status.skip_reason);
                Run::Skipped(reason.map_or(SkipReason::User, Into::into))
            }
            Some(ClusterStateName::Unreachable) => Run::Unreachable,
            Some(ClusterStateName::Succeeded) if self.is_started() => Run::Succeeded,
            Some(ClusterStateName::Failed) if self.is_started() => Run::Failed(Failure::Failed),
            Some(ClusterStateName::Stalled) if self.is_started() => Run::Failed(Failure::Stalled),
            Some(ClusterStateName::Verifying) => not_ended(true),
            Some(
                ClusterStateName::Pending
                | ClusterStateName::Blocked
                | ClusterStateName::Preflight
                | ClusterStateName::Ready
                | ClusterStateName::Upgrading
                | ClusterStateName::Succeeded
                | ClusterStateName::Failed
                | ClusterStateName::Stalled,
            )
            | None => not_ended(false),
        }
    }

    /// Whether its agent may still be at work on it.
    pub(crate) fn is_in_flight(&self) -> bool {
        match self.run() {
            Run::InFlight { .. } | Run::Skipped(SkipReason::UserInFlight) => true,
            Run::NotStarted
            | Run::Succeeded
            | Run::Failed(_)
            | Run::Skipped(SkipReason::User | SkipReason::Cancelled)
            | Run::Unreachable => false,
        }
    }

    /// Whether the agent's last word about it has been taken.
    pub(crate) fn is_final(&self) -> bool {
        match self.run() {
            Run::Succeeded
            | Run::Failed(_)
            | Run::Unreachable
            | Run::Skipped(SkipReason::User | SkipReason::Cancelled) => true,
            Run::Skipped(SkipReason::UserInFlight) | Run::InFlight { .. } | Run::NotStarted => {
                false
            }
        }
    }

    /// The last revision of its agent that is durable.
    pub(crate) fn taken(&self) -> Option<Revision> {
        self.status()
            .map(ClusterUpgradeStatus::revision)
            .filter(|revision| *revision > Revision::default())
    }

    /// The wave it was started in.
    pub(crate) fn wave(&self) -> Option<WaveName> {
        let name = self.object.metadata.labels.as_ref()?.get(labels::WAVE)?;
        WaveName::try_from(name.as_str()).ok()
    }

    /// Started in a wave, or started again after a failure: the object of that.
    pub(crate) fn started(&self, epoch: i64, wave: Option<&WaveName>) -> ClusterUpgrade {
        let mut object = self.object.clone();
        if let Some(wave) = wave {
            let labels = object.metadata.labels.get_or_insert_default();
            labels.insert(labels::WAVE.to_owned(), wave.to_string());
        }
        if matches!(self.run(), Run::Failed(_)) {
            object.spec.attempt = object.spec.attempt.saturating_add(1);
        }
        object.spec.stage = UpgradeStage::Rollout;
        object.spec.epoch = epoch;
        object
    }

    /// Whether [`Self::started`] is still to be written.
    pub(crate) fn needs_start(&self) -> bool {
        !self.is_started() || matches!(self.run(), Run::Failed(_))
    }

    /// With another plan, while it is not started.
    pub(crate) fn replanned(&self, plan: &Plan, epoch: i64) -> ClusterUpgrade {
        let mut object = self.object.clone();
        object.spec.plan = Some(PlanSpec::from(plan));
        object.spec.plan_digest = Some(plan.digest());
        object.spec.epoch = epoch;
        object
    }
}

/// The name and place of a cluster's ClusterUpgrade in a campaign.
pub(crate) fn key_of(fleet: &UpgradeKey, uid: &Uid, cluster: &ClusterName) -> Option<UpgradeKey> {
    let name = labels::cluster_upgrade_name(fleet.name.as_str(), uid.as_str());
    Some(UpgradeKey {
        namespace: Namespace::try_from(cluster.as_str()).ok()?,
        name: UpgradeName::try_from(name).ok()?,
    })
}

/// A new ClusterUpgrade.
pub(crate) fn create(
    fleet: &FleetUpgrade,
    (fleet_key, uid): (&UpgradeKey, &Uid),
    key: &UpgradeKey,
    plan: &Plan,
    epoch: i64,
) -> ClusterUpgrade {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let metadata = ObjectMeta {
        name: Some(key.name.to_string()),
        namespace: Some(key.namespace.to_string()),
        labels: Some(
            [
                label(labels::FLEETUPGRADE_UID, uid.as_str()),
                label(labels::FLEETUPGRADE_NAME, fleet_key.name.as_str()),
                label(labels::FLEETUPGRADE_NAMESPACE, fleet_key.namespace.as_str()),
            ]
            .into(),
        ),
        ..ObjectMeta::default()
    };
    let spec = ClusterUpgradeSpec {
        origin: Origin::Hub,
        kind: UpgradeType::Plan,
        plan: Some(PlanSpec::from(plan)),
        targets: None,
        fleet_upgrade: Some(FleetUpgradeReference {
            namespace: fleet_key.namespace.to_string(),
            name: fleet_key.name.to_string(),
            uid: uid.to_string(),
        }),
        plan_digest: Some(plan.digest()),
        consent: ConsentMode::Digest,
        epoch,
        attempt: 0,
        stage: UpgradeStage::Preflight,
        control: UpgradeControl::Running,
        preflight: fleet.spec.preflight.clone(),
        after_upgrade: fleet.spec.after_upgrade,
        remedies: fleet.spec.remedies.clone(),
        pinned_catalog: fleet.spec.pinned_catalog,
    };
    ClusterUpgrade { metadata, spec, status: None }
}
