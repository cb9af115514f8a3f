//! A campaign over three clusters with a real OLM each, and a hub on a fourth API server.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use wavelift_agent::HubOptions as Door;
use wavelift_core::ids::{ClusterName, Uid};
use wavelift_hub::{Hub, HubOptions};
use wavelift_runtime::tls;

use crate::harness::{self, http, laws};

use super::{
    Cluster, Ground,
    api::ApiServer,
    objects::{CLUSTER_UPGRADE, FLEET_UPGRADE, MANAGED_CLUSTER, NAMESPACE, Objects},
    olm::{establish, read_crds},
    operators::Release,
    rig::{AGENT, Agent, Rig},
};

/// The hub's own namespace, and that of the campaign.
const HOME: &str = "wavelift";
const CAMPAIGN: &str = "spring";
/// How the hub calls itself in the audit log.
const HUB: &str = "wavelift-hub-under-test";

/// A hub and the API server it is on.
struct HubSide {
    api: ApiServer,
    objects: Objects,
    hub: Hub,
    _stop: DropGuard,
}

/// A managed cluster: one operator three hops behind, and two that share an InstallPlan.
struct Member {
    name: &'static str,
    lamps: Rig,
    weaving: Rig,
    cluster: Arc<Cluster>,
}

// === impl HubSide ===

impl HubSide {
    async fn start(ground: &Ground, clusters: &[&str]) -> Result<Self> {
        let api = ground.cluster("hub").await?;
        let objects = Objects::new(api.client().await?);
        let mut crds = read_crds(&ground.programs.managed_cluster_crds)?;
        crds.extend_from_slice(harness::crds());
        establish(&objects, &crds).await?;
        for namespace in [HOME].iter().chain(clusters) {
            objects.create(NAMESPACE, "", &json!({"metadata": {"name": namespace}})).await?;
        }
        for cluster in clusters {
            let managed = json!({
                "metadata": {"name": cluster}, "spec": {"hubAcceptsClient": true}});
            objects.create(MANAGED_CLUSTER, "", &managed).await?;
        }
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut options = HubOptions::new(api.client_as(HUB).await?, HOME);
        (options.link_address, options.http_address) = (loopback, loopback);
        let stop = CancellationToken::new();
        let hub = Hub::start(options, stop.clone()).await?;
        hub.leader().wait_for(|state| state.term.is_some()).await?;
        Ok(Self { api, objects, hub, _stop: stop.drop_guard() })
    }

    /// What the agent of a cluster needs to come in.
    async fn door(&self, cluster: &str) -> Result<Door> {
        let managed =
            self.objects.get(MANAGED_CLUSTER, "", cluster).await?.context("no cluster")?;
        let uid = managed["metadata"]["uid"].as_str().context("a uid")?;
        let name = ClusterName::try_from(cluster)?;
        let material = self.hub.issue_agent(&name, &Uid::try_from(uid.to_owned())?)?;
        let address = self.hub.link_address();
        Ok(Door {
            host: address.ip().to_string(),
            port: address.port(),
            server_name: "localhost".to_owned(),
            tls: tls::fixed(tls::client_config(&material)?),
        })
    }

    async fn launch(&self) -> Result<()> {
        let digest = self.status().await?["planDigest"].clone();
        ensure!(digest.is_string(), "there is no digest");
        // Paused, so that there is time between the word and the start.
        self.edit(&json!({"stage": "Rollout", "planDigest": digest, "control": "Paused"})).await
    }

    async fn edit(&self, spec: &Value) -> Result<()> {
        let at = (HOME, CAMPAIGN);
        self.objects.patch(FLEET_UPGRADE, at, &json!({"spec": spec})).await
    }

    async fn status(&self) -> Result<Value> {
        let fleet = self.objects.get(FLEET_UPGRADE, HOME, CAMPAIGN).await?;
        Ok(fleet.context("the campaign is gone")?["status"].clone())
    }

