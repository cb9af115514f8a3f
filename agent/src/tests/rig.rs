//! A simulated cluster with an agent on it, and a clock that runs six hundred times as fast.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use wavelift_api::{ClusterUpgrade, ClusterUpgradeStatus};
use wavelift_catalog::{Catalog, Coverage, Fbc, Limits, engine::CatalogKey};
use wavelift_core::inventory::Inventory;
use wavelift_runtime::Clock;
use wavelift_sim::{
    apiserver::{self, AuditEffect, AuditEntry, Store, Subresource, Verb, gk},
    cluster::{Approval, Builder, Operator, SimCluster},
    olm_v0::Timing,
};

use crate::{
    AgentOptions, HubOptions, Timings,
    agent::run_with,
    catalogs::{Registries, Settings, Shared},
    link::{AgentReport, HubCommand, LinkHandle, Progress, Query},
};

/// Where the catalog is.
pub(crate) const MARKET: &str = "openshift-marketplace";
/// The agent's namespace.
pub(crate) const HOME: &str = "wavelift-agent";
const FACTOR: f64 = 600.0;
/// How long a test waits for something, in the cluster's time.
const PATIENCE: SignedDuration = SignedDuration::from_hours(12);

/// A cluster and what it takes to put agents on it.
pub(crate) struct Rig {
    pub(crate) cluster: SimCluster,
    pub(crate) clock: Clock,
    pub(crate) catalogs: Shared,
    pub(crate) timings: Timings,
    pub(crate) hub: Option<HubOptions>,
}

/// An agent at work. Dropping it kills it.
pub(crate) struct Agent {
    task: JoinHandle<()>,
    _stop: CancellationToken,
    pub(crate) metrics: wavelift_runtime::metrics::Metrics,
}

/// The agent's way to its hub, with the test at its end.
pub(crate) struct Line {
    commands: mpsc::Sender<HubCommand>,
    reports: mpsc::Receiver<AgentReport>,
    id: u64,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Line {
    /// Tells the agent something.
    pub(crate) async fn tell(&self, command: HubCommand) {
        self.commands.send(command).await.unwrap();
    }

    /// What the agent says next of a step between two transitions.
    pub(crate) async fn progress(&mut self) -> Progress {
        loop {
            if let AgentReport::Progress(progress) = self.reports.recv().await.unwrap() {
                return progress;
            }
        }
    }

    /// The inventory as the agent sees it now.
    pub(crate) async fn inventory(&mut self) -> Inventory {
        self.id += 1;
        let id = self.id;
        let kind = "inventory".to_owned();
        let query = Query { id, kind, namespace: String::new(), name: String::new() };
        self.commands.send(HubCommand::Query(query)).await.unwrap();
        loop {
            if let AgentReport::QueryAnswer { id: found, result } =
                self.reports.recv().await.unwrap()
                && found == id
            {
                return serde_json::from_slice(&result.unwrap()).unwrap();
            }
        }
    }

    /// Waits until the agent announces an inventory of which this is so.
    pub(crate) async fn announced(&mut self, so: impl Fn(&Inventory) -> bool) -> Inventory {
        loop {
            let digest = self.digest().await;
            let inventory = self.inventory().await;
            if inventory.digest() == digest && so(&inventory) {
                return inventory;
            }
        }
    }

    /// The digest of the next inventory that is announced.
    pub(crate) async fn digest(&mut self) -> String {
        loop {
            if let AgentReport::InventoryDigest(digest) = self.reports.recv().await.unwrap() {
                return digest;
            }
        }
    }
}

impl Rig {
    /// A cluster with these operators (namespace, package, installed version, approval).
    pub(crate) fn new(operators: &[(&str, &str, &str, Approval)]) -> Self {
        Self::with(operators, |builder| builder)
    }

    pub(crate) fn with(
        operators: &[(&str, &str, &str, Approval)],
        describe: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let clock = Clock::scaled(Timestamp::from_second(1_600_000_000).unwrap(), FACTOR);
        let catalog = catalog();
        let catalogs = Shared::new();
        let key = CatalogKey { name: "own".to_owned(), namespace: MARKET.to_owned() };
        catalogs.set(key, Arc::clone(&catalog));
        let mut builder = SimCluster::builder("c1", clock.clone())
            .seed(11)
            .kube_version("1.31.4")
            .timing(Timing::default())
            .limits(apiserver::Limits { history_bytes: 64 << 20, ..apiserver::Limits::default() })
            .catalog(MARKET, "own", catalog);
        for (namespace, package, version, approval) in operators {
            builder = builder.operator(Operator {
                namespace: (*namespace).to_owned(),
                package: (*package).to_owned(),
                channel: "stable".to_owned(),
                source: (MARKET.to_owned(), "own".to_owned()),
                installed: Some(format!("{package}.v{version}")),
                approval: *approval,
            });
        }
        let cluster = describe(builder).build().unwrap();
        for crd in wavelift_api::crds() {
            cluster.api().install_crd(&serde_json::to_value(&crd).unwrap()).unwrap();
        }
        cluster.store().create(&gk::NAMESPACE, json!({"metadata": {"name": HOME}})).unwrap();
        cluster.start();
        let timings = Timings::default();
        Self { cluster, clock, catalogs, timings, hub: None }
    }

