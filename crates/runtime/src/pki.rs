//! Certificate authorities and what they sign.
//!
//! Agents' and servers' certificates come from two authorities, so that no agent's certificate
//! can ever pose as a server. Agents' certificates leave through one function that sets every
//! field itself and takes nothing from the request but its key.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
    SanType, SerialNumber, SubjectPublicKeyInfo,
};
use wavelift_core::ids::{ClusterName, Uid};

use crate::identity;

/// How far a certificate's validity starts before it is issued: clocks of clusters differ.
const CLOCK_SKEW: Duration = Duration::from_mins(5);

/// Why a certificate or an authority could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key could not be made.
    #[error("failed to generate a key")]
    Generate(#[source] rcgen::Error),
    /// The authority's certificate or key can't be read.
    #[error("failed to read the certificate authority")]
    ReadAuthority(#[source] rcgen::Error),
    /// The authority's certificate can't be read.
    #[error("the certificate authority's certificate is malformed")]
    AuthorityForm,
    /// The key belongs to another authority.
    #[error("the certificate authority's key does not belong to its certificate")]
    AuthorityKey,
    /// The requester's key or signing request can't be read or is not signed by its own key.
    #[error("failed to read the request")]
    ReadRequest(#[source] rcgen::Error),
    /// A name can't stand in a certificate.
    #[error("`{name}` can't stand in a certificate")]
    Name {
        /// The name.
        name: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// The validity is empty, or empty after it was cut to the authority's.
    #[error("the validity from {not_before} to {not_after} is empty")]
    Validity {
        /// Its start.
        not_before: Timestamp,
        /// Its end.
        not_after: Timestamp,
    },
    /// Signing failed.
    #[error("failed to sign the certificate")]
    Sign(#[source] rcgen::Error),
}

/// From when to when a certificate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Its first moment.
    pub not_before: Timestamp,
    /// Its last.
    pub not_after: Timestamp,
}

/// A certificate authority: its certificate and its key.
pub struct Ca {
    certificate_pem: String,
    not_after: Timestamp,
    issuer: Issuer<'static, KeyPair>,
}

/// What an agent asks a certificate for. Nothing in it but the key comes from the agent.
#[derive(Debug, Clone)]
pub struct AgentCertificateRequest {
    /// The cluster that the requester was found to be.
    pub cluster: ClusterName,
    /// The uid of its ManagedCluster.
    pub uid: Uid,
    /// The agent's public key.
    pub key: RequestedKey,
}

/// The public key to certify.
#[derive(Debug, Clone)]
pub enum RequestedKey {
    /// A SubjectPublicKeyInfo in PEM.
    PublicKeyPem(String),
    /// A PKCS#10 request in PEM, signed by the key; its subject and extensions are not looked at.
    CsrPem(String),
}

/// A certificate that was issued.
#[derive(Debug, Clone)]
pub struct Issued {
    /// In PEM, the leaf alone.
    pub certificate_pem: String,
    /// Its last moment: the asked one or the authority's, whichever is earlier.
    pub not_after: Timestamp,
}

/// A private key, made where it is used.
pub struct PrivateKey(KeyPair);

// === impl Error ===

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Generate(_) => "generate",
            Self::ReadAuthority(_) | Self::AuthorityForm => "authority",
            Self::AuthorityKey => "authority_key",
            Self::ReadRequest(_) => "request",
            Self::Name { .. } => "name",
            Self::Validity { .. } => "validity",
            Self::Sign(_) => "sign",
        }
    }
}

// === impl Validity ===

impl Validity {
    /// From a little before `now`, because clocks differ, until `duration` after it.
    pub fn starting(now: Timestamp, duration: Duration) -> Self {
        let shifted = |by: SignedDuration, otherwise| now.checked_add(by).unwrap_or(otherwise);
        let skew = SignedDuration::try_from(CLOCK_SKEW).unwrap_or(SignedDuration::ZERO);
        let length = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        Self {
            not_before: shifted(-skew, Timestamp::MIN),
            not_after: shifted(length, Timestamp::MAX),
        }
    }

    /// From a little before the machine's time until `duration` after it.
    pub fn from_now(duration: Duration) -> Self {
        Self::starting(Timestamp::now(), duration)
    }

    fn checked(self) -> Result<Self, Error> {
        let Self { not_before, not_after } = self;
        if not_before < not_after {
            Ok(self)
        } else {
            Err(Error::Validity { not_before, not_after })
        }
    }

    fn until(self, end: Timestamp) -> Self {
        Self { not_after: self.not_after.min(end), ..self }
    }
}

// === impl Ca ===

