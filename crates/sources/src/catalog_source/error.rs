//! Why a registry's catalog can't be had.

use std::time::Duration;

use tonic::{Code, Status};
use wavelift_catalog::fbc;

use crate::trust;

/// Why a registry's catalog can't be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error("`{address}` is no address of a catalog's registry")]
    Address {
        /// The address as given.
        address: String,
        /// What is wrong with it.
        #[source]
        source: Box<tonic::transport::Error>,
    },
    /// There is nothing to verify the registry with.
    #[error("failed to prepare TLS")]
    Trust(#[source] trust::Error),
    /// A call failed.
    #[error("catalog registry {address}: {call} failed")]
    Call {
        /// Where the registry is.
        address: String,
        /// Which call.
        call: String,
        /// What the registry or the connection said.
        #[source]
        source: Box<Status>,
    },
    /// The registry took too long.
    #[error("catalog registry {address}: {call} was silent for more than {} s", .after.as_secs_f32())]
    Silent {
        /// Where the registry is.
        address: String,
        /// Which call.
        call: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// More than the limits allow.
    #[error("catalog registry {address} serves more than {max} {what}")]
    TooLarge {
        /// Where the registry is.
        address: String,
        /// What is too many.
        what: &'static str,
        /// How many may be.
        max: usize,
    },
    /// A property's value is not JSON.
    #[error("bundle `{bundle}` of package `{package}`: the value of {field} is not JSON")]
    Json {
        /// The package.
        package: String,
        /// The bundle.
        bundle: String,
        /// Where the value stands.
        field: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// What was sent does not make documents of a catalog.
    #[error("what the registry serves is no catalog")]
    Documents(#[source] Box<fbc::Error>),
    /// The list of packages and the list of bundles do not fit, so the catalog was replaced between
    /// the two.
    #[error("the catalog changed while it was read: {detail}")]
    Changed {
        /// What does not fit.
        detail: String,
    },
    /// One bundle is not the same in two of its channels.
    #[error("bundle `{bundle}` of package `{package}` is two different ones in two channels")]
    Contradiction {
        /// The package.
        package: String,
        /// The bundle.
        bundle: String,
    },
    /// The program is ending.
    #[error("reading the catalog was interrupted")]
    Interrupted,
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Address { .. } => "Address",
            Self::Trust(_) => "Trust",
            Self::Call { .. } => "Call",
            Self::Silent { .. } => "Silent",
            Self::TooLarge { .. } => "TooLarge",
            Self::Json { .. } => "Json",
            Self::Documents(_) => "Documents",
            Self::Changed { .. } => "Changed",
            Self::Contradiction { .. } => "Contradiction",
            Self::Interrupted => "Interrupted",
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::Changed { .. } => true,
            // A pod that is being replaced answers with the first three, by way of its connection.
            Self::Call { source, .. } => {
                matches!(
                    source.code(),
                    Code::Unavailable
                        | Code::Cancelled
                        | Code::Unknown
                        | Code::DeadlineExceeded
                        | Code::ResourceExhausted
                        | Code::Aborted
                )
            }
            Self::Address { .. }
            | Self::Trust(_)
            | Self::TooLarge { .. }
            | Self::Json { .. }
            | Self::Documents(_)
            | Self::Contradiction { .. }
            | Self::Interrupted => false,
        }
    }

    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Address { .. } => {
                "give host and port, as in the CatalogSource's status or address"
            }
            Self::Trust(error) => error.advice(),
            Self::Call { source, .. } => advice_on(source.code()),
            Self::Silent { .. } => "check the CatalogSource's pod: it may lack memory or CPU",
            Self::TooLarge { .. } => "check that this catalog is meant, or raise the limit",
            Self::Json { .. } | Self::Documents(_) | Self::Contradiction { .. } => {
                "tell the author of the catalog; `wavelift catalog validate` on its files says more"
            }
            Self::Changed { .. } => "try again when the CatalogSource's pod has settled",
            Self::Interrupted => "try again",
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what the rest says is in the server's log")]
fn advice_on(code: Code) -> &'static str {
    match code {
        Code::Unavailable => {
            "check that the CatalogSource's pod runs and that its Service can be reached"
        }
        Code::Unimplemented => "check that the address is that of a catalog's registry",
        Code::OutOfRange | Code::ResourceExhausted => {
            "check that the address is the right one: a message is longer than OLM accepts"
        }
        _ => "look at the log of the CatalogSource's pod",
    }
}
