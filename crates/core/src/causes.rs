//! Errors for people.

use std::error::Error;

/// An error with its causes, in one line.
pub fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
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
}
