//! One schema of a definition, typed as the API server types it.
//!
//! What the API server does not know is dropped, an empty list equals an absent one, and numbers
//! inside values are brought to one form: so two schemas are equal here when they are equal there.

use std::collections::BTreeMap;

use serde_json::Value;

/// A schema, or a part of one. Fields are named as their keywords are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Schema {
    pub(super) id: String,
    pub(super) dialect: String,
    pub(super) reference: Option<String>,
    pub(super) description: String,
    pub(super) type_name: String,
    pub(super) format: String,
    pub(super) title: String,
    pub(super) default: Option<Value>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) max_length: Option<i64>,
    pub(super) min_length: Option<i64>,
    pub(super) pattern: String,
    pub(super) max_items: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) values: Vec<Value>,
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) required: Vec<String>,
    pub(super) items: Option<Items>,
    pub(super) all_of: Vec<Self>,
    pub(super) one_of: Vec<Self>,
    pub(super) any_of: Vec<Self>,
    pub(super) not: Option<Box<Self>>,
    pub(super) properties: BTreeMap<String, Self>,
    pub(super) additional_properties: Option<Additional>,
    pub(super) pattern_properties: BTreeMap<String, Self>,
    pub(super) dependencies: BTreeMap<String, Dependency>,
    pub(super) additional_items: Option<Additional>,
    pub(super) definitions: BTreeMap<String, Self>,
    pub(super) external_docs: Option<Docs>,
    pub(super) example: Option<Value>,
    pub(super) nullable: bool,
    pub(super) x_preserve_unknown_fields: Option<bool>,
    pub(super) x_embedded_resource: bool,
    pub(super) x_int_or_string: bool,
    pub(super) x_list_map_keys: Vec<String>,
    pub(super) x_list_type: Option<String>,
    pub(super) x_map_type: Option<String>,
    pub(super) x_validations: Vec<CelRule>,
}

/// `items`: one schema for all elements, or one for each place.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Items {
    /// For all elements.
    Each(Box<Schema>),
    /// For each place its own.
    Places(Vec<Schema>),
}

/// `additionalProperties` and `additionalItems`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Additional {
    /// Any, or none.
    Allowed(bool),
    /// Those that fit.
    Fitting(Box<Schema>),
}

/// One of `dependencies`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Dependency {
    /// The object must fit.
    Fitting(Box<Schema>),
    /// These fields must be there.
    Fields(Vec<String>),
}

/// `externalDocs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Docs {
    pub(super) description: String,
    pub(super) url: String,
}

/// One of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CelRule {
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) message_expression: String,
    pub(super) reason: Option<String>,
    pub(super) field_path: String,
    pub(super) optional_old_self: Option<bool>,
}

// === impl Schema ===

impl Schema {
    /// The parts with how a path names them below this schema. A field that is named twice (`a.b`
    /// beside `a` with `b`) gives the same path twice, as in the check of OLM v1.
    pub(super) fn parts(&self) -> Vec<(String, &Self)> {
        let mut parts = Vec::new();
        match &self.items {
            Some(Items::Each(schema)) => parts.push((".items".to_owned(), schema.as_ref())),
            Some(Items::Places(schemas)) => numbered(&mut parts, "items", schemas),
            None => {}
        }
        numbered(&mut parts, "allOf", &self.all_of);
        numbered(&mut parts, "anyOf", &self.any_of);
        numbered(&mut parts, "oneOf", &self.one_of);
        parts.extend(self.not.as_deref().map(|schema| (".not".to_owned(), schema)));
        parts.extend(self.properties.iter().map(|(name, schema)| (below(name), schema)));
        if let Some(Additional::Fitting(schema)) = &self.additional_properties {
            parts.push((".additionalProperties".to_owned(), schema));
        }
        keyed(&mut parts, "patternProperties", &self.pattern_properties);
        if let Some(Additional::Fitting(schema)) = &self.additional_items {
            parts.push((".additionalItems".to_owned(), schema));
        }
        keyed(&mut parts, "definitions", &self.definitions);
        parts.extend(self.dependencies.iter().filter_map(|(name, dependency)| match dependency {
            Dependency::Fitting(schema) => {
                Some((format!(".dependencies[{name}]"), schema.as_ref()))
            }
            Dependency::Fields(_) => None,
        }));
        parts
    }

    /// Without words for people. The check of OLM v1 takes these away from members of `oneOf`, and
    /// from nothing that lies deeper.
    pub(super) fn without_words(&self) -> Self {
        Self {
            description: String::new(),
            title: String::new(),
            example: None,
            external_docs: None,
            ..self.clone()
        }
    }

    /// What it asks of a value, and nothing else: no words for people, no defaults, at any depth.
    pub(super) fn constraints(&self) -> Self {
        let mut schema = self.clone();
        schema.strip();
        schema
    }

    fn strip(&mut self) {
        for text in [&mut self.id, &mut self.dialect, &mut self.description, &mut self.title] {
            text.clear();
        }
        self.default = None;
        self.example = None;
        self.external_docs = None;
        let items: &mut [Self] = match &mut self.items {
            Some(Items::Each(schema)) => std::slice::from_mut(schema.as_mut()),
            Some(Items::Places(schemas)) => schemas,
            None => &mut [],
        };
        let lists = items.iter_mut().chain(&mut self.all_of).chain(&mut self.one_of);
        let lists = lists.chain(&mut self.any_of).chain(self.not.as_deref_mut());
        let maps = self.properties.values_mut().chain(self.pattern_properties.values_mut());
        lists.chain(maps).for_each(Self::strip);
        for additional in [&mut self.additional_properties, &mut self.additional_items] {
            if let Some(Additional::Fitting(schema)) = additional {
                schema.strip();
            }
        }
    }
}

/// How a path goes on to a field.
fn below(name: &str) -> String {
    if name.is_empty() { "[]".to_owned() } else { format!(".{name}") }
}

fn numbered<'a>(parts: &mut Vec<(String, &'a Schema)>, keyword: &str, schemas: &'a [Schema]) {
    let named = schemas.iter().enumerate();
    parts.extend(named.map(|(index, schema)| (format!(".{keyword}[{index}]"), schema)));
}

fn keyed<'a>(
    parts: &mut Vec<(String, &'a Schema)>,
    keyword: &str,
    schemas: &'a BTreeMap<String, Schema>,
) {
    parts.extend(schemas.iter().map(|(name, schema)| (format!(".{keyword}[{name}]"), schema)));
}
