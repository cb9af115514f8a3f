//! `metadata.managedFields`: who wrote what, and who gives way to whom.

use serde_json::{Value, json};

use super::{FieldSet, Hint, compare, merge};
use crate::apiserver::{
    error::{ApiError, Reason},
    meta,
};

/// One entry of `managedFields`.
#[derive(Clone, Debug)]
pub(in crate::apiserver) struct Manager {
    name: String,
    operation: String,
    subresource: String,
    api_version: String,
    time: String,
    fields: FieldSet,
}

/// Who writes now.
#[derive(Clone, Copy, Debug)]
pub(in crate::apiserver) struct Writer<'a> {
    /// The field manager; a writer without a name takes fields from others and owns none.
    pub(in crate::apiserver) name: Option<&'a str>,
    /// `status` or empty.
    pub(in crate::apiserver) subresource: &'a str,
    /// The version of the object written.
    pub(in crate::apiserver) api_version: &'a str,
    /// The time of the write.
    pub(in crate::apiserver) now: &'a str,
}

/// What came of an apply.
#[derive(Debug)]
pub(in crate::apiserver) struct Applied {
    /// The merged object, without its new `managedFields`.
    pub(in crate::apiserver) object: Value,
    /// The owners after the apply.
    pub(in crate::apiserver) managers: Vec<Manager>,
    /// Fields that others own and that would change: (who, how, the paths).
    pub(in crate::apiserver) conflicts: Vec<(String, Vec<String>)>,
}

/// The owners an object names.
pub(in crate::apiserver) fn managers(object: &Value) -> Vec<Manager> {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let read = |entry: &Value| {
        let text =
            |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Manager {
            name: text("manager"),
            operation: text("operation"),
            subresource: text("subresource"),
            api_version: text("apiVersion"),
            time: text("time"),
            fields: entry.get("fieldsV1").map(FieldSet::from_json).unwrap_or_default(),
        }
    };
    list.into_iter().flatten().map(read).collect()
}

/// The owners after `new` replaced `live`.
pub(in crate::apiserver) fn after_update(
    live: Option<&Value>,
    new: &Value,
    hint: Hint<'_>,
    writer: Writer<'_>,
) -> Vec<Manager> {
    let nothing = json!({});
    let difference = compare(live.unwrap_or(&nothing), new, hint);
    let mut owners = live.map(managers).unwrap_or_default();
    let mut mine = None;
    for (index, owner) in owners.iter_mut().enumerate() {
        if writer.is(owner, "Update") {
            mine = Some(index);
            let fields = owner.fields.union(&difference.changed).minus(&difference.removed);
            owner.take(fields, writer.now);
        } else {
            let fields = owner.fields.minus(&difference.changed).minus(&difference.removed);
            owner.fields = fields;
        }
    }
    if let (None, Some(name)) = (mine, writer.name)
        && !difference.changed.is_empty()
    {
        owners.push(writer.owner(name, "Update", difference.changed));
    }
    owners.retain(|owner| !owner.fields.is_empty());
    owners
}

/// Merges a configuration into the live object on behalf of one applier.
pub(in crate::apiserver) fn after_apply(
    live: &Value,
    config: &Value,
    hint: Hint<'_>,
    writer: Writer<'_>,
) -> Applied {
    let name = writer.name.unwrap_or_default();
    let wanted = FieldSet::of(config, hint);
    let mut object = merge(live, config, hint);
    let changed = compare(live, &object, hint).changed;
    let mut owners = managers(live);
    let mut conflicts = Vec::new();
    let mut of_others = FieldSet::default();
    let mut before = FieldSet::default();
    for owner in &mut owners {
        if writer.is(owner, "Apply") {
            before.clone_from(&owner.fields);
            owner.take(wanted.clone(), writer.now);
            continue;
        }
        let disputed = owner.fields.both(&changed);
        if !disputed.is_empty() {
            conflicts.push((owner.described(), disputed.paths()));
            owner.fields = owner.fields.minus(&disputed);
        }
        of_others = of_others.union(&owner.fields);
    }
    if !owners.iter().any(|owner| writer.is(owner, "Apply")) {
        owners.push(writer.owner(name, "Apply", wanted.clone()));
    }
    before.minus(&wanted).minus(&of_others).take_out(&mut object, hint);
    owners.retain(|owner| !owner.fields.is_empty());
    Applied { object, managers: owners, conflicts }
}

/// The refusal of an apply that is in conflict.
pub(in crate::apiserver) fn conflict(conflicts: &[(String, Vec<String>)]) -> ApiError {
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let told: Vec<String> = conflicts
        .iter()
        .map(|(who, paths)| match paths.as_slice() {
            [path] => format!("conflict with {who}: {path}"),
            many => format!("conflicts with {who}:\n- {}", many.join("\n- ")),
        })
        .collect();
    let plural = if count == 1 { "conflict" } else { "conflicts" };
    let mut error = ApiError::new(
        Reason::Conflict,
        format!("Apply failed with {count} {plural}: {}", told.join("\n")),
    );
    let causes: Vec<Value> = conflicts
        .iter()
        .flat_map(|(who, paths)| paths.iter().map(move |path| (who, path)))
        .map(|(who, path)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {who}"),
                "field": path})
        })
        .collect();
    error.details = json!({"causes": causes});
    error
}

// === impl Manager ===

impl Manager {
    /// Writes the owners into an object.
    pub(in crate::apiserver) fn write_all(owners: &[Self], object: &mut Value) {
        if owners.is_empty() {
            meta::of_mut(object).remove("managedFields");
            return;
        }
        let mut sorted: Vec<&Self> = owners.iter().collect();
        sorted.sort_by_key(|owner| {
            let Self { operation, time, name, api_version, subresource, fields: _ } = owner;
            [operation, time, name, api_version, subresource]
        });
        let entries: Vec<Value> = sorted.into_iter().map(Self::to_json).collect();
        meta::set(object, "managedFields", entries);
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.name, "operation": self.operation, "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": self.fields.to_json(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    fn take(&mut self, fields: FieldSet, now: &str) {
        if fields != self.fields {
            self.fields = fields;
            now.clone_into(&mut self.time);
        }
    }

    fn described(&self) -> String {
        let Self { name, operation, subresource, .. } = self;
        match (operation.as_str(), subresource.as_str()) {
            ("Apply", _) => format!("{name:?}"),
            (_, "") => format!("{name:?} using {}", self.api_version),
            (_, subresource) => {
                format!("{name:?} with subresource {subresource:?} using {}", self.api_version)
            }
        }
    }
}

// === impl Writer ===

impl Writer<'_> {
    fn is(&self, owner: &Manager, operation: &str) -> bool {
        self.name == Some(owner.name.as_str())
            && owner.operation == operation
            && owner.subresource == self.subresource
    }

    fn owner(&self, name: &str, operation: &str, fields: FieldSet) -> Manager {
        Manager {
            name: name.to_owned(),
            operation: operation.to_owned(),
            subresource: self.subresource.to_owned(),
            api_version: self.api_version.to_owned(),
            time: self.now.to_owned(),
            fields,
        }
    }
}
