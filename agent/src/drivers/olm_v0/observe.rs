//! One namespace as the driver looks at it.

use std::{collections::BTreeSet, sync::Arc};

use wavelift_catalog::status::Told;
use wavelift_core::plan::Step;

use super::failure::Reason;
use crate::{
    mirror::{Mirror, NamespaceMirror},
    objects::{self, Csv, Deployment, InstallPlan, OperatorCondition, Subscription},
};

/// Everything that a step's decision needs, read at one moment.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// All Subscriptions of the namespace.
    pub subscriptions: Vec<Arc<Subscription>>,
    /// All its InstallPlans.
    pub plans: Vec<Arc<InstallPlan>>,
    /// All its CSVs but for copies.
    pub csvs: Vec<Arc<Csv>>,
    /// All its Deployments.
    pub deployments: Vec<Arc<Deployment>>,
    /// All its OperatorConditions.
    pub operator_conditions: Vec<Arc<OperatorCondition>>,
    /// How many OperatorGroups it has.
    pub operator_groups: usize,
    /// Catalogs that it sees and that are not READY, with their state.
    pub catalogs_not_ready: Vec<String>,
    /// What was found against the APIs that the step brings, when they were last looked at.
    pub objection: Option<(Reason, String)>,
    /// Custom resources of the new CSVs that the API server could not give when it was last asked.
    pub unreadable: Vec<String>,
    /// What the authors' status sources said when they were last asked.
    pub authored: Vec<Authored>,
}

/// What a status source says of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authored {
    /// Its CSV.
    pub csv: String,
    /// What it says.
    pub told: Told,
}

/// How far the Deployments of a CSV are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Replicas that are to be there.
    pub wanted: u32,
    /// Replicas that are up to date and available.
    pub available: u32,
    /// Deployments that are not rolled out, each with the reason.
    pub outstanding: Vec<String>,
    /// One of them has given up.
    pub gave_up: bool,
}

/// Reads the namespace of `step` from what is watched.
pub fn observe(
    step: &Step,
    mirror: &Mirror,
    namespace: &NamespaceMirror,
    global_namespaces: &[String],
) -> Observed {
    let name = step.namespace.as_str();
    let subscriptions = mirror.subscriptions.of(name);
    let groups = mirror.operator_groups.of(name);
    let excludes_global = groups.iter().any(|group| group.excludes_global());
    let sources: BTreeSet<&str> =
        subscriptions.iter().map(|s| s.spec.source_namespace.as_str()).collect();
    let is_global = |at: &str| global_namespaces.iter().any(|global| global == at);
    let catalogs_not_ready = mirror
        .catalog_sources
        .all()
        .iter()
        .filter(|source| {
            let at = objects::namespace(&***source);
            at == name || (!excludes_global && (sources.contains(at) || is_global(at)))
        })
        .filter(|source| source.connection() != Some("READY"))
        .map(|source| {
            let state = source.connection().unwrap_or("not yet connected");
            format!("{}/{} ({state})", objects::namespace(&**source), objects::name(&**source))
        })
        .collect();
    Observed {
        plans: namespace.install_plans.all(),
        csvs: mirror.csvs.of(name),
        deployments: namespace.deployments.all(),
        operator_conditions: namespace.operator_conditions.all(),
        operator_groups: groups.len(),
        subscriptions,
        catalogs_not_ready,
        objection: None,
        unreadable: vec![],
        authored: vec![],
    }
}

// === impl Observed ===

impl Observed {
    /// The CSV of this name.
    pub fn csv(&self, name: &str) -> Option<&Csv> {
        self.csvs.iter().find(|csv| objects::name(&***csv) == name).map(|csv| &**csv)
    }

    /// The InstallPlan of this name.
    pub fn plan(&self, name: &str) -> Option<&InstallPlan> {
        self.plans.iter().find(|plan| objects::name(&***plan) == name).map(|plan| &**plan)
    }

