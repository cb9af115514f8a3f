//! A simulated cluster: a Kubernetes API server in memory and what runs on it.

pub mod apiserver;
