//! Metrics without globals: one registry a process (or a test), handed down like anything else.
//!
//! Families carry their number of labels in their type, so a wrong number of values does not
//! compile. Names are written out in full where they are registered (`"wavelift_..."`): a test
//! compares them with `docs/metrics.md`. Label values come from enums or are bounded otherwise.

use prometheus::{
    Encoder as _, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
    core::{Collector, MetricVec, MetricVecBuilder},
};

/// What every name begins with.
const PREFIX: &str = "wavelift_";

/// Why a metric could not be registered or written out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name breaks the rules for names.
    #[error("metric name `{0}` must begin with `wavelift_` and use lower case, digits and `_`")]
    Name(String),
    /// The registry refused it.
    #[error("failed to register metric `{name}`")]
    Register {
        /// The metric.
        name: String,
        /// Why.
        #[source]
        source: Box<prometheus::Error>,
    },
    /// Writing the text form failed.
    #[error("failed to encode the metrics")]
    Encode(#[source] Box<prometheus::Error>),
}

/// A registry. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    registry: Registry,
}

/// A metric with `N` labels.
pub struct Family<B: MetricVecBuilder, const N: usize>(MetricVec<B>);

/// Counters with `N` labels.
pub type Counters<const N: usize> = Family<<IntCounterVec as Inner>::Builder, N>;
/// Gauges with `N` labels.
pub type Gauges<const N: usize> = Family<<IntGaugeVec as Inner>::Builder, N>;
/// Gauges of fractions with `N` labels.
pub type Ratios<const N: usize> = Family<<GaugeVec as Inner>::Builder, N>;
/// Histograms with `N` labels.
pub type Histograms<const N: usize> = Family<<HistogramVec as Inner>::Builder, N>;

/// Names the builder behind one of the registry's vectors.
pub trait Inner {
    /// The builder.
    type Builder: MetricVecBuilder;
}

impl<B: MetricVecBuilder> Inner for MetricVec<B> {
    type Builder = B;
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Name(_) => "name",
            Self::Register { .. } => "register",
            Self::Encode(_) => "encode",
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// The media type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// The registry itself, for collectors that are none of the kinds below.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Registers a counter.
    pub fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.register(name, || IntCounter::new(name, help))
    }

    /// Registers counters with labels.
    pub fn counters<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Counters<N>, Error> {
        self.register(name, || IntCounterVec::new(Opts::new(name, help), &labels)).map(Family)
    }

    /// Registers a gauge.
    pub fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.register(name, || IntGauge::new(name, help))
    }

    /// Registers gauges with labels.
    pub fn gauges<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Gauges<N>, Error> {
        self.register(name, || IntGaugeVec::new(Opts::new(name, help), &labels)).map(Family)
    }

    /// Registers gauges of fractions with labels.
    pub fn ratios<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Ratios<N>, Error> {
        self.register(name, || GaugeVec::new(Opts::new(name, help), &labels)).map(Family)
    }

    /// Registers a histogram with these upper bounds.
    pub fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Result<Histogram, Error> {
        self.register(name, || {
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(bounds.to_vec()))
        })
    }

    /// Registers histograms with labels and these upper bounds.
    pub fn histograms<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Result<Histograms<N>, Error> {
        self.register(name, || {
            HistogramVec::new(HistogramOpts::new(name, help).buckets(bounds.to_vec()), &labels)
        })
        .map(Family)
    }

    /// Everything registered, in the text format that Prometheus reads.
    pub fn encode(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .map_err(|error| Error::Encode(Box::new(error)))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn register<M: Collector + Clone + 'static>(
        &self,
        name: &str,
        make: impl FnOnce() -> prometheus::Result<M>,
    ) -> Result<M, Error> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with(PREFIX) || !name.chars().all(is_plain) {
            return Err(Error::Name(name.to_owned()));
        }
        let refused = |source| Error::Register { name: name.to_owned(), source: Box::new(source) };
        let metric = make().map_err(refused)?;
        self.registry.register(Box::new(metric.clone())).map_err(refused)?;
        Ok(metric)
    }
}

