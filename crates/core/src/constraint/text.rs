//! From the text of a constraint to its terms. Everything here is ASCII; any other character ends a
//! part and is then found to stand where nothing may stand.

use super::term::Operator;

/// A version as it stands in a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'t> {
    /// All of it.
    pub(super) whole: &'t str,
    pub(super) major: &'t str,
    pub(super) minor: Option<&'t str>,
    pub(super) patch: Option<&'t str>,
    /// What stands between `-` and `+`.
    pub(super) prerelease: Option<&'t str>,
}

/// The terms of one alternative; nothing if it is not made of terms.
pub(super) fn terms(text: &str) -> Option<Vec<(Operator, Written<'_>)>> {
    let mut terms = Vec::new();
    let mut rest = text;
    loop {
        let (operator, behind) = take(without_space(rest), is_of_operator);
        let operator = Operator::parse(operator)?;
        let (written, behind) = version(without_space(behind))?;
        terms.push((operator, written));
        let next = without_space(behind);
        if next.is_empty() {
            return Some(terms);
        }
        rest = match next.strip_prefix(',') {
            Some(next) => next,
            None if next.len() < behind.len() => next,
            None => return None,
        };
    }
}

/// Replaces each span `LOW - HIGH` by the two terms that it stands for. The spaces around a span go
/// with it, so that `1.0 2.0 - 3.0` ends up as no constraint at all.
pub(super) fn without_spans(text: &str) -> String {
    let mut spelled = text.to_owned();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        rest = if let Some((low, high, behind)) = span(rest) {
            let (found, _) = rest.split_at(rest.len() - behind.len());
            spelled = spelled.replacen(found, &format!(">= {low}, <= {high} "), 1);
            behind
        } else {
            rest.strip_prefix(next).unwrap_or_default()
        };
    }
    spelled
}

/// The two ends of a span that the text starts with, and what is behind it.
fn span(text: &str) -> Option<(&str, &str, &str)> {
    let (low, behind) = version(without_space(text))?;
    let behind = some_space(behind)?.strip_prefix('-')?;
    let (high, behind) = version(some_space(behind)?)?;
    Some((low.whole, high.whole, without_space(behind)))
}

/// The version that the text starts with, as long as can be, and what is behind it.
fn version(text: &str) -> Option<(Written<'_>, &str)> {
    let (major, rest) = take(text.strip_prefix('v').unwrap_or(text), is_of_number);
    if major.is_empty() {
        return None;
    }
    let (minor, rest) = behind('.', rest, |rest| some(take(rest, is_of_number)));
    let (patch, rest) = behind('.', rest, |rest| some(take(rest, is_of_number)));
    let (prerelease, rest) = behind('-', rest, identifiers);
    let (_, rest) = behind('+', rest, identifiers);
    let (whole, rest) = text.split_at(text.len() - rest.len());
    Some((Written { whole, major, minor, patch, prerelease }, rest))
}

/// What stands behind a mark; nothing, and the whole text left, if there is no mark or nothing behind.
fn behind<'t>(
    mark: char,
    text: &'t str,
    read: impl Fn(&'t str) -> Option<(&'t str, &'t str)>,
) -> (Option<&'t str>, &'t str) {
    text.strip_prefix(mark).and_then(read).map_or((None, text), |(found, rest)| (Some(found), rest))
}

/// Identifiers joined by dots.
fn identifiers(text: &str) -> Option<(&str, &str)> {
    let (_, mut rest) = some(take(text, is_of_identifier))?;
    while let Some((_, next)) = rest.strip_prefix('.').and_then(|r| some(take(r, is_of_identifier)))
    {
        rest = next;
    }
    Some(text.split_at(text.len() - rest.len()))
}

fn some<'t>((found, rest): (&'t str, &'t str)) -> Option<(&'t str, &'t str)> {
    (!found.is_empty()).then_some((found, rest))
}

fn take(text: &str, is_wanted: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_wanted(c)).unwrap_or(text.len()))
}

fn without_space(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

fn some_space(text: &str) -> Option<&str> {
    text.starts_with(is_space).then(|| without_space(text))
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ')
}

fn is_of_operator(c: char) -> bool {
    matches!(c, '=' | '!' | '>' | '<' | '~' | '^')
}

/// `|` is taken here and refused when the number is read.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*' | '|')
}

fn is_of_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}
