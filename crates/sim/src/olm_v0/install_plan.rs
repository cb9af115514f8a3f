//! Install plans: from a resolution's answer to objects on the cluster.
//!
//! A plan creates its CSVs first, and its other steps some time later. When one of those is refused
//! the CSVs are there already: such a plan fails after a minute and is a dead end. Whether a
//! subscription refers to a plan plays no part: what is approved runs.

use serde_json::{Value, json};

use super::{
    Key, OlmV0, Task, definitions,
    objects::{array, at, set, stamp, text},
    phase::Groups,
    queue::after,
    resolution::Resolved,
    subscription::GENERATED_BY,
};
use crate::apiserver::gk;
use jiff::Timestamp;

/// A step that the API server does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it answers.
    pub message: String,
    /// How long OLM goes on trying.
    pub persistence: Persistence,
}

/// How long OLM tries a refused step again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// A minute, then the plan fails for good.
    Minute,
    /// For ever: what is answered with 403 Forbidden.
    Endless,
}

/// A plan being made or carried out.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The subscriptions that will refer to it, each with the CSV it waits for.
    pub(super) referrers: Vec<(Key, String)>,
    /// Its steps, until they are written into its status.
    steps: Vec<Value>,
    sources: Vec<String>,
    stage: Stage,
    since: Option<Timestamp>,
    /// When the next thing is to be done; wakes before that mean nothing.
    due: Option<Timestamp>,
}

/// How far a plan has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It waits for its status, for its subscriptions or for approval.
    #[default]
    Waiting,
    /// The CSVs come next.
    Csvs,
    /// Everything else comes next.
    Steps,
    /// Only its status is missing.
    Finishing,
}

impl Run {
    /// A plan with these moves that has no status yet.
    pub(super) fn planned(moves: &[Resolved], referrers: Vec<(Key, String)>) -> Self {
        let namespace = referrers.first().map_or("", |(key, _)| key.namespace.as_str()).to_owned();
        let mut sources: Vec<String> =
            moves.iter().map(|resolved| resolved.bundle.source.1.clone()).collect();
        sources.dedup();
        Self { referrers, steps: steps(&namespace, moves), sources, ..Self::default() }
    }
}

/// All steps of a plan: first every CSV, then the rest bundle by bundle.
fn steps(namespace: &str, moves: &[Resolved]) -> Vec<Value> {
    let csv = |resolved: &Resolved| {
        let manifest = resolved.bundle.csv(namespace, resolved.from.as_deref());
        step(resolved, ["operators.coreos.com", "v1alpha1"], &manifest)
    };
    let rest = |resolved: &Resolved| {
        let mut steps: Vec<Value> = resolved
            .bundle
            .crds()
            .iter()
            .map(|crd| step(resolved, ["apiextensions.k8s.io", "v1"], crd))
            .collect();
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": resolved.bundle.package, "namespace": namespace },
        });
        steps.push(step(resolved, ["", "v1"], &account));
        if resolved.subscription.is_none() {
            let subscription = generated(namespace, resolved);
            steps.push(step(resolved, ["operators.coreos.com", "v1alpha1"], &subscription));
        }
        steps
    };
    moves.iter().map(csv).chain(moves.iter().flat_map(rest)).collect()
}

fn step(resolved: &Resolved, [group, version]: [&str; 2], manifest: &Value) -> Value {
    let (source_namespace, source) = &resolved.bundle.source;
    json!({
        "resolving": resolved.bundle.name,
        "resource": {
            "group": group,
            "version": version,
            "kind": at(manifest, "/kind"),
            "name": at(manifest, "/metadata/name"),
            "manifest": manifest.to_string(),
            "sourceName": source,
            "sourceNamespace": source_namespace,
        },
        "status": "Unknown",
    })
}

/// The subscription that OLM makes for a dependency. It is Automatic whatever the others are.
fn generated(namespace: &str, resolved: &Resolved) -> Value {
    let bundle = &resolved.bundle;
    let (source_namespace, source) = &bundle.source;
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {
            "name": format!("{}-{}-{source}-{source_namespace}", bundle.package, bundle.channel),
            "namespace": namespace,
            "labels": { "olm.managed": "true" },
        },
        "spec": {
            "name": bundle.package,
            "channel": bundle.channel,
            "source": source,
            "sourceNamespace": source_namespace,
            "installPlanApproval": "Automatic",
            "startingCSV": bundle.name,
        },
    })
}

