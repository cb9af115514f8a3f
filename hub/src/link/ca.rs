//! The hub's two certificate authorities, kept in Secrets.
//!
//! They are made once, by whichever replica comes first; a Secret that is there is never written
//! again, whatever it holds.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Client,
    api::{Api, ObjectMeta, PostParams},
};
use tracing::info;
use wavelift_runtime::pki::{self, Ca, Validity};

/// The Secret of the authority that signs agents' certificates.
pub const AGENT_CA_SECRET: &str = "wavelift-agent-ca";
/// The Secret of the authority that signs servers' certificates.
pub const SERVER_CA_SECRET: &str = "wavelift-server-ca";

const CERTIFICATE_KEY: &str = "tls.crt";
const PRIVATE_KEY_KEY: &str = "tls.key";
const CA_KEY: &str = "ca.crt";
const CA_LIFETIME: Duration = Duration::from_hours(24 * 3_650);

/// Why an authority is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading the Secret failed.
    #[error("failed to read the Secret {name}")]
    Read {
        /// The Secret.
        name: &'static str,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// Creating the Secret failed.
    #[error("failed to create the Secret {name}")]
    Create {
        /// The Secret.
        name: &'static str,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Secret lacks a key, or holds no text there.
    #[error("the Secret {name} has no usable `{key}`: restore it, or delete it to have a new one")]
    Missing {
        /// The Secret.
        name: &'static str,
        /// The key.
        key: &'static str,
    },
    /// The authority can't be made, or what the Secret holds is none.
    #[error("failed to use the authority of the Secret {name}")]
    Pki {
        /// The Secret.
        name: &'static str,
        /// Why.
        #[source]
        source: pki::Error,
    },
}

/// The hub's two authorities.
#[derive(Debug)]
pub struct Authorities {
    /// Signs agents' certificates.
    pub agents: Ca,
    /// Signs servers' certificates.
    pub servers: Ca,
}

/// Where the authorities are kept.
#[derive(Clone)]
pub struct CaStore {
    secrets: Api<Secret>,
}

// === impl Error ===

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Create { .. } => "create",
            Self::Missing { .. } => "missing",
            Self::Pki { .. } => "pki",
        }
    }
}

// === impl Authorities ===

impl Authorities {
    /// Makes both anew, for a hub that keeps them nowhere.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self { agents: generate(AGENT_CA_SECRET)?, servers: generate(SERVER_CA_SECRET)? })
    }
}

// === impl CaStore ===

impl std::fmt::Debug for CaStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaStore").finish_non_exhaustive()
    }
}

impl CaStore {
    /// The store in `namespace`, the hub's own.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { secrets: Api::namespaced(client, namespace) }
    }

    /// Reads both authorities, and makes those that are not there.
    pub async fn load_or_create(&self) -> Result<Authorities, Error> {
        Ok(Authorities {
            agents: self.one(AGENT_CA_SECRET).await?,
            servers: self.one(SERVER_CA_SECRET).await?,
        })
    }

    async fn one(&self, name: &'static str) -> Result<Ca, Error> {
        if let Some(secret) = self.read(name).await? {
            return parse(name, &secret);
        }
        let ca = generate(name)?;
        match self.secrets.create(&PostParams::default(), &secret(name, &ca)).await {
            Ok(_) => {
                info!(secret = name, "made a certificate authority");
                Ok(ca)
            }
            // Another replica was faster; its authority is the one.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let found = self.read(name).await?;
                let found = found.ok_or(Error::Missing { name, key: CERTIFICATE_KEY })?;
                parse(name, &found)
            }
            Err(source) => Err(Error::Create { name, source: Box::new(source) }),
        }
    }

    async fn read(&self, name: &'static str) -> Result<Option<Secret>, Error> {
        let read = self.secrets.get_opt(name).await;
        read.map_err(|source| Error::Read { name, source: Box::new(source) })
    }
}

fn generate(name: &'static str) -> Result<Ca, Error> {
    Ca::generate(name, Validity::from_now(CA_LIFETIME))
        .map_err(|source| Error::Pki { name, source })
}

fn secret(name: &str, ca: &Ca) -> Secret {
    let certificate = ca.certificate_pem().as_bytes().to_vec();
    let data = BTreeMap::from([
        (CERTIFICATE_KEY.to_owned(), ByteString(certificate.clone())),
        (PRIVATE_KEY_KEY.to_owned(), ByteString(ca.key_pem().into_bytes())),
        (CA_KEY.to_owned(), ByteString(certificate)),
    ]);
    let labels = BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "wavelift".to_owned()),
        ("app.kubernetes.io/component".to_owned(), "hub".to_owned()),
    ]);
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

fn parse(name: &'static str, secret: &Secret) -> Result<Ca, Error> {
    let text = |key: &'static str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key));
        bytes
            .and_then(|ByteString(bytes)| std::str::from_utf8(bytes).ok())
            .ok_or(Error::Missing { name, key })
    };
    Ca::from_pem(text(CERTIFICATE_KEY)?, text(PRIVATE_KEY_KEY)?)
        .map_err(|source| Error::Pki { name, source })
}

#[cfg(test)]
mod tests;
