//! Errors that say more than their text: how the program ends, and what to do.

use std::fmt;

use crate::exit::Exit;

/// An error, or the context of one, that somebody can put right.
#[derive(Debug)]
pub(crate) struct Fault {
    text: String,
    advice: Option<String>,
    exit: Exit,
}

impl Fault {
    /// What was typed, or what a file holds, is not what it should be.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None, exit: Exit::Usage }
    }

    /// Something could not be done.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None, exit: Exit::Error }
    }

    /// The same with what to do about it.
    #[must_use]
    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

/// How the program ends with this error.
pub(crate) fn exit(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Fault>().map_or(Exit::Error, |fault| fault.exit)
}

/// What to do about it.
pub(crate) fn advice(error: &anyhow::Error) -> Option<&str> {
    error.downcast_ref::<Fault>()?.advice.as_deref()
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_fault_is_found_as_an_error_and_as_the_context_of_one() {
        let alone = anyhow::Error::new(Fault::usage("a"));
        assert_eq!((exit(&alone), advice(&alone)), (Exit::Usage, None));
        let above: anyhow::Result<()> = Err(anyhow::anyhow!("cause"));
        let above = above.context(Fault::error("a").advice("b")).context("c").unwrap_err();
        assert_eq!((exit(&above), advice(&above)), (Exit::Error, Some("b")));
        assert_eq!(exit(&anyhow::anyhow!("x")), Exit::Error);
    }
}
