//! A hub's driver, an API server and agents that answer as the test says.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use wavelift_api::{ClusterUpgrade, FleetUpgrade};
use wavelift_catalog::{Catalog, Fbc, Limits};
use wavelift_core::{
    campaign::Limits as Bounds,
    fence::{Fence, Revision, Term},
    ids::ClusterName,
    inventory::{CatalogSource, Csv, Inventory, NamespaceInventory, Subscription},
};
use wavelift_runtime::{Clock, admin::Readiness, clock::Hand, lease::Claim, metrics as registry};
use wavelift_sim::apiserver::{ApiServer, AuditEntry, Verb, gk};
use wavelift_sources::BundleImages;

use super::super::{Commands, Context, Driver, Inputs, Leading, Settings};
use crate::{
    cluster::Admissions,
    events,
    link::{
        AgentHello, Assignment, CheckReport, CheckRequest, Content, ControlAction, Finality,
        HubCommand, LeaderState, LinkEvent, Progress, SendError, SessionId, StatusReport,
        UpgradeKey,
    },
    metrics::Metrics,
    view::Board,
    watches,
};

/// How long a condition may take before the test is given up as hanging.
const HANGS: Duration = Duration::from_mins(1);
pub(super) const HUB: &str = "wavelift-hub-test";
pub(super) const NAMESPACE: &str = "wavelift";

/// What a test runs in.
pub(super) struct World {
    pub(super) api: ApiServer,
    pub(super) clock: Clock,
    pub(super) hand: Hand,
    pub(super) agents: Agents,
    /// With what leaders fetch bundle images.
    pub(super) images: Option<BundleImages>,
    sessions: AtomicU64,
}

/// One leader.
pub(super) struct Leader {
    pub(super) board: Board,
    pub(super) metrics: Metrics,
    events: mpsc::Sender<LinkEvent>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The agents of all clusters; clones share them.
#[derive(Clone)]
pub(super) struct Agents(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// The leader that each cluster's agent has a session with.
    connected: BTreeMap<String, mpsc::Sender<LinkEvent>>,
    inventories: BTreeMap<String, Inventory>,
    catalogs: BTreeMap<String, Bytes>,
    pieces: BTreeMap<String, Bytes>,
    lying: BTreeSet<String>,
    silent_pieces: BTreeSet<String>,
    without_pieces: BTreeSet<String>,
    failing_checks: BTreeSet<String>,
    silent_checks: BTreeSet<String>,
    log: Vec<(String, HubCommand)>,
}

/// The way from one leader to the agents.
struct Line {
    agents: Agents,
    events: mpsc::Sender<LinkEvent>,
}

impl Commands for Line {
    fn send(&self, cluster: &ClusterName, command: HubCommand) -> Result<(), SendError> {
        self.agents.take(cluster, command, &self.events)
    }
}

// === impl World ===

impl World {
    /// An API server with these clusters, all of them with `tea` 1.0.0 and a catalog to 1.2.0.
    pub(super) fn new(clusters: &[&str]) -> Self {
        let origin: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        let (clock, hand) = Clock::manual(origin);
        let api = ApiServer::new(clock.clone());
        for crd in wavelift_api::crds() {
            api.install_crd(&serde_json::to_value(crd).unwrap()).unwrap();
        }
        let agents = Agents(Arc::new(Inner { state: Mutex::default(), news: Notify::new() }));
        let sessions = AtomicU64::new(1);
        let world = Self { api, clock, hand, agents, images: None, sessions };
        world.create(&gk::NAMESPACE, &json!({"metadata": {"name": NAMESPACE}}));
        let catalog = tea(&["1.0.0", "1.1.0", "1.2.0"]);
        for cluster in clusters {
            world.add_cluster(cluster);
            world.agents.set_inventory(cluster, "1.0.0", &catalog);
        }
        world
    }

    fn create(&self, kind: &wavelift_sim::apiserver::Gk, object: &Value) {
        self.api.store().create(kind, object.clone()).unwrap();
    }

