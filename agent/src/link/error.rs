//! Why there is no session, or none any more.

use std::{error::Error as StdError, io};

use tonic::Status;
use wavelift_core::{causes::sentence, fence::Term};

/// The header in which the hub names the kind of its refusal.
const KIND_HEADER: &str = "wavelift-refusal";

/// Why there is no session, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hub's address is none.
    #[error("the hub's address can't be used: {0}")]
    Address(String),
    /// Nobody listens there.
    #[error("failed to connect to the hub")]
    Tcp(#[source] io::Error),
    /// The hub's certificate is not what it must be, or the handshake failed otherwise.
    #[error("failed to establish TLS with the hub")]
    Tls(#[source] io::Error),
    /// The hub did not like our certificate.
    #[error("the hub refused this agent's certificate: {0}")]
    CertificateRefused(String),
    /// HTTP/2 could not be established.
    #[error("failed to connect to the hub")]
    Transport(#[source] tonic::transport::Error),
    /// The hub did not answer in time.
    #[error("the hub did not answer in time ({0})")]
    TimedOut(&'static str),
    /// The hub refused the session.
    #[error("the hub refused ({kind}): {message}")]
    Refused {
        /// The refusal's kind.
        kind: String,
        /// What was wrong and what to do.
        message: String,
    },
    /// The session broke.
    #[error("the session broke")]
    Broken(#[source] Box<Status>),
    /// The hub closed the session without a word.
    #[error("the hub closed the session")]
    Closed,
    /// The hub gave no sign of life.
    #[error("the hub gave no sign of life")]
    Silent,
    /// The hub's first message was no Welcome.
    #[error("the hub's first message was no Welcome")]
    NoWelcome,
    /// The hub chose a protocol version that this agent does not speak.
    #[error("the hub speaks protocol {0}, this agent does not")]
    Protocol(u32),
    /// The hub's leader is older than one this agent has obeyed.
    #[error("the hub leads term {offered}, this agent has obeyed term {seen}")]
    OldTerm {
        /// The highest term seen.
        seen: Term,
        /// The hub's.
        offered: Term,
    },
    /// A message breaks the contract.
    #[error("malformed message of the hub: {0}")]
    Malformed(String),
}

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::Tcp(_) => "tcp",
            Self::Tls(_) => "tls",
            Self::CertificateRefused(_) => "certificate_refused",
            Self::Transport(_) => "transport",
            Self::TimedOut(_) => "timed_out",
            Self::Refused { .. } => "refused",
            Self::Broken(_) => "broken",
            Self::Closed => "closed",
            Self::Silent => "silent",
            Self::NoWelcome => "no_welcome",
            Self::Protocol(_) => "protocol",
            Self::OldTerm { .. } => "old_term",
            Self::Malformed(_) => "malformed",
        }
    }

    /// Reads how a stream ended.
    pub(super) fn from_status(status: Status) -> Self {
        let kind = status.metadata().get(KIND_HEADER).and_then(|kind| kind.to_str().ok());
        if let Some(kind) = kind {
            let (kind, message) = (kind.to_owned(), status.message().to_owned());
            return Self::Refused { kind, message };
        }
        alert(&status).map_or_else(|| Self::Broken(Box::new(status)), Self::CertificateRefused)
    }

    /// Reads why HTTP/2 could not be established.
    pub(super) fn from_transport(error: tonic::transport::Error) -> Self {
        alert(&error).map_or_else(|| Self::Transport(error), Self::CertificateRefused)
    }

    /// The error and what caused it, in one line.
    pub(super) fn chain(&self) -> String {
        sentence(self)
    }
}

/// The TLS alert among the causes of an error. In TLS 1.3 the hub looks at our certificate when
/// our side of the handshake is over, so its word comes with the first thing that is read, and
/// there HTTP/2 keeps of it nothing but its text.
fn alert(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<io::Error>()
            && let Some(alert) = error.to_string().strip_prefix("received fatal alert: ")
        {
            return Some(alert.to_owned());
        }
        next = error.source();
    }
    None
}
