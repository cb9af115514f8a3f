//! The JSON API under `/api/v1` and the page that is made from it.
//!
//! Everything here reads the [`Board`] and changes nothing: people steer a campaign by changing its
//! FleetUpgrade. Only the leader answers `/api`, and everything that a caller sends or holds open
//! has a limit in [`Settings`].

mod agents;
mod assets;
mod clusters;
mod cursor;
mod events;
mod guard;
mod live;
mod openapi;
mod params;
mod previews;
mod problem;
mod routes;
mod upgrades;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod sample_changes;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use axum::{Router, middleware};
use tokio::sync::{Semaphore, watch};
use wavelift_runtime::Clock;

use crate::{link::LeaderState, view::Board};

pub use live::LiveQuery;
pub use openapi::document;

/// What the API serves from.
#[derive(Debug, Clone)]
pub struct AppState {
    /// What is shown.
    pub board: Board,
    /// The hub's time.
    pub clock: Clock,
    /// Whether this hub leads.
    pub leader: watch::Receiver<LeaderState>,
    /// Asks one agent.
    pub live: Arc<dyn LiveQuery>,
    /// Health, readiness and metrics.
    pub admin: Router,
    /// Bounds.
    pub settings: Settings,
}

/// Bounds on what callers may ask for. All times are real time.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Items of a page when the caller does not say.
    pub page_default: usize,
    /// Items of a page at most.
    pub page_max: usize,
    /// Requests under way at once, event streams apart.
    pub requests_max: usize,
    /// Event streams at once.
    pub streams_max: usize,
    /// The least time between two batches of one event stream.
    pub batch_interval: Duration,
    /// A silent event stream gives a sign of life this often.
    pub keep_alive: Duration,
    /// How long an agent may take to answer.
    pub live_timeout: Duration,
    /// The longest answer of an agent.
    pub live_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_default: 100,
            page_max: 500,
            requests_max: 256,
            streams_max: 128,
            batch_interval: Duration::from_millis(500),
            keep_alive: Duration::from_secs(15),
            live_timeout: Duration::from_secs(5),
            live_bytes_max: 1 << 20,
        }
    }
}

/// What every handler holds.
#[derive(Debug)]
struct Shared {
    board: Board,
    clock: Clock,
    leader: watch::Receiver<LeaderState>,
    live: Arc<dyn LiveQuery>,
    settings: Settings,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

type Context = Arc<Shared>;

/// The API, the page and the admin endpoints in one router.
pub fn router(state: AppState) -> Router {
    let AppState { board, clock, leader, live, admin, settings } = state;
    let requests = Arc::new(Semaphore::new(settings.requests_max));
    let streams = Arc::new(Semaphore::new(settings.streams_max));
    let shared: Context =
        Arc::new(Shared { board, clock, leader, live, settings, requests, streams });
    let mut api = Router::new();
    for route in routes::all() {
        api = api.route(route.path, route.handler);
    }
    let api = api
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard::leads))
        .with_state(shared);
    Router::new()
        .merge(api)
        .merge(assets::router())
        .fallback(problem::no_route)
        .layer(middleware::from_fn(guard::headers))
        .merge(admin)
}
