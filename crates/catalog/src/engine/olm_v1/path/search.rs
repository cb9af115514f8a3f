//! Breadth first over everything that can be reached by pinning one version after the other.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use wavelift_core::{constraint::Constraint, release::VersionRelease, version::Version};

use super::{Hop, NoPath, Path, Target};
use crate::engine::olm_v1::{
    ClusterCatalog, Edge, Extension, UpgradePolicy,
    candidates::{Found, From, barrier, best, rank, winner},
    resolve::edges,
};

/// How many times a bundle is held against another one. The largest real package has a few hundred
/// bundles; a hostile one must not hold a hub up.
pub(super) const LOOKS_MAX: usize = 1_000_000;

/// A bundle with its version, as it is told apart: name, and version and release as shown.
type Key = (String, String);

/// Why a pin does not lead to a bundle though an edge does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blocked {
    /// OLM refuses it for this property.
    Dependencies(String),
    /// These catalogs have the version at the same priority.
    SeveralCatalogs(Vec<String>),
    /// OLM takes this other bundle of the same version.
    Shadowed(String),
}

#[derive(Debug)]
struct Node<'a> {
    at: Option<From<'a>>,
    /// Nothing for the start.
    came: Option<(usize, Found<'a>, Vec<Edge>)>,
}

/// Everything that can be reached.
#[derive(Debug)]
pub(super) struct Reached<'a> {
    pub(super) catalogs: &'a [ClusterCatalog],
    pub(super) extension: &'a Extension,
    nodes: Vec<Node<'a>>,
    blocked: BTreeMap<Key, Blocked>,
}

/// What one pin does.
enum Pinned<'a> {
    To(Found<'a>, &'a VersionRelease),
    Blocked(Key, Blocked),
}

/// How many looks are left.
struct Looks {
    left: usize,
    max: usize,
}

impl Looks {
    fn take(&mut self) -> Result<(), NoPath> {
        self.left = self.left.checked_sub(1).ok_or(NoPath::TooHard { looks: self.max })?;
        Ok(())
    }
}

/// Everything that can be reached within so many looks.
pub(super) fn all<'a>(
    catalogs: &'a [ClusterCatalog],
    extension: &'a Extension,
    start: Option<From<'a>>,
    looks_max: usize,
) -> Result<Reached<'a>, NoPath> {
    let mut reached = Reached { catalogs, extension, nodes: Vec::new(), blocked: BTreeMap::new() };
    let mut seen = BTreeSet::new();
    seen.extend(start.as_ref().map(key_of));
    reached.nodes.push(Node { at: start, came: None });
    let mut looks = Looks { left: looks_max, max: looks_max };
    let mut next = 0;
    while let Some(at) = reached.nodes.get(next).map(|node| node.at.clone()) {
        // Where edges do not bind, one pin leads anywhere.
        if next > 0 && !reached.is_bound() {
            break;
        }
        for pinned in reached.pins(at.as_ref(), &mut looks)? {
            match pinned {
                Pinned::To(found, version) => {
                    let to = From { name: &found.bundle.name, version: version.clone() };
                    if seen.insert(key_of(&to)) {
                        let binding = at.as_ref().filter(|_| reached.is_bound());
                        let edges = binding.map_or_else(Vec::new, |at| edges(extension, at, found));
                        let came = Some((next, found, edges));
                        reached.nodes.push(Node { at: Some(to), came });
                    }
                }
                Pinned::Blocked(key, why) => {
                    reached.blocked.entry(key).or_insert(why);
                }
            }
        }
        next += 1;
    }
    Ok(reached)
}

fn key_of(at: &From<'_>) -> Key {
    (at.name.to_owned(), at.version.to_string())
}

// === impl Reached ===

impl<'a> Reached<'a> {
    pub(super) fn is_bound(&self) -> bool {
        self.extension.policy == UpgradePolicy::CatalogProvided
    }

