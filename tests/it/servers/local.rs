//! One cluster on its own: a ClusterUpgrade applied by hand, an agent, and a real OLM.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wavelift_agent::{AgentOptions, catalogs};
use wavelift_catalog::{Catalog, Fbc, Limits, engine::CatalogKey};
use wavelift_runtime::{Clock, metrics::Metrics};

use super::{
    Cluster,
    objects::{
        CLUSTER_UPGRADE, CSV, INSTALL_PLAN, NAMESPACE, OPERATOR_GROUP, Objects, SUBSCRIPTION,
    },
    olm::Registry,
    operators::{self, Release, csv_name},
    workloads::Workloads,
};

/// A namespace with a catalog, an operator and an agent.
struct Rig {
    objects: Objects,
    namespace: String,
    home: String,
    _registry: Registry,
    _workloads: Workloads,
    catalog: Arc<Catalog>,
    cluster: Arc<Cluster>,
}

struct Agent {
    task: JoinHandle<()>,
    _stop: CancellationToken,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Rig ===

impl Rig {
    async fn start(cluster: Arc<Cluster>, name: &str, releases: &[Release<'_>]) -> Result<Self> {
        let objects = cluster.objects().await?;
        let (namespace, home) = (name.to_owned(), format!("{name}-agent"));
        for namespace in [&namespace, &home] {
            objects.create(NAMESPACE, "", &json!({"metadata": {"name": namespace}})).await?;
        }
        let documents = operators::catalog(releases);
        let folder = cluster.ground.folder(&format!("{name}-catalog"));
        let registry = Registry::start(&cluster.ground.programs, &folder, &documents).await?;
        registry.source(&objects, &namespace, "own").await?;
        let group = json!({"metadata": {"name": "group", "namespace": namespace},
            "spec": {"targetNamespaces": [namespace]}});
        objects.create(OPERATOR_GROUP, &namespace, &group).await?;
        let workloads = Workloads::start(objects.clone());
        let text: Vec<String> = documents.iter().map(Value::to_string).collect();
        let limits = Limits::default();
        let fbc = Fbc::parse("own.json", text.join("\n").as_bytes(), &limits)?;
        let catalog = Arc::new(Catalog::from_fbc(fbc, &limits)?);
        Ok(Self {
            objects,
            namespace,
            home,
            _registry: registry,
            _workloads: workloads,
            catalog,
            cluster,
        })
    }

    /// Installs a version by hand, as a person would before there was an agent.
    async fn install(&self, package: &str, version: &str) -> Result<()> {
        let subscription = json!({
            "metadata": {"name": package, "namespace": self.namespace},
            "spec": {"name": package, "channel": "stable", "source": "own",
                "sourceNamespace": self.namespace, "installPlanApproval": "Manual",
                "startingCSV": csv_name(package, version)},
        });
        self.objects.create(SUBSCRIPTION, &self.namespace, &subscription).await?;
        let csv = csv_name(package, version);
        let named = self.until_plan(|plan| names(plan) == [csv.clone()]).await?;
        let at = (self.namespace.as_str(), named.as_str());
        self.objects.patch(INSTALL_PLAN, at, &json!({"spec": {"approved": true}})).await?;
        self.until_phase(&csv, "Succeeded").await
    }

    /// The name of the InstallPlan that the first Subscription refers to, once it is `wanted`.
    async fn until_plan(&self, wanted: impl Fn(&Value) -> bool) -> Result<String> {
        let look = || async {
            for subscription in self.objects.list(SUBSCRIPTION, &self.namespace).await? {
                let Some(name) = subscription["status"]["installPlanRef"]["name"].as_str() else {
                    continue;
                };
                let plan = self.objects.get(INSTALL_PLAN, &self.namespace, name).await?;
                if plan.is_some_and(|plan| wanted(&plan)) {
                    return Ok(Some(name.to_owned()));
                }
            }
            Ok(None)
        };
        self.objects.until("an InstallPlan", look).await
    }

    async fn until_phase(&self, csv: &str, phase: &str) -> Result<()> {
        let at = (self.namespace.as_str(), csv);
        self.objects.until_object(CSV, at, |csv| csv["status"]["phase"] == phase).await?;
        Ok(())
    }

    async fn agent(&self) -> Result<Agent> {
        let catalogs = catalogs::Shared::new();
        let key = CatalogKey { name: "own".to_owned(), namespace: self.namespace.clone() };
        catalogs.set(key, Arc::clone(&self.catalog));
        let client = self.cluster.api().client().await?;
        let options = AgentOptions {
            namespace: self.home.as_str().try_into()?,
            catalogs: Arc::new(catalogs),
            metrics: Metrics::new(),
            ..AgentOptions::new(client, "one".try_into()?, Clock::real())
        };
        let stop = CancellationToken::new();
        let running = wavelift_agent::run(options, stop.clone());
        let task = tokio::spawn(async move { running.await.expect("the agent runs") });
        Ok(Agent { task, _stop: stop })
    }

    /// A person orders that packages go as far as their channels do.
    async fn order(&self, name: &str, packages: &[&str]) -> Result<()> {
        let operators: Vec<Value> = packages.iter().map(|p| json!({"package": p})).collect();
        let spec = json!({
            "origin": "Local", "type": "Targets", "targets": {"operators": operators},
            "consent": "Any", "stage": "Rollout", "control": "Running", "afterUpgrade": "Hold",
            "epoch": 0, "attempt": 0,
        });
        let object = json!({"metadata": {"name": name, "namespace": self.home}, "spec": spec});
        self.objects.create(CLUSTER_UPGRADE, &self.home, &object).await
    }

    async fn until_state(&self, name: &str, state: &str) -> Result<Value> {
        let at = (self.home.as_str(), name);
        self.objects.until_object(CLUSTER_UPGRADE, at, |u| u["status"]["state"] == state).await
    }

    /// The CSVs of each InstallPlan that was approved by the agent, in the order of the writes.
    fn approved(&self) -> Result<Vec<String>> {
        let audit = self.cluster.api().audit()?;
        let approvals = audit.iter().filter(|event| {
            event["verb"] == "patch"
                && event["objectRef"]["resource"] == "installplans"
                && event["objectRef"]["namespace"] == self.namespace.as_str()
                && event["userAgent"].as_str().is_some_and(|agent| !agent.contains("catalog"))
                && event["requestObject"]["spec"]["approved"] == true
        });
        let named = approvals.map(|event| event["objectRef"]["name"].as_str().context("a name"));
        Ok(named.collect::<Result<Vec<_>>>()?.into_iter().map(str::to_owned).collect())
    }
}

fn names(plan: &Value) -> Vec<String> {
    let names = plan["spec"]["clusterServiceVersionNames"].as_array().into_iter().flatten();
    let mut names: Vec<String> = names.filter_map(|n| n.as_str().map(str::to_owned)).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_of_two_hops_is_gone_on_a_real_olm() {
    let Some(cluster) = Cluster::shared().await else { return };
    let releases = [
        Release::new("lamp", "1.0.0"),
        Release::new("lamp", "1.1.0").replaces("1.0.0"),
        Release::new("lamp", "1.2.0").replaces("1.1.0"),
    ];
    let rig = Rig::start(cluster, "two-hops", &releases).await.unwrap();
    rig.install("lamp", "1.0.0").await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order("go", &["lamp"]).await.unwrap();
    let done = rig.until_state("go", "Succeeded").await.unwrap();
    assert_eq!(done["status"]["steps"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!(rig.approved().unwrap().len(), 3, "one by hand, two by the agent");
    let csvs = rig.objects.list(CSV, &rig.namespace).await.unwrap();
    let csvs: Vec<_> = csvs.iter().map(|csv| csv["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(csvs, ["lamp.v1.2.0"]);
}
