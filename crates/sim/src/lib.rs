//! A simulated cluster: a Kubernetes API server in memory and what runs on it.

pub mod apiserver;
pub mod cluster;
mod machine;
pub mod olm_v0;
#[cfg(test)]
mod replay;
pub mod workload;
