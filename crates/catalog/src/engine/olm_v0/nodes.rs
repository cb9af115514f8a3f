//! Which bundles and installed CSVs take part in the search, and what each needs.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use wavelift_core::version::Version;

use super::{
    order,
    solver::{Budget, Exhausted},
};
use crate::{
    catalog::{Candidate, EntryId, IndexedEntry, Need, Origin, Properties, Traits},
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, ResolveError, Source,
        Subscription,
    },
    graph::Gvk,
};

/// A node's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(usize);

/// A question's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QuestionId(usize);

/// A CSV that is on the cluster now.
#[derive(Debug)]
pub(super) struct InstalledNode<'a> {
    csv: &'a str,
    version: Option<&'a Version>,
    traits: Cow<'a, Traits>,
    properties: Properties<'a>,
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

/// One of these has to be chosen.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// The alternatives in order of preference. Within one rank OLM's order is left to chance: the
    /// same bundle in several channels.
    pub(super) ranks: Vec<Vec<NodeId>>,
    /// Every alternative once.
    pub(super) members: Vec<NodeId>,
    /// Who asks.
    pub(super) asker: Asker<'a>,
}

/// Who asks a question.
#[derive(Debug)]
pub(super) enum Asker<'a> {
    /// A Subscription: the answer must be given.
    Subscription,
    /// Nodes with the same need: the answer must be given if one of them is chosen.
    Need { need: &'a Need, owners: Vec<NodeId> },
}

/// What only one chosen node may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim<'a> {
    /// To be of this package.
    Package(&'a str),
    /// To provide this API.
    Api(&'a Gvk),
}

/// What has to be decided.
#[derive(Debug, Default)]
pub(super) struct Problem<'a> {
    /// The nodes that must be chosen.
    pub(super) mandatory: Vec<NodeId>,
    /// The Subscriptions' questions first, in the order of the request.
    pub(super) questions: Vec<Question<'a>>,
    /// Of each claim the nodes that make it.
    pub(super) claims: BTreeMap<Claim<'a>, Vec<NodeId>>,
    /// Of each node the ones that it would take the place of, and that would take its place.
    pub(super) rivals: Vec<BTreeSet<NodeId>>,
    nodes: Vec<Node<'a>>,
    needs: Vec<Vec<QuestionId>>,
    claims_of: Vec<Vec<Claim<'a>>>,
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
            let (traits, properties) = installed_traits(catalogs, csv, subscription);
            nodes.push(InstalledNode {
                csv: &csv.csv,
                version: csv.version.as_ref(),
                traits,
                properties,
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
) -> (Cow<'a, Traits>, Properties<'a>) {
    let in_catalog = || {
        let subscription = subscription?;
        let catalog = &catalogs.get(&subscription.catalog)?.catalog;
        let index = catalog.index();
        let mut channels = index.channels(&subscription.package)?;
        let traits = channels.find_map(|channel| {
            let entries = index.channel_entries(&subscription.package, channel);
            let entry = entries.iter().map(|id| index.entry(*id)).find(|e| e.name == csv.csv)?;
            Some(Cow::Borrowed(&*entry.traits))
        })?;
        let bundle = catalog.bundle(&subscription.package, &csv.csv)?;
        Some((traits, Properties::Shared(&bundle.properties)))
    };
    match &csv.properties {
        InstalledProperties::Known(properties) => {
            (Cow::Owned(Traits::of(properties)), Properties::Own(properties))
        }
        InstalledProperties::AsInCatalog => {
            in_catalog().unwrap_or_else(|| (Cow::Owned(Traits::of(&[])), Properties::Own(&[])))
        }
    }
}

/// Looks at entries until everything that takes part is known. Real namespaces need some thousands.
const LOOKS_MAX: u64 = 20_000_000;

/// Everything that can be reached from the Subscriptions and the installed CSVs.
pub(super) fn problem<'a>(
    catalogs: &'a Catalogs,
    request: &'a Request,
    installed: &'a [InstalledNode<'a>],
) -> Result<Problem<'a>, ResolveError> {
    problem_within(catalogs, request, installed, LOOKS_MAX)
}

/// The same with so many looks and no more.
pub(super) fn problem_within<'a>(
    catalogs: &'a Catalogs,
    request: &'a Request,
    installed: &'a [InstalledNode<'a>],
    looks_max: u64,
) -> Result<Problem<'a>, ResolveError> {
    let mut building = Building {
        catalogs,
        request,
        installed,
        budget: Budget::new(looks_max),
        problem: Problem::default(),
        ids: BTreeMap::new(),
        asked: BTreeMap::new(),
    };
    building.problem.nodes.extend(installed.iter().map(Node::Installed));
    building.problem.mandatory =
        (0..installed.len()).filter(|i| installed[*i].is_mandatory).map(NodeId).collect();
    let mut replaced = Vec::new();
    for subscription in &request.subscriptions {
        let mut ranks = building.candidates(subscription)?;
        if let Some(csv) = &subscription.installed
            && let Some(id) = building.installed_id(&csv.csv)
        {
            replaced.extend(ranks.iter().flatten().map(|candidate| (*candidate, id)));
            ranks.push(vec![id]);
        }
        building.problem.questions.push(Question::new(ranks, Asker::Subscription));
    }
    // Needs bring new nodes in while the list is walked.
    while building.problem.needs.len() < building.problem.nodes.len() {
        let needs = building.needs(NodeId(building.problem.needs.len()))?;
        building.problem.needs.push(needs);
    }
    let mut problem = building.problem;
    problem.rivals = vec![BTreeSet::new(); problem.nodes.len()];
    for (candidate, current) in replaced {
        problem.rivals[candidate.0].insert(current);
        problem.rivals[current.0].insert(candidate);
    }
    problem.claim();
    Ok(problem)
}

