//! The APIs that the next versions of operators bring, held against what is on the cluster.
//!
//! OLM looks at definitions and objects only when an InstallPlan has been approved, and what it
//! refuses then is a dead end. So the agent looks before: at the manifests that the catalog carries,
//! at the definitions of the cluster, and at every object of them, a page at a time.

mod named;
mod read;
mod unpacked;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::Client;
use serde_json::Value;
use wavelift_catalog::{
    Catalog,
    crd::{self, Fit, Replacement},
};
use wavelift_core::{
    causes::sentence,
    plan::{Move, Step},
};

pub use self::named::named;
use self::{
    read::{ApiReader, Failed},
    unpacked::Kept,
};
use crate::objects::InstallPlan;

/// Objects of one step that are looked at.
const OBJECTS_MAX: usize = 20_000;
/// Objects of one version that are named.
const NAMED_MAX: usize = 20;

/// Where a step stands among those that are left in its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The next: everything is looked at.
    Next,
    /// After others, which may change what is on the cluster: its objects are looked at later.
    Later,
}

/// What one operator's next version brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// Its CSV.
    pub csv: String,
    /// When it comes.
    pub turn: Turn,
    /// Why OLM cannot put up its conversion webhooks, in OLM's words.
    pub conversion: Vec<String>,
    /// Definitions that are on the cluster already.
    pub definitions: Vec<Definition>,
    /// What could not be told, and why.
    pub unknown: Vec<String>,
}

/// A definition that takes the place of one on the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Stored versions that it is without, in OLM's words each.
    pub data_loss: Vec<String>,
    /// Whether OLM only warns of objects that do not fit.
    pub only_warns: bool,
    /// Objects that do not fit, each with OLM's words.
    pub invalid: Vec<(String, String)>,
    /// How many there are, named or not.
    pub invalid_count: usize,
    /// What could not be told of the objects, and why.
    pub unsure: Vec<String>,
    /// Objects that were looked at.
    pub looked_at: usize,
}

/// Where manifests are looked for, in this order.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// Catalogs, the nearest first.
    pub contents: &'a [Arc<Catalog>],
    /// The InstallPlan of the step, if there is one.
    pub plan: Option<&'a str>,
}

/// Looks at what a step brings.
pub async fn examine(
    client: &Client,
    step: &Step,
    turn: Turn,
    sources: Sources<'_>,
) -> Vec<Brought> {
    let reader = ApiReader::new(client);
    let mut left = OBJECTS_MAX;
    let mut all = vec![];
    let namespace = step.namespace.as_str();
    for item in &step.moves {
        let brought = of_move(&reader, (namespace, item), turn, sources, &mut left).await;
        all.extend(brought);
    }
    all
}

/// The InstallPlan with exactly the set of a step, the newest of them.
pub fn plan_of<'p>(
    step: &Step,
    plans: impl IntoIterator<Item = &'p InstallPlan>,
) -> Option<&'p InstallPlan> {
    let wanted = step.csv_names();
    let has_set = |plan: &&InstallPlan| {
        let names = plan.spec.cluster_service_version_names.iter().map(String::as_str);
        names.collect::<BTreeSet<_>>() == wanted
    };
    plans.into_iter().filter(has_set).max_by_key(|plan| plan.spec.generation)
}

/// Owned APIs that the API server says it serves and cannot give, with its words.
pub async fn unreadable(client: &Client, definitions: &[&str]) -> Vec<String> {
    let reader = ApiReader::new(client);
    let mut found = vec![];
    for name in definitions {
        let live = match reader.definition(name).await {
            Ok(Some(live)) => live,
            // What is not allowed, or not there, says nothing of the operator.
            Ok(None) | Err(Failed::Forbidden(_) | Failed::Missing(_)) => continue,
            Err(Failed::Other(why)) => {
                found.push(format!("{name}: {why}"));
                continue;
            }
        };
        let text = |at: &str| live.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
        for version in served(&live) {
            match reader.page(group, version, plural, 1, None).await {
                Ok(_) | Err(Failed::Forbidden(_) | Failed::Missing(_)) => {}
                Err(Failed::Other(why)) => found.push(format!("{plural}.{version}.{group}: {why}")),
            }
        }
    }
    found
}

