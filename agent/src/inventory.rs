//! What the agent tells of its cluster: operators, catalogs and versions.
//!
//! It is put together from what the mirror holds anyway, so it costs no request but for the two
//! versions, which are read again once in a period.

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc};

use futures::future::join_all;
use kube::{Api, Client};
use wavelift_catalog::{Catalog, Digest, engine::CatalogKey};
use wavelift_core::{
    ids::Namespace,
    inventory::{self, Inventory, NamespaceInventory},
};

use crate::{
    catalogs::{self, Asked, CatalogReader},
    mirror::Mirror,
    objects::{self, CatalogSource, ClusterVersion, Csv, OperatorGroup, Subscription},
    pins,
};

/// The versions of the cluster, as they were last read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// As `/version` gives it.
    pub kube: Option<String>,
    /// The newest completed OpenShift version.
    pub platform: Option<String>,
    /// What could not be read.
    pub unread: Vec<String>,
}

/// What the catalogs serve, by CatalogSource.
pub type Contents = BTreeMap<CatalogKey, Result<Arc<Catalog>, catalogs::Error>>;

/// What an inventory is made of.
#[derive(Debug)]
pub struct Parts<'a> {
    /// All Subscriptions.
    pub subscriptions: &'a [Arc<Subscription>],
    /// All CSVs.
    pub csvs: &'a [Arc<Csv>],
    /// All OperatorGroups.
    pub operator_groups: &'a [Arc<OperatorGroup>],
    /// All CatalogSources.
    pub catalog_sources: &'a [Arc<CatalogSource>],
    /// What they serve.
    pub contents: &'a Contents,
    /// The cluster's versions.
    pub versions: &'a Versions,
    /// What the mirror could not read.
    pub unread: Vec<String>,
}

/// The inventory as it was last looked at.
#[derive(Debug, Default)]
pub struct Current {
    /// The inventory, sorted.
    pub inventory: Inventory,
    /// Its digest.
    pub digest: String,
    /// What the catalogs serve.
    pub contents: Contents,
    versions: Versions,
    /// Packages of plans that were asked about, by whatever catalog they come from.
    planned: BTreeSet<String>,
}

/// Packages of plans that are remembered.
const PLANNED_MAX: usize = 1_000;

// === impl Current ===

impl Current {
    /// Looks at everything anew; true when the digest is another one.
    pub async fn refresh(&mut self, mirror: &Mirror, reader: &dyn CatalogReader) -> bool {
        // What the agent itself serves is none of the cluster's catalogs.
        let mut catalog_sources = mirror.catalog_sources.all();
        catalog_sources.retain(|source| !pins::is_ours(source));
        let subscriptions = mirror.subscriptions.all();
        for upgrade in mirror.upgrades.all() {
            let told = upgrade.status.as_ref().and_then(|status| status.plan.as_ref());
            let steps = upgrade.spec.plan.iter().chain(told).flat_map(|plan| &plan.steps);
            self.want(steps.flat_map(|step| &step.moves).map(|item| item.package.as_str()));
        }
        let wanted = wanted(&subscriptions, &self.planned);
        self.contents = read_contents(&catalog_sources, wanted, reader).await;
        let mut inventory = build(&Parts {
            subscriptions: &subscriptions,
            csvs: &mirror.csvs.all(),
            operator_groups: &mirror.operator_groups.all(),
            catalog_sources: &catalog_sources,
            contents: &self.contents,
            versions: &self.versions,
            unread: mirror.unread(),
        });
        inventory.sort();
        let digest = inventory.digest();
        let is_news = digest != self.digest;
        self.inventory = inventory;
        self.digest = digest;
        is_news
    }

    /// Remembers that a plan takes these packages somewhere: of their bundles more is worth knowing.
    pub fn want<'a>(&mut self, packages: impl Iterator<Item = &'a str>) {
        for package in packages {
            if self.planned.len() < PLANNED_MAX && !self.planned.contains(package) {
                self.planned.insert(package.to_owned());
            }
        }
    }

    /// Reads the cluster's versions anew.
    pub async fn read_versions(&mut self, client: &Client) {
        let known = std::mem::take(&mut self.versions);
        self.versions = read_versions(client, known).await;
    }

    /// The API server's version.
    pub fn kube_version(&self) -> Option<&str> {
        self.versions.kube.as_deref()
    }

    /// Whether a catalog is being read for the first time.
    pub fn is_reading(&self) -> bool {
        self.contents.values().any(|content| matches!(content, Err(catalogs::Error::Reading(_))))
    }

    /// What a CatalogSource serves, when it is known.
    pub fn content(&self, namespace: &str, name: &str) -> Option<Arc<Catalog>> {
        let key = CatalogKey { name: name.to_owned(), namespace: namespace.to_owned() };
        self.contents.get(&key)?.as_ref().ok().cloned()
    }

    /// The catalog of this digest.
    pub fn by_digest(&self, digest: &str) -> Option<Arc<Catalog>> {
        let mut known = self.contents.values().filter_map(|content| content.as_ref().ok());
        known.find(|catalog| catalog.digest().as_str() == digest).cloned()
    }

    /// A piece of what the catalogs hold beside their graphs.
    pub fn piece(&self, digest: &str) -> Option<Vec<u8>> {
        let digest = Digest::try_from(digest).ok()?;
        self.contents
            .values()
            .filter_map(|content| content.as_ref().ok())
            .find_map(|catalog| catalog.piece(&digest))
    }
}

