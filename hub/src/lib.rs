//! The hub: runs campaigns over a fleet and speaks with the agents of its clusters.
//!
//! Of several replicas one leads. The leader alone takes agents' sessions ([`link`]), runs
//! campaigns ([`campaign`]) and answers people ([`http`], from the snapshot in [`view`]).

#[cfg(test)]
extern crate self as wavelift_hub;

mod bootstrap;
pub mod campaign;
mod cluster;
pub mod config;
mod events;
pub mod http;
mod leader;
pub mod link;
mod metrics;
pub mod preview;
mod start;
pub mod view;
mod watches;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

pub use self::{
    metrics::Writes,
    start::{Error, Hub, HubOptions, LeaseTimes, issue_agent},
};

/// Runs a hub as its command line says, until `shutdown`.
pub async fn run(arguments: &config::Arguments, shutdown: CancellationToken) -> anyhow::Result<()> {
    let options = arguments.options().await?;
    let client = options.client.clone();
    let hub = Hub::start(options, shutdown.clone()).await?;
    if let Some(dir) = &arguments.bootstrap_dir {
        bootstrap::write(&hub, &client, dir, &arguments.bootstrap).await?;
    }
    if let Some(path) = &arguments.addresses_file {
        let addresses = serde_json::json!({
            "link": hub.link_address().to_string(),
            "http": hub.http_address().to_string(),
        });
        // Renamed into place: whoever waits for the file reads all of it.
        let partial = path.with_extension("partial");
        std::fs::write(&partial, addresses.to_string())
            .and_then(|()| std::fs::rename(&partial, path))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    shutdown.cancelled().await;
    hub.join().await;
    Ok(())
}
