//! Asks the catalog crate's engine what a namespace moves to, in the words of the cluster's objects.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use wavelift_catalog::{
    Catalog, Engine as _,
    engine::{
        CatalogKey, Catalogs, Cause, Installed, InstalledProperties, Move, Next, Request,
        ResolveError, Source, Subscription,
    },
    graph::Property,
};

use super::{
    Key, OlmV0,
    bundle::Bundle,
    objects::{at, key_of, text},
    phase::FailForward,
    resolution::Resolved,
};
use crate::apiserver::gk;

/// What resolution of a namespace came to.
#[derive(Debug)]
pub(super) enum Answer {
    /// A catalog source has not connected yet.
    NotYet,
    Failed(Failure),
    /// Everything that moves; may be nothing.
    Moves(Vec<Resolved>),
}

/// Why resolution failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The CSVs of the namespace, when the reason is one that no subscription calls installed,
    /// as it is in the middle of every upgrade.
    pub(super) unfinished: Option<BTreeSet<String>>,
}

const PREVENTED: &str = "ErrorPreventedResolution";
const UNSATISFIABLE: &str = "ConstraintsNotSatisfiable";

impl OlmV0 {
    /// Asks for the next moves of a namespace.
    pub(super) fn ask(&self, namespace: &str, subscriptions: &[Arc<Value>]) -> Answer {
        let catalogs = match self.read_catalogs(namespace) {
            Ok(catalogs) => catalogs,
            Err(answer) => return answer,
        };
        let csvs = self.objects.list(&gk::CSV, namespace);
        let request = self.request(namespace, subscriptions, &csvs);
        match wavelift_catalog::OlmV0.next(&catalogs, &request) {
            Ok(Next::Stays) => Answer::Moves(Vec::new()),
            Ok(Next::Moves(moves)) => Answer::Moves(
                moves.iter().filter_map(|step| resolved(&catalogs, step, subscriptions)).collect(),
            ),
            Err(error) => Answer::Failed(failure(&error, &request, subscriptions, &csvs)),
        }
    }

    /// What was last read from every catalog that the namespace sees.
    fn read_catalogs(&self, namespace: &str) -> Result<Catalogs, Answer> {
        let mut catalogs = Catalogs::default();
        for key in self.visible_sources(namespace) {
            let Some(object) = self.objects.get(&gk::CATALOG_SOURCE, &key) else { continue };
            let snapshot = self.catalogs.get(&key).and_then(|served| served.snapshot.clone());
            let Some(catalog) = snapshot else {
                let state = text(&object, "/status/connectionState/lastObservedState");
                return Err(if state == "TRANSIENT_FAILURE" {
                    unreachable(&key)
                } else {
                    Answer::NotYet
                });
            };
            let priority = at(&object, "/spec/priority").as_i64().unwrap_or(0);
            let name = CatalogKey { name: key.name, namespace: key.namespace };
            catalogs.insert(name, Source { catalog, priority });
        }
        Ok(catalogs)
    }

    fn request(
        &self,
        namespace: &str,
        subscriptions: &[Arc<Value>],
        csvs: &[Arc<Value>],
    ) -> Request {
        let find = |name: &str| csvs.iter().find(|csv| text(csv, "/metadata/name") == name);
        let referenced: BTreeSet<&str> =
            subscriptions.iter().map(|s| text(s, "/status/installedCSV")).collect();
        let forward = self.fail_forward(namespace) == FailForward::On;
        let unreferenced = csvs.iter().filter(|csv| {
            let replaced = text(csv, "/status/phase") == "Replacing";
            !(referenced.contains(text(csv, "/metadata/name")) || forward && replaced)
        });
        Request {
            namespace: namespace.to_owned(),
            subscriptions: subscriptions
                .iter()
                .map(|subscription| Subscription {
                    package: text(subscription, "/spec/name").to_owned(),
                    channel: text(subscription, "/spec/channel").to_owned(),
                    catalog: catalog_key(subscription),
                    installed: find(text(subscription, "/status/installedCSV")).map(installed),
                    starting_csv: Some(text(subscription, "/spec/startingCSV"))
                        .filter(|csv| !csv.is_empty())
                        .map(str::to_owned),
                })
                .collect(),
            unreferenced: unreferenced.map(installed).collect(),
        }
    }
}

fn unreachable(source: &Key) -> Answer {
    Answer::Failed(Failure {
        reason: PREVENTED,
        message: format!(
            "error using catalogsource {}/{}: failed to list bundles: connection refused",
            source.namespace, source.name
        ),
        unfinished: None,
    })
}

fn catalog_key(subscription: &Value) -> CatalogKey {
    CatalogKey {
        name: text(subscription, "/spec/source").to_owned(),
        namespace: text(subscription, "/spec/sourceNamespace").to_owned(),
    }
}

