//! The command line of `wavelift-hub`; every flag is an environment variable too.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use http::{HeaderValue, header::USER_AGENT};
use jiff::Timestamp;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use wavelift_runtime::{Clock, lease::unique_identity, telemetry};

use self::images::ImageArguments;
use crate::start::{HubOptions, LeaseTimes};

mod images;

/// How the hub calls itself to the API server.
const NAME: &str = concat!("wavelift-hub/", env!("CARGO_PKG_VERSION"));

/// Runs campaigns over a fleet of clusters.
#[derive(Debug, Clone, Parser)]
#[command(name = "wavelift-hub", version, about)]
pub struct Arguments {
    /// The hub cluster's kubeconfig; without it the usual places, then the pod's own.
    #[arg(long, env = "WAVELIFT_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// The hub's own namespace.
    #[arg(long, env = "WAVELIFT_NAMESPACE", default_value = "wavelift")]
    pub namespace: String,
    /// Who this process is, unique to it.
    #[arg(long, env = "WAVELIFT_IDENTITY")]
    pub identity: Option<String>,
    /// Where agents connect.
    #[arg(long, env = "WAVELIFT_LISTEN_LINK", default_value = "0.0.0.0:7443")]
    pub listen_link: SocketAddr,
    /// Where people and Prometheus connect.
    #[arg(long, env = "WAVELIFT_LISTEN_HTTP", default_value = "0.0.0.0:8080")]
    pub listen_http: SocketAddr,
    /// A name or address by which agents know this hub; may be repeated.
    #[arg(long = "server-name", env = "WAVELIFT_SERVER_NAME", value_delimiter = ',',
          default_values = ["localhost", "127.0.0.1"])]
    pub server_names: Vec<String>,
    /// Upgrade time begins here and is simulated (with --clock-factor).
    #[arg(long, env = "WAVELIFT_CLOCK_ORIGIN", requires = "clock_factor")]
    pub clock_origin: Option<Timestamp>,
    /// Upgrade time runs so many times as fast (with --clock-origin).
    #[arg(long, env = "WAVELIFT_CLOCK_FACTOR", requires = "clock_origin")]
    pub clock_factor: Option<f64>,
    /// For how long after each renewal nobody else may lead.
    #[arg(long, env = "WAVELIFT_LEASE_DURATION_SECONDS", default_value_t = 15)]
    pub lease_duration_seconds: u64,
    /// For how long after its last renewal a leader leads.
    #[arg(long, env = "WAVELIFT_LEASE_RENEW_DEADLINE_SECONDS", default_value_t = 10)]
    pub lease_renew_deadline_seconds: u64,
    /// How often the lease is renewed, in milliseconds.
    #[arg(long, env = "WAVELIFT_LEASE_RETRY_MS", default_value_t = 2_000)]
    pub lease_retry_ms: u64,
    /// Development: writes agents' keys and certificates here, one folder a cluster.
    #[arg(long, env = "WAVELIFT_BOOTSTRAP_DIR", requires = "bootstrap")]
    pub bootstrap_dir: Option<PathBuf>,
    /// A cluster to write a certificate for, or `*` for every ManagedCluster; may be repeated.
    #[arg(long, env = "WAVELIFT_BOOTSTRAP", value_delimiter = ',', requires = "bootstrap_dir")]
    pub bootstrap: Vec<String>,
    /// Writes the bound addresses here as JSON.
    #[arg(long, env = "WAVELIFT_ADDRESSES_FILE")]
    pub addresses_file: Option<PathBuf>,
    /// Where manifests come from that catalogs do not carry.
    #[command(flatten)]
    pub images: ImageArguments,
    /// What to log, e.g. `info,wavelift_hub::link=debug`.
    #[arg(long, env = "WAVELIFT_LOG_FILTER", default_value = "info")]
    pub log_filter: String,
    /// How to log: text or json.
    #[arg(long, env = "WAVELIFT_LOG_FORMAT", default_value_t = telemetry::Format::Text)]
    pub log_format: telemetry::Format,
}

/// Why there is no client of the hub cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig can't be read.
    #[error("failed to read the kubeconfig")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// Nothing says where the API server is.
    #[error("failed to find the hub cluster's API server")]
    Infer(#[from] kube::config::InferConfigError),
    /// The client can't be made.
    #[error("failed to make a client of the hub cluster")]
    Client(#[source] Box<kube::Error>),
    /// Bundle images can't be fetched as the command line says.
    #[error("failed to prepare for bundle images")]
    Images(#[from] images::Error),
}

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kubeconfig(_) => "kubeconfig",
            Self::Infer(_) => "infer",
            Self::Client(_) => "client",
            Self::Images(error) => error.kind(),
        }
    }
}

impl Arguments {
    /// What the hub is made of.
    pub async fn options(&self) -> Result<HubOptions, Error> {
        let identity = self.identity.clone().unwrap_or_else(|| unique_identity("wavelift-hub"));
        let mut options = HubOptions::new(self.client(&identity).await?, &self.namespace);
        options.identity = identity;
        options.link_address = self.listen_link;
        options.http_address = self.listen_http;
        options.server_names.clone_from(&self.server_names);
        options.images = self.images.open()?;
        options.lease = LeaseTimes {
            duration: Duration::from_secs(self.lease_duration_seconds),
            renew_deadline: Duration::from_secs(self.lease_renew_deadline_seconds),
            retry: Duration::from_millis(self.lease_retry_ms),
        };
        Ok(match (self.clock_origin, self.clock_factor) {
            (Some(origin), Some(factor)) => options.with_clock(Clock::scaled(origin, factor)),
            (Some(_) | None, _) => options,
        })
    }

    /// How to log.
    pub fn telemetry(&self) -> telemetry::Settings {
        telemetry::Settings { format: self.log_format, filter: self.log_filter.clone() }
    }

    /// An audit of the API server tells replicas apart by the name in brackets.
    async fn client(&self, identity: &str) -> Result<Client, Error> {
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path)?;
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
            }
            None => Config::infer().await?,
        };
        let name = HeaderValue::from_str(&format!("{NAME} ({identity})"));
        config.headers.push((USER_AGENT, name.unwrap_or(HeaderValue::from_static(NAME))));
        Client::try_from(config).map_err(|error| Error::Client(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
        let parsed = Arguments::try_parse_from([
            "wavelift-hub",
            "--clock-origin",
            "2020-01-01T00:00:00Z",
            "--clock-factor",
            "60",
        ]);
        assert_eq!(parsed.unwrap().clock_factor, Some(60.0));
        assert!(Arguments::try_parse_from(["wavelift-hub", "--clock-factor", "60"]).is_err());
    }
}
