//! Why two definitions can't be compared.

use std::fmt;

/// Which of the two definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that is there.
    Old,
    /// The one that is to come.
    New,
}

/// Why two definitions can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is another kind, or of an unknown version.
    #[error("the {side} one is no CustomResourceDefinition of apiextensions.k8s.io v1 or v1beta1")]
    NotADefinition {
        /// Which.
        side: Side,
    },
    /// A file has more than one.
    #[error("the {side} file holds several CustomResourceDefinitions")]
    Several {
        /// Which.
        side: Side,
    },
    /// A file is not JSON.
    #[error("the {side} definition is not JSON")]
    Json {
        /// Which.
        side: Side,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A file is not YAML.
    #[error("the {side} definition is not YAML")]
    Yaml {
        /// Which.
        side: Side,
        /// What is wrong with it.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// A field is not what the API server would take.
    #[error("`{path}` of the {side} definition is not {expected}")]
    Field {
        /// Which.
        side: Side,
        /// The path.
        path: String,
        /// What it should be.
        expected: &'static str,
    },
    /// It has no versions at all.
    #[error("the {side} definition has no versions")]
    NoVersions {
        /// Which.
        side: Side,
    },
    /// It has two versions of one name, which no API server takes.
    #[error("the {side} definition has version `{name}` twice")]
    SameVersion {
        /// Which.
        side: Side,
        /// The version.
        name: String,
    },
    /// It holds more than is looked at.
    #[error("the {side} definition has more than {max} {what}")]
    TooLarge {
        /// Which.
        side: Side,
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// They are not of one name, so neither replaces the other.
    #[error("the definitions are of two names: `{old}` and `{new}`")]
    TwoNames {
        /// The old one's.
        old: String,
        /// The new one's.
        new: String,
    },
    /// There is more to say than is said.
    #[error("the definitions differ in more than {max} ways")]
    TooManyChanges {
        /// The bound.
        max: usize,
    },
}

// === impl Side ===

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "old",
            Self::New => "new",
        })
    }
}
