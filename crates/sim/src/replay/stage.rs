//! Plays one recording on a simulated cluster.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use wavelift_catalog::Catalog;

use super::{
    Freedom, Pace,
    bundles::Bundles,
    recording::{Change, Line, watched_seconds},
    sequences::{Sequences, not_a_prefix},
};
use crate::{
    apiserver::{Batch, ChangeKind, Changes, Gk, Subresource, gk},
    cluster::drive::Driver,
    olm_v0::{
        Persistence, Refusal,
        objects::{array, at, text},
        queue::after,
    },
    workload::Behaviour,
};

/// The namespace that plays the global one in the recordings.
const GLOBAL: &str = "olm";

/// The longest that the simulation may take to where the recording was.
const PATIENCE_SECONDS: u64 = 900;

/// Plays a recording and says where the simulation went another way.
pub(super) fn play(lines: &[Line], pace: Pace, freedom: Freedom, seed: u64) -> Result<(), String> {
    let mut stage = Stage::new(lines, pace, freedom, seed);
    for (place, line) in lines.iter().enumerate() {
        match line {
            Line::Event { kind, name, change, object, .. } => {
                stage.recorded.add(kind, name, *change, object);
                if kind == "Deployment" {
                    let generation = at(object, "/metadata/generation").as_u64().unwrap_or(0);
                    stage.generations.insert(name.clone(), generation);
                }
            }
            Line::Note(note) => stage.watched += watched_seconds(note),
            Line::Action { text, said } => {
                if !(text.starts_with("deployment stand-in: ") && text.contains(" generation ")) {
                    stage.catch_up().map_err(|why| format!("before `{text}`: {why}"))?;
                    stage.act(place, text, said);
                }
            }
        }
    }
    stage.catch_up().map_err(|why| format!("at the end: {why}"))?;
    stage.check_end()
}

struct Stage<'a> {
    lines: &'a [Line],
    world: Driver,
    namespace: String,
    freedom: Freedom,
    bundles: Bundles,
    /// Everything the recording holds.
    whole: Sequences,
    /// What the recording has shown so far.
    recorded: Sequences,
    played: Sequences,
    changes: Changes,
    /// The generations of the recorded Deployments so far.
    generations: BTreeMap<String, u64>,
    /// For how many seconds the recorder watched since the last action.
    watched: u64,
    contents: BTreeMap<String, Arc<Catalog>>,
    refused: Vec<String>,
}

impl<'a> Stage<'a> {
    fn new(lines: &'a [Line], pace: Pace, freedom: Freedom, seed: u64) -> Self {
        let namespace = lines
            .iter()
            .find_map(|line| match line {
                Line::Event { object, .. } => Some(text(object, "/metadata/namespace").to_owned()),
                Line::Action { .. } | Line::Note(_) => None,
            })
            .expect("a recording has events");
        let world = Driver::new(|cluster| {
            let cluster = cluster.timing(pace.timing()).seed(seed);
            cluster.kube_version("1.36.3").global_namespace(GLOBAL)
        });
        let store = world.cluster.store();
        store.create(&gk::NAMESPACE, json!({ "metadata": { "name": namespace } })).unwrap();
        let mut whole = Sequences::default();
        for line in lines {
            if let Line::Event { kind, name, change, object, .. } = line {
                whole.add(kind, name, *change, object);
            }
        }
        let changes = store.subscribe();
        let mut stage = Self {
            lines,
            world,
            namespace,
            freedom,
            bundles: Bundles::of(lines),
            whole,
            recorded: Sequences::default(),
            played: Sequences::default(),
            changes,
            generations: BTreeMap::new(),
            watched: 0,
            contents: BTreeMap::new(),
            refused: Vec::new(),
        };
        stage.refuse_what_was_refused();
        stage
    }

