//! What the agent's end of the link counts.

use jiff::Timestamp;
use prometheus::{Gauge, IntCounterVec, Opts, Registry};

/// The link's metrics, registered with the registry of the process.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub(super) last_contact: Gauge,
    pub(super) connects: IntCounterVec,
    pub(super) dropped: IntCounterVec,
}

impl Metrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters = |name: &str, help: &str, label: &str| {
            IntCounterVec::new(Opts::new(name, help), &[label])
        };
        let metrics = Self {
            last_contact: Gauge::new(
                "wavelift_agent_hub_last_contact_timestamp_seconds",
                "When the hub was last heard from, in seconds since 1970.",
            )?,
            connects: counters(
                "wavelift_agent_link_connects_total",
                "Tries to open a session with the hub, by result: ok, or the kind of failure.",
                "result",
            )?,
            dropped: counters(
                "wavelift_agent_link_dropped_total",
                "Messages that were neither sent nor obeyed, by kind.",
                "kind",
            )?,
        };
        registry.register(Box::new(metrics.last_contact.clone()))?;
        registry.register(Box::new(metrics.connects.clone()))?;
        registry.register(Box::new(metrics.dropped.clone()))?;
        Ok(metrics)
    }

    pub(super) fn heard(&self) {
        // The precision of f64 is microseconds until the year 2200.
        #[expect(clippy::cast_precision_loss, reason = "a metric's value is f64")]
        self.last_contact.set(Timestamp::now().as_millisecond() as f64 / 1_000.0);
    }
}
