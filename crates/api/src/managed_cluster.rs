//! The part of OCM's ManagedCluster that we read. We never install its CRD.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the hub's admin says about a cluster.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    plural = "managedclusters",
    status = "ManagedClusterStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Whether the hub takes the cluster in.
    #[serde(default)]
    pub hub_accepts_client: bool,
}

/// What is known of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterStatus {
    /// `HubAcceptedManagedCluster`, `ManagedClusterJoined`, `ManagedClusterConditionAvailable`.
    pub conditions: Vec<Condition>,
    /// Claims of the cluster about itself.
    pub cluster_claims: Vec<ClusterClaim>,
    /// The cluster's versions.
    pub version: ManagedClusterVersion,
}

/// A claim, e.g. `version.openshift.io`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterClaim {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The cluster's versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterVersion {
    /// Kubernetes version.
    pub kubernetes: String,
}
