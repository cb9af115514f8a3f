//! Which bundles and installed CSVs take part in the search, and what each needs.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use wavelift_core::version::Version;

use super::order;
use crate::{
    catalog::{EntryId, IndexedEntry, Need, Traits},
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, ResolveError, Source,
        Subscription,
    },
    graph::Gvk,
};

/// A node's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(usize);

/// A CSV that is on the cluster now.
#[derive(Debug)]
pub(super) struct InstalledNode<'a> {
    csv: &'a str,
    version: Option<&'a Version>,
    traits: Cow<'a, Traits>,
    is_mandatory: bool,
}

/// A bundle of a channel of a catalog.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryNode<'a> {
    pub(super) catalog: &'a CatalogKey,
    pub(super) source: &'a Source,
    pub(super) id: EntryId,
}

/// Something that may be on the cluster after the InstallPlan.
#[derive(Debug)]
pub(super) enum Node<'a> {
    Installed(&'a InstalledNode<'a>),
    Entry(EntryNode<'a>),
}

/// A need of a node and the nodes that satisfy it, the preferred first.
#[derive(Debug)]
pub(super) struct NodeNeed<'a> {
    pub(super) need: &'a Need,
    pub(super) providers: Vec<NodeId>,
}

/// What only one chosen node may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim<'a> {
    Package(&'a str),
    Api(&'a Gvk),
    /// The right to follow, or to be, this installed CSV.
    Csv(&'a str),
}

/// What has to be decided: the nodes that may be chosen, the ones that must be, and for each
/// Subscription its alternatives in order of preference.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) mandatory: Vec<NodeId>,
    /// In the order of the request's Subscriptions.
    pub(super) choices: Vec<Vec<NodeId>>,
    nodes: Vec<Node<'a>>,
    needs: Vec<Vec<NodeNeed<'a>>>,
    claims: Vec<BTreeSet<Claim<'a>>>,
}

/// The installed CSVs of the namespace, with what resolution looks at in them.
pub(super) fn installed<'a>(
    catalogs: &'a Catalogs,
    request: &'a Request,
) -> Vec<InstalledNode<'a>> {
    let unreferenced = request.unreferenced.iter().map(|csv| (csv, None));
    let subscribed = request.subscriptions.iter().filter_map(|subscription| {
        subscription.installed.as_ref().map(|csv| (csv, Some(subscription)))
    });
    let mut nodes: Vec<InstalledNode<'a>> = Vec::new();
    for (csv, subscription) in unreferenced.chain(subscribed) {
        if nodes.iter().all(|node| node.csv != csv.csv) {
            nodes.push(InstalledNode {
                csv: &csv.csv,
                version: csv.version.as_ref(),
                traits: installed_traits(catalogs, csv, subscription),
                is_mandatory: subscription.is_none(),
            });
        }
    }
    nodes
}

fn installed_traits<'a>(
    catalogs: &'a Catalogs,
    csv: &'a Installed,
    subscription: Option<&'a Subscription>,
) -> Cow<'a, Traits> {
    let in_catalog = || {
        let subscription = subscription?;
        let index = catalogs.get(&subscription.catalog)?.catalog.index();
        let mut channels = index.channels(&subscription.package)?;
        channels.find_map(|channel| {
            let entries = index.channel_entries(&subscription.package, channel);
            let entry = entries.iter().map(|id| index.entry(*id)).find(|e| e.name == csv.csv)?;
            Some(Cow::Borrowed(&*entry.traits))
        })
    };
    match &csv.properties {
        InstalledProperties::Known(properties) => Cow::Owned(Traits::of(properties)),
        InstalledProperties::AsInCatalog => {
            in_catalog().unwrap_or_else(|| Cow::Owned(Traits::of(&[])))
        }
    }
}

/// Everything that can be reached from the Subscriptions and the installed CSVs.
pub(super) fn problem<'a>(
    catalogs: &'a Catalogs,
    request: &'a Request,
    installed: &'a [InstalledNode<'a>],
) -> Result<Problem<'a>, ResolveError> {
    let mut building =
        Building { catalogs, request, installed, nodes: Vec::new(), ids: BTreeMap::new() };
    building.nodes.extend(installed.iter().map(Node::Installed));
    let mut problem = Problem {
        mandatory: (0..installed.len())
            .filter(|i| installed[*i].is_mandatory)
            .map(NodeId)
            .collect(),
        choices: Vec::new(),
        nodes: Vec::new(),
        needs: Vec::new(),
        claims: Vec::new(),
    };
    let mut followers: BTreeMap<NodeId, Vec<&'a str>> = BTreeMap::new();
    for subscription in &request.subscriptions {
        let mut choice = building.candidates(subscription)?;
        if let Some(csv) = &subscription.installed {
            for id in &choice {
                followers.entry(*id).or_default().push(&csv.csv);
            }
            choice.extend(building.installed_id(&csv.csv));
        }
        problem.choices.push(choice);
    }
    // Needs bring new nodes in while the list is walked.
    while problem.needs.len() < building.nodes.len() {
        problem.needs.push(building.needs(NodeId(problem.needs.len()))?);
    }
    problem.claims = (0..building.nodes.len())
        .map(|index| claims(&building.nodes[index], followers.get(&NodeId(index))))
        .collect();
    problem.nodes = building.nodes;
    Ok(problem)
}

