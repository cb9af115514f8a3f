//! From the bytes of one file to its documents.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::Error;
use crate::limits::Limits;

/// How far the start of a file is looked at to tell JSON from YAML.
const SNIFF_BYTES: usize = 4096;

/// Calls `each` with the number (from 1) and content of each document.
pub(super) fn documents(
    file: &str,
    content: &[u8],
    limits: &Limits,
    each: &mut dyn FnMut(usize, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let check = |what: &'static str, found: usize, max: usize| {
        if found > max {
            return Err(Error::TooLarge { file: file.to_owned(), what, found, max });
        }
        Ok(())
    };
    check("bytes", content.len(), limits.file_bytes)?;
    let mut each = |document: usize, value: Value| {
        check("documents", document, limits.file_documents)?;
        check("levels of nesting", depth(&value), limits.depth)?;
        each(document, value)
    };
    if is_json(content) {
        json(file, content, &mut each)
    } else {
        yaml(file, content, limits, &mut each)
    }
}

fn is_json(content: &[u8]) -> bool {
    let start = content.get(..SNIFF_BYTES).unwrap_or(content);
    start.trim_ascii_start().starts_with(b"{")
}

fn json(
    file: &str,
    content: &[u8],
    each: &mut dyn FnMut(usize, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let values = serde_json::Deserializer::from_slice(content).into_iter::<Value>();
    for (index, value) in values.enumerate() {
        let document = index + 1;
        let value =
            value.map_err(|source| Error::Json { file: file.to_owned(), document, source })?;
        each(document, value)?;
    }
    Ok(())
}

fn yaml(
    file: &str,
    content: &[u8],
    limits: &Limits,
    each: &mut dyn FnMut(usize, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = content;
    let values = serde_saphyr::read_with_options::<_, Value>(&mut reader, options(limits));
    let mut document = 0;
    for value in values {
        document += 1;
        let value = value.map_err(|source| Error::Yaml {
            file: file.to_owned(),
            document,
            source: Box::new(source),
        })?;
        each(document, value)?;
    }
    Ok(())
}

fn options(limits: &Limits) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(limits.file_bytes),
            // A node is at most a start and an end.
            max_events: limits.file_nodes.saturating_mul(2),
            max_nodes: limits.file_nodes,
            max_documents: limits.file_documents,
            max_depth: limits.depth,
            max_total_scalar_bytes: limits.file_bytes,
            max_total_comment_bytes: limits.file_bytes,
        },
        // The last one wins, as in the parser that OLM's own tools use.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
