//! A fleet on a real catalog: clusters with installed versions spread over its graph.

use std::sync::Arc;

use wavelift_catalog::Catalog;
use wavelift_sim::cluster::{Approval, Operator};

/// The CatalogSource of every simulated cluster.
pub const SOURCE: (&str, &str) = ("openshift-marketplace", "catalog");

/// As many targets as a FleetUpgrade may have.
const PACKAGES_MAX: usize = 32;

/// Why no fleet can be made of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A package that was asked for is not in it.
    #[error("the catalog has no package `{0}`")]
    NoPackage(String),
    /// It has more packages than one campaign may name.
    #[error("the catalog has {packages} packages, a campaign names {max} at most: give --package")]
    TooMany {
        /// How many it has.
        packages: usize,
        /// How many there may be.
        max: usize,
    },
    /// Nothing in it can be installed.
    #[error("no channel of the catalog has a bundle that could be installed")]
    Empty,
}

/// A place in a package's graph where a cluster can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The installed CSV.
    pub csv: String,
}

/// Every place of `packages` (all when none is named), in the order of their names.
pub fn places(catalog: &Catalog, packages: &[String]) -> Result<Vec<Place>, Error> {
    let graph = catalog.graph();
    for package in packages {
        if !graph.packages.contains_key(package.as_str()) {
            return Err(Error::NoPackage(package.clone()));
        }
    }
    let mut places = vec![];
    for (name, package) in &graph.packages {
        let name = name.clone();
        if !packages.is_empty() && !packages.contains(&name) {
            continue;
        }
        for (channel, content) in &package.channels {
            for csv in content.entries.keys() {
                let csv = csv.clone();
                if package.bundles.contains_key(csv.as_str()) {
                    let (package, channel) = (name.clone(), channel.clone());
                    places.push(Place { package, channel, csv });
                }
            }
        }
    }
    let count = self::packages(&places).len();
    if count > PACKAGES_MAX {
        return Err(Error::TooMany { packages: count, max: PACKAGES_MAX });
    }
    if places.is_empty() { Err(Error::Empty) } else { Ok(places) }
}

/// What cluster `index` of `of` has installed: one place, so that all of them are spread as evenly
/// as the number of clusters allows.
pub fn place(places: &[Place], index: usize, of: usize) -> &Place {
    if of >= places.len() {
        &places[index % places.len()]
    } else {
        &places[index * places.len() / of]
    }
}

/// The Subscription of a place, in a namespace of its own.
pub fn operator(place: &Place) -> Operator {
    Operator {
        namespace: "operators-under-test".to_owned(),
        package: place.package.clone(),
        channel: place.channel.clone(),
        source: (SOURCE.0.to_owned(), SOURCE.1.to_owned()),
        installed: Some(place.csv.clone()),
        approval: Approval::Manual,
    }
}

/// The packages that places speak of, each once.
pub fn packages(places: &[Place]) -> Vec<String> {
    let mut names: Vec<String> = places.iter().map(|place| place.package.clone()).collect();
    names.dedup();
    names
}

/// A catalog, ready to be served by many clusters.
pub type Shared = Arc<Catalog>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_catalog;

    #[test]
    fn every_place_is_taken_before_one_is_taken_twice() {
        let catalog = own_catalog::own().unwrap();
        let all = places(&catalog, &[own_catalog::FERRY.to_owned()]).unwrap();
        assert_eq!(all.len(), 4);
        let taken: Vec<&str> = (0..4).map(|i| place(&all, i, 4).csv.as_str()).collect();
        assert_eq!(taken.len(), 4);
        assert_eq!(place(&all, 0, 2).csv, all[0].csv);
        assert_eq!(place(&all, 1, 2).csv, all[2].csv);
        assert_eq!(
            places(&catalog, &["nothing".to_owned()]),
            Err(Error::NoPackage("nothing".to_owned()))
        );
    }
}
