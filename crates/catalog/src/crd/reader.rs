//! From a value that came from outside to a [`Schema`], within bounds.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use wavelift_core::causes::cut;

use super::{
    Error, Side,
    schema::{Additional, CelRule, Dependency, Docs, Items, Schema},
};

/// Levels of schemas within schemas. What a JSON reader takes has no more.
const DEPTH_MAX: usize = 64;
/// Schemas in one definition. The largest public definitions have about 20,000.
const NODES_MAX: usize = 200_000;
/// Rules in CEL of one schema. The API server's bound on their cost allows far fewer.
const RULES_MAX: usize = 1_000;
/// Bytes of a path in an error.
const ERROR_PATH_MAX: usize = 500;
/// Bytes of all paths of one definition together.
const PATH_BYTES_MAX: usize = 64 << 20;

/// Reads one definition; counts what it has read.
#[derive(Debug)]
pub(super) struct Reader {
    side: Side,
    nodes: usize,
    path_bytes: usize,
    path: String,
}

/// The fields of an object, null ones passed over: to the API server they are absent.
struct Fields<'r, 'v> {
    reader: &'r Reader,
    object: &'v Map<String, Value>,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(side: Side) -> Self {
        Self { side, nodes: 0, path_bytes: 0, path: String::new() }
    }

    /// The schema at `place`, which only errors name.
    pub(super) fn read(&mut self, value: &Value, place: &str) -> Result<Schema, Error> {
        place.clone_into(&mut self.path);
        Ok(*self.schema(value, 0)?)
    }

    /// On the heap from the start: a schema is large, and many are open at once.
    fn schema(&mut self, value: &Value, depth: usize) -> Result<Box<Schema>, Error> {
        self.enter(depth)?;
        let mut schema = self.keywords(value)?;
        let Value::Object(object) = value else { return Ok(schema) };
        let part = |keyword| object.get(keyword).filter(|value| !value.is_null());
        let deeper = depth + 1;
        if let Some(value) = part("items") {
            schema.items = Some(match value {
                Value::Array(_) => Items::Places(self.list(object, "items", deeper)?),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_) => Items::Each(self.step("items", value, deeper)?),
            });
        }
        schema.all_of = self.list(object, "allOf", deeper)?;
        schema.one_of = self.list(object, "oneOf", deeper)?;
        schema.any_of = self.list(object, "anyOf", deeper)?;
        if let Some(value) = part("not") {
            schema.not = Some(self.step("not", value, deeper)?);
        }
        schema.properties = self.map(object, "properties", deeper)?;
        schema.pattern_properties = self.map(object, "patternProperties", deeper)?;
        schema.definitions = self.map(object, "definitions", deeper)?;
        schema.additional_properties = self.additional(object, "additionalProperties", deeper)?;
        schema.additional_items = self.additional(object, "additionalItems", deeper)?;
        schema.dependencies = self.dependencies(object, deeper)?;
        Ok(schema)
    }

    /// All but the schemas within.
    fn keywords(&self, value: &Value) -> Result<Box<Schema>, Error> {
        let fields = self.fields(value)?;
        Ok(Box::new(Schema {
            id: fields.text("id")?,
            dialect: fields.text("$schema")?,
            reference: fields.maybe_text("$ref")?,
            description: fields.text("description")?,
            type_name: fields.text("type")?,
            format: fields.text("format")?,
            title: fields.text("title")?,
            default: fields.any("default")?,
            maximum: fields.number("maximum")?,
            exclusive_maximum: fields.flag("exclusiveMaximum")?,
            minimum: fields.number("minimum")?,
            exclusive_minimum: fields.flag("exclusiveMinimum")?,
            max_length: fields.count("maxLength")?,
            min_length: fields.count("minLength")?,
            pattern: fields.text("pattern")?,
            max_items: fields.count("maxItems")?,
            min_items: fields.count("minItems")?,
            unique_items: fields.flag("uniqueItems")?,
            multiple_of: fields.number("multipleOf")?,
            values: fields.values("enum")?,
            max_properties: fields.count("maxProperties")?,
            min_properties: fields.count("minProperties")?,
            required: fields.texts("required")?,
            external_docs: fields.docs()?,
            example: fields.any("example")?,
            nullable: fields.flag("nullable")?,
            x_preserve_unknown_fields: fields.maybe_flag("x-kubernetes-preserve-unknown-fields")?,
            x_embedded_resource: fields.flag("x-kubernetes-embedded-resource")?,
            x_int_or_string: fields.flag("x-kubernetes-int-or-string")?,
            x_list_map_keys: fields.texts("x-kubernetes-list-map-keys")?,
            x_list_type: fields.maybe_text("x-kubernetes-list-type")?,
            x_map_type: fields.maybe_text("x-kubernetes-map-type")?,
            x_validations: fields.cel_rules()?,
            ..Schema::default()
        }))
    }

    /// Counts one more schema.
    fn enter(&mut self, depth: usize) -> Result<(), Error> {
        self.nodes += 1;
        self.path_bytes = self.path_bytes.saturating_add(self.path.len());
        let bounds = [
            ("levels of schemas", depth, DEPTH_MAX),
            ("schemas", self.nodes, NODES_MAX),
            ("bytes of field names", self.path_bytes, PATH_BYTES_MAX),
        ];
        match bounds.into_iter().find(|(_, found, max)| found > max) {
            Some((what, _, max)) => Err(Error::TooLarge { side: self.side, what, max }),
            None => Ok(()),
        }
    }

    /// Reads a part with the path that leads to it.
    fn step(&mut self, name: &str, value: &Value, depth: usize) -> Result<Box<Schema>, Error> {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        let schema = self.schema(value, depth)?;
        self.path.truncate(length);
        Ok(schema)
    }

    fn list(
        &mut self,
        object: &Map<String, Value>,
        keyword: &str,
        depth: usize,
    ) -> Result<Vec<Schema>, Error> {
        match object.get(keyword) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                let mut schemas = Vec::with_capacity(values.len());
                for value in values {
                    schemas.push(*self.step(keyword, value, depth)?);
                }
                Ok(schemas)
            }
            Some(_) => Err(self.wrong(keyword, "a list")),
        }
    }

    fn map(
        &mut self,
        object: &Map<String, Value>,
        keyword: &str,
        depth: usize,
    ) -> Result<BTreeMap<String, Schema>, Error> {
        match object.get(keyword) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(values)) => {
                let mut schemas = BTreeMap::new();
                for (name, value) in values {
                    schemas.insert(name.clone(), *self.step(name, value, depth)?);
                }
                Ok(schemas)
            }
            Some(_) => Err(self.wrong(keyword, "a mapping")),
        }
    }

    fn additional(
        &mut self,
        object: &Map<String, Value>,
        keyword: &str,
        depth: usize,
    ) -> Result<Option<Additional>, Error> {
        match object.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(allowed)) => Ok(Some(Additional::Allowed(*allowed))),
            Some(value @ Value::Object(_)) => {
                Ok(Some(Additional::Fitting(self.step(keyword, value, depth)?)))
            }
            Some(_) => Err(self.wrong(keyword, "true, false or a schema")),
        }
    }

    fn dependencies(
        &mut self,
        object: &Map<String, Value>,
        depth: usize,
    ) -> Result<BTreeMap<String, Dependency>, Error> {
        let values = match object.get("dependencies") {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(values)) => values,
            Some(_) => return Err(self.wrong("dependencies", "a mapping")),
        };
        let mut dependencies = BTreeMap::new();
        for (name, value) in values {
            let dependency = match value {
                Value::Array(_) => {
                    let fields = Fields { reader: self, object: values };
                    Dependency::Fields(fields.texts(name)?)
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_) => Dependency::Fitting(self.step(name, value, depth)?),
            };
            dependencies.insert(name.clone(), dependency);
        }
        Ok(dependencies)
    }

    fn fields<'r, 'v>(&'r self, value: &'v Value) -> Result<Fields<'r, 'v>, Error> {
        match value {
            Value::Object(object) => Ok(Fields { reader: self, object }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(Error::Field {
                side: self.side,
                path: cut(&self.path, ERROR_PATH_MAX),
                expected: "a mapping",
            }),
        }
    }

    fn wrong(&self, keyword: &str, expected: &'static str) -> Error {
        let path = format!("{}.{keyword}", cut(&self.path, ERROR_PATH_MAX));
        Error::Field { side: self.side, path, expected }
    }
}

