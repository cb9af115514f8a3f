//! What a bundle's `metadata/` says: annotations, dependencies and properties.

use serde_json::{Value, json};

use super::{Manifests, view::View};
use crate::{fbc::FieldError, graph::Property};

/// Where a CSV carries properties of its bundle.
const CSV_PROPERTIES: &str = "olm.properties";

/// Adds one document of a file below `metadata/`. Which field a document has decides what it is, as
/// for OLM, which looks into every file there.
pub(super) fn add(manifests: &mut Manifests, file: &str, value: &Value) -> Result<(), FieldError> {
    if value.is_null() {
        return Ok(());
    }
    let document = View::root(value);
    let annotations = document.get("annotations")?;
    if let Some(value) = annotations.value() {
        let fields = value.as_object().ok_or_else(|| annotations.wrong("an object"))?;
        for (name, value) in fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            manifests.annotations.insert(name.clone(), text);
        }
    }
    // A file of properties that names dependencies is not read for them by OLM's tools either.
    if !file.starts_with("properties.") {
        for dependency in document.get("dependencies")?.items()? {
            manifests.properties.push(required(property(&dependency)?));
        }
    }
    for stated in document.get("properties")?.items()? {
        manifests.properties.push(property(&stated)?);
    }
    Ok(())
}

/// Adds the properties that the CSV carries as JSON in an annotation.
pub(super) fn add_of_csv(manifests: &mut Manifests, csv: &Value) -> Result<(), FieldError> {
    let carried = View::root(csv).find(&["metadata", "annotations", CSV_PROPERTIES])?;
    let Some(text) = carried.text()? else { return Ok(()) };
    let value: Value = serde_json::from_str(text).map_err(|_| carried.wrong("a JSON list"))?;
    for stated in View::at(carried.path().to_owned(), &value).items()? {
        manifests.properties.push(property(&stated)?);
    }
    Ok(())
}

fn property(view: &View<'_>) -> Result<Property, FieldError> {
    let kind = view.get("type")?.required_text()?.to_owned();
    let value = view.get("value")?.value().cloned().unwrap_or_default();
    Ok(Property { kind, value })
}

/// A dependency as the property that a catalog has for it.
fn required(dependency: Property) -> Property {
    let Property { kind, value } = dependency;
    match kind.as_str() {
        Property::PACKAGE => {
            let field = |name: &str| value.get(name).cloned().unwrap_or_default();
            let value =
                json!({"packageName": field("packageName"), "versionRange": field("version")});
            Property { kind: Property::PACKAGE_REQUIRED.to_owned(), value }
        }
        Property::GVK => Property { kind: Property::GVK_REQUIRED.to_owned(), value },
        Property::LABEL => Property { kind: Property::LABEL_REQUIRED.to_owned(), value },
        _ => Property { kind, value },
    }
}
