//! The pinned catalog that the agent serves while a step needs one.
//!
//! Where OLM v0 would go past the step, or take something else along, some Subscriptions of the
//! namespace read for the duration of the step a CatalogSource of ours, behind which the agent serves
//! of the cluster's own catalogs only what leads there. What is needed to go on, or to put everything
//! back, is written on the cluster: what is pinned on the CatalogSource, what was there before on
//! each Subscription, in the very write that changes it. So an agent that is killed at any moment
//! finds all of it again.

mod content;
mod objects;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

pub use self::{
    content::{Content, Pins, Registry},
    objects::{Pin, is_ours, is_ours_by_name, is_pinned, manifest, pin_of, points_at},
};

/// Where pinned catalogs are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// Where the agent listens, while a catalog is pinned.
    pub listen: SocketAddr,
    /// Host and port as OLM reaches that.
    pub address: String,
}
