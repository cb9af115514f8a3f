//! The other world: a simulated cluster, on which the same situations must end in the same way.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};
use wavelift_agent::catalogs::Shared;
use wavelift_catalog::{Catalog, Fbc, Limits, engine::CatalogKey};
use wavelift_runtime::{Clock, tls};
use wavelift_sim::{
    apiserver::{AuditEffect, AuditEntry, Verb, gk},
    cluster::SimCluster,
    workload::Behaviour,
};

use super::{
    objects::{CATALOG_SOURCE, Objects},
    rig::AGENT,
    workloads::Rollout,
};
use crate::harness;

/// How much faster than ours its time is.
const FACTOR: f64 = 10.0;

/// A cluster for one test alone.
#[derive(Debug)]
pub(crate) struct Simulated {
    sim: Arc<SimCluster>,
    catalogs: Shared,
    key: CatalogKey,
    /// What is served, or will be when it is served again.
    catalog: Arc<Catalog>,
}

// === impl Simulated ===

impl Simulated {
    /// A bare cluster with a catalog.
    pub(crate) fn start((namespace, name): (&str, &str), documents: &[Value]) -> Result<Self> {
        tls::install_crypto();
        // Long ago, so that its time never passes ours.
        let clock = Clock::scaled(Timestamp::from_second(1_700_000_000)?, FACTOR);
        let sim = SimCluster::builder("one", clock).kube_version("1.36.3").build()?;
        harness::crds().iter().try_for_each(|crd| sim.api().install_crd(crd))?;
        sim.start();
        let key = CatalogKey { namespace: namespace.to_owned(), name: name.to_owned() };
        let (catalogs, catalog) = (Shared::new(), read(documents)?);
        let simulated = Self { sim: Arc::new(sim), catalogs, key, catalog };
        simulated.restart_registry();
        Ok(simulated)
    }

    /// Its objects.
    pub(crate) fn objects(&self) -> Objects {
        Objects::new(self.sim.api().client("tests"))
    }

    /// A client for the agent.
    pub(crate) fn client(&self) -> kube::Client {
        self.sim.api().client(AGENT)
    }

    /// By which its agent goes.
    pub(crate) fn clock(&self) -> Clock {
        self.sim.clock().clone()
    }

    /// What its agent reads its catalogs by.
    pub(crate) fn catalogs(&self) -> Arc<Shared> {
        Arc::new(self.catalogs.clone())
    }

    /// A CatalogSource of what is served.
    pub(crate) async fn source(&self, objects: &Objects) -> Result<()> {
        let CatalogKey { namespace, name } = &self.key;
        let spec = json!({"sourceType": "grpc", "address": "127.0.0.1:50051", "displayName": name});
        let source = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        objects.create(CATALOG_SOURCE, namespace, &source).await
    }

    /// Serves another catalog from now on.
    pub(crate) fn serve(&mut self, documents: &[Value]) -> Result<()> {
        self.catalog = read(documents)?;
        self.restart_registry();
        Ok(())
    }

    pub(crate) fn kill_registry(&self) {
        self.catalogs.remove(&self.key);
        self.sim.with_olm(|olm| olm.stop_catalog(&self.key.namespace, &self.key.name));
    }

    pub(crate) fn restart_registry(&self) {
        let CatalogKey { namespace, name } = &self.key;
        let catalog = Arc::clone(&self.catalog);
        self.catalogs.set(self.key.clone(), Arc::clone(&catalog));
        self.sim.with_olm(|olm| olm.serve_catalog(namespace, name, catalog));
    }

    /// Its Deployments.
    pub(crate) fn rollouts(&self) -> Arc<SimCluster> {
        Arc::clone(&self.sim)
    }

    /// What its agent wrote, in the form of an API server's audit log as far as that is looked at.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let is_agents = |entry: &AuditEntry| &*entry.request.user_agent == AGENT;
        self.sim.api().audit().iter().filter(|entry| is_agents(entry)).map(event).collect()
    }
}

fn read(documents: &[Value]) -> Result<Arc<Catalog>> {
    let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
    let limits = Limits::default();
    let fbc = Fbc::parse("catalog.json", lines.join("\n").as_bytes(), &limits)?;
    Ok(Arc::new(Catalog::from_fbc(fbc, &limits)?))
}

fn event(entry: &AuditEntry) -> Value {
    let request = &entry.request;
    let kind = request.gk.as_ref().map_or("", |gk| gk.kind());
    // Bodies are not logged: of InstallPlans the agent changes nothing but the approval, and only
    // that changes anything.
    let is_approval = request.gk.as_ref() == Some(&gk::INSTALL_PLAN)
        && request.verb == Verb::Patch
        && request.subresource.is_empty()
        && entry.effect == AuditEffect::Changed;
    let subresource = (!request.subresource.is_empty()).then_some(&*request.subresource);
    json!({
        "verb": format!("{:?}", request.verb).to_lowercase(),
        "objectRef": {"resource": format!("{}s", kind.to_lowercase()), "subresource": subresource,
            "namespace": request.namespace, "name": request.name},
        "requestObject": {"spec": {"approved": is_approval}},
        "responseStatus": {"code": entry.code},
    })
}

/// Tells Deployments what becomes of their next rollouts.
pub(crate) fn tell(sim: &SimCluster, deployment: &str, rollout: Rollout) {
    sim.with_workload(|workload| workload.script(deployment, behaviour(rollout)));
}

/// Tells a Deployment what becomes of it now, and of its next rollouts.
pub(crate) fn tell_now(sim: &SimCluster, namespace: &str, deployment: &str, rollout: Rollout) {
    tell(sim, deployment, rollout);
    let behaviour = behaviour(rollout);
    sim.with_workload(|workload| workload.change(namespace, deployment, behaviour));
}

fn behaviour(rollout: Rollout) -> Behaviour {
    match rollout {
        Rollout::Well(after) => Behaviour::Available { after },
        Rollout::Never => Behaviour::Never,
        Rollout::DeadlineExceeded => Behaviour::DeadlineExceeded { after: Duration::ZERO },
        Rollout::Lost => Behaviour::Crashes {
            available_after: Duration::ZERO,
            lives: Duration::ZERO,
            recovers_after: None,
        },
    }
}
