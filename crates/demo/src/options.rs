//! What a demo is made of.

use std::path::PathBuf;

/// The pace at which the default demo takes about two minutes: simulated seconds a real second.
pub const BASE_FACTOR: f64 = 60.0;
/// The most clusters that one process is asked to hold.
pub const CLUSTERS_MAX: usize = 1_000;

/// What to show.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many clusters.
    pub clusters: usize,
    /// What the fleet and its faults are made from.
    pub seed: u64,
    /// Times the default pace.
    pub speed: f64,
    /// What the clusters run.
    pub source: Source,
    /// What happens when the campaign has ended.
    pub after_end: AfterEnd,
    /// Where the hub's page and API listen; port 0 = any.
    pub http: std::net::SocketAddr,
}

/// What the clusters run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The demo's own five operators, with faults from the seed.
    Own,
    /// A real catalog; the clusters have versions spread over its graph, and no faults.
    Catalog {
        /// Directory or file of FBC.
        path: PathBuf,
        /// Which packages; none = all of them.
        packages: Vec<String>,
    },
}

/// What happens when the campaign has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterEnd {
    /// Everything is stopped.
    Stop,
    /// The API and the page stay up until a signal comes.
    Hold,
}

impl Options {
    /// Simulated seconds a real second.
    pub fn factor(&self) -> f64 {
        BASE_FACTOR * self.speed
    }
}