impl Ca {
    /// Makes a new authority with a P-256 key.
    pub fn generate(common_name: &str, validity: Validity) -> Result<Self, Error> {
        let key = KeyPair::generate().map_err(Error::Generate)?;
        let mut params = params(validity.checked()?);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(Error::Sign)?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            not_after: validity.not_after,
            issuer: Issuer::new(params, key),
        })
    }

    /// Reads an authority from the PEM of its certificate and of its PKCS#8 key.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let key = KeyPair::from_pem(key_pem).map_err(Error::ReadAuthority)?;
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate_pem.as_bytes())
            .map_err(|_| Error::AuthorityForm)?;
        let certificate = pem.parse_x509().map_err(|_| Error::AuthorityForm)?;
        if certificate.public_key().raw != key.subject_public_key_info() {
            return Err(Error::AuthorityKey);
        }
        let not_after = Timestamp::from_second(certificate.validity().not_after.timestamp())
            .map_err(|_| Error::AuthorityForm)?;
        let issuer =
            Issuer::from_ca_cert_pem(certificate_pem, key).map_err(Error::ReadAuthority)?;
        Ok(Self { certificate_pem: certificate_pem.to_owned(), not_after, issuer })
    }

    /// The certificate in PEM, for whoever verifies what this authority signed.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key in PEM, for the authority's Secret and nothing else.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The end of the authority itself.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    fn sign(
        &self,
        params: &CertificateParams,
        key: &impl PublicKeyData,
        validity: Validity,
    ) -> Result<Issued, Error> {
        let certificate = params.signed_by(key, &self.issuer).map_err(Error::Sign)?;
        Ok(Issued { certificate_pem: certificate.pem(), not_after: validity.not_after })
    }
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ca").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

// === impl PrivateKey ===

impl PrivateKey {
    /// Makes a new P-256 key.
    pub fn generate() -> Result<Self, Error> {
        KeyPair::generate().map(Self).map_err(Error::Generate)
    }

    /// The private key in PEM (PKCS#8).
    pub fn key_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// The public key in PEM, to ask a certificate for.
    pub fn public_key_pem(&self) -> String {
        self.0.public_key_pem()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// Signs the certificate of one cluster's agent: its exact subject, its uid, client use alone.
///
/// Whoever calls this has made sure that the requester is that cluster; the function makes sure
/// that the certificate says that cluster and nothing more.
pub fn issue_agent_certificate(
    ca: &Ca,
    request: &AgentCertificateRequest,
    validity: Validity,
) -> Result<Issued, Error> {
    let AgentCertificateRequest { cluster, uid, key } = request;
    let validity = validity.until(ca.not_after).checked()?;
    let mut params = params(validity);
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, identity::common_name(cluster));
    name.push(DnType::OrganizationName, identity::organization(cluster));
    let uri = identity::uid_uri(uid);
    let uri =
        uri.as_str().try_into().map_err(|source| Error::Name { name: uri.clone(), source })?;
    params.subject_alt_names = vec![SanType::URI(uri)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    match key {
        RequestedKey::PublicKeyPem(pem) => {
            let key = SubjectPublicKeyInfo::from_pem(pem).map_err(Error::ReadRequest)?;
            ca.sign(&params, &key, validity)
        }
        RequestedKey::CsrPem(pem) => {
            let csr = CertificateSigningRequestParams::from_pem(pem).map_err(Error::ReadRequest)?;
            ca.sign(&params, &csr.public_key, validity)
        }
    }
}

/// Signs a server's certificate for `names` (DNS names or IP addresses), server use alone.
pub fn issue_server_certificate(
    ca: &Ca,
    names: &[String],
    key: &PrivateKey,
    validity: Validity,
) -> Result<Issued, Error> {
    let validity = validity.until(ca.not_after).checked()?;
    let sans = CertificateParams::new(names)
        .map_err(|source| Error::Name { name: names.join(", "), source })?
        .subject_alt_names;
    let mut params = params(validity);
    params.distinguished_name.push(DnType::CommonName, "wavelift-hub");
    params.subject_alt_names = sans;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    ca.sign(&params, &key.0, validity)
}

/// The fields that all our certificates share.
fn params(validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = SystemTime::from(validity.not_before).into();
    params.not_after = SystemTime::from(validity.not_after).into();
    // rcgen's own serial is a digest of the key, the same for each renewal.
    params.serial_number = Some(SerialNumber::from_slice(uuid::Uuid::new_v4().as_bytes()));
    params.use_authority_key_identifier_extension = true;
    params
}

#[cfg(test)]
mod tests;
