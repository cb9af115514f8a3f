//! An agent that has nothing to do, and one that upgrades, on a real cluster that has much on it.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::CancellationToken;
use wavelift_runtime::{Clock, testing::is_measured};
use wavelift_sim::apiserver::gk;

use super::row;
use crate::{
    harness::{binaries::shipped_agent, child::Child, hub::HubSide},
    servers::{
        Cluster,
        objects::{CSV, DEPLOYMENT, NAMESPACE, OLM_CONFIG, OPERATOR_GROUP, Objects, SUBSCRIPTION},
        operators::{Defined, Release, Version},
        rig::Rig,
    },
};

/// Operators of all namespaces: OLM copies their CSVs into each.
const EVERYWHERE: usize = 5;
/// Namespaces of teams, and operators in each.
const TEAMS: usize = 11;
const OF_A_TEAM: usize = 5;
/// Namespaces with nothing but workloads, and how many in each.
const TENANTS: usize = 100;
const OF_A_TENANT: usize = 20;
/// Bytes of a CSV that nobody but a person reads.
const PROSE: usize = 20_000;
/// Requests at once, to fill the cluster.
const AT_ONCE: usize = 16;
/// Namespaces in which OLM installs at once.
const INSTALLS: usize = 3;

const WARM_UP: Duration = Duration::from_mins(2);
const IDLE: Duration = Duration::from_mins(5);
const LOOK: Duration = Duration::from_millis(200);
/// Of the clock of `/proc`, on every Linux in use.
const TICK_MILLIS: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resident_and_processor_time_of_an_agent() {
    if !is_measured() {
        return;
    }
    let Some(cluster) = Cluster::alone().await else { return };
    measure(cluster).await.unwrap();
}

async fn measure(cluster: Arc<Cluster>) -> Result<()> {
    let agent = tokio::task::spawn_blocking(shipped_agent).await??;
    let objects = cluster.objects().await?;
    let (everywhere, teams) = fill(&cluster, &objects).await?;
    let counts = [
        (SUBSCRIPTION, "Subscriptions"),
        (DEPLOYMENT, "Deployments"),
        (CSV, "ClusterServiceVersions, copies among them"),
    ];
    for (kind, name) in counts {
        row(name, &objects.count(kind, "").await?.to_string());
    }
    let rig = &teams[0];
    let dir = TempDir::new()?;
    let (hub, stop) = (hub(&dir).await?, CancellationToken::new());
    let target = tokio::sync::watch::Sender::new(None);
    let running = hub.inside(&target, stop.clone()).await?;
    let agent = spawn(&agent, rig, (&hub, running.link_address()), &dir)?;
    sleep(WARM_UP).await;
    let ((), idle) = watch(agent.id(), sleep(IDLE)).await?;
    idle.tell("agent, idle for five minutes");
    let packages = packages("team-0", OF_A_TEAM);
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    rig.order(&packages).await?;
    let (ended, upgrading) = watch(agent.id(), rig.until_state("Succeeded")).await?;
    ended?;
    upgrading.tell("agent, while five operators are upgraded");
    drop((agent, everywhere));
    stop.cancel();
    Ok(())
}

/// Operators and workloads for a cluster; the namespace of those for all, and those of the teams.
async fn fill(cluster: &Arc<Cluster>, objects: &Objects) -> Result<(Rig, Vec<Rig>)> {
    let copies = json!({"spec": {"features": {"disableCopiedCSVs": false}}});
    objects.patch(OLM_CONFIG, ("", "cluster"), &copies).await?;
    let tenants: Vec<String> = (0..TENANTS).map(|index| format!("tenant-{index}")).collect();
    for tenant in &tenants {
        objects.create(NAMESPACE, "", &json!({"metadata": {"name": tenant}})).await?;
    }
    let workloads = tenants.iter().flat_map(|tenant| {
        (0..OF_A_TENANT).map(move |index| async move {
            objects.create(DEPLOYMENT, tenant, &deployment(tenant, index)).await
        })
    });
    stream::iter(workloads).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    let everywhere = team(cluster, "everywhere", EVERYWHERE, true).await?;
    let teams = (0..TEAMS).map(|index| async move {
        team(cluster, &format!("team-{index}"), OF_A_TEAM, false).await
    });
    let teams: Vec<Rig> = stream::iter(teams).buffered(INSTALLS).try_collect().await?;
    let wanted = EVERYWHERE * TENANTS;
    let is_copied =
        || async { Ok((objects.count(CSV, "olm.copiedFrom").await? >= wanted).then_some(())) };
    objects.until_late("copies in all namespaces", is_copied).await?;
    Ok((everywhere, teams))
}

fn packages(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{name}-op-{index}")).collect()
}

