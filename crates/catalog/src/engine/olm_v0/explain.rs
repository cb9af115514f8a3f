//! Why a bundle is not chosen.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    nodes::{Asker, Claim, Node, NodeId, Problem, QuestionId},
    order,
};
use crate::{
    catalog::{Index, IndexedEntry},
    engine::{
        Catalogs, Explanation, Outcome, PassedOver, Reason, Request, Source, Subscription, Unmet,
    },
};

/// How many reasons are listed.
const UNMET_MAX: usize = 16;

/// How many bundles are listed for one Subscription, the newest first.
const PASSED_MAX: usize = 200;

/// What each Subscription's alternatives lack by themselves.
pub(super) fn unmet(problem: &Problem<'_>) -> Vec<Unmet> {
    let is_hopeless = hopeless(problem);
    let asked = problem.questions.iter().filter(|question| match question.asker {
        Asker::Subscription => true,
        Asker::Need { .. } => false,
    });
    let asked = asked.flat_map(|question| question.members.iter());
    let mut unmet = BTreeMap::new();
    for id in problem.mandatory.iter().chain(asked).filter(|id| is_hopeless[id.index()]) {
        let bundle = problem.node(*id).name().to_owned();
        if problem.node(*id).traits().is_prohibited {
            let reason = Unmet::Deprecated { bundle: bundle.clone() };
            unmet.insert((bundle.clone(), String::new()), reason);
        }
        for question in hopeless_needs(problem, &is_hopeless, *id) {
            let need = need_of(problem, question);
            let reason = Unmet::Need { bundle: bundle.clone(), need: need.clone() };
            unmet.insert((bundle.clone(), need), reason);
        }
    }
    orphans(problem).chain(unmet.into_values()).take(UNMET_MAX).collect()
}

/// The CSVs without a Subscription that hold something which every alternative of a Subscription
/// would need for itself.
fn orphans(problem: &Problem<'_>) -> impl Iterator<Item = Unmet> {
    let in_the_way = |orphan: NodeId| {
        let held: BTreeSet<_> = problem.claims_of(orphan).iter().collect();
        let is_held = |id: &NodeId| problem.claims_of(*id).iter().any(|claim| held.contains(claim));
        problem.questions.iter().any(|question| match question.asker {
            Asker::Subscription => {
                !question.members.is_empty()
                    && question.members.iter().all(|id| *id != orphan && is_held(id))
            }
            Asker::Need { .. } => false,
        })
    };
    let orphans = problem.mandatory.iter().filter(move |id| in_the_way(**id));
    orphans.map(|id| Unmet::Orphan { csv: problem.node(*id).name().to_owned() })
}

/// The nodes that can't be chosen whatever else is: prohibited ones, and those with a need that only
/// such nodes satisfy.
fn hopeless(problem: &Problem<'_>) -> Vec<bool> {
    let mut is_hopeless = vec![false; problem.ids().count()];
    let mut hopeful: Vec<usize> = problem.questions.iter().map(|q| q.members.len()).collect();
    let mut answers: BTreeMap<NodeId, Vec<QuestionId>> = BTreeMap::new();
    for id in problem.question_ids() {
        for member in &problem.question(id).members {
            answers.entry(*member).or_default().push(id);
        }
    }
    let prohibited = problem.ids().filter(|id| problem.node(*id).traits().is_prohibited);
    let empty = problem.questions.iter().filter(|question| question.members.is_empty());
    let mut stack: Vec<NodeId> = prohibited.collect();
    stack.extend(empty.flat_map(|question| question.owners().iter()));
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut is_hopeless[id.index()], true) {
            continue;
        }
        for question in answers.get(&id).into_iter().flatten() {
            hopeful[question.index()] -= 1;
            if hopeful[question.index()] == 0 {
                stack.extend(problem.question(*question).owners());
            }
        }
    }
    is_hopeless
}

fn hopeless_needs(
    problem: &Problem<'_>,
    is_hopeless: &[bool],
    id: NodeId,
) -> impl Iterator<Item = QuestionId> {
    let needs = problem.needs(id).iter().copied();
    needs.filter(|need| problem.question(*need).members.iter().all(|p| is_hopeless[p.index()]))
}

