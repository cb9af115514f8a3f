//! Whether an operator still finds the versions that it says it owns.
//!
//! A new definition is there before the new operator is. If it no longer serves a version that the
//! old ClusterServiceVersion owns, OLM v0 fails that one, does not replace it, and the new one waits
//! for it without end.

use serde::Serialize;
use serde_json::Value;

use super::{Error, Side, definition::Definition};

/// Owned APIs in one ClusterServiceVersion that are looked at.
const OWNED_MAX: usize = 10_000;

/// An API that the old ClusterServiceVersion owns and the new definition does not serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedNotServed {
    /// The definition.
    pub definition: String,
    /// Its version.
    pub version: String,
    /// The kind, as the ClusterServiceVersion names it.
    pub kind: String,
    /// What became of the version.
    pub fate: Fate,
}

/// Why an owned version is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Fate {
    /// It is in the new definition, and not served.
    NotServed,
    /// It is not in the new definition.
    Removed,
}

/// The APIs which `csv`, what is installed, owns of the definition `new`, and which that does not
/// serve.
pub fn owned_not_served(csv: &Value, new: &Value) -> Result<Vec<OwnedNotServed>, Error> {
    let new = Definition::read(new, Side::New)?;
    let owned = csv.pointer("/spec/customresourcedefinitions/owned").and_then(Value::as_array);
    let text = |api: &Value, key: &str| api.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut found = Vec::new();
    for api in owned.into_iter().flatten().take(OWNED_MAX) {
        let (Some(name), Some(version)) = (text(api, "name"), text(api, "version")) else {
            continue;
        };
        let fate = match new.version(&version) {
            None => Fate::Removed,
            Some(version) if !version.is_served => Fate::NotServed,
            Some(_) => continue,
        };
        if name == new.name {
            let kind = text(api, "kind").unwrap_or_default();
            found.push(OwnedNotServed { definition: name, version, kind, fate });
        }
    }
    Ok(found)
}