    pub(super) fn add_cluster(&self, cluster: &str) {
        self.create(&gk::NAMESPACE, &json!({"metadata": {"name": cluster}}));
        self.create(
            &gk::MANAGED_CLUSTER,
            &json!({
                "metadata": {"name": cluster, "labels": {"cluster": cluster}},
                "spec": {"hubAcceptsClient": true},
            }),
        );
    }

    /// Gives a cluster another label.
    pub(super) fn relabel(&self, cluster: &str, label: &str) {
        let edited = self.api.store().modify(&gk::MANAGED_CLUSTER, None, cluster, |object| {
            object["metadata"]["labels"]["cluster"] = json!(label);
        });
        edited.unwrap();
    }

    /// Leads under `term` until it is stopped.
    pub(super) fn lead(&self, term: u64) -> Leader {
        let registry = registry::Metrics::new();
        let metrics = Metrics::register(&registry).unwrap();
        let (events, mut link) = mpsc::channel(1_024);
        let (client, claim) = (self.api.client(HUB), Claim::sole(Term(term)));
        let stop = CancellationToken::new();
        let board = Board::new();
        let (leader, _) = watch::channel(LeaderState { term: None });
        let leading = Leading { leader, readiness: Readiness::new().part("leader", "test") };
        let identity = format!("hub-{term}");
        let context = Context {
            events: events::spawn(
                client.clone(),
                &identity,
                claim.clone(),
                metrics.clone(),
                stop.clone(),
            ),
            client: client.clone(),
            clock: self.clock.clone(),
            claim,
            metrics: metrics.clone(),
            board: board.clone(),
            identity,
            leading,
            settings: Settings {
                board_period: Duration::ZERO,
                settling: Duration::ZERO,
                limits: Bounds { return_grace: SignedDuration::ZERO, ..Bounds::default() },
                sweep: Duration::from_millis(500),
                ..Settings::default()
            },
            images: self.images.clone(),
        };
        let watches = watches::spawn(&client, &metrics, &stop);
        let line = Line { agents: self.agents.clone(), events: events.clone() };
        let driver = Driver::new(context, line, Admissions::default());
        let ended = stop.clone();
        let task = tokio::spawn(async move {
            driver.run(Inputs { watches, link: &mut link }, ended).await;
        });
        Leader { board, metrics, events, stop, task }
    }