    async fn until_phase(&self, phase: &str) -> Result<Value> {
        let wanted = |fleet: &Value| fleet["status"]["phase"] == phase;
        let at = (HOME, CAMPAIGN);
        let fleet = self.objects.until_object(FLEET_UPGRADE, at, wanted).await?;
        Ok(fleet["status"].clone())
    }

    /// Waits until a cluster's row is as `wanted`.
    async fn until_row(&self, cluster: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let path = format!("/api/v1/fleetupgrades/{HOME}/{CAMPAIGN}/clusters/{cluster}");
        let seen = Mutex::new(Value::Null);
        let look = || async {
            let row = http::json(self.hub.http_address(), &path).await?["cluster"].take();
            seen.lock().clone_from(&row);
            Ok(wanted(&row).then_some(row))
        };
        let found = self.objects.until(&format!("{cluster} to be as wanted"), look).await;
        found.with_context(|| format!("it is {}", seen.lock()))
    }

    async fn until_ended(&self, cluster: &str) -> Result<()> {
        let look = || async {
            let parts = self.objects.list(CLUSTER_UPGRADE, cluster).await?;
            let ended = parts.first().filter(|part| laws::is_ended(part));
            Ok(ended.map(|part| part["status"]["state"].clone()))
        };
        // Four steps on an OLM that shares the machine with two others.
        let state = self.objects.until_late(&format!("the end of {cluster}"), look).await;
        let parts = self.objects.list(CLUSTER_UPGRADE, cluster).await?;
        let shown = || format!("{cluster} is {parts:?}");
        ensure!(state.with_context(shown)? == "Succeeded", "{}", shown());
        Ok(())
    }
}

// === impl Member ===

impl Member {
    async fn start(ground: &Arc<Ground>, name: &'static str) -> Result<Self> {
        let cluster = Arc::new(Cluster::on(ground, name).await?);
        let lamps = Rig::start(Arc::clone(&cluster), &format!("{name}-lamps"), &lamps()).await?;
        let first = [Release::new("loom", "2.0.0"), Release::new("spindle", "1.0.0")];
        let namespace = format!("{name}-weaving");
        let mut weaving = Rig::start(Arc::clone(&cluster), &namespace, &first).await?;
        lamps.install(&[("lamp", "1.0.0")]).await?;
        weaving.install(&[("loom", "2.0.0"), ("spindle", "1.0.0")]).await?;
        let newer = [
            Release::new("loom", "2.1.0").replaces("2.0.0"),
            Release::new("spindle", "1.1.0").replaces("1.0.0"),
        ];
        weaving.serve(&[first.as_slice(), newer.as_slice()].concat()).await?;
        Ok(Self { name, lamps, weaving, cluster })
    }

    async fn agent(&self, hub: &HubSide) -> Result<Agent> {
        self.lamps.agent_of_hub(self.name, hub.door(self.name).await?).await
    }

    /// What was approved, in each namespace in order.
    async fn approved(&self) -> Result<[Vec<String>; 2]> {
        Ok([self.lamps.approved().await?, self.weaving.approved().await?])
    }

    /// The agent wrote in its own namespace alone.
    fn is_untouched(&self) -> Result<()> {
        let mut beyond = writes(self.cluster.api(), AGENT)?;
        beyond.retain(|line| !line.ends_with(&format!(" in {}-lamps-agent", self.name)));
        ensure!(beyond.is_empty(), "{}: {beyond:?}", self.name);
        Ok(())
    }

    /// The agent wrote on the whole cluster what an upgrade needs, and nothing else.
    fn kept_to_its_own(&self) -> Result<()> {
        let name = self.name;
        let allowed = [
            format!("create clusterupgrades in {name}-lamps-agent"),
            format!("patch clusterupgrades in {name}-lamps-agent"),
            format!("update clusterupgrades/status in {name}-lamps-agent"),
            format!("patch subscriptions in {name}-lamps"),
            format!("patch subscriptions in {name}-weaving"),
            format!("patch installplans in {name}-lamps"),
            format!("patch installplans in {name}-weaving"),
            // A plan that OLM made before the catalog changed, and that nobody has approved.
            format!("delete installplans in {name}-lamps"),
        ];
        let mut beyond = writes(self.cluster.api(), AGENT)?;
        beyond.retain(|line| !allowed.contains(line));
        ensure!(beyond.is_empty(), "{name}: {beyond:?}");
        Ok(())
    }
}

