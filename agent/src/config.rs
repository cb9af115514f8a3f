//! The command line of `wavelift-agent`, and what becomes of it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio_util::sync::CancellationToken;
use wavelift_core::ids::{ClusterName, Namespace};
use wavelift_runtime::{
    Clock, admin,
    admin::Readiness,
    metrics::Metrics,
    shutdown::Shutdown,
    telemetry::{self, Format},
    tls,
};

use crate::{
    AgentOptions, HubOptions, Timings,
    catalogs::{self, Files, FilesFirst, Registries},
    client,
    pins::Serving,
    upgrade::Switch,
};

/// How often certificate files are looked at.
const TLS_PERIOD: Duration = Duration::from_secs(10);

/// The agent of one managed cluster.
#[derive(Debug, Parser)]
#[command(name = "wavelift-agent", version)]
pub struct Args {
    /// The cluster's API server; in-cluster or the usual places if not given.
    #[arg(long, env = "WAVELIFT_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// The cluster's name on the hub.
    #[arg(long, env = "WAVELIFT_CLUSTER")]
    pub cluster: ClusterName,
    /// The agent's own namespace.
    #[arg(long, env = "WAVELIFT_NAMESPACE", default_value = "wavelift-agent")]
    pub namespace: Namespace,
    /// The hub, `HOST:PORT`; without it the cluster is on its own.
    #[arg(long, env = "WAVELIFT_HUB", requires = "tls_dir")]
    pub hub: Option<String>,
    /// The name that the hub's certificate must bear; the host if not given.
    #[arg(long, env = "WAVELIFT_SERVER_NAME")]
    pub server_name: Option<String>,
    /// Where tls.crt, tls.key and ca.crt are.
    #[arg(long, env = "WAVELIFT_TLS_DIR")]
    pub tls_dir: Option<PathBuf>,
    /// What a CatalogSource serves: `NAMESPACE/NAME=PATH`, an FBC directory or file. All others are
    /// read from their registries.
    #[arg(long = "catalog", value_name = "NAMESPACE/NAME=PATH")]
    pub catalogs: Vec<String>,
    /// Whether the remedies that upgrades name (`spec.remedies`) are taken: `Enabled` or `Disabled`.
    #[arg(long, env = "WAVELIFT_REMEDIES", default_value = "Disabled")]
    pub remedies: Switch,
    /// How long after a check that held the cluster the checks are run again, such as `5m`.
    #[arg(long, env = "WAVELIFT_RECHECK")]
    pub recheck: Option<SignedDuration>,
    /// Where a pinned catalog is served while a step needs one, `ADDRESS:PORT`. Without it no step can
    /// be taken by a pinned catalog.
    #[arg(long, env = "WAVELIFT_PINNED_CATALOG_LISTEN", requires = "pinned_catalog_address")]
    pub pinned_catalog_listen: Option<SocketAddr>,
    /// Host and port as OLM reaches that: the agent's Service.
    #[arg(long, env = "WAVELIFT_PINNED_CATALOG_ADDRESS", requires = "pinned_catalog_listen")]
    pub pinned_catalog_address: Option<String>,
    /// Begin simulated time here.
    #[arg(long, requires = "clock_factor")]
    pub clock_origin: Option<Timestamp>,
    /// Let simulated time pass so many times as fast.
    #[arg(long, requires = "clock_origin")]
    pub clock_factor: Option<f64>,
    /// Where /healthz, /readyz and /metrics are served, or `none`.
    #[arg(long, env = "WAVELIFT_HTTP", default_value = "0.0.0.0:8080")]
    pub http: String,
    /// `text` or `json`.
    #[arg(long, env = "WAVELIFT_LOG_FORMAT", default_value = "text")]
    pub log_format: Format,
    /// What is logged.
    #[arg(long, env = "WAVELIFT_LOG_FILTER", default_value = "info")]
    pub log_filter: String,
}

/// Runs the agent as the command line says, until it is told to stop.
pub async fn run(args: Args) -> anyhow::Result<()> {
    telemetry::init(&telemetry::Settings {
        format: args.log_format,
        filter: args.log_filter.clone(),
    })?;
    tls::install_crypto();
    let shutdown = Shutdown::on_signals().context("signals")?;
    let options = options(&args, &shutdown.asked).await?;
    serve_admin(&args, &options, &shutdown.asked).await?;
    tokio::select! {
        ended = crate::run(options, shutdown.asked.clone()) => ended?,
        () = shutdown.insisted.cancelled() => {}
    }
    Ok(())
}

async fn options(args: &Args, stop: &CancellationToken) -> anyhow::Result<AgentOptions> {
    let paths: Result<Vec<_>, String> =
        args.catalogs.iter().map(|text| catalogs::parse_flag(text)).collect();
    let paths = paths.map_err(anyhow::Error::msg).context("--catalog")?;
    let metrics = Metrics::new();
    let client = connect(args, &metrics).await.context("kubeconfig")?;
    let registries = Registries::new(catalogs::Settings::default(), &metrics, stop.clone())
        .context("metrics")?;
    let mut timings = Timings::default();
    if let Some(recheck) = args.recheck {
        timings.recheck = recheck.max(SignedDuration::from_secs(1));
    }
    Ok(AgentOptions {
        timings,
        namespace: args.namespace.clone(),
        hub: hub(args, stop).await?,
        catalogs: Arc::new(FilesFirst::new(Files::new(paths), registries)),
        metrics,
        readiness: Readiness::new(),
        remedies: args.remedies,
        pinned_catalogs: pinned_catalogs(args),
        ..AgentOptions::new(client, args.cluster.clone(), clock(args))
    })
}

fn pinned_catalogs(args: &Args) -> Option<Serving> {
    let address = args.pinned_catalog_address.clone()?;
    Some(Serving { listen: args.pinned_catalog_listen?, address })
}

fn clock(args: &Args) -> Clock {
    match (args.clock_origin, args.clock_factor) {
        (Some(origin), Some(factor)) => Clock::scaled(origin, factor),
        (None | Some(_), None | Some(_)) => Clock::real(),
    }
}

async fn connect(args: &Args, metrics: &Metrics) -> anyhow::Result<Client> {
    let config = match &args.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path)?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await?,
    };
    Ok(client::client(config, metrics)?)
}

async fn hub(args: &Args, stop: &CancellationToken) -> anyhow::Result<Option<HubOptions>> {
    let (Some(hub), Some(dir)) = (&args.hub, &args.tls_dir) else { return Ok(None) };
    let (host, port) = hub.rsplit_once(':').context("--hub is not HOST:PORT")?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let tls = tls::watch_dir(dir, TLS_PERIOD, tls::client_config, stop.clone())
        .await
        .context("--tls-dir")?;
    Ok(Some(HubOptions {
        server_name: args.server_name.clone().unwrap_or_else(|| host.clone()),
        host,
        port: port.parse().context("--hub is not HOST:PORT")?,
        tls,
    }))
}

async fn serve_admin(
    args: &Args,
    options: &AgentOptions,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    if args.http == "none" {
        return Ok(());
    }
    let address: SocketAddr =
        args.http.parse().context("--http is neither an address nor `none`")?;
    let listener = admin::bind(address).await?;
    let router = admin::router(options.metrics.clone(), options.readiness.clone());
    drop(tokio::spawn(admin::serve(listener, router, stop.clone())));
    Ok(())
}
