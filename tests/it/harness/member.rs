//! One managed cluster, and its agent in this process or beside it.

use std::{ffi::OsString, fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wavelift_agent::{AgentOptions, HubOptions, Timings, catalogs};
use wavelift_catalog::Catalog;
use wavelift_core::ids::ClusterName;
use wavelift_demo::spread::SOURCE;
use wavelift_runtime::{
    Clock,
    metrics::Metrics,
    tls::{self, Material},
};
use wavelift_sim::{
    apiserver::{Changes, Limits, Served, gk},
    cluster::SimCluster,
    olm_v0::{Persistence, Refusal, Timing},
    workload::Behaviour,
};

use super::{
    binaries,
    blueprint::{Blueprint, Content},
    child::Child,
    install_crds,
};

/// The agent's namespace.
pub(crate) const AGENT_NAMESPACE: &str = "wavelift-agent";

const LIMITS: Limits =
    Limits { history_changes: 50_000, history_bytes: 256 << 20, audit_entries: 20_000 };

/// Simulated time passes, however little of the machine these tests get: what is only slow must
/// not be taken for broken.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// A cluster and what happened on it from its beginning.
#[derive(Debug)]
pub(crate) struct Member {
    /// The cluster.
    pub(crate) sim: SimCluster,
    /// What it has installed.
    pub(crate) content: Content,
    /// Whether the campaign is to get so far; so unless a test says otherwise.
    pub(crate) is_reached: bool,
    /// Everything that changes from its start on; read once, at the end.
    pub(crate) changes: Changes,
    material: Material,
    served: Option<Served>,
}

impl Member {
    /// A cluster that stands, with no agent yet.
    pub(crate) fn start(
        blueprint: &Blueprint,
        catalog: &Arc<Catalog>,
        clock: &Clock,
        material: Material,
    ) -> Result<Self> {
        let mut builder = SimCluster::builder(blueprint.name.clone(), clock.clone())
            .seed(blueprint.seed)
            .kube_version("1.33.4")
            .limits(LIMITS)
            .timing(Timing { install_timeout: NEVER, ..Timing::default() })
            .catalog(SOURCE.0, SOURCE.1, Arc::clone(catalog));
        for operator in blueprint.content.operators() {
            builder = builder.operator(operator);
        }
        let sim = builder.build()?;
        install_crds(sim.api())?;
        sim.store().create(&gk::NAMESPACE, json!({"metadata": {"name": AGENT_NAMESPACE}}))?;
        let behaviour = Behaviour::Available { after: Duration::from_secs(5) };
        sim.with_workload(|workload| workload.by_default(behaviour));
        for csv in blueprint.content.refused() {
            let message = "the API server refuses it".to_owned();
            let refusal = Refusal { message, persistence: Persistence::Minute };
            sim.with_olm(|olm| olm.refuse(csv, refusal));
        }
        let changes = sim.store().subscribe();
        sim.start();
        let content = blueprint.content;
        Ok(Self { sim, content, is_reached: true, changes, material, served: None })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.sim.name()
    }

    /// The local ClusterUpgrade, if there is one.
    pub(crate) fn local(&self) -> Option<Arc<Value>> {
        self.sim.store().list(&gk::CLUSTER_UPGRADE, Some(AGENT_NAMESPACE)).into_iter().next()
    }

    /// Its agent, to be run in this process.
    pub(crate) fn agent(
        &self,
        hub: SocketAddr,
        catalogs: &catalogs::Shared,
        stop: CancellationToken,
    ) -> Result<impl Future<Output = ()> + Send + 'static> {
        let mut timings = Timings::default();
        let never = SignedDuration::try_from(NEVER)?;
        (timings.driver.plan_deadline, timings.driver.step_deadline) = (never, never);
        let options = AgentOptions {
            timings,
            hub: Some(HubOptions {
                host: hub.ip().to_string(),
                port: hub.port(),
                server_name: "localhost".to_owned(),
                tls: tls::fixed(tls::client_config(&self.material)?),
            }),
            catalogs: Arc::new(catalogs.clone()),
            metrics: Metrics::new(),
            ..AgentOptions::new(
                self.sim.api().client("wavelift-agent"),
                ClusterName::try_from(self.name())?,
                self.sim.clock().clone(),
            )
        };
        let name = self.name().to_owned();
        Ok(async move {
            if let Err(error) = wavelift_agent::run(options, stop).await {
                tracing::error!(name, error = &error as &dyn std::error::Error, "agent ended");
            }
        })
    }

    /// Makes everything ready that an agent needs as a child process.
    pub(crate) async fn serve(&mut self, dir: &Path) -> Result<()> {
        let served = self.sim.api().serve(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let dir = dir.join(self.name());
        fs::create_dir_all(&dir)?;
        served.write_kubeconfig(self.name(), &dir.join("kubeconfig"))?;
        fs::write(dir.join("tls.crt"), &self.material.certificates)?;
        fs::write(dir.join("tls.key"), &self.material.key)?;
        fs::write(dir.join("ca.crt"), &self.material.ca)?;
        fs::write(dir.join("catalog.json"), wavelift_demo::own_catalog::fbc())?;
        self.served = Some(served);
        Ok(())
    }

    /// Starts its agent as a child process, at the simulated time that it is now.
    pub(crate) fn spawn(&self, hub: SocketAddr, dir: &Path) -> Result<Child> {
        self.served.as_ref().context("this cluster is not served over HTTP")?;
        let programs = binaries::programs()?;
        let (name, clock) = (self.name(), self.sim.clock());
        let home = dir.join(name);
        let mut args: Vec<OsString> = vec![
            "--kubeconfig".into(),
            home.join("kubeconfig").into_os_string(),
            "--tls-dir".into(),
            home.clone().into_os_string(),
        ];
        let catalog = home.join("catalog.json");
        let flags = [
            ("--cluster", name.to_owned()),
            ("--namespace", AGENT_NAMESPACE.to_owned()),
            ("--hub", hub.to_string()),
            ("--server-name", "localhost".to_owned()),
            ("--catalog", format!("{}/{}={}", SOURCE.0, SOURCE.1, catalog.display())),
            ("--clock-origin", clock.now().to_string()),
            ("--clock-factor", clock.factor().to_string()),
            ("--http", "none".to_owned()),
            ("--log-format", "text".to_owned()),
            ("--log-filter", "info".to_owned()),
        ];
        args.extend(flags.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]));
        Child::spawn(&programs.agent, args, &dir.join(format!("agent-{name}.log")))
    }
}
