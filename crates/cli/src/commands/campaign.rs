//! Preflight and launch: the steps of a campaign after its preview.

use std::{io::Read as _, time::Duration};

use anyhow::{Context as _, bail};
use serde_json::json;
use wavelift_api::{
    FleetUpgrade,
    fleet_upgrade::Stage,
    live::{PhaseName, UpgradeView},
};

use super::{Context, generation};
use crate::{
    args::{DryRun, FailOn, Form, LaunchArgs, WaitArgs},
    exit::Exit,
    live::ClusterQuery,
    render,
};

/// Phases in which every plan is known.
pub(super) const PREVIEWED: &[PhaseName] = &[
    PhaseName::Previewed,
    PhaseName::Preflighting,
    PhaseName::Preflighted,
    PhaseName::AwaitingConsent,
    PhaseName::Running,
    PhaseName::Paused,
    PhaseName::Frozen,
    PhaseName::Halting,
    PhaseName::Succeeded,
    PhaseName::SucceededWithFailures,
    PhaseName::Failed,
    PhaseName::Cancelled,
];

/// `wavelift preflight`
pub(super) async fn preflight(context: &Context<'_>, what: &WaitArgs) -> anyhow::Result<Exit> {
    let fleet = context.kubernetes.get(&what.name).await?;
    let mut generation = generation(&fleet);
    if fleet.spec.stage == Stage::Preview {
        let patch = json!({"spec": {"stage": "Preflight"}});
        context.kubernetes.change(&fleet, patch, &what.change).await?;
        if what.change.dry_run != DryRun::None {
            context.done(&what.name, "moved to Preflight", &what.change);
            return Ok(Exit::Success);
        }
        generation += 1;
    }
    let namespace = context.kubernetes.namespace().to_owned();
    let phases = PREVIEWED.iter().copied();
    let answered: Vec<PhaseName> = phases
        .filter(|phase| !matches!(phase, PhaseName::Previewed | PhaseName::Preflighting))
        .collect();
    let timeout = Duration::from_secs(what.timeout);
    let found = context.wait_for(&namespace, &what.name, generation, &answered, timeout).await?;
    let Some(upgrade) = found else { return timed_out(context, &namespace, &what.name).await };
    let verdict = render::Verdict::of(&upgrade);
    let exit = match verdict {
        render::Verdict::Blocked => Exit::Blocked,
        render::Verdict::Unknown => Exit::Unknown,
        render::Verdict::Warned if what.fail_on == Some(FailOn::Warn) => Exit::Warnings,
        render::Verdict::Warned | render::Verdict::Clear => Exit::Success,
    };
    if context.printer.machine(&upgrade, name_of)? {
        return Ok(exit);
    }
    let query = ClusterQuery { check: Some("Fail,Unknown".to_owned()), ..ClusterQuery::default() };
    let held = context.live.clusters(&namespace, &what.name, &query).await?;
    context.printer.text(&render::preflight(&upgrade, &held.items, context.printer));
    let next = match verdict {
        render::Verdict::Clear | render::Verdict::Warned => {
            format!("Next: {} launch {}", context.printer.usage(), what.name)
        }
        render::Verdict::Blocked | render::Verdict::Unknown => format!(
            "Held clusters are checked again before they start; the others can go ahead: \
             {} launch {}",
            context.printer.usage(),
            what.name
        ),
    };
    context.printer.text(&next);
    Ok(exit)
}

/// `wavelift launch`
pub(super) async fn launch(context: &Context<'_>, what: &LaunchArgs) -> anyhow::Result<Exit> {
    let fleet = context.kubernetes.get(&what.name).await?;
    let namespace = context.kubernetes.namespace().to_owned();
    let upgrade = context.live.upgrade(&namespace, &what.name).await?.upgrade;
    let Some(digest) = upgrade.plan_digest.clone() else {
        bail!(
            "there is no plan to consent to yet: run `{} preview {}` first",
            context.printer.usage(),
            what.name
        );
    };
    if upgrade.row.phase == PhaseName::Planning {
        bail!("the preview is not complete: {}", upgrade.row.message);
    }
    let given = fleet.spec.plan_digest.as_deref().unwrap_or_default();
    if fleet.spec.stage == Stage::Rollout && given == digest {
        context.printer.text(&format!("fleetupgrade.wavelift.io/{} already launched", what.name));
        return Ok(Exit::Success);
    }
    if context.printer.form() != Some(Form::Name) {
        context.printer.text(&render::launch(&upgrade));
    }
    if !what.yes && what.change.dry_run == DryRun::None {
        if !context.printer.is_terminal() {
            bail!("launching needs --yes where nobody can be asked");
        }
        if !context.printer.confirm("Type the name to launch", &what.name)? {
            bail!("not launched");
        }
    }
    let patch = json!({"spec": {"stage": "Rollout", "planDigest": digest}});
    context.kubernetes.change(&fleet, patch, &what.change).await?;
    context.done(&what.name, "launched", &what.change);
    if context.printer.form().is_none() {
        context.printer.note(&format!(
            "Follow it: {} status {} --watch",
            context.printer.usage(),
            what.name
        ));
    }
    Ok(Exit::Success)
}

/// Says where it stands when the time is over.
pub(super) async fn timed_out(
    context: &Context<'_>,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Exit> {
    let upgrade = context.live.upgrade(namespace, name).await?.upgrade;
    context
        .printer
        .note(&format!("{name} is still {:?}: {}", upgrade.row.phase, upgrade.row.message));
    Ok(Exit::Timeout)
}

pub(super) fn name_of(upgrade: &UpgradeView) -> Vec<String> {
    vec![format!("fleetupgrade.wavelift.io/{}", upgrade.row.name)]
}

/// The FleetUpgrade of a file.
pub(super) fn read(file: &std::path::Path) -> anyhow::Result<FleetUpgrade> {
    /// No FleetUpgrade is larger than etcd takes.
    const FILE_BYTES_MAX: u64 = 4 << 20;
    let mut text = String::new();
    if file.as_os_str() == "-" {
        std::io::stdin()
            .take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
    } else {
        std::fs::File::open(file)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
            .with_context(|| format!("cannot read {}", file.display()))?;
    }
    serde_saphyr::from_str(&text)
        .with_context(|| format!("{} holds no FleetUpgrade", file.display()))
}
