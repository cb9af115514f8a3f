//! From one YAML document to JSON text, without building it in memory.
//!
//! Aliases copy the text of what they name, so what they make of a document is bounded by the text's
//! length. The few documents with merge keys or tags take a slower way.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::scalar::{Scalar, resolve};
use crate::limits::Limits;

/// How much longer than its YAML the JSON of a document may be, in times and in bytes beyond.
const GROWTH: (usize, usize) = (10, 1 << 20);

/// Why a document is not YAML that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Error {
    /// The line of the file, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// The JSON text of a document; `null` where there is nothing in it.
pub(super) fn to_json(text: &str, limits: &Limits) -> Result<String, Error> {
    let mut writer = Writer {
        out: String::with_capacity(text.len()),
        open: Vec::new(),
        anchors: BTreeMap::new(),
        nodes: 0,
        limits,
        bytes_max: text.len().saturating_mul(GROWTH.0).saturating_add(GROWTH.1),
    };
    let options = granit_parser::options! { emit_comments: false };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) =
            event.map_err(|e| Error { line: e.marker().line(), reason: e.info() })?;
        match writer.event(event) {
            Ok(Step::GoOn) => {}
            Ok(Step::Done) => break,
            Err(Trouble::Unusual) => return slowly(text, limits),
            Err(Trouble::Wrong(reason)) => return Err(Error { line: span.start.line(), reason }),
        }
    }
    if writer.out.is_empty() {
        writer.out.push_str("null");
    }
    Ok(writer.out)
}

/// By way of a whole value in memory.
fn slowly(text: &str, limits: &Limits) -> Result<String, Error> {
    /// A node has at least a byte of its own, unless an alias brings it along.
    const NODES_A_BYTE: usize = 2;
    let nodes_max = text.len().saturating_mul(NODES_A_BYTE).min(limits.file_nodes);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(limits.file_bytes),
            // A node is at most a start and an end.
            max_events: nodes_max.saturating_mul(2).saturating_add(16),
            max_nodes: nodes_max.saturating_add(16),
            max_documents: 1,
            max_depth: limits.depth,
            max_total_scalar_bytes: limits.file_bytes,
            max_total_comment_bytes: limits.file_bytes,
        },
        // The last one wins, as in the parser that OLM's own tools use.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let value: serde_json::Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Error { line: 1, reason: error.to_string() })?;
    Ok(value.to_string())
}

enum Step {
    GoOn,
    Done,
}

enum Trouble {
    /// It may be right, but not for this way of reading.
    Unusual,
    Wrong(String),
}

/// An object or list that is not closed yet.
struct Open {
    is_object: bool,
    /// Whether a name comes next; only in objects.
    is_name_next: bool,
    is_empty: bool,
    anchor: usize,
    start: usize,
}

struct Writer<'a> {
    out: String,
    open: Vec<Open>,
    /// Where in the text what an anchor names stands; nothing while it is being written.
    anchors: BTreeMap<usize, Option<(usize, usize)>>,
    nodes: usize,
    limits: &'a Limits,
    bytes_max: usize,
}