fn served(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
    served.filter_map(|version| version["name"].as_str())
}

async fn of_move(
    reader: &ApiReader<'_>,
    (namespace, item): (&str, &Move),
    turn: Turn,
    sources: Sources<'_>,
    left: &mut usize,
) -> Option<Brought> {
    let (package, csv) = (item.package.as_str(), item.to.as_str());
    let mut brought = Brought {
        csv: csv.to_owned(),
        turn,
        conversion: vec![],
        definitions: vec![],
        unknown: vec![],
    };
    let Some(catalog) =
        sources.contents.iter().find(|catalog| catalog.bundle(package, csv).is_some())
    else {
        brought.unknown.push(format!("{csv} is in no catalog that could be read"));
        return Some(brought);
    };
    let objects = match (catalog.manifests(package, csv), turn) {
        (Some(manifests), _) => manifests.objects().map_err(|error| sentence(&error)).map(Some),
        (None, Turn::Next) => in_plan(reader, namespace, sources.plan, csv).await,
        // A later look may find more, and is the one that counts.
        (None, Turn::Later) => return None,
    };
    match objects {
        Ok(Some(objects)) => manifested(reader, &objects, &mut brought, left).await,
        Ok(None) => return Some(described(reader, catalog, package, brought).await),
        Err(why) => brought.unknown.push(format!("{csv}: {why}")),
    }
    Some(brought)
}

/// What OLM has unpacked for an InstallPlan; nothing where it has not.
async fn in_plan(
    reader: &ApiReader<'_>,
    namespace: &str,
    plan: Option<&str>,
    csv: &str,
) -> Result<Option<Vec<Value>>, String> {
    let Some(plan) = plan else { return Ok(None) };
    let found = reader.install_plan(namespace, plan).await.map_err(|failed| failed.to_string())?;
    let Some(found) = found else { return Ok(None) };
    match unpacked::kept(&found, csv) {
        Kept::Nowhere => Ok(None),
        Kept::Inline(objects) => Ok(Some(objects)),
        Kept::ConfigMap { namespace, name } => {
            let place = format!("ConfigMap {namespace}/{name}");
            let map = reader.config_map(&namespace, &name).await;
            let map = map.map_err(|failed| format!("{place}: {failed}"))?;
            let objects = map.map(|map| unpacked::manifests(&map)).transpose();
            objects.map_err(|why| format!("{place}: {why}"))
        }
    }
}

/// By the manifests themselves.
async fn manifested(
    reader: &ApiReader<'_>,
    objects: &[Value],
    brought: &mut Brought,
    left: &mut usize,
) {
    let mut lives: BTreeMap<&str, Value> = BTreeMap::new();
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let name = |object: &'_ Value| -> Option<String> {
        object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
    };
    let news: BTreeMap<String, &Value> = of_kind("CustomResourceDefinition")
        .filter_map(|definition| Some((name(definition)?, definition)))
        .collect();
    for (name, new) in &news {
        match reader.definition(name).await {
            Ok(Some(live)) => match Replacement::read(&live, new) {
                Ok(replacement) => {
                    let found = replaced(reader, &replacement, brought.turn, left).await;
                    brought.definitions.push(found);
                }
                Err(error) => brought.unknown.push(format!("{name}: {}", sentence(&error))),
            },
            // It takes nobody's place.
            Ok(None) => {}
            Err(failed) => brought.unknown.push(format!("{name}: {failed}")),
        }
    }
    for csv in of_kind("ClusterServiceVersion") {
        for name in crd::converted(csv) {
            if !news.contains_key(name)
                && let Ok(Some(live)) = reader.definition(name).await
            {
                lives.insert(name, live);
            }
        }
        let definition = |name: &str| news.get(name).copied().or_else(|| lives.get(name));
        brought.conversion.extend(crd::conversion_faults(csv, definition));
    }
}

