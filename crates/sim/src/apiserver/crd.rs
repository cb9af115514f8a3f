//! From a CustomResourceDefinition to a kind.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    error::{ApiError, Reason},
    kind::{Column, Gk, Kind, Origin, Scope, StatusEndpoint},
    kinds::gk,
    meta,
    schema::Schema,
};

/// Compiled definitions of this process by content: hundreds of servers share one copy.
static COMPILED: LazyLock<Mutex<BTreeMap<[u8; 32], Arc<Kind>>>> = LazyLock::new(Mutex::default);

/// Definitions as servers start with them, by content.
static INSTALLED: LazyLock<Mutex<BTreeMap<[u8; 32], Arc<Value>>>> = LazyLock::new(Mutex::default);

/// No process needs more; beyond it definitions are compiled each time.
const COMPILED_MAX: usize = 256;

/// The kind a definition defines.
pub(super) fn kind_of(crd: &Value) -> Result<Arc<Kind>, ApiError> {
    let bytes = crd.get("spec").map(Value::to_string).unwrap_or_default();
    let digest: [u8; 32] = Sha256::digest(bytes.as_bytes()).into();
    if let Some(kind) = COMPILED.lock().get(&digest) {
        return Ok(Arc::clone(kind));
    }
    let kind = Arc::new(compile(crd)?);
    let mut compiled = COMPILED.lock();
    if compiled.len() < COMPILED_MAX {
        compiled.insert(digest, Arc::clone(&kind));
    }
    Ok(kind)
}

fn compile(crd: &Value) -> Result<Kind, ApiError> {
    let refuse = |field: &str, why: &str| {
        ApiError::invalid(&gk::CRD, meta::name(crd), &[(field.to_owned(), why.to_owned())])
    };
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str);
    let need = |pointer: &str| {
        text(pointer).filter(|found| !found.is_empty()).ok_or_else(|| {
            refuse(&pointer.replace('/', ".").replacen('.', "", 1), "Required value")
        })
    };
    let (group, kind, plural) =
        (need("/spec/group")?, need("/spec/names/kind")?, need("/spec/names/plural")?);
    if meta::name(crd) != format!("{plural}.{group}") {
        return Err(refuse("metadata.name", "must be spec.names.plural+\".\"+spec.group"));
    }
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let version = versions
        .into_iter()
        .flatten()
        .find(|version| version.get("storage").is_some_and(|s| s == true))
        .ok_or_else(|| {
            refuse("spec.versions", "must have exactly one version marked as storage")
        })?;
    let openapi = version.pointer("/schema/openAPIV3Schema");
    let schema = openapi
        .map(Schema::compile)
        .transpose()
        .map_err(|why| refuse("spec.versions[0].schema.openAPIV3Schema", &why))?;
    let others = versions.into_iter().flatten().filter(|other| other["served"] == true);
    let others = others.filter(|other| other.get("name") != version.get("name"));
    let list = |pointer: &str| owned_list(crd.pointer(pointer));
    let status = version.pointer("/subresources/status").is_some();
    let scope = match text("/spec/scope") {
        Some("Namespaced") => Scope::Namespaced,
        Some("Cluster") => Scope::Cluster,
        Some(_) | None => return Err(refuse("spec.scope", "must be Cluster or Namespaced")),
    };
    Ok(Kind {
        gk: Gk::new(group, kind),
        version: Cow::Owned(
            version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        ),
        others: others
            .filter_map(|other| Some(Cow::Owned(other.get("name")?.as_str()?.to_owned())))
            .collect(),
        plural: Cow::Owned(plural.to_owned()),
        singular: Cow::Owned(
            text("/spec/names/singular").map_or_else(|| kind.to_lowercase(), str::to_owned),
        ),
        scope,
        status: if status { StatusEndpoint::Apart } else { StatusEndpoint::None },
        counts_generation: true,
        short_names: list("/spec/names/shortNames"),
        categories: list("/spec/names/categories"),
        columns: columns(version),
        selectable: selectable(version),
        schema,
        openapi: openapi.cloned().map(Arc::new),
        origin: Origin::Custom,
    })
}

