//! A schema and all its parts by path.

use std::collections::BTreeMap;

use super::schema::Schema;

/// The parts by path: `^` is the whole, `^.spec.list.items.name` a field of an element.
#[derive(Debug, Default)]
pub(super) struct Flat<'a> {
    by_path: BTreeMap<String, Node<'a>>,
}

/// One part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) schema: &'a Schema,
    /// How many bytes of the path lead to the part that this one belongs to.
    parent: usize,
}

// === impl Flat ===

impl<'a> Flat<'a> {
    pub(super) fn new(schema: Option<&'a Schema>) -> Self {
        let mut flat = Self::default();
        let mut open: Vec<_> =
            schema.map(|schema| ("^".to_owned(), Node { schema, parent: 0 })).into_iter().collect();
        while let Some((path, node)) = open.pop() {
            for (step, schema) in node.schema.parts() {
                open.push((format!("{path}{step}"), Node { schema, parent: path.len() }));
            }
            flat.by_path.insert(path, node);
        }
        flat
    }

    pub(super) fn get(&self, path: &str) -> Option<&'a Schema> {
        self.by_path.get(path).map(|node| node.schema)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.by_path.iter().map(|(path, node)| (path.as_str(), node))
    }
}

// === impl Node ===

impl Node<'_> {
    /// The path of the part that this one at `path` belongs to; none for the whole.
    pub(super) fn parent<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.get(..self.parent).filter(|parent| !parent.is_empty())
    }
}
