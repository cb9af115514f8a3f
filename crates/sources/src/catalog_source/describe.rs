//! What a list of bundles leaves out and the registry tells of one bundle at a time.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use wavelift_catalog::json::Json;

use super::{CALLS_AT_ONCE, CatalogSource, Served};

/// Bundles that are asked about.
const BUNDLES_MAX: usize = 2_000;

// === impl CatalogSource ===

impl CatalogSource {
    /// Asks for the least Kubernetes version of each bundle of these packages that came without its
    /// description. What can't be had stays unknown. May be given up at any moment: what came until
    /// then stays.
    pub async fn describe(&self, served: &mut Served, packages: &BTreeSet<String>) {
        let mut channels: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for channel in &served.fbc.channels {
            for entry in &channel.entries {
                channels.insert((&channel.package, &entry.name), &channel.name);
            }
        }
        let wanted: Vec<(usize, String, String, String)> = served
            .fbc
            .bundles
            .iter()
            .enumerate()
            .filter(|(_, bundle)| packages.contains(&bundle.package))
            .filter(|(_, bundle)| {
                let left_out = served.left_out.get(&bundle.package);
                left_out.is_some_and(|names| names.contains(&bundle.name))
            })
            .filter_map(|(at, bundle)| {
                let channel = *channels.get(&(bundle.package.as_str(), bundle.name.as_str()))?;
                Some((at, bundle.package.clone(), channel.to_owned(), bundle.name.clone()))
            })
            .take(BUNDLES_MAX)
            .collect();
        let mut answers = stream::iter(wanted)
            .map(|(at, package, channel, name)| async move {
                (at, self.bundle(&package, &channel, &name).await)
            })
            .buffer_unordered(CALLS_AT_ONCE);
        while let Some((at, answer)) = answers.next().await {
            match answer {
                Ok(content) => {
                    let described = content.csv.as_ref().map(description);
                    if let (Some(described), Some(bundle)) =
                        (described, served.fbc.bundles.get_mut(at))
                    {
                        bundle.csv_metadata.push(described);
                    }
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(address = self.address, error, "a bundle is not described");
                }
            }
        }
    }
}

/// What counts of a description, as `olm.csv.metadata` has it. Registries make the CSV up from that.
fn description(csv: &Value) -> Json {
    match csv.pointer("/spec/minKubeVersion").and_then(Value::as_str) {
        Some(version) => Json::from(&json!({ "minKubeVersion": version })),
        None => Json::from(&json!({})),
    }
}
