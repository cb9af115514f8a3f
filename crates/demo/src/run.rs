//! The demo from its first line to its last.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Instant};

use kube::ResourceExt as _;
use tokio_util::sync::CancellationToken;
use wavelift_api::{cluster_upgrade::ClusterStateName, live::PhaseName};
use wavelift_hub::view::Upgrade;

use crate::{
    cast::{self, Cast},
    drive::{self, Driver, is_ended},
    fleet::Fleet,
    options::{AfterEnd, Options},
    scenario::Fault,
    story::Story,
    summary::{self, Measured, Summary},
};

/// Who is told what happens.
pub trait Teller: Send {
    /// A line of the story.
    fn line(&mut self, line: &str);
    /// How far the campaign is.
    fn progress(&mut self, done: u64, of: u64, sentence: &str);
    /// The campaign has ended.
    fn finish(&mut self);
}

/// How a demo ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What came of it.
    pub summary: Summary,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to bring to life.
    #[error(transparent)]
    Cast(#[from] cast::Error),
    /// The fleet.
    #[error("cannot bring the fleet to life")]
    Fleet(#[from] crate::fleet::Error),
    /// The campaign.
    #[error("cannot drive the campaign")]
    Drive(#[from] drive::Error),
    /// A folder for the kubeconfig.
    #[error("cannot make a folder for the kubeconfig")]
    Folder(#[source] std::io::Error),
    /// Somebody stopped it.
    #[error("stopped before the campaign ended")]
    Interrupted,
}

/// Runs a demo, telling `teller` what happens, until it ends or `shutdown` says so.
pub async fn run(
    options: &Options,
    teller: &mut dyn Teller,
    shutdown: CancellationToken,
) -> Result<Outcome, Error> {
    let cast = Cast::of(options)?;
    run_cast(&cast, options, teller, shutdown).await
}

/// The same with a cast that was made before.
pub async fn run_cast(
    cast: &Cast,
    options: &Options,
    teller: &mut dyn Teller,
    shutdown: CancellationToken,
) -> Result<Outcome, Error> {
    let started = Instant::now();
    teller.line(&format!(
        "{} simulated clusters, each with its own agent over mutual TLS; seed {}, {} times real time",
        cast.blueprints.len(),
        options.seed,
        options.factor()
    ));
    let fleet = Fleet::start(cast, options.factor(), options.http).await?;
    let folder = tempfile::tempdir().map_err(Error::Folder)?;
    let kubeconfig = folder.path().join("kubeconfig");
    fleet.write_kubeconfig(&kubeconfig)?;
    introduce(teller, &fleet, &kubeconfig);
    let outcome = tokio::select! {
        outcome = campaign(cast, &fleet, teller, options, started) => outcome,
        () = shutdown.cancelled() => Err(Error::Interrupted),
    };
    teller.finish();
    if outcome.is_ok() && options.after_end == AfterEnd::Hold {
        teller.line(&format!("The page stays up at {} until Ctrl-C", fleet.page()));
        shutdown.cancelled().await;
    }
    fleet.stop().await;
    outcome
}

fn introduce(teller: &mut dyn Teller, fleet: &Fleet, kubeconfig: &Path) {
    teller.line(&format!("page     {}", fleet.page()));
    teller.line(&format!("kubectl  export KUBECONFIG={}", kubeconfig.display()));
    teller.line("         kubectl get fleetupgrades,clusterupgrades -A   (context hub)");
    teller.line(&format!("wavelift export WAVELIFT_URL={}", fleet.page().trim_end_matches('/')));
    teller.line("         wavelift status demo --watch");
    teller.line("");
}

async fn campaign(
    cast: &Cast,
    fleet: &Fleet,
    teller: &mut dyn Teller,
    options: &Options,
    started: Instant,
) -> Result<Outcome, Error> {
    let mut driver = Driver::new(fleet.client(), fleet.hub().board().subscribe());
    let agents = fleet.members().iter().filter(|member| member.has_agent()).count();
    driver.agents(agents).await?;
    teller.line(&format!("{agents} agents are connected"));
    driver.create(&cast.campaign).await?;
    let planned = |phase| !matches!(phase, PhaseName::Planning);
    let upgrade = driver.until(planned).await?;
    preview(teller, &upgrade);
    driver.preflight().await?;
    let checked = |phase| {
        !matches!(phase, PhaseName::Planning | PhaseName::Previewed | PhaseName::Preflighting)
    };
    let upgrade = driver.until(checked).await?;
    preflight(teller, &upgrade);
    driver.launch().await?;
    teller.line(&format!("Launched with the consent to this plan: {}", cast.campaign.name_any()));
    let upgrade = rollout(&driver, fleet, teller).await?;
    let measured = Measured {
        writes: fleet.writes().cluster_upgrades,
        seed: options.seed,
        seconds: started.elapsed().as_secs_f64(),
    };
    let faults: BTreeMap<&str, &Fault> = cast
        .blueprints
        .iter()
        .filter_map(|b| b.fault.as_ref().map(|fault| (b.name.as_str(), fault)))
        .collect();
    let unexpected = summary::unexpected(&upgrade, |cluster| end_of(faults.get(cluster).copied()));
    let mut summary = Summary::of(&upgrade, measured, unexpected);
    summary.hops = summary::hops(&upgrade, &cast.channels);
    conclude(teller, &summary);
    Ok(Outcome { summary })
}

/// In which states a cluster with this fault may end.
fn end_of(fault: Option<&Fault>) -> &'static [ClusterStateName] {
    match fault {
        Some(Fault::Offline) => &[ClusterStateName::Unreachable],
        Some(Fault::NeverAvailable { .. }) => {
            &[ClusterStateName::Stalled, ClusterStateName::Failed]
        }
        Some(Fault::Slow | Fault::NotUpgradeable { .. }) | None => &[ClusterStateName::Succeeded],
    }
}

async fn rollout(
    driver: &Driver,
    fleet: &Fleet,
    teller: &mut dyn Teller,
) -> Result<Arc<Upgrade>, Error> {
    let mut board = fleet.hub().board().subscribe();
    let mut story = Story::default();
    let ended = driver.until(is_ended);
    tokio::pin!(ended);
    loop {
        let end = tokio::select! {
            end = &mut ended => Some(end?),
            changed = board.changed() => {
                changed.map_err(|_| drive::Error::HubGone)?;
                None
            }
        };
        let now = end.clone().or_else(|| driver.upgrade());
        if let Some(upgrade) = now {
            board.mark_unchanged();
            for line in story.tell(&upgrade, fleet.clock().now()) {
                teller.line(&line);
            }
            let row = &upgrade.view.row;
            let count = |number: i32| u64::try_from(number).unwrap_or(0);
            let summary = &row.summary;
            let settled = summary.clusters - summary.not_started;
            teller.progress(count(settled), count(summary.clusters), &row.message);
        }
        if let Some(upgrade) = end {
            return Ok(upgrade);
        }
    }
}

fn preview(teller: &mut dyn Teller, upgrade: &Upgrade) {
    teller.line("");
    teller.line("Preview: what would happen");
    for path in &upgrade.view.preview {
        let note = if path.note.is_empty() { String::new() } else { format!("  ({})", path.note) };
        teller.line(&format!(
            "  {:<18} {:>7} -> {:<7} {:>4} clusters, {} hops{note}",
            path.package, path.from, path.to, path.clusters, path.hops
        ));
    }
}

fn preflight(teller: &mut dyn Teller, upgrade: &Upgrade) {
    teller.line("");
    teller.line("Preflight: what stands in the way");
    for check in &upgrade.view.preflight {
        teller.line(&format!(
            "  {:<22} {:>4} pass {:>4} warn {:>4} fail {:>4} unknown",
            check.check, check.pass, check.warn, check.fail, check.unknown
        ));
    }
    teller.line("");
}

fn conclude(teller: &mut dyn Teller, summary: &Summary) {
    teller.line("");
    teller.line(&format!(
        "{:?}: {} of {} clusters done, {} failed, {} skipped, {} unreachable, {} not started",
        summary.phase,
        summary.succeeded,
        summary.clusters,
        summary.failed,
        summary.skipped,
        summary.unreachable,
        summary.not_started
    ));
    teller.line(&format!(
        "{} min of simulated time in {} s; {} writes of ClusterUpgrades a cluster; {} MiB resident",
        summary.simulated_minutes,
        summary.seconds,
        summary.writes_per_cluster,
        summary.resident_mib
    ));
    for line in &summary.unexpected {
        teller.line(&format!("unexpected: {line}"));
    }
}
