//! Which versions of a path something is about, skipped ones included.

use std::fmt;

use wavelift_core::version::Version;

use super::Span;

// === impl Span ===

impl Span {
    /// Whether a version is meant.
    pub fn contains(&self, version: &Version) -> bool {
        self.version.as_ref().is_some_and(|named| version.is_at(named))
            || self.versions.as_ref().is_some_and(|range| range.contains(version))
    }

    /// The highest version above `installed` and up to `target` that is meant, as far as one can be
    /// named: of those known to exist, and of the bounds that the range itself names. A range may lie
    /// between two versions of the path wholly; it is about the versions that are jumped over then.
    pub fn highest_between(
        &self,
        installed: &Version,
        target: &Version,
        known: &[Version],
    ) -> Option<Version> {
        let named: Vec<Version> = match (&self.version, &self.versions) {
            (Some(version), _) => vec![version.clone()],
            (None, Some(range)) => bounds(range.as_str()),
            (None, None) => Vec::new(),
        };
        let candidates = known.iter().cloned().chain(named).chain([target.clone()]);
        candidates.filter(|v| v > installed && v <= target && self.contains(v)).max()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.version, &self.versions) {
            (Some(version), _) => version.fmt(f),
            (None, Some(range)) => f.write_str(range.as_str()),
            (None, None) => Ok(()),
        }
    }
}

/// The versions that a range names, each also with the next patch: one of the two is inside.
fn bounds(range: &str) -> Vec<Version> {
    let is_operator = |c: char| matches!(c, '<' | '>' | '=' | '!' | '|') || c.is_whitespace();
    let texts = range.split(is_operator).filter(|text| !text.is_empty());
    let named = texts.filter_map(|text| {
        let text = text.replace(".x", ".0");
        Version::parse_tolerant(&text).ok()
    });
    named
        .flat_map(|v| {
            let next = Version::new(v.major(), v.minor(), v.patch().saturating_add(1));
            [v, next]
        })
        .collect()
}
