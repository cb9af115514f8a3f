//! Why somebody is turned away, in words for the agent's log, the hub's log and the metric.

use rustls::CertificateError;
use tonic::{Code, Status, metadata::MetadataValue};
use wavelift_core::{
    fence::Term,
    ids::{ClusterName, Uid},
};
use wavelift_runtime::identity;

use super::settings::Limits;

/// The header that carries a refusal's kind to the agent.
pub(super) const KIND_HEADER: &str = "wavelift-refusal";

/// Why somebody is turned away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The TLS client showed no certificate.
    #[error("no client certificate: give the agent the certificate that the hub's signer issued")]
    NoCertificate,
    /// The certificate comes from another authority.
    #[error(
        "the certificate is not from this hub's agent authority: let the agent ask for a new one"
    )]
    UnknownIssuer,
    /// The certificate has ended.
    #[error("the certificate has expired: look why the agent's renewal fails")]
    CertificateExpired,
    /// The certificate has not begun.
    #[error("the certificate is not valid yet: compare the clocks of hub and cluster")]
    CertificateNotYetValid,
    /// The certificate is wrong in another way.
    #[error("the certificate can't be used ({0}): let the agent ask for a new one")]
    CertificateInvalid(String),
    /// The handshake failed for another reason than the certificate.
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
    /// The peer went away during the handshake, as load balancers' probes do.
    #[error("the peer went away during the TLS handshake")]
    HandshakeAborted,
    /// The handshake took too long.
    #[error("the TLS handshake took too long")]
    HandshakeTimeout,
    /// There are too many connections.
    #[error("the hub has too many connections: try again later")]
    TooManyConnections,
    /// The certificate does not name an agent of ours.
    #[error("{0}: let the agent ask for a new certificate")]
    Identity(identity::Error),
    /// This hub does not lead.
    #[error("this hub is a standby: connect again, the Service routes to the leader")]
    NotLeader,
    /// The hub's process is about to end.
    #[error("this hub is shutting down: connect again, the Service routes to the leader")]
    Draining,
    /// The first message was no Hello, or none came in time.
    #[error("the first message must be a Hello: use an agent of this hub's version")]
    NoHello,
    /// The agent believes to be on another cluster than its certificate says.
    #[error(
        "the agent believes to be on `{claimed}` but its certificate is `{certified}`'s: correct \
         the agent's cluster name or give it that cluster's certificate"
    )]
    OtherCluster {
        /// What the agent believes.
        claimed: String,
        /// What the certificate says.
        certified: ClusterName,
    },
    /// There is no protocol version that both speak.
    #[error(
        "the agent speaks protocol {min} to {max}, this hub {hub_min} to {hub_max}: bring both to \
         versions that support each other"
    )]
    Protocol {
        /// The agent's lowest.
        min: u32,
        /// The agent's highest.
        max: u32,
        /// The hub's lowest.
        hub_min: u32,
        /// The hub's highest.
        hub_max: u32,
    },
    /// The agent has obeyed a later leader.
    #[error("the agent has seen term {seen}, this hub leads term {term}: another hub leads now")]
    OldTerm {
        /// The agent's.
        seen: Term,
        /// This hub's.
        term: Term,
    },
    /// The rest of the hub does not admit the cluster.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// There are too many sessions.
    #[error("the hub has too many sessions: try again later, or raise its limit")]
    TooManySessions,
    /// A message was longer than the limit that Welcome named.
    #[error("a message was longer than {limit} bytes")]
    MessageTooLarge {
        /// The limit.
        limit: usize,
    },
    /// Too many messages came in too short a time.
    #[error("more than {per_second} messages a second: look what the agent repeats")]
    Flood {
        /// The limit.
        per_second: u32,
    },
    /// A message breaks the contract.
    #[error("malformed message: {0}")]
    Malformed(String),
}

/// Why the hub does not admit a cluster whose certificate is good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is no such cluster.
    #[error("there is no ManagedCluster of this name: import the cluster again")]
    UnknownCluster,
    /// It is not accepted.
    #[error("the ManagedCluster is not accepted: set `spec.hubAcceptsClient`")]
    NotAccepted,
    /// The name belongs to another life of the cluster.
    #[error(
        "the certificate belongs to an earlier ManagedCluster of this name, now its uid is \
         {expected}: let the agent ask for a new certificate"
    )]
    OtherUid {
        /// The ManagedCluster's uid now.
        expected: Uid,
    },
    /// It could not be told.
    #[error("the hub can't tell whether the cluster is accepted ({0}): try again later")]
    Unavailable(String),
}