/// A namespace with operators, each of which could be upgraded.
async fn team(
    cluster: &Arc<Cluster>,
    name: &str,
    count: usize,
    is_everywhere: bool,
) -> Result<Rig> {
    let packages = packages(name, count);
    let plurals: Vec<String> = packages.iter().map(|package| format!("{package}s")).collect();
    let modes = |name: &str, is_on: bool| json!({"type": name, "supported": is_on});
    let mut releases = vec![];
    for (package, plural) in packages.iter().zip(&plurals) {
        let defined = Defined { group: "numbers.example.com", kind: package, plural };
        let definition = defined.definition(&[Version::new("v1", None).stored()]);
        let first = Release::new(package, "1.0.0").with(definition.clone());
        let second = Release::new(package, "1.1.0").replaces("1.0.0").with(definition);
        for mut release in [first, second] {
            release.spec.push(("description", json!("x".repeat(PROSE))));
            if is_everywhere {
                let own = ["OwnNamespace", "SingleNamespace", "MultiNamespace"];
                let mut all: Vec<Value> = own.iter().map(|name| modes(name, false)).collect();
                all.push(modes("AllNamespaces", true));
                release.spec.push(("installModes", json!(all)));
            }
            releases.push(release);
        }
    }
    let rig = Rig::start(Arc::clone(cluster), name, &releases).await?;
    if is_everywhere {
        rig.objects.delete(OPERATOR_GROUP, &rig.namespace, "group").await?;
        rig.group_for_all("everywhere").await?;
    }
    let installed: Vec<(&str, &str)> = packages.iter().map(|p| (p.as_str(), "1.0.0")).collect();
    rig.install(&installed).await?;
    Ok(rig)
}

fn deployment(namespace: &str, index: usize) -> Value {
    let name = format!("work-{index}");
    let labels = json!({"app": name, "team": namespace});
    let container = json!({"name": "main", "image": format!("registry.example.com/{name}:1"),
        "env": [{"name": "HOME", "value": "/tmp"}], "ports": [{"containerPort": 8080}]});
    json!({
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    })
}

/// A hub that knows of the cluster.
async fn hub(dir: &TempDir) -> Result<HubSide> {
    wavelift_runtime::tls::install_crypto();
    let side = HubSide::start(&Clock::real(), &[], dir.path()).await?;
    side.store().create(&gk::NAMESPACE, json!({"metadata": {"name": "one"}}))?;
    let managed = json!({"metadata": {"name": "one"}, "spec": {"hubAcceptsClient": true}});
    side.store().create(&gk::MANAGED_CLUSTER, managed)?;
    Ok(side)
}

/// The agent as it is shipped: as its ServiceAccount, linked to a hub, with its page of metrics.
fn spawn(
    program: &Path,
    rig: &Rig,
    (hub, address): (&HubSide, SocketAddr),
    dir: &TempDir,
) -> Result<Child> {
    let material = hub.material("one")?;
    let home = dir.path().join("agent");
    fs::create_dir_all(&home)?;
    fs::write(home.join("tls.crt"), &material.certificates)?;
    fs::write(home.join("tls.key"), &material.key)?;
    fs::write(home.join("ca.crt"), &material.ca)?;
    fs::write(home.join("kubeconfig"), rig.account().kubeconfig(None).to_string())?;
    let flags = [
        ("--cluster", "one".into()),
        ("--namespace", rig.home().into()),
        ("--kubeconfig", home.join("kubeconfig").into_os_string()),
        ("--tls-dir", home.clone().into_os_string()),
        ("--hub", address.to_string().into()),
        ("--server-name", "localhost".into()),
        ("--http", "127.0.0.1:0".into()),
    ];
    let args = flags.into_iter().flat_map(|(flag, value)| [flag.into(), value]).collect();
    Child::spawn(program, args, &dir.path().join("agent.log"))
}

/// What a process took while something else went on.
struct Usage {
    /// The most that was resident.
    resident_kib: u64,
    processor: Duration,
    wall: Duration,
}

/// Watches a process until `end`.
async fn watch<T>(process: u32, end: impl Future<Output = T>) -> Result<(T, Usage)> {
    let (start, before) = (Instant::now(), processor(process)?);
    let mut resident_kib = 0;
    let mut looks = interval(LOOK);
    tokio::pin!(end);
    let ended = loop {
        tokio::select! {
            ended = &mut end => break ended,
            _ = looks.tick() => resident_kib = resident_kib.max(resident(process)?),
        }
    };
    let processor = processor(process)?.saturating_sub(before);
    Ok((ended, Usage { resident_kib, processor, wall: start.elapsed() }))
}

/// KiB that are resident, `VmRSS` of proc(5).
fn resident(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Processor time so far, `utime` and `stime` of proc(5): of all threads, those that have ended too.
fn processor(process: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before them is in parentheses, and may hold anything.
    let (_, fields) = stat.rsplit_once(')').context("no name")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || -> Result<u64> { Ok(fields.next().context("too few fields")?.parse()?) };
    Ok(Duration::from_millis((ticks()? + ticks()?) * TICK_MILLIS))
}

// === impl Usage ===

impl Usage {
    fn tell(&self, what: &str) {
        #[expect(clippy::cast_precision_loss, reason = "it is printed with one decimal")]
        let mib = self.resident_kib as f64 / 1024.0;
        let share = self.processor.as_secs_f64() / self.wall.as_secs_f64();
        let result = format!("{mib:.1} MiB resident at most, {:.2} millicores", share * 1000.0);
        row(what, &result);
    }
}
