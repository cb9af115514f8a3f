//! The release that tells rebuilds of one version apart, as OLM v1 orders them.
//!
//! Older bundles carry it in their version's build metadata, against semantic versioning; newer ones
//! in a field of its own. OLM v0 knows no releases: to it, two rebuilds are equal in rank.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::version::{self, Identifier, Version};

/// The longest release, in bytes. OLM sets this bound itself.
const TEXT_MAX: usize = 20;

/// Why a text is not a release, or a version and release do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is empty.
    #[error("release is empty")]
    Empty,
    /// The text is longer than a release may be.
    #[error("release has {length} bytes, more than {TEXT_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// One of its identifiers does not follow the rules of prereleases.
    #[error("release `{text}` is not made of identifiers")]
    Identifier {
        /// The text.
        text: String,
        /// What is wrong with the identifier.
        #[source]
        source: version::Error,
    },
    /// The version beside the release does not parse.
    #[error("version does not parse")]
    Version(#[source] version::Error),
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::TooLong { .. } => "TooLong",
            Self::Identifier { .. } => "Identifier",
            Self::Version(_) => "Version",
        }
    }
}

/// A release: one or more identifiers joined by dots, compared as those of a prerelease are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Release(Vec<Identifier>);

/// A version with its release. A version without release is below all its releases.
///
/// `Eq` also looks at build metadata that is no release; [`VersionRelease::cmp_precedence`] is OLM's order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionRelease {
    /// The version. It keeps build metadata that is no release.
    pub version: Version,
    /// The release.
    pub release: Option<Release>,
}

// === impl Release ===

impl Release {
    /// Reads a release.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        if text.len() > TEXT_MAX {
            return Err(Error::TooLong { length: text.len() });
        }
        let identifiers = text.split('.').map(|part| Identifier::parse("release", part));
        identifiers
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|source| Error::Identifier { text: text.to_owned(), source })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl FromStr for Release {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Release {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<Release> for String {
    fn from(release: Release) -> Self {
        release.to_string()
    }
}

// === impl VersionRelease ===

impl VersionRelease {
    /// Reads a version whose build metadata, if it can be one, is the release. Build metadata that
    /// can't be one stays with the version and does not count.
    pub fn parse_legacy(text: &str) -> Result<Self, Error> {
        let version = Version::parse(text).map_err(Error::Version)?;
        let release = version.build().and_then(|build| Release::parse(&build).ok());
        let version = if release.is_some() { version.without_build() } else { version };
        Ok(Self { version, release })
    }

    /// Reads a version and a release from two fields. Build metadata is then no release; an empty
    /// release is none.
    pub fn parse_explicit(version: &str, release: &str) -> Result<Self, Error> {
        let version = Version::parse(version).map_err(Error::Version)?;
        let release = if release.is_empty() { None } else { Some(Release::parse(release)?) };
        Ok(Self { version, release })
    }

    /// OLM v1's order: by version, then by release.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        self.version.cmp_precedence(&other.version).then_with(|| self.release.cmp(&other.release))
    }
}

/// As OLM v1 shows it in one field: the release takes the place of build metadata.
impl fmt::Display for VersionRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.release {
            Some(release) => write!(f, "{}+{release}", self.version.without_build()),
            None => self.version.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
