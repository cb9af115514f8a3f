//! Who an agent is: the form of its certificate's subject, written by the signer and read by the
//! link.
//!
//! The cluster is named by the common name, repeated in the organization, and pinned to one life
//! of the ManagedCluster by its uid in a URI SAN. Anything that deviates is no identity of ours.

use jiff::Timestamp;
use wavelift_core::ids::{ClusterName, Uid};
use x509_parser::{
    certificate::X509Certificate, extensions::GeneralName, oid_registry, parse_x509_certificate,
};

/// The add-on's name, as it stands in subjects.
pub const ADDON: &str = "wavelift";
/// The agent's name, as it stands in common names.
pub const AGENT: &str = "wavelift-agent";
const UID_PREFIX: &str = "urn:wavelift:managedcluster-uid:";

/// Why a verified certificate is no agent's identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The certificate can't be read.
    #[error("the certificate is malformed")]
    Malformed,
    /// The common name has another form.
    #[error(
        "the common name `{found}` is not \
         `system:open-cluster-management:cluster:<cluster>:addon:wavelift:agent:wavelift-agent`"
    )]
    CommonName {
        /// What stands there, cut to what can be shown.
        found: String,
    },
    /// The common name is one of another add-on's agent.
    #[error("the certificate belongs to the add-on `{found}`, not to `wavelift`")]
    Addon {
        /// The other add-on.
        found: String,
    },
    /// The organization does not repeat the cluster, or there are several.
    #[error("the organization is not exactly `{expected}`")]
    Organization {
        /// What should stand there.
        expected: String,
    },
    /// There is no uid of a ManagedCluster in it, or more than one, or a malformed one.
    #[error("{found} SANs `urn:wavelift:managedcluster-uid:<uid>` where there must be exactly one")]
    ClusterUid {
        /// How many well-formed ones there are.
        found: usize,
    },
    /// It is not valid yet.
    #[error("the certificate is not valid before {not_before}")]
    NotYetValid {
        /// When it will be.
        not_before: Timestamp,
    },
    /// It is not valid any more.
    #[error("the certificate expired at {not_after}")]
    Expired {
        /// When it ended.
        not_after: Timestamp,
    },
}

/// An agent as its verified certificate names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentIdentity {
    /// The managed cluster.
    pub cluster: ClusterName,
    /// The uid of its ManagedCluster when the certificate was issued.
    pub uid: Uid,
    /// The end of the certificate.
    pub not_after: Timestamp,
}

/// The common name of the agent of `cluster`.
pub fn common_name(cluster: &ClusterName) -> String {
    format!("{}:agent:{AGENT}", organization(cluster))
}

/// The organization of the agent of `cluster`.
pub fn organization(cluster: &ClusterName) -> String {
    format!("system:open-cluster-management:cluster:{cluster}:addon:{ADDON}")
}

/// The URI that pins a certificate to one life of a ManagedCluster.
pub fn uid_uri(uid: &Uid) -> String {
    format!("{UID_PREFIX}{uid}")
}

// === impl Error ===

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Malformed => "certificate_malformed",
            Self::CommonName { .. } => "subject_form",
            Self::Addon { .. } => "subject_addon",
            Self::Organization { .. } => "subject_organization",
            Self::ClusterUid { .. } => "subject_uid",
            Self::NotYetValid { .. } => "certificate_not_yet_valid",
            Self::Expired { .. } => "certificate_expired",
        }
    }
}

// === impl AgentIdentity ===

impl AgentIdentity {
    /// Reads the identity from a leaf certificate whose chain has been verified.
    ///
    /// The validity is looked at again as of `now`, because a resumed TLS session brings back a
    /// certificate that was verified when the session was new.
    pub fn from_leaf(der: &[u8], now: Timestamp) -> Result<Self, Error> {
        let (rest, certificate) = parse_x509_certificate(der).map_err(|_| Error::Malformed)?;
        if !rest.is_empty() {
            return Err(Error::Malformed);
        }
        let not_after = valid_until(&certificate, now)?;
        let cluster = cluster(&certificate)?;
        let expected = organization(&cluster);
        let organizations: Vec<&str> = certificate
            .subject()
            .iter_organization()
            .map(|attribute| attribute.as_str().unwrap_or_default())
            .collect();
        if organizations != [expected.as_str()] {
            return Err(Error::Organization { expected });
        }
        Ok(Self { cluster, uid: uid(&certificate)?, not_after })
    }
}

fn valid_until(certificate: &X509Certificate<'_>, now: Timestamp) -> Result<Timestamp, Error> {
    let at = |seconds| Timestamp::from_second(seconds).map_err(|_| Error::Malformed);
    let not_before = at(certificate.validity().not_before.timestamp())?;
    let not_after = at(certificate.validity().not_after.timestamp())?;
    if now < not_before {
        return Err(Error::NotYetValid { not_before });
    }
    // Inclusive, as in RFC 5280 and in the verification of the chain.
    if now.as_second() > not_after.as_second() {
        return Err(Error::Expired { not_after });
    }
    Ok(not_after)
}

fn cluster(certificate: &X509Certificate<'_>) -> Result<ClusterName, Error> {
    let names: Vec<&str> = certificate
        .subject()
        .iter_by_oid(&oid_registry::OID_X509_COMMON_NAME)
        .map(|attribute| attribute.as_str().unwrap_or_default())
        .collect();
    let malformed = || Error::CommonName { found: names.join(", ").chars().take(160).collect() };
    let [name] = names.as_slice() else { return Err(malformed()) };
    let parts: Vec<&str> = name.split(':').collect();
    let ["system", "open-cluster-management", "cluster", cluster, "addon", addon, "agent", agent] =
        parts.as_slice()
    else {
        return Err(malformed());
    };
    if *addon != ADDON {
        return Err(Error::Addon { found: addon.chars().take(80).collect() });
    }
    if *agent != AGENT {
        return Err(malformed());
    }
    ClusterName::try_from(*cluster).map_err(|_| malformed())
}

fn uid(certificate: &X509Certificate<'_>) -> Result<Uid, Error> {
    let names = certificate.subject_alternative_name().map_err(|_| Error::Malformed)?;
    let uris =
        names.iter().flat_map(|extension| &extension.value.general_names).filter_map(|name| {
            if let GeneralName::URI(uri) = name { uri.strip_prefix(UID_PREFIX) } else { None }
        });
    let mut uids: Vec<Result<Uid, _>> = uris.map(Uid::try_from).collect();
    let found = uids.iter().filter(|uid| uid.is_ok()).count();
    match (uids.pop(), uids.is_empty()) {
        (Some(Ok(uid)), true) => Ok(uid),
        (Some(Ok(_) | Err(_)) | None, _) => Err(Error::ClusterUid { found }),
    }
}

#[cfg(test)]
mod tests;
