//! Version ranges as OLM reads `olm.skipRange` and `olm.package.required`.
//!
//! Terms joined by spaces must all hold, alternatives are joined by a free-standing `||`. A term is
//! one of `< <= > >= = == ! !=` (none means `=`) and a full version; a trailing `x` stands for any
//! number. There is no `~`, `^`, `*` or `,`. A prerelease is in a range exactly when its plain
//! precedence says so. The reading of odd input (stray characters, one-letter terms) is part of the
//! meaning: a range that this module refuses is an edge that OLM does not see.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::version::{self, Version};

/// The longest text that is taken as a range, in bytes.
const TEXT_MAX: usize = 4096;

/// Why a text is not a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing is left after trimming.
    #[error("range is empty")]
    Empty,
    /// The text is longer than any range may be.
    #[error("range has {length} bytes, more than {TEXT_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// `||` stands first, last or next to another `||`.
    #[error("range has no term beside `||`")]
    Alternative,
    /// A term holds no version.
    #[error("range term `{term}` has no version")]
    NoVersion {
        /// The term.
        term: String,
    },
    /// A term starts with an unknown operator.
    #[error("range term `{term}` has unknown operator `{operator}`")]
    Operator {
        /// The term.
        term: String,
        /// What stands before the version.
        operator: String,
    },
    /// The version of a term does not parse.
    #[error("range term `{term}` has a bad version")]
    Version {
        /// The term.
        term: String,
        /// What is wrong with it.
        #[source]
        source: version::Error,
    },
    /// A wildcard stands where it can't be expanded.
    #[error("range term `{term}` has a wildcard that does not end a major or minor version")]
    Wildcard {
        /// The term.
        term: String,
    },
}

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::TooLong { .. } => "TooLong",
            Self::Alternative => "Alternative",
            Self::NoVersion { .. } => "NoVersion",
            Self::Operator { .. } => "Operator",
            Self::Version { .. } => "Version",
            Self::Wildcard { .. } => "Wildcard",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    operator: Operator,
    version: Version,
}

/// A set of versions, kept with the text it was read from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Range {
    text: String,
    any_of: Vec<Vec<Term>>,
}

// === impl Range ===

impl Range {
    /// Reads a range.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > TEXT_MAX {
            return Err(Error::TooLong { length: text.len() });
        }
        let words = words(text);
        if words.is_empty() {
            return Err(Error::Empty);
        }
        let mut any_of = Vec::new();
        for alternative in words.split(|word| word == "||") {
            if alternative.is_empty() {
                return Err(Error::Alternative);
            }
            let mut all_of = Vec::with_capacity(alternative.len());
            for word in alternative {
                for term in expanded(word)? {
                    all_of.push(Term::parse(&term)?);
                }
            }
            any_of.push(all_of);
        }
        Ok(Self { text: text.to_owned(), any_of })
    }

    /// Whether the version is in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.any_of.iter().any(|all_of| all_of.iter().all(|term| term.holds(version)))
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Range {}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Range {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Range {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<Range> for String {
    fn from(range: Range) -> Self {
        range.text
    }
}

// === impl Term ===

impl Term {
    fn parse(text: &str) -> Result<Self, Error> {
        let (operator, version) = split_operator(text)?;
        let operator = Operator::parse(operator).ok_or_else(|| Error::Operator {
            term: text.to_owned(),
            operator: operator.to_owned(),
        })?;
        let version = Version::parse(version)
            .map_err(|source| Error::Version { term: text.to_owned(), source })?;
        Ok(Self { operator, version })
    }

    fn holds(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        match self.operator {
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
        }
    }
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "<" => Some(Self::Less),
            "<=" => Some(Self::LessOrEqual),
            ">" => Some(Self::Greater),
            ">=" => Some(Self::GreaterOrEqual),
            "" | "=" | "==" => Some(Self::Equal),
            "!" | "!=" => Some(Self::NotEqual),
            _ => None,
        }
    }
}

// === reading ===

/// Cuts a range at spaces, except behind `<`, `>` and `=`. A word of one character is dropped, which
/// is why `! 1.0.0` means `1.0.0`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = None;
    let mut keep = |from: usize, to: usize| {
        if from + 1 < to {
            words.extend(text.get(from..to).map(|word| word.replace(' ', "")));
        }
    };
    for (at, c) in text.char_indices() {
        if c != ' ' {
            last = Some(c);
        } else if !matches!(last, Some('<' | '>' | '=')) {
            keep(start, at);
            start = at + 1;
        }
    }
    keep(start, text.len());
    words
}

/// What stands before the first digit, and the rest.
fn split_operator(term: &str) -> Result<(&str, &str), Error> {
    let at = term
        // A digit of another script starts the version too, which then does not parse.
        .find(|c: char| c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric()))
        .ok_or_else(|| Error::NoVersion { term: term.to_owned() })?;
    let (operator, version) = term.split_at(at);
    Ok((operator.trim(), version))
}

/// Which number a wildcard stands for, told by the number of parts of the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wildcard {
    None,
    Minor,
    Patch,
}

/// Replaces a term with a wildcard by the one or two terms that it stands for.
fn expanded(term: &str) -> Result<Vec<String>, Error> {
    if !term.contains('x') {
        return Ok(vec![term.to_owned()]);
    }
    let (operator, version) = split_operator(term)?;
    let flat = without_wildcard(version);
    let next = || {
        after(&flat, wildcard_of(version)).ok_or_else(|| Error::Wildcard { term: term.to_owned() })
    };
    match operator {
        ">" => Ok(vec![format!(">={}", next()?)]),
        ">=" => Ok(vec![format!(">={flat}")]),
        "<" => Ok(vec![format!("<{flat}")]),
        "<=" => Ok(vec![format!("<{}", next()?)]),
        "" | "=" | "==" => Ok(vec![format!(">={flat}"), format!("<{}", next()?)]),
        // Both halves must hold, so nothing satisfies a negated wildcard.
        "!" | "!=" => Ok(vec![format!("<{flat}"), format!(">={}", next()?)]),
        // With a wildcard, an unknown operator is dropped: `~1.2.x` is `1.2.0` and nothing else.
        _ => Ok(vec![flat]),
    }
}

fn wildcard_of(version: &str) -> Wildcard {
    let parts: Vec<&str> = version.split('.').collect();
    match (parts.last(), parts.len()) {
        (Some(&"x"), 2) => Wildcard::Minor,
        (Some(&"x"), 3) => Wildcard::Patch,
        (Some(_) | None, _) => Wildcard::None,
    }
}

fn without_wildcard(version: &str) -> String {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if flat.split('.').count() == 2 { flat + ".0" } else { flat }
}

/// The first version behind everything that the wildcard covers.
fn after(flat: &str, wildcard: Wildcard) -> Option<String> {
    let raised = match wildcard {
        Wildcard::None => return None,
        Wildcard::Minor => 0,
        Wildcard::Patch => 1,
    };
    let mut parts: Vec<String> = flat.split('.').map(str::to_owned).collect();
    let part = parts.get_mut(raised)?;
    *part = part.parse::<i64>().ok()?.checked_add(1)?.to_string();
    Some(parts.join("."))
}

#[cfg(test)]
mod tests;
