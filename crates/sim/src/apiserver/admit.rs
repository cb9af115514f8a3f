//! What the real server does to built-in kinds on their way in: defaults, derived fields, names.

use base64::Engine as _;
use serde_json::{Value, json};

use super::{error::ApiError, kind::Kind, kinds::gk, meta};

/// Completes a new object of a built-in kind.
pub(super) fn new_object(kind: &Kind, object: &mut Value) {
    if kind.gk == gk::NAMESPACE {
        let name = meta::name(object).to_owned();
        let labels = meta::of_mut(object).entry("labels").or_insert_with(|| json!({}));
        meta::fields_mut(labels).insert("kubernetes.io/metadata.name".to_owned(), name.into());
        meta::put(object, "spec", Some(json!({"finalizers": ["kubernetes"]})));
        meta::put(object, "status", Some(json!({"phase": "Active"})));
    } else if kind.gk == gk::DEPLOYMENT {
        let spec =
            meta::fields_mut(meta::fields_mut(object).entry("spec").or_insert_with(|| json!({})));
        for (field, value) in
            [("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)]
        {
            spec.entry(field).or_insert_with(|| json!(value));
        }
    } else if kind.gk == gk::CRD {
        name_kind(object);
    }
    changed_object(kind, object);
}

/// Derives what is derived on every write.
pub(super) fn changed_object(kind: &Kind, object: &mut Value) {
    if kind.gk != gk::SECRET {
        return;
    }
    let fields = meta::fields_mut(object);
    fields.entry("type").or_insert_with(|| json!("Opaque"));
    let Some(Value::Object(plain)) = fields.remove("stringData") else { return };
    let data = meta::fields_mut(fields.entry("data").or_insert_with(|| json!({})));
    for (key, value) in plain {
        let text = value.as_str().unwrap_or_default();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(text).into());
    }
}

/// Fills in the names a definition leaves out.
fn name_kind(crd: &mut Value) {
    let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
}

/// Names are DNS subdomains, but for roles and their like.
pub(super) fn check_name(kind: &Kind, name: &str) -> Result<(), ApiError> {
    let refuse = |why: &str| {
        Err(ApiError::invalid(&kind.gk, name, &[("metadata.name".to_owned(), why.to_owned())]))
    };
    if name.is_empty() {
        return refuse("Required value: name or generateName is required");
    }
    if kind.gk.group() == "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return refuse(&format!(
            "Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case \
             alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        ));
    }
    Ok(())
}
