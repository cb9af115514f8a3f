//! Serves the page over a made-up fleet: `cargo run -p wavelift-hub --example page [port]`.
//!
//! With `moving` as a second argument one cluster makes progress, so that the page can be watched
//! while it follows.

#![expect(clippy::print_stdout, reason = "an example tells its reader where to look")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use tokio::{net::TcpListener, sync::watch};
use wavelift_core::{fence::Term, ids::ClusterName};
use wavelift_hub::{
    http::{self, AppState, LiveQuery, Settings},
    link::{LeaderState, Query, QueryError},
    view::{Board, Fleet, Upgrade},
};
use wavelift_runtime::Clock;

#[path = "../src/http/sample.rs"]
mod sample;
#[path = "../src/http/sample_changes.rs"]
mod sample_changes;

#[derive(Debug)]
struct Nobody;

impl LiveQuery for Nobody {
    fn ask<'a>(
        &'a self,
        _: &'a ClusterName,
        _: Query,
        _: Duration,
    ) -> BoxFuture<'a, Result<Bytes, QueryError>> {
        async { Err(QueryError::NotConnected) }.boxed()
    }
}

fn fleet(percent: i32) -> Fleet {
    let mut fleet = Fleet::default();
    for agent in sample::agents() {
        fleet.agents.insert(agent.cluster.clone(), Arc::new(agent));
    }
    for (view, mut clusters) in sample::campaigns() {
        for cluster in clusters.iter_mut().filter(|cluster| cluster.row.percent == Some(34)) {
            cluster.row.percent = Some(percent);
            if let Some(step) = cluster.steps.last_mut() {
                step.percent = percent;
            }
        }
        let preview = if view.row.name == "logging-6-2" {
            Arc::new(sample_changes::changes(&clusters))
        } else {
            Arc::default()
        };
        let clusters = clusters.into_iter().map(Arc::new).collect();
        let upgrade = Upgrade { view, clusters, preview };
        fleet.upgrades.insert(upgrade.key(), Arc::new(upgrade));
    }
    "example".clone_into(&mut fleet.leader.identity);
    fleet
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let port = args.next().map_or(Ok(8080), |port| port.parse())?;
    let board = Board::new();
    board.publish(fleet(34));
    let (_leads, leader) = watch::channel(LeaderState { term: Some(Term(1)) });
    let state = AppState {
        board: board.clone(),
        clock: Clock::scaled(sample::now(), 1.0),
        leader,
        live: Arc::new(Nobody),
        admin: Router::new(),
        settings: Settings::default(),
    };
    if args.next().as_deref() == Some("moving") {
        tokio::spawn(async move {
            for percent in (34..=100).cycle() {
                tokio::time::sleep(Duration::from_millis(700)).await;
                board.publish(fleet(percent));
            }
        });
    }
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, http::router(state)).await?;
    Ok(())
}
