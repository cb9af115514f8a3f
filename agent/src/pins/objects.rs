//! A pinned catalog as it stands on the cluster.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wavelift_api::labels;
use wavelift_catalog::pin::{Kept, PRIORITY};
use wavelift_core::plan::Step;

use crate::objects::{self, CatalogSource, Subscription};

/// How the names of our CatalogSources begin.
const PREFIX: &str = "wavelift-pinned-";

/// What is pinned, for which step of which upgrade: the annotation of our CatalogSource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pin {
    /// The upgrade in whose name this is done, `<namespace>/<name>`.
    pub holder: String,
    /// The CSVs of the step.
    pub csvs: Vec<String>,
    /// Digest of the catalog that is served.
    pub digest: String,
    /// What it keeps.
    pub kept: Vec<Kept>,
}

// === impl Pin ===

impl Pin {
    /// Whether it is there for this step.
    pub fn is_for(&self, holder: &str, step: &Step) -> bool {
        let csvs = self.csvs.iter().map(String::as_str);
        self.holder == holder && csvs.eq(step.csv_names())
    }

    /// The CatalogSource's name. What is pinned decides it: OLM remembers for half an hour what a
    /// CatalogSource of a name served.
    pub fn source_name(&self) -> String {
        let hash = Sha256::digest(self.to_json().as_bytes());
        format!("{PREFIX}{}", hex::encode(&hash[..5]))
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and lists of them are JSON")
    }
}

/// The CatalogSource of a pin.
pub fn manifest(pin: &Pin, namespace: &str, address: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {
            "name": pin.source_name(),
            "namespace": namespace,
            "labels": {labels::PINNED_CATALOG: "true"},
            "annotations": {labels::PIN: pin.to_json()},
        },
        "spec": {
            "sourceType": "grpc",
            "address": address,
            "displayName": "Pinned by Wavelift for the duration of a step",
            "publisher": "Wavelift",
            "priority": PRIORITY,
        },
    })
}

/// Whether a CatalogSource was made by an agent.
pub fn is_ours(source: &CatalogSource) -> bool {
    let labels = source.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(labels::PINNED_CATALOG))
        && objects::name(source).starts_with(PREFIX)
}

/// What a CatalogSource of ours pins.
pub fn pin_of(source: &CatalogSource) -> Option<Pin> {
    let text = objects::annotation(source, labels::PIN).filter(|_| is_ours(source))?;
    serde_json::from_str(text).ok()
}

/// Whether what a Subscription reads by itself is written down on it.
pub fn is_pinned(subscription: &Subscription) -> bool {
    objects::annotation(subscription, labels::SOURCE_BEFORE).is_some()
}

/// Whether a Subscription reads some CatalogSource of ours, be that there or not.
pub fn is_ours_by_name(subscription: &Subscription) -> bool {
    subscription.spec.source.starts_with(PREFIX)
        && subscription.spec.source_namespace == objects::namespace(subscription)
}

/// Whether a Subscription reads this CatalogSource of ours.
pub fn points_at(subscription: &Subscription, name: &str) -> bool {
    subscription.spec.source == name
        && subscription.spec.source_namespace == objects::namespace(subscription)
}
