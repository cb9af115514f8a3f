//! Names and ids, checked where they enter and trusted everywhere else.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Why a text is not the name it was given as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// What the text should have been.
        what: &'static str,
    },
    /// The text is longer than the kind of name allows.
    #[error("{what} has {length} characters, more than {max}")]
    TooLong {
        /// What the text should have been.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The most that is allowed, in bytes.
        max: usize,
    },
    /// The text holds a character that the kind of name does not allow.
    #[error("{what} `{text}` is not {form}")]
    Form {
        /// What the text should have been.
        what: &'static str,
        /// The text, cut to a length that can be shown.
        text: String,
        /// The form that was expected, as a phrase.
        form: &'static str,
    },
}

/// Which characters a name may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// RFC 1123 label: lower-case letters, digits and `-`, starting and ending with a letter or digit.
    Label,
    /// RFC 1123 subdomain: labels joined by dots.
    Subdomain,
    /// Any printable ASCII without spaces.
    Token,
}

impl Form {
    fn phrase(self) -> &'static str {
        match self {
            Self::Label => "a DNS label (a-z, 0-9, `-`)",
            Self::Subdomain => "a DNS subdomain (a-z, 0-9, `-`, `.`)",
            Self::Token => "printable ASCII without spaces",
        }
    }

    fn accepts(self, text: &str) -> bool {
        match self {
            Self::Label => is_label(text),
            Self::Subdomain => text.split('.').all(is_label),
            Self::Token => text.bytes().all(|b| b.is_ascii_graphic()),
        }
    }
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn check(what: &'static str, form: Form, max: usize, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::Empty { what });
    }
    if text.len() > max {
        return Err(Error::TooLong { what, length: text.len(), max });
    }
    if form.accepts(text) {
        Ok(())
    } else {
        let text = text.chars().take(80).collect();
        Err(Error::Form { what, text, form: form.phrase() })
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $form:expr, $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;
            fn try_from(text: String) -> Result<Self, Error> {
                check($what, $form, $max, &text)?;
                Ok(Self(text))
            }
        }

        impl TryFrom<&str> for $type {
            type Error = Error;
            fn try_from(text: &str) -> Result<Self, Error> {
                Self::try_from(text.to_owned())
            }
        }

        impl FromStr for $type {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Self::try_from(text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A managed cluster's name, which is also its namespace on the hub.
    ClusterName, "cluster name", Form::Label, 63
);
name!(
    /// A Kubernetes namespace.
    Namespace, "namespace", Form::Label, 63
);
name!(
    /// The name of a FleetUpgrade or ClusterUpgrade.
    UpgradeName, "upgrade name", Form::Subdomain, 253
);
name!(
    /// An OLM package name, e.g. `odf-operator`.
    PackageName, "package name", Form::Subdomain, 253
);
name!(
    /// The name of a ClusterServiceVersion. Real ones hold `+`-free but otherwise free text.
    CsvName, "CSV name", Form::Token, 253
);
name!(
    /// The name of a wave, unique in its FleetUpgrade.
    WaveName, "wave name", Form::Label, 63
);
name!(
    /// A Kubernetes uid.
    Uid, "uid", Form::Token, 128
);
name!(
    /// A user's id for an action that is to be done once.
    ActionId, "action id", Form::Token, 63
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_where_they_enter() {
        assert!(ClusterName::try_from("prod-mad-03").is_ok());
        for bad in ["", "-a", "a-", "A", "a.b", "a b", "ä", "a/b", "a:b"] {
            assert!(ClusterName::try_from(bad).is_err(), "`{bad}` was taken");
        }
        assert!(ClusterName::try_from("a".repeat(63)).is_ok());
        assert!(ClusterName::try_from("a".repeat(64)).is_err());
        assert!(PackageName::try_from("a.b-c").is_ok());
        assert!(PackageName::try_from("a..b").is_err());
        assert!(CsvName::try_from("alpha-operator.v1.0.0+7").is_ok());
    }

    #[test]
    fn a_name_read_from_json_is_checked_too() {
        assert!(serde_json::from_str::<ClusterName>("\"a\"").is_ok());
        assert!(serde_json::from_str::<ClusterName>("\"A\"").is_err());
    }
}
