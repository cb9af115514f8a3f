//! From the bytes of one file to its documents.

use std::{cell::Cell, ops::ControlFlow};

use super::{
    Error, YamlError,
    fields::{Any, Fields},
    yaml,
};
use crate::{json, limits::Limits};

/// How far the start of a file is looked at to tell JSON from YAML.
const SNIFF_BYTES: usize = 4096;

/// One document of a file.
pub(super) struct Document<'a> {
    /// Which one, counted from 1.
    pub(super) number: usize,
    /// The whole file.
    text: &'a str,
    /// Of the last place whose line was asked for: the place, and its line.
    lines: &'a Cell<(usize, usize)>,
    /// Where in it the document begins.
    from: usize,
    /// Its fields, if it is an object.
    pub(super) fields: Option<Fields<'a>>,
    /// Whether there is nothing in it.
    pub(super) is_null: bool,
}

impl Document<'_> {
    /// In which line of the file it begins, counted from 1. Documents are asked in order, so each
    /// line of the file is looked at once, however many of them are wrong.
    pub(super) fn line(&self) -> usize {
        let (place, line) = self.lines.get();
        let between = self.text.as_bytes().get(place..self.from).unwrap_or_default();
        let line = line + memchr::memchr_iter(b'\n', between).count();
        self.lines.set((self.from, line));
        line
    }
}

type Each<'a> = &'a mut dyn FnMut(Document<'_>) -> Result<ControlFlow<()>, Error>;

/// Calls `each` with each document, until that says to stop; adds up how many values they have.
pub(super) fn documents(
    file: &str,
    content: &[u8],
    limits: &Limits,
    nodes: &mut usize,
    each: Each<'_>,
) -> Result<(), Error> {
    at_most(file, "bytes", content.len(), limits.file_bytes)?;
    let text = std::str::from_utf8(content).map_err(|error| Error::Text {
        file: file.to_owned(),
        line: line_at(content, error.valid_up_to()),
    })?;
    let lines = Cell::new((0, 1));
    let mut documents = Documents { file, limits, text, number: 0, nodes, lines: &lines, each };
    if is_json(text) { documents.json() } else { documents.yaml(0) }
}

fn is_json(text: &str) -> bool {
    let start = text.as_bytes();
    let start = start.get(..SNIFF_BYTES).unwrap_or(start);
    start.trim_ascii_start().starts_with(b"{")
}

/// The line, counted from 1, of a place in a text.
fn line_at(content: &[u8], offset: usize) -> usize {
    let before = content.get(..offset).unwrap_or(content);
    memchr::memchr_iter(b'\n', before).count() + 1
}

fn at_most(file: &str, what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max {
        return Err(Error::TooLarge { file: file.to_owned(), what, found, max });
    }
    Ok(())
}

struct Documents<'a, 'e> {
    file: &'a str,
    limits: &'a Limits,
    text: &'a str,
    number: usize,
    nodes: &'e mut usize,
    lines: &'e Cell<(usize, usize)>,
    each: Each<'e>,
}

impl<'a> Documents<'a, '_> {
    fn json(&mut self) -> Result<(), Error> {
        let text = self.text;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Any<'a>>();
        let mut from = 0;
        while let Some(value) = values.next() {
            let value = match value {
                Ok(value) => value,
                Err(source) => return self.not_json(from, source),
            };
            let to = values.byte_offset();
            let document = text.get(from..to).unwrap_or_default();
            let skipped = document.len() - document.trim_ascii_start().len();
            if self.document(from + skipped, document, value)?.is_break() {
                return Ok(());
            }
            from = to;
        }
        Ok(())
    }

    /// A text that begins with `{` may be YAML all the same; after two documents it no longer may.
    fn not_json(&mut self, from: usize, source: serde_json::Error) -> Result<(), Error> {
        let document = self.number + 1;
        let file = self.file.to_owned();
        if document > 2 {
            return Err(Error::Json { file, document, source });
        }
        let rest = self.text.get(from..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start().len();
        let line_end = rest.find('\n').filter(|at| *at < blank).map(|at| at + 1);
        match self.yaml(from + line_end.unwrap_or(blank)) {
            Err(Error::Yaml { document: failed, .. }) if failed == document => {
                Err(Error::Json { file, document, source })
            }
            other @ (Ok(()) | Err(_)) => other,
        }
    }

    /// Documents are what stands between lines that begin with `---`.
    fn yaml(&mut self, from: usize) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let separators = memchr::memmem::Finder::new("\n---");
        let (mut start, mut search) = (from, from);
        let is_first = self.text.get(from..).is_some_and(|text| text.starts_with("---"));
        let mut next = is_first.then_some(from);
        loop {
            let rest = bytes.get(search..).unwrap_or_default();
            let found = next.take().or_else(|| separators.find(rest).map(|at| search + at + 1));
            let Some(at) = found else { break };
            let line_end = memchr::memchr(b'\n', bytes.get(at..).unwrap_or_default());
            let line_end = line_end.map_or(bytes.len(), |length| at + length);
            let after = self.text.get(at + 3..line_end).unwrap_or_default().trim();
            if !after.is_empty() && !after.starts_with('#') {
                let reason = "only a comment may follow `---` in its line".to_owned();
                return Err(self.not_yaml(at, YamlError { line: 1, reason }));
            }
            // The line itself belongs to a document that has nothing yet.
            if start < at {
                if self.yaml_document(start, at)?.is_break() {
                    return Ok(());
                }
                start = (line_end + 1).min(bytes.len());
            }
            // Its line end may be the one before the next such line.
            search = line_end;
        }
        if start < bytes.len() {
            let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
                self.yaml_document(start, bytes.len())?;
        }
        Ok(())
    }

    fn yaml_document(&mut self, from: usize, to: usize) -> Result<ControlFlow<()>, Error> {
        let text = self.text.get(from..to).unwrap_or_default();
        let json = yaml::to_json(text, self.limits).map_err(|error| self.not_yaml(from, error))?;
        self.document(from, &json, Any::parse(&json))
    }

    /// An error in a document, with its line counted from the start of the file.
    fn not_yaml(&self, from: usize, error: YamlError) -> Error {
        let before = line_at(self.text.as_bytes(), from) - 1;
        Error::Yaml {
            file: self.file.to_owned(),
            document: self.number + 1,
            source: YamlError { line: before + error.line, ..error },
        }
    }

    fn document(
        &mut self,
        from: usize,
        json: &str,
        value: Any<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        self.number += 1;
        let size = json::size(json);
        *self.nodes += size.nodes;
        at_most(self.file, "documents", self.number, self.limits.file_documents)?;
        at_most(self.file, "levels of nesting", size.depth, self.limits.depth)?;
        at_most(self.file, "values", *self.nodes, self.limits.file_nodes)?;
        let is_null = matches!(value, Any::Null);
        let fields = match value {
            Any::Object(fields) => Some(fields),
            Any::Null | Any::Other => None,
        };
        let (number, text, lines) = (self.number, self.text, self.lines);
        (self.each)(Document { number, text, lines, from, fields, is_null })
    }
}
