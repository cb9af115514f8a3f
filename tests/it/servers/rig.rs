//! A namespace on the shared cluster with a catalog, operators and an agent of its own.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::{runtime::Handle, task::JoinHandle, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
pub(crate) use wavelift_agent::upgrade::Switch as Remedies;
use wavelift_agent::{
    AgentOptions, HubOptions, Timings,
    catalogs::{CatalogReader, Registries, Settings},
    pins::Serving,
    rights::Grant,
};
use wavelift_runtime::{Clock, metrics::Metrics};

use super::{
    Cluster, World,
    account::{self, Account},
    mortal::Mortal,
    objects::{
        CATALOG_SOURCE, CLUSTER_UPGRADE, CSV, INSTALL_PLAN, Kind, NAMESPACE, OPERATOR_GROUP,
        Objects, SUBSCRIPTION,
    },
    olm::Registry,
    operators::{self, Release, csv_name},
    simulated::Simulated,
    workloads::Workloads,
};

/// The CatalogSource of every rig.
const CATALOG: &str = "own";

/// Who the agent is in the audit log.
pub(crate) const AGENT: &str = "wavelift-agent-under-test";

/// A namespace and what is in it.
pub(crate) struct Rig {
    pub(crate) objects: Objects,
    pub(crate) namespace: String,
    pub(crate) workloads: Workloads,
    /// The agent's own namespace.
    home: String,
    side: Side,
}

/// What a rig stands on.
enum Side {
    Real {
        cluster: Arc<Cluster>,
        /// Who the agent is.
        account: Account,
        registry: Registry,
    },
    Simulated(Simulated),
}

/// What an agent is started with.
struct Life<'a> {
    cluster: &'a str,
    /// By way of whom it reaches its API server.
    server: Option<&'a str>,
    deadline: SignedDuration,
    hub: Option<HubOptions>,
    remedies: Remedies,
    serving: Option<&'a Serving>,
    mortal: Option<&'a Mortal>,
}

impl Default for Life<'_> {
    fn default() -> Self {
        Self {
            cluster: "one",
            server: None,
            deadline: SignedDuration::from_mins(30),
            hub: None,
            remedies: Remedies::Disabled,
            serving: None,
            mortal: None,
        }
    }
}