fn need_of(problem: &Problem<'_>, question: QuestionId) -> String {
    match &problem.question(question).asker {
        Asker::Need { need, .. } => need.to_string(),
        Asker::Subscription => String::new(),
    }
}

/// What is known when the bundles of a Subscription are gone through.
struct Looking<'p, 'a> {
    problem: &'p Problem<'a>,
    is_hopeless: Vec<bool>,
    /// Nothing where the namespace fails.
    chosen: Option<&'p BTreeSet<NodeId>>,
    /// Chosen in another answer that OLM may give.
    maybe: &'p BTreeSet<NodeId>,
}

/// For every Subscription what becomes of it, and for every bundle that could be thought of why it
/// is not taken.
pub(super) fn explain(
    (catalogs, request): (&Catalogs, &Request),
    problem: &Problem<'_>,
    chosen: Option<&BTreeSet<NodeId>>,
    maybe: &BTreeSet<NodeId>,
) -> Vec<Explanation> {
    let looking = Looking { problem, is_hopeless: hopeless(problem), chosen, maybe };
    let subscriptions = request.subscriptions.iter().zip(problem.question_ids());
    subscriptions
        .map(|(subscription, question)| looking.subscription(catalogs, subscription, question))
        .collect()
}

impl Looking<'_, '_> {
    fn subscription(
        &self,
        catalogs: &Catalogs,
        subscription: &Subscription,
        question: QuestionId,
    ) -> Explanation {
        let members = &self.problem.question(question).members;
        let taken = members.iter().copied().find(|id| self.is_chosen(*id));
        let mut passed = Vec::new();
        let mut candidates = BTreeSet::new();
        for id in members {
            if let Node::Entry(node) = self.problem.node(*id) {
                let entry = node.get();
                candidates.insert((&entry.channel, &entry.name));
                if taken != Some(*id) {
                    passed.push(bundle(entry, node.catalog, self.reason(*id, taken, question)));
                }
            }
        }
        for (key, source) in catalogs.iter() {
            let index = source.catalog.index();
            for entry in entries(index, &subscription.package) {
                if *key == subscription.catalog
                    && candidates.contains(&(&entry.channel, &entry.name))
                {
                    continue;
                }
                if let Some(reason) = no_candidate(subscription, (key, source), entry) {
                    passed.push(bundle(entry, key, reason));
                }
            }
        }
        passed.sort_by(|a, b| by_version(b, a));
        passed.truncate(PASSED_MAX);
        let outcome = match (self.chosen, taken.map(|id| self.problem.node(id))) {
            (None, _) | (Some(_), None) => Outcome::Fails,
            (Some(_), Some(Node::Installed(_))) => Outcome::Stays,
            (Some(_), Some(Node::Entry(node))) => Outcome::Moves { to: node.get().name.clone() },
        };
        Explanation {
            package: subscription.package.clone(),
            installed: subscription.installed.as_ref().map(|installed| installed.csv.clone()),
            outcome,
            passed,
        }
    }

    fn is_chosen(&self, id: NodeId) -> bool {
        self.chosen.is_some_and(|chosen| chosen.contains(&id))
    }

    /// Why a candidate is not taken.
    fn reason(&self, id: NodeId, taken: Option<NodeId>, question: QuestionId) -> Reason {
        if let Some(reason) = self.own_reason(id) {
            return reason;
        }
        let members = &self.problem.question(question).members;
        let place = |id: NodeId| members.iter().position(|member| *member == id);
        if let Some(taken) = taken.filter(|taken| place(*taken) < place(id)) {
            return Reason::Preferred { by: self.label(taken) };
        }
        let others = || self.chosen.into_iter().flatten().filter(|other| Some(**other) != taken);
        if let Some((with, over)) =
            others().find_map(|other| Some((*other, self.common_claim(id, *other)?)))
        {
            return Reason::Conflicts { with: self.label(with), over };
        }
        for need in self.problem.needs(id) {
            let providers = &self.problem.question(*need).members;
            let stopped_by = |provider: &NodeId| {
                others().find(|other| {
                    *other != provider && self.common_claim(*provider, **other).is_some()
                })
            };
            let hopeful = || providers.iter().filter(|p| !self.is_hopeless[p.index()]);
            if let Some(by) = hopeful().find_map(stopped_by)
                && hopeful().all(|provider| stopped_by(provider).is_some())
            {
                let need = need_of(self.problem, *need);
                return Reason::NeedBlocked { need, by: self.label(*by) };
            }
        }
        if self.maybe.contains(&id) { Reason::Chance } else { Reason::Search }
    }