    pub(crate) fn store(&self) -> &Store {
        self.cluster.store()
    }

    /// Puts an agent on the cluster.
    pub(crate) fn agent(&self) -> Agent {
        let options = self.options();
        let (stop, metrics) = (CancellationToken::new(), options.metrics.clone());
        let running = crate::run(options, stop.clone());
        let task = tokio::spawn(async move { Box::pin(running).await.unwrap() });
        Agent { task, _stop: stop, metrics }
    }

    /// Puts an agent on the cluster that reads catalogs like this, and the test in the hub's place.
    pub(crate) fn agent_with(&self, settings: Settings) -> (Agent, Line) {
        let mut options = self.options();
        let stop = CancellationToken::new();
        let registries = Registries::new(settings, &options.metrics, stop.clone()).unwrap();
        options.catalogs = Arc::new(registries);
        Self::on_a_line(options, stop)
    }

    /// Puts an agent on the cluster, and the test in the hub's place.
    pub(crate) fn agent_of_test(&self) -> (Agent, Line) {
        Self::on_a_line(self.options(), CancellationToken::new())
    }

    fn on_a_line(options: AgentOptions, stop: CancellationToken) -> (Agent, Line) {
        let metrics = options.metrics.clone();
        let (link, reports) = LinkHandle::to_test();
        let (commands, obeyed) = mpsc::channel(8);
        let connect = move |_: &_, _: &_, _, _: &_, _: &_| (Some(link), Some(obeyed));
        let running = run_with(options, connect, stop.clone());
        let task = tokio::spawn(async move { Box::pin(running).await.unwrap() });
        (Agent { task, _stop: stop, metrics }, Line { commands, reports, id: 0 })
    }

    fn options(&self) -> AgentOptions {
        AgentOptions {
            catalogs: Arc::new(self.catalogs.clone()),
            timings: self.timings,
            hub: self.hub.clone(),
            ..AgentOptions::new(
                self.cluster.api().client("wavelift-agent"),
                "c1".try_into().unwrap(),
                self.clock.clone(),
            )
        }
    }

    /// A person writes targets: everything named goes as far as its channel does.
    pub(crate) fn order(&self, name: &str, packages: &[&str], more: &Value) {
        let operators: Vec<Value> = packages.iter().map(|p| json!({"package": p})).collect();
        let mut spec = json!({
            "origin": "Local", "type": "Targets", "targets": {"operators": operators},
            "consent": "Any", "stage": "Rollout", "control": "Running", "afterUpgrade": "Hold",
            "epoch": 0, "attempt": 0,
        });
        merge(&mut spec, more);
        self.create(name, &spec);
    }

    pub(crate) fn create(&self, name: &str, spec: &Value) {
        let object = json!({"metadata": {"name": name, "namespace": HOME}, "spec": spec});
        self.store().create(&gk::CLUSTER_UPGRADE, object).unwrap();
    }

    pub(crate) fn patch(&self, name: &str, spec: &Value) {
        let patch = json!({ "spec": spec });
        let main = Subresource::Main;
        self.store().patch_merge(&gk::CLUSTER_UPGRADE, Some(HOME), name, main, &patch).unwrap();
    }

    pub(crate) fn upgrade(&self, name: &str) -> ClusterUpgrade {
        let found = self.store().get(&gk::CLUSTER_UPGRADE, Some(HOME), name).unwrap();
        serde_json::from_value((*found).clone()).unwrap()
    }

    pub(crate) fn status(&self, name: &str) -> ClusterUpgradeStatus {
        self.upgrade(name).status.unwrap_or_default()
    }

    pub(crate) fn state(&self, name: &str) -> String {
        let state = self.status(name).state;
        state.map_or_else(String::new, |state| format!("{state:?}"))
    }

