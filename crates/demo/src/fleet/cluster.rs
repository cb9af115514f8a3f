//! One simulated cluster, what goes wrong on it, and its agent.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wavelift_agent::{AgentOptions, HubOptions, catalogs::Shared};
use wavelift_catalog::Catalog;
use wavelift_core::ids::{ClusterName, Uid};
use wavelift_hub::Hub;
use wavelift_runtime::{Clock, metrics::Metrics, tls};
use wavelift_sim::{
    apiserver::{ApiError, Served, gk},
    cluster::SimCluster,
    workload::Behaviour,
};

use super::{
    Blueprint, Error,
    hub::{HubServer, install_crds},
};
use crate::{pace, scenario::Fault, spread::SOURCE};

/// The agent's namespace on each cluster.
pub(super) const AGENT_NAMESPACE: &str = "wavelift-agent";

/// A living cluster.
#[derive(Debug)]
pub struct Member {
    sim: SimCluster,
    served: Served,
    agent: Option<JoinHandle<()>>,
}

impl Member {
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, and each is another part of the fleet"
    )]
    pub(super) async fn start(
        blueprint: &Blueprint,
        catalog: &Arc<Catalog>,
        catalogs: &Shared,
        clock: &Clock,
        hub: &Hub,
        server: &HubServer,
        shutdown: &CancellationToken,
    ) -> Result<Self, Error> {
        let refused = |source: ApiError| Error::ApiServer {
            of: blueprint.name.clone(),
            source: Box::new(source),
        };
        let sim = build(blueprint, catalog, clock).map_err(refused)?;
        let served = sim
            .api()
            .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .map_err(|source| Error::Io { doing: "listen on loopback", source })?;
        script(&sim, blueprint);
        sim.start();
        if let Some(Fault::NotUpgradeable { package, until_seconds }) = &blueprint.fault {
            hold(&sim, blueprint, package, *until_seconds, shutdown).map_err(refused)?;
        }
        let agent = match blueprint.fault {
            Some(Fault::Offline) => None,
            Some(Fault::Slow | Fault::NeverAvailable { .. } | Fault::NotUpgradeable { .. })
            | None => Some(start_agent(&sim, catalogs, clock, hub, server, shutdown)?),
        };
        Ok(Self { sim, served, agent })
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        self.sim.name()
    }

    /// Where its API server listens.
    pub fn url(&self) -> String {
        self.served.url()
    }

    /// The simulated cluster itself.
    pub fn sim(&self) -> &SimCluster {
        &self.sim
    }

    /// True when its agent runs.
    pub fn has_agent(&self) -> bool {
        self.agent.is_some()
    }

    pub(super) async fn stop(self) {
        if let Some(agent) = self.agent {
            drop(tokio::time::timeout(Duration::from_secs(5), agent).await);
        }
        self.sim.stop().await;
    }
}

fn build(
    blueprint: &Blueprint,
    catalog: &Arc<Catalog>,
    clock: &Clock,
) -> Result<SimCluster, ApiError> {
    let mut builder = SimCluster::builder(blueprint.name.clone(), clock.clone())
        .seed(blueprint.seed)
        .platform(blueprint.platform.clone())
        .kube_version("1.33.4")
        .catalog(SOURCE.0, SOURCE.1, Arc::clone(catalog));
    for operator in &blueprint.operators {
        builder = builder.operator(operator.clone());
    }
    let sim = builder.build()?;
    install_crds(sim.api())?;
    sim.store().create(&gk::NAMESPACE, json!({"metadata": {"name": AGENT_NAMESPACE}}))?;
    Ok(sim)
}

fn script(sim: &SimCluster, blueprint: &Blueprint) {
    sim.with_workload(|workload| {
        workload.by_default(Behaviour::Available { after: Duration::from_secs(30) });
        for (deployment, seconds) in &blueprint.rollout_seconds {
            let after = Duration::from_secs(u64::from(*seconds));
            workload.script(deployment, Behaviour::Available { after });
        }
        for csv in &blueprint.never {
            workload.script(csv, Behaviour::Never);
        }
    });
}

/// The operator says that it cannot be upgraded, and after a while that it can.
fn hold(
    sim: &SimCluster,
    blueprint: &Blueprint,
    package: &str,
    until_seconds: u32,
    shutdown: &CancellationToken,
) -> Result<(), ApiError> {
    let Some(operator) = blueprint.operators.iter().find(|o| o.package == package) else {
        return Ok(());
    };
    let Some(csv) = operator.installed.clone() else { return Ok(()) };
    let namespace = operator.namespace.clone();
    upgradeable(sim, &namespace, &csv, "False", "a migration is running")?;
    let (clock, store) = (sim.clock().clone(), sim.store().clone());
    let (over, shutdown) = (Duration::from_secs(u64::from(until_seconds)), shutdown.clone());
    drop(tokio::spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = clock.sleep(over) => {
                let done = condition("True", "the migration is done", &clock);
                let changed = store.modify(&gk::OPERATOR_CONDITION, Some(&namespace), &csv, |o| {
                    o["spec"]["conditions"] = json!([done]);
                });
                if let Err(error) = changed {
                    tracing::warn!(%error, "cannot release the held operator");
                }
            }
        }
    }));
    Ok(())
}

fn upgradeable(
    sim: &SimCluster,
    namespace: &str,
    csv: &str,
    status: &str,
    message: &str,
) -> Result<(), ApiError> {
    let condition = condition(status, message, sim.clock());
    sim.store().modify(&gk::OPERATOR_CONDITION, Some(namespace), csv, |object| {
        object["spec"]["conditions"] = json!([condition]);
    })?;
    Ok(())
}

fn condition(status: &str, message: &str, clock: &Clock) -> serde_json::Value {
    json!({
        "type": "Upgradeable", "status": status, "reason": "Migration", "message": message,
        "lastTransitionTime": clock.now().to_string(),
    })
}

fn start_agent(
    sim: &SimCluster,
    catalogs: &Shared,
    clock: &Clock,
    hub: &Hub,
    server: &HubServer,
    shutdown: &CancellationToken,
) -> Result<JoinHandle<()>, Error> {
    let name = sim.name().to_owned();
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Certificate {
        cluster: name.clone(),
        source,
    };
    let cluster = ClusterName::try_from(sim.name()).map_err(|e| failed(Box::new(e)))?;
    let uid = server.uid(&name).unwrap_or_default();
    let uid = Uid::try_from(uid).map_err(|e| failed(Box::new(e)))?;
    let material = hub.issue_agent(&cluster, &uid).map_err(|e| failed(Box::new(e)))?;
    let config = tls::client_config(&material).map_err(|e| failed(Box::new(e)))?;
    let address = hub.link_address();
    let options = AgentOptions {
        hub: Some(HubOptions {
            host: address.ip().to_string(),
            port: address.port(),
            server_name: "localhost".to_owned(),
            tls: tls::fixed(config),
        }),
        catalogs: Arc::new(catalogs.clone()),
        metrics: Metrics::new(),
        timings: pace::timings(clock.factor()),
        ..AgentOptions::new(sim.api().client("wavelift-agent"), cluster, clock.clone())
    };
    let shutdown = shutdown.clone();
    Ok(tokio::spawn(async move {
        if let Err(error) = wavelift_agent::run(options, shutdown).await {
            tracing::error!(
                cluster = name,
                error = &error as &dyn std::error::Error,
                "agent ended"
            );
        }
    }))
}
