//! The answer for one ClusterExtension.

use std::collections::BTreeSet;

use super::{
    Answer, ClusterCatalog, Edge, Extension, PassedOver, ResolveError, Resolved, Step, Why,
    candidates::{Found, From, barrier, best, rank, winner},
    reason,
};

/// How many names an error lists.
const LISTED_MAX: usize = 8;

/// A bundle with the reason why it may not be chosen, or was not.
type Judged<'a> = (Found<'a>, Option<Why>);

/// What the ClusterExtension does next, with these catalogs.
pub fn resolve(catalogs: &[ClusterCatalog], extension: &Extension) -> Answer {
    let from = match From::binding(extension) {
        Ok(from) => from,
        Err(source) if found(catalogs, extension).next().is_some() => {
            let installed = extension.installed.as_ref();
            let version = installed.map(|installed| installed.version.clone()).unwrap_or_default();
            let package = extension.package.clone();
            let error = ResolveError::InstalledVersion { package, version, source };
            return Answer { outcome: Err(error), passed_over: Vec::new() };
        }
        // Without the package, nobody looks at what is installed.
        Err(_) => None,
    };
    let mut judged: Vec<Judged<'_>> = found(catalogs, extension)
        .map(|found| (found, barrier(extension, from.as_ref(), found.package, found.bundle)))
        .collect();
    let bests = bests(catalogs, extension, &judged);
    let outcome = match winner(&bests) {
        Ok(Some(first)) => chosen(extension, first, &judged),
        Ok(None) => Err(nothing(catalogs, extension, &judged)),
        Err(running) => Err(several(extension, &running)),
    };
    rank_candidates(extension, &bests, &outcome, &mut judged);
    Answer { outcome, passed_over: passed_over(extension, judged) }
}

/// All bundles of the package, catalog by catalog.
fn found<'a>(
    catalogs: &'a [ClusterCatalog],
    extension: &'a Extension,
) -> impl Iterator<Item = Found<'a>> {
    catalogs.iter().flat_map(|catalog| {
        let package = catalog.content.package(&extension.package);
        package.into_iter().flat_map(move |package| {
            package.bundles.iter().map(move |bundle| Found { catalog, package, bundle })
        })
    })
}

/// The first choice of each catalog that has one.
fn bests<'a>(
    catalogs: &'a [ClusterCatalog],
    extension: &Extension,
    judged: &[Judged<'a>],
) -> Vec<Found<'a>> {
    let of = |catalog: &ClusterCatalog| {
        let candidates = judged
            .iter()
            .filter(|(found, why)| why.is_none() && std::ptr::eq(found.catalog, catalog));
        best(candidates.map(|(found, _)| *found), extension.releases)
    };
    catalogs.iter().filter_map(of).collect()
}

