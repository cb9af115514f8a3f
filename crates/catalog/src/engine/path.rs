//! Hop after hop, by asking for the next step until the targets are reached.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wavelift_core::version::Version;

use super::{Move, Next, NoPath, PathError, Reason, Request, ResolveError};

/// No real operator needs more hops; the longest chain in a public catalog has below 200 entries.
const HOPS_MAX: usize = 1000;

/// One InstallPlan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// All that moves in it, sorted by package.
    pub moves: Vec<Move>,
}

/// Why a path ends where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathEnd {
    /// All targets are reached; OLM may have more to offer.
    Target,
    /// OLM has nothing more to offer.
    Stays,
}

/// The hops a namespace takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// In order.
    pub hops: Vec<Hop>,
    /// Why there are no more.
    pub end: PathEnd,
}

// === impl Hop ===

impl Hop {
    /// The names of the CSVs of the InstallPlan.
    pub fn csvs(&self) -> BTreeSet<&str> {
        self.moves.iter().map(|step| step.to.as_str()).collect()
    }
}

pub(super) fn follow(
    next: &mut dyn FnMut(&Request) -> Result<Next, ResolveError>,
    why_not: &dyn Fn(&Request, &str, &Version) -> Option<Reason>,
    request: &Request,
    targets: &BTreeMap<String, Version>,
) -> Result<Path, PathError> {
    let mut at = request.clone();
    let mut hops = Vec::new();
    let mut seen = BTreeSet::new();
    loop {
        let waiting = first_unreached(&at, targets)?;
        if waiting.is_none() && !targets.is_empty() {
            return Ok(Path { hops, end: PathEnd::Target });
        }
        let here: Vec<String> = at.installed_csvs().into_iter().map(str::to_owned).collect();
        if !seen.insert(here) {
            return Err(Box::new(NoPath::Circle { hops: hops.len() }).into());
        }
        if hops.len() == HOPS_MAX {
            return Err(Box::new(NoPath::TooManyHops { max: HOPS_MAX }).into());
        }
        let step = next(&at)
            .map_err(|source| PathError::Resolve { hops: hops.len(), source: Box::new(source) })?;
        match (step, waiting) {
            (Next::Moves(moves), _) => {
                check_overshoot(&moves, targets)?;
                at = at.after(&moves);
                hops.push(Hop { moves });
            }
            (Next::Stays, None) => return Ok(Path { hops, end: PathEnd::Stays }),
            (Next::Stays, Some(mut no_path)) => {
                if let NoPath::Stays { package, target, why, .. } = &mut *no_path {
                    *why = why_not(&at, package, target);
                }
                return Err(no_path.into());
            }
        }
    }
}

/// The first package that is not at its target, as the reason there is if nothing moves any more.
/// Only before the first hop can a package be past its target: later ones are stopped as
/// overshooting.
fn first_unreached(
    at: &Request,
    targets: &BTreeMap<String, Version>,
) -> Result<Option<Box<NoPath>>, Box<NoPath>> {
    let mut unreached = None;
    for (package, target) in targets {
        let subscription = at
            .subscriptions
            .iter()
            .find(|subscription| subscription.package == *package)
            .ok_or_else(|| Box::new(NoPath::NotSubscribed { package: package.clone() }))?;
        let installed = subscription.installed.as_ref();
        let version = installed.and_then(|installed| installed.version.as_ref());
        if let Some(version) = version.filter(|version| version.cmp_precedence(target).is_gt()) {
            return Err(Box::new(NoPath::AlreadyPast {
                package: package.clone(),
                installed: version.clone(),
                target: target.clone(),
            }));
        }
        if unreached.is_none() && !version.is_some_and(|version| version.is_at(target)) {
            unreached = Some(Box::new(NoPath::Stays {
                package: package.clone(),
                installed: installed.map(|installed| installed.csv.clone()),
                target: target.clone(),
                why: None,
            }));
        }
    }
    Ok(unreached)
}

fn check_overshoot(moves: &[Move], targets: &BTreeMap<String, Version>) -> Result<(), Box<NoPath>> {
    for step in moves {
        let Some((target, version)) = targets.get(&step.package).zip(step.to_version.as_ref())
        else {
            continue;
        };
        if version.cmp_precedence(target).is_gt() {
            return Err(Box::new(NoPath::Overshoots {
                package: step.package.clone(),
                target: target.clone(),
                csv: step.to.clone(),
                version: version.clone(),
            }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