impl OlmV0 {
    /// Moves a plan on.
    pub(super) fn sync_install_plan(&mut self, key: &Key) {
        let Some(plan) = self.objects.get(&gk::INSTALL_PLAN, key) else { return };
        match text(&plan, "/status/phase") {
            "" => self.write_steps(key, &plan),
            "RequiresApproval" => self.when_approved(key, &plan),
            "Installing" => self.carry_on(key, &plan),
            _ => {
                self.refer_now(key, &plan);
                self.runs.remove(key);
            }
        }
    }

    fn write_steps(&mut self, key: &Key, plan: &Value) {
        let Some(run) = self.runs.get_mut(key) else { return };
        let (steps, sources) = (std::mem::take(&mut run.steps), std::mem::take(&mut run.sources));
        let approved = at(plan, "/spec/approved").as_bool() == Some(true);
        let phase = if approved { "Installing" } else { "RequiresApproval" };
        self.objects.modify_status(&gk::INSTALL_PLAN, key, |plan| {
            set(
                plan,
                "/status",
                json!({ "catalogSources": sources, "phase": phase, "plan": steps }),
            );
        });
        let due = after(self.now, self.timing.plan_referenced.draw(&mut self.rng));
        self.wake(key, due);
    }

    /// Has a plan looked at again at `due` and not before.
    fn wake(&mut self, key: &Key, due: Timestamp) {
        self.runs.entry(key.clone()).or_default().due = Some(due);
        self.queue.push(due, Task::InstallPlan(key.clone()));
    }

    /// Lets the subscriptions refer to a plan; says whether there were any left to do so.
    fn refer_now(&mut self, key: &Key, plan: &Value) -> bool {
        let Some(run) = self.runs.get_mut(key) else { return false };
        let referrers = std::mem::take(&mut run.referrers);
        let any = !referrers.is_empty();
        self.refer_to_plan(plan, referrers);
        any
    }

    fn is_early(&mut self, key: &Key) -> bool {
        let Some(due) = self.runs.get(key).and_then(|run| run.due) else { return false };
        if self.now < due {
            self.queue.push(due, Task::InstallPlan(key.clone()));
            return true;
        }
        false
    }

    fn when_approved(&mut self, key: &Key, plan: &Value) {
        if self.is_early(key) {
            return;
        }
        self.refer_now(key, plan);
        self.runs.remove(key);
        if at(plan, "/spec/approved").as_bool() != Some(true) {
            return;
        }
        let count = self.objects.keys(&gk::OPERATOR_GROUP, &key.namespace).len();
        let now = stamp(self.now);
        if self.groups(&key.namespace) != Groups::One {
            let why = format!(
                "more than one operator group(s) are managing this namespace count={count}"
            );
            self.objects.modify_status(&gk::INSTALL_PLAN, key, |plan| {
                installed(plan, "False", Some("InstallCheckFailed"), &why, &now);
            });
            return;
        }
        self.objects.modify_status(&gk::INSTALL_PLAN, key, |plan| {
            set(plan, "/status/phase", json!("Installing"));
            if !array(plan, "/status/conditions").is_empty() {
                installed(plan, "False", Some("Unknown"), "", &now);
            }
        });
        let due = after(self.now, self.timing.csv_created.draw(&mut self.rng));
        let run = self.runs.entry(key.clone()).or_default();
        run.stage = Stage::Csvs;
        self.wake(key, due);
    }

    fn carry_on(&mut self, key: &Key, plan: &Value) {
        if self.is_early(key) {
            return;
        }
        self.refer_now(key, plan);
        let now = self.now;
        let run = self.runs.entry(key.clone()).or_default();
        run.since.get_or_insert(now);
        match run.stage {
            Stage::Waiting | Stage::Csvs => {
                run.stage = Stage::Steps;
                self.create_csvs(key, plan);
                let due = after(now, self.timing.steps_applied.draw(&mut self.rng));
                self.wake(key, due);
            }
            Stage::Steps => self.apply_steps(key, plan),
            Stage::Finishing => self.finish(key),
        }
    }

    fn create_csvs(&mut self, key: &Key, plan: &Value) {
        for step in array(plan, "/status/plan") {
            if text(step, "/resource/kind") != "ClusterServiceVersion" {
                continue;
            }
            let csv = Key::new(&key.namespace, text(step, "/resource/name"));
            if self.objects.get(&gk::CSV, &csv).is_some() {
                continue;
            }
            if let Ok(manifest) = serde_json::from_str(text(step, "/resource/manifest")) {
                self.unapplied.insert(csv);
                self.objects.create(&gk::CSV, manifest);
            }
        }
    }

