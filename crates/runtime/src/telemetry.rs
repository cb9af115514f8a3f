//! Logging: to standard error, as text for people or as JSON for machines.
//!
//! Standard output belongs to what a program is asked for. An error is logged once, with its whole
//! chain of causes: `error = %chain(&error)`.

use std::{error::Error as StdError, fmt, io::IsTerminal as _, str::FromStr};

use tracing_subscriber::{EnvFilter, fmt as layer};

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For people; coloured on a terminal unless `NO_COLOR` is set.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What to log and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How lines look.
    pub format: Format,
    /// A filter such as `info,wavelift_hub::link=debug`.
    pub filter: String,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter does not parse.
    #[error("log filter `{filter}` is not valid")]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: Box<tracing_subscriber::filter::ParseError>,
    },
    /// Logging was set up before.
    #[error("logging is set up already")]
    SetUpTwice(#[source] Box<dyn StdError + Send + Sync>),
    /// No such format.
    #[error("log format `{0}` is neither `text` nor `json`")]
    Format(String),
}

/// An error with all its causes on one line, joined by `: `.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(&'a (dyn StdError + 'static));

/// Shows an error with all its causes.
pub fn chain<'a>(error: &'a (dyn StdError + 'static)) -> Chain<'a> {
    Chain(error)
}

/// Sets up logging for the whole process; to be called once, by `main`.
pub fn init(settings: &Settings) -> Result<(), Error> {
    let filter = parse(&settings.filter)?;
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_coloured = !is_plain && std::io::stderr().is_terminal();
    let subscriber = layer().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.format {
        Format::Text => subscriber.with_ansi(is_coloured).with_target(true).try_init(),
        Format::Json => subscriber.json().flatten_event(true).with_current_span(true).try_init(),
    }
    .map_err(Error::SetUpTwice)
}

fn parse(filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::try_new(filter)
        .map_err(|source| Error::Filter { filter: filter.to_owned(), source: Box::new(source) })
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Filter { .. } => "filter",
            Self::SetUpTwice(_) => "set_up_twice",
            Self::Format(_) => "format",
        }
    }
}

// === impl Format ===

impl Format {
    /// The name used in flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(Error::Format(other.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Settings ===

impl Default for Settings {
    fn default() -> Self {
        Self { format: Format::Text, filter: "info".to_owned() }
    }
}

// === impl Chain ===

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.to_string();
        f.write_str(&shown)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            let text = error.to_string();
            // Some libraries repeat the cause in their own text.
            if !shown.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            shown = text;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        source: Option<Box<Self>>,
    }

    fn mk_error(texts: &[&'static str]) -> Layer {
        let (text, rest) = texts.split_first().unwrap();
        let source = (!rest.is_empty()).then(|| Box::new(mk_error(rest)));
        Layer { text, source }
    }

    #[test]
    fn a_chain_names_every_cause_once() {
        let error = mk_error(&["failed to read the lease", "connection refused"]);
        assert_eq!(chain(&error).to_string(), "failed to read the lease: connection refused");
        let error = mk_error(&["failed", "outer: inner", "inner"]);
        assert_eq!(chain(&error).to_string(), "failed: outer: inner");
    }

    #[test]
    fn filters_and_formats_are_checked() {
        assert!(parse("info,wavelift_hub::link=debug").is_ok());
        assert_eq!(parse("wavelift=loud").unwrap_err().kind(), "filter");
        assert_eq!("json".parse::<Format>().unwrap(), Format::Json);
        assert_eq!("xml".parse::<Format>().unwrap_err().kind(), "format");
    }
}
