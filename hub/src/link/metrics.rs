//! What the link counts.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// The link's metrics, registered with the registry of the process.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub(super) refusals: IntCounterVec,
    pub(super) sessions: IntGauge,
    pub(super) session_ends: IntCounterVec,
    pub(super) messages: IntCounterVec,
    pub(super) uploads_dropped: IntCounter,
}

impl Metrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters = |name: &str, help: &str, label: &str| {
            IntCounterVec::new(Opts::new(name, help), &[label])
        };
        let metrics = Self {
            refusals: counters(
                "wavelift_link_refusals_total",
                "Connections, sessions and messages of agents that were refused, by kind.",
                "kind",
            )?,
            sessions: IntGauge::new(
                "wavelift_link_sessions",
                "Clusters whose agent has a session with this hub.",
            )?,
            session_ends: counters(
                "wavelift_link_session_ends_total",
                "Sessions that ended, by reason.",
                "reason",
            )?,
            messages: counters(
                "wavelift_link_messages_total",
                "Messages received from agents, by kind.",
                "kind",
            )?,
            uploads_dropped: IntCounter::new(
                "wavelift_link_uploads_dropped_total",
                "Inventories and catalogs that did not come whole.",
            )?,
        };
        registry.register(Box::new(metrics.refusals.clone()))?;
        registry.register(Box::new(metrics.sessions.clone()))?;
        registry.register(Box::new(metrics.session_ends.clone()))?;
        registry.register(Box::new(metrics.messages.clone()))?;
        registry.register(Box::new(metrics.uploads_dropped.clone()))?;
        Ok(metrics)
    }

    /// How many were refused with this kind.
    pub fn refusals(&self, kind: &str) -> u64 {
        self.refusals.with_label_values(&[kind]).get()
    }
}