/// What somebody wrote: verb, resource and namespace, but for what was refused.
fn writes(api: &ApiServer, who: &str) -> Result<BTreeSet<String>> {
    let audit = api.audit()?;
    let own = audit.iter().filter(|event| {
        let code = event["responseStatus"]["code"].as_i64();
        event["userAgent"] == who && code.is_some_and(|code| code < 300)
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |event: &Value| {
        let object = &event["objectRef"];
        let (resource, part) = (text(&object["resource"]), text(&object["subresource"]));
        let slash = if part.is_empty() { "" } else { "/" };
        let (verb, namespace) = (text(&event["verb"]), text(&object["namespace"]));
        format!("{verb} {resource}{slash}{part} in {namespace}")
    };
    Ok(own.map(line).collect())
}

/// Four versions in a row.
fn lamps() -> Vec<Release<'static>> {
    vec![
        Release::new("lamp", "1.0.0"),
        Release::new("lamp", "1.1.0").replaces("1.0.0"),
        Release::new("lamp", "1.2.0").replaces("1.1.0"),
        Release::new("lamp", "1.3.0").replaces("1.2.0"),
    ]
}

async fn create_campaign(hub: &HubSide) -> Result<()> {
    let spec = json!({
        "targets": {"operators": [
            {"package": "lamp", "versionRange": ">=1.3.0 <2.0.0"},
            {"package": "loom"},
            {"package": "spindle"},
        ]},
        "clusters": {"labelSelector": {}},
        "waves": [
            {"name": "canary", "names": ["amber"]},
            {"name": "rest", "names": ["basalt", "cedar"], "maxConcurrent": 2, "maxFailures": 1},
        ],
        "budget": {"mode": "Strict"},
        "stage": "Preview", "control": "Running", "onPlanChange": "Stop",
        "afterUpgrade": "Hold",
    });
    let fleet = json!({"metadata": {"name": CAMPAIGN, "namespace": HOME}, "spec": spec});
    hub.objects.create(FLEET_UPGRADE, HOME, &fleet).await
}

fn waits_for_consent(row: &Value) -> bool {
    row["waitingOn"]["type"] == "Consent"
}

/// The clusters, in the order of their waves.
const NAMES: [&str; 3] = ["amber", "basalt", "cedar"];

/// The clusters with their agents, and the hub.
struct Fleet {
    hub: HubSide,
    amber: Member,
    basalt: Member,
    cedar: Member,
    _agents: Vec<Agent>,
}

impl Fleet {
    async fn start(ground: &Arc<Ground>) -> Result<Self> {
        let hub = HubSide::start(ground, &NAMES).await?;
        let [amber, basalt, cedar] = NAMES.map(|name| Member::start(ground, name));
        let (amber, basalt, cedar) = tokio::try_join!(amber, basalt, cedar)?;
        let mut agents = vec![];
        for member in [&amber, &basalt, &cedar] {
            agents.push(member.agent(&hub).await?);
        }
        Ok(Self { hub, amber, basalt, cedar, _agents: agents })
    }

    fn members(&self) -> [&Member; 3] {
        [&self.amber, &self.basalt, &self.cedar]
    }

    /// Preview and preflight, which touch nothing.
    async fn prepare(&self) -> Result<()> {
        create_campaign(&self.hub).await?;
        let previewed = self.hub.until_phase("Previewed").await?;
        ensure!(previewed["summary"]["clusters"] == 3, "{previewed}");
        self.hub.edit(&json!({"stage": "Preflight"})).await?;
        self.hub.until_phase("Preflighted").await?;
        self.members().into_iter().try_for_each(Member::is_untouched)
    }

    /// Amber: another catalog with the same sets. Basalt: the same target by one step. Cedar: a
    /// newer version within the range that was asked for. All of it known to the hub.
    async fn change_catalogs(&mut self) -> Result<()> {
        let more = [lamps(), vec![Release::new("buoy", "1.0.0")]].concat();
        self.amber.lamps.serve(&more).await?;
        let mut shorter = lamps();
        shorter[3] = shorter[3].clone().skip_range(">=1.0.0 <1.3.0");
        self.basalt.lamps.serve(&shorter).await?;
        let next = Release::new("lamp", "1.4.0").replaces("1.3.0").skip_range(">=1.0.0 <1.4.0");
        self.cedar.lamps.serve(&[lamps(), vec![next]].concat()).await?;
        for (cluster, version) in [("basalt", "1.3.0"), ("cedar", "1.4.0")] {
            let is_seen = |row: &Value| {
                let moves = row["moves"].as_array().into_iter().flatten();
                moves.clone().any(|item| {
                    item["package"] == "lamp" && item["to"] == version && item["hops"] == 1
                })
            };
            self.hub.until_row(cluster, is_seen).await?;
        }
        Ok(())
    }

    /// The hub wrote its own objects and nothing else.
    fn hub_kept_to_itself(&self) -> Result<()> {
        let own =
            [format!("create secrets in {HOME}"), format!("update fleetupgrades/status in {HOME}")];
        let is_part = |line: &str| {
            ["create clusterupgrades", "update clusterupgrades"].iter().any(|p| line.starts_with(p))
                && NAMES.iter().any(|name| line.ends_with(&format!(" in {name}")))
        };
        let mut beyond = writes(&self.hub.api, HUB)?;
        beyond.retain(|line| !own.contains(line) && !is_part(line));
        ensure!(beyond.is_empty(), "the hub wrote {beyond:?}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_goes_as_far_as_its_users_word_while_catalogs_change() {
    let Some(shared) = Cluster::shared_if_long().await else { return };
    let mut fleet = Fleet::start(&shared.ground).await.unwrap();
    fleet.prepare().await.unwrap();
    fleet.hub.launch().await.unwrap();
    fleet.hub.until_phase("Paused").await.unwrap();
    let launched = fleet.hub.status().await.unwrap()["planDigest"].clone();
    fleet.change_catalogs().await.unwrap();

    let Fleet { hub, amber, basalt, cedar, .. } = &fleet;
    let pair = "loom.v2.1.0+spindle.v1.1.0";
    hub.edit(&json!({"control": "Running"})).await.unwrap();
    hub.until_ended("amber").await.unwrap();
    let three = ["lamp.v1.1.0", "lamp.v1.2.0", "lamp.v1.3.0"];
    assert_eq!(amber.approved().await.unwrap(), [three.as_slice(), &[pair]]);
    for member in [basalt, cedar] {
        hub.until_row(member.name, waits_for_consent).await.unwrap();
        member.is_untouched().unwrap();
    }
    assert_ne!(hub.status().await.unwrap()["planDigest"], launched);

    hub.edit(&json!({"onPlanChange": "SameTarget"})).await.unwrap();
    hub.until_ended("basalt").await.unwrap();
    assert_eq!(basalt.approved().await.unwrap(), [["lamp.v1.3.0"], [pair]]);
    hub.until_row("cedar", waits_for_consent).await.unwrap();
    cedar.is_untouched().unwrap();

    hub.edit(&json!({"onPlanChange": "WithinRange"})).await.unwrap();
    hub.until_ended("cedar").await.unwrap();
    assert_eq!(cedar.approved().await.unwrap(), [["lamp.v1.4.0"], [pair]]);
    let ended = hub.until_phase("Succeeded").await.unwrap();
    assert_eq!(ended["summary"]["succeeded"], 3, "{ended}");
    assert_eq!(ended["epoch"], 1, "one consent: {ended}");
    for member in fleet.members() {
        member.kept_to_its_own().unwrap();
    }
    fleet.hub_kept_to_itself().unwrap();
}
