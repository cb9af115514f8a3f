//! From one document to what its schema says it is.
//!
//! Field names are taken in any case, as OLM's own tools do: documented templates spell them with a
//! capital letter. Two names that differ in case alone are an error.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Bundle, Channel, Deprecation, Deprecations, Entry, Fbc, Meta, Package, RelatedImage};
use crate::graph::Property;

/// Which field of a document is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The document is not a mapping.
    #[error("document is no object")]
    NoObject,
    /// There is no `schema`, or it is empty.
    #[error("`schema` is missing")]
    NoSchema,
    /// Two fields differ in upper and lower case only.
    #[error("field `{field}` is there more than once, in upper and lower case")]
    Folded {
        /// The field in lower case.
        field: String,
    },
    /// A field has a value of another kind.
    #[error("field `{field}` is not {expected}")]
    Kind {
        /// The field, with the path to it.
        field: String,
        /// What it should be, as a phrase.
        expected: &'static str,
    },
}

pub(super) fn add(fbc: &mut Fbc, document: Value) -> Result<(), FieldError> {
    let Value::Object(map) = document else {
        return Err(FieldError::NoObject);
    };
    let keys = fold(&map)?;
    let schema = text(&map, &keys, "schema")?;
    let package = text(&map, &keys, "package")?;
    let name = text(&map, &keys, "name")?;
    let mut fields = Fields { path: String::new(), map };
    match schema.as_str() {
        "" => return Err(FieldError::NoSchema),
        "olm.package" => fbc.packages.push(Package {
            name,
            default_channel: fields.text("defaultChannel")?,
            description: fields.text("description")?,
        }),
        "olm.channel" => {
            let entries =
                fields.list("entries")?.into_iter().map(entry).collect::<Result<_, _>>()?;
            fbc.channels.push(Channel { package, name, entries });
        }
        "olm.bundle" => fbc.bundles.push(bundle(package, name, fields)?),
        "olm.deprecations" => {
            let entries = fields.list("entries")?;
            let entries = entries.into_iter().map(deprecation).collect::<Result<_, _>>()?;
            fbc.deprecations.push(Deprecations { package, entries });
        }
        _ => fbc.others.push(Meta { schema, package, name, value: Value::Object(fields.map) }),
    }
    Ok(())
}

/// Lower-case name to the name as written.
fn fold(map: &Map<String, Value>) -> Result<BTreeMap<String, String>, FieldError> {
    let mut keys = BTreeMap::new();
    for key in map.keys() {
        // Upper case first joins letters that have several lower-case forms.
        let folded = key.to_uppercase().to_lowercase();
        if keys.insert(folded.clone(), key.clone()).is_some() {
            return Err(FieldError::Folded { field: folded });
        }
    }
    Ok(keys)
}

fn text(
    map: &Map<String, Value>,
    keys: &BTreeMap<String, String>,
    field: &str,
) -> Result<String, FieldError> {
    match keys.get(field).and_then(|key| map.get(key)) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
        ) => Err(FieldError::Kind { field: field.to_owned(), expected: "a text" }),
    }
}

fn entry(mut fields: Fields) -> Result<Entry, FieldError> {
    Ok(Entry {
        name: fields.text("name")?,
        replaces: fields.text("replaces")?,
        skips: fields.texts("skips")?,
        skip_range: fields.text("skipRange")?,
    })
}

fn deprecation(mut fields: Fields) -> Result<Deprecation, FieldError> {
    let mut reference = fields.object("reference")?;
    Ok(Deprecation {
        schema: reference.text("schema")?,
        name: reference.text("name")?,
        message: fields.text("message")?,
    })
}

fn bundle(package: String, name: String, mut fields: Fields) -> Result<Bundle, FieldError> {
    let mut bundle = Bundle { package, name, image: fields.text("image")?, ..Bundle::default() };
    for mut property in fields.list("properties")? {
        let kind = property.text("type")?;
        match kind.as_str() {
            Property::BUNDLE_OBJECT => {
                bundle.objects.push(property.object("value")?.text("data")?);
            }
            Property::CSV_METADATA => {
                bundle.csv_metadata = Some(Value::Object(property.object("value")?.map));
            }
            _ => {
                let value = property.take("value").unwrap_or_default();
                bundle.properties.push(Property { kind, value });
            }
        }
    }
    for mut image in fields.list("relatedImages")? {
        bundle
            .related_images
            .push(RelatedImage { name: image.text("name")?, image: image.text("image")? });
    }
    Ok(bundle)
}

/// An object whose fields are taken out one by one, with the path to it for messages.
struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The exact name is preferred, then any spelling in another case.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).or_else(|| {
            let key = self.map.keys().find(|key| key.eq_ignore_ascii_case(field))?.clone();
            self.map.remove(&key)
        })
    }

    fn path_to(&self, field: &str) -> String {
        format!("{}{field}", self.path)
    }

    fn wrong(&self, field: &str, expected: &'static str) -> FieldError {
        FieldError::Kind { field: self.path_to(field), expected }
    }

    fn text(&mut self, field: &str) -> Result<String, FieldError> {
        match self.take(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(self.wrong(field, "a text"))
            }
        }
    }

    fn items(&mut self, field: &str) -> Result<Vec<Value>, FieldError> {
        match self.take(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                Err(self.wrong(field, "a list"))
            }
        }
    }

    fn texts(&mut self, field: &str) -> Result<Vec<String>, FieldError> {
        let texts = self.items(field)?.into_iter().map(|item| match item {
            Value::String(text) => Ok(text),
            Value::Null => Ok(String::new()),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.wrong(field, "a list of texts"))
            }
        });
        texts.collect()
    }

    fn list(&mut self, field: &str) -> Result<Vec<Self>, FieldError> {
        let items = self.items(field)?.into_iter().enumerate().map(|(index, item)| match item {
            Value::Object(map) => {
                Ok(Self { path: format!("{}[{index}].", self.path_to(field)), map })
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(self.wrong(field, "a list of objects")),
        });
        items.collect()
    }

    fn object(&mut self, field: &str) -> Result<Self, FieldError> {
        match self.take(field) {
            None | Some(Value::Null) => {
                Ok(Self { path: format!("{}.", self.path_to(field)), map: Map::new() })
            }
            Some(Value::Object(map)) => Ok(Self { path: format!("{}.", self.path_to(field)), map }),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(self.wrong(field, "an object"))
            }
        }
    }
}