    /// Opens sessions of these clusters with `leader`, and says what their inventory is.
    pub(super) async fn connect(&self, leader: &Leader, clusters: &[&str]) {
        for cluster in clusters {
            let session = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed));
            self.agents
                .0
                .state
                .lock()
                .connected
                .insert((*cluster).to_owned(), leader.events.clone());
            let hello = AgentHello {
                agent_version: "test".to_owned(),
                kube_version: "v1.33.4".to_owned(),
                boot: 1,
            };
            let connected = LinkEvent::Connected { cluster: name(cluster), session, hello };
            leader.events.send(connected).await.unwrap();
            self.announce(cluster).await;
        }
    }

    /// Ends the session of a cluster that was connected as the `session`-th.
    pub(super) async fn disconnect(&self, cluster: &str) {
        let events = self.agents.0.state.lock().connected.remove(cluster).unwrap();
        // The driver looks at the latest session alone; the tests give out ids in order.
        for session in 1..self.sessions.load(Ordering::Relaxed) {
            let gone = LinkEvent::Disconnected {
                cluster: name(cluster),
                session: SessionId(session),
                reason: crate::link::SessionEnd::ConnectionLost,
            };
            events.send(gone).await.unwrap();
        }
    }

    /// Says what a cluster's inventory is now.
    pub(super) async fn announce(&self, cluster: &str) {
        let (events, digest) = {
            let state = self.agents.0.state.lock();
            (state.connected[cluster].clone(), state.inventories[cluster].digest())
        };
        let cluster = name(cluster);
        events.send(LinkEvent::InventoryDigest { cluster, digest }).await.unwrap();
    }

    /// A status of an agent.
    pub(super) async fn report(&self, cluster: &str, upgrade: &UpgradeKey, status: Said<'_>) {
        let events = self.agents.0.state.lock().connected[cluster].clone();
        let terminal = ["Succeeded", "Failed", "Stalled", "Skipped"];
        let finality = if terminal.contains(&status.json["state"].as_str().unwrap()) {
            Finality::Terminal
        } else {
            Finality::Running
        };
        let report = StatusReport {
            fence: status.fence.clone(),
            revision: status.revision,
            finality,
            upgrade: upgrade.clone(),
            status_json: serde_json::to_vec(&status.json).unwrap().into(),
        };
        let event = LinkEvent::Status { cluster: name(cluster), status: report };
        events.send(event).await.unwrap();
    }

    /// What an agent says of the second step between two transitions.
    pub(super) async fn progress(
        &self,
        cluster: &str,
        assigned: &Assignment,
        revision: Revision,
        words: &Value,
    ) {
        let events = self.agents.0.state.lock().connected[cluster].clone();
        let progress = Progress {
            fence: assigned.fence.clone(),
            revision,
            upgrade: assigned.upgrade.clone(),
            step_index: 1,
            percent: 40,
            state: "Upgrading".to_owned(),
            words_json: words.to_string().into(),
        };
        events.send(LinkEvent::Progress { cluster: name(cluster), progress }).await.unwrap();
    }

    /// Says that an upgrade has come to its end, as revision (1, `sequence`).
    pub(super) async fn end(
        &self,
        cluster: &str,
        assigned: &Assignment,
        state: &str,
        sequence: u64,
    ) {
        let json = ended(state);
        let revision = Revision { boot: 1, sequence };
        let said = Said { fence: &assigned.fence, revision, json };
        self.report(cluster, &assigned.upgrade, said).await;
    }

    /// Writes a FleetUpgrade as a person does.
    pub(super) fn apply_fleet(&self, name: &str, spec: &Value) -> FleetUpgrade {
        let object = json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
        let created = self.api.store().create(&gk::FLEET_UPGRADE, object).unwrap();
        serde_json::from_value((*created).clone()).unwrap()
    }

    /// Changes a FleetUpgrade's spec as a person does.
    pub(super) fn edit_fleet(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        let edited = self.api.store().modify(
            &gk::FLEET_UPGRADE,
            Some(NAMESPACE),
            name,
            |object: &mut Value| edit(&mut object["spec"]),
        );
        edited.unwrap();
    }

    pub(super) fn fleet(&self, name: &str) -> FleetUpgrade {
        let object = self.api.store().get(&gk::FLEET_UPGRADE, Some(NAMESPACE), name).unwrap();
        serde_json::from_value((*object).clone()).unwrap()
    }

    pub(super) fn phase(&self, name: &str) -> String {
        self.fleet(name).status.and_then(|status| status.phase).unwrap_or_default()
    }

    /// All ClusterUpgrades of a cluster.
    pub(super) fn parts(&self, cluster: &str) -> Vec<ClusterUpgrade> {
        let objects = self.api.store().list(&gk::CLUSTER_UPGRADE, Some(cluster));
        objects.iter().map(|object| serde_json::from_value((**object).clone()).unwrap()).collect()
    }

    /// The only ClusterUpgrade of a cluster.
    pub(super) fn part(&self, cluster: &str) -> Option<ClusterUpgrade> {
        let mut parts = self.parts(cluster);
        assert!(parts.len() <= 1, "{cluster} has {} ClusterUpgrades", parts.len());
        parts.pop()
    }

    /// The state of the only ClusterUpgrade of a cluster, empty when there is none.
    pub(super) fn state(&self, cluster: &str) -> String {
        let part = self.part(cluster).and_then(|part| part.status);
        part.and_then(|status| status.state).map_or_else(String::new, |state| format!("{state:?}"))
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let waiting = async {
            let mut changes = self.api.store().subscribe();
            loop {
                let news = self.agents.0.news.notified();
                tokio::pin!(news);
                news.as_mut().enable();
                if holds() {
                    return;
                }
                tokio::select! {
                    _ = changes.next() => {}
                    () = news => {}
                    // What only the board shows moves neither of them.
                    () = tokio::time::sleep(Duration::from_millis(20)) => {}
                }
            }
        };
        let ended = tokio::time::timeout(HANGS, waiting).await;
        assert!(ended.is_ok(), "never: {what}\n{}", self.dump());
    }

    /// Waits for an assignment of a cluster that `is_it`.
    pub(super) async fn assigned(
        &self,
        cluster: &str,
        is_it: impl Fn(&Assignment) -> bool,
    ) -> Assignment {
        let find = || self.agents.assignments(cluster).into_iter().rev().find(|one| is_it(one));
        self.until(&format!("{cluster} is assigned"), || find().is_some()).await;
        find().unwrap()
    }

    fn dump(&self) -> String {
        let fleets = self.api.store().list(&gk::FLEET_UPGRADE, None);
        let parts = self.api.store().list(&gk::CLUSTER_UPGRADE, None);
        let mut text = String::new();
        for object in fleets.iter().chain(&parts) {
            text.push_str(&serde_json::to_string_pretty(&**object).unwrap());
            text.push('\n');
        }
        for (cluster, command) in &self.agents.0.state.lock().log {
            text.push_str(&format!("{cluster}: {}\n", kind(command)));
        }
        text
    }

    /// Writes of the hub that changed something: verb, kind, name, subresource.
    pub(super) fn writes(&self) -> Vec<AuditEntry> {
        let is_ours = |entry: &AuditEntry| {
            &*entry.request.user_agent == HUB && (200..300).contains(&entry.code)
        };
        self.api.audit().into_iter().filter(is_ours).collect()
    }

    /// How many of them were of one cluster's ClusterUpgrades.
    pub(super) fn part_writes(&self, cluster: &str) -> usize {
        let is_it = |entry: &&AuditEntry| {
            entry.request.gk.as_ref() == Some(&gk::CLUSTER_UPGRADE)
                && entry.request.namespace.as_deref() == Some(cluster)
                && entry.request.verb != Verb::Delete
        };
        self.writes().iter().filter(is_it).count()
    }
}

