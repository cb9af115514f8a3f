//! The way to the API server: no request waits for ever, and what comes of each is counted.
//!
//! An API server that is going down, or a network that swallows packets, can leave a request
//! without any answer. The agent has one loop: it must not stand still for that.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response, StatusCode};
use kube::{
    Client, Config,
    client::{
        Body, ClientBuilder,
        retry::{InvalidBackoff, RetryPolicy},
    },
};
use parking_lot::Mutex;
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder, layer::layer_fn, retry::RetryLayer, service_fn};
use tracing::warn;
use wavelift_runtime::metrics::{self, Counters, Metrics};

/// How long an answer may take to begin. A watch begins at once, however long it goes on.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// An answer that takes longer is slow.
const SLOW: Duration = Duration::from_secs(5);
/// From one word about slow answers to the next.
const WORDS_PERIOD: Duration = Duration::from_mins(1);

/// An API server that has too much to do for a moment is asked again so often, after as long as it
/// says or, if it does not, after these pauses.
const TRIES: u32 = 3;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is not usable.
    #[error("the API server's address or credentials")]
    Config(#[source] Box<kube::Error>),
    /// The pauses make no sense.
    #[error("pauses")]
    Pauses(#[from] InvalidBackoff),
    /// The metrics could not be registered.
    #[error("metrics")]
    Metrics(#[from] metrics::Error),
}

/// There was no answer in time.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the API server has not answered for {} s", ANSWER_MAX.as_secs())]
struct Unanswered;

/// A client that does not wait for ever.
pub fn client(mut config: Config, metrics: &Metrics) -> Result<Client, Error> {
    let seen = Arc::new(Counted {
        answers: metrics.counters(
            "wavelift_agent_api_requests_total",
            "Requests to the cluster's API server, by result: the class of the answer's status \
             (2xx, 4xx, 5xx; 429 by itself), broken (no connection) or unanswered.",
            ["result"],
        )?,
        slow: metrics.counters(
            "wavelift_agent_api_slow_answers_total",
            "Answers of the cluster's API server that took longer than 5 seconds, or did not come.",
            [],
        )?,
        said: Mutex::new(None),
    });
    // Its own way of trying again goes on for minutes and says nothing.
    config.default_retry = false;
    let namespace = config.default_namespace.clone();
    let builder =
        ClientBuilder::try_from(config).map_err(|error| Error::Config(Box::new(error)))?;
    let patient = layer_fn(move |inner| Patient { inner, seen: Arc::clone(&seen) });
    let once = builder.with_layer(&patient).build();
    let once = service_fn(move |request: Request<Body>| {
        let client = once.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    });
    let again = RetryPolicy::new(PAUSE_MIN, PAUSE_MAX, TRIES, true)?;
    let service = ServiceBuilder::new().layer(RetryLayer::new(again)).service(once);
    Ok(Client::new(service, namespace))
}

/// What has been seen of the API server.
struct Counted {
    answers: Counters<1>,
    slow: Counters<0>,
    /// When a slow answer was last spoken of.
    said: Mutex<Option<Instant>>,
}

struct Patient<S> {
    inner: S,
    seen: Arc<Counted>,
}

impl<S, B> Service<Request<Body>> for Patient<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let seen = Arc::clone(&self.seen);
        let what = format!("{} {}", request.method(), request.uri().path());
        let began = Instant::now();
        let answered = timeout(ANSWER_MAX, self.inner.call(request));
        async move {
            let answered = answered.await;
            let result = match &answered {
                Ok(Ok(response)) => class(response.status()),
                Ok(Err(_)) => "broken",
                Err(_) => "unanswered",
            };
            seen.note(&what, result, began.elapsed());
            answered.unwrap_or_else(|_| Err(Box::new(Unanswered)))
        }
        .boxed()
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        429 => "429",
        400..=499 => "4xx",
        500.. => "5xx",
        100..=199 | 300..=399 => "other",
        0..=99 | 200..=299 => "2xx",
    }
}

impl Counted {
    fn note(&self, what: &str, result: &'static str, took: Duration) {
        self.answers.with([result]).inc();
        if took < SLOW {
            return;
        }
        self.slow.with([]).inc();
        let mut said = self.said.lock();
        if said.is_none_or(|at| at.elapsed() >= WORDS_PERIOD) {
            *said = Some(Instant::now());
            warn!(request = what, result, ?took, "the API server is slow");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_never_answered_ends_and_is_counted() {
        let metrics = Metrics::new();
        let answers =
            metrics.counters("wavelift_test_answers_total", "Answers.", ["result"]).unwrap();
        let slow = metrics.counters("wavelift_test_slow_total", "Slow ones.", []).unwrap();
        let seen = Arc::new(Counted { answers, slow, said: Mutex::new(None) });
        let never =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<()>, BoxError>>());
        let mut patient = Patient { inner: never, seen };
        let request = Request::get("/api/v1/pods").body(Body::empty()).unwrap();
        let error = patient.call(request).await.unwrap_err();
        assert_eq!(error.to_string(), "the API server has not answered for 60 s");
        assert!(
            metrics
                .encode()
                .unwrap()
                .contains("wavelift_test_answers_total{result=\"unanswered\"} 1")
        );
    }

    #[test]
    fn answers_are_counted_by_their_class() {
        let by_code = |code: u16| class(StatusCode::from_u16(code).unwrap());
        assert_eq!(
            [200, 201, 302, 404, 409, 429, 500, 503].map(by_code),
            ["2xx", "2xx", "other", "4xx", "4xx", "429", "5xx", "5xx"]
        );
    }
}
