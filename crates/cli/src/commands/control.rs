//! Steering: pause, resume, freeze, cancel, retry, skip.

use anyhow::bail;
use kube::ResourceExt as _;
use serde_json::json;
use wavelift_api::{
    FleetUpgrade,
    cluster_upgrade::ClusterStateName,
    fleet_upgrade::{ActionSpec, ActionType, Control, Stage},
    live::ClusterRow,
};

use super::{Context, how};
use crate::{
    args::{ActionArgs, ChangeArgs, ConfirmArgs, NameArgs},
    exit::Exit,
};

/// A change of `spec.control`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verb {
    Pause,
    Resume,
    Freeze,
    Cancel,
}

/// A wish for single clusters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Retry,
    Skip,
}

impl Verb {
    fn control(self) -> Control {
        match self {
            Self::Pause => Control::Paused,
            Self::Resume => Control::Running,
            Self::Freeze => Control::Frozen,
            Self::Cancel => Control::Cancelled,
        }
    }

    fn verbed(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Freeze => "frozen",
            Self::Cancel => "cancelled",
        }
    }
}

/// `wavelift pause | resume | freeze`
pub(super) async fn set(
    context: &Context<'_>,
    what: &NameArgs,
    verb: Verb,
) -> anyhow::Result<Exit> {
    let fleet = context.kubernetes.get(&what.name).await?;
    change(context, &fleet, &what.change, verb).await
}

/// `wavelift cancel`
pub(super) async fn cancel(context: &Context<'_>, what: &ConfirmArgs) -> anyhow::Result<Exit> {
    let fleet = context.kubernetes.get(&what.name).await?;
    if !what.yes {
        if !context.printer.is_terminal() {
            bail!("cancelling needs --yes where nobody can be asked");
        }
        let question = format!(
            "A cancelled campaign does not go on, finished clusters stay as they are.\n\
             Type the name to cancel {}",
            what.name
        );
        if !context.printer.confirm(&question, &what.name)? {
            bail!("not cancelled");
        }
    }
    change(context, &fleet, &what.change, Verb::Cancel).await
}

async fn change(
    context: &Context<'_>,
    fleet: &FleetUpgrade,
    change: &ChangeArgs,
    verb: Verb,
) -> anyhow::Result<Exit> {
    let name = fleet.name_any();
    if fleet.spec.control == Control::Cancelled {
        bail!("{name} is cancelled: a new attempt is a new FleetUpgrade");
    }
    if fleet.spec.control == verb.control() {
        context.printer.text(&format!("fleetupgrade.wavelift.io/{name} already {}", verb.verbed()));
        return Ok(Exit::Success);
    }
    let patch = json!({"spec": {"control": verb.control()}});
    context.kubernetes.change(fleet, patch, change).await?;
    context.done(&name, verb.verbed(), change);
    Ok(Exit::Success)
}

/// `wavelift retry | skip`
pub(super) async fn act(
    context: &Context<'_>,
    what: &ActionArgs,
    act: Act,
) -> anyhow::Result<Exit> {
    let fleet = context.kubernetes.get(&what.name).await?;
    if fleet.spec.stage != Stage::Rollout {
        bail!("{} is not launched yet: there is nothing to retry or skip", what.name);
    }
    if context.live.knows_every_cluster() {
        for cluster in &what.clusters {
            // A name that is typed wrongly would wait in the spec for ever.
            let live = &context.live;
            let seen = live.cluster(context.kubernetes.namespace(), &what.name, cluster).await?;
            if let Some(remark) = remark(act, &seen.cluster.row, context.printer.usage()) {
                context.printer.note(&remark);
            }
        }
    }
    let (kind, verbed) = match act {
        Act::Retry => (ActionType::Retry, "to be retried"),
        Act::Skip => (ActionType::Skip, "to be skipped"),
    };
    let done = fleet.status.as_ref().map(|status| status.done_actions.clone()).unwrap_or_default();
    // What is done need not stay in the spec: the list has a limit.
    let mut actions = fleet.spec.actions.clone().unwrap_or_default();
    actions.retain(|action| !done.contains(&action.id));
    for cluster in &what.clusters {
        let pending = |action: &ActionSpec| action.cluster == *cluster && action.kind == kind;
        if !actions.iter().any(pending) {
            let id = format!("{cluster:.40}-{:08x}", fresh_number());
            actions.push(ActionSpec { id, cluster: cluster.clone(), kind });
        }
    }
    let patch = json!({"spec": {"actions": actions}});
    context.kubernetes.change(&fleet, patch, &what.change).await?;
    for cluster in &what.clusters {
        context.printer.text(&format!("{cluster} {verbed}{}", how(&what.change)));
    }
    Ok(Exit::Success)
}

/// What the user may not expect of an action.
fn remark(act: Act, cluster: &ClusterRow, usage: &str) -> Option<String> {
    let is_at_work = match cluster.state {
        ClusterStateName::Upgrading | ClusterStateName::Verifying => true,
        ClusterStateName::Pending
        | ClusterStateName::Blocked
        | ClusterStateName::Preflight
        | ClusterStateName::Ready
        | ClusterStateName::Succeeded
        | ClusterStateName::Failed
        | ClusterStateName::Stalled
        | ClusterStateName::Skipped
        | ClusterStateName::Unreachable => false,
    };
    (matches!(act, Act::Skip) && is_at_work).then(|| {
        format!(
            "{} is being upgraded and goes on as long as its agent is heard; `{usage} freeze` stops \
             it at the next safe point",
            cluster.name
        )
    })
}

/// A number that no earlier action of this cluster is likely to have.
fn fresh_number() -> u32 {
    let now = jiff::Timestamp::now().as_nanosecond();
    // The low 32 bits of the nanoseconds go round every four seconds: nobody types that fast.
    u32::try_from(now & 0xffff_ffff).unwrap_or(0)
}