/// What an agent says.
pub(super) struct Said<'a> {
    pub(super) fence: &'a Fence,
    pub(super) revision: Revision,
    pub(super) json: Value,
}

// === impl Leader ===

impl Leader {
    /// Ends it in order.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Ends it as a kill does: nothing is finished.
    pub(super) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        self.stop.cancel();
    }

    /// Waits until it gives up by itself.
    pub(super) async fn given_up(self) {
        self.task.await.unwrap();
    }

    /// What the board says that a campaign changes.
    pub(super) fn preview(&self, fleet: &str) -> Arc<crate::preview::Preview> {
        let shown = self.board.current();
        shown.upgrade(NAMESPACE, fleet).map(|shown| Arc::clone(&shown.preview)).unwrap_or_default()
    }

    /// What the board says of a cluster.
    pub(super) fn row(&self, fleet: &str, cluster: &str) -> Option<Value> {
        let shown = self.board.current();
        let upgrade = shown.upgrade(NAMESPACE, fleet)?;
        let row = upgrade.cluster(cluster)?;
        Some(serde_json::to_value(&**row).unwrap())
    }
}

// === impl Agents ===

impl Agents {
    /// Gives a cluster `tea` in this version and this catalog.
    pub(super) fn set_inventory(&self, cluster: &str, version: &str, catalog: &Catalog) {
        let digest = catalog.digest().as_str().to_owned();
        let mut state = self.0.state.lock();
        state.catalogs.insert(digest.clone(), catalog.graph().to_canonical_json().into());
        let contents = catalog.contents_digest().to_string();
        state.add_pieces(catalog);
        let csv = format!("tea.v{version}");
        let mut inventory = Inventory {
            kube_version: Some("v1.33.4".to_owned()),
            namespaces: vec![NamespaceInventory {
                namespace: "ops".try_into().unwrap(),
                operator_groups: 1,
                global_catalogs_excluded: false,
                subscriptions: vec![Subscription {
                    name: "tea".to_owned(),
                    package: "tea".to_owned(),
                    channel: "stable".to_owned(),
                    source: "market".to_owned(),
                    source_namespace: "olm".to_owned(),
                    approval: "Manual".to_owned(),
                    installed_csv: Some(csv.clone()),
                    current_csv: Some(csv.clone()),
                    state: "AtLatestKnown".to_owned(),
                    ..Subscription::default()
                }],
                csvs: vec![Csv {
                    name: csv,
                    version: version.to_owned(),
                    phase: "Succeeded".to_owned(),
                    ..Csv::default()
                }],
            }],
            catalogs: vec![CatalogSource {
                namespace: "olm".to_owned(),
                name: "market".to_owned(),
                priority: 0,
                connection_state: Some("READY".to_owned()),
                digest: Some(digest),
                contents: Some(contents),
            }],
            ..Inventory::default()
        };
        inventory.sort();
        state.inventories.insert(cluster.to_owned(), inventory);
    }

