//! A whole fleet in one process: a hub, simulated clusters and their agents over real mutual TLS,
//! and one campaign from Preview to its end.

pub mod own_catalog;
pub mod scenario;
