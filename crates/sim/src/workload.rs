//! Deployments that roll out as a script says: well, slowly, never, or well and then not.
//!
//! Stands in for the Deployment controller and the kubelet. What a rollout does is looked up when
//! it starts, by the CSV that owns the Deployment, then by the Deployment's name, then the default.
//! As on a real cluster the old pod stays until the new one is available, and a new generation is
//! observed before anything happens.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::{
    apiserver::{Batch, Change, ChangeKind, Store, gk},
    machine::Machine,
    olm_v0::{
        Delay, Key,
        objects::{Objects, at, key_of, set, stamp, text},
        queue::{Queue, after},
    },
};

/// What the new pods of a rollout do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// They become available.
    Available {
        /// This long after the rollout began.
        after: Duration,
    },
    /// They never become available.
    Never,
    /// They do not become available, and the Deployment says that its deadline has passed.
    DeadlineExceeded {
        /// This long after the rollout began.
        after: Duration,
    },
    /// They become available and fail later.
    Crashes {
        /// They are available this long after the rollout began,
        available_after: Duration,
        /// fail this long after that,
        lives: Duration,
        /// and are well again this long after that.
        recovers_after: Option<Duration>,
    },
}

/// The Deployments of one simulated cluster.
#[derive(Debug)]
pub struct Workload {
    objects: Objects,
    rng: ChaCha8Rng,
    queue: Queue<Key>,
    rollouts: BTreeMap<Key, Rollout>,
    script: BTreeMap<String, Behaviour>,
    default: Behaviour,
    now: Timestamp,
}

/// One Deployment's current generation.
#[derive(Debug)]
struct Rollout {
    generation: u64,
    began: Timestamp,
    behaviour: Behaviour,
    next: Next,
    /// When `next` is to happen.
    due: Timestamp,
    /// Whether pods of an earlier generation serve while the new ones come up.
    old: Old,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The controller notices the new generation.
    Observe,
    /// The new pods become available.
    Become,
    /// The deadline passes.
    Exceed,
    /// The pods fail.
    Crash(Option<Duration>),
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Old {
    None,
    Serve,
}

/// What a Deployment's pods are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pods {
    Coming(Old),
    Available,
    Lost,
    Late(Old),
}

const NOTICED: Delay = Delay::between_ms(60, 150);

impl Workload {
    /// All rollouts go well after about a second, until told otherwise.
    pub fn new(store: &Store, seed: u64, now: Timestamp) -> Self {
        let mut workload = Self {
            objects: Objects::new(store),
            rng: ChaCha8Rng::seed_from_u64(seed),
            queue: Queue::default(),
            rollouts: BTreeMap::new(),
            script: BTreeMap::new(),
            default: Behaviour::Available { after: Duration::from_secs(1) },
            now,
        };
        workload.look_at_everything();
        workload
    }

    /// What rollouts do that nothing else is said about.
    pub fn by_default(&mut self, behaviour: Behaviour) {
        self.default = behaviour;
    }

    /// What rollouts of a CSV or of a Deployment of this name do from now on.
    pub fn script(&mut self, csv_or_deployment: &str, behaviour: Behaviour) {
        self.script.insert(csv_or_deployment.to_owned(), behaviour);
    }

    /// Takes back what [`Workload::script`] said.
    pub fn unscript(&mut self, csv_or_deployment: &str) {
        self.script.remove(csv_or_deployment);
    }

    /// Changes what the pods of a Deployment's current generation do, whatever they did before.
    pub fn change(&mut self, namespace: &str, deployment: &str, behaviour: Behaviour) {
        let key = Key::new(namespace, deployment);
        let noticed = after(self.now, NOTICED.draw(&mut self.rng));
        let Some(rollout) = self.rollouts.get_mut(&key) else { return };
        rollout.behaviour = behaviour;
        if rollout.next == Next::Observe {
            return;
        }
        let is_lost = matches!(behaviour, Behaviour::Never);
        rollout.plan();
        if is_lost {
            rollout.next = Next::Crash(None);
        }
        rollout.due = rollout.due.max(noticed);
        self.queue.push(rollout.due, key);
    }

    /// Does everything that is due at `now` and says when there is more to do.
    pub fn tick(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.now = self.now.max(now);
        self.take_changes();
        while let Some((at, key)) = self.queue.pop_due(now) {
            self.now = at;
            self.sync(&key);
            self.take_changes();
        }
        self.now = self.now.max(now);
        self.queue.next()
    }

    fn take_changes(&mut self) {
        loop {
            match self.objects.changes() {
                Batch::Changes(changes) if changes.is_empty() => return,
                Batch::Changes(changes) => {
                    for change in changes.iter().filter(|change| change.gk == gk::DEPLOYMENT) {
                        self.on_change(change);
                    }
                }
                Batch::Lagged => self.look_at_everything(),
            }
        }
    }

    fn look_at_everything(&mut self) {
        for deployment in self.objects.list_all(&gk::DEPLOYMENT) {
            self.on_deployment(key_of(&deployment), &deployment);
        }
    }

    fn on_change(&mut self, change: &Change) {
        let key = Key::new(&*change.namespace, &*change.name);
        if change.event == ChangeKind::Deleted {
            self.rollouts.remove(&key);
        } else {
            self.on_deployment(key, &change.object);
        }
    }