fn claims<'a>(node: &Node<'a>, follows: Option<&Vec<&'a str>>) -> BTreeSet<Claim<'a>> {
    let (traits, csv) = match node {
        Node::Installed(installed) => (&*installed.traits, Some(installed.csv)),
        Node::Entry(entry) => (&*entry.get().traits, None),
    };
    let packages = traits.packages.iter().map(|(name, _)| Claim::Package(name));
    let apis = traits.provides.iter().map(Claim::Api);
    let followed = follows.into_iter().flatten().copied().chain(csv).map(Claim::Csv);
    packages.chain(apis).chain(followed).collect()
}

// === impl NodeId, EntryNode, Node ===

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0
    }
}

impl<'a> EntryNode<'a> {
    pub(super) fn get(&self) -> &'a IndexedEntry {
        self.source.catalog.index().entry(self.id)
    }
}

impl<'a> Node<'a> {
    pub(super) fn name(&self) -> &'a str {
        match self {
            Self::Installed(installed) => installed.csv,
            Self::Entry(entry) => &entry.get().name,
        }
    }

    pub(super) fn traits(&self) -> &'a Traits {
        match self {
            Self::Installed(installed) => &installed.traits,
            Self::Entry(entry) => &entry.get().traits,
        }
    }
}

// === impl Problem ===

impl<'a> Problem<'a> {
    pub(super) fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id.0]
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId)
    }

    pub(super) fn needs(&self, id: NodeId) -> &[NodeNeed<'a>] {
        &self.needs[id.0]
    }

    /// Whether the two can't both be on the cluster.
    pub(super) fn conflict(&self, a: NodeId, b: NodeId) -> bool {
        !self.claims[a.0].is_disjoint(&self.claims[b.0])
    }
}

// === building ===

struct Building<'a> {
    catalogs: &'a Catalogs,
    request: &'a Request,
    installed: &'a [InstalledNode<'a>],
    nodes: Vec<Node<'a>>,
    ids: BTreeMap<(&'a CatalogKey, EntryId), NodeId>,
}

impl<'a> Building<'a> {
    fn installed_id(&self, csv: &str) -> Option<NodeId> {
        self.installed.iter().position(|node| node.csv == csv).map(NodeId)
    }

    fn entry_id(&mut self, entry: EntryNode<'a>) -> NodeId {
        let nodes = &mut self.nodes;
        *self.ids.entry((entry.catalog, entry.id)).or_insert_with(|| {
            nodes.push(Node::Entry(entry));
            NodeId(nodes.len() - 1)
        })
    }

    /// The entries that a Subscription may go to, the preferred first.
    fn candidates(&mut self, subscription: &'a Subscription) -> Result<Vec<NodeId>, ResolveError> {
        let mut ids = Vec::new();
        for entry in order::candidates(self.catalogs, subscription)? {
            let id = self.entry_id(entry);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    fn needs(&mut self, id: NodeId) -> Result<Vec<NodeNeed<'a>>, ResolveError> {
        let node = &self.nodes[id.0];
        let name = node.name();
        let own_catalog = match node {
            Node::Installed(_) => None,
            Node::Entry(entry) => Some(entry.catalog),
        };
        let needs = node.traits().needs.as_ref();
        let needs = needs.map_err(|source| ResolveError::Need {
            bundle: name.to_owned(),
            source: source.clone(),
        })?;
        let mut result = Vec::with_capacity(needs.len());
        for need in needs {
            if need.cel().is_some() {
                return Err(ResolveError::Cel { bundle: name.to_owned() });
            }
            let mut providers: Vec<NodeId> = (0..self.installed.len())
                .filter(|index| is_met_by_installed(need, &self.installed[*index]))
                .map(NodeId)
                .collect();
            let found =
                order::providers(self.catalogs, &self.request.namespace, own_catalog, need)?;
            for entry in found {
                providers.push(self.entry_id(entry));
            }
            result.push(NodeNeed { need, providers });
        }
        Ok(result)
    }
}

fn is_met_by_installed(need: &Need, installed: &InstalledNode<'_>) -> bool {
    let package = installed.traits.packages.last().map_or("", |(name, _)| name.as_str());
    need.is_met_by(&installed.traits, package, installed.version)
}