fn installed(csv: &Arc<Value>) -> Installed {
    let annotation = text(csv, "/metadata/annotations/operatorframework.io~1properties");
    let properties = serde_json::from_str::<Value>(annotation).ok().and_then(|value| {
        serde_json::from_value::<Vec<Property>>(value.get("properties")?.clone()).ok()
    });
    Installed {
        csv: text(csv, "/metadata/name").to_owned(),
        version: text(csv, "/spec/version").parse().ok(),
        properties: properties.map_or(InstalledProperties::AsInCatalog, InstalledProperties::Known),
    }
}

fn resolved(catalogs: &Catalogs, step: &Move, subscriptions: &[Arc<Value>]) -> Option<Resolved> {
    let catalog = &catalogs.get(&step.catalog)?.catalog;
    let subscription = subscriptions.iter().find(|subscription| {
        text(subscription, "/spec/name") == step.package
            && catalog_key(subscription) == step.catalog
            && matches!(text(subscription, "/spec/channel"), channel if channel.is_empty() || channel == step.channel)
    });
    Some(Resolved {
        bundle: bundle(catalog, step)?,
        from: step.from.clone(),
        subscription: match step.cause {
            Cause::Subscription => subscription.map(|subscription| key_of(subscription)),
            Cause::Dependency => None,
        },
    })
}

pub(super) fn bundle(catalog: &Catalog, step: &Move) -> Option<Bundle> {
    let found = catalog.bundle(&step.package, &step.to)?;
    let package = catalog.graph().packages.get(&step.package)?;
    let entry = package.channels.get(&step.channel).and_then(|c| c.entries.get(&step.to));
    let properties = found.properties.iter().map(|p| json!({ "type": p.kind, "value": p.value }));
    Some(Bundle {
        name: step.to.clone(),
        package: step.package.clone(),
        version: found.version.as_ref().map(ToString::to_string).unwrap_or_default(),
        channel: step.channel.clone(),
        replaces: entry.and_then(|entry| entry.replaces.clone()),
        min_kube_version: found.min_kube_version.clone(),
        properties: properties.collect(),
        objects: manifests(catalog, step),
        source: (step.catalog.namespace.clone(), step.catalog.name.clone()),
    })
}

/// The manifests that OLM acts on here.
fn manifests(catalog: &Catalog, step: &Move) -> Vec<Value> {
    let Some(manifests) = catalog.manifests(&step.package, &step.to) else { return Vec::new() };
    manifests.csv().into_iter().chain(manifests.crds()).collect()
}

fn failure(
    error: &ResolveError,
    request: &Request,
    subscriptions: &[Arc<Value>],
    csvs: &[Arc<Value>],
) -> Failure {
    let reason = match error {
        ResolveError::Channel { .. } | ResolveError::Need { .. } | ResolveError::Cel { .. } => {
            PREVENTED
        }
        ResolveError::CatalogMissing { .. }
        | ResolveError::PackageMissing { .. }
        | ResolveError::ChannelMissing { .. }
        | ResolveError::StartingCsvMissing { .. }
        | ResolveError::Unsatisfiable { .. }
        | ResolveError::TooHard { .. } => UNSATISFIABLE,
    };
    let of = |package: &str| {
        let subscription = subscriptions.iter().find(|s| text(s, "/spec/name") == package);
        let name = subscription.map_or("", |s| text(s, "/metadata/name"));
        format!("in the catalog referenced by subscription {name}, subscription {name} exists")
    };
    let is_unfinished =
        matches!(error, ResolveError::Unsatisfiable { .. }) && !request.unreferenced.is_empty();
    let why = match error {
        ResolveError::PackageMissing { package, .. }
        | ResolveError::CatalogMissing { package, .. } => {
            format!("no operators found in package {package} {}", of(package))
        }
        ResolveError::ChannelMissing { package, channel } => {
            format!("no operators found in channel {channel} of package {package} {}", of(package))
        }
        ResolveError::Unsatisfiable { .. } if is_unfinished => {
            let csvs = request.unreferenced.iter().map(|installed| {
                format!(
                    "clusterserviceversion {} exists and is not referenced by a subscription",
                    installed.csv
                )
            });
            let subscriptions = subscriptions
                .iter()
                .map(|s| format!("subscription {} exists", text(s, "/metadata/name")));
            csvs.chain(subscriptions).collect::<Vec<_>>().join(", ")
        }
        ResolveError::StartingCsvMissing { .. }
        | ResolveError::Channel { .. }
        | ResolveError::Need { .. }
        | ResolveError::Cel { .. }
        | ResolveError::Unsatisfiable { .. }
        | ResolveError::TooHard { .. } => error.to_string(),
    };
    let names = csvs.iter().map(|csv| text(csv, "/metadata/name").to_owned()).collect();
    Failure {
        reason,
        message: if reason == UNSATISFIABLE {
            format!("constraints not satisfiable: {why}")
        } else {
            why
        },
        unfinished: is_unfinished.then_some(names),
    }
}
