//! The agent of one managed cluster: sees what is installed, carries out what it was given, and
//! keeps going when its hub is gone.
//!
//! Everything it decides rests on two things that outlive it: what the cluster shows, and the
//! local ClusterUpgrades. It can be killed at any moment.

mod agent;
pub mod apis;
pub mod catalogs;
pub mod checks;
pub mod client;
pub mod config;
pub mod drivers;
pub mod inventory;
pub mod journal;
pub mod link;
pub mod metrics;
pub mod mirror;
pub mod objects;
pub mod pins;
mod query;
pub mod rights;
pub mod upgrade;
mod wishes;

#[cfg(test)]
mod tests;

pub use self::agent::{AgentOptions, Error, HubOptions, Timings, run};
