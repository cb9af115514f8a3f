//! A client that dies: its first write in a namespace is carried out, and nobody hears of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use anyhow::Result;
use futures::future::BoxFuture;
use http::Method;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tokio::sync::watch;
use tower::Service;

/// Death at the first write to a namespace.
#[derive(Debug, Clone)]
pub(crate) struct Mortal {
    path: String,
    is_dead: Arc<AtomicBool>,
    told: watch::Sender<bool>,
}

// === impl Mortal ===

impl Mortal {
    /// Lives until it writes in this namespace.
    pub(crate) fn new(namespace: &str) -> Self {
        Self {
            path: format!("/namespaces/{namespace}/"),
            is_dead: Arc::default(),
            told: watch::channel(false).0,
        }
    }

    /// Waits for its death.
    pub(crate) async fn dead(&self) {
        let mut told = self.told.subscribe();
        // The sender is ours.
        drop(told.wait_for(|is_dead| *is_dead).await);
    }

    /// A client that dies so.
    pub(crate) fn client(&self, config: Config) -> Result<Client> {
        let layer = tower::layer::layer_fn(|inner| Dying { inner, mortal: self.clone() });
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    /// Whether this is the write after which it is dead.
    fn is_last(&self, request: &http::Request<Body>) -> bool {
        *request.method() != Method::GET
            && request.uri().path().contains(&self.path)
            && !self.is_dead.swap(true, Ordering::SeqCst)
    }
}

struct Dying<S> {
    inner: S,
    mortal: Mortal,
}

impl<S> Service<http::Request<Body>> for Dying<S>
where
    S: Service<http::Request<Body>>,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let is_last = self.mortal.is_last(&request);
        if !is_last && self.mortal.is_dead.load(Ordering::SeqCst) {
            return Box::pin(std::future::pending());
        }
        let answer = self.inner.call(request);
        let told = self.mortal.told.clone();
        Box::pin(async move {
            let answer = answer.await;
            if is_last {
                drop(answer);
                told.send_replace(true);
                return std::future::pending().await;
            }
            answer
        })
    }
}
