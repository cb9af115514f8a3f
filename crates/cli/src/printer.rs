//! The only place that writes: answers to standard output, everything else to standard error.
#![expect(clippy::unused_self, reason = "whoever writes must hold the printer")]

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    args::{Form, OutputArgs},
    exit::Exit,
    fault::{self, Fault},
};

/// Knows how the user wants to read.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    form: Option<Form>,
    headers: bool,
    paint: Paint,
    terminal: bool,
    usage: &'static str,
}

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// With escape codes.
    Colour,
    /// Plain.
    Plain,
}

/// What a piece of text says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It went well.
    Good,
    /// It may need somebody.
    Warn,
    /// It needs somebody.
    Bad,
    /// It is under way.
    Busy,
    /// It is beside the point.
    Quiet,
}

impl Printer {
    pub(crate) fn new(output: &OutputArgs, usage: &'static str) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = terminal && !output.no_color && !dumb && !refused;
        Self {
            form: output.output,
            headers: !output.no_headers,
            paint: if colour { Paint::Colour } else { Paint::Plain },
            terminal: terminal && !dumb,
            usage,
        }
    }

    /// The form that was asked for.
    pub(crate) fn form(&self) -> Option<Form> {
        self.form
    }

    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    pub(crate) fn headers(&self) -> bool {
        self.headers
    }

    /// True when the screen may be redrawn and a person may be asked.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How the program is called, for hints.
    pub(crate) fn usage(&self) -> &'static str {
        self.usage
    }

    /// An answer, or a part of one.
    pub(crate) fn text(&self, text: &str) {
        put(text, if text.ends_with('\n') { "" } else { "\n" });
    }

    /// An answer as the machine forms want it; false when a person is to read it.
    pub(crate) fn machine<T: Serialize>(
        &self,
        answer: &T,
        names: impl FnOnce(&T) -> Vec<String>,
    ) -> anyhow::Result<bool> {
        match self.written(answer, names)? {
            // A list of no names has no lines.
            Some(text) if text.is_empty() => Ok(true),
            Some(text) => {
                self.text(&text);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// An answer in the machine form that was asked for; nothing when a person is to read it.
    pub(crate) fn written<T: Serialize>(
        &self,
        answer: &T,
        names: impl FnOnce(&T) -> Vec<String>,
    ) -> anyhow::Result<Option<String>> {
        Ok(Some(match self.form {
            Some(Form::Json) => {
                serde_json::to_string_pretty(answer).context("cannot write JSON")?
            }
            Some(Form::Yaml) => serde_saphyr::to_string(answer).context("cannot write YAML")?,
            Some(Form::Name) => names(answer).join("\n"),
            Some(Form::Markdown | Form::Html) => {
                let text = "only a preview can be a document: leave out -o, or use json or yaml";
                return Err(Fault::usage(text).into());
            }
            Some(Form::Wide) | None => return Ok(None),
        }))
    }

    /// The whole screen anew; on anything but a terminal nothing.
    pub(crate) fn redraw(&self, text: &str) {
        if self.terminal {
            put("\u{1b}[H\u{1b}[2J", text);
        }
    }

    /// A remark that is not part of the answer.
    pub(crate) fn note(&self, text: &str) {
        say(text);
    }

    /// An error with its causes, one a line, and what to do about it.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        say(&format!("error: {error}"));
        for cause in error.chain().skip(1) {
            say(&format!("  because: {cause}"));
        }
        if let Some(advice) = fault::advice(error) {
            say(&format!("  what to do: {advice}"));
        }
    }

    /// Asks for a line that must be `expected`.
    pub(crate) fn confirm(&self, question: &str, expected: &str) -> anyhow::Result<bool> {
        let mut err = std::io::stderr();
        write!(err, "{question}: ").and_then(|()| err.flush()).context("cannot ask")?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).context("cannot read the answer")?;
        Ok(line.trim() == expected)
    }
}

impl Paint {
    /// `text` in `tone`.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => {
                let code = match tone {
                    Tone::Good => "32",
                    Tone::Warn => "33",
                    Tone::Bad => "31",
                    Tone::Busy => "36",
                    Tone::Quiet => "2",
                };
                format!("\u{1b}[{code}m{text}\u{1b}[0m")
            }
        }
    }
}

/// Prints what clap has to say: help to standard output, mistakes to standard error.
pub(crate) fn usage(error: &clap::Error) -> Exit {
    drop(error.print());
    if error.use_stderr() { Exit::Usage } else { Exit::Success }
}

/// Prints lines and nothing else.
pub(crate) fn lines(lines: &[String]) -> Exit {
    for line in lines {
        put(line, "\n");
    }
    Exit::Success
}

/// Writes to standard output. Where nobody reads any more, as behind `| head`, there is nothing
/// left to do: the program ends as a shell expects it.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "nobody would read whatever else could be said"
)]
fn put(text: &str, end: &str) {
    /// 128 and SIGPIPE.
    const NOBODY_READS: i32 = 141;
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
    match written.and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(NOBODY_READS),
        Err(error) => say(&format!("error: cannot write the answer: {error}")),
    }
}

/// Writes a line to standard error. Where nobody reads that either, nobody misses it.
fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