    /// What speaks against a bundle whatever else is chosen.
    fn own_reason(&self, id: NodeId) -> Option<Reason> {
        if self.problem.node(id).traits().is_prohibited {
            return Some(Reason::Deprecated);
        }
        let need = hopeless_needs(self.problem, &self.is_hopeless, id).next()?;
        Some(Reason::Needs { need: need_of(self.problem, need) })
    }

    fn common_claim(&self, a: NodeId, b: NodeId) -> Option<String> {
        let claims = self.problem.claims_of(b);
        let common = self.problem.claims_of(a).iter().find(|claim| claims.contains(claim))?;
        Some(match common {
            Claim::Package(name) => format!("package `{name}`"),
            Claim::Api(gvk) => format!("the API {gvk}"),
        })
    }

    fn label(&self, id: NodeId) -> String {
        self.problem.node(id).name().to_owned()
    }
}

fn bundle(entry: &IndexedEntry, catalog: &crate::engine::CatalogKey, reason: Reason) -> PassedOver {
    PassedOver {
        csv: entry.name.clone(),
        version: entry.version.clone(),
        channel: entry.channel.clone(),
        catalog: catalog.clone(),
        reason,
    }
}

fn by_version(a: &PassedOver, b: &PassedOver) -> std::cmp::Ordering {
    let versions = match (&a.version, &b.version) {
        (Some(a), Some(b)) => a.cmp_precedence(b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    };
    let names = |of: &PassedOver| (of.csv.clone(), of.catalog.clone(), of.channel.clone());
    versions.then_with(|| names(b).cmp(&names(a)))
}

fn entries<'i>(index: &'i Index, package: &'i str) -> impl Iterator<Item = &'i IndexedEntry> {
    let channels = index.channels(package).into_iter().flatten();
    let ids = channels.flat_map(move |channel| index.channel_entries(package, channel));
    ids.map(move |id| index.entry(*id))
}

/// Why an entry is not even looked at; nothing for what is installed or older than that.
fn no_candidate(
    subscription: &Subscription,
    (key, source): (&crate::engine::CatalogKey, &Source),
    entry: &IndexedEntry,
) -> Option<Reason> {
    let installed = subscription.installed.as_ref();
    if installed.is_some_and(|installed| installed.csv == entry.name) {
        return None;
    }
    if *key != subscription.catalog {
        return is_newer(subscription, entry)
            .then(|| Reason::OtherCatalog { subscribed: subscription.catalog.clone() });
    }
    if !subscription.channel.is_empty() && subscription.channel != entry.channel {
        return is_newer(subscription, entry)
            .then(|| Reason::OtherChannel { subscribed: subscription.channel.clone() });
    }
    if !is_newer(subscription, entry) {
        return Some(Reason::NotNewer);
    }
    let index = source.catalog.index();
    let channel = index.channel_entries(&entry.package, &entry.channel).iter();
    let mut channel = channel.map(|id| index.entry(*id));
    if let Some(by) = channel.find(|other| other.skips.contains(&entry.name)) {
        return Some(Reason::Skipped { by: by.name.clone() });
    }
    let starting = subscription.starting_csv.as_deref().filter(|csv| !csv.is_empty());
    if let (None, Some(csv)) = (installed, starting) {
        return Some(Reason::StartingCsv { csv: csv.to_owned() });
    }
    let chain = order::chain(index, &entry.package, &entry.channel).unwrap_or(&[]);
    if chain.iter().all(|id| index.entry(*id).name != entry.name) {
        return Some(Reason::OutOfChain);
    }
    Some(Reason::NoEdge { from: installed.map_or_else(String::new, |i| i.csv.clone()) })
}

fn is_newer(subscription: &Subscription, entry: &IndexedEntry) -> bool {
    let installed = subscription.installed.as_ref().and_then(|i| i.version.as_ref());
    let versions = installed.zip(entry.version.as_ref());
    versions.is_none_or(|(installed, version)| version.cmp_precedence(installed).is_gt())
}
