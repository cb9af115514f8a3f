//! A definition as the API server holds it: an old one in the form of today.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};
use wavelift_core::causes::cut;

use super::{Error, Side, reader::Reader, schema::Schema};

/// Versions in one definition. The API server's own have at most five.
const VERSIONS_MAX: usize = 64;
/// Bytes of a name in an error.
const NAME_MAX: usize = 200;

/// What a definition says, as far as it matters here.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) scope: String,
    pub(super) api: Api,
    pub(super) conversion: Conversion,
    /// Whether fields that no schema names are kept in all versions.
    pub(super) preserves_unknown: bool,
    pub(super) versions: Vec<Version>,
    /// `status.storedVersions`, which only a cluster knows.
    pub(super) stored: Vec<String>,
    /// Short names, categories and the like.
    pub(super) names: Value,
}

/// In which form a definition was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// `apiextensions.k8s.io/v1`.
    V1,
    /// `apiextensions.k8s.io/v1beta1`, which no cluster since 1.22 takes.
    V1beta1,
}

/// How objects get from one version to another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conversion {
    pub(super) strategy: String,
    /// Who converts, but for the CA, which changes with every certificate.
    pub(super) client: Value,
}

/// One version.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) is_served: bool,
    pub(super) is_storage: bool,
    pub(super) is_deprecated: bool,
    pub(super) body: Body,
    pub(super) subresources: Value,
    pub(super) printer_columns: Value,
    pub(super) selectable_fields: Value,
}

/// What is said of a version's objects.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// There is not even the place for a schema: the check of OLM v1 crashes on it.
    Missing,
    /// The place is there, and nothing in it.
    Empty,
    /// The schema.
    Known(Arc<Schema>),
}

// === impl Definition ===

impl Definition {
    pub(super) fn read(value: &Value, side: Side) -> Result<Self, Error> {
        let api = api(value).ok_or(Error::NotADefinition { side })?;
        let spec = value.get("spec").and_then(Value::as_object);
        let spec = spec.ok_or_else(|| field(side, "spec", "a mapping"))?;
        let versions = versions(spec, api, side)?;
        if versions.is_empty() {
            return Err(Error::NoVersions { side });
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = versions.iter().find(|version| !seen.insert(&version.name)) {
            return Err(Error::SameVersion { side, name: cut(&twice.name, NAME_MAX) });
        }
        let scope = text(spec, "scope");
        let is_old_form = api == Api::V1beta1;
        let names = spec.get("names").cloned().unwrap_or_default();
        let preserves_unknown = spec.get("preserveUnknownFields").and_then(Value::as_bool);
        Ok(Self {
            name: string(value.pointer("/metadata/name")),
            group: text(spec, "group"),
            kind: string(names.get("kind")),
            plural: string(names.get("plural")),
            scope: if scope.is_empty() && is_old_form { "Namespaced".to_owned() } else { scope },
            api,
            conversion: Conversion::read(spec.get("conversion")),
            preserves_unknown: preserves_unknown.unwrap_or(is_old_form),
            versions,
            stored: stored(value),
            names: other_names(&names),
        })
    }

    /// The version of that name.
    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version that objects are stored in.
    pub(super) fn storage(&self) -> Option<&str> {
        let storage = self.versions.iter().find(|version| version.is_storage);
        storage.map(|version| version.name.as_str())
    }

    /// The versions that OLM holds against the new definition: what the cluster says, else the
    /// storage version, as right after a first installation.
    pub(super) fn stored_versions(&self) -> Vec<&str> {
        if self.stored.is_empty() {
            self.storage().into_iter().collect()
        } else {
            self.stored.iter().map(String::as_str).collect()
        }
    }

    /// Whether a webhook converts between versions.
    pub(super) fn has_webhook(&self) -> bool {
        self.conversion.strategy == "Webhook"
    }
}

// === impl Conversion ===

impl Conversion {
    fn read(value: Option<&Value>) -> Self {
        let value = value.cloned().unwrap_or_default();
        let strategy = string(value.get("strategy"));
        let client = value.pointer("/webhook/clientConfig");
        let mut client = client.or_else(|| value.get("webhookClientConfig")).cloned();
        if let Some(Value::Object(client)) = &mut client {
            client.remove("caBundle");
            if let Some(Value::Object(service)) = client.get_mut("service") {
                service.entry("port").or_insert_with(|| json!(443));
            }
        }
        Self {
            strategy: if strategy.is_empty() { "None".to_owned() } else { strategy },
            client: client.unwrap_or_default(),
        }
    }
}

// === impl Body ===

impl Body {
    pub(super) fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Known(schema) => Some(schema),
            Self::Missing | Self::Empty => None,
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// What stands at `schema` or `validation`.
    fn read(value: Option<&Value>, reader: &mut Reader, place: &str) -> Result<Self, Error> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Self::Missing) };
        match value.get("openAPIV3Schema") {
            None | Some(Value::Null) => Ok(Self::Empty),
            Some(schema) => Ok(Self::Known(Arc::new(reader.read(schema, place)?))),
        }
    }
}