    /// Goes on until everything has happened that was recorded so far, then watches as long as the
    /// recorder did.
    fn catch_up(&mut self) -> Result<(), String> {
        let limit = after(self.world.now(), Duration::from_secs(PATIENCE_SECONDS));
        let watched = after(self.world.now(), Duration::from_secs(self.watched));
        self.watched = 0;
        self.look()?;
        while let Some(missing) = self.missing() {
            if !self.world.step(limit) {
                return Err(format!("never came there: {missing}"));
            }
            self.look()?;
        }
        while self.world.now() < watched {
            self.world.step(watched);
            self.look()?;
        }
        Ok(())
    }

    /// Takes in what has happened; an error when the recording knows nothing of it.
    fn look(&mut self) -> Result<(), String> {
        let Batch::Changes(changes) = self.changes.now() else {
            return Err("too much happened at once".to_owned());
        };
        for change in changes {
            if change.namespace == self.namespace {
                let kind = match change.event {
                    ChangeKind::Added => Change::Added,
                    ChangeKind::Modified => Change::Modified,
                    ChangeKind::Deleted => Change::Deleted,
                };
                self.played.add(change.gk.kind(), &change.name, kind, &change.object);
            }
        }
        let free = self.freedom == Freedom::Fight;
        match not_a_prefix(&self.played.settled(free), &self.whole.settled(free)) {
            Some(difference) => Err(format!("went another way: {difference}")),
            None => Ok(()),
        }
    }

    fn missing(&self) -> Option<String> {
        let free = self.freedom == Freedom::Fight;
        not_a_prefix(&self.recorded.settled(free), &self.played.settled(free))
    }

    fn check_end(&mut self) -> Result<(), String> {
        if self.freedom == Freedom::Fight {
            let limit = after(self.world.now(), Duration::from_secs(PATIENCE_SECONDS));
            while self.played.turns() == 0 {
                if !self.world.step(limit) {
                    return Err("nobody took the Deployment from the other".to_owned());
                }
                self.look()?;
            }
            if self.recorded.turns() == 0 {
                return Err("the recording has no turn".to_owned());
            }
        }
        Ok(())
    }

    // === what the recorder did ===

    fn act(&mut self, place: usize, action: &str, said: &Value) {
        let words: Vec<&str> = action.split_whitespace().collect();
        if let Some(rest) = action.strip_prefix("deployment stand-in: mode of ") {
            self.set_mode(place, rest);
        } else if said.get("channels").is_some() || action.contains("opm of catalog") {
            self.registry(action, said);
        } else if let Some(plan) = self.plan_in(action) {
            self.act_on_plan(&plan, action, said);
        } else if action.contains("ValidatingAdmissionPolicy") {
            self.policy(action);
        } else if action.starts_with("patch Alpha") || action.starts_with("set CRD") {
            self.accept_all();
        } else if let ["create", kind, name] = words[..]
            && let Some(gk) = known_kind(kind)
        {
            self.create(gk, name, said);
        } else if let ["delete", kind, name] = words[..]
            && let Some(gk) = known_kind(kind)
        {
            let namespace = self.home_of(name).to_owned();
            self.world.cluster.store().delete(gk, Some(&namespace), name).unwrap();
        } else if let Some(version) = action.strip_prefix("delete the new CSV ") {
            let version = version.split(' ').next().unwrap_or_default();
            let name = format!("alpha-operator.{version}");
            self.world.cluster.store().delete(&gk::CSV, Some(&self.namespace), &name).unwrap();
        } else if let Some(patch) = said.get("patch") {
            self.patch(place, action, patch);
        } else {
            assert!(
                words.first().is_some_and(|word| matches!(*word, "create" | "list")),
                "nobody knows how to do `{action}`"
            );
        }
    }

    fn create(&self, gk: &Gk, name: &str, said: &Value) {
        let mut object = said["object"].clone();
        object["metadata"]["namespace"] = json!(self.home_of(name));
        object.as_object_mut().unwrap().remove("kind");
        self.world.cluster.store().create(gk, object).unwrap();
    }