    /// The cluster's agent is of the time before pieces.
    pub(super) fn forget_contents(&self, cluster: &str) {
        let mut state = self.0.state.lock();
        let inventory = state.inventories.get_mut(cluster).unwrap();
        for source in &mut inventory.catalogs {
            source.contents = None;
        }
    }

    /// The cluster sends something else under the name of a piece that it is asked for.
    pub(super) fn lie(&self, cluster: &str) {
        self.0.state.lock().lying.insert(cluster.to_owned());
    }

    /// The cluster leaves questions for pieces unanswered.
    pub(super) fn ignore_pieces(&self, cluster: &str) {
        self.0.state.lock().silent_pieces.insert(cluster.to_owned());
    }

    /// The cluster says that it has no pieces any more.
    pub(super) fn lose_pieces(&self, cluster: &str) {
        self.0.state.lock().without_pieces.insert(cluster.to_owned());
    }

    /// The pieces that a cluster was asked for.
    pub(super) fn piece_requests(&self, cluster: &str) -> Vec<String> {
        self.of(cluster, |command| {
            let HubCommand::RequestPiece { digest } = command else { return None };
            Some(digest.clone())
        })
    }

    /// Lets the checks of a cluster fail from now on.
    pub(super) fn fail_checks(&self, cluster: &str) {
        self.0.state.lock().failing_checks.insert(cluster.to_owned());
    }

    pub(super) fn pass_checks(&self, cluster: &str) {
        self.0.state.lock().failing_checks.remove(cluster);
    }

    /// Leaves checks of a cluster unanswered.
    pub(super) fn ignore_checks(&self, cluster: &str) {
        self.0.state.lock().silent_checks.insert(cluster.to_owned());
    }

    fn of<T>(&self, cluster: &str, pick: impl Fn(&HubCommand) -> Option<T>) -> Vec<T> {
        let state = self.0.state.lock();
        state.log.iter().filter(|(to, _)| to == cluster).filter_map(|(_, c)| pick(c)).collect()
    }

    pub(super) fn assignments(&self, cluster: &str) -> Vec<Assignment> {
        self.of(cluster, |command| {
            let HubCommand::Assign(assignment) = command else { return None };
            Some(assignment.clone())
        })
    }

    pub(super) fn checks(&self, cluster: &str) -> Vec<CheckRequest> {
        self.of(cluster, |command| {
            let HubCommand::Check(request) = command else { return None };
            Some(request.clone())
        })
    }

    pub(super) fn controls(&self, cluster: &str) -> Vec<(Fence, ControlAction)> {
        self.of(cluster, |command| {
            let HubCommand::Control(control) = command else { return None };
            Some((control.fence.clone(), control.action))
        })
    }

    pub(super) fn acks(&self, cluster: &str) -> Vec<Revision> {
        self.of(cluster, |command| {
            let HubCommand::Ack { revision, .. } = command else { return None };
            Some(*revision)
        })
    }

    pub(super) fn catalog_requests(&self) -> usize {
        let state = self.0.state.lock();
        let is_it = |command: &HubCommand| matches!(command, HubCommand::RequestCatalog { .. });
        state.log.iter().filter(|(_, command)| is_it(command)).count()
    }