// === impl Refusal ===

impl Refusal {
    /// A short name for metrics, logs and the agent.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoCertificate => "no_certificate",
            Self::UnknownIssuer => "unknown_issuer",
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateNotYetValid => "certificate_not_yet_valid",
            Self::CertificateInvalid(_) => "certificate_invalid",
            Self::Handshake(_) => "handshake",
            Self::HandshakeAborted => "handshake_aborted",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::TooManyConnections => "too_many_connections",
            Self::Identity(error) => error.kind(),
            Self::NotLeader => "not_leader",
            Self::Draining => "draining",
            Self::NoHello => "no_hello",
            Self::OtherCluster { .. } => "other_cluster",
            Self::Protocol { .. } => "protocol",
            Self::OldTerm { .. } => "old_term",
            Self::Denied(denied) => denied.kind(),
            Self::TooManySessions => "too_many_sessions",
            Self::MessageTooLarge { .. } => "message_too_large",
            Self::Flood { .. } => "flood",
            Self::Malformed(_) => "malformed",
        }
    }

    /// Reads a failed TLS handshake.
    pub(super) fn from_handshake(error: &std::io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(rustls::Error::NoCertificatesPresented) => Self::NoCertificate,
            Some(rustls::Error::InvalidCertificate(why)) => Self::from_certificate(why),
            Some(other) => Self::Handshake(other.to_string()),
            None if error.kind() == std::io::ErrorKind::UnexpectedEof
                || error.kind() == std::io::ErrorKind::ConnectionReset =>
            {
                Self::HandshakeAborted
            }
            None => Self::Handshake(error.to_string()),
        }
    }

    /// Reads a broken stream: whether the agent broke a limit, or only the connection broke.
    ///
    /// The libraries below have no types for these, so their codes and words are looked at.
    pub(super) fn from_stream(status: &Status, limits: &Limits) -> Option<Self> {
        if status.code() == Code::OutOfRange && status.message().contains("too large") {
            return Some(Self::MessageTooLarge { limit: limits.message_bytes_max });
        }
        // While the hub is busy, HTTP/2 notices a flood of small messages before we read them.
        let mut next = std::error::Error::source(status);
        while let Some(error) = next {
            let text = error.to_string();
            if text.contains("connection error detected") && text.contains("too_many_data_frames") {
                return Some(Self::Flood { per_second: limits.messages_per_second });
            }
            next = error.source();
        }
        None
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "rustls' enum may grow")]
    fn from_certificate(why: &CertificateError) -> Self {
        match why {
            // A certificate of another authority that bears ours' name fails by its signature.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Self::CertificateExpired
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::CertificateNotYetValid
            }
            other => Self::CertificateInvalid(other.to_string()),
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::NoCertificate
            | Self::UnknownIssuer
            | Self::CertificateExpired
            | Self::CertificateNotYetValid
            | Self::CertificateInvalid(_)
            | Self::Identity(_)
            | Self::Handshake(_)
            | Self::HandshakeAborted
            | Self::HandshakeTimeout => Code::Unauthenticated,
            Self::NotLeader | Self::Draining | Self::Denied(Denied::Unavailable(_)) => {
                Code::Unavailable
            }
            Self::NoHello | Self::Malformed(_) | Self::MessageTooLarge { .. } => {
                Code::InvalidArgument
            }
            Self::OtherCluster { .. }
            | Self::Denied(
                Denied::UnknownCluster | Denied::NotAccepted | Denied::OtherUid { .. },
            ) => Code::PermissionDenied,
            Self::Protocol { .. } | Self::OldTerm { .. } => Code::FailedPrecondition,
            Self::TooManyConnections | Self::TooManySessions | Self::Flood { .. } => {
                Code::ResourceExhausted
            }
        }
    }

    /// What the agent is told.
    pub(super) fn status(&self) -> Status {
        let mut status = Status::new(self.code(), self.to_string());
        status.metadata_mut().insert(KIND_HEADER, MetadataValue::from_static(self.kind()));
        status
    }
}

// === impl Denied ===

impl Denied {
    /// A short name for metrics, logs and the agent.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownCluster => "unknown_cluster",
            Self::NotAccepted => "not_accepted",
            Self::OtherUid { .. } => "other_uid",
            Self::Unavailable(_) => "admission_unavailable",
        }
    }
}