/// The packages of which more is worth knowing: those that are subscribed to from a catalog, and
/// from any catalog those of plans.
fn wanted(
    subscriptions: &[Arc<Subscription>],
    planned: &BTreeSet<String>,
) -> impl Fn(&CatalogKey) -> BTreeSet<String> {
    let mut subscribed: BTreeMap<CatalogKey, BTreeSet<String>> = BTreeMap::new();
    for subscription in subscriptions {
        let (namespace, name) = subscription.own_source();
        let key = CatalogKey { name: name.to_owned(), namespace: namespace.to_owned() };
        subscribed.entry(key).or_default().insert(subscription.spec.name.clone());
    }
    move |key| subscribed.get(key).into_iter().flatten().chain(planned).cloned().collect()
}

/// Asks for the content of every CatalogSource.
async fn read_contents(
    sources: &[Arc<CatalogSource>],
    wanted: impl Fn(&CatalogKey) -> BTreeSet<String>,
    reader: &dyn CatalogReader,
) -> Contents {
    let asked: BTreeMap<CatalogKey, Asked> = sources
        .iter()
        .map(|source| {
            let mut asked = Asked::of(Arc::clone(source));
            let key = asked.key();
            asked.packages = wanted(&key);
            (key, asked)
        })
        .collect();
    reader.retain(&asked.keys().cloned().collect());
    let read = join_all(asked.values().map(|asked| reader.read(asked))).await;
    asked.into_keys().zip(read).collect()
}

/// A version that cannot be read this time stays what it was, and the failure is named.
async fn read_versions(client: &Client, known: Versions) -> Versions {
    let mut versions = Versions { unread: vec![], ..known };
    match client.apiserver_version().await {
        Ok(info) => versions.kube = Some(info.git_version),
        Err(error) => versions.unread.push(format!("/version: {error}")),
    }
    let api: Api<ClusterVersion> = Api::all(client.clone());
    match api.get_opt("version").await {
        Ok(Some(found)) => versions.platform = found.completed().map(str::to_owned),
        Ok(None) => versions.platform = None,
        Err(error) => versions.unread.push(format!("ClusterVersion: {error}")),
    }
    versions
}

/// Puts an inventory together.
pub fn build(parts: &Parts<'_>) -> Inventory {
    let names: BTreeSet<&str> = parts
        .subscriptions
        .iter()
        .map(|subscription| objects::namespace(&**subscription))
        .collect();
    let mut unread = parts.unread.clone();
    unread.extend(parts.versions.unread.iter().cloned());
    let mut namespaces = vec![];
    for name in names {
        match Namespace::try_from(name) {
            Ok(namespace) => namespaces.push(namespace_inventory(namespace, parts)),
            Err(error) => unread.push(error.to_string()),
        }
    }
    let mut catalogs = vec![];
    for source in parts.catalog_sources {
        let source = catalog_source(source, parts.contents, &mut unread);
        catalogs.push(source);
    }
    Inventory {
        kube_version: parts.versions.kube.clone(),
        platform_version: parts.versions.platform.clone(),
        namespaces,
        catalogs,
        unread,
    }
}

fn namespace_inventory(namespace: Namespace, parts: &Parts<'_>) -> NamespaceInventory {
    let name = namespace.as_str();
    let groups = || parts.operator_groups.iter().filter(|g| objects::namespace(&***g) == name);
    let subscriptions =
        parts.subscriptions.iter().filter(|s| objects::namespace(&***s) == name).map(subscription);
    let csvs = parts.csvs.iter().filter(|c| objects::namespace(&***c) == name).map(csv);
    NamespaceInventory {
        operator_groups: u32::try_from(groups().count()).unwrap_or(u32::MAX),
        global_catalogs_excluded: groups().any(|group| group.excludes_global()),
        subscriptions: subscriptions.collect(),
        csvs: csvs.collect(),
        namespace,
    }
}

