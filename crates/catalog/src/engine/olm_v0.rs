//! What OLM v0 does: an exact search in OLM's own order of preference.
//!
//! For each Subscription the candidates are the entries of its channel that may follow the installed
//! CSV, the one nearest to the head first, and as the last resort the installed CSV itself. A chosen
//! bundle adds a choice for each of its needs. At most one bundle of a package and one provider of an
//! API may be chosen. The first consistent set of choices is the answer; a Subscription that can only
//! stay is no error, but one that can't even stay is, for the whole namespace.

use self::nodes::{Node, NodeId, Problem};
use super::{Catalogs, Cause, Engine, Move, Next, Request, ResolveError};

mod nodes;
mod order;
mod search;

/// The engine of OLM v0.
#[derive(Debug, Clone, Copy, Default)]
pub struct OlmV0;

impl Engine for OlmV0 {
    fn next(&self, catalogs: &Catalogs, request: &Request) -> Result<Next, ResolveError> {
        let installed = nodes::installed(catalogs, request);
        let problem = nodes::problem(catalogs, request, &installed)?;
        let chosen = search::solve(&problem)?;
        let mut moves: Vec<Move> =
            chosen.iter().filter_map(|id| to_move(&problem, request, *id)).collect();
        moves.sort();
        Ok(if moves.is_empty() { Next::Stays } else { Next::Moves(moves) })
    }
}

/// A catalog entry becomes a move; a CSV that stays does not.
fn to_move(problem: &Problem<'_>, request: &Request, id: NodeId) -> Option<Move> {
    let (catalog, entry) = match problem.node(id) {
        Node::Installed(_) => return None,
        Node::Entry(node) => (node.catalog, node.get()),
    };
    let asking = problem.choices.iter().position(|choice| choice.contains(&id));
    let subscription = asking.and_then(|index| request.subscriptions.get(index));
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
