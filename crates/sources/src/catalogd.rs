//! The catalog of OLM v1: catalogd's `/api/v1/all`.
//!
//! One answer holds every document of a catalog. It is cut into documents while it comes in, so that
//! of the text there is never more in memory than a few documents. `If-Modified-Since` spares both
//! sides the whole of it.

use std::{io, pin::Pin};

use ::http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, IF_MODIFIED_SINCE, LAST_MODIFIED, USER_AGENT,
    },
};
use backon::Retryable as _;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures::Stream;
use http_body_util::Empty;
use hyper::body::Incoming;
use tokio::time::timeout;
use tokio_util::io::{StreamReader, SyncIoBridge};
use wavelift_catalog::{Fbc, Limits, fbc};

use crate::{
    bounds::{Patience, Retries},
    documents::Documents,
    http,
    trust::{self, Trust},
};

/// Documents are handed on when there are as many bytes of them.
const PART_BYTES: usize = 1 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes of an error that are shown.
const EXCERPT_BYTES_MAX: usize = 300;

const AGENT: &str = concat!("wavelift/", env!("CARGO_PKG_VERSION"));

/// Why catalogd's catalog can't be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error("`{address}` is no address of a catalog")]
    Address {
        /// The address as given.
        address: String,
    },
    /// There is nothing to verify catalogd with.
    #[error("failed to prepare TLS")]
    Trust(#[source] trust::Error),
    /// The exchange failed.
    #[error("failed to read catalog {address}")]
    Http {
        /// Where the catalog is.
        address: String,
        /// Why.
        #[source]
        source: http::Error,
    },
    /// Another status than success.
    #[error("catalog {address} answers {status}: {excerpt}")]
    Status {
        /// Where the catalog is.
        address: String,
        /// The HTTP status.
        status: StatusCode,
        /// The beginning of the answer.
        excerpt: String,
    },
    /// The answer is packed in a way that was not asked for.
    #[error("catalog {address} answers in the encoding `{encoding}`")]
    Encoding {
        /// Where the catalog is.
        address: String,
        /// The encoding.
        encoding: String,
    },
    /// The answer broke off, or is no gzip.
    #[error("the answer of catalog {address} is not whole")]
    Broken {
        /// Where the catalog is.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// More than the limits allow.
    #[error("catalog {address} has more than {max} {what}")]
    TooLarge {
        /// Where the catalog is.
        address: String,
        /// What is too many.
        what: &'static str,
        /// How many may be.
        max: usize,
    },
    /// It took too long as a whole.
    #[error("catalog {address} took longer than {} s", .after.as_secs_f32())]
    Slow {
        /// Where the catalog is.
        address: String,
        /// How long it was waited for.
        after: std::time::Duration,
    },
    /// The documents are no catalog.
    #[error("what catalog {address} serves does not parse")]
    Documents {
        /// Where the catalog is.
        address: String,
        /// What is wrong with them.
        #[source]
        source: Box<fbc::Error>,
    },
}

/// A state of a catalog, as the server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastModified(HeaderValue);

/// What catalogd answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The catalog is the one that the caller has.
    Unchanged,
    /// The catalog.
    Catalog {
        /// All its documents.
        fbc: Box<Fbc>,
        /// What to ask with next time, if the server says.
        last_modified: Option<LastModified>,
    },
}

/// A client of one catalog of catalogd.
#[derive(Debug, Clone)]
pub struct Catalogd {
    address: String,
    uri: Uri,
    client: http::Client,
    limits: Limits,
    retries: Retries,
}

// === impl Catalogd ===

impl Catalogd {
    /// A client of the catalog at `base`, which is the ClusterCatalog's `status.urls.base`.
    pub fn new(
        base: &str,
        trust: &Trust,
        limits: Limits,
        patience: Patience,
        retries: Retries,
    ) -> Result<Self, Error> {
        let address = format!("{}/api/v1/all", base.trim_end_matches('/'));
        let uri = address.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("https" | "http")) && uri.authority().is_some()
        });
        let uri = uri.ok_or_else(|| Error::Address { address: base.to_owned() })?;
        let client = http::Client::new(trust, patience).map_err(Error::Trust)?;
        Ok(Self { address, uri, client, limits, retries })
    }

    /// The catalog, or that it is still the one of `since`.
    pub async fn read(&self, since: Option<&LastModified>) -> Result<Answer, Error> {
        let after = self.client.patience().attempt;
        let attempt = || async {
            let slow = || Error::Slow { address: self.address.clone(), after };
            timeout(after, self.read_once(since)).await.unwrap_or_else(|_| Err(slow()))
        };
        attempt.retry(self.retries.backoff()).when(Error::is_transient).await
    }

    async fn read_once(&self, since: Option<&LastModified>) -> Result<Answer, Error> {
        let mut request = Request::get(&self.uri)
            .header(ACCEPT, "application/jsonl")
            .header(ACCEPT_ENCODING, "gzip")
            .header(USER_AGENT, AGENT);
        if let Some(LastModified(value)) = since {
            request = request.header(IF_MODIFIED_SINCE, value);
        }
        let request = request
            .body(Empty::new())
            .map_err(|_| Error::Address { address: self.address.clone() })?;
        let response = self.client.send(request).await.map_err(|source| self.failed(source))?;
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED && since.is_some() {
            return Ok(Answer::Unchanged);
        }
        let server = http::server(&self.uri);
        let (head, body) = response.into_parts();
        if status != StatusCode::OK {
            let excerpt = self.client.excerpt(&server, body, EXCERPT_BYTES_MAX).await;
            return Err(Error::Status { address: self.address.clone(), status, excerpt });
        }
        let is_packed = match head.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity" | b"") => false,
            Some(b"gzip") => true,
            Some(encoding) => {
                let encoding = String::from_utf8_lossy(encoding).chars().take(50).collect();
                return Err(Error::Encoding { address: self.address.clone(), encoding });
            }
        };
        let last_modified = head.headers.get(LAST_MODIFIED).cloned().map(LastModified);
        let fbc = self.documents(server, body, is_packed).await?;
        Ok(Answer::Catalog { fbc: Box::new(fbc), last_modified })
    }

    /// Unpacks and reads on a thread of its own what arrives here.
    async fn documents(
        &self,
        server: String,
        body: Incoming,
        is_packed: bool,
    ) -> Result<Fbc, Error> {
        let arriving = StreamReader::new(pieces(self.client.clone(), server, body));
        let bridge = SyncIoBridge::new(arriving);
        let (address, limits) = (self.address.clone(), self.limits);
        let reading = tokio::task::spawn_blocking(move || {
            let reader = Reader { address, limits };
            if is_packed {
                reader.read(MultiGzDecoder::new(io::BufReader::new(bridge)))
            } else {
                reader.read(bridge)
            }
        });
        match reading.await {
            Ok(read) => read,
            Err(error) => Err(Error::Broken {
                address: self.address.clone(),
                source: io::Error::other(error),
            }),
        }
    }

    fn failed(&self, source: http::Error) -> Error {
        Error::Http { address: self.address.clone(), source }
    }
}

