//! Which bundles may be chosen, and which of them comes first.

use std::cmp::Ordering;

use wavelift_core::{
    constraint::Fit,
    release::{self, VersionRelease},
};

use super::{
    ClusterCatalog, Extension, ReleaseSource, UpgradePolicy, Why,
    content::{Bundle, Package},
};

/// The bundle that edges start from.
#[derive(Debug, Clone)]
pub(super) struct From<'a> {
    pub(super) name: &'a str,
    pub(super) version: VersionRelease,
}

/// A bundle in its catalog.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) catalog: &'a ClusterCatalog,
    pub(super) package: &'a Package,
    pub(super) bundle: &'a Bundle,
}

// === impl From ===

impl<'a> From<'a> {
    /// What is installed; nothing also where edges do not bind.
    pub(super) fn binding(extension: &'a Extension) -> Result<Option<Self>, release::Error> {
        match (&extension.installed, extension.policy) {
            (None, _) | (_, UpgradePolicy::SelfCertified) => Ok(None),
            (Some(_), UpgradePolicy::CatalogProvided) => Self::installed(extension),
        }
    }

    /// What is installed.
    pub(super) fn installed(extension: &'a Extension) -> Result<Option<Self>, release::Error> {
        let Some(installed) = &extension.installed else { return Ok(None) };
        let version = match &installed.release {
            Some(release) => VersionRelease::parse_explicit(&installed.version, release)?,
            None => VersionRelease::parse_legacy(&installed.version)?,
        };
        Ok(Some(Self { name: &installed.name, version }))
    }
}

/// Why a bundle may not be chosen, whatever else there is; nothing if it may.
pub(super) fn barrier(
    extension: &Extension,
    from: Option<&From<'_>>,
    package: &Package,
    bundle: &Bundle,
) -> Option<Why> {
    let channels = &extension.channels;
    if !channels.is_empty() && package.entries(&bundle.name, channels).next().is_none() {
        return Some(Why::NotInChannels { channels: package.channels(&bundle.name) });
    }
    let version = bundle.version(extension.releases);
    if let Some(constraint) = &extension.constraint {
        let text = || constraint.as_str().to_owned();
        match version.map(|version| constraint.fit(&version.version)) {
            Ok(Fit::Fits) => {}
            Ok(Fit::OnlyAsPrerelease) => return Some(Why::Prerelease { constraint: text() }),
            Ok(Fit::DoesNot) => return Some(Why::Constraint { constraint: text() }),
            Err(bad) => return Some(Why::NoVersion { reason: bad.to_string() }),
        }
    }
    let from = from?;
    let is_same = version.is_ok_and(|version| version.cmp_precedence(&from.version).is_eq());
    if is_same || package.entries(&bundle.name, channels).any(|entry| entry.follows(from)) {
        return None;
    }
    Some(Why::NoEdge { installed: from.name.to_owned() })
}

/// OLM's order within a catalog, the preferred bundle first: deprecated ones last, then the highest
/// version first, those without a version last.
pub(super) fn rank(a: &Bundle, b: &Bundle, releases: ReleaseSource) -> Ordering {
    a.is_deprecated().cmp(&b.is_deprecated()).then_with(|| {
        match (a.version(releases), b.version(releases)) {
            (Ok(a), Ok(b)) => b.cmp_precedence(a),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => Ordering::Equal,
        }
    })
}

/// The preferred one of a catalog's candidates; of equal ones the first.
pub(super) fn best<'a>(
    candidates: impl IntoIterator<Item = Found<'a>>,
    releases: ReleaseSource,
) -> Option<Found<'a>> {
    candidates.into_iter().min_by(|a, b| rank(a.bundle, b.bundle, releases))
}

/// The one of the catalogs' best bundles that wins. If two tie, all that are in the running.
pub(super) fn winner<'a>(bests: &[Found<'a>]) -> Result<Option<Found<'a>>, Vec<Found<'a>>> {
    let some_last = bests.iter().any(|found| !found.bundle.is_deprecated());
    let running = bests.iter().filter(|found| !(some_last && found.bundle.is_deprecated()));
    let mut running: Vec<Found<'a>> = running.copied().collect();
    running.sort_by_key(|found| std::cmp::Reverse(found.catalog.priority));
    match running.as_slice() {
        [] => Ok(None),
        [first] => Ok(Some(*first)),
        [first, second, ..] if first.catalog.priority != second.catalog.priority => {
            Ok(Some(*first))
        }
        _ => Err(running),
    }
}
