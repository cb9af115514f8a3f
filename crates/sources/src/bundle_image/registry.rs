//! One repository of one registry, as the distribution protocol gives it out.
//!
//! Whoever answers is believed only as far as digests go. Credentials go to the registry they are
//! for and to the token server that it names over TLS, and never along with a redirect elsewhere.

use ::http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT, WWW_AUTHENTICATE},
};
use backon::Retryable as _;
use http_body_util::Empty;
use hyper::body::Incoming;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use wavelift_core::causes::sentence;

use super::{
    challenge::Challenge,
    manifest,
    reference::{Digest, Repository, Version},
    secrets::{self, Credentials},
};
use crate::{bounds::Retries, http};

/// Bytes of a manifest, as registries bound it too.
const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Bytes of a token server's answer.
const TOKEN_BYTES_MAX: usize = 256 << 10;
/// Bytes of an error that are shown.
const EXCERPT_BYTES_MAX: usize = 300;
/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;

const AGENT: &str = concat!("wavelift/", env!("CARGO_PKG_VERSION"));

/// Why a registry does not give out an image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The exchange failed.
    #[error("no answer")]
    Http(#[from] http::Error),
    /// The pull secret's entry for this registry is of no use.
    #[error("no credentials")]
    Secret(#[source] secrets::Error),
    /// The registry wants credentials, or does not want these.
    #[error("{}", if *.had_credentials { "credentials were refused" } else { "credentials are needed" })]
    Unauthorized {
        /// Whether there were any.
        had_credentials: bool,
    },
    /// The registry wants to be convinced in a way that nobody knows here, or that is not safe.
    #[error("it asks for a login that is not supported: {reason}")]
    Login {
        /// What is wrong.
        reason: &'static str,
    },
    /// The token server gave no token.
    #[error("its token server answers {status}: {excerpt}")]
    TokenServer {
        /// The HTTP status.
        status: StatusCode,
        /// The beginning of its answer.
        excerpt: String,
    },
    /// The token server's answer holds no token.
    #[error("its token server's answer holds no token")]
    Token(#[source] Option<serde_json::Error>),
    /// The registry does not have it.
    #[error("{what} is not there")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// Another status than success.
    #[error("it answers {status} for {what}: {excerpt}")]
    Status {
        /// The HTTP status.
        status: StatusCode,
        /// What was asked for.
        what: String,
        /// The beginning of the answer.
        excerpt: String,
    },
    /// A redirect that leads nowhere.
    #[error("it redirects {reason}")]
    Redirect {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The content is not what its name says.
    #[error("{what} has digest {found}")]
    Digest {
        /// What was asked for.
        what: String,
        /// The digest of what came.
        found: Digest,
    },
    /// The content is longer or shorter than was announced.
    #[error("{what} has {found} bytes, announced were {announced}")]
    Size {
        /// What was asked for.
        what: String,
        /// How long it is.
        found: u64,
        /// How long it should be.
        announced: u64,
    },
    /// It took too long as a whole.
    #[error("it took longer than {} s", .0.as_secs_f32())]
    Slow(std::time::Duration),
    /// The manifest is not that of an image.
    #[error("it has something else under this name")]
    Manifest(#[from] manifest::Error),
    /// The layers are longer than they may be.
    #[error("a layer has {size} bytes, more than {max}")]
    LayerTooLarge {
        /// How long it is.
        size: u64,
        /// How long it may be.
        max: usize,
    },
}

/// How a registry is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Https,
    Http,
}

/// One repository, for as long as one image is fetched from it.
#[derive(Debug)]
pub(super) struct Session<'a> {
    client: &'a http::Client,
    repository: &'a Repository,
    scheme: Scheme,
    credentials: Option<&'a Credentials>,
    retries: Retries,
    /// What the registry was convinced with last.
    authorization: Mutex<Option<HeaderValue>>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

// === impl Session ===

impl<'a> Session<'a> {
    pub(super) fn new(
        client: &'a http::Client,
        repository: &'a Repository,
        scheme: Scheme,
        credentials: Option<&'a Credentials>,
        retries: Retries,
    ) -> Self {
        let authorization = Mutex::new(None);
        Self { client, repository, scheme, credentials, retries, authorization }
    }

    /// The manifest or index that has this name.
    pub(super) async fn manifest(&self, version: &Version) -> Result<Vec<u8>, Error> {
        let (name, what) = match version {
            Version::Digest(digest) => (digest.as_str(), format!("manifest {digest}")),
            Version::Tag(tag) => (tag.as_str(), format!("tag {tag}")),
        };
        let bytes = self.content(&format!("manifests/{name}"), &what, MANIFEST_BYTES_MAX).await?;
        if let Version::Digest(digest) = version {
            verify(&bytes, digest, &what)?;
        }
        Ok(bytes)
    }

    /// A piece of content, verified.
    pub(super) async fn blob(
        &self,
        descriptor: &manifest::Descriptor,
        max: usize,
    ) -> Result<Vec<u8>, Error> {
        let (digest, announced) = (&descriptor.digest, descriptor.size);
        if announced > max as u64 {
            return Err(Error::LayerTooLarge { size: announced, max });
        }
        let what = format!("blob {digest}");
        let bytes = self.content(&format!("blobs/{digest}"), &what, max).await?;
        verify(&bytes, digest, &what)?;
        let found = bytes.len() as u64;
        if found != announced {
            return Err(Error::Size { what, found, announced });
        }
        Ok(bytes)
    }

    async fn content(&self, path: &str, what: &str, max: usize) -> Result<Vec<u8>, Error> {
        let attempt = || async {
            let (server, response) = self.get(path, what).await?;
            Ok(self.client.collect(&server, response.into_body(), max).await?)
        };
        attempt.retry(self.retries.backoff()).when(Error::is_transient).await
    }

    /// Follows the registry's wishes until it answers.
    async fn get(&self, path: &str, what: &str) -> Result<(String, Response<Incoming>), Error> {
        let scheme = self.scheme.as_str();
        let Repository { registry, path: repository } = self.repository;
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let home = uri(&format!("{scheme}://{host}/v2/{repository}/{path}"))?;
        let (mut target, mut is_convinced) = (home.clone(), false);
        for _ in 0..=REDIRECTS_MAX {
            let is_home = same_origin(&target, &home);
            let server = http::server(&target);
            let response = self.client.send(self.request(&target, is_home)?).await?;
            let status = response.status();
            if status.is_success() {
                return Ok((server, response));
            }
            if status == StatusCode::UNAUTHORIZED && is_home && !is_convinced {
                // A token that was good before may have run out: it is asked for again, once.
                is_convinced = true;
                self.convince(response.headers()).await?;
                continue;
            }
            if status.is_redirection() {
                target = self.redirect(&target, response.headers())?;
                continue;
            }
            return Err(self.refused(status, &server, response, what).await);
        }
        Err(Error::Redirect { reason: "in a circle" })
    }

    fn request(&self, target: &Uri, is_home: bool) -> Result<Request<Empty<bytes::Bytes>>, Error> {
        let mut request = Request::get(target)
            .header(ACCEPT, manifest::ACCEPT)
            .header(USER_AGENT, AGENT)
            .body(Empty::new())
            .map_err(|_| Error::Redirect { reason: "to an address that is none" })?;
        if is_home && let Some(value) = self.authorization.lock().clone() {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    fn redirect(&self, from: &Uri, headers: &HeaderMap) -> Result<Uri, Error> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or(Error::Redirect { reason: "to nowhere" })?;
        let target = if location.starts_with('/') && !location.starts_with("//") {
            let (scheme, authority) = (from.scheme_str().unwrap_or("https"), http::server(from));
            uri(&format!("{scheme}://{authority}{location}"))?
        } else {
            uri(location)?
        };
        match (self.scheme, target.scheme_str()) {
            (_, Some("https")) | (Scheme::Http, Some("http")) => Ok(target),
            _ => Err(Error::Redirect { reason: "to an address without TLS" }),
        }
    }

    async fn refused(
        &self,
        status: StatusCode,
        server: &str,
        response: Response<Incoming>,
        what: &str,
    ) -> Error {
        let had_credentials = self.credentials.is_some();
        match status {
            StatusCode::UNAUTHORIZED => Error::Unauthorized { had_credentials },
            // Many registries say so of what they do not show to just anyone.
            StatusCode::FORBIDDEN if !had_credentials => Error::Unauthorized { had_credentials },
            StatusCode::NOT_FOUND => Error::NotFound { what: what.to_owned() },
            _ => {
                let body = response.into_body();
                let excerpt = self.client.excerpt(server, body, EXCERPT_BYTES_MAX).await;
                Error::Status { status, what: what.to_owned(), excerpt }
            }
        }
    }

    async fn convince(&self, headers: &HeaderMap) -> Result<(), Error> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let challenge = Challenge::of(values.filter_map(|value| value.to_str().ok()));
        let value = match challenge.ok_or(Error::Login { reason: "it names no way" })? {
            Challenge::Basic => match self.credentials {
                Some(credentials) => credentials.basic(),
                None => return Err(Error::Unauthorized { had_credentials: false }),
            },
            Challenge::Bearer { realm, service, scope } => {
                format!("Bearer {}", self.token(&realm, service.as_deref(), scope).await?)
            }
        };
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| Error::Login { reason: "its token is no text" })?;
        value.set_sensitive(true);
        *self.authorization.lock() = Some(value);
        Ok(())
    }

    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: Option<String>,
    ) -> Result<String, Error> {
        let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository.path));
        let mut address = realm.to_owned();
        let mut separator = if realm.contains('?') { '&' } else { '?' };
        let parameters = service.map(|service| ("service", service));
        for (name, value) in parameters.into_iter().chain([("scope", scope.as_str())]) {
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
            address.push_str(&format!("{separator}{name}={value}"));
            separator = '&';
        }
        let address =
            uri(&address).map_err(|_| Error::Login { reason: "its realm is no address" })?;
        if self.scheme == Scheme::Https && address.scheme_str() != Some("https") {
            return Err(Error::Login { reason: "its token server has no TLS" });
        }
        let mut request = Request::get(&address).header(USER_AGENT, AGENT);
        if let Some(credentials) = self.credentials {
            request = request.header(AUTHORIZATION, credentials.basic());
        }
        let request = request
            .body(Empty::new())
            .map_err(|_| Error::Login { reason: "the name or password can't be sent" })?;
        let server = http::server(&address);
        let response = self.client.send(request).await?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Error::Unauthorized { had_credentials: self.credentials.is_some() });
        }
        if !status.is_success() {
            let body = response.into_body();
            let excerpt = self.client.excerpt(&server, body, EXCERPT_BYTES_MAX).await;
            return Err(Error::TokenServer { status, excerpt });
        }
        let body = self.client.collect(&server, response.into_body(), TOKEN_BYTES_MAX).await?;
        let answer: TokenAnswer =
            serde_json::from_slice(&body).map_err(|error| Error::Token(Some(error)))?;
        let tokens = [answer.token, answer.access_token];
        tokens.into_iter().find(|token| !token.is_empty()).ok_or(Error::Token(None))
    }
}

