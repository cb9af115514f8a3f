//! The hub's own server certificate: issued by its server authority, renewed in good time.

use std::{sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use wavelift_runtime::{
    pki::{self, PrivateKey, Validity, issue_server_certificate},
    tls::{self, Material},
};

use super::ca::Authorities;

/// How soon a renewal that failed is tried again.
const RETRY: Duration = Duration::from_mins(1);

/// Why there is no server certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be issued.
    #[error("failed to issue the server certificate")]
    Issue(#[from] pki::Error),
    /// It can't be served.
    #[error("failed to use the server certificate")]
    Tls(#[from] tls::Error),
}

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Issue(error) => error.kind(),
            Self::Tls(error) => error.kind(),
        }
    }
}

/// Issues a server certificate for `names` and makes the link's configuration of it.
pub fn server_config(
    authorities: &Authorities,
    names: &[String],
    lifetime: Duration,
) -> Result<Arc<ServerConfig>, Error> {
    let key = PrivateKey::generate()?;
    let validity = Validity::from_now(lifetime);
    let issued = issue_server_certificate(&authorities.servers, names, &key, validity)?;
    Ok(tls::server_config(&Material {
        certificates: issued.certificate_pem.into_bytes(),
        key: key.key_pem().into_bytes(),
        ca: authorities.agents.certificate_pem().as_bytes().to_vec(),
    })?)
}

/// The link's configuration with a server certificate that is issued anew when two thirds of its
/// `lifetime` have passed, until `shutdown`.
pub fn renewed(
    authorities: Arc<Authorities>,
    names: Vec<String>,
    lifetime: Duration,
    shutdown: CancellationToken,
) -> Result<watch::Receiver<Arc<ServerConfig>>, Error> {
    let (sender, receiver) = watch::channel(server_config(&authorities, &names, lifetime)?);
    tokio::spawn(async move {
        let mut due = Instant::now() + lifetime / 3 * 2;
        loop {
            tokio::select! {
                () = sleep_until(due) => {}
                () = sender.closed() => return,
                () = shutdown.cancelled() => return,
            }
            match server_config(&authorities, &names, lifetime) {
                Ok(config) => {
                    sender.send_replace(config);
                    due = Instant::now() + lifetime / 3 * 2;
                    info!("server certificate renewed");
                }
                Err(error) => {
                    due = Instant::now() + RETRY;
                    warn!(kind = error.kind(), %error, "failed to renew the server certificate");
                }
            }
        }
    });
    Ok(receiver)
}
