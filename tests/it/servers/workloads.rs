//! What the Deployment controller and the kubelet would do: Deployments roll out as they are told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval},
};

use wavelift_sim::cluster::SimCluster;

use super::{
    objects::{DEPLOYMENT, Objects},
    simulated,
};

/// What a rollout does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rollout {
    /// It is well after so long.
    Well(Duration),
    /// Its new pod never becomes available; an old one stays.
    Never,
    /// It does not become available, and its deadline passes.
    DeadlineExceeded,
    /// No pod of it is available any more.
    Lost,
}

/// The Deployments of one namespace. They stand still once this is dropped.
#[derive(Debug)]
pub(crate) enum Workloads {
    /// Of a real API server.
    Played { told: Arc<Mutex<BTreeMap<String, Told>>>, task: JoinHandle<()> },
    /// Of a cluster that plays them itself.
    Simulated { sim: Arc<SimCluster>, namespace: String },
}

/// What a Deployment was told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    rollout: Rollout,
    /// How many times it was told to do so at once.
    turns: u32,
}

/// A generation that is being rolled out.
struct Seen {
    generation: i64,
    turns: u32,
    since: Instant,
    rollout: Rollout,
    shown: Shown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Coming,
    Well,
    Late,
    Lost,
}

const LOOK: Duration = Duration::from_millis(200);
const QUICK: Rollout = Rollout::Well(Duration::from_secs(1));

// === impl Workloads ===

impl Workloads {
    /// All rollouts are well after a second, until told otherwise.
    pub(crate) fn start(objects: Objects, namespace: &str) -> Self {
        let told = Arc::<Mutex<BTreeMap<String, Told>>>::default();
        let task = tokio::spawn(drive(objects, namespace.to_owned(), Arc::clone(&told)));
        Self::Played { told, task }
    }

    /// What the rollouts of a Deployment that begin from now on do.
    pub(crate) fn tell(&self, deployment: &str, rollout: Rollout) {
        match self {
            Self::Played { told, .. } => put(told, deployment, rollout, 0),
            Self::Simulated { sim, .. } => simulated::tell(sim, deployment, rollout),
        }
    }

    /// What becomes of a Deployment from now on.
    pub(crate) fn tell_now(&self, deployment: &str, rollout: Rollout) {
        match self {
            Self::Played { told, .. } => put(told, deployment, rollout, 1),
            Self::Simulated { sim, namespace } => {
                simulated::tell_now(sim, namespace, deployment, rollout);
            }
        }
    }
}

impl Drop for Workloads {
    fn drop(&mut self) {
        if let Self::Played { task, .. } = self {
            task.abort();
        }
    }
}

fn put(told: &Mutex<BTreeMap<String, Told>>, deployment: &str, rollout: Rollout, more: u32) {
    let mut told = told.lock();
    let turns = told.get(deployment).map_or(0, |told| told.turns) + more;
    told.insert(deployment.to_owned(), Told { rollout, turns });
}

async fn drive(objects: Objects, namespace: String, told: Arc<Mutex<BTreeMap<String, Told>>>) {
    let mut seen = BTreeMap::new();
    let mut turns = interval(LOOK);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        // The API server may be away; then it is asked again.
        let Ok(deployments) = objects.list(DEPLOYMENT, &namespace).await else { continue };
        for deployment in deployments {
            // A conflict is met again at the next turn.
            drop(roll_out(&objects, &told, &mut seen, &deployment).await);
        }
    }
}

async fn roll_out(
    objects: &Objects,
    told: &Mutex<BTreeMap<String, Told>>,
    seen: &mut BTreeMap<String, Seen>,
    deployment: &Value,
) -> Result<()> {
    let text = |name: &str| deployment["metadata"][name].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let generation = deployment["metadata"]["generation"].as_i64().unwrap_or(0);
    let id = text("uid");
    let now = Instant::now();
    let Told { rollout, turns } =
        told.lock().get(&name).copied().unwrap_or(Told { rollout: QUICK, turns: 0 });
    let fresh = || Seen { generation, turns, since: now, rollout, shown: Shown::Nothing };
    let seen = seen.entry(id).or_insert_with(fresh);
    if (seen.generation, seen.turns) != (generation, turns) {
        *seen = fresh();
    }
    let wanted = match seen.rollout {
        Rollout::Well(after) if seen.since.elapsed() >= after => Shown::Well,
        Rollout::Well(_) | Rollout::Never => Shown::Coming,
        Rollout::DeadlineExceeded => Shown::Late,
        Rollout::Lost => Shown::Lost,
    };
    if seen.shown == wanted {
        return Ok(());
    }
    let status = status(deployment, generation, wanted);
    let patch = json!({ "status": status });
    objects.patch_status(DEPLOYMENT, (&namespace, &name), &patch).await?;
    seen.shown = wanted;
    Ok(())
}

fn status(deployment: &Value, generation: i64, shown: Shown) -> Value {
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_first = deployment["status"]["observedGeneration"].is_null();
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        json!({"type": kind, "status": if status { "True" } else { "False" },
            "reason": reason, "message": message})
    };
    let unready = if is_first { 0 } else { replicas };
    let (ready, all, progress) = match shown {
        Shown::Nothing | Shown::Coming => (
            unready,
            unready + replicas,
            condition("Progressing", true, "ReplicaSetUpdated", "a new pod is coming"),
        ),
        Shown::Well => (
            replicas,
            replicas,
            condition("Progressing", true, "NewReplicaSetAvailable", "it has rolled out"),
        ),
        Shown::Late => (
            unready,
            unready + replicas,
            condition("Progressing", false, "ProgressDeadlineExceeded", "its deadline has passed"),
        ),
        Shown::Lost => (
            0,
            replicas,
            condition("Progressing", true, "NewReplicaSetAvailable", "it has rolled out"),
        ),
    };
    let available = if ready > 0 {
        condition("Available", true, "MinimumReplicasAvailable", "enough pods are available")
    } else {
        condition("Available", false, "MinimumReplicasUnavailable", "no pod is available")
    };
    json!({
        "observedGeneration": generation, "replicas": all, "updatedReplicas": replicas,
        "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": all - ready,
        "conditions": [available, progress],
    })
}
