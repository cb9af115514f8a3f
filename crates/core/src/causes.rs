//! Errors for people.

use std::error::Error;

/// Bytes of a sentence. What errors quote comes from outside, and may be of any length.
const SENTENCE_MAX: usize = 8 << 10;

/// Names that are listed in full.
const LISTED_MAX: usize = 50;

/// An error with its causes, in one line of bounded length.
pub fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source.filter(|_| text.len() <= SENTENCE_MAX) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    cut(&text, SENTENCE_MAX)
}

/// A text, or its first so many bytes and a sign that there is more.
pub fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Names with commas between them; of many the first, and how many more there are.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let first: Vec<&str> = names.iter().take(LISTED_MAX).map(T::as_ref).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Told {
        text: &'static str,
        #[source]
        source: Option<Box<Self>>,
    }

    #[test]
    fn causes_follow_in_order() {
        let told = |text, source: Option<Told>| Told { text, source: source.map(Box::new) };
        assert_eq!(sentence(&told("no", None)), "no");
        let deep = told("cannot go", Some(told("no bridge", Some(told("flood", None)))));
        assert_eq!(sentence(&deep), "cannot go: no bridge: flood");
    }

    #[test]
    fn what_is_quoted_is_cut() {
        assert_eq!(cut("ä-ö", 5), "ä-ö");
        assert_eq!(cut("ä-ö", 4), "ä-…");
        let long: &'static str = Box::leak("x".repeat(1 << 20).into_boxed_str());
        let error = Told { text: long, source: Some(Box::new(Told { text: long, source: None })) };
        assert_eq!(sentence(&error).len(), SENTENCE_MAX + '…'.len_utf8());
    }

    #[test]
    fn of_many_names_the_first_are_listed() {
        let names: Vec<String> = (1..=52).map(|number| format!("n{number}")).collect();
        assert_eq!(listed(&names[..2]), "n1, n2");
        assert!(listed(&names[..50]).ends_with("n49, n50"));
        assert!(listed(&names).ends_with("n49, n50 and 2 more"));
    }
}
