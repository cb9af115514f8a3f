//! Version constraints as OLM v1 reads `spec.source.catalog.version`.
//!
//! Terms joined by `,` or spaces must all hold, alternatives are joined by `||`. A term is one of
//! `= != > < >= => <= =< ~ ~> ^` (none means `=`) and a version, which may lack its last numbers or
//! have `x`, `X` or `*` for them. `1.2 - 1.4` stands for `>= 1.2, <= 1.4`. A prerelease satisfies an
//! alternative only if one of the alternative's own terms names a prerelease.
//!
//! These are other rules than those of [`crate::range`], and OLM v1 uses both: ranges for the edges
//! of a catalog, constraints for what a user asks for. The reading of odd input is part of the meaning.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use self::text::Written;
use crate::version::{Identifier, Version};

mod term;
mod text;

use self::term::Term;

/// The longest text that is taken as a constraint, in bytes.
const TEXT_MAX: usize = 512;

/// How many alternatives there may be.
const ALTERNATIVES_MAX: usize = 32;

/// The longest version in a term, in bytes.
const VERSION_MAX: usize = 256;

/// Why a text is not a constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is longer than any constraint may be.
    #[error("constraint has {length} bytes, more than {TEXT_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// There are too many alternatives.
    #[error("constraint has {count} alternatives, more than {ALTERNATIVES_MAX}")]
    TooManyAlternatives {
        /// How many there are.
        count: usize,
    },
    /// An alternative is not made of terms.
    #[error("`{alternative}` is not made of terms such as `>=1.2.3`, `~1.2` or `1.x`")]
    Improper {
        /// The alternative.
        alternative: String,
    },
    /// The version of a term is none.
    #[error("`{version}` is no version")]
    Version {
        /// The version.
        version: String,
    },
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "TooLong",
            Self::TooManyAlternatives { .. } => "TooManyAlternatives",
            Self::Improper { .. } => "Improper",
            Self::Version { .. } => "Version",
        }
    }
}

/// How a version stands to a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fit {
    /// It satisfies the constraint.
    Fits,
    /// It would, were it no prerelease: the constraint names none.
    OnlyAsPrerelease,
    /// It does not.
    DoesNot,
}

/// Terms that must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Alternative {
    terms: Vec<Term>,
    /// Whether one of the terms names a prerelease.
    names_prerelease: bool,
}

/// A set of versions, kept with the text it was read from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Constraint {
    text: String,
    any_of: Vec<Alternative>,
}

// === impl Constraint ===

impl Constraint {
    /// Reads a constraint.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > TEXT_MAX {
            return Err(Error::TooLong { length: text.len() });
        }
        // Spans are rewritten before alternatives are told apart, and `|` counts as a digit there:
        // `1||2 - 3` is `>= 1 || 2, <= 3`.
        let spelled = text::without_spans(text);
        let count = spelled.split("||").count();
        if count > ALTERNATIVES_MAX {
            return Err(Error::TooManyAlternatives { count });
        }
        let any_of = spelled.split("||").map(alternative).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), any_of })
    }

    /// The constraint that holds for this version alone. Build metadata does not count: all rebuilds
    /// of the version satisfy it.
    pub fn exactly(version: &Version) -> Self {
        let version = version.without_build();
        let text = version.to_string();
        let alternative = Alternative {
            names_prerelease: version.is_prerelease(),
            terms: vec![Term::exactly(version)],
        };
        Self { text, any_of: vec![alternative] }
    }

    /// Whether the version satisfies the constraint.
    pub fn contains(&self, version: &Version) -> bool {
        self.fit(version) == Fit::Fits
    }

    /// How the version stands to the constraint.
    pub fn fit(&self, version: &Version) -> Fit {
        let is_prerelease = version.is_prerelease();
        let mut fit = Fit::DoesNot;
        for alternative in &self.any_of {
            if !alternative.terms.iter().all(|term| term.holds(version)) {
                continue;
            }
            if !is_prerelease || alternative.names_prerelease {
                return Fit::Fits;
            }
            fit = Fit::OnlyAsPrerelease;
        }
        fit
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Constraint {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Constraint {}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Constraint {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Constraint {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<Constraint> for String {
    fn from(constraint: Constraint) -> Self {
        constraint.text
    }
}

// === reading ===

fn alternative(text: &str) -> Result<Alternative, Error> {
    let improper = || Error::Improper { alternative: text.to_owned() };
    let mut terms = Vec::new();
    let mut names_prerelease = false;
    for (operator, written) in text::terms(text).ok_or_else(improper)? {
        let term = Term::new(operator, &written)?;
        names_prerelease |= term.names_prerelease();
        terms.push(term);
    }
    Ok(Alternative { terms, names_prerelease })
}

/// A number of a version; leading zeros are forgiven, as they are nowhere else.
fn number(written: &Written<'_>, text: &str) -> Result<u64, Error> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let bad = || Error::Version { version: written.whole.to_owned() };
    if digits { text.parse().map_err(|_| bad()) } else { Err(bad()) }
}

/// The identifiers of a prerelease. A number beyond 64 bits is compared as text.
fn prerelease(written: &Written<'_>) -> Result<Vec<Identifier>, Error> {
    let identifier = |text: &str| {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        if digits && text.len() > 1 && text.starts_with('0') {
            return Err(Error::Version { version: written.whole.to_owned() });
        }
        let number = if digits { text.parse().ok() } else { None };
        Ok(number.map_or_else(|| Identifier::Text(text.into()), Identifier::Number))
    };
    written
        .prerelease
        .map_or_else(|| Ok(Vec::new()), |text| text.split('.').map(identifier).collect())
}

#[cfg(test)]
mod tests;