fn subscription(from: &Arc<Subscription>) -> inventory::Subscription {
    let (source_namespace, source) = from.own_source();
    inventory::Subscription {
        name: objects::name(&**from).to_owned(),
        package: from.spec.name.clone(),
        channel: from.spec.channel.clone(),
        source: source.to_owned(),
        source_namespace: source_namespace.to_owned(),
        starting_csv: from.spec.starting_csv.clone(),
        approval: from.spec.install_plan_approval.clone(),
        installed_csv: from.status.installed_csv.clone(),
        current_csv: from.status.current_csv.clone(),
        state: from.status.state.clone(),
    }
}

fn csv(from: &Arc<Csv>) -> inventory::Csv {
    inventory::Csv {
        name: objects::name(&**from).to_owned(),
        version: from.spec.version.clone(),
        phase: from.status.phase.clone(),
        reason: from.status.reason.clone(),
        properties: objects::annotation(&**from, objects::PROPERTIES).map(str::to_owned),
    }
}

fn catalog_source(
    from: &CatalogSource,
    contents: &Contents,
    unread: &mut Vec<String>,
) -> inventory::CatalogSource {
    let key = CatalogKey {
        name: objects::name(from).to_owned(),
        namespace: objects::namespace(from).to_owned(),
    };
    let (digest, held) = match contents.get(&key) {
        Some(Ok(catalog)) => {
            let held = catalog.contents_digest();
            (Some(catalog.digest().to_string()), Some(held.to_string()))
        }
        Some(Err(error)) => {
            unread.push(error.to_string());
            (None, None)
        }
        None => (None, None),
    };
    inventory::CatalogSource {
        namespace: key.namespace,
        name: key.name,
        priority: from.spec.priority,
        connection_state: from.connection().map(str::to_owned),
        digest,
        contents: held,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(value: serde_json::Value) -> Arc<K> {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn only_namespaces_with_a_subscription_are_told_and_what_is_unread_is_named() {
        let subscriptions = [object(json!({
            "metadata": {"name": "oak", "namespace": "trees"},
            "spec": {"name": "oak-operator", "channel": "stable", "source": "own",
                "sourceNamespace": "market", "installPlanApproval": "Manual"},
            "status": {"installedCSV": "oak.v1", "currentCSV": "oak.v2", "state": "UpgradePending"},
        }))];
        let csv = |namespace: &str, name: &str| {
            object(json!({
                "metadata": {"name": name, "namespace": namespace,
                    "annotations": {"operatorframework.io/properties": "{}"}},
                "spec": {"version": "1.0.0"}, "status": {"phase": "Succeeded"},
            }))
        };
        let group = |annotations| {
            object(json!({
                "metadata": {"name": "og", "namespace": "trees", "annotations": annotations},
            }))
        };
        let source = object(json!({
            "metadata": {"name": "own", "namespace": "market"}, "spec": {"priority": -100},
            "status": {"connectionState": {"lastObservedState": "READY"}},
        }));
        let key = CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() };
        let inventory = build(&Parts {
            subscriptions: &subscriptions,
            csvs: &[csv("trees", "oak.v1"), csv("elsewhere", "elm.v1")],
            operator_groups: &[group(json!({objects::EXCLUDE_GLOBAL: "true"}))],
            catalog_sources: &[source],
            contents: &BTreeMap::from([(key.clone(), Err(catalogs::Error::NotKnown(key)))]),
            versions: &Versions { kube: Some("v1.33.4".to_owned()), ..Versions::default() },
            unread: vec!["OperatorGroups: forbidden".to_owned()],
        });
        assert_eq!(inventory.namespaces.len(), 1);
        let trees = &inventory.namespaces[0];
        assert_eq!((trees.operator_groups, trees.global_catalogs_excluded), (1, true));
        assert_eq!(trees.csvs.len(), 1);
        assert_eq!(trees.csvs[0].properties.as_deref(), Some("{}"));
        assert_eq!(trees.subscriptions[0].package, "oak-operator");
        assert_eq!(trees.subscriptions[0].current_csv.as_deref(), Some("oak.v2"));
        assert_eq!(inventory.catalogs[0].connection_state.as_deref(), Some("READY"));
        assert_eq!(inventory.catalogs[0].priority, -100);
        assert_eq!(inventory.catalogs[0].digest, None);
        assert_eq!(
            inventory.unread,
            [
                "OperatorGroups: forbidden",
                "the content of catalog market/own is not known to the agent"
            ]
        );
    }

    #[test]
    fn the_platform_version_is_the_newest_that_was_reached() {
        let version: ClusterVersion = serde_json::from_value(json!({"status": {"history": [
            {"state": "Partial", "version": "4.20.1"},
            {"state": "Completed", "version": "4.19.9"},
            {"state": "Completed", "version": "4.18.2"},
        ]}}))
        .unwrap();
        assert_eq!(version.completed(), Some("4.19.9"));
    }
}
