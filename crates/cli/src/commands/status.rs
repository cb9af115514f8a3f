//! Looking: one campaign, all of them, its clusters, one cluster.

use anyhow::bail;
use wavelift_api::live::{PhaseName, UpgradeDetail, UpgradeView};

use super::{Context, Shown, watch};
use crate::{
    args::{ClustersArgs, FailOn, StatusArgs},
    exit::Exit,
    live::ClusterQuery,
    render,
};

/// `wavelift status`
pub(super) async fn status(context: &Context<'_>, what: &StatusArgs) -> anyhow::Result<Exit> {
    let namespace = context.kubernetes.namespace();
    match (&what.name, &what.cluster) {
        (None, _) => all(context, what).await,
        (Some(name), Some(cluster)) => {
            let detail = context.live.cluster(namespace, name, cluster).await?;
            let names =
                |detail: &wavelift_api::live::ClusterDetail| vec![detail.cluster.row.name.clone()];
            if !context.printer.machine(&detail, names)? {
                let seen = render::Seen::InCampaign(name);
                let text = render::cluster(&detail.cluster, seen, detail.time, context.printer);
                context.printer.text(&text);
            }
            Ok(Exit::Success)
        }
        (Some(name), None) if what.watch => watched(context, what, name).await,
        (Some(name), None) => {
            let detail = context.live.upgrade(namespace, name).await?;
            let names = |detail: &UpgradeDetail| {
                vec![format!("fleetupgrade.wavelift.io/{}", detail.upgrade.row.name)]
            };
            if !context.printer.machine(&detail, names)? {
                let details = what.details;
                let text = render::status(&detail.upgrade, detail.time, details, context.printer);
                context.printer.text(&text);
            }
            Ok(exit(&detail.upgrade, what.fail_on))
        }
    }
}

async fn all(context: &Context<'_>, what: &StatusArgs) -> anyhow::Result<Exit> {
    let namespace = (!what.all_namespaces).then(|| context.kubernetes.namespace());
    let list = context.live.upgrades(namespace).await?;
    let names = |list: &wavelift_api::live::UpgradeList| {
        list.items.iter().map(|row| format!("fleetupgrade.wavelift.io/{}", row.name)).collect()
    };
    if context.printer.machine(&list, names)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        let place =
            namespace.map_or_else(|| "any namespace".to_owned(), |n| format!("namespace {n}"));
        context.printer.note(&format!(
            "No FleetUpgrades in {place}. Make one: {} preview -f FILE",
            context.printer.usage()
        ));
    } else {
        context.printer.text(&render::list(&list, what.all_namespaces, context.printer));
    }
    Ok(Exit::Success)
}

async fn watched(context: &Context<'_>, what: &StatusArgs, name: &str) -> anyhow::Result<Exit> {
    let namespace = context.kubernetes.namespace();
    let words = |detail: &UpgradeDetail, shown| match shown {
        Shown::Json => Ok(serde_json::to_string(&detail.upgrade)?),
        Shown::Drawn => {
            Ok(render::status(&detail.upgrade, detail.time, what.details, context.printer))
        }
        Shown::Sentence => Ok(render::line(&detail.upgrade)),
    };
    let look = || context.live.upgrade(namespace, name);
    let is_over = |detail: &UpgradeDetail| is_ended(detail.upgrade.row.phase);
    let ended = watch(what.timeout, context.printer, look, words, is_over).await?;
    Ok(ended.map_or(Exit::Timeout, |detail| exit(&detail.upgrade, what.fail_on)))
}

/// `wavelift clusters`
pub(super) async fn clusters(context: &Context<'_>, what: &ClustersArgs) -> anyhow::Result<Exit> {
    let has_hub = context.live.knows_every_cluster();
    if what.wave.is_some() && !has_hub {
        bail!("only the hub knows which wave a cluster is in: give --url (WAVELIFT_URL)");
    }
    let query = ClusterQuery {
        state: what.state.clone(),
        wave: what.wave.clone(),
        check: what.check.clone(),
        text: what.query.clone(),
        sort: what.sort.clone(),
    };
    let list = context.live.clusters(context.kubernetes.namespace(), &what.name, &query).await?;
    let names = |list: &wavelift_api::live::ClusterList| {
        list.items.iter().map(|row| row.name.clone()).collect()
    };
    if context.printer.machine(&list, names)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        context.printer.note(match (has_hub, query.is_everything()) {
            (true, true) => "The campaign has no clusters: does its selection match any?",
            (true, false) => "No cluster matches. Without the filters all of them are listed.",
            (false, _) => {
                "No ClusterUpgrade matches. Clusters that have none yet are known to the hub only: \
                 give --url (WAVELIFT_URL)."
            }
        });
    } else {
        context.printer.text(&render::clusters(&list.items, context.printer));
    }
    Ok(Exit::Success)
}

fn is_ended(phase: PhaseName) -> bool {
    wavelift_core::campaign::Phase::from(phase).is_ended()
}

fn exit(upgrade: &UpgradeView, fail_on: Option<FailOn>) -> Exit {
    match upgrade.row.phase {
        PhaseName::Failed | PhaseName::Halting | PhaseName::Cancelled => Exit::Blocked,
        PhaseName::SucceededWithFailures if fail_on == Some(FailOn::Warn) => Exit::Warnings,
        PhaseName::Planning
        | PhaseName::Previewed
        | PhaseName::Preflighting
        | PhaseName::Preflighted
        | PhaseName::AwaitingConsent
        | PhaseName::Running
        | PhaseName::Paused
        | PhaseName::Frozen
        | PhaseName::Succeeded
        | PhaseName::SucceededWithFailures => Exit::Success,
    }
}
