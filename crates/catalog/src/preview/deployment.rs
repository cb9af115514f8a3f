//! The operator's own Deployments.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Confidence, Importance, Source,
    bundle::Content,
    difference::{Difference, ObjectChange, differences},
};

/// A Deployment that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// Its name; the new one if it is renamed.
    pub name: String,
    /// What became of it.
    pub change: ObjectChange,
    /// Its old name, if it is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Which sides of it change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub aspects: BTreeSet<Aspect>,
    /// What changes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is. That one Deployment is another one's new name is concluded, as it is nowhere
    /// written.
    pub confidence: Confidence,
}

/// A side of a Deployment, the weightiest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Aspect {
    /// Security contexts, and the host's network, processes or files.
    Security,
    /// The service account that it runs as.
    ServiceAccount,
    /// Containers that come or go.
    Containers,
    /// Images.
    Images,
    /// Selectors, tolerations, affinity, priority: where it runs.
    Scheduling,
    /// Replicas and the strategy of updates.
    Replicas,
    /// Requests and limits.
    Resources,
    /// Environment variables.
    Environment,
    /// Commands and their arguments.
    Command,
    /// Volumes and mounts.
    Volumes,
    /// Probes.
    Probes,
    /// Anything else.
    Other,
}

/// What the operator's Deployments become.
pub(super) fn compare(old: &Content<'_>, new: &Content<'_>) -> Vec<Deployment> {
    let (mut olds, mut news) = (of_csv(&old.csv), of_csv(&new.csv));
    let mut changes = Vec::new();
    let names: Vec<&str> = olds.keys().filter(|name| news.contains_key(*name)).copied().collect();
    for name in names {
        let Some((old, new)) = olds.remove(name).zip(news.remove(name)) else { continue };
        if old != new {
            changes.push(changed(name, None, old, new));
        }
    }
    for (was, name) in renamed(&olds, &news) {
        let Some((old, new)) = olds.remove(was).zip(news.remove(name)) else { continue };
        changes.push(changed(name, Some(was), old, new));
    }
    changes.extend(olds.keys().map(|name| plain(name, ObjectChange::Removed)));
    changes.extend(news.keys().map(|name| plain(name, ObjectChange::Added)));
    changes.sort_by(|a, b| (a.change, &a.name).cmp(&(b.change, &b.name)));
    changes
}

fn of_csv(csv: &Value) -> BTreeMap<&str, &Value> {
    let list = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let list = list.into_iter().flatten();
    list.filter_map(|item| Some((item.get("name")?.as_str()?, item))).collect()
}

fn plain(name: &str, change: ObjectChange) -> Deployment {
    Deployment {
        name: name.to_owned(),
        change,
        was: None,
        aspects: BTreeSet::new(),
        differences: Vec::new(),
        source: Source::FromManifests,
        confidence: Confidence::Certain,
    }
}

fn changed(name: &str, was: Option<&str>, old: &Value, new: &Value) -> Deployment {
    let mut differences = differences(old, new);
    differences.retain(|difference| difference.field != "name");
    let change = if was.is_some() { ObjectChange::Renamed } else { ObjectChange::Changed };
    Deployment {
        was: was.map(str::to_owned),
        aspects: differences.iter().map(|difference| Aspect::of(&difference.field)).collect(),
        differences,
        confidence: if was.is_some() { Confidence::Inferred } else { Confidence::Certain },
        ..plain(name, change)
    }
}

/// Pairs of an old and a new name of Deployments that are much the same: they run as the same
/// service account, or have a container of the same name and image repository in common. Each pair
/// is the only one for both of its names.
fn renamed<'a>(
    olds: &BTreeMap<&'a str, &'a Value>,
    news: &BTreeMap<&'a str, &'a Value>,
) -> Vec<(&'a str, &'a str)> {
    let mut pairs = Vec::new();
    for (was, old) in olds {
        let old = traits(old);
        let alike = |new: &Value| old.intersection(&traits(new)).next().is_some();
        for (name, _) in news.iter().filter(|(_, new)| alike(new)) {
            pairs.push((*was, *name));
        }
    }
    let is_only = |pair: &&(&str, &str)| {
        pairs.iter().filter(|p| p.0 == pair.0).count() == 1
            && pairs.iter().filter(|p| p.1 == pair.1).count() == 1
    };
    pairs.iter().filter(is_only).copied().collect()
}

fn traits(deployment: &Value) -> BTreeSet<String> {
    let pod = deployment.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let account = pod["serviceAccountName"].as_str().map(|name| format!("account {name}"));
    let containers = pod["containers"].as_array().into_iter().flatten();
    let containers = containers.filter_map(|container| {
        let image = container["image"].as_str()?;
        let repository = image.split_once('@').map_or(image, |(repository, _)| repository);
        let slash = repository.rfind('/').unwrap_or_default();
        // A colon before the last slash belongs to a port.
        let end = repository.rfind(':').filter(|colon| *colon > slash);
        let repository = end.and_then(|end| repository.get(..end)).unwrap_or(repository);
        Some(format!("{} {repository}", container["name"].as_str()?))
    });
    containers.chain(account).collect()
}

// === impl Deployment ===

impl Deployment {
    /// How much it matters.
    pub fn importance(&self) -> Importance {
        match (self.change, self.aspects.first()) {
            (ObjectChange::Added | ObjectChange::Removed | ObjectChange::Renamed, _)
            | (_, Some(Aspect::Security | Aspect::ServiceAccount | Aspect::Containers)) => {
                Importance::Medium
            }
            (ObjectChange::Changed, Some(_) | None) => Importance::Low,
        }
    }
}

// === impl Aspect ===

impl Aspect {
    /// The side that a field belongs to.
    fn of(field: &str) -> Self {
        let plain = without_names(field);
        let parts: Vec<&str> = plain.split('.').collect();
        let has = |names: &[&str]| parts.iter().any(|part| names.contains(part));
        let last = parts.last().copied().unwrap_or_default();
        if has(&["securityContext", "hostNetwork", "hostPID", "hostIPC", "hostUsers"]) {
            Self::Security
        } else if has(&["serviceAccountName", "serviceAccount", "automountServiceAccountToken"]) {
            Self::ServiceAccount
        } else if matches!(last, "containers" | "initContainers") {
            Self::Containers
        } else if last == "image" {
            Self::Images
        } else if has(&[
            "nodeSelector",
            "tolerations",
            "affinity",
            "topologySpreadConstraints",
            "priorityClassName",
        ]) {
            Self::Scheduling
        } else if has(&["replicas", "strategy", "minReadySeconds"]) {
            Self::Replicas
        } else if has(&["resources"]) {
            Self::Resources
        } else if has(&["env", "envFrom"]) {
            Self::Environment
        } else if has(&["command", "args"]) {
            Self::Command
        } else if has(&["volumes", "volumeMounts"]) {
            Self::Volumes
        } else if has(&["livenessProbe", "readinessProbe", "startupProbe"]) {
            Self::Probes
        } else {
            Self::Other
        }
    }
}

/// A path without the names in brackets, which may hold dots.
fn without_names(field: &str) -> String {
    let mut plain = String::with_capacity(field.len());
    let mut depth = 0_usize;
    for c in field.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}