/// The form that a value claims. Items of a list claim none, and are of today's.
fn api(value: &Value) -> Option<Api> {
    let claim = |field: &str| value.get(field).map(Value::as_str);
    match (claim("apiVersion"), claim("kind")) {
        (Some(Some("apiextensions.k8s.io/v1")), Some(Some("CustomResourceDefinition")))
        | (None, None) => Some(Api::V1),
        (Some(Some("apiextensions.k8s.io/v1beta1")), Some(Some("CustomResourceDefinition"))) => {
            Some(Api::V1beta1)
        }
        _ => None,
    }
}

fn versions(spec: &Map<String, Value>, api: Api, side: Side) -> Result<Vec<Version>, Error> {
    let none = Vec::new();
    let list = match spec.get("versions") {
        None | Some(Value::Null) => &none,
        Some(Value::Array(list)) => list,
        Some(_) => return Err(field(side, "spec.versions", "a list")),
    };
    if list.len() > VERSIONS_MAX {
        return Err(Error::TooLarge { side, what: "versions", max: VERSIONS_MAX });
    }
    let mut reader = Reader::new(side);
    let mut versions = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let place = format!("spec.versions[{index}]");
        let Value::Object(object) = value else { return Err(field(side, &place, "a mapping")) };
        versions.push(version(object, &mut reader, side, &place)?);
    }
    if api == Api::V1beta1 {
        from_old_form(spec, &mut versions, &mut reader)?;
    }
    Ok(versions)
}

fn version(
    object: &Map<String, Value>,
    reader: &mut Reader,
    side: Side,
    place: &str,
) -> Result<Version, Error> {
    let name = text(object, "name");
    if name.is_empty() {
        return Err(field(side, &format!("{place}.name"), "a name"));
    }
    let flag = |key| object.get(key).and_then(Value::as_bool).unwrap_or_default();
    let place = format!("{place}.schema.openAPIV3Schema");
    Ok(Version {
        name,
        is_served: flag("served"),
        is_storage: flag("storage"),
        is_deprecated: flag("deprecated"),
        body: Body::read(object.get("schema"), reader, &place)?,
        subresources: object.get("subresources").cloned().unwrap_or_default(),
        printer_columns: columns(object.get("additionalPrinterColumns")),
        selectable_fields: object.get("selectableFields").cloned().unwrap_or_default(),
    })
}

/// What stood above all versions goes to each, as the API server does it.
fn from_old_form(
    spec: &Map<String, Value>,
    versions: &mut Vec<Version>,
    reader: &mut Reader,
) -> Result<(), Error> {
    let only = text(spec, "version");
    if versions.is_empty() && !only.is_empty() {
        versions.push(Version {
            name: only,
            is_served: true,
            is_storage: true,
            is_deprecated: false,
            body: Body::Missing,
            subresources: Value::Null,
            printer_columns: Value::Null,
            selectable_fields: Value::Null,
        });
    }
    let body = Body::read(spec.get("validation"), reader, "spec.validation.openAPIV3Schema")?;
    let given = |key| spec.get(key).filter(|value| !value.is_null());
    for version in versions {
        if !body.is_missing() {
            version.body = body.clone();
        }
        if let Some(subresources) = given("subresources") {
            version.subresources = subresources.clone();
        }
        if let Some(list) = given("additionalPrinterColumns") {
            version.printer_columns = columns(Some(list));
        }
        if let Some(fields) = given("selectableFields") {
            version.selectable_fields = fields.clone();
        }
    }
    Ok(())
}

/// The columns; in the old form their path had another name.
fn columns(value: Option<&Value>) -> Value {
    let mut columns = value.cloned().unwrap_or_default();
    for column in columns.as_array_mut().into_iter().flatten() {
        if let Value::Object(column) = column
            && let Some(path) = column.remove("JSONPath")
        {
            column.insert("jsonPath".to_owned(), path);
        }
    }
    columns
}

fn stored(value: &Value) -> Vec<String> {
    let stored = value.pointer("/status/storedVersions").and_then(Value::as_array);
    let names = stored.into_iter().flatten().filter_map(Value::as_str);
    names.take(VERSIONS_MAX).map(str::to_owned).collect()
}

/// The names that may change.
fn other_names(names: &Value) -> Value {
    let pick = |key: &str| {
        let list = names.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
        (key.to_owned(), list.map_or(Value::Null, |list| Value::Array(list.clone())))
    };
    Value::Object(Map::from_iter(["shortNames", "categories"].map(pick)))
}

fn text(object: &Map<String, Value>, key: &str) -> String {
    string(object.get(key))
}

fn string(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn field(side: Side, path: &str, expected: &'static str) -> Error {
    Error::Field { side, path: path.to_owned(), expected }
}