type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

fn pieces(client: http::Client, server: String, body: Incoming) -> Pieces {
    let next = move |mut body: Incoming| {
        let (client, server) = (client.clone(), server.clone());
        async move {
            match client.next(&server, &mut body).await {
                Ok(piece) => Ok(piece.map(|piece| (piece, body))),
                Err(error) => Err(io::Error::other(error)),
            }
        }
    };
    Box::pin(futures::stream::try_unfold(body, next))
}

/// Reads documents as they come.
struct Reader {
    address: String,
    limits: Limits,
}

impl Reader {
    fn read(&self, mut content: impl io::Read) -> Result<Fbc, Error> {
        let (mut fbc, mut documents) = (Fbc::default(), Documents::default());
        let (mut pending, mut whole, mut total) = (Vec::new(), 0, 0);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = content.read(&mut buffer).map_err(|source| self.broken(source))?;
            let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
            total += read;
            self.within("bytes", total, self.limits.total_bytes)?;
            if let Some(end) = documents.last_end(piece) {
                whole = pending.len() + end;
            }
            pending.extend_from_slice(piece);
            self.within("bytes in one document", pending.len() - whole, self.limits.file_bytes)?;
            if whole >= PART_BYTES {
                let rest = pending.split_off(whole);
                self.add(&mut fbc, &std::mem::replace(&mut pending, rest))?;
                whole = 0;
            }
        }
        // What is left may be cut off; then it is an error of the last document.
        self.add(&mut fbc, &pending)?;
        Ok(fbc)
    }

    fn add(&self, fbc: &mut Fbc, part: &[u8]) -> Result<(), Error> {
        if part.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let name = &self.address;
        fbc.add_file(name, part, &self.limits).map_err(|source| Error::Documents {
            address: name.clone(),
            source: Box::new(source),
        })?;
        self.within("bundles", fbc.bundles.len(), self.limits.entries)
    }

    fn broken(&self, source: io::Error) -> Error {
        match source.downcast::<http::Error>() {
            Ok(source) => Error::Http { address: self.address.clone(), source },
            Err(source) => Error::Broken { address: self.address.clone(), source },
        }
    }

    fn within(&self, what: &'static str, found: usize, max: usize) -> Result<(), Error> {
        if found > max {
            return Err(Error::TooLarge { address: self.address.clone(), what, max });
        }
        Ok(())
    }
}

// === impl LastModified ===

impl LastModified {
    /// What the server called this state, to be kept as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Reads what [`Self::as_str`] gave.
    pub fn parse(text: &str) -> Option<Self> {
        HeaderValue::from_str(text).ok().filter(|value| !value.is_empty()).map(Self)
    }
}

// === impl Error ===

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Address { .. } => "Address",
            Self::Trust(_) => "Trust",
            Self::Http { .. } => "Http",
            Self::Status { .. } => "Status",
            Self::Encoding { .. } => "Encoding",
            Self::Broken { .. } => "Broken",
            Self::TooLarge { .. } => "TooLarge",
            Self::Slow { .. } => "Slow",
            Self::Documents { .. } => "Documents",
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Http { source, .. } => source.is_transient(),
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Broken { .. } => true,
            Self::Address { .. }
            | Self::Trust(_)
            | Self::Encoding { .. }
            | Self::TooLarge { .. }
            | Self::Slow { .. }
            | Self::Documents { .. } => false,
        }
    }

    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Address { .. } => "give the ClusterCatalog's `status.urls.base`",
            Self::Trust(error) => error.advice(),
            Self::Http { source, .. } => source.advice(),
            Self::Status { status, .. } if *status == StatusCode::NOT_FOUND => {
                "check that the ClusterCatalog is Serving"
            }
            Self::Status { .. } | Self::Broken { .. } | Self::Slow { .. } => {
                "look at catalogd's log and load"
            }
            Self::Encoding { .. } => "check what stands between here and catalogd",
            Self::TooLarge { .. } => "check that this catalog is meant, or raise the limit",
            Self::Documents { .. } => {
                "tell the author of the catalog; `wavelift catalog validate` on its files says more"
            }
        }
    }
}

#[cfg(test)]
mod tests;
