//! OpenShift minors as operators name them.

use std::fmt;

use serde_json::Value;
use wavelift_core::version::Version;

use super::super::bundle::Bundle;
use crate::graph::Property;

/// An OpenShift minor. 4.23 is another name for 5.0, and so on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenShift {
    major: u64,
    minor: u64,
}

/// The minors that a bundle is published for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenShiftSpan {
    /// The first one; none where the bundle is for all.
    pub first: OpenShift,
    /// The last one, if there is one.
    pub last: Option<OpenShift>,
}

/// Why a text names no minor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenShiftError {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is neither a text nor a number.
    #[error("`{text}` is neither a text nor a number")]
    Kind {
        /// The value.
        text: String,
    },
    /// It is no version.
    #[error("`{text}` is no version")]
    Version {
        /// The text.
        text: String,
    },
    /// It names a patch or more.
    #[error("`{text}` is more than major and minor")]
    MoreThanMinor {
        /// The text.
        text: String,
    },
    /// It is there more than once.
    #[error("it is there {count} times")]
    Several {
        /// How often.
        count: usize,
    },
}

// === impl OpenShift ===

impl OpenShift {
    /// Reads the value of `olm.maxOpenShiftVersion`, a text or a number.
    pub fn of_property(value: &Value) -> Result<Self, OpenShiftError> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null => Err(OpenShiftError::Empty),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(OpenShiftError::Kind { text: value.to_string() })
            }
        }
    }

    /// Reads `4.18`, also as `v4.18` or `4.18.0`; any other patch is an error.
    pub fn parse(text: &str) -> Result<Self, OpenShiftError> {
        if text.trim().is_empty() {
            return Err(OpenShiftError::Empty);
        }
        let version = Version::parse_tolerant(text)
            .map_err(|_| OpenShiftError::Version { text: text.to_owned() })?;
        if version.patch() != 0 || version.is_prerelease() || version.build().is_some() {
            return Err(OpenShiftError::MoreThanMinor { text: text.to_owned() });
        }
        Ok(Self::new(version.major(), version.minor()))
    }

    /// A minor by its numbers.
    pub const fn new(major: u64, minor: u64) -> Self {
        match (major, minor) {
            (4, minor) if minor >= 23 => Self { major: 5, minor: minor - 23 },
            (major, minor) => Self { major, minor },
        }
    }
}

impl fmt::Display for OpenShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

// === impl OpenShiftSpan ===

impl OpenShiftSpan {
    /// Reads `v4.12` (and later), `=v4.12` (no other), `v4.12-v4.16`, and the old form of a list,
    /// whose least item counts.
    pub fn parse(text: &str) -> Result<Self, OpenShiftError> {
        let text = text.trim();
        if let Some(only) = text.strip_prefix('=') {
            let minor = OpenShift::parse(only)?;
            return Ok(Self { first: minor, last: Some(minor) });
        }
        if let Some((first, last)) = text.split_once('-') {
            let last = Some(OpenShift::parse(last)?);
            return Ok(Self { first: OpenShift::parse(first)?, last });
        }
        let minors: Vec<OpenShift> =
            text.split(',').map(OpenShift::parse).collect::<Result<_, _>>()?;
        let first = minors.into_iter().min().ok_or(OpenShiftError::Empty)?;
        Ok(Self { first, last: None })
    }
}

impl fmt::Display for OpenShiftSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) if last == self.first => write!(f, "{last} only"),
            Some(last) => write!(f, "{} to {last}", self.first),
            None => write!(f, "{} and later", self.first),
        }
    }
}

/// The values of a bundle's property.
pub(super) fn max_of<'a>(bundle: &'a Bundle<'_>) -> impl Iterator<Item = &'a Value> {
    let properties = bundle.properties.iter();
    properties.filter(|p| p.kind == Property::MAX_OPENSHIFT_VERSION).map(|p| &p.value)
}

/// The last minor that a bundle supports, if it says so.
pub(super) fn max(bundle: &Bundle<'_>) -> Option<Result<OpenShift, OpenShiftError>> {
    let mut values = max_of(bundle);
    let value = values.next()?;
    let others = values.count();
    Some(match others {
        0 => OpenShift::of_property(value),
        others => Err(OpenShiftError::Several { count: others + 1 }),
    })
}