// === impl Fields ===

impl Fields<'_, '_> {
    fn get(&self, keyword: &str) -> Option<&Value> {
        self.object.get(keyword).filter(|value| !value.is_null())
    }

    /// The value as `read` takes it, or an error that says what was expected.
    fn with<T>(
        &self,
        keyword: &str,
        expected: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.get(keyword) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.reader.wrong(keyword, expected))
    }

    fn maybe_text(&self, keyword: &str) -> Result<Option<String>, Error> {
        self.with(keyword, "text", |value| value.as_str().map(str::to_owned))
    }

    fn text(&self, keyword: &str) -> Result<String, Error> {
        self.maybe_text(keyword).map(Option::unwrap_or_default)
    }

    fn maybe_flag(&self, keyword: &str) -> Result<Option<bool>, Error> {
        self.with(keyword, "true or false", Value::as_bool)
    }

    fn flag(&self, keyword: &str) -> Result<bool, Error> {
        self.maybe_flag(keyword).map(Option::unwrap_or_default)
    }

    fn number(&self, keyword: &str) -> Result<Option<f64>, Error> {
        self.with(keyword, "a number", Value::as_f64)
    }

    fn count(&self, keyword: &str) -> Result<Option<i64>, Error> {
        self.with(keyword, "a whole number", |value| match value {
            Value::Number(number) => one_form(number).as_i64(),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        })
    }

    fn texts(&self, keyword: &str) -> Result<Vec<String>, Error> {
        let texts = self.with(keyword, "a list of texts", |value| {
            value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        })?;
        Ok(texts.unwrap_or_default())
    }

    fn any(&self, keyword: &str) -> Result<Option<Value>, Error> {
        self.get(keyword).map(|value| self.whole(value)).transpose()
    }

    fn values(&self, keyword: &str) -> Result<Vec<Value>, Error> {
        match self.get(keyword) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => values.iter().map(|value| self.whole(value)).collect(),
            Some(_) => Err(self.reader.wrong(keyword, "a list")),
        }
    }

    fn whole(&self, value: &Value) -> Result<Value, Error> {
        let too_deep =
            Error::TooLarge { side: self.reader.side, what: "levels in a value", max: DEPTH_MAX };
        same_form(value, DEPTH_MAX).ok_or(too_deep)
    }

    fn docs(&self) -> Result<Option<Docs>, Error> {
        let Some(value) = self.get("externalDocs") else { return Ok(None) };
        let fields = self.reader.fields(value)?;
        Ok(Some(Docs { description: fields.text("description")?, url: fields.text("url")? }))
    }

    fn cel_rules(&self) -> Result<Vec<CelRule>, Error> {
        let keyword = "x-kubernetes-validations";
        let rules = match self.get(keyword) {
            None => return Ok(Vec::new()),
            Some(Value::Array(rules)) if rules.len() > RULES_MAX => {
                let (side, what) = (self.reader.side, "rules of one schema");
                return Err(Error::TooLarge { side, what, max: RULES_MAX });
            }
            Some(Value::Array(rules)) => rules,
            Some(_) => return Err(self.reader.wrong(keyword, "a list")),
        };
        let read = |value| {
            let fields = self.reader.fields(value)?;
            Ok(CelRule {
                rule: fields.text("rule")?,
                message: fields.text("message")?,
                message_expression: fields.text("messageExpression")?,
                reason: fields.maybe_text("reason")?,
                field_path: fields.text("fieldPath")?,
                optional_old_self: fields.maybe_flag("optionalOldSelf")?,
            })
        };
        rules.iter().map(read).collect()
    }
}

/// A copy with all numbers in one form; nothing if it is too deep.
fn same_form(value: &Value, depth_left: usize) -> Option<Value> {
    let deeper = depth_left.checked_sub(1);
    Some(match value {
        Value::Number(number) => Value::Number(one_form(number)),
        Value::Array(values) => {
            let deeper = deeper?;
            Value::Array(values.iter().map(|v| same_form(v, deeper)).collect::<Option<_>>()?)
        }
        Value::Object(fields) => {
            let deeper = deeper?;
            let fields = fields.iter();
            Value::Object(
                fields
                    .map(|(k, v)| Some((k.clone(), same_form(v, deeper)?)))
                    .collect::<Option<_>>()?,
            )
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    })
}

/// `1.0` as `1`: on its way through the API server a number loses how it was written.
fn one_form(number: &Number) -> Number {
    /// Up to here every whole number has its own floating form.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
            Number::from(float as i64)
        }
        Some(_) | None => number.clone(),
    }
}