    pub(crate) fn subscription(&self, namespace: &str, name: &str) -> Arc<Value> {
        self.store().get(&gk::SUBSCRIPTION, Some(namespace), name).unwrap()
    }

    pub(crate) fn has_csv(&self, namespace: &str, name: &str) -> bool {
        self.store().get(&gk::CSV, Some(namespace), name).is_some()
    }

    /// The InstallPlans that are approved, by their CSVs.
    pub(crate) fn approved(&self) -> Vec<String> {
        let all = self.store().list(&gk::INSTALL_PLAN, None);
        let approved = all.iter().filter(|plan| plan["spec"]["approved"] == true);
        let mut sets: Vec<String> = approved.map(|plan| csvs(plan)).collect();
        sets.sort();
        sets
    }

    /// How many writes to InstallPlans by the agent changed something.
    pub(crate) fn approvals(&self) -> usize {
        let audit = self.cluster.api().audit();
        let is_approval = |entry: &&AuditEntry| {
            entry.request.gk.as_ref() == Some(&gk::INSTALL_PLAN)
                && entry.request.verb == Verb::Patch
                && entry.effect == AuditEffect::Changed
        };
        audit.iter().filter(is_approval).count()
    }

    /// The kinds that the agent wrote to, but for its own.
    pub(crate) fn touched(&self) -> BTreeSet<String> {
        let audit = self.cluster.api().audit();
        let changed = audit.iter().filter(|entry| entry.effect == AuditEffect::Changed);
        let kinds = changed.filter_map(|entry| Some(entry.request.gk.as_ref()?.kind().to_owned()));
        kinds.filter(|kind| kind != "ClusterUpgrade").collect()
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let mut changes = self.store().subscribe();
        let limit = self.clock.now().checked_add(PATIENCE).unwrap();
        while !holds(self) {
            tokio::select! {
                _ = changes.next() => {}
                () = self.clock.sleep_until(limit) => {
                    let upgrades = self.store().list(&gk::CLUSTER_UPGRADE, Some(HOME));
                    let text: Vec<String> =
                        upgrades.iter().map(|u| serde_json::to_string_pretty(&**u).unwrap()).collect();
                    panic!("still not: {what}\n{}", text.join("\n"));
                }
            }
        }
    }

    pub(crate) async fn until_state(&self, name: &str, state: &str) {
        self.until(&format!("{name} is {state}"), |rig| rig.state(name) == state).await;
    }
}

fn csvs(plan: &Value) -> String {
    let names = plan["spec"]["clusterServiceVersionNames"].as_array().unwrap();
    let mut names: Vec<&str> = names.iter().map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    names.join("+")
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

/// `oak` 1 -> 2; `kite` 1 -> 2 -> 3 -> 4 one by one; `ash` and `elm` 1 -> 2; `fir` 1 -> 2, which
/// needs a Kubernetes of the future.
pub(crate) fn catalog() -> Arc<Catalog> {
    catalog_of(Coverage::Full)
}

/// The same, as a reader has it who got so much of it.
pub(crate) fn catalog_of(coverage: Coverage) -> Arc<Catalog> {
    let mut blobs = vec![];
    for (package, last, kube) in [
        ("oak", 2, None),
        ("kite", 4, None),
        ("ash", 2, None),
        ("elm", 2, None),
        ("fir", 2, Some("1.99.0")),
    ] {
        blobs.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let name = |version: i32| format!("{package}.v{version}.0.0");
        let entry = |version: i32| match version {
            1 => json!({"name": name(1)}),
            _ => json!({"name": name(version), "replaces": name(version - 1)}),
        };
        let entries: Vec<Value> = (1..=last).map(entry).collect();
        blobs.push(json!({
            "schema": "olm.channel", "package": package, "name": "stable", "entries": entries,
        }));
        for version in 1..=last {
            let mut properties = vec![json!({"type": "olm.package", "value": {
                "packageName": package, "version": format!("{version}.0.0")}})];
            if let (Some(kube), true) = (kube, version == last) {
                let value = json!({"minKubeVersion": kube});
                properties.push(json!({"type": "olm.csv.metadata", "value": value}));
            }
            blobs.push(json!({
                "schema": "olm.bundle", "package": package, "name": name(version),
                "image": format!("registry.example.com/{package}:{version}"),
                "properties": properties,
            }));
        }
    }
    let text: Vec<String> = blobs.iter().map(ToString::to_string).collect();
    let limits = Limits::default();
    let fbc = Fbc::parse("own.json", text.join("\n").as_bytes(), &limits).unwrap();
    Arc::new(Catalog::from_fbc_as(coverage, fbc, &limits).unwrap())
}