    /// Applies everything but the CSVs, or writes down what the API server has against it.
    fn apply_steps(&mut self, key: &Key, plan: &Value) {
        let csvs: Vec<String> = array(plan, "/spec/clusterServiceVersionNames")
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let scripted = csvs.iter().find_map(|csv| self.refusals.get(csv)).cloned();
        if let Some(refusal) = scripted.or_else(|| self.refused_definition(plan)) {
            self.refused(key, &refusal);
            return;
        }
        for step in array(plan, "/status/plan") {
            self.apply_step(key, step);
        }
        for csv in csvs {
            let csv = Key::new(&key.namespace, csv);
            self.unapplied.remove(&csv);
            self.later(self.timing.csv_step, Task::Csv(csv));
        }
        let due = after(self.now, self.timing.plan_complete.draw(&mut self.rng));
        let run = self.runs.entry(key.clone()).or_default();
        run.stage = Stage::Finishing;
        self.wake(key, due);
    }

    /// Why a definition of the plan is refused.
    fn refused_definition(&self, plan: &Value) -> Option<Refusal> {
        array(plan, "/status/plan").iter().find_map(|step| {
            if text(step, "/resource/kind") != "CustomResourceDefinition" {
                return None;
            }
            let manifest = serde_json::from_str(text(step, "/resource/manifest")).ok()?;
            definitions::refusal(&self.objects, &manifest)
        })
    }

    fn apply_step(&self, plan: &Key, step: &Value) {
        let Ok(mut manifest) = serde_json::from_str::<Value>(text(step, "/resource/manifest"))
        else {
            return;
        };
        match text(step, "/resource/kind") {
            "CustomResourceDefinition" => {
                let key = Key::new("", text(step, "/resource/name"));
                if self.objects.get(&gk::CRD, &key).is_none() {
                    self.objects.create(&gk::CRD, manifest);
                } else {
                    let spec = at(&manifest, "/spec").clone();
                    self.objects.modify(&gk::CRD, &key, |crd| set(crd, "/spec", spec));
                }
            }
            "ServiceAccount" => {
                self.objects.create(&gk::SERVICE_ACCOUNT, manifest);
            }
            "Subscription" => {
                set(&mut manifest, "/metadata/annotations", json!({ GENERATED_BY: plan.name }));
                self.objects.create(&gk::SUBSCRIPTION, manifest);
            }
            _ => {}
        }
    }

    fn refused(&mut self, key: &Key, refusal: &Refusal) {
        let since = self.runs.get(key).and_then(|run| run.since).unwrap_or(self.now);
        let gives_up = refusal.persistence == Persistence::Minute
            && self.now >= after(since, self.timing.step_gives_up);
        let now = stamp(self.now);
        let retrying = format!("retrying execution due to error: {}", refusal.message);
        if gives_up {
            self.objects.modify_status(&gk::INSTALL_PLAN, key, |plan| {
                set(plan, "/status/phase", json!("Failed"));
                set(plan, "/status/message", json!(refusal.message));
                installed(plan, "False", Some("InstallComponentFailed"), &refusal.message, &now);
            });
            return;
        }
        self.objects.modify_status(&gk::INSTALL_PLAN, key, |plan| {
            set(plan, "/status/message", json!(retrying));
            if text(plan, "/status/startTime").is_empty() {
                set(plan, "/status/startTime", json!(stamp(since)));
            }
        });
        let due = after(self.now, self.timing.step_retry.draw(&mut self.rng));
        self.wake(key, due);
    }

    fn finish(&mut self, key: &Key) {
        let now = stamp(self.now);
        self.objects.modify_status(&gk::INSTALL_PLAN, key, |plan| {
            let mut steps = array(plan, "/status/plan").to_vec();
            for step in &mut steps {
                let present = text(step, "/resource/kind") == "CustomResourceDefinition";
                let status = if present { "Present" } else { "Created" };
                set(step, "/status", json!(status));
            }
            set(plan, "/status/plan", Value::Array(steps));
            set(plan, "/status/phase", json!("Complete"));
            set(plan, "/status/message", Value::Null);
            installed(plan, "True", None, "", &now);
        });
    }
}

/// Writes the one condition that a plan has.
fn installed(plan: &mut Value, status: &str, reason: Option<&str>, message: &str, now: &str) {
    let known = at(plan, "/status/conditions/0");
    if text(known, "/status") == status
        && text(known, "/reason") == reason.unwrap_or_default()
        && text(known, "/message") == message
    {
        return;
    }
    let mut condition = json!({
        "type": "Installed", "status": status, "lastUpdateTime": now, "lastTransitionTime": now,
    });
    if let Some(reason) = reason {
        set(&mut condition, "/reason", json!(reason));
    }
    if !message.is_empty() {
        set(&mut condition, "/message", json!(message));
    }
    set(plan, "/status/conditions", json!([condition]));
}