/// An agent at work; it is gone when this is dropped.
pub(crate) struct Agent {
    pub(crate) metrics: Metrics,
    task: JoinHandle<()>,
    _stop: DropGuard,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How long what was left may take to be taken away.
const CLEANING: Duration = Duration::from_secs(20);

impl Drop for Rig {
    /// Takes away what OLM, and every other agent of the cluster, would go on reading.
    fn drop(&mut self) {
        let Side::Real { .. } = &self.side else { return };
        let cleaned = async {
            for kind in [SUBSCRIPTION, CATALOG_SOURCE] {
                // Where that is not possible the cluster is on its way down too.
                drop(self.objects.delete_all(kind, &self.namespace).await);
            }
        };
        tokio::task::block_in_place(|| {
            drop(Handle::current().block_on(timeout(CLEANING, cleaned)));
        });
    }
}

// === impl Rig ===

impl Rig {
    /// A namespace whose catalog holds these.
    pub(crate) async fn start(
        world: impl Into<World>,
        name: &str,
        releases: &[Release<'_>],
    ) -> Result<Self> {
        match world.into() {
            World::Real(cluster) => Self::start_without(cluster, name, releases, None).await,
            World::Simulated => Self::simulate(name, releases).await,
        }
    }

    async fn simulate(name: &str, releases: &[Release<'_>]) -> Result<Self> {
        let simulated = Simulated::start((name, CATALOG), &operators::catalog(releases))?;
        let objects = simulated.objects();
        let home = namespaces(&objects, name).await?;
        simulated.source(&objects).await?;
        let (namespace, sim) = (name.to_owned(), simulated.rollouts());
        let workloads = Workloads::Simulated { sim, namespace: namespace.clone() };
        let side = Side::Simulated(simulated);
        let rig = Self { objects, namespace, workloads, home, side };
        rig.group("group").await?;
        Ok(rig)
    }

    /// The same with an agent that has no right to a resource.
    pub(crate) async fn start_without(
        cluster: Arc<Cluster>,
        name: &str,
        releases: &[Release<'_>],
        resource: Option<&str>,
    ) -> Result<Self> {
        let objects = cluster.objects().await?;
        for taken in objects.list(SUBSCRIPTION, "").await? {
            let is_taken = |release: &Release<'_>| taken["spec"]["name"] == release.package;
            let at = &taken["metadata"]["namespace"];
            // An order names packages: it would be for both.
            ensure!(!releases.iter().any(is_taken), "{} is in {at} too", taken["spec"]["name"]);
        }
        let (namespace, home) = (name.to_owned(), namespaces(&objects, name).await?);
        let account = match resource {
            None => Account::new(cluster.api(), &objects, &home).await?,
            Some(resource) => Account::without(cluster.api(), &objects, &home, resource).await?,
        };
        let folder = cluster.ground.folder(&format!("{name}-catalog"));
        let documents = operators::catalog(releases);
        let registry = Registry::start(&cluster.ground.programs, &folder, &documents).await?;
        registry.source(&objects, &namespace, CATALOG).await?;
        let workloads = Workloads::start(objects.clone(), &namespace);
        let side = Side::Real { cluster, account, registry };
        let rig = Self { objects, namespace, workloads, home, side };
        rig.group("group").await?;
        Ok(rig)
    }

    /// The agent's own namespace.
    pub(crate) fn home(&self) -> &str {
        &self.home
    }

    /// Another OperatorGroup.
    pub(crate) async fn group(&self, name: &str) -> Result<()> {
        let spec = json!({"targetNamespaces": [self.namespace]});
        self.create(OPERATOR_GROUP, name, &spec).await
    }

    /// An OperatorGroup of all namespaces.
    pub(crate) async fn group_for_all(&self, name: &str) -> Result<()> {
        self.create(OPERATOR_GROUP, name, &json!({})).await
    }

    async fn create(&self, kind: Kind, name: &str, spec: &Value) -> Result<()> {
        let object = json!({"metadata": {"name": name, "namespace": self.namespace}, "spec": spec});
        self.objects.create(kind, &self.namespace, &object).await
    }

    /// Installs versions by hand, as a person would before there was an agent.
    pub(crate) async fn install(&self, operators: &[(&str, &str)]) -> Result<()> {
        let wanted: Vec<String> = operators.iter().map(|(p, v)| csv_name(p, v)).collect();
        for (package, version) in operators {
            self.subscribe(package, Some(version)).await?;
        }
        let look = || async {
            self.approve(&wanted).await?;
            let csvs = self.objects.list(CSV, &self.namespace).await?;
            let is_there = |name: &String| {
                csvs.iter().any(|csv| {
                    csv["metadata"]["name"] == name.as_str()
                        && csv["status"]["phase"] == "Succeeded"
                })
            };
            // It says so up to half a minute later.
            let subscriptions = self.objects.list(SUBSCRIPTION, &self.namespace).await?;
            let is_written_down = subscriptions.iter().all(|subscription| {
                let installed = subscription["status"]["installedCSV"].as_str();
                installed.is_some_and(|csv| wanted.iter().any(|wanted| wanted == csv))
            });
            // And it may be at the plan a moment longer.
            let plans = self.objects.list(INSTALL_PLAN, &self.namespace).await?;
            let is_over = |plan: &Value| {
                plan["spec"]["approved"] != true || plan["status"]["phase"] == "Complete"
            };
            let is_through = is_written_down && plans.iter().all(is_over);
            Ok((is_through && wanted.iter().all(is_there)).then_some(()))
        };
        self.objects.until("the first versions", look).await
    }

    /// A Subscription, to begin with a version.
    pub(crate) async fn subscribe(&self, package: &str, version: Option<&str>) -> Result<()> {
        let mut spec = json!({"name": package, "channel": "stable", "source": CATALOG,
            "sourceNamespace": self.namespace, "installPlanApproval": "Manual"});
        if let Some(version) = version {
            spec["startingCSV"] = json!(csv_name(package, version));
        }
        self.create(SUBSCRIPTION, package, &spec).await
    }

    /// A person approves a version, whose CSV comes into this phase.
    pub(crate) async fn approve_until(&self, csv: &str, phase: &str) -> Result<()> {
        let wanted = [csv.to_owned()];
        let look = || async {
            self.approve(&wanted).await?;
            let found = self.objects.get(CSV, &self.namespace, csv).await?;
            Ok(found.is_some_and(|csv| csv["status"]["phase"] == phase).then_some(()))
        };
        self.objects.until(&format!("{csv} in phase {phase}"), look).await
    }

    /// Approves what Subscriptions wait for, if it is nothing but what is `wanted`. A plan that none
    /// refers to yet would be made again and again.
    pub(crate) async fn approve(&self, wanted: &[String]) -> Result<()> {
        for subscription in self.objects.list(SUBSCRIPTION, &self.namespace).await? {
            let Some(name) = subscription["status"]["installPlanRef"]["name"].as_str() else {
                continue;
            };
            let at = (self.namespace.as_str(), name);
            let Some(plan) = self.objects.get(INSTALL_PLAN, at.0, name).await? else { continue };
            let is_wanted = names(&plan).iter().all(|name| wanted.contains(name));
            if plan["status"]["phase"] == "RequiresApproval" && is_wanted {
                self.objects.patch(INSTALL_PLAN, at, &json!({"spec": {"approved": true}})).await?;
            }
        }
        Ok(())
    }

    /// Waits until a Subscription refers to an InstallPlan with just this CSV. Who deletes a Subscription
    /// and makes it anew sooner may get its old status back: OLM still has to write down the plan that
    /// it made, and writes it into whatever bears the name then.
    pub(crate) async fn until_offered(&self, subscription: &str, csv: &str) -> Result<()> {
        let at = (self.namespace.as_str(), subscription);
        let look = || async {
            let found = self.objects.get(SUBSCRIPTION, at.0, at.1).await?.unwrap_or_default();
            let name = found["status"]["installPlanRef"]["name"].as_str().unwrap_or_default();
            let plan = self.objects.get(INSTALL_PLAN, at.0, name).await?.unwrap_or_default();
            ensure!(names(&plan) == [csv], "{name}: {}; {}", plan["spec"], found["status"]);
            Ok(Some(()))
        };
        self.objects.until(&format!("an offer of {csv}"), look).await
    }

    /// Serves another catalog from now on.
    pub(crate) async fn serve(&mut self, releases: &[Release<'_>]) -> Result<()> {
        self.serve_with(releases, vec![]).await
    }

    /// Serves another catalog from now on, with documents beside what the releases make.
    pub(crate) async fn serve_with(
        &mut self,
        releases: &[Release<'_>],
        more: Vec<Value>,
    ) -> Result<()> {
        let mut documents = operators::catalog(releases);
        documents.extend(more);
        match &mut self.side {
            Side::Real { registry, .. } => registry.serve(&documents).await,
            Side::Simulated(simulated) => simulated.serve(&documents),
        }
    }

    /// Ends what serves the catalog.
    pub(crate) fn kill_registry(&mut self) {
        match &mut self.side {
            Side::Real { registry, .. } => registry.server().kill(),
            Side::Simulated(simulated) => simulated.kill_registry(),
        }
    }

    /// Brings it back.
    pub(crate) fn restart_registry(&mut self) -> Result<()> {
        match &mut self.side {
            Side::Real { registry, .. } => registry.server().restart(),
            Side::Simulated(simulated) => {
                simulated.restart_registry();
                Ok(())
            }
        }
    }

    /// Who the agent is, where that is asked.
    pub(crate) fn account(&self) -> &Account {
        match &self.side {
            Side::Real { account, .. } => account,
            Side::Simulated(_) => unreachable!("a simulated API server lets everybody do all"),
        }
    }

    /// Puts an agent on the cluster.
    pub(crate) async fn agent(&self) -> Result<Agent> {
        self.run_agent(Life::default()).await
    }

    /// Puts an agent on the cluster whose remedies are switched so, with the rights for it.
    pub(crate) async fn agent_with(&self, remedies: Remedies) -> Result<Agent> {
        if let (Side::Real { account, .. }, Remedies::Enabled) = (&self.side, remedies) {
            account.allow(&self.objects, Grant::Remedies).await?;
        }
        self.run_agent(Life { remedies, ..Life::default() }).await
    }

    /// Puts an agent on the cluster that waits no longer than this for a step.
    pub(crate) async fn agent_with_deadline(&self, deadline: SignedDuration) -> Result<Agent> {
        self.run_agent(Life { deadline, ..Life::default() }).await
    }

    /// Puts an agent on the cluster that works for a hub.
    pub(crate) async fn agent_of_hub(&self, cluster: &str, hub: HubOptions) -> Result<Agent> {
        self.run_agent(Life { cluster, hub: Some(hub), ..Life::default() }).await
    }

    /// Puts an agent on the cluster that reaches it by way of whoever listens there.
    pub(crate) async fn agent_by(&self, server: &str) -> Result<Agent> {
        self.run_agent(Life { server: Some(server), ..Life::default() }).await
    }

    /// Lets the agent pin catalogs, as an administrator would.
    pub(crate) async fn allow_pins(&self) -> Result<()> {
        self.account().allow(&self.objects, Grant::PinnedCatalogs).await
    }

    /// Puts an agent on the cluster that can pin catalogs.
    pub(crate) async fn pinning_agent(&self, serving: &Serving) -> Result<Agent> {
        self.run_agent(Life { serving: Some(serving), ..Life::default() }).await
    }

    /// Puts an agent on the cluster that can pin catalogs, and dies.
    pub(crate) async fn mortal_agent(&self, serving: &Serving, mortal: &Mortal) -> Result<Agent> {
        let mortal = Some(mortal);
        self.run_agent(Life { serving: Some(serving), mortal, ..Life::default() }).await
    }

    async fn run_agent(&self, life: Life<'_>) -> Result<Agent> {
        let Life { cluster, server, deadline, hub, remedies, serving, mortal } = life;
        let stop = CancellationToken::new();
        let metrics = Metrics::new();
        let (catalogs, clock): (Arc<dyn CatalogReader>, _) = match &self.side {
            Side::Real { .. } => {
                // A registry that is there again in a moment, OLM may not even have missed.
                let settings = Settings { period: Duration::from_secs(10), ..Settings::default() };
                let catalogs = Registries::new(settings, &metrics, stop.child_token())?;
                (Arc::new(catalogs), Clock::real())
            }
            Side::Simulated(simulated) => (simulated.catalogs(), simulated.clock()),
        };
        let mut timings = Timings {
            recheck: SignedDuration::from_secs(5),
            inventory_period: SignedDuration::from_secs(5),
            ..Timings::default()
        };
        timings.driver.step_deadline = deadline;
        let client = match (&self.side, mortal) {
            (Side::Simulated(simulated), _) => simulated.client(),
            (Side::Real { account, .. }, None) => account.client(server, &metrics).await?,
            (Side::Real { account, .. }, Some(mortal)) => {
                mortal.client(account.config(server).await?)?
            }
        };
        let options = AgentOptions {
            namespace: self.home.as_str().try_into()?,
            catalogs,
            metrics: metrics.clone(),
            timings,
            hub,
            remedies,
            pinned_catalogs: serving.cloned(),
            ..AgentOptions::new(client, cluster.try_into()?, clock)
        };
        let running = wavelift_agent::run(options, stop.clone());
        let task = tokio::spawn(async move { running.await.expect("the agent runs") });
        Ok(Agent { metrics, task, _stop: stop.drop_guard() })
    }

    /// The cluster, where that is a real one.
    pub(crate) fn cluster(&self) -> &Cluster {
        match &self.side {
            Side::Real { cluster, .. } => cluster,
            Side::Simulated(_) => unreachable!("a simulated cluster has no servers"),
        }
    }

    /// A person orders that packages go as far as their channels do.
    pub(crate) async fn order(&self, packages: &[&str]) -> Result<()> {
        self.order_with(packages, &json!({})).await
    }

    /// The same with further fields of the spec; a null takes one away.
    pub(crate) async fn order_with(&self, packages: &[&str], more: &Value) -> Result<()> {
        let operators = packages.iter().map(|p| json!({"package": p})).collect();
        self.order_targets(operators, more).await
    }

    /// A person orders just this version.
    pub(crate) async fn order_version(&self, package: &str, version: &str) -> Result<()> {
        let operator = json!({"package": package, "version": version});
        self.order_targets(vec![operator], &json!({})).await
    }

    /// A person orders a package, and that what was held is given back afterwards.
    pub(crate) async fn order_and_restore(&self, package: &str) -> Result<()> {
        self.order_with(&[package], &json!({"afterUpgrade": "Restore"})).await
    }

    /// A person orders that packages go to these versions, by pinned catalogs where that is needed.
    pub(crate) async fn order_pinned(&self, targets: &[(&str, &str)]) -> Result<()> {
        self.order_pinned_with(targets, &json!({})).await
    }

    /// The same, whatever the checks find.
    pub(crate) async fn order_pinned_whatever(&self, targets: &[(&str, &str)]) -> Result<()> {
        let preflight = json!({"onFail": "Proceed", "reason": "it is a test"});
        self.order_pinned_with(targets, &preflight).await
    }

    async fn order_pinned_with(&self, targets: &[(&str, &str)], preflight: &Value) -> Result<()> {
        let operators = targets.iter().map(|(p, v)| json!({"package": p, "version": v})).collect();
        let more = json!({"afterUpgrade": "Restore", "pinnedCatalog": "Allowed",
            "preflight": preflight});
        self.order_targets(operators, &more).await
    }

    /// A person takes the order back.
    pub(crate) async fn withdraw(&self) -> Result<()> {
        self.objects.delete(CLUSTER_UPGRADE, &self.home, "go").await
    }

    async fn order_targets(&self, operators: Vec<Value>, more: &Value) -> Result<()> {
        let mut spec = json!({
            "origin": "Local", "type": "Targets", "targets": {"operators": operators},
            "consent": "Any", "stage": "Rollout", "control": "Running", "afterUpgrade": "Hold",
            "epoch": 0, "attempt": 0,
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let object = json!({"metadata": {"name": "go", "namespace": self.home}, "spec": spec});
        self.objects.create(CLUSTER_UPGRADE, &self.home, &object).await
    }

    /// A person changes the spec of what was ordered.
    pub(crate) async fn change(&self, spec: &Value) -> Result<()> {
        let at = (self.home.as_str(), "go");
        self.objects.patch(CLUSTER_UPGRADE, at, &json!({ "spec": spec })).await
    }

    /// The status of what was ordered, once it is in this state.
    pub(crate) async fn until_state(&self, state: &str) -> Result<Value> {
        let status = self
            .until(|status| {
                let now = status["state"].as_str().unwrap_or_default();
                now == state || matches!(now, "Failed" | "Stalled" | "Succeeded")
            })
            .await?;
        ensure!(status["state"] == state, "it is {status}");
        Ok(status)
    }

    /// The status of what was ordered, once it is as `wanted`.
    pub(crate) async fn until(&self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let at = (self.home.as_str(), "go");
        let wanted = |upgrade: &Value| wanted(&upgrade["status"]);
        let found = self.objects.until_object(CLUSTER_UPGRADE, at, wanted).await?;
        Ok(found["status"].clone())
    }

    /// The CSVs of each InstallPlan that the agent approved, in the order of its writes.
    pub(crate) async fn approved(&self) -> Result<Vec<String>> {
        let mut sets = vec![];
        for event in self.writes()? {
            let is_approval = event["objectRef"]["resource"] == "installplans"
                && event["requestObject"]["spec"]["approved"] == true;
            if is_approval {
                let name = event["objectRef"]["name"].as_str().context("a name")?;
                let plan = self.objects.get(INSTALL_PLAN, &self.namespace, name).await?;
                sets.push(names(&plan.context("an approved plan stays")?).join("+"));
            }
        }
        Ok(sets)
    }

    /// What agents wrote in the operators' namespace, but for what was refused.
    pub(crate) fn writes(&self) -> Result<Vec<Value>> {
        let mut audit = match &self.side {
            Side::Real { cluster, .. } => {
                let mut audit = cluster.api().audit()?;
                let user = |event: &Value| event["user"]["username"].as_str().map(str::to_owned);
                audit.retain(|event| user(event).is_some_and(|user| account::is_agent(&user)));
                audit
            }
            Side::Simulated(simulated) => simulated.audit(),
        };
        audit.retain(|event| {
            event["objectRef"]["namespace"] == self.namespace.as_str()
                && event["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300)
        });
        Ok(audit)
    }

    /// The CSVs that are there, sorted.
    pub(crate) async fn csvs(&self) -> Result<Vec<String>> {
        let csvs = self.objects.list(CSV, &self.namespace).await?;
        let names = csvs.iter().filter_map(|csv| csv["metadata"]["name"].as_str());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }
}

/// The namespaces of a rig: the answer is the agent's own.
async fn namespaces(objects: &Objects, name: &str) -> Result<String> {
    let home = format!("{name}-agent");
    for namespace in [name, &home] {
        objects.create(NAMESPACE, "", &json!({"metadata": {"name": namespace}})).await?;
    }
    Ok(home)
}

/// The CSVs of an InstallPlan, sorted.
fn names(plan: &Value) -> Vec<String> {
    let names = plan["spec"]["clusterServiceVersionNames"].as_array().into_iter().flatten();
    let mut names: Vec<String> = names.filter_map(|n| n.as_str().map(str::to_owned)).collect();
    names.sort();
    names
}
