//! `wavelift status --local`: the upgrades of one cluster, read on it, with no hub.

use anyhow::Context as _;
use jiff::Timestamp;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde::Serialize;
use wavelift_api::{
    ClusterUpgrade,
    cluster_upgrade::ClusterStateName,
    live::{ClusterRow, ClusterView},
};
use wavelift_core::state::ClusterState;

use super::{Shown, watch};
use crate::{args::StatusArgs, exit::Exit, kubernetes::Kubernetes, live, printer::Printer, render};

/// Where agents are unless somebody says otherwise.
pub(super) const NAMESPACE: &str = "wavelift-agent";

/// What the machine-readable forms of the list hold.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    items: Vec<ClusterView>,
}

/// `wavelift status --local`
pub(super) async fn status(
    kubernetes: &Kubernetes,
    namespace: &str,
    what: &StatusArgs,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let api: Api<ClusterUpgrade> = Api::namespaced(kubernetes.client(), namespace);
    match &what.name {
        None => all(&api, namespace, printer).await,
        Some(name) if what.watch => watched(&api, (namespace, name), what, printer).await,
        Some(name) => {
            let view = one(&api, namespace, name).await?;
            let names = |_: &ClusterView| vec![format!("clusterupgrade.wavelift.io/{name}")];
            if !printer.machine(&view, names)? {
                printer.text(&drawn(&view, name, printer));
            }
            Ok(exit(view.row.state))
        }
    }
}

async fn all(
    api: &Api<ClusterUpgrade>,
    namespace: &str,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let list = api
        .list(&ListParams::default())
        .await
        .with_context(|| format!("cannot list ClusterUpgrades in namespace {namespace}"))?;
    let items: Vec<ClusterView> = list.items.iter().map(view).collect();
    let list = List { items };
    let names = |list: &List| {
        let rows = list.items.iter().map(|view| &view.row.name);
        rows.map(|name| format!("clusterupgrade.wavelift.io/{name}")).collect()
    };
    if printer.machine(&list, names)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        printer.note(&format!(
            "No ClusterUpgrades in namespace {namespace}: is this the managed cluster, and is its \
             agent in another namespace (-n)?"
        ));
    } else {
        let rows: Vec<ClusterRow> = list.items.into_iter().map(|view| view.row).collect();
        printer.text(&render::upgrades(&rows, printer));
    }
    Ok(Exit::Success)
}

async fn one(
    api: &Api<ClusterUpgrade>,
    namespace: &str,
    name: &str,
) -> anyhow::Result<ClusterView> {
    let found = api.get_opt(name).await.context("cannot read the ClusterUpgrade")?;
    let upgrade = found.with_context(|| {
        format!("no ClusterUpgrade {name} in namespace {namespace}: is -n the agent's namespace?")
    })?;
    Ok(view(&upgrade))
}

async fn watched(
    api: &Api<ClusterUpgrade>,
    (namespace, name): (&str, &str),
    what: &StatusArgs,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let words = |view: &ClusterView, shown| match shown {
        Shown::Json => Ok(serde_json::to_string(view)?),
        Shown::Drawn => Ok(drawn(view, name, printer)),
        Shown::Sentence => {
            let percent = view.row.percent.map_or_else(String::new, |p| format!(" {p}%"));
            Ok(format!("{:?}{percent}: {}", view.row.state, view.row.message))
        }
    };
    let look = || one(api, namespace, name);
    let is_over = |view: &ClusterView| ClusterState::from(view.row.state).is_ended();
    let ended = watch(what.timeout, printer, look, words, is_over).await?;
    Ok(ended.map_or(Exit::Timeout, |view| exit(view.row.state)))
}

fn drawn(view: &ClusterView, name: &str, printer: &Printer) -> String {
    render::cluster(view, render::Seen::Locally(name), Timestamp::now(), printer)
}

fn view(upgrade: &ClusterUpgrade) -> ClusterView {
    let mut view = live::cluster(upgrade);
    // Here all are of one cluster: what tells them apart is their own name.
    view.row.name = upgrade.name_any();
    view
}

fn exit(state: ClusterStateName) -> Exit {
    match state {
        ClusterStateName::Failed | ClusterStateName::Stalled => Exit::Blocked,
        ClusterStateName::Pending
        | ClusterStateName::Blocked
        | ClusterStateName::Skipped
        | ClusterStateName::Preflight
        | ClusterStateName::Ready
        | ClusterStateName::Upgrading
        | ClusterStateName::Verifying
        | ClusterStateName::Succeeded
        | ClusterStateName::Unreachable => Exit::Success,
    }
}
