//! Patches: JSON merge, JSON patch, and strategic merge as far as built-in kinds need it.

use serde_json::{Map, Value};

use super::{
    error::{ApiError, Reason},
    kind::{Kind, Origin},
    meta,
};

/// The kind of patch, by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    Merge,
    Json,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(super) fn of(content_type: &str, kind: &Kind) -> Result<Self, ApiError> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        match essence {
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/json-patch+json" => Ok(Self::Json),
            "application/strategic-merge-patch+json" if kind.origin == Origin::BuiltIn => {
                Ok(Self::Strategic)
            }
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(ApiError::new(
                Reason::UnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, \
                 application/apply-patch+yaml",
            )),
        }
    }

    /// The patched object. Apply is not a function of the live object alone and is done elsewhere.
    pub(super) fn run(self, live: &Value, patch: &Value) -> Result<Value, ApiError> {
        let mut next = live.clone();
        match self {
            Self::Merge | Self::Apply => json_patch::merge(&mut next, patch),
            Self::Strategic => strategic(&mut next, patch),
            Self::Json => {
                let patch: json_patch::Patch = serde_json::from_value(patch.clone())
                    .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
                json_patch::patch(&mut next, &patch).map_err(|error| {
                    tracing::debug!(%error, "JSON patch refused");
                    let message = "the server rejected our request due to an error in our request";
                    ApiError::new(Reason::Invalid, message)
                })?;
            }
        }
        Ok(next)
    }
}

/// By which field the items of a list are told apart; other lists are replaced.
fn merge_key(list: &str) -> Option<&'static str> {
    match list {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" | "secrets" => {
            Some("name")
        }
        "volumeMounts" => Some("mountPath"),
        "conditions" => Some("type"),
        "ownerReferences" => Some("uid"),
        _ => None,
    }
}

fn strategic(live: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        live.clone_from(patch);
        return;
    };
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        *live = Value::Object(without_directives(patch));
        return;
    }
    let fields = meta::fields_mut(live);
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
        } else if name.starts_with('$') {
            // Order and retained keys: the order of a list does not matter to what runs here.
        } else if value.is_null() || is_deletion(value) {
            fields.remove(name);
        } else {
            let entry = fields.entry(name.as_str()).or_insert(Value::Null);
            strategic_field(entry, value, name);
        }
    }
}

fn strategic_field(live: &mut Value, patch: &Value, name: &str) {
    match (patch, merge_key(name)) {
        (Value::Object(_), _) => strategic(live, patch),
        (Value::Array(items), Some(key)) => strategic_list(live, items, key),
        (Value::Array(items), None) if name == "finalizers" => {
            if !live.is_array() {
                *live = Value::Array(Vec::new());
            }
            let Some(there) = live.as_array_mut() else { return };
            let new: Vec<Value> = items.iter().filter(|i| !there.contains(i)).cloned().collect();
            there.extend(new);
        }
        (_, _) => live.clone_from(patch),
    }
}

fn strategic_list(live: &mut Value, items: &[Value], key: &str) {
    if !live.is_array() {
        *live = Value::Array(Vec::new());
    }
    let Some(there) = live.as_array_mut() else { return };
    for item in items {
        let position =
            there.iter().position(|t| t.get(key).is_some() && t.get(key) == item.get(key));
        match (position, is_deletion(item)) {
            (Some(position), true) => {
                there.remove(position);
            }
            (Some(position), false) => strategic(&mut there[position], item),
            (None, true) => {}
            (None, false) => {
                let fields = item.as_object().map(without_directives).map(Value::Object);
                there.push(fields.unwrap_or_else(|| item.clone()));
            }
        }
    }
}

fn is_deletion(value: &Value) -> bool {
    value.get("$patch").is_some_and(|directive| directive == "delete")
}

fn without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().filter(|(k, _)| !k.starts_with('$')).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_strategic_patch_merges_containers_by_name_and_replaces_plain_lists() {
        let live = json!({"spec": {"containers": [
            {"name": "a", "image": "one", "args": ["x"]}, {"name": "b", "image": "two"},
        ]}, "metadata": {"finalizers": ["f"]}});
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"name": "a", "args": ["y"]}, {"name": "b", "$patch": "delete"},
                {"name": "c", "image": "three"}],
        }, "metadata": {"finalizers": ["g"], "$deleteFromPrimitiveList/finalizers": ["f"]}});
        let next = PatchKind::Strategic.run(&live, &patch).unwrap();
        assert_eq!(
            next["spec"],
            json!({"containers": [
                {"name": "a", "image": "one", "args": ["y"]}, {"name": "c", "image": "three"},
            ]})
        );
        assert_eq!(next["metadata"]["finalizers"], json!(["g"]));
    }

    #[test]
    fn a_json_patch_whose_test_fails_is_refused() {
        let live = json!({"spec": {"a": 1}});
        let patch = json!([{"op": "test", "path": "/spec/a", "value": 2},
            {"op": "replace", "path": "/spec/a", "value": 3}]);
        assert_eq!(PatchKind::Json.run(&live, &patch).unwrap_err().code, 422);
    }
}
