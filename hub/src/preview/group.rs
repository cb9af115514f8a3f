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
    plan::{Move, Plan, Via},
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

/// What is asked about catalogs, each named by the digest of its graph.
pub trait Graphs {
    /// Whether the catalog has a bundle.
    fn has_bundle(&self, digest: &str, package: &PackageName, csv: &CsvName) -> bool;

    /// The name of the channel that a Subscription with `channel` follows, if the catalog's author
    /// calls it deprecated. Without a name it is the package's default channel.
    fn deprecated(&self, digest: &str, package: &PackageName, channel: &str) -> Option<String>;
}

/// Nothing is known of any catalog.
#[derive(Debug, Clone, Copy)]
pub struct Unread;

impl Graphs for Unread {
    fn has_bundle(&self, _: &str, _: &PackageName, _: &CsvName) -> bool {
        false
    }

    fn deprecated(&self, _: &str, _: &PackageName, _: &str) -> Option<String> {
        None
    }
}

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
    /// Those of them that OLM stops at by a pinned catalog alone.
    pub pinned: BTreeSet<CsvName>,
    /// The catalog that its bundles come from, as far as that is known.
    pub catalog: Option<Seen>,
    /// The Subscription's channel, if the catalog's author calls it deprecated.
    pub deprecated_channel: Option<String>,
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
    graphs: &dyn Graphs,
) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for one in planned {
        let key = key(one, graphs);
        let group = groups.entry(key).or_insert_with_key(|key| Group {
            id: hex::encode(Sha256::digest(key)).chars().take(16).collect(),
            ways: ways(one, graphs),
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

fn key(one: Planned<'_>, graphs: &dyn Graphs) -> String {
    let mut key = one.plan.digest();
    let mut seen = BTreeSet::new();
    for step in &one.plan.steps {
        let namespace = one.namespace(&step.namespace);
        for item in &step.moves {
            let source = one.source(namespace, item, graphs);
            let digests = source.map(|source| (&source.digest, &source.contents));
            let channel = deprecated_channel(namespace, source, item, graphs);
            let one = (item.package.as_str(), digests, channel);
            if !seen.contains(&one) {
                let (package, digests, channel) = &one;
                key.push_str(&format!("\n{package} {digests:?} {channel:?}"));
                seen.insert(one);
            }
        }
    }
    key
}

fn ways(one: Planned<'_>, graphs: &dyn Graphs) -> Vec<Way> {
    let mut ways: BTreeMap<(&Namespace, &PackageName), Way> = BTreeMap::new();
    for step in &one.plan.steps {
        let namespace = one.namespace(&step.namespace);
        for item in &step.moves {
            let source = one.source(namespace, item, graphs);
            let way = ways.entry((&step.namespace, &item.package)).or_insert_with(|| Way {
                namespace: step.namespace.clone(),
                package: item.package.clone(),
                from: item.from.as_ref().map(|csv| Version {
                    csv: csv.clone(),
                    text: item.from_version.clone().unwrap_or_else(|| csv.to_string()),
                }),
                to: vec![],
                pinned: BTreeSet::new(),
                catalog: source.and_then(Seen::of),
                deprecated_channel: deprecated_channel(namespace, source, item, graphs),
            });
            if step.via == Via::PinnedCatalog {
                way.pinned.insert(item.to.clone());
            }
            way.to.push(Version { csv: item.to.clone(), text: item.to_version.clone() });
        }
    }
    ways.into_values().collect()
}

/// The channel of the package's Subscription, if it is deprecated. Clusters that follow different
/// channels the same way see the same, but for this.
fn deprecated_channel(
    namespace: Option<&NamespaceInventory>,
    source: Option<&CatalogSource>,
    item: &Move,
    graphs: &dyn Graphs,
) -> Option<String> {
    let digest = source?.digest.as_ref()?;
    let subscription =
        namespace?.subscriptions.iter().find(|s| s.package == item.package.as_str())?;
    graphs.deprecated(digest, &item.package, &subscription.channel)
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
        graphs: &dyn Graphs,
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
                let has = |digest: &String| graphs.has_bundle(digest, &item.package, &item.to);
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
    /// `1.0.0 -> 1.1.0 -> 1.2.0, stops at 1.1.0 by a pinned catalog`
    pub fn text(&self) -> String {
        let from = self.from.as_ref().map_or("(new)", |from| &from.text);
        let to = self.to.iter().map(|version| version.text.as_str());
        let versions = std::iter::once(from).chain(to).collect::<Vec<_>>().join(" -> ");
        let pinned: Vec<&str> = self.pinned().collect();
        if pinned.is_empty() {
            return versions;
        }
        format!("{versions}, stops at {} by a pinned catalog", pinned.join(", "))
    }

    /// The versions that OLM stops at by a pinned catalog alone.
    pub fn pinned(&self) -> impl Iterator<Item = &str> {
        let is_pinned = |version: &&Version| self.pinned.contains(&version.csv);
        self.to.iter().filter(is_pinned).map(|version| version.text.as_str())
    }

    /// All versions, the installed one first.
    pub fn versions(&self) -> impl Iterator<Item = &Version> {
        self.from.iter().chain(&self.to)
    }
}

#[cfg(test)]
mod tests {
    use wavelift_core::{inventory::Subscription, plan::Step};

    use super::*;

    /// Calls one channel deprecated.
    struct Calls(&'static str);

    impl Graphs for Calls {
        fn has_bundle(&self, _: &str, _: &PackageName, _: &CsvName) -> bool {
            true
        }

        fn deprecated(&self, _: &str, _: &PackageName, channel: &str) -> Option<String> {
            (channel == self.0).then(|| channel.to_owned())
        }
    }

    fn follows(channel: &str) -> Inventory {
        Inventory {
            namespaces: vec![NamespaceInventory {
                namespace: "trees".try_into().unwrap(),
                operator_groups: 1,
                global_catalogs_excluded: false,
                subscriptions: vec![Subscription {
                    name: "oak".to_owned(),
                    package: "oak".to_owned(),
                    channel: channel.to_owned(),
                    source: "own".to_owned(),
                    source_namespace: "market".to_owned(),
                    ..Subscription::default()
                }],
                csvs: vec![],
            }],
            catalogs: vec![CatalogSource {
                namespace: "market".to_owned(),
                name: "own".to_owned(),
                digest: Some("sha256:0".to_owned()),
                ..CatalogSource::default()
            }],
            ..Inventory::default()
        }
    }

    #[test]
    fn channels_part_clusters_only_where_one_is_deprecated() {
        let item = Move {
            package: "oak".try_into().unwrap(),
            from: Some("oak.v1.0.0".try_into().unwrap()),
            to: "oak.v1.1.0".try_into().unwrap(),
            from_version: Some("1.0.0".to_owned()),
            to_version: "1.1.0".to_owned(),
        };
        let step =
            Step { namespace: "trees".try_into().unwrap(), moves: vec![item], via: Via::Cluster };
        let plan = Plan { steps: vec![step] };
        let names = ["a", "b", "c"].map(|name| ClusterName::try_from(name).unwrap());
        let inventories = ["stable", "fast", "old"].map(follows);
        let planned = || {
            let both = names.iter().zip(&inventories);
            both.map(|(cluster, inventory)| Planned {
                cluster,
                plan: &plan,
                inventory: Some(inventory),
            })
        };
        let found = groups(planned(), &Calls("old"));
        let clusters: Vec<usize> = found.iter().map(|group| group.clusters.len()).collect();
        assert_eq!(clusters, [2, 1]);
        assert_eq!(found[0].ways[0].deprecated_channel, None);
        assert_eq!(found[1].ways[0].deprecated_channel.as_deref(), Some("old"));
        assert_eq!(groups(planned(), &Unread).len(), 1);
    }
}
