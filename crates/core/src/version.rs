//! Versions as OLM v0 compares them: semantic versions whose build metadata is shown but never
//! decides precedence.
//!
//! The `semver` crate is not used because its order and equality include build metadata, while OLM
//! treats two rebuilds of one version as equal in rank.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The longest text that is taken as a version, in bytes. Real ones stay below 64.
const TEXT_MAX: usize = 256;

/// Why a text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is empty.
    #[error("version is empty")]
    Empty,
    /// The text is longer than any version may be.
    #[error("version has {length} bytes, more than {TEXT_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// There are not three parts `major.minor.patch`.
    #[error("version `{text}` has no major.minor.patch")]
    Parts {
        /// The text.
        text: String,
    },
    /// A shortened version carries prerelease or build metadata.
    #[error("short version `{text}` has prerelease or build metadata")]
    ShortWithExtra {
        /// The text.
        text: String,
    },
    /// A number is not a number, is too large, or has a leading zero.
    #[error("{part} `{text}` is not a number without leading zeros below 2^64")]
    Number {
        /// Which part.
        part: &'static str,
        /// The part's text.
        text: String,
    },
    /// An identifier is empty or holds a character other than letters, digits and `-`.
    #[error("{part} identifier `{text}` is empty or not made of letters, digits and `-`")]
    Identifier {
        /// Which part.
        part: &'static str,
        /// The identifier.
        text: String,
    },
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::TooLong { .. } => "TooLong",
            Self::Parts { .. } => "Parts",
            Self::ShortWithExtra { .. } => "ShortWithExtra",
            Self::Number { .. } => "Number",
            Self::Identifier { .. } => "Identifier",
        }
    }
}

/// One dot-separated part of a prerelease. A number sorts below any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Identifier {
    Number(u64),
    Text(Box<str>),
}

// === impl Identifier ===

impl Identifier {
    /// Reads one identifier by the rules of prereleases: digits alone are a number, which must not
    /// have leading zeros.
    pub(crate) fn parse(part: &'static str, text: &str) -> Result<Self, Error> {
        check_identifier(part, text)?;
        if text.bytes().all(|b| b.is_ascii_digit()) {
            number(part, text).map(Self::Number)
        } else {
            Ok(Self::Text(text.into()))
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A version.
///
/// [`Version::cmp_precedence`] is the order OLM uses. `Eq`, `Ord` and `Hash` also look at the build
/// metadata, so that two rebuilds are two keys of a map; where precedence differs, both orders agree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Identifier>,
    build: Vec<Box<str>>,
}

// === impl Version ===

impl Version {
    /// A release without prerelease and build metadata.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch, pre: Vec::new(), build: Vec::new() }
    }

    /// A version of these parts, with no build metadata.
    pub(crate) const fn of_parts(major: u64, minor: u64, patch: u64, pre: Vec<Identifier>) -> Self {
        Self { major, minor, patch, pre, build: Vec::new() }
    }

    /// The first number.
    pub const fn major(&self) -> u64 {
        self.major
    }

    /// The second number.
    pub const fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number.
    pub const fn patch(&self) -> u64 {
        self.patch
    }

    /// Whether it has a prerelease part.
    pub const fn is_prerelease(&self) -> bool {
        !self.pre.is_empty()
    }

    /// The identifiers of the prerelease part.
    pub(crate) fn prerelease_identifiers(&self) -> &[Identifier] {
        &self.pre
    }

    /// The same version without build metadata: equal in precedence.
    #[must_use]
    pub fn without_build(&self) -> Self {
        Self { build: Vec::new(), ..self.clone() }
    }

    /// The build metadata, or nothing.
    pub fn build(&self) -> Option<String> {
        (!self.build.is_empty()).then(|| self.build.join("."))
    }

    /// Reads a version strictly: three numbers, no `v`, no leading zeros.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        if text.len() > TEXT_MAX {
            return Err(Error::TooLong { length: text.len() });
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::Parts { text: text.to_owned() });
        };
        // Build metadata is cut off first: it may hold `-`.
        let (rest, build) = cut(rest, '+');
        let (patch, pre) = cut(rest, '-');
        Ok(Self {
            major: number("major", major)?,
            minor: number("minor", minor)?,
            patch: number("patch", patch)?,
            pre: pre.map_or_else(|| Ok(Vec::new()), prerelease)?,
            build: build.map_or_else(|| Ok(Vec::new()), build_metadata)?,
        })
    }

    /// Reads a version as people write it: spaces around it, a leading `v`, leading zeros and missing
    /// minor and patch numbers are forgiven.
    pub fn parse_tolerant(text: &str) -> Result<Self, Error> {
        if text.len() > TEXT_MAX {
            return Err(Error::TooLong { length: text.len() });
        }
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err(Error::ShortWithExtra { text: text.to_owned() });
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// The order OLM uses: build metadata does not count, a prerelease is below its release.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }

    /// Whether a cluster that shows `self` is at the version a user named: equal in precedence, and
    /// equal in build metadata if the user named any.
    pub fn is_at(&self, named: &Self) -> bool {
        self.cmp_precedence(named).is_eq() && (named.build.is_empty() || self.build == named.build)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_precedence(other).then_with(|| self.build.cmp(&other.build))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, part) in self.pre.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "-" } else { "." })?;
        }
        for (index, part) in self.build.iter().enumerate() {
            f.write_str(if index == 0 { "+" } else { "." })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

impl FromStr for Version {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Version {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl TryFrom<&str> for Version {
    type Error = Error;
    fn try_from(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

// === parts ===

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn number(part: &'static str, text: &str) -> Result<u64, Error> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(Error::Number { part, text: text.to_owned() });
    }
    text.parse().map_err(|_| Error::Number { part, text: text.to_owned() })
}

fn prerelease(text: &str) -> Result<Vec<Identifier>, Error> {
    text.split('.').map(|text| Identifier::parse("prerelease", text)).collect()
}

fn build_metadata(text: &str) -> Result<Vec<Box<str>>, Error> {
    let identifier = |text: &str| check_identifier("build", text).map(|()| text.into());
    text.split('.').map(identifier).collect()
}

fn check_identifier(part: &'static str, text: &str) -> Result<(), Error> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        Ok(())
    } else {
        Err(Error::Identifier { part, text: text.to_owned() })
    }
}

/// `007` becomes `7`, `00` becomes `0`, `0-rc` keeps its zero.
fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let cut = part.trim_start_matches('0');
    if cut.starts_with(|c: char| c.is_ascii_digit()) { cut.to_owned() } else { format!("0{cut}") }
}

#[cfg(test)]
mod tests;
