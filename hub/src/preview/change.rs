//! The changes of a way as single lines, to be held against those of other groups.

use std::collections::BTreeSet;

use wavelift_catalog::preview::{Changes, render};

/// The longest line.
const TEXT_MAX: usize = 400;
/// The most changes of one way that are held against others'.
const CHANGES_MAX: usize = 20_000;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The part of the preview.
    pub section: String,
    /// What it is, in one line.
    pub text: String,
}

/// The changes of a way.
pub(super) fn of(changes: &Changes) -> BTreeSet<Change> {
    let mut found = BTreeSet::new();
    for part in render::parts(changes) {
        for item in part.items {
            let lines = if item.lines.is_empty() {
                vec![item.text]
            } else {
                let text = without_count(&item.text);
                item.lines.iter().map(|line| format!("{text}: {line}")).collect()
            };
            for line in lines {
                if found.len() >= CHANGES_MAX {
                    return found;
                }
                let text = line.chars().take(TEXT_MAX).collect();
                found.insert(Change { section: part.title.clone(), text });
            }
        }
    }
    found
}

/// A text without the number of its lines at its end: a line more does not make the others new.
fn without_count(text: &str) -> &str {
    let Some((before, count)) = text.rsplit_once(" (") else { return text };
    let is_count = |count: &str| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    if count.strip_suffix(')').is_some_and(is_count) { before } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_lines_is_no_part_of_a_change() {
        assert_eq!(
            without_count("loom gains in its namespaces (12)"),
            "loom gains in its namespaces"
        );
        assert_eq!(without_count("a (b)"), "a (b)");
        assert_eq!(without_count("plain"), "plain");
    }
}