impl Writer<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser's own list of events may grow")]
    fn event(&mut self, event: Event<'_>) -> Result<Step, Trouble> {
        match event {
            Event::Scalar(text, style, anchor, None) => self.scalar(&text, style, anchor)?,
            Event::MappingStart(_, anchor, None) => self.start(true, anchor)?,
            Event::SequenceStart(_, anchor, None) => self.start(false, anchor)?,
            Event::MappingEnd | Event::SequenceEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor)?,
            // Only the first document counts: what follows `...` is not read by OLM's own tools.
            Event::DocumentEnd | Event::StreamEnd => return Ok(Step::Done),
            Event::StreamStart | Event::DocumentStart(..) => {}
            // What has a tag, and what is not known yet.
            _ => return Err(Trouble::Unusual),
        }
        if self.out.len() > self.bytes_max {
            return Err(Trouble::Wrong("aliases make too much of it".to_owned()));
        }
        Ok(Step::GoOn)
    }

    /// Counts a node and writes what stands before it. Says whether it is the name of a field.
    fn before(&mut self) -> Result<bool, Trouble> {
        self.nodes += 1;
        if self.nodes > self.limits.file_nodes {
            return Err(Trouble::Wrong(format!("has more than {} values", self.limits.file_nodes)));
        }
        let Some(open) = self.open.last_mut() else { return Ok(false) };
        let is_name = open.is_object && open.is_name_next;
        if (is_name || !open.is_object) && !open.is_empty {
            self.out.push(',');
        }
        if open.is_object && !is_name {
            self.out.push(':');
        }
        open.is_empty = false;
        open.is_name_next = open.is_object && !is_name;
        Ok(is_name)
    }

    fn start(&mut self, is_object: bool, anchor: usize) -> Result<(), Trouble> {
        if self.before()? {
            return Err(Trouble::Wrong("the name of a field is no text".to_owned()));
        }
        if self.open.len() >= self.limits.depth {
            return Err(Trouble::Wrong(format!("is nested deeper than {}", self.limits.depth)));
        }
        let start = self.out.len();
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { is_object, is_name_next: true, is_empty: true, anchor, start });
        self.out.push(if is_object { '{' } else { '[' });
        Ok(())
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.out.push(if open.is_object { '}' } else { ']' });
        if open.anchor != 0 {
            self.anchors.insert(open.anchor, Some((open.start, self.out.len())));
        }
    }

    fn alias(&mut self, anchor: usize) -> Result<(), Trouble> {
        if self.before()? {
            return Err(Trouble::Unusual);
        }
        let Some(Some((start, end))) = self.anchors.get(&anchor).copied() else {
            return Err(Trouble::Wrong("an alias stands within what it names".to_owned()));
        };
        if self.out.len() + (end - start) > self.bytes_max {
            return Err(Trouble::Wrong("aliases make too much of it".to_owned()));
        }
        self.out.extend_from_within(start..end);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize) -> Result<(), Trouble> {
        let is_name = self.before()?;
        let start = self.out.len();
        let scalar = match style {
            ScalarStyle::Plain => resolve(text),
            ScalarStyle::SingleQuoted
            | ScalarStyle::DoubleQuoted
            | ScalarStyle::Literal
            | ScalarStyle::Folded => Scalar::Text,
        };
        if is_name {
            match scalar {
                Scalar::Text if text == "<<" && style == ScalarStyle::Plain => {
                    return Err(Trouble::Unusual);
                }
                Scalar::Null => {
                    return Err(Trouble::Wrong("the name of a field is null".to_owned()));
                }
                Scalar::Text => self.text(text),
                Scalar::Bool(_) | Scalar::Signed(_) | Scalar::Unsigned(_) | Scalar::Float(_) => {
                    self.out.push('"');
                    self.value(scalar)?;
                    self.out.push('"');
                }
            }
        } else if scalar == Scalar::Text {
            self.text(text);
        } else {
            self.value(scalar)?;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, Some((start, self.out.len())));
        }
        Ok(())
    }

    fn value(&mut self, scalar: Scalar) -> Result<(), Trouble> {
        let text = match scalar {
            Scalar::Null | Scalar::Text => "null".to_owned(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Signed(value) => value.to_string(),
            Scalar::Unsigned(value) => value.to_string(),
            Scalar::Float(value) => match serde_json::Number::from_f64(value) {
                None => return Err(Trouble::Wrong("a number is not finite".to_owned())),
                Some(_) if value.fract() == 0.0 && value.abs() < 1e21 => format!("{value:.0}"),
                Some(number) => number.to_string(),
            },
        };
        self.out.push_str(&text);
        Ok(())
    }

    /// Writes a JSON string.
    fn text(&mut self, text: &str) {
        self.out.push('"');
        let mut kept_to = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.push_str(text.get(kept_to..at).unwrap_or_default());
            match byte {
                b'"' => self.out.push_str("\\\""),
                b'\\' => self.out.push_str("\\\\"),
                b'\n' => self.out.push_str("\\n"),
                b'\t' => self.out.push_str("\\t"),
                _ => self.out.push_str(&format!("\\u{byte:04x}")),
            }
            kept_to = at + 1;
        }
        self.out.push_str(text.get(kept_to..).unwrap_or_default());
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests;
