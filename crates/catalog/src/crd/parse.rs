//! From a file's bytes to the one definition in it.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Error, Side};
use crate::json;

/// Bytes of a file. The largest public definitions have 1.5 MB.
const BYTES_MAX: usize = 32 << 20;
/// Scalars, mappings and lists in a file.
const NODES_MAX: usize = 2_000_000;
/// Levels of mappings and lists; a schema within a schema takes two.
const LEVELS_MAX: usize = 120;

/// The definition in a file, YAML or JSON. Documents of other kinds are passed over.
pub fn parse(content: &[u8], side: Side) -> Result<Value, Error> {
    parse_within(content, side, NODES_MAX)
}

/// The same where a file may hold so many values.
pub(super) fn parse_within(content: &[u8], side: Side, nodes_max: usize) -> Result<Value, Error> {
    if content.len() > BYTES_MAX {
        return Err(Error::TooLarge { side, what: "bytes", max: BYTES_MAX });
    }
    let documents = if content.trim_ascii_start().starts_with(b"{") {
        json(content, side, nodes_max)?
    } else {
        yaml(content, side, nodes_max)?
    };
    let is_definition = |value: &Value| value["kind"] == "CustomResourceDefinition";
    let mut definitions = documents.into_iter().filter(is_definition);
    let first = definitions.next().ok_or(Error::NotADefinition { side })?;
    match definitions.next() {
        None => Ok(first),
        Some(_) => Err(Error::Several { side }),
    }
}

fn json(content: &[u8], side: Side, nodes_max: usize) -> Result<Vec<Value>, Error> {
    if json::size(content).nodes > nodes_max {
        return Err(Error::TooLarge { side, what: "values", max: nodes_max });
    }
    let values = serde_json::Deserializer::from_slice(content).into_iter();
    values.collect::<Result<_, _>>().map_err(|source| Error::Json { side, source })
}

fn yaml(content: &[u8], side: Side, nodes_max: usize) -> Result<Vec<Value>, Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(BYTES_MAX),
            max_events: nodes_max.saturating_mul(2),
            max_nodes: nodes_max,
            max_depth: LEVELS_MAX,
            max_total_scalar_bytes: BYTES_MAX,
            max_total_comment_bytes: BYTES_MAX,
        },
        // The last one wins, as in the parser that OLM's own tools use.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let mut reader = content;
    let values = serde_saphyr::read_with_options::<_, Value>(&mut reader, options);
    let values = values.collect::<Result<_, _>>();
    values.map_err(|source| Error::Yaml { side, source: Box::new(source) })
}
