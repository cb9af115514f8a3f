//! The endpoints every process has: `/healthz`, `/readyz` with reasons, `/metrics`.

use std::{collections::BTreeMap, fmt::Write as _, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{metrics::Metrics, telemetry::chain};

/// How long open connections may take to end after a stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Why the endpoints could not be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address could not be bound.
    #[error("failed to listen on {address}")]
    Bind {
        /// The address as configured.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server ended by itself.
    #[error("the admin endpoints ended")]
    Serve(#[source] io::Error),
}

/// What must hold before the process counts as ready: named parts, each ready or not with a
/// reason. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<RwLock<BTreeMap<&'static str, Option<String>>>>);

/// One part of a process's readiness; its owner says when it is ready.
#[derive(Debug, Clone)]
pub struct Part {
    readiness: Readiness,
    name: &'static str,
}

#[derive(Debug, Clone)]
struct Context {
    metrics: Metrics,
    readiness: Readiness,
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bind { .. } => "bind",
            Self::Serve(_) => "serve",
        }
    }
}

// === impl Readiness ===

impl Readiness {
    /// Nothing is asked for yet: ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part that is not ready, for this reason, until it says so.
    pub fn part(&self, name: &'static str, reason: &str) -> Part {
        let part = Part { readiness: self.clone(), name };
        part.set_waiting(reason);
        part
    }

    /// The parts that are not ready, each with its reason.
    pub fn missing(&self) -> BTreeMap<&'static str, String> {
        let parts = self.0.read();
        parts.iter().filter_map(|(name, reason)| Some((*name, reason.clone()?))).collect()
    }
}

// === impl Part ===

impl Part {
    /// This part is ready.
    pub fn set_ready(&self) {
        self.readiness.0.write().insert(self.name, None);
    }

    /// This part is not ready, and why.
    pub fn set_waiting(&self, reason: &str) {
        self.readiness.0.write().insert(self.name, Some(reason.to_owned()));
    }
}

/// The three endpoints, to be served alone or merged into a larger router.
pub fn router(metrics: Metrics, readiness: Readiness) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(encoded))
        .with_state(Context { metrics, readiness })
}

/// Binds the address; port 0 takes a free one, which the listener then tells.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Bind { address, source })
}

/// Serves until `stop`; open connections then get a moment to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> Result<(), Error> {
    if let Ok(address) = listener.local_addr() {
        info!(%address, "admin endpoints");
    }
    let server =
        axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let drained = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        served = server => served.map_err(Error::Serve),
        () = drained => Ok(()),
    }
}

async fn readyz(State(context): State<Context>) -> Response {
    let missing = context.readiness.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let mut body = String::new();
    for (name, reason) in missing {
        writeln!(body, "{name}: {reason}").expect("writing to a string cannot fail");
    }
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}

async fn encoded(State(context): State<Context>) -> Response {
    match context.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            error!(error = %chain(&error), "metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be encoded\n").into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::Request,
    };
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tower::ServiceExt as _;

    use super::*;

    async fn fetch(router: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 65_536).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_names_every_part_that_is_missing() {
        let readiness = Readiness::new();
        let lease = readiness.part("lease", "held by hub-1");
        let caches = readiness.part("caches", "first list under way");
        let router = router(Metrics::new(), readiness);
        assert_eq!(
            fetch(&router, "/readyz").await,
            (503, "caches: first list under way\nlease: held by hub-1\n".to_owned())
        );
        caches.set_ready();
        lease.set_ready();
        assert_eq!(fetch(&router, "/readyz").await, (200, "ok\n".to_owned()));
        lease.set_waiting("held by hub-2");
        assert_eq!(fetch(&router, "/readyz").await, (503, "lease: held by hub-2\n".to_owned()));
        assert_eq!(fetch(&router, "/healthz").await.0, 200, "not ready is not ill");
    }

    #[tokio::test]
    async fn metrics_are_served() {
        let metrics = Metrics::new();
        metrics.counter("wavelift_test_total", "Tests.").unwrap().inc();
        let (status, body) = fetch(&router(metrics, Readiness::new()), "/metrics").await;
        assert_eq!(status, 200);
        assert!(body.contains("wavelift_test_total 1"), "{body}");
    }

    #[tokio::test]
    async fn it_is_served_on_a_free_port_and_stops_when_told() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = router(Metrics::new(), Readiness::new());
        let server = tokio::spawn(serve(listener, router, stop.clone()));
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        stop.cancel();
        server.await.unwrap().unwrap();
    }
}