fn verify(bytes: &[u8], digest: &Digest, what: &str) -> Result<(), Error> {
    let found = Digest::of(bytes);
    if found == *digest { Ok(()) } else { Err(Error::Digest { what: what.to_owned(), found }) }
}

fn uri(text: &str) -> Result<Uri, Error> {
    let uri: Uri =
        text.parse().map_err(|_| Error::Redirect { reason: "to an address that is none" })?;
    // A name and password in an address would be sent to whoever it names.
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if is_plain { Ok(uri) } else { Err(Error::Redirect { reason: "to an address that is none" }) }
}

fn same_origin(a: &Uri, b: &Uri) -> bool {
    a.scheme() == b.scheme() && a.authority() == b.authority()
}

// === impl Scheme ===

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }
}

// === impl Error ===

impl Error {
    /// Whether the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Http(error) => error.is_transient(),
            Self::Status { status, .. } | Self::TokenServer { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Secret(_)
            | Self::Unauthorized { .. }
            | Self::Login { .. }
            | Self::Token(_)
            | Self::NotFound { .. }
            | Self::Redirect { .. }
            | Self::Digest { .. }
            | Self::Size { .. }
            | Self::Slow(_)
            | Self::Manifest(_)
            | Self::LayerTooLarge { .. } => false,
        }
    }

    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Http(error) => error.advice(),
            Self::Secret(error) => error.advice(),
            Self::Unauthorized { had_credentials: false } => {
                "give a pull secret with an entry for this registry"
            }
            Self::Unauthorized { had_credentials: true } => {
                "check the pull secret's entry for this registry: it is wrong, or may not pull this"
            }
            Self::Login { .. } | Self::TokenServer { .. } | Self::Token(_) => {
                "check the registry's login with `skopeo inspect`"
            }
            Self::NotFound { .. } => "mirror the image there, or correct the mirror rules",
            Self::Status { .. } | Self::Slow(_) => "look at the registry's log and load",
            Self::Redirect { .. } => "check the registry's configuration of its own address",
            Self::Digest { .. } | Self::Size { .. } => {
                "the registry's copy is damaged or forged: mirror the image again"
            }
            Self::Manifest(_) | Self::LayerTooLarge { .. } => {
                "check that the catalog's reference is that of a bundle image"
            }
        }
    }

    /// The error and its causes on one line.
    pub(super) fn chain(&self) -> String {
        sentence(self)
    }
}