    /// What each version does that may be pinned, the preferred one first.
    fn pins(&self, at: Option<&From<'_>>, looks: &mut Looks) -> Result<Vec<Pinned<'a>>, NoPath> {
        let binding = at.filter(|_| self.is_bound());
        let mut by_version: BTreeMap<Version, Vec<(Found<'a>, &'a VersionRelease)>> =
            BTreeMap::new();
        for (found, version) in self.bundles() {
            looks.take()?;
            if barrier(self.extension, binding, found.package, found.bundle).is_none() {
                let group = by_version.entry(version.version.without_build()).or_default();
                group.push((found, version));
            }
        }
        let mut pins: Vec<Pinned<'a>> =
            by_version.into_values().flat_map(|group| self.pin(&group)).collect();
        pins.sort_by(|a, b| match (a, b) {
            (Pinned::To(a, _), Pinned::To(b, _)) => {
                rank(a.bundle, b.bundle, self.extension.releases)
            }
            (Pinned::To(..), Pinned::Blocked(..)) => Ordering::Less,
            (Pinned::Blocked(..), Pinned::To(..)) => Ordering::Greater,
            (Pinned::Blocked(..), Pinned::Blocked(..)) => Ordering::Equal,
        });
        Ok(pins)
    }

    /// What a pin does whose version only these candidates have.
    fn pin(&self, group: &[(Found<'a>, &'a VersionRelease)]) -> Vec<Pinned<'a>> {
        let of = |catalog: &ClusterCatalog| {
            let own = group.iter().filter(|(f, _)| std::ptr::eq(f.catalog, catalog));
            best(own.map(|(found, _)| *found), self.extension.releases)
        };
        let bests: Vec<Found<'a>> = self.catalogs.iter().filter_map(of).collect();
        let first = match winner(&bests) {
            Ok(Some(first)) => first,
            Ok(None) => return Vec::new(),
            Err(running) => {
                let mut names: Vec<String> =
                    running.iter().map(|found| found.catalog.name.clone()).collect();
                names.sort();
                let several = |(found, version): &(Found<'a>, &'a VersionRelease)| {
                    let key = (found.bundle.name.clone(), version.to_string());
                    Pinned::Blocked(key, Blocked::SeveralCatalogs(names.clone()))
                };
                return group.iter().map(several).collect();
            }
        };
        let pins = group.iter().filter_map(|(found, version)| {
            let key = || (found.bundle.name.clone(), version.to_string());
            match &first.bundle.dependency {
                _ if found.bundle.name != first.bundle.name => {
                    let shadowed = Blocked::Shadowed(first.bundle.name.clone());
                    Some(Pinned::Blocked(key(), shadowed))
                }
                // The same bundle of a catalog of lower priority is no other bundle.
                _ if !std::ptr::eq(found.bundle, first.bundle) => None,
                Some(property) => {
                    Some(Pinned::Blocked(key(), Blocked::Dependencies(property.clone())))
                }
                None => Some(Pinned::To(first, version)),
            }
        });
        pins.collect()
    }

    /// All bundles of the package that have a version, catalog by catalog.
    pub(super) fn bundles(&self) -> impl Iterator<Item = (Found<'a>, &'a VersionRelease)> {
        let (package, releases) = (self.extension.package.as_str(), self.extension.releases);
        self.catalogs.iter().flat_map(move |catalog| {
            let package = catalog.content.package(package);
            package.into_iter().flat_map(move |package| {
                package.bundles.iter().filter_map(move |bundle| {
                    let version = bundle.version(releases).ok()?;
                    Some((Found { catalog, package, bundle }, version))
                })
            })
        })
    }

    pub(super) fn start(&self) -> Option<&From<'a>> {
        self.nodes.first()?.at.as_ref()
    }

    pub(super) fn blocked(&self, name: &str, version: &VersionRelease) -> Option<&Blocked> {
        self.blocked.get(&(name.to_owned(), version.to_string()))
    }

    /// The node that the target comes to: for a version the first one that was reached, for a
    /// constraint the one that OLM prefers, and of equal ones the first.
    pub(super) fn goal(&self, target: &Target) -> Option<usize> {
        let meeting =
            self.nodes.iter().enumerate().filter(|(_, node)| {
                node.at.as_ref().is_some_and(|at| target.is_met_by(&at.version))
            });
        let by_preference = |a: &Node<'a>, b: &Node<'a>| {
            let versions = a.at.as_ref().zip(b.at.as_ref());
            let version =
                versions.map_or(Ordering::Equal, |(a, b)| b.version.cmp_precedence(&a.version));
            self.is_deprecated(a).cmp(&self.is_deprecated(b)).then(version)
        };
        match target {
            Target::Version(_) => meeting.map(|(index, _)| index).next(),
            Target::Within(_) => {
                meeting.min_by(|(_, a), (_, b)| by_preference(a, b)).map(|(index, _)| index)
            }
        }
    }

    /// Whether a node's bundle is deprecated; the installed one is looked for in the catalogs.
    fn is_deprecated(&self, node: &Node<'a>) -> bool {
        let came = node.came.as_ref().map(|(_, found, _)| *found);
        let found = came.or_else(|| {
            let at = node.at.as_ref()?;
            self.bundles().map(|(found, _)| found).find(|found| found.bundle.name == at.name)
        });
        found.is_some_and(|found| found.bundle.is_deprecated())
    }

    pub(super) fn path_to(&self, goal: usize) -> Path {
        let mut hops = Vec::new();
        let mut next = self.nodes.get(goal);
        while let Some(Node { at: Some(at), came: Some((parent, found, edges)) }) = next {
            let before = self.nodes.get(*parent);
            let from = before.and_then(|node| node.at.as_ref()).map(|at| at.name.to_owned());
            hops.push(Hop {
                from,
                to: at.name.to_owned(),
                to_version: at.version.to_string(),
                pin: Constraint::exactly(&at.version.version).as_str().to_owned(),
                catalog: found.catalog.name.clone(),
                edges: edges.clone(),
                deprecation: found.bundle.deprecation.clone(),
            });
            next = before;
        }
        hops.reverse();
        Path { hops }
    }
}