    /// Only the unrelated catalog lives elsewhere.
    fn home_of(&self, name: &str) -> &str {
        if name == "unrelated" { GLOBAL } else { &self.namespace }
    }

    fn registry(&mut self, action: &str, said: &Value) {
        let name = action.split("catalog ").nth(1).unwrap_or_default();
        let name = name.split([' ', ':']).next().unwrap_or_default().to_owned();
        if let Some(channels) = said.get("channels") {
            self.contents.insert(name.clone(), self.bundles.catalog(channels));
        }
        let home = self.home_of(&name).to_owned();
        let is_down = action.starts_with("stopped") || action.contains("NOT running");
        let content = self.contents.get(&name).cloned().filter(|_| !is_down);
        self.world.cluster.with_olm(|olm| match content {
            Some(content) => olm.serve_catalog(&home, &name, content),
            None => olm.stop_catalog(&home, &name),
        });
    }

    /// The simulated plan that stands for the one that an action names.
    fn plan_in(&self, action: &str) -> Option<String> {
        let name = action.split([' ', ':']).find(|word| word.starts_with("install-"))?;
        let place = self.recorded.plans.iter().position(|known| known == name)?;
        self.played.plans.get(place).cloned()
    }

    fn act_on_plan(&mut self, plan: &str, action: &str, said: &Value) {
        if action.starts_with("delete") {
            self.until_noted(plan);
        }
        let store = self.world.cluster.store();
        let namespace = Some(self.namespace.as_str());
        if action.starts_with("delete") {
            store.delete(&gk::INSTALL_PLAN, namespace, plan).unwrap();
        } else {
            let part = if said.pointer("/patch/status").is_some() {
                Subresource::Status
            } else {
                Subresource::Main
            };
            store.patch_merge(&gk::INSTALL_PLAN, namespace, plan, part, &said["patch"]).unwrap();
        }
    }

    /// Goes on until what waits for a plan says so: the recorder never was so quick.
    fn until_noted(&mut self, plan: &str) {
        let limit = after(self.world.now(), Duration::from_secs(PATIENCE_SECONDS));
        let is_open = |world: &Driver| {
            let all = world.cluster.store().list(&gk::SUBSCRIPTION, Some(&self.namespace));
            all.iter().any(|subscription| {
                let conditions = array(subscription, "/status/conditions");
                let is_pending = |c: &Value| text(c, "/type") == "InstallPlanPending";
                text(subscription, "/status/installPlanRef/name") == plan
                    && text(subscription, "/status/state") == "UpgradePending"
                    && !conditions.iter().any(is_pending)
            })
        };
        while is_open(&self.world) && self.world.step(limit) {}
    }

    fn patch(&self, place: usize, action: &str, patch: &Value) {
        let store = self.world.cluster.store();
        let (gk, kind) = if action.contains("OperatorCondition") {
            (&gk::OPERATOR_CONDITION, "OperatorCondition")
        } else if action.contains("OperatorGroup") || action.contains("annotation") {
            (&gk::OPERATOR_GROUP, "OperatorGroup")
        } else {
            (&gk::SUBSCRIPTION, "Subscription")
        };
        let is_status = patch.get("status").is_some();
        let name = self.next_written(place, kind, is_status || kind == "OperatorGroup");
        let part = if is_status { Subresource::Status } else { Subresource::Main };
        store.patch_merge(gk, Some(&self.namespace), &name, part, patch).unwrap();
    }

    /// The object of a kind that is written next in the recording.
    fn next_written(&self, place: usize, wanted: &str, any_part: bool) -> String {
        let found = self.lines[place..].iter().find_map(|line| match line {
            Line::Event { kind, name, spec_written, .. }
                if kind == wanted && (any_part || *spec_written) =>
            {
                Some(name.clone())
            }
            Line::Event { .. } | Line::Action { .. } | Line::Note(_) => None,
        });
        found.expect("the write was recorded")
    }

    // === Deployments ===

