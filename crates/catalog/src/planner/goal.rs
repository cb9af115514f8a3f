//! How many hops of a namespace a set of targets asks for.

use std::collections::BTreeMap;

use wavelift_core::{
    causes::sentence,
    plan::Via,
    target::{Goal, Target},
    version::Version,
};

use crate::engine::{Catalogs, Engine, Move, Request};

/// The hops until every target of the namespace is where it is to be; none when they are there.
///
/// An exact version is the engine's own question, and its reasons are the best ones. `Latest` and a
/// range can only be judged after the whole way is known: the last version, or the last one within
/// the range, is then as exact as any other.
pub(super) fn hops(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    request: &Request,
    targets: &[&Target],
) -> Result<Vec<(Vec<Move>, Via)>, String> {
    let exact = match exact(targets) {
        Some(exact) => exact,
        None => resolve(engine, catalogs, request, targets)?,
    };
    // With nothing named, the engine would go on until the namespace stays.
    if exact.is_empty() {
        return Ok(vec![]);
    }
    let path = engine.path(catalogs, request, &exact).map_err(|error| sentence(&error))?;
    Ok(path.hops.into_iter().map(|hop| (hop.moves, Via::Cluster)).collect())
}

/// The targets' versions, if each is an exact one.
pub(super) fn exact(targets: &[&Target]) -> Option<BTreeMap<String, Version>> {
    let exact = |target: &&Target| match &target.goal {
        Goal::Version(version) => Some((target.package.to_string(), version.clone())),
        Goal::Latest | Goal::Range(_) => None,
    };
    targets.iter().map(exact).collect()
}

/// The exact version that each target comes to on OLM's whole way.
pub(super) fn resolve(
    engine: &dyn Engine,
    catalogs: &Catalogs,
    request: &Request,
    targets: &[&Target],
) -> Result<BTreeMap<String, Version>, String> {
    let path =
        engine.path(catalogs, request, &BTreeMap::new()).map_err(|error| sentence(&error))?;
    let mut exact = BTreeMap::new();
    for target in targets {
        let package = target.package.as_str();
        let installed = installed_version(request, package);
        let on_the_way = path.hops.iter().flat_map(|hop| &hop.moves);
        let ahead =
            on_the_way.filter(|m| m.package == package).filter_map(|m| m.to_version.clone());
        let mut versions = installed.into_iter().chain(ahead);
        let reached = match &target.goal {
            Goal::Latest => versions.last(),
            Goal::Version(version) => Some(version.clone()),
            Goal::Range(range) => {
                let last = versions.by_ref().filter(|version| range.contains(version)).last();
                if last.is_none() {
                    return Err(format!("`{package}` comes to no version in `{}`", range.as_str()));
                }
                last
            }
        };
        // A Subscription that has installed nothing yet and gets nothing has no version.
        if let Some(version) = reached {
            exact.insert(package.to_owned(), version);
        }
    }
    Ok(exact)
}

pub(super) fn installed_version(request: &Request, package: &str) -> Option<Version> {
    let subscription = request.subscriptions.iter().find(|s| s.package == package)?;
    subscription.installed.as_ref()?.version.clone()
}