async fn replaced(
    reader: &ApiReader<'_>,
    replacement: &Replacement,
    turn: Turn,
    left: &mut usize,
) -> Definition {
    let name = replacement.name().to_owned();
    let loss = |version| crd::data_loss(&name, version);
    let mut found = Definition {
        data_loss: replacement.stored_and_gone().into_iter().map(loss).collect(),
        only_warns: replacement.trusts_webhook(),
        name: name.clone(),
        ..Definition::default()
    };
    if turn == Turn::Later {
        return found;
    }
    for version in replacement.validated() {
        validate(reader, replacement, version, left, &mut found).await;
    }
    found
}

/// All objects of one version, a page at a time.
async fn validate(
    reader: &ApiReader<'_>,
    replacement: &Replacement,
    version: &str,
    left: &mut usize,
    found: &mut Definition,
) {
    let (group, plural) = (replacement.group(), replacement.plural());
    let place = format!("{plural}.{version}.{group}");
    let validator = replacement.validator(version);
    let mut next: Option<String> = None;
    loop {
        let page = match reader.page(group, version, plural, read::PAGE, next.as_deref()).await {
            Ok(page) => page,
            Err(failed) => {
                found.unsure.push(format!("{place}: {failed}"));
                return;
            }
        };
        for object in &page.items {
            found.looked_at += 1;
            *left = left.saturating_sub(1);
            let name = read::object_name(object);
            match validator.judge(object) {
                Fit::Not(causes) => {
                    found.invalid_count += 1;
                    if found.invalid.len() < NAMED_MAX {
                        let words = crd::too_restrictive(replacement, version, &name, &causes);
                        found.invalid.push((name, words));
                    }
                }
                Fit::Unsure(doubts) if found.unsure.len() < NAMED_MAX => {
                    found.unsure.push(format!("{place} \"{name}\": {}", doubts.join(", ")));
                }
                Fit::Fits | Fit::Unsure(_) => {}
            }
        }
        match page.next {
            None => return,
            Some(_) if *left == 0 => {
                let looked_at = found.looked_at;
                found
                    .unsure
                    .push(format!("{place}: only the first {looked_at} objects were looked at"));
                return;
            }
            Some(more) => next = Some(more),
        }
    }
}

/// By what the catalog says of a bundle whose manifests it does not carry. That is enough where the
/// definitions are new, or keep all stored versions and have no objects.
async fn described(
    reader: &ApiReader<'_>,
    catalog: &Catalog,
    package: &str,
    mut brought: Brought,
) -> Brought {
    let apis = catalog.provided_apis(package, &brought.csv);
    let mut by_kind: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for api in apis {
        by_kind.entry((api.group, api.kind)).or_default().push(api.version);
    }
    for ((group, kind), versions) in by_kind {
        match described_kind(reader, &group, &kind, &versions).await {
            Ok(None) => {}
            Ok(Some(why)) => {
                let csv = &brought.csv;
                let unread = format!(
                    "neither the catalog nor an InstallPlan has the manifests of {csv}, and {why}"
                );
                brought.unknown.push(unread);
            }
            Err(failed) => brought.unknown.push(format!("{kind}.{group}: {failed}")),
        }
    }
    brought
}

/// What of a kind would need the manifests; nothing where they do not matter.
async fn described_kind(
    reader: &ApiReader<'_>,
    group: &str,
    kind: &str,
    versions: &[String],
) -> Result<Option<String>, Failed> {
    let Some(plural) = reader.plural(group, kind).await? else { return Ok(None) };
    let name = format!("{plural}.{group}");
    let Some(live) = reader.definition(&name).await? else { return Ok(None) };
    let stored = live.pointer("/status/storedVersions").and_then(Value::as_array);
    let mut stored = stored.into_iter().flatten().filter_map(Value::as_str);
    if let Some(gone) = stored.find(|stored| !versions.iter().any(|version| version == stored)) {
        return Ok(Some(format!("it may be without {gone}, a stored version of {name}")));
    }
    for version in served(&live) {
        let page = match reader.page(group, version, &plural, 1, None).await {
            Err(Failed::Missing(_)) => continue,
            page => page?,
        };
        if !page.items.is_empty() {
            return Ok(Some(format!("objects of {name} are there that its new schema may refuse")));
        }
    }
    Ok(None)
}
