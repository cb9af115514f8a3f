//! Which certificate authorities a server is verified against.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

/// Whose word counts for a server's certificate.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// The authorities that this system trusts.
    #[default]
    System,
    /// These as well; PEM. What a cluster's `additionalTrustedCA` is.
    SystemAnd(Vec<u8>),
    /// These alone; PEM.
    Only(Vec<u8>),
}

/// Why there is nothing to verify a server with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bundle of authorities can't be read.
    #[error("the CA bundle is not PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The bundle holds no certificate.
    #[error("the CA bundle holds no certificate")]
    Empty,
    /// A certificate of the bundle is of no use.
    #[error("certificate {index} of the CA bundle can't be used")]
    Certificate {
        /// Which one, counted from 1.
        index: usize,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The TLS library refuses its own defaults.
    #[error("failed to configure TLS")]
    Tls(#[source] rustls::Error),
}

// === impl Trust ===

impl Trust {
    pub(crate) fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        let (is_system, bundle) = match self {
            Self::System => (true, None),
            Self::SystemAnd(bundle) => (true, Some(bundle)),
            Self::Only(bundle) => (false, Some(bundle)),
        };
        if is_system {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "some of the system's authorities can't be read");
            }
            let (added, unusable) = roots.add_parsable_certificates(found.certs);
            tracing::debug!(added, unusable, "the system's authorities");
        }
        if let Some(bundle) = bundle {
            add(&mut roots, bundle)?;
        }
        Ok(roots)
    }

    pub(crate) fn client_config(&self) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?;
        Ok(builder.with_root_certificates(self.roots()?).with_no_client_auth())
    }
}

fn add(roots: &mut RootCertStore, bundle: &[u8]) -> Result<(), Error> {
    let found: Vec<_> =
        CertificateDer::pem_slice_iter(bundle).collect::<Result<_, _>>().map_err(Error::Pem)?;
    if found.is_empty() {
        return Err(Error::Empty);
    }
    for (index, certificate) in found.into_iter().enumerate() {
        roots.add(certificate).map_err(|source| Error::Certificate { index: index + 1, source })?;
    }
    Ok(())
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::SystemAnd(_) => "SystemAnd(..)",
            Self::Only(_) => "Only(..)",
        })
    }
}

// === impl Error ===

impl Error {
    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Pem(_) | Self::Empty | Self::Certificate { .. } => {
                "give the CA bundle as PEM: one or more blocks `BEGIN CERTIFICATE`"
            }
            Self::Tls(_) => "report this: the TLS library was built without what it needs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_read_whole_or_refused() {
        let ca = |name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
            params.self_signed(&key).unwrap().pem()
        };
        let two = format!("# a comment\n{}{}", ca("a"), ca("b"));
        assert_eq!(Trust::Only(two.into_bytes()).roots().unwrap().len(), 2);
        for (bundle, expected) in [
            ("", "the CA bundle holds no certificate"),
            ("no PEM at all", "the CA bundle holds no certificate"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "certificate 1 of the CA bundle can't be used",
            ),
        ] {
            let error = Trust::Only(bundle.as_bytes().to_vec()).roots().unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
