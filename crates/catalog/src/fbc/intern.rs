//! Properties that many bundles have in common are kept once.

use std::{collections::HashMap, sync::Arc};

use crate::graph::Property;

/// Makes properties and gives the same one for the same text.
///
/// Versions of one operator mostly provide the same APIs, so of ten properties nine are known.
#[derive(Debug, Default)]
pub struct Interner {
    known: HashMap<Box<str>, Arc<Property>>,
    key: String,
}

impl Interner {
    /// The property of this type whose value is this JSON text.
    pub fn property(
        &mut self,
        kind: &str,
        value: &str,
    ) -> Result<Arc<Property>, serde_json::Error> {
        self.key.clear();
        self.key.push_str(kind);
        self.key.push('\n');
        self.key.push_str(value);
        if let Some(known) = self.known.get(self.key.as_str()) {
            return Ok(Arc::clone(known));
        }
        let property = Arc::new(Property::parse(kind, value)?);
        self.known.insert(self.key.as_str().into(), Arc::clone(&property));
        Ok(property)
    }
}
