//! What an agent sees on its cluster, as far as planning needs it.
//!
//! The agent collects it, the hub plans from it. Nothing here is judged: a value that could not be
//! read is `None` or named in `unread`, never guessed.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ids::Namespace;

/// One cluster's operators, catalogs and versions at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Inventory {
    /// The API server's version as `/version` gives it, e.g. `v1.33.4`.
    pub kube_version: Option<String>,
    /// The OpenShift version: the newest completed entry of the ClusterVersion's history.
    pub platform_version: Option<String>,
    /// Every namespace that holds a Subscription, by name.
    pub namespaces: Vec<NamespaceInventory>,
    /// Every CatalogSource, by namespace and name.
    pub catalogs: Vec<CatalogSource>,
    /// What could not be read, as short phrases for people.
    pub unread: Vec<String>,
}

/// The OLM v0 objects of one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceInventory {
    /// The namespace.
    pub namespace: Namespace,
    /// How many OperatorGroups it holds; exactly one is right.
    pub operator_groups: u32,
    /// True when its OperatorGroup shuts out the global catalogs.
    #[serde(default)]
    pub global_catalogs_excluded: bool,
    /// Its Subscriptions, by name.
    pub subscriptions: Vec<Subscription>,
    /// Its ClusterServiceVersions but for copied ones, by name.
    pub csvs: Vec<Csv>,
}

/// One Subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subscription {
    /// metadata.name
    pub name: String,
    /// spec.name
    pub package: String,
    /// spec.channel, empty when none is given.
    pub channel: String,
    /// spec.source
    pub source: String,
    /// spec.sourceNamespace
    pub source_namespace: String,
    /// spec.startingCSV
    pub starting_csv: Option<String>,
    /// spec.installPlanApproval
    pub approval: String,
    /// status.installedCSV
    pub installed_csv: Option<String>,
    /// status.currentCSV
    pub current_csv: Option<String>,
    /// status.state
    pub state: String,
}

/// One ClusterServiceVersion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Csv {
    /// metadata.name
    pub name: String,
    /// spec.version
    pub version: String,
    /// status.phase
    pub phase: String,
    /// status.reason
    pub reason: String,
    /// The JSON value of annotation `operatorframework.io/properties`, when there is one.
    pub properties: Option<String>,
}

/// One CatalogSource and, when the agent could read it, the digest of what it serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSource {
    /// metadata.namespace
    pub namespace: String,
    /// metadata.name
    pub name: String,
    /// spec.priority
    pub priority: i32,
    /// status.connectionState.lastObservedState
    pub connection_state: Option<String>,
    /// Digest of the canonical graph form, `sha256:<hex>`.
    pub digest: Option<String>,
    /// Digest of the table of what the catalog holds beside its graph, `sha256:<hex>`. Absent where
    /// the agent is too old to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
}

impl Inventory {
    /// Brings the lists into their order, so that equal clusters have equal digests.
    pub fn sort(&mut self) {
        self.namespaces.sort_by(|a, b| a.namespace.cmp(&b.namespace));
        for namespace in &mut self.namespaces {
            namespace.subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
            namespace.csvs.sort_by(|a, b| a.name.cmp(&b.name));
        }
        self.catalogs.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        self.unread.sort();
    }

    /// SHA-256 of the JSON form, `sha256:<hex>`; call [`Self::sort`] first.
    pub fn digest(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("sha256:{}", hex::encode(Sha256::digest(json)))
    }
}
