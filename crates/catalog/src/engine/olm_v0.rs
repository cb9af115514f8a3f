//! What OLM v0 does: an exact search in OLM's own order of preference.
//!
//! For each Subscription the candidates are the entries of its channel that may follow the installed
//! CSV, the one nearest to the head first, and as the last resort the installed CSV itself. A chosen
//! bundle adds a choice for each of its needs. At most one bundle of a package and one provider of an
//! API may be chosen. The first consistent set of choices is the answer; a Subscription that can only
//! stay is no error, but one that can't even stay is, for the whole namespace.

use std::collections::BTreeSet;

use wavelift_core::version::Version;

use self::nodes::{Node, NodeId, Problem};
use super::{
    Answers, Catalogs, Cause, Engine, Explanation, Move, Next, PassedOver, Reason, Request,
    ResolveError,
};

mod answers;
mod chance;
mod explain;
mod nodes;
mod order;
mod route;
mod search;
mod solver;

/// The engine of OLM v0.
#[derive(Debug, Clone, Copy, Default)]
pub struct OlmV0;

impl Engine for OlmV0 {
    fn next(&self, catalogs: &Catalogs, request: &Request) -> Result<Next, ResolveError> {
        let installed = nodes::installed(catalogs, request);
        let problem = nodes::problem(catalogs, request, &installed)?;
        let chosen = answers::answer(&problem)?;
        Ok(to_next(&problem, request, &chosen))
    }

    fn why_not(
        &self,
        catalogs: &Catalogs,
        request: &Request,
        package: &str,
        version: &Version,
    ) -> Option<Reason> {
        let told = self.explain(catalogs, request).ok()?;
        let of = told.into_iter().find(|explanation| explanation.package == package)?;
        let is_it = |passed: &PassedOver| passed.version.as_ref().is_some_and(|v| v.is_at(version));
        of.passed.into_iter().find(is_it).map(|passed| passed.reason)
    }
}

impl OlmV0 {
    /// What the next InstallPlan would hold, and what else it may hold where OLM itself leaves that
    /// to chance.
    pub fn answers(&self, catalogs: &Catalogs, request: &Request) -> Result<Answers, ResolveError> {
        let installed = nodes::installed(catalogs, request);
        let problem = nodes::problem(catalogs, request, &installed)?;
        let found = answers::answers(&problem)?;
        let next = to_next(&problem, request, &found.chosen);
        let mut alternatives: Vec<Next> =
            found.others.iter().map(|other| to_next(&problem, request, other)).collect();
        alternatives.sort();
        alternatives.dedup();
        alternatives.retain(|alternative| *alternative != next);
        Ok(Answers { next, alternatives, listing: found.listing })
    }

    /// For every Subscription what becomes of it, and of every bundle of its package that is not
    /// taken the reason. Fails only where the namespace can't even be read; where nothing satisfies
    /// everything, the reasons say what speaks against each bundle.
    pub fn explain(
        &self,
        catalogs: &Catalogs,
        request: &Request,
    ) -> Result<Vec<Explanation>, ResolveError> {
        let installed = nodes::installed(catalogs, request);
        let problem = nodes::problem(catalogs, request, &installed)?;
        let found = match answers::answers(&problem) {
            Ok(found) => Some(found),
            Err(ResolveError::Unsatisfiable { .. }) => None,
            Err(error) => return Err(error),
        };
        let maybe: BTreeSet<NodeId> =
            found.iter().flat_map(|found| &found.others).flatten().copied().collect();
        let chosen = found.as_ref().map(|found| &found.chosen);
        Ok(explain::explain((catalogs, request), &problem, chosen, &maybe))
    }
}

fn to_next(problem: &Problem<'_>, request: &Request, chosen: &BTreeSet<NodeId>) -> Next {
    let mut moves: Vec<Move> =
        chosen.iter().filter_map(|id| to_move(problem, request, *id)).collect();
    moves.sort();
    if moves.is_empty() { Next::Stays } else { Next::Moves(moves) }
}

/// A catalog entry becomes a move; a CSV that stays does not.
fn to_move(problem: &Problem<'_>, request: &Request, id: NodeId) -> Option<Move> {
    let (catalog, entry) = match problem.node(id) {
        Node::Installed(_) => return None,
        Node::Entry(node) => (node.catalog, node.get()),
    };
    let mut asking = request.subscriptions.iter().zip(&problem.questions);
    let asking = asking.find(|(_, question)| question.members.contains(&id));
    let subscription = asking.map(|(subscription, _)| subscription);
    let installed = subscription.and_then(|subscription| subscription.installed.as_ref());
    Some(Move {
        package: entry.package.clone(),
        from: installed.map(|installed| installed.csv.clone()),
        to: entry.name.clone(),
        to_version: entry.version.clone(),
        channel: entry.channel.clone(),
        catalog: catalog.clone(),
        cause: if subscription.is_some() { Cause::Subscription } else { Cause::Dependency },
    })
}

#[cfg(test)]
mod tests;
