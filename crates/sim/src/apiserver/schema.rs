//! Structural schemas of CustomResourceDefinitions: prune what is unknown, fill in defaults,
//! say what is wrong, and know how lists merge.
//!
//! CEL rules (`x-kubernetes-validations`) are not evaluated; the tier with real servers does that.

mod validate;

use std::{collections::BTreeMap, fmt};

use regex::Regex;
use serde_json::{Map, Value};

/// A compiled schema.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    types: Option<Type>,
    properties: BTreeMap<String, Self>,
    additional: Option<Box<Self>>,
    items: Option<Box<Self>>,
    /// How an applied list merges with the one that is there.
    list: ListType,
    atomic_map: bool,
    preserve_unknown: bool,
    embedded: bool,
    nullable: bool,
    default: Option<Value>,
    limits: Limits,
    combined: Combined,
}

/// The bounds of one value.
#[derive(Clone, Debug, Default)]
struct Limits {
    required: Vec<String>,
    allowed: Vec<Value>,
    pattern: Option<Regex>,
    format: Option<String>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    min_properties: Option<usize>,
    max_properties: Option<usize>,
}

/// `oneOf` and its kin: they judge, they do not shape.
#[derive(Clone, Debug, Default)]
struct Combined {
    all: Vec<Schema>,
    any: Vec<Schema>,
    one: Vec<Schema>,
    not: Option<Box<Schema>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// How a list behaves under server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    #[default]
    Atomic,
    /// A set of scalars.
    Set,
    /// Items found by the values of these fields.
    Map(Vec<String>),
}

/// Where in an object something was found.
#[derive(Clone, Copy, Debug)]
pub(super) enum At<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root => Ok(()),
            At::Field(At::Root, name) => f.write_str(name),
            At::Field(parent, name) => write!(f, "{parent}.{name}"),
            At::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

// === impl Schema ===

impl Schema {
    /// Compiles an `openAPIV3Schema`; the error names what cannot be understood.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let map = |key: &str| -> Result<BTreeMap<String, Self>, String> {
            let Some(fields) = schema.get(key).and_then(Value::as_object) else {
                return Ok(BTreeMap::new());
            };
            fields.iter().map(|(name, s)| Ok((name.clone(), Self::compile(s)?))).collect()
        };
        let one = |key: &str| -> Result<Option<Box<Self>>, String> {
            match schema.get(key) {
                Some(s @ Value::Object(_)) => Ok(Some(Box::new(Self::compile(s)?))),
                Some(Value::Bool(true)) => {
                    Ok(Some(Box::new(Self { preserve_unknown: true, ..Self::default() })))
                }
                Some(_) | None => Ok(None),
            }
        };
        let many = |key: &str| -> Result<Vec<Self>, String> {
            let list = schema.get(key).and_then(Value::as_array);
            list.into_iter().flatten().map(Self::compile).collect()
        };
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        Ok(Self {
            types: Type::of(schema)?,
            properties: map("properties")?,
            additional: one("additionalProperties")?,
            items: one("items")?,
            list: ListType::of(schema),
            atomic_map: schema.get("x-kubernetes-map-type").is_some_and(|t| t == "atomic"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            nullable: flag("nullable"),
            default: schema.get("default").cloned(),
            limits: Limits::of(schema)?,
            combined: Combined {
                all: many("allOf")?,
                any: many("anyOf")?,
                one: many("oneOf")?,
                not: one("not")?,
            },
        })
    }

    /// The schema of a field, if this one declares it.
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Whether the field is declared by name, as opposed to being a key of a free map.
    pub fn declares(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// The schema of a list's items.
    pub fn item(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// How a list behaves under apply.
    pub fn list_type(&self) -> &ListType {
        &self.list
    }

    /// Whether a map is replaced as a whole under apply.
    pub fn is_atomic_map(&self) -> bool {
        self.atomic_map
    }

    /// Takes out of a whole object what the schema does not know; answers what it took.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut taken = Vec::new();
        self.prune_at(At::Root, object, &mut taken, Place::TopLevel);
        taken
    }

    fn prune_at(&self, at: At<'_>, value: &mut Value, taken: &mut Vec<String>, place: Place) {
        match value {
            Value::Object(map) => {
                let keep_all = self.preserve_unknown;
                let shaped = place == Place::TopLevel || self.embedded;
                let unknown: Vec<String> = map
                    .keys()
                    .filter(|key| {
                        let of_shape =
                            shaped && matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
                        !keep_all && !of_shape && self.field(key).is_none()
                    })
                    .cloned()
                    .collect();
                for key in unknown {
                    taken.push(At::Field(&at, &key).to_string());
                    map.remove(&key);
                }
                for (key, inner) in map.iter_mut() {
                    if shaped && key == "metadata" {
                        continue;
                    }
                    if let Some(schema) = self.field(key) {
                        schema.prune_at(At::Field(&at, key), inner, taken, Place::Inside);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    schema.prune_at(At::Item(&at, index), item, taken, Place::Inside);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Fills in defaults where a parent is there and the field is not.
    pub fn fill_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (name, schema) in &self.properties {
                    let Some(default) = &schema.default else { continue };
                    let missing = match map.get(name) {
                        None => true,
                        Some(found) => found.is_null() && !schema.nullable,
                    };
                    if missing {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (key, inner) in map.iter_mut() {
                    if let Some(schema) = self.field(key) {
                        schema.fill_defaults(inner);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.fill_defaults(item);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Drops `null` where it stands for "not given", as the server does before it validates.
    pub fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, inner| {
                    !inner.is_null() || self.field(key).is_none_or(|schema| schema.nullable)
                });
                for (key, inner) in map.iter_mut() {
                    if let Some(schema) = self.field(key) {
                        schema.drop_nulls(inner);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.drop_nulls(item);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    TopLevel,
    Inside,
}

impl Type {
    fn of(schema: &Value) -> Result<Option<Self>, String> {
        if schema.get("x-kubernetes-int-or-string").is_some_and(|flag| flag == true) {
            return Ok(Some(Self::IntOrString));
        }
        let Some(word) = schema.get("type").and_then(Value::as_str) else { return Ok(None) };
        Ok(Some(match word {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            other => return Err(format!("unsupported type {other:?}")),
        }))
    }
}

impl ListType {
    fn of(schema: &Value) -> Self {
        match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => Self::Set,
            Some("map") => Self::Map(strings(schema.get("x-kubernetes-list-map-keys"))),
            Some(_) | None => Self::Atomic,
        }
    }
}

impl Limits {
    fn of(schema: &Value) -> Result<Self, String> {
        let size = |key: &str| {
            schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
        };
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let pattern = match schema.get("pattern").and_then(Value::as_str) {
            Some(text) => Some(Regex::new(text).map_err(|e| format!("pattern {text:?}: {e}"))?),
            None => None,
        };
        Ok(Self {
            required: strings(schema.get("required")),
            allowed: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            pattern,
            format: schema.get("format").and_then(Value::as_str).map(str::to_owned),
            minimum: number("minimum"),
            maximum: number("maximum"),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            min_items: size("minItems"),
            max_items: size("maxItems"),
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
        })
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether an object has a field that is not `null`.
fn has(map: &Map<String, Value>, name: &str) -> bool {
    map.contains_key(name)
}
