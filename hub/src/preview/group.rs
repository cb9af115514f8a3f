//! Clusters that see the same preview: the same plan, from the same catalogs, holding the same.
//!
//! The key has the digest of each catalog's graph and the digest of what it holds beside it, both
//! as the cluster itself announced them. A cluster that announces something of its own is a group
//! of its own, and what it sends is seen in no other.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use wavelift_core::{
    ids::{ClusterName, CsvName, Namespace, PackageName},
    inventory::{CatalogSource, Inventory, NamespaceInventory},
    plan::{Move, Plan},
};

/// One cluster with a plan.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    /// The cluster.
    pub cluster: &'a ClusterName,
    /// Its plan.
    pub plan: &'a Plan,
    /// What its agent sees.
    pub inventory: Option<&'a Inventory>,
}

/// Whether a catalog, named by its digest, has a bundle.
pub type HasBundle<'a> = &'a dyn Fn(&str, &PackageName, &CsvName) -> bool;

/// What a group's clusters have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Names the group: 16 hexadecimal digits.
    pub id: String,
    /// The way of each package that moves, by namespace and package.
    pub ways: Vec<Way>,
    /// Its clusters, by name.
    pub clusters: Vec<ClusterName>,
}

/// The way of one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Where it is installed.
    pub namespace: Namespace,
    /// The package.
    pub package: PackageName,
    /// What is installed; `None` for a dependency that the plan adds.
    pub from: Option<Version>,
    /// What follows, in order.
    pub to: Vec<Version>,
    /// The catalog that its bundles come from, as far as that is known.
    pub catalog: Option<Seen>,
}

/// A version of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its CSV.
    pub csv: CsvName,
    /// Its version, for people.
    pub text: String,
}

/// A catalog as a cluster announced it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Namespace and name of its CatalogSource, on the group's first cluster.
    pub source: String,
    /// The digest of its graph.
    pub digest: String,
    /// The digest of what it holds beside its graph; absent from older agents.
    pub contents: Option<String>,
}

/// Puts clusters together, most clusters first.
pub fn groups<'a>(
    planned: impl IntoIterator<Item = Planned<'a>>,
    has_bundle: HasBundle<'_>,
) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for one in planned {
        let key = key(one, has_bundle);
        let group = groups.entry(key).or_insert_with_key(|key| Group {
            id: hex::encode(Sha256::digest(key)).chars().take(16).collect(),
            ways: ways(one, has_bundle),
            clusters: vec![],
        });
        group.clusters.push(one.cluster.clone());
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    for group in &mut groups {
        group.clusters.sort();
    }
    // Equal numbers stand by the name of their first cluster: that is the same at every look.
    groups.sort_by(|a, b| {
        b.clusters.len().cmp(&a.clusters.len()).then_with(|| a.clusters.cmp(&b.clusters))
    });
    groups
}

fn key(one: Planned<'_>, has_bundle: HasBundle<'_>) -> String {
    let mut key = one.plan.digest();
    let mut seen = BTreeSet::new();
    for step in &one.plan.steps {
        let namespace = one.namespace(&step.namespace);
        for item in &step.moves {
            let source = one.source(namespace, item, has_bundle);
            let digests = source.map(|source| (&source.digest, &source.contents));
            if seen.insert((item.package.as_str(), digests)) {
                key.push_str(&format!("\n{} {digests:?}", item.package));
            }
        }
    }
    key
}

fn ways(one: Planned<'_>, has_bundle: HasBundle<'_>) -> Vec<Way> {
    let mut ways: BTreeMap<(&Namespace, &PackageName), Way> = BTreeMap::new();
    for step in &one.plan.steps {
        let namespace = one.namespace(&step.namespace);
        for item in &step.moves {
            let way = ways.entry((&step.namespace, &item.package)).or_insert_with(|| Way {
                namespace: step.namespace.clone(),
                package: item.package.clone(),
                from: item.from.as_ref().map(|csv| Version {
                    csv: csv.clone(),
                    text: item.from_version.clone().unwrap_or_else(|| csv.to_string()),
                }),
                to: vec![],
                catalog: one.source(namespace, item, has_bundle).and_then(Seen::of),
            });
            way.to.push(Version { csv: item.to.clone(), text: item.to_version.clone() });
        }
    }
    ways.into_values().collect()
}

impl<'a> Planned<'a> {
    fn namespace(&self, name: &Namespace) -> Option<&'a NamespaceInventory> {
        self.inventory?.namespaces.iter().find(|namespace| namespace.namespace == *name)
    }

    /// The catalog that a bundle comes from: the one that its Subscription names, and for what has
    /// none the first that has it.
    fn source(
        &self,
        namespace: Option<&NamespaceInventory>,
        item: &Move,
        has_bundle: HasBundle<'_>,
    ) -> Option<&'a CatalogSource> {
        let catalogs = &self.inventory?.catalogs;
        let subscription =
            namespace?.subscriptions.iter().find(|s| s.package == item.package.as_str());
        if let Some(subscription) = subscription {
            return catalogs.iter().find(|source| {
                source.name == subscription.source
                    && source.namespace == subscription.source_namespace
            });
        }
        let mut holders: Vec<&CatalogSource> = catalogs
            .iter()
            .filter(|source| {
                let has = |digest: &String| has_bundle(digest, &item.package, &item.to);
                source.digest.as_ref().is_some_and(has)
            })
            .collect();
        holders.sort_by_key(|source| std::cmp::Reverse(source.priority));
        holders.first().copied()
    }
}

impl Seen {
    fn of(source: &CatalogSource) -> Option<Self> {
        Some(Self {
            source: format!("{}/{}", source.namespace, source.name),
            digest: source.digest.clone()?,
            contents: source.contents.clone(),
        })
    }
}

impl Group {
    /// The catalogs that its bundles come from.
    pub fn catalogs(&self) -> BTreeSet<&Seen> {
        self.ways.iter().filter_map(|way| way.catalog.as_ref()).collect()
    }
}

impl Way {
    /// `1.0.0 -> 1.1.0 -> 1.2.0`
    pub fn text(&self) -> String {
        let from = self.from.as_ref().map_or("(new)", |from| &from.text);
        let to = self.to.iter().map(|version| version.text.as_str());
        std::iter::once(from).chain(to).collect::<Vec<_>>().join(" -> ")
    }

    /// All versions, the installed one first.
    pub fn versions(&self) -> impl Iterator<Item = &Version> {
        self.from.iter().chain(&self.to)
    }
}