fn chosen(
    extension: &Extension,
    first: Found<'_>,
    judged: &[Judged<'_>],
) -> Result<Resolved, ResolveError> {
    let Found { catalog, bundle, .. } = first;
    let version = bundle.version(extension.releases).map_err(|source| {
        ResolveError::BundleVersion { bundle: bundle.name.clone(), source: source.clone() }
    })?;
    if let Some(property) = bundle.dependency.clone() {
        return Err(ResolveError::Dependencies { bundle: bundle.name.clone(), property });
    }
    let same_rank = judged.iter().filter(|(found, why)| {
        why.is_none()
            && std::ptr::eq(found.catalog, catalog)
            && !std::ptr::eq(found.bundle, bundle)
            && rank(found.bundle, bundle, extension.releases).is_eq()
    });
    let same_rank = same_rank.map(|(found, _)| found.bundle.name.clone()).collect();
    let step = match &extension.installed {
        None => Step::Installs,
        Some(installed) if installed.name == bundle.name => Step::Stays,
        Some(_) => Step::Moves,
    };
    let from = From::installed(extension).ok().flatten();
    let edges = from
        .filter(|_| step == Step::Moves)
        .map_or_else(Vec::new, |from| edges(extension, &from, first));
    Ok(Resolved {
        catalog: catalog.name.clone(),
        bundle: bundle.name.clone(),
        version: version.clone(),
        deprecation: bundle.deprecation.clone(),
        step,
        edges,
        same_rank,
    })
}

/// The edges of the asked channels from one bundle to another.
pub(super) fn edges(extension: &Extension, from: &From<'_>, to: Found<'_>) -> Vec<Edge> {
    let entries = to.package.entries(&to.bundle.name, &extension.channels);
    entries.filter_map(|entry| entry.edge(from)).collect()
}

fn several(extension: &Extension, running: &[Found<'_>]) -> ResolveError {
    let mut catalogs: Vec<String> = running.iter().map(|f| f.catalog.name.clone()).collect();
    catalogs.sort();
    ResolveError::SeveralCatalogs { package: extension.package.clone(), catalogs }
}

/// Why there is no candidate: the last hurdle that any bundle came to.
fn nothing(
    catalogs: &[ClusterCatalog],
    extension: &Extension,
    judged: &[Judged<'_>],
) -> ResolveError {
    let package = extension.package.clone();
    if judged.is_empty() {
        let catalogs = catalogs.iter().map(|catalog| catalog.name.clone()).collect();
        return ResolveError::PackageMissing { package, catalogs };
    }
    let mut behind: Vec<&Judged<'_>> = judged.iter().collect();
    behind.sort_by(|(a, _), (b, _)| rank(a.bundle, b.bundle, extension.releases));
    let without_edge = behind.iter().filter(|(_, why)| matches!(why, Some(Why::NoEdge { .. })));
    let wanted: Vec<String> =
        without_edge.map(|(found, _)| found.bundle.name.clone()).take(LISTED_MAX).collect();
    if let (false, Some(installed)) = (wanted.is_empty(), &extension.installed) {
        return ResolveError::NoEdge { installed: installed.name.clone(), wanted };
    }
    let in_channels: Vec<&&Judged<'_>> =
        behind.iter().filter(|(_, why)| !matches!(why, Some(Why::NotInChannels { .. }))).collect();
    if let (Some(constraint), false) = (&extension.constraint, in_channels.is_empty()) {
        let version = |found: &Found<'_>| {
            found.bundle.version(extension.releases).ok().map(ToString::to_string)
        };
        let newest = in_channels.iter().find_map(|(found, _)| version(found));
        let prereleases =
            in_channels.iter().filter(|(_, why)| matches!(why, Some(Why::Prerelease { .. })));
        return ResolveError::ConstraintUnmet {
            package,
            constraint: constraint.as_str().to_owned(),
            newest: newest.unwrap_or_else(|| "without a version".to_owned()),
            prereleases: prereleases
                .filter_map(|(found, _)| version(found))
                .take(LISTED_MAX)
                .collect(),
        };
    }
    let channels: BTreeSet<String> =
        judged.iter().flat_map(|(found, _)| found.package.channels(&found.bundle.name)).collect();
    ResolveError::ChannelsEmpty { package, asked: extension.channels.clone(), channels }
}

/// Gives those that could have been chosen the reason why they were not.
fn rank_candidates(
    extension: &Extension,
    bests: &[Found<'_>],
    outcome: &Result<Resolved, ResolveError>,
    judged: &mut [Judged<'_>],
) {
    let winner = winner(bests).ok().flatten();
    for (found, why) in judged.iter_mut().filter(|(_, why)| why.is_none()) {
        let own = bests.iter().find(|best| std::ptr::eq(best.catalog, found.catalog));
        let Some(own) = own else { continue };
        *why = if std::ptr::eq(own.bundle, found.bundle) {
            match (winner, outcome) {
                (Some(winner), Err(ResolveError::Dependencies { property, .. }))
                    if std::ptr::eq(winner.bundle, found.bundle) =>
                {
                    Some(Why::HasDependencies { property: property.clone() })
                }
                (Some(winner), _) if !std::ptr::eq(winner.bundle, found.bundle) => {
                    Some(beaten(*found, winner))
                }
                (Some(_) | None, _) => None,
            }
        } else {
            Some(reason::within(extension, *found, *own))
        };
    }
}

/// Why another catalog's first choice came before this one.
fn beaten(found: Found<'_>, winner: Found<'_>) -> Why {
    if found.bundle.is_deprecated() && !winner.bundle.is_deprecated() {
        Why::Deprecated { chosen: winner.bundle.name.clone() }
    } else {
        Why::LowerPriority { preferred: winner.catalog.name.clone() }
    }
}

fn passed_over(extension: &Extension, judged: Vec<Judged<'_>>) -> Vec<PassedOver> {
    let passed = judged.into_iter().filter_map(|(found, why)| {
        Some(PassedOver {
            catalog: found.catalog.name.clone(),
            bundle: found.bundle.name.clone(),
            version: found.bundle.version(extension.releases).ok().map(ToString::to_string),
            why: why?,
        })
    });
    passed.collect()
}