    fn take(
        &self,
        cluster: &ClusterName,
        command: HubCommand,
        events: &mpsc::Sender<LinkEvent>,
    ) -> Result<(), SendError> {
        let mut state = self.0.state.lock();
        let line = state.connected.get(cluster.as_str()).ok_or(SendError::NotConnected)?;
        if !line.same_channel(events) {
            return Err(SendError::NotConnected);
        }
        let answer = state.answer(cluster, &command);
        state.log.push((cluster.to_string(), command));
        drop(state);
        if let Some(answer) = answer {
            let events = events.clone();
            tokio::spawn(async move { drop(events.send(answer).await) });
        }
        self.0.news.notify_waiters();
        Ok(())
    }
}

impl State {
    fn add_pieces(&mut self, catalog: &Catalog) {
        let contents = catalog.contents();
        let packages = contents.packages.values();
        let names = packages.flat_map(|held| held.bundles.values().chain(&held.documents));
        for name in names.chain([catalog.contents_digest()]) {
            self.pieces.insert(name.to_string(), catalog.piece(name).unwrap().into());
        }
    }

    fn piece(&self, cluster: &ClusterName, digest: &str) -> Option<LinkEvent> {
        let (cluster, digest) = (cluster.clone(), digest.to_owned());
        if self.silent_pieces.contains(cluster.as_str()) {
            return None;
        }
        if self.without_pieces.contains(cluster.as_str()) {
            let reason = "the test says so".to_owned();
            return Some(LinkEvent::PieceMissing { cluster, digest, reason });
        }
        let bytes = if self.lying.contains(cluster.as_str()) {
            Bytes::from_static(b"[]")
        } else {
            self.pieces[&digest].clone()
        };
        Some(LinkEvent::Upload { cluster, content: Content::Piece, digest, bytes })
    }

    fn answer(&self, cluster: &ClusterName, command: &HubCommand) -> Option<LinkEvent> {
        let upload = |content, digest: &String, bytes| LinkEvent::Upload {
            cluster: cluster.clone(),
            content,
            digest: digest.clone(),
            bytes,
        };
        match command {
            HubCommand::RequestInventory { digest } => {
                let inventory = &self.inventories[cluster.as_str()];
                let bytes = serde_json::to_vec(inventory).unwrap().into();
                (inventory.digest() == *digest).then(|| upload(Content::Inventory, digest, bytes))
            }
            HubCommand::RequestCatalog { digest } => {
                let bytes = self.catalogs.get(digest)?.clone();
                Some(upload(Content::Catalog, digest, bytes))
            }
            HubCommand::RequestPiece { digest } => self.piece(cluster, digest),
            HubCommand::Check(request) if !self.silent_checks.contains(cluster.as_str()) => {
                let fails = self.failing_checks.contains(cluster.as_str());
                let outcome = if fails { "Fail" } else { "Pass" };
                let results = json!([{"check": "catalog-ready", "outcome": outcome, "reason": "R",
                    "message": "as the test wants it"}]);
                Some(LinkEvent::CheckReport {
                    cluster: cluster.clone(),
                    report: CheckReport {
                        request_id: request.request_id.clone(),
                        fence: request.fence.clone(),
                        results_json: serde_json::to_vec(&results).unwrap().into(),
                    },
                })
            }
            HubCommand::Check(_)
            | HubCommand::Assign(_)
            | HubCommand::Control(_)
            | HubCommand::Ack { .. } => None,
        }
    }
}

pub(super) fn name(cluster: &str) -> ClusterName {
    ClusterName::try_from(cluster).unwrap()
}

fn kind(command: &HubCommand) -> String {
    match command {
        HubCommand::Assign(one) => format!("Assign {}", one.fence),
        HubCommand::Control(one) => format!("Control {:?} {}", one.action, one.fence),
        HubCommand::Check(one) => format!("Check {} {}", one.request_id, one.fence),
        HubCommand::Ack { fence, revision } => format!("Ack {fence} {revision}"),
        HubCommand::RequestInventory { .. } => "RequestInventory".to_owned(),
        HubCommand::RequestCatalog { .. } => "RequestCatalog".to_owned(),
        HubCommand::RequestPiece { .. } => "RequestPiece".to_owned(),
    }
}

