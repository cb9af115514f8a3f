//! Plain HTTP GET with bounds: hyper over rustls.
//!
//! Redirects are not followed here. Who may see which credentials is known one level up.

use std::error::Error as StdError;

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;

use crate::{
    bounds::Patience,
    trust::{self, Trust},
};

/// Why there is no answer, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers there.
    #[error("can't connect to {server}")]
    Connect {
        /// Host and port.
        server: String,
        /// Why.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The server's certificate is not to be trusted, or TLS fails otherwise.
    #[error("can't trust {server}")]
    Untrusted {
        /// Host and port.
        server: String,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The exchange broke off.
    #[error("the connection to {server} broke off")]
    Exchange {
        /// Host and port.
        server: String,
        /// Why.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The server took too long.
    #[error("{server} was silent for more than {} s", .after.as_secs_f32())]
    Silent {
        /// Host and port.
        server: String,
        /// How long it was waited for.
        after: std::time::Duration,
    },
    /// The answer is longer than it may be.
    #[error("the answer of {server} is longer than {max} bytes")]
    TooLarge {
        /// Host and port.
        server: String,
        /// How long it may be.
        max: usize,
    },
}

type Connection = legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Makes GET requests.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    connection: Connection,
    patience: Patience,
}

// === impl Client ===

impl Client {
    pub(crate) fn new(trust: &Trust, patience: Patience) -> Result<Self, trust::Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(patience.connect));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust.client_config()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let connection = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_max_idle_per_host(2)
            .build(connector);
        Ok(Self { connection, patience })
    }

    /// Sends the request and waits until the answer begins.
    pub(crate) async fn send(
        &self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        let server = server(request.uri());
        let after = self.patience.connect + self.patience.silence;
        match timeout(after, self.connection.request(request)).await {
            Err(_) => Err(Error::Silent { server, after }),
            Ok(Err(error)) => Err(Error::sending(server, error)),
            Ok(Ok(response)) => Ok(response),
        }
    }

    /// The next piece of an answer; nothing at its end.
    pub(crate) async fn next(
        &self,
        server: &str,
        body: &mut Incoming,
    ) -> Result<Option<Bytes>, Error> {
        let after = self.patience.silence;
        loop {
            let frame = timeout(after, body.frame())
                .await
                .map_err(|_| Error::Silent { server: server.to_owned(), after })?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(Error::Exchange {
                        server: server.to_owned(),
                        source: Box::new(error),
                    });
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The whole answer, in memory.
    pub(crate) async fn collect(
        &self,
        server: &str,
        mut body: Incoming,
        max: usize,
    ) -> Result<Vec<u8>, Error> {
        let too_large = || Error::TooLarge { server: server.to_owned(), max };
        let announced = body.size_hint().lower();
        if announced > max as u64 {
            return Err(too_large());
        }
        let mut all = Vec::new();
        while let Some(piece) = self.next(server, &mut body).await? {
            if all.len() + piece.len() > max {
                return Err(too_large());
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// The beginning of an answer that is only shown to people, as text.
    pub(crate) async fn excerpt(&self, server: &str, mut body: Incoming, max: usize) -> String {
        let mut all = Vec::new();
        while let Ok(Some(piece)) = self.next(server, &mut body).await {
            all.extend_from_slice(piece.get(..max - all.len()).unwrap_or(&piece));
            if all.len() >= max {
                break;
            }
        }
        let text = String::from_utf8_lossy(&all);
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }
}

/// Host and port, for messages and as the key of credentials.
pub(crate) fn server(uri: &::http::Uri) -> String {
    uri.authority().map(ToString::to_string).unwrap_or_default()
}

// === impl Error ===

impl Error {
    fn sending(server: String, error: legacy::Error) -> Self {
        match tls_error(&error) {
            Some(source) => Self::Untrusted { server, source },
            None if error.is_connect() => Self::Connect { server, source: Box::new(error) },
            None => Self::Exchange { server, source: Box::new(error) },
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Exchange { .. } | Self::Silent { .. } => true,
            Self::Untrusted { .. } | Self::TooLarge { .. } => false,
        }
    }

    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Connect { .. } => {
                "check the address, DNS and network policies between here and it"
            }
            Self::Untrusted { .. } => {
                "add the authority that signed its certificate to the CA bundle"
            }
            Self::Exchange { .. } | Self::Silent { .. } => "look at the server's own log and load",
            Self::TooLarge { .. } => "check that the address is the right one, or raise the limit",
        }
    }
}

/// The TLS error in a chain of causes, which hyper and tokio wrap several times.
fn tls_error(error: &(dyn StdError + 'static)) -> Option<rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.clone());
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
