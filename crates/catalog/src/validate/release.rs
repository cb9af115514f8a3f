//! What is odd in release documents. `opm` does not look at them, so none of it makes a catalog
//! invalid.

use std::fmt;

use serde_json::Value;
use wavelift_core::causes::{cut, sentence};

use crate::{
    fbc::{Fbc, FieldError},
    release::{Release, SCHEMA},
};

/// Unknown fields of one document that are named.
const FIELDS_MAX: usize = 100;

/// Bytes of a field's path.
const PATH_MAX: usize = 200;

/// Something odd in a release document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The package; empty where the document names none.
    pub package: String,
    /// The bundle whose property it is; empty for a document of its own.
    pub bundle: String,
    /// What is odd.
    pub oddity: Oddity,
}

/// What may be odd in a release document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Oddity {
    /// It has a field that nobody reads: most likely a typing error.
    #[error("field `{field}` is not known")]
    UnknownField {
        /// The path of the field.
        field: String,
    },
    /// It has more such fields than are named.
    #[error("{count} more fields are not known")]
    MoreUnknownFields {
        /// How many more.
        count: usize,
    },
    /// It does not have the form, so nothing of it is read.
    #[error("can't be read: {reason}")]
    Unreadable {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "package `{}`", self.package)?;
        if !self.bundle.is_empty() {
            write!(f, ", bundle `{}`", self.bundle)?;
        }
        write!(f, ": {SCHEMA}: {}", self.oddity)
    }
}

/// All that is odd in the release documents of a catalog, in the order in which they stand in it.
pub fn warnings(fbc: &Fbc) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for meta in fbc.others.iter().filter(|meta| meta.schema == SCHEMA) {
        let oddities = match meta.json.value() {
            Ok(value) => oddities(&value),
            Err(error) => vec![unreadable(&error.to_string())],
        };
        warnings.extend(oddities.into_iter().map(|oddity| Warning {
            package: meta.package.clone(),
            bundle: String::new(),
            oddity,
        }));
    }
    for bundle in &fbc.bundles {
        for property in bundle.properties.iter().filter(|property| property.kind == SCHEMA) {
            warnings.extend(oddities(&property.value).into_iter().map(|oddity| Warning {
                package: bundle.package.clone(),
                bundle: bundle.name.clone(),
                oddity,
            }));
        }
    }
    warnings
}

fn oddities(value: &Value) -> Vec<Oddity> {
    let release: Result<Release, FieldError> = Release::parse(value);
    let fields = match release {
        Ok(release) => release.unknown_fields(),
        Err(error) => return vec![unreadable(&sentence(&error))],
    };
    let more = fields.len().saturating_sub(FIELDS_MAX);
    let named = fields.into_iter().take(FIELDS_MAX);
    let mut oddities: Vec<Oddity> =
        named.map(|field| Oddity::UnknownField { field: cut(&field, PATH_MAX) }).collect();
    if more > 0 {
        oddities.push(Oddity::MoreUnknownFields { count: more });
    }
    oddities
}

fn unreadable(reason: &str) -> Oddity {
    Oddity::Unreadable { reason: reason.to_owned() }
}
