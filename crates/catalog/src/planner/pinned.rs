//! The hops of a namespace when pinned catalogs are allowed: only targets move, and none past its
//! target.

use std::collections::BTreeMap;

use wavelift_core::{
    causes::sentence,
    plan::Via,
    target::{Goal, Target},
    version::Version,
};

use super::goal;
use crate::{
    engine::{Catalogs, Cause, Engine, Move, Request, Subscription},
    pin,
};

/// More than the schema of a plan allows.
const HOPS_MAX: usize = 300;

/// The hops until every target is where it is to be. OLM's own next step is taken where it moves
/// nothing but targets, and none of them too far; a pinned catalog leads on where it does not.
pub(super) fn hops(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    request: &Request,
    targets: &[&Target],
) -> Result<Vec<(Vec<Move>, Via)>, String> {
    let exact = match goal::exact(targets) {
        Some(exact) => exact,
        None => resolve(engine, catalogs, request, targets)?,
    };
    past(request, &exact)?;
    let mut at = request.clone();
    let mut hops = vec![];
    while hops.len() < HOPS_MAX {
        let open = open(&at, &exact);
        if open.is_empty() {
            return Ok(hops);
        }
        let next = engine.next(catalogs, &at).map_err(|error| sentence(&error))?;
        let (moves, via) = if is_fit(next.moves(), &open) {
            (next.moves().to_vec(), Via::Cluster)
        } else {
            (pinned(engine, catalogs, &at, &open)?, Via::PinnedCatalog)
        };
        at = at.after(&moves);
        hops.push((moves, via));
    }
    Err(format!("more than {HOPS_MAX} steps"))
}

/// The packages that are not at their targets.
fn open<'e>(at: &Request, exact: &'e BTreeMap<String, Version>) -> BTreeMap<&'e str, &'e Version> {
    let is_open = |package: &str, target: &Version| {
        !goal::installed_version(at, package).is_some_and(|version| version.is_at(target))
    };
    let all = exact.iter().map(|(package, target)| (package.as_str(), target));
    all.filter(|(package, target)| is_open(package, target)).collect()
}

fn past(request: &Request, exact: &BTreeMap<String, Version>) -> Result<(), String> {
    for (package, target) in exact {
        let installed = goal::installed_version(request, package);
        if let Some(version) = installed.filter(|version| version.cmp_precedence(target).is_gt()) {
            return Err(format!("`{package}` is at {version}, past its target {target} already"));
        }
    }
    Ok(())
}

/// Whether OLM by itself moves only what is to move, and nothing too far.
fn is_fit(moves: &[Move], open: &BTreeMap<&str, &Version>) -> bool {
    let fits = |step: &Move| match (open.get(step.package.as_str()), &step.to_version) {
        (Some(target), Some(version)) => !version.cmp_precedence(target).is_gt(),
        (Some(_), None) => false,
        (None, _) => step.cause == Cause::Dependency,
    };
    !moves.is_empty() && moves.iter().all(fits)
}

/// The next hop by a pinned catalog: each package one bundle nearer to its target.
fn pinned(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    at: &Request,
    open: &BTreeMap<&str, &Version>,
) -> Result<Vec<Move>, String> {
    let mut wanted = BTreeMap::new();
    for (package, target) in open {
        let subscription = subscription(at, package)?;
        let way = pin::way(catalogs, subscription, target);
        let first = way.into_iter().next().ok_or_else(|| {
            let from = subscription.installed.as_ref().map_or("nothing", |from| &from.csv);
            let channel = &subscription.channel;
            format!(
                "channel `{channel}` of `{package}` leads from `{from}` to {target} neither by OLM \
                 alone nor by a pinned catalog"
            )
        })?;
        wanted.insert((*package).to_owned(), first);
    }
    let pinned = pin::pin(engine, catalogs, at, &wanted).map_err(|error| error.to_string())?;
    Ok(pinned.moves)
}

fn subscription<'r>(at: &'r Request, package: &str) -> Result<&'r Subscription, String> {
    let found = at.subscriptions.iter().find(|subscription| subscription.package == package);
    found.ok_or_else(|| format!("no Subscription to `{package}` is in the namespace"))
}

/// The exact version that each target comes to: on OLM's own whole way, and where no version of that
/// is within a range, the newest one that a way leads to.
fn resolve(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    request: &Request,
    targets: &[&Target],
) -> Result<BTreeMap<String, Version>, String> {
    let mut exact = BTreeMap::new();
    for target in targets {
        let package = target.package.as_str();
        let natural = goal::resolve(engine, catalogs, request, &[*target]);
        match (natural, &target.goal) {
            (Ok(found), _) => exact.extend(found),
            (Err(why), Goal::Range(range)) => {
                let subscription = subscription(request, package)?;
                let mut versions = pin::versions(catalogs, subscription);
                versions.retain(|version| range.contains(version));
                let leads =
                    |version: &&Version| !pin::way(catalogs, subscription, version).is_empty();
                let found = versions.iter().rev().find(leads).ok_or(why)?;
                exact.insert(package.to_owned(), found.clone());
            }
            (Err(why), Goal::Latest | Goal::Version(_)) => return Err(why),
        }
    }
    Ok(exact)
}
