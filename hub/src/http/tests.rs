//! The router as a whole, over the sample fleet.

mod assets;
mod events;
mod lists;
mod live;
mod previews;
mod schema;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
    response::Response,
    routing::get,
};
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tower::ServiceExt as _;
use wavelift_core::{fence::Term, ids::ClusterName};
use wavelift_runtime::Clock;

use super::{AppState, LiveQuery, Settings, router, sample, sample_changes};
use crate::{
    link::{LeaderState, Query, QueryError},
    view::{Board, Fleet, Upgrade},
};

const RUNNING: &str = "/api/v1/fleetupgrades/ops/logging-6-2";

/// Answers as it was told, and keeps what it was asked.
#[derive(Debug)]
struct Scripted {
    answer: Result<Bytes, QueryError>,
    asked: Mutex<Vec<(String, Query)>>,
}

impl LiveQuery for Scripted {
    fn ask<'a>(
        &'a self,
        cluster: &'a ClusterName,
        query: Query,
        _: Duration,
    ) -> BoxFuture<'a, Result<Bytes, QueryError>> {
        self.asked.lock().push((cluster.to_string(), query));
        std::future::ready(self.answer.clone()).boxed()
    }
}

/// A hub's HTTP side with the sample fleet.
struct App {
    router: Router,
    board: Board,
    leader: watch::Sender<LeaderState>,
    live: Arc<Scripted>,
}

fn app() -> App {
    app_with(Settings::default(), Ok(Bytes::from_static(b"{}")))
}

fn app_with(settings: Settings, answer: Result<Bytes, QueryError>) -> App {
    let board = Board::new();
    board.publish(fleet());
    let (leader, leads) = watch::channel(LeaderState { term: Some(Term(7)) });
    let live = Arc::new(Scripted { answer, asked: Mutex::default() });
    let (clock, _hand) = Clock::manual(sample::now());
    let state = AppState {
        board: board.clone(),
        clock,
        leader: leads,
        live: Arc::<Scripted>::clone(&live),
        admin: Router::new().route("/healthz", get(|| async { "ok\n" })),
        settings,
    };
    App { router: router(state), board, leader, live }
}

fn fleet() -> Fleet {
    let mut fleet = Fleet::default();
    for agent in sample::agents() {
        fleet.agents.insert(agent.cluster.clone(), Arc::new(agent));
    }
    for (view, clusters) in sample::campaigns() {
        let preview = if view.row.name == "logging-6-2" {
            Arc::new(sample_changes::changes(&clusters))
        } else {
            Arc::default()
        };
        let clusters = clusters.into_iter().map(Arc::new).collect();
        let upgrade = Upgrade { view, clusters, preview };
        fleet.upgrades.insert(upgrade.key(), Arc::new(upgrade));
    }
    fleet
}

impl App {
    async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> (StatusCode, HeaderMap, Vec<u8>) {
        let response = self.send(Request::get(path).body(Body::empty()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 4 << 20).await.unwrap();
        (parts.status, parts.headers, body.to_vec())
    }

    async fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// The status and the code of a problem, which must say what to do.
    async fn problem(&self, path: &str) -> (u16, String, String) {
        let (status, headers, body) = self.get(path).await;
        assert_eq!(headers["content-type"], "application/problem+json", "{path}");
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["status"], status.as_u16());
        assert!(problem["action"].as_str().unwrap().ends_with('.'), "{problem}");
        let text = |field: &str| problem[field].as_str().unwrap().to_owned();
        assert_eq!(text("type"), format!("urn:wavelift:problem:{}", text("code")));
        (status.as_u16(), text("code"), text("detail"))
    }
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}
