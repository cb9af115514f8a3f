//! One term: an operator and a version of which the last numbers may be open.

use std::cmp::Ordering;

use super::{Error, VERSION_MAX, number, prerelease, text::Written};
use crate::version::Version;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Which numbers of the version were left open. Open ones are zero in the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    MinorAndPatch,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    operator: Operator,
    bound: Version,
    open: Open,
}

// === impl Operator ===

impl Operator {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "=" => Some(Self::Equal),
            "!=" => Some(Self::NotEqual),
            ">" => Some(Self::Greater),
            ">=" | "=>" => Some(Self::GreaterOrEqual),
            "<" => Some(Self::Less),
            "<=" | "=<" => Some(Self::LessOrEqual),
            "~" | "~>" => Some(Self::Tilde),
            "^" => Some(Self::Caret),
            _ => None,
        }
    }
}

// === impl Term ===

impl Term {
    /// What is written behind an open number is not looked at, but for the prerelease: `*.1|-rc`
    /// means `*-rc`.
    pub(super) fn new(operator: Operator, written: &Written<'_>) -> Result<Self, Error> {
        let major = fixed(Some(written.major));
        let minor = major.and_then(|_| fixed(written.minor));
        let patch = minor.and_then(|_| fixed(written.patch));
        let open = match (major, minor, patch) {
            (None, ..) => Open::All,
            (Some(_), None, _) => Open::MinorAndPatch,
            (Some(_), Some(_), None) => Open::Patch,
            (Some(_), Some(_), Some(_)) => Open::Nothing,
        };
        if length(written, open) > VERSION_MAX {
            return Err(Error::Version { version: written.whole.to_owned() });
        }
        let part = |part: Option<&str>| part.map_or(Ok(0), |text| number(written, text));
        let bound =
            Version::of_parts(part(major)?, part(minor)?, part(patch)?, prerelease(written)?);
        Ok(Self { operator, bound, open })
    }

    pub(super) const fn exactly(version: Version) -> Self {
        Self { operator: Operator::Equal, bound: version, open: Open::Nothing }
    }

    pub(super) const fn names_prerelease(&self) -> bool {
        self.bound.is_prerelease()
    }

    /// Whether the version satisfies the term, had the alternative named a prerelease.
    pub(super) fn holds(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.bound);
        match self.operator {
            Operator::Equal if self.open == Open::Nothing => order.is_eq(),
            Operator::Equal | Operator::Tilde => order.is_ge() && self.is_near(version),
            Operator::NotEqual => self.differs(version, order),
            Operator::Greater => self.is_below(version, order),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => self.is_not_below(version, order),
            Operator::Caret => order.is_ge() && self.is_compatible(version),
        }
    }

    /// `~`: the same major and minor number, as far as they were written. `~0.0.0` is near all.
    fn is_near(&self, version: &Version) -> bool {
        let bound = &self.bound;
        let is_zero = (bound.major(), bound.minor(), bound.patch()) == (0, 0, 0);
        match self.open {
            Open::Nothing | Open::All if is_zero => true,
            Open::MinorAndPatch => version.major() == bound.major(),
            Open::Nothing | Open::Patch | Open::All => {
                (version.major(), version.minor()) == (bound.major(), bound.minor())
            }
        }
    }

    /// `!=`: with open numbers, another one of those that were written. `!=*` leaves out 0.0.0 alone.
    fn differs(&self, version: &Version, order: Ordering) -> bool {
        let bound = &self.bound;
        match self.open {
            Open::Nothing | Open::All => order.is_ne(),
            Open::MinorAndPatch => version.major() != bound.major(),
            Open::Patch => {
                (version.major(), version.minor()) != (bound.major(), bound.minor())
                    || version.prerelease_identifiers() != bound.prerelease_identifiers()
            }
        }
    }

    /// `>`: beyond everything that the open numbers cover.
    fn is_below(&self, version: &Version, order: Ordering) -> bool {
        let bound = &self.bound;
        match self.open {
            Open::Nothing => order.is_gt(),
            Open::MinorAndPatch => version.major() > bound.major(),
            Open::Patch => (version.major(), version.minor()) > (bound.major(), bound.minor()),
            Open::All => version.major() > bound.major() || order.is_gt(),
        }
    }

    /// `<=`: not beyond what the open numbers cover. `<=*` covers 0.0 alone.
    fn is_not_below(&self, version: &Version, order: Ordering) -> bool {
        let bound = &self.bound;
        match self.open {
            Open::Nothing => order.is_le(),
            Open::MinorAndPatch => version.major() <= bound.major(),
            Open::Patch | Open::All => {
                (version.major(), version.minor()) <= (bound.major(), bound.minor())
            }
        }
    }

    /// `^`: the same first number that is not zero, as far as it was written.
    fn is_compatible(&self, version: &Version) -> bool {
        let bound = &self.bound;
        if bound.major() > 0 || self.open == Open::MinorAndPatch {
            return version.major() == bound.major();
        }
        if version.major() > 0 {
            return false;
        }
        if bound.minor() > 0 || self.open == Open::Patch {
            return version.minor() == bound.minor();
        }
        version.minor() == 0 && version.patch() == bound.patch()
    }
}

/// The part, if it is written and not left open.
fn fixed(part: Option<&str>) -> Option<&str> {
    part.filter(|part| !matches!(*part, "x" | "X" | "*"))
}

/// How long the version is once zeros stand for its open numbers; build metadata and `v` are then gone.
fn length(written: &Written<'_>, open: Open) -> usize {
    let prerelease = written.prerelease.map_or(0, |text| text.len() + 1);
    let minor = written.minor.map_or(0, str::len);
    match open {
        Open::Nothing => written.whole.len(),
        Open::Patch => written.major.len() + minor + 3 + prerelease,
        Open::MinorAndPatch => written.major.len() + 4 + prerelease,
        Open::All => 5 + prerelease,
    }
}