    /// `alpha-operator is now good 1`: for the running generation where the recording shows that it
    /// was touched, else for the next one.
    fn set_mode(&self, place: usize, said: &str) {
        let words: Vec<&str> = said.split_whitespace().collect();
        let seconds = |n: &str| Duration::from_secs(n.parse().unwrap());
        let (deployment, behaviour) = match words[..] {
            [name, "is", "now", "never"] => (name, Behaviour::Never),
            [name, "is", "now", "good", n] => (name, Behaviour::Available { after: seconds(n) }),
            [name, "is", "now", "deadline", n] => {
                (name, Behaviour::DeadlineExceeded { after: seconds(n) })
            }
            _ => unreachable!("unknown mode {said}"),
        };
        let prefix = format!("deployment stand-in: {deployment} generation ");
        let touched = self.lines[place..].iter().find_map(|line| match line {
            Line::Action { text, .. } => {
                text.strip_prefix(&prefix)?.split(' ').next()?.parse::<u64>().ok()
            }
            Line::Event { .. } | Line::Note(_) => None,
        });
        let is_running = touched.is_some() && touched == self.generations.get(deployment).copied();
        self.world.cluster.with_workload(|workload| {
            workload.script(deployment, behaviour);
            if is_running {
                // The recorded rollout began long before; here it may have begun a moment ago.
                let at_once = match behaviour {
                    Behaviour::DeadlineExceeded { .. } => {
                        Behaviour::DeadlineExceeded { after: Duration::ZERO }
                    }
                    Behaviour::Available { .. } | Behaviour::Never | Behaviour::Crashes { .. } => {
                        behaviour
                    }
                };
                workload.change(&self.namespace, deployment, at_once);
            }
        });
    }

    // === what the API server refused ===

    /// The simulation does not look into manifests: what plans say was refused is refused.
    fn refuse_what_was_refused(&mut self) {
        let uses_policies = self.lines.iter().any(|line| {
            matches!(line, Line::Action { text, .. } if text.contains("ValidatingAdmissionPolicy"))
        });
        if uses_policies {
            return;
        }
        for line in self.lines {
            let Line::Event { kind, object, .. } = line else { continue };
            if kind == "InstallPlan" && text(object, "/status/message").starts_with("retrying") {
                for csv in array(object, "/spec/clusterServiceVersionNames") {
                    self.refuse(csv.as_str().unwrap(), Persistence::Minute);
                }
            }
        }
    }

    fn refuse(&mut self, csv: &str, persistence: Persistence) {
        let refusal = Refusal { message: "not like this".to_owned(), persistence };
        self.world.cluster.with_olm(|olm| olm.refuse(csv, refusal));
        self.refused.push(csv.to_owned());
    }

    /// Accepts what was refused so far in the recording.
    fn accept_all(&mut self) {
        let so_far = self.recorded.settled(false);
        self.refused.retain(|csv| {
            let is_met = so_far.contains_key(&format!("ClusterServiceVersion {csv}"));
            if is_met {
                self.world.cluster.with_olm(|olm| olm.accept(csv));
            }
            !is_met
        });
    }

    /// `create ValidatingAdmissionPolicy deny-1: deny ConfigMap alpha-config-1-1-0 with reason ...`.
    fn policy(&mut self, action: &str) {
        let Some(rest) = action.split("alpha-config-").nth(1) else {
            self.accept_all();
            return;
        };
        let version = rest.split(' ').next().unwrap_or_default().replace('-', ".");
        let persistence =
            if action.ends_with("Forbidden") { Persistence::Endless } else { Persistence::Minute };
        self.refuse(&format!("alpha-operator.v{version}"), persistence);
    }
}

fn known_kind(kind: &str) -> Option<&'static Gk> {
    match kind {
        "CatalogSource" => Some(&gk::CATALOG_SOURCE),
        "OperatorGroup" => Some(&gk::OPERATOR_GROUP),
        "Subscription" => Some(&gk::SUBSCRIPTION),
        "ClusterServiceVersion" => Some(&gk::CSV),
        _ => None,
    }
}