/// A catalog with `tea` in these versions, each replacing the one before.
pub(super) fn tea(versions: &[&str]) -> Catalog {
    brew(versions, &|_| None, None)
}

/// The same with manifests for those versions that `verbs` names verbs on secrets for, and with a
/// release document.
pub(super) fn brew(
    versions: &[&str],
    verbs: &dyn Fn(&str) -> Option<Vec<&'static str>>,
    release: Option<Value>,
) -> Catalog {
    brew_in(versions, verbs, release, &|version| format!("img/tea.v{version}"))
}

/// The same with these images.
pub(super) fn brew_in(
    versions: &[&str],
    verbs: &dyn Fn(&str) -> Option<Vec<&'static str>>,
    release: Option<Value>,
    image: &dyn Fn(&str) -> String,
) -> Catalog {
    let mut documents =
        vec![json!({"schema": "olm.package", "name": "tea", "defaultChannel": "stable"})];
    documents.extend(release);
    let mut entries = vec![];
    let mut before: Option<String> = None;
    for version in versions {
        let name = format!("tea.v{version}");
        let mut entry = json!({"name": name});
        if let Some(before) = &before {
            entry["replaces"] = json!(before);
        }
        entries.push(entry);
        let mut properties = vec![json!({"type": "olm.package",
            "value": {"packageName": "tea", "version": version}})];
        if let Some(verbs) = verbs(version) {
            let data = STANDARD.encode(csv(&name, version, &verbs).to_string());
            properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
        }
        documents.push(json!({
            "schema": "olm.bundle", "name": name, "package": "tea", "image": image(version),
            "properties": properties,
        }));
        before = Some(name);
    }
    documents.push(json!({
        "schema": "olm.channel", "name": "stable", "package": "tea", "entries": entries,
    }));
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let fbc = Fbc::parse("tea.json", text.join("\n").as_bytes(), &Limits::default()).unwrap();
    Catalog::from_fbc(fbc, &Limits::default()).unwrap()
}

/// A CSV whose service account may do this to secrets.
pub(super) fn csv(name: &str, version: &str, verbs: &[&str]) -> Value {
    let rules = if verbs.is_empty() {
        json!([])
    } else {
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}])
    };
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name},
        "spec": {
            "version": version,
            "install": {"strategy": "deployment", "spec": {
                "clusterPermissions": [{"serviceAccountName": "tea", "rules": rules}],
                "deployments": [{"name": "tea", "spec": {"template": {"spec": {"containers": [
                    {"name": "tea", "image": format!("registry.example/tea:{version}")}]}}}}],
            }},
        },
    })
}

/// A status of two steps with the first `done` of them done.
pub(super) fn upgrading(done: usize) -> Value {
    let steps: Vec<Value> = (0..2)
        .map(|step| match step {
            step if step < done => json!({"state": "Done", "percent": 100}),
            step if step == done => json!({"state": "Running", "percent": 10}),
            _ => json!({"state": "Pending", "percent": 0}),
        })
        .collect();
    json!({"state": "Upgrading", "steps": steps, "startTime": "2020-01-01T00:00:00Z",
        "percent": done * 50, "message": format!("{done} of 2 steps")})
}

/// A status at its end.
pub(super) fn ended(state: &str) -> Value {
    let mut status = upgrading(if state == "Succeeded" { 2 } else { 0 });
    status["state"] = json!(state);
    status["completionTime"] = json!("2020-01-01T01:00:00Z");
    if state == "Failed" {
        status["failure"] = json!({"type": "Failed", "reason": "InstallPlanFailed",
            "message": "no", "remediation": "look"});
    }
    status
}

/// A campaign on these clusters, to tea 1.2.0, in one wave of all of them at once.
pub(super) fn campaign(clusters: &[&str], max_failures: u32) -> Value {
    json!({
        "targets": {"operators": [{"package": "tea", "version": "1.2.0"}]},
        "clusters": {"names": clusters},
        "waves": [{"name": "all", "names": clusters, "maxConcurrent": clusters.len(),
            "maxFailures": max_failures}],
        "budget": {"mode": "StopOnBreach"},
        "stage": "Rollout",
    })
}
