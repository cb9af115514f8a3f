//! TLS as both ends of the link speak it: rustls with ring, version 1.3 alone, both sides proven.
//!
//! A configuration is immutable; what rotates is which one is current. So both ends take a
//! `watch::Receiver` of configurations and look at it for each new connection.

mod reload;

use std::{io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{VerifierBuilderError, WebPkiClientVerifier},
    version::TLS13,
};

pub use self::reload::{fixed, watch_dir};

/// The longest PEM file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read.
    #[error("failed to read {path}")]
    Read {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is longer than any certificate.
    #[error("{path} is longer than {FILE_BYTES_MAX} bytes")]
    TooLong {
        /// Its path.
        path: String,
    },
    /// A PEM text holds nothing, or something malformed.
    #[error("the PEM of the {what} holds no usable entry")]
    Pem {
        /// Which of the three.
        what: &'static str,
        /// Why; absent when it is empty.
        #[source]
        source: Option<rustls::pki_types::pem::Error>,
    },
    /// The authority's certificate can't be used, or there is none.
    #[error("failed to use the certificate authority")]
    Authority(#[source] rustls::Error),
    /// The same, for the side that verifies clients.
    #[error("failed to use the certificate authority")]
    ClientAuthority(#[source] VerifierBuilderError),
    /// The certificate and the key don't go together, or are of an unknown kind.
    #[error("failed to use the certificate and its key")]
    Certificate(#[source] rustls::Error),
}

/// A certificate chain, its key, and the authority that the other side is verified against; PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Material {
    /// The own certificate, leaf first (`tls.crt`).
    pub certificates: Vec<u8>,
    /// Its private key (`tls.key`).
    pub key: Vec<u8>,
    /// The authorities of the other side (`ca.crt`).
    pub ca: Vec<u8>,
}

/// Makes ring the process's provider; once in each `main` and test, again without harm.
pub fn install_crypto() {
    // The error says that there is one already, which is this one or a test's.
    drop(ring::default_provider().install_default());
}

/// The hub's side: asks every client for a certificate of our authority.
pub fn server_config(material: &Material) -> Result<Arc<ServerConfig>, Error> {
    let roots = Arc::new(material.roots()?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(Error::ClientAuthority)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(Error::Certificate)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(material.chain()?, material.private_key()?)
        .map_err(Error::Certificate)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Tickets are sealed with a key of this configuration: after a reload nobody resumes a
    // session that the former authority vouched for.
    config.ticketer = ring::Ticketer::new().map_err(Error::Certificate)?;
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// The agent's side: trusts our server authority alone and shows its own certificate.
pub fn client_config(material: &Material) -> Result<Arc<ClientConfig>, Error> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(Error::Certificate)?
        .with_root_certificates(material.roots()?)
        .with_client_auth_cert(material.chain()?, material.private_key()?)
        .map_err(Error::Certificate)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

// === impl Error ===

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::TooLong { .. } => "too_long",
            Self::Pem { .. } => "pem",
            Self::Authority(_) | Self::ClientAuthority(_) => "authority",
            Self::Certificate(_) => "certificate",
        }
    }
}

// === impl Material ===

impl Material {
    /// Reads `tls.crt`, `tls.key` and `ca.crt`, as a Secret of type `kubernetes.io/tls` is mounted.
    pub async fn read_dir(dir: &Path) -> Result<Self, Error> {
        Ok(Self {
            certificates: read(&dir.join("tls.crt")).await?,
            key: read(&dir.join("tls.key")).await?,
            ca: read(&dir.join("ca.crt")).await?,
        })
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        certificates("certificate", &self.certificates)
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("certificate authority", &self.ca)? {
            roots.add(certificate).map_err(Error::Authority)?;
        }
        Ok(roots)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|source| Error::Pem { what: "private key", source: Some(source) })
    }
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Material").finish_non_exhaustive()
    }
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|source| Error::Pem { what, source: Some(source) })?;
    if found.is_empty() { Err(Error::Pem { what, source: None }) } else { Ok(found) }
}

async fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let shown = || path.display().to_string();
    let failed = |source| Error::Read { path: shown(), source };
    let length = tokio::fs::metadata(path).await.map_err(failed)?.len();
    if length > FILE_BYTES_MAX {
        return Err(Error::TooLong { path: shown() });
    }
    tokio::fs::read(path).await.map_err(failed)
}

#[cfg(test)]
mod tests;