    fn on_deployment(&mut self, key: Key, deployment: &Value) {
        let generation = count(deployment, "/metadata/generation");
        if self.rollouts.get(&key).is_some_and(|rollout| rollout.generation == generation) {
            return;
        }
        let is_observed = count(deployment, "/status/observedGeneration") == generation;
        let old =
            if count(deployment, "/status/availableReplicas") > 0 { Old::Serve } else { Old::None };
        let due = after(self.now, NOTICED.draw(&mut self.rng));
        let rollout = Rollout {
            generation,
            began: self.now,
            behaviour: self.behaviour(deployment),
            next: if is_observed { Next::Nothing } else { Next::Observe },
            due,
            old,
        };
        self.rollouts.insert(key.clone(), rollout);
        if !is_observed {
            self.queue.push(due, key);
        }
    }

    fn behaviour(&self, deployment: &Value) -> Behaviour {
        let csv = text(deployment, "/metadata/labels/olm.owner");
        let name = text(deployment, "/metadata/name");
        let said = self.script.get(csv).or_else(|| self.script.get(name));
        said.copied().unwrap_or(self.default)
    }

    fn sync(&mut self, key: &Key) {
        let now = self.now;
        let Some(rollout) = self.rollouts.get_mut(key) else { return };
        if now < rollout.due {
            self.queue.push(rollout.due, key.clone());
            return;
        }
        let generation = rollout.generation;
        let pods = match rollout.next {
            Next::Nothing => return,
            Next::Observe => {
                rollout.plan();
                Pods::Coming(rollout.old)
            }
            Next::Become => {
                rollout.next = Next::Nothing;
                if let Behaviour::Crashes { lives, recovers_after, .. } = rollout.behaviour {
                    rollout.next = Next::Crash(recovers_after);
                    rollout.due = after(now, lives);
                }
                Pods::Available
            }
            Next::Exceed => {
                rollout.next = Next::Nothing;
                Pods::Late(rollout.old)
            }
            Next::Crash(recovers_after) => {
                rollout.next = Next::Nothing;
                if let Some(recovers_after) = recovers_after {
                    rollout.behaviour = Behaviour::Available { after: Duration::ZERO };
                    rollout.next = Next::Become;
                    rollout.due = after(now, recovers_after);
                }
                Pods::Lost
            }
        };
        if rollout.next != Next::Nothing {
            self.queue.push(rollout.due, key.clone());
        }
        let now = stamp(now);
        self.objects.modify_status(&gk::DEPLOYMENT, key, |deployment| {
            write_status(deployment, generation, pods, &now);
        });
    }
}

impl Machine for Workload {
    fn tick(&mut self, now: Timestamp) -> Option<Timestamp> {
        Self::tick(self, now)
    }
}

// === impl Rollout ===

impl Rollout {
    /// Sets what comes next, and when, by the behaviour and the time the rollout began.
    fn plan(&mut self) {
        let (next, delay) = match self.behaviour {
            Behaviour::Available { after } => (Next::Become, after),
            Behaviour::Never => (Next::Nothing, Duration::ZERO),
            Behaviour::DeadlineExceeded { after } => (Next::Exceed, after),
            Behaviour::Crashes { available_after, .. } => (Next::Become, available_after),
        };
        self.next = next;
        self.due = after(self.began, delay);
    }
}

fn count(deployment: &Value, pointer: &str) -> u64 {
    at(deployment, pointer).as_u64().unwrap_or(0)
}

/// Writes a Deployment's status.
fn write_status(deployment: &mut Value, generation: u64, pods: Pods, now: &str) {
    let wanted = at(deployment, "/spec/replicas").as_u64().unwrap_or(1);
    let (replicas, available) = match pods {
        Pods::Coming(Old::Serve) | Pods::Late(Old::Serve) => (wanted + 1, wanted),
        Pods::Coming(Old::None) | Pods::Late(Old::None) | Pods::Lost => (wanted, 0),
        Pods::Available => (wanted, wanted),
    };
    let mut status = json!({
        "observedGeneration": generation,
        "replicas": replicas,
        "updatedReplicas": wanted,
        "conditions": conditions(available, pods, now),
    });
    if available > 0 {
        set(&mut status, "/availableReplicas", json!(available));
        set(&mut status, "/readyReplicas", json!(available));
    }
    if replicas > available {
        set(&mut status, "/unavailableReplicas", json!(replicas - available));
    }
    set(deployment, "/status", status);
}

fn conditions(available: u64, pods: Pods, now: &str) -> Value {
    let (is_available, available_reason, available_message) = if available > 0 {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let (is_progressing, progress_reason) = match pods {
        Pods::Late(_) => ("False", "ProgressDeadlineExceeded"),
        Pods::Coming(_) => ("True", "ReplicaSetUpdated"),
        Pods::Available | Pods::Lost => ("True", "NewReplicaSetAvailable"),
    };
    json!([
        {
            "type": "Available",
            "status": is_available,
            "reason": available_reason,
            "message": available_message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        },
        {
            "type": "Progressing",
            "status": is_progressing,
            "reason": progress_reason,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        },
    ])
}

/// The status of a Deployment that has been available for long.
pub(crate) fn settled_status(deployment: &mut Value, now: &str) {
    let generation = count(deployment, "/metadata/generation").max(1);
    write_status(deployment, generation, Pods::Available, now);
}

#[cfg(test)]
mod tests;
