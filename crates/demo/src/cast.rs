//! What is to be brought to life: a catalog, the clusters on it and the campaign over them.

use std::{collections::BTreeMap, sync::Arc};

use wavelift_api::{FleetUpgrade, shared::OperatorTarget};
use wavelift_catalog::Catalog;
use wavelift_sim::cluster::{Approval, Operator};

use crate::{
    drive,
    fleet::Blueprint,
    options::{Options, Source},
    own_catalog::{self, CHANNEL, NAMESPACES, NEWEST, csv},
    scenario::{Fault, Ring, Scenario},
    spread,
};

/// What is to be brought to life.
#[derive(Debug, Clone)]
pub struct Cast {
    /// What every cluster's catalog serves.
    pub catalog: Arc<Catalog>,
    /// The clusters.
    pub blueprints: Vec<Blueprint>,
    /// The campaign over them.
    pub campaign: FleetUpgrade,
    /// Package and channel by cluster, for real catalogs.
    pub channels: BTreeMap<String, (String, String)>,
}

/// Why there is nothing to bring to life.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog.
    #[error("cannot use the catalog")]
    Catalog(#[from] own_catalog::Error),
    /// No fleet can be made of it.
    #[error("cannot spread clusters over the catalog")]
    Spread(#[from] spread::Error),
}

impl Cast {
    /// Everything that `options` ask for.
    pub fn of(options: &Options) -> Result<Self, Error> {
        match &options.source {
            Source::Own => own(options),
            Source::Catalog { path, packages } => {
                let catalog = own_catalog::read(path)?;
                real(options, catalog, packages)
            }
        }
    }
}

/// The demo's own operators, with the faults of the seed.
fn own(options: &Options) -> Result<Cast, Error> {
    let scenario = Scenario::new(options.seed, options.clusters);
    let sizes: Vec<(Ring, usize, usize)> = Ring::ALL
        .into_iter()
        .map(|ring| (ring, scenario.size(ring), scenario.tolerated(ring)))
        .collect();
    let targets = NEWEST
        .iter()
        .map(|(package, version)| OperatorTarget {
            package: (*package).to_owned(),
            version: Some((*version).to_owned()),
            ..OperatorTarget::default()
        })
        .collect();
    let blueprints = scenario
        .clusters
        .iter()
        .enumerate()
        .map(|(index, script)| Blueprint {
            name: script.name.clone(),
            labels: labels(script.ring, &script.region),
            platform: script.platform.clone(),
            operators: NAMESPACES
                .iter()
                .filter_map(|(package, namespace)| {
                    let version = script.installed.get(*package)?;
                    Some(Operator {
                        namespace: (*namespace).to_owned(),
                        package: (*package).to_owned(),
                        channel: CHANNEL.to_owned(),
                        source: (spread::SOURCE.0.to_owned(), spread::SOURCE.1.to_owned()),
                        installed: Some(csv(package, version)),
                        approval: Approval::Manual,
                    })
                })
                .collect(),
            rollout_seconds: script
                .rollout_seconds
                .iter()
                .map(|(package, seconds)| (package.clone(), *seconds))
                .collect(),
            never: match &script.fault {
                Some(Fault::NeverAvailable { package }) => NEWEST
                    .iter()
                    .filter(|(newest, _)| newest == package)
                    .map(|(package, version)| csv(package, version))
                    .collect(),
                Some(Fault::Offline | Fault::Slow | Fault::NotUpgradeable { .. }) | None => vec![],
            },
            fault: script.fault.clone(),
            seed: options.seed.wrapping_mul(1_000_003).wrapping_add(index as u64),
        })
        .collect();
    Ok(Cast {
        catalog: own_catalog::own()?,
        blueprints,
        campaign: drive::object(targets, &sizes, options.factor()),
        channels: BTreeMap::new(),
    })
}

/// A real catalog: every cluster somewhere on its graph, no faults.
fn real(options: &Options, catalog: Arc<Catalog>, packages: &[String]) -> Result<Cast, Error> {
    let places = spread::places(&catalog, packages)?;
    let mut channels = BTreeMap::new();
    let mut blueprints = vec![];
    let shape = Scenario::new(options.seed, options.clusters);
    for (index, script) in shape.clusters.iter().enumerate() {
        let place = spread::place(&places, index, options.clusters);
        channels.insert(script.name.clone(), (place.package.clone(), place.channel.clone()));
        blueprints.push(Blueprint {
            name: script.name.clone(),
            labels: labels(script.ring, &script.region),
            platform: script.platform.clone(),
            operators: vec![spread::operator(place)],
            rollout_seconds: vec![],
            never: vec![],
            fault: None,
            seed: options.seed.wrapping_mul(1_000_003).wrapping_add(index as u64),
        });
    }
    let targets = spread::packages(&places)
        .into_iter()
        .map(|package| OperatorTarget { package, ..OperatorTarget::default() })
        .collect();
    let sizes: Vec<(Ring, usize, usize)> =
        Ring::ALL.into_iter().map(|ring| (ring, shape.size(ring), 0)).collect();
    Ok(Cast {
        catalog,
        blueprints,
        campaign: drive::object(targets, &sizes, options.factor()),
        channels,
    })
}

fn labels(ring: Ring, region: &str) -> Vec<(String, String)> {
    vec![
        ("fleet".to_owned(), "demo".to_owned()),
        ("ring".to_owned(), ring.as_str().to_owned()),
        ("region".to_owned(), region.to_owned()),
    ]
}