    /// How far the Deployments of a CSV are.
    pub fn rollout(&self, csv: &Csv) -> Rollout {
        let mut rollout = Rollout::default();
        for wanted in &csv.spec.install.spec.deployments {
            let name = &wanted.name;
            let found = self.deployments.iter().find(|d| objects::name(&***d) == name);
            if let Some(deployment) = found {
                rollout.add(name, deployment);
            } else {
                rollout.wanted += 1;
                rollout.outstanding.push(format!("deployment {name} is missing"));
            }
        }
        rollout
    }

    /// How far a version has come by the word of its author; of several the one that is behind.
    pub fn progress(&self, csv: &str) -> Option<u8> {
        let own = self.authored.iter().filter(|authored| authored.csv == csv);
        own.filter_map(|authored| authored.told.progress).min()
    }

    /// What a version is doing by the word of its author.
    pub fn doing(&self, csv: &str) -> impl Iterator<Item = &str> {
        let own = self.authored.iter().filter(move |authored| authored.csv == csv);
        own.filter_map(|authored| authored.told.message.as_deref())
    }

    /// Whether the operator of this CSV says, or its administrator does, that it must not be
    /// upgraded, and why.
    pub fn not_upgradeable(&self, csv: &str) -> Option<String> {
        let found = self.operator_conditions.iter().find(|c| objects::name(&***c) == csv)?;
        not_upgradeable(found)
    }
}

/// Whether an OperatorCondition keeps OLM from going on, and why. An override wins; what the
/// operator said of an older generation does not count for OLM either.
pub fn not_upgradeable(condition: &OperatorCondition) -> Option<String> {
    let is_upgradeable = |said: &&objects::Said| said.kind == "Upgradeable";
    if let Some(said) = condition.spec.overrides.iter().find(is_upgradeable) {
        return (said.status != "True").then(|| text(said));
    }
    let Some(said) = condition.status.conditions.iter().find(is_upgradeable) else {
        // Not copied into the status yet.
        let said = condition.spec.conditions.iter().find(is_upgradeable)?;
        return (said.status != "True").then(|| text(said));
    };
    let generation = condition.metadata.generation.unwrap_or_default();
    if said.observed_generation.is_some_and(|observed| observed < generation) {
        return Some("what it says of Upgradeable is outdated".to_owned());
    }
    (said.status != "True").then(|| text(said))
}

fn text(said: &objects::Said) -> String {
    match (said.message.is_empty(), said.reason.is_empty()) {
        (false, _) => said.message.clone(),
        (true, false) => said.reason.clone(),
        (true, true) => format!("Upgradeable={}", said.status),
    }
}

// === impl Rollout ===

impl Rollout {
    /// True when every Deployment is up to date and available.
    pub fn is_complete(&self) -> bool {
        self.outstanding.is_empty()
    }

    fn add(&mut self, name: &str, deployment: &Deployment) {
        let wanted = deployment.spec.replicas.unwrap_or(1);
        let status = &deployment.status;
        self.wanted += wanted;
        let generation = deployment.metadata.generation.unwrap_or_default();
        let is_seen = status.observed_generation >= generation;
        if is_seen {
            self.available += status.updated_replicas.min(status.available_replicas).min(wanted);
        }
        let failed = |c: &&objects::OlmCondition| c.kind == "Progressing" && c.status == "False";
        if let Some(condition) = status.conditions.iter().find(failed) {
            self.gave_up = true;
            self.outstanding.push(format!("deployment {name}: {}", condition.reason));
        } else if !is_seen {
            self.outstanding.push(format!("deployment {name} has just changed"));
        } else if status.updated_replicas < wanted {
            let updated = status.updated_replicas;
            self.outstanding
                .push(format!("deployment {name}: {updated} of {wanted} replicas updated"));
        } else if status.replicas > status.updated_replicas {
            let outdated = status.replicas - status.updated_replicas;
            self.outstanding
                .push(format!("deployment {name}: {outdated} outdated replicas are still there"));
        } else if status.available_replicas < wanted {
            let available = status.available_replicas;
            self.outstanding
                .push(format!("deployment {name}: {available} of {wanted} replicas available"));
        }
    }
}