/// The stored form of a definition that a server starts with, one copy for the whole process.
///
/// It is the same on every server, its uid too, which is what makes sharing possible.
pub(super) fn installed(crd: &Value) -> Result<Arc<Value>, ApiError> {
    let digest: [u8; 32] = Sha256::digest(crd.to_string().as_bytes()).into();
    if let Some(found) = INSTALLED.lock().get(&digest) {
        return Ok(Arc::clone(found));
    }
    kind_of(crd)?;
    let now = super::store::stamp(jiff::Timestamp::UNIX_EPOCH);
    let mut object = crd.clone();
    meta::set(&mut object, "uid", uuid::Uuid::from_bytes(first_half(&digest)).to_string());
    meta::set(&mut object, "resourceVersion", "1");
    meta::set(&mut object, "generation", 1);
    meta::set(&mut object, "creationTimestamp", now.as_str());
    object["status"] = established(&object, &now);
    let object = Arc::new(object);
    let mut installed = INSTALLED.lock();
    if installed.len() < COMPILED_MAX {
        installed.insert(digest, Arc::clone(&object));
    }
    Ok(object)
}

fn first_half(digest: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|index| digest[index])
}

/// The status of a definition that is served.
pub(super) fn established(crd: &Value, now: &str) -> Value {
    let condition = |name: &str, reason: &str, message: &str| {
        json!({"type": name, "status": "True", "lastTransitionTime": now, "reason": reason,
            "message": message})
    };
    json!({
        "acceptedNames": crd.pointer("/spec/names").cloned().unwrap_or_default(),
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": crd.pointer("/spec/versions").and_then(Value::as_array).map(|versions| {
            versions.iter().filter(|v| v["storage"] == true).map(|v| v["name"].clone())
                .collect::<Vec<_>>()
        }),
    })
}

/// Adds the version that objects are stored in from now on to those that they were.
pub(super) fn stored(crd: &mut Value) {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let is_stored = |version: &&Value| version["storage"] == true;
    let Some(name) = versions.and_then(|versions| versions.iter().find(is_stored)) else { return };
    let name = name["name"].clone();
    let Some(stored) = crd.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut)
    else {
        return;
    };
    if !stored.contains(&name) {
        stored.push(name);
    }
}

/// Reads a definition written in YAML, as `kubectl apply -f` would be given it.
pub fn read_yaml(text: &str) -> Result<Value, ApiError> {
    serde_saphyr::from_str(text)
        .map_err(|e| ApiError::new(Reason::BadRequest, format!("cannot read YAML: {e}")))
}

fn columns(version: &Value) -> Vec<Column> {
    let declared = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let Some(declared) = declared else {
        return vec![Column {
            name: "Age".into(),
            kind: "date".into(),
            priority: 0,
            description: "".into(),
            path: ".metadata.creationTimestamp".into(),
        }];
    };
    let text = |column: &Value, field: &str| {
        Cow::Owned(column.get(field).and_then(Value::as_str).unwrap_or_default().to_owned())
    };
    declared
        .iter()
        .map(|column| Column {
            name: text(column, "name"),
            kind: text(column, "type"),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            description: text(column, "description"),
            path: text(column, "jsonPath"),
        })
        .collect()
}

fn selectable(version: &Value) -> Vec<Cow<'static, str>> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    fields
        .into_iter()
        .flatten()
        .filter_map(|field| field.get("jsonPath")?.as_str())
        .map(|path| Cow::Owned(path.trim_start_matches('.').to_owned()))
        .collect()
}

fn owned_list(value: Option<&Value>) -> Vec<Cow<'static, str>> {
    let list = value.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|text| Cow::Owned(text.to_owned()))
        .collect()
}
