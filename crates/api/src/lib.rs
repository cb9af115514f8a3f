//! The objects that people and controllers see: FleetUpgrade and ClusterUpgrade, `wavelift.io/v1alpha1`.
//!
//! A field is here only if code honours it. Every list and string has a limit, so that the rules in
//! the schema have a bounded cost and no object outgrows etcd. [`crds`] gives the definitions that
//! are generated into the chart.

#![expect(unreachable_pub, reason = "the schema derive copies the structs into private modules")]

pub mod cluster_upgrade;
pub mod convert;
pub mod fleet_upgrade;
pub mod labels;
pub mod live;
pub mod managed_cluster;
pub mod shared;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use cluster_upgrade::{ClusterUpgrade, ClusterUpgradeSpec, ClusterUpgradeStatus};
pub use fleet_upgrade::{FleetUpgrade, FleetUpgradeSpec, FleetUpgradeStatus};

/// The API group.
pub const GROUP: &str = "wavelift.io";
/// The only version so far.
pub const VERSION: &str = "v1alpha1";

/// Every definition of ours, as it is installed.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![FleetUpgrade::crd(), ClusterUpgrade::crd()]
}

#[cfg(test)]
mod tests;