// === impl NodeId, QuestionId, EntryNode, Node, Question ===

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0
    }
}

impl QuestionId {
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

impl<'a> Question<'a> {
    fn new(ranks: Vec<Vec<NodeId>>, asker: Asker<'a>) -> Self {
        let mut seen = BTreeSet::new();
        let members = ranks.iter().flatten().copied().filter(|id| seen.insert(*id)).collect();
        Self { ranks, members, asker }
    }

    /// The nodes whose need it is.
    pub(super) fn owners(&self) -> &[NodeId] {
        match &self.asker {
            Asker::Subscription => &[],
            Asker::Need { owners, .. } => owners,
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

    pub(super) fn question_ids(&self) -> impl Iterator<Item = QuestionId> + use<> {
        (0..self.questions.len()).map(QuestionId)
    }

    pub(super) fn question(&self, id: QuestionId) -> &Question<'a> {
        &self.questions[id.0]
    }

    /// What a node needs, in its own order.
    pub(super) fn needs(&self, id: NodeId) -> &[QuestionId] {
        &self.needs[id.0]
    }

    pub(super) fn claims_of(&self, id: NodeId) -> &[Claim<'a>] {
        &self.claims_of[id.0]
    }

    fn claim(&mut self) {
        for index in 0..self.nodes.len() {
            let traits = self.nodes[index].traits();
            let packages = traits.packages.iter().map(|(name, _)| Claim::Package(name));
            let claims: BTreeSet<Claim<'a>> =
                packages.chain(traits.provides.iter().map(Claim::Api)).collect();
            for claim in &claims {
                self.claims.entry(*claim).or_default().push(NodeId(index));
            }
            self.claims_of.push(claims.into_iter().collect());
        }
    }
}

// === building ===

struct Building<'a> {
    catalogs: &'a Catalogs,
    request: &'a Request,
    installed: &'a [InstalledNode<'a>],
    budget: Budget,
    problem: Problem<'a>,
    ids: BTreeMap<(&'a CatalogKey, EntryId), NodeId>,
    /// The same need of bundles of the same catalog is the same question.
    asked: BTreeMap<(Option<&'a CatalogKey>, String), QuestionId>,
}

impl<'a> Building<'a> {
    fn installed_id(&self, csv: &str) -> Option<NodeId> {
        self.installed.iter().position(|node| node.csv == csv).map(NodeId)
    }

    fn entry_id(&mut self, entry: EntryNode<'a>) -> NodeId {
        let nodes = &mut self.problem.nodes;
        *self.ids.entry((entry.catalog, entry.id)).or_insert_with(|| {
            nodes.push(Node::Entry(entry));
            NodeId(nodes.len() - 1)
        })
    }

    /// The entries that a Subscription may go to, the preferred first.
    fn candidates(
        &mut self,
        subscription: &'a Subscription,
    ) -> Result<Vec<Vec<NodeId>>, ResolveError> {
        let ranks = order::candidates(self.catalogs, subscription, &mut self.budget)?;
        let ids = |rank: Vec<EntryNode<'a>>| rank.into_iter().map(|e| self.entry_id(e)).collect();
        Ok(ranks.into_iter().map(ids).collect())
    }

    fn needs(&mut self, id: NodeId) -> Result<Vec<QuestionId>, ResolveError> {
        let node = &self.problem.nodes[id.0];
        let name = node.name();
        let (own_catalog, traits) = match node {
            Node::Installed(installed) => (None, &*installed.traits),
            Node::Entry(entry) => (Some(entry.catalog), &*entry.get().traits),
        };
        let needs = traits.needs.as_ref();
        let needs = needs.map_err(|source| ResolveError::Need {
            bundle: name.to_owned(),
            source: source.clone(),
        })?;
        let mut result = Vec::with_capacity(needs.len());
        for need in needs {
            let key = (own_catalog, need.to_string());
            let question = match self.asked.get(&key) {
                Some(question) => *question,
                None => self.ask(need, own_catalog, name)?,
            };
            self.asked.insert(key, question);
            if let Asker::Need { owners, .. } = &mut self.problem.questions[question.0].asker {
                owners.push(id);
            }
            result.push(question);
        }
        Ok(result)
    }

    fn ask(
        &mut self,
        need: &'a Need,
        own_catalog: Option<&'a CatalogKey>,
        bundle: &str,
    ) -> Result<QuestionId, ResolveError> {
        let cel = |source| ResolveError::Cel { bundle: bundle.to_owned(), source };
        need.check().map_err(cel)?;
        let mut providers = Vec::new();
        for (index, installed) in self.installed.iter().enumerate() {
            let mut work = 0;
            if need.is_met_by(&installed.candidate(), &mut work).map_err(cel)? {
                providers.push(vec![NodeId(index)]);
            }
            self.budget.spend(work).map_err(|Exhausted| too_hard(&self.budget))?;
        }
        let namespace = &self.request.namespace;
        let asking = order::Asking { namespace, own_catalog, need, bundle };
        for entry in order::providers(self.catalogs, asking, &mut self.budget)? {
            providers.push(vec![self.entry_id(entry)]);
        }
        let asker = Asker::Need { need, owners: Vec::new() };
        self.problem.questions.push(Question::new(providers, asker));
        Ok(QuestionId(self.problem.questions.len() - 1))
    }
}

/// More work than is done for one namespace.
pub(super) fn too_hard(budget: &Budget) -> ResolveError {
    ResolveError::TooHard { steps: budget.all() }
}

impl InstalledNode<'_> {
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            traits: &self.traits,
            package: self.traits.packages.last().map_or("", |(name, _)| name.as_str()),
            version: self.version,
            properties: self.properties,
            origin: Origin::Cluster,
        }
    }
}