// === impl Family ===

impl<B: MetricVecBuilder, const N: usize> Family<B, N> {
    /// The member with these label values.
    pub fn with(&self, values: [&str; N]) -> B::M {
        self.0
            .get_metric_with_label_values(&values)
            .expect("the number of labels is part of the type")
    }

    /// Drops the member with these label values, if there is one.
    pub fn remove(&self, values: [&str; N]) {
        // The only failure is that there is none.
        drop(self.0.remove_label_values(&values));
    }

    /// Drops all members.
    pub fn clear(&self) {
        self.0.reset();
    }
}

impl<B: MetricVecBuilder, const N: usize> Clone for Family<B, N> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: MetricVecBuilder, const N: usize> std::fmt::Debug for Family<B, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").field("labels", &N).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_written_out() {
        let metrics = Metrics::new();
        let sessions = metrics.gauge("wavelift_test_sessions", "Open sessions.").unwrap();
        sessions.set(3);
        let refused =
            metrics.counters("wavelift_test_refused_total", "Refused.", ["reason"]).unwrap();
        refused.with(["expired"]).inc();
        refused.with(["wrong_ca"]).inc_by(2);
        refused.remove(["expired"]);
        refused.remove(["never_seen"]);
        let done = metrics.ratios("wavelift_test_done_ratio", "Done.", ["wave"]).unwrap();
        done.with(["canary"]).set(0.25);
        let took =
            metrics.histograms("wavelift_test_seconds", "Took.", ["step"], &[1.0, 10.0]).unwrap();
        took.with(["approve"]).observe(4.0);
        assert_eq!(
            metrics.encode().unwrap(),
            "# HELP wavelift_test_done_ratio Done.\n\
             # TYPE wavelift_test_done_ratio gauge\n\
             wavelift_test_done_ratio{wave=\"canary\"} 0.25\n\
             # HELP wavelift_test_refused_total Refused.\n\
             # TYPE wavelift_test_refused_total counter\n\
             wavelift_test_refused_total{reason=\"wrong_ca\"} 2\n\
             # HELP wavelift_test_seconds Took.\n\
             # TYPE wavelift_test_seconds histogram\n\
             wavelift_test_seconds_bucket{step=\"approve\",le=\"1\"} 0\n\
             wavelift_test_seconds_bucket{step=\"approve\",le=\"10\"} 1\n\
             wavelift_test_seconds_bucket{step=\"approve\",le=\"+Inf\"} 1\n\
             wavelift_test_seconds_sum{step=\"approve\"} 4\n\
             wavelift_test_seconds_count{step=\"approve\"} 1\n\
             # HELP wavelift_test_sessions Open sessions.\n\
             # TYPE wavelift_test_sessions gauge\n\
             wavelift_test_sessions 3\n"
        );
    }

    #[test]
    fn bad_names_and_doubles_are_refused_and_do_not_panic() {
        let metrics = Metrics::new();
        assert_eq!(metrics.gauge("sessions", "Open.").unwrap_err().kind(), "name");
        assert_eq!(metrics.gauge("wavelift_Sessions", "Open.").unwrap_err().kind(), "name");
        assert!(metrics.counter("wavelift_test_total", "One.").is_ok());
        let twice = metrics.counter("wavelift_test_total", "Two.").unwrap_err();
        assert_eq!(twice.kind(), "register");
        let reserved =
            metrics.counters("wavelift_test_x_total", "X.", ["not a label"]).unwrap_err();
        assert_eq!(reserved.kind(), "register");
    }

    #[test]
    fn two_registries_know_nothing_of_each_other() {
        let (one, other) = (Metrics::new(), Metrics::new());
        one.counter("wavelift_test_total", "One.").unwrap().inc();
        other.counter("wavelift_test_total", "One.").unwrap();
        assert!(other.encode().unwrap().contains("wavelift_test_total 0"));
    }
}
