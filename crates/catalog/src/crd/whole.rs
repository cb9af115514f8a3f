//! What changes in a definition beside its schemas.

use serde_json::{Value, json};

use super::{
    Change, Class, FromTo, Removed, Rule, Stored, Versions,
    definition::{Definition, Version},
};

/// Versions that come, go, and change their part.
pub(super) fn versions(old: &Definition, new: &Definition) -> Versions {
    let before = |name: &str| old.version(name);
    let mut versions = Versions::default();
    for version in &new.versions {
        match before(&version.name) {
            None => versions.added.push(version.name.clone()),
            Some(before) if before.is_served && !version.is_served => {
                versions.no_longer_served.push(version.name.clone());
            }
            Some(before) if !before.is_served && version.is_served => {
                versions.newly_served.push(version.name.clone());
            }
            Some(_) => {}
        }
    }
    let removed = old.versions.iter().filter(|version| new.version(&version.name).is_none());
    versions.removed = removed
        .map(|version| Removed { name: version.name.clone(), stored: stored(old, version) })
        .collect();
    let (from, to) = (old.storage().unwrap_or_default(), new.storage().unwrap_or_default());
    versions.storage = FromTo::of(from, to);
    versions.conversion = FromTo::of(&old.conversion.strategy, &new.conversion.strategy);
    versions.scope = FromTo::of(&old.scope, &new.scope);
    versions
}

/// Whether objects may lie in a version of the old definition.
fn stored(old: &Definition, version: &Version) -> Stored {
    if old.stored.contains(&version.name) {
        Stored::Yes
    } else if !old.stored.is_empty() {
        Stored::No
    } else if version.is_storage {
        Stored::Yes
    } else {
        Stored::Maybe
    }
}

/// The same as changes, with all else that is not a schema.
pub(super) fn changes(
    old: &Definition,
    new: &Definition,
    versions: &Versions,
    changes: &mut Vec<Change>,
) {
    let mut of_version = |rule, class, message: &str, name: &str| {
        changes.push(Change::new(rule, class, message.to_owned()).at(name, ""));
    };
    for name in &versions.added {
        of_version(Rule::VersionAdded, Class::Compatible, "is new", name);
    }
    for name in &versions.newly_served {
        of_version(Rule::VersionServed, Class::Compatible, "is served now", name);
    }
    for name in &versions.no_longer_served {
        of_version(Rule::VersionNotServed, Class::Breaking, "is no longer served", name);
    }
    for Removed { name, stored } in &versions.removed {
        let message = match stored {
            Stored::Yes => "is gone, and objects are stored in it",
            Stored::Maybe => "is gone, and objects may be stored in it",
            Stored::No => "is gone; no objects are stored in it",
        };
        of_version(Rule::VersionRemoved, Class::Breaking, message, name);
    }
    for version in &new.versions {
        if let Some(before) = old.version(&version.name) {
            same_version(before, version, changes);
        }
    }
    storage_and_conversion(old, new, versions, changes);
    immutable(old, new, changes);
    if old.preserves_unknown != new.preserves_unknown {
        let (class, message) = if old.preserves_unknown {
            (Class::Breaking, "fields that no schema names are pruned now")
        } else {
            (Class::Compatible, "fields that no schema names are kept now")
        };
        let change = Change::new(Rule::PreserveUnknownFieldsChanged, class, message.to_owned());
        let values = (json!(old.preserves_unknown), json!(new.preserves_unknown));
        changes.push(change.with(Some(values.0), Some(values.1)));
    }
    if old.names != new.names {
        let change = Change::new(
            Rule::NamesChanged,
            Class::Compatible,
            "its short names or categories change".to_owned(),
        );
        changes.push(change.with(Some(old.names.clone()), Some(new.names.clone())));
    }
}

fn storage_and_conversion(
    old: &Definition,
    new: &Definition,
    versions: &Versions,
    changes: &mut Vec<Change>,
) {
    if let Some(FromTo { from, to }) = &versions.storage {
        let message = format!("objects are stored in {to} instead of {from}");
        let change = Change::new(Rule::StorageVersionChanged, Class::Risky, message);
        changes.push(change.with(Some(json!(from)), Some(json!(to))));
    }
    if old.conversion != new.conversion {
        // The definition changes before the new pods serve the webhook.
        let message = match &versions.conversion {
            Some(FromTo { from, to }) => format!("conversion by {from} becomes conversion by {to}"),
            None => "another webhook converts".to_owned(),
        };
        let change = Change::new(Rule::ConversionChanged, Class::Risky, message);
        let value = |definition: &Definition| {
            let conversion = &definition.conversion;
            json!({ "strategy": conversion.strategy, "client": conversion.client })
        };
        changes.push(change.with(Some(value(old)), Some(value(new))));
    }
}

/// What the API server does not let change, whichever OLM asks for it. Scope has a rule of OLM v1.
fn immutable(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    let fields = [
        ("group", &old.group, &new.group),
        ("names.plural", &old.plural, &new.plural),
        ("names.kind", &old.kind, &new.kind),
    ];
    for (field, before, after) in fields {
        if before != after {
            let message =
                format!("its {field} {before} becomes {after}, which the API server refuses");
            let change = Change::new(Rule::ImmutableChanged, Class::Breaking, message);
            changes.push(change.with(Some(json!(before)), Some(json!(after))));
        }
    }
}

fn same_version(old: &Version, new: &Version, changes: &mut Vec<Change>) {
    let name = new.name.as_str();
    if !old.is_deprecated && new.is_deprecated {
        let message = "is deprecated now".to_owned();
        changes.push(Change::new(Rule::VersionDeprecated, Class::Compatible, message).at(name, ""));
    }
    let subresources_gone = old.subresources.as_object().is_some_and(|before| {
        before.iter().any(|(key, value)| !value.is_null() && new.subresources.get(key).is_none())
    });
    let class = if subresources_gone { Class::Breaking } else { Class::Risky };
    let compared: [(Rule, Class, &str, &Value, &Value); 3] = [
        (
            Rule::SubresourcesChanged,
            class,
            "its subresources change",
            &old.subresources,
            &new.subresources,
        ),
        (
            Rule::PrinterColumnsChanged,
            Class::Compatible,
            "what lists of it show changes",
            &old.printer_columns,
            &new.printer_columns,
        ),
        (
            Rule::SelectableFieldsChanged,
            Class::Risky,
            "the fields it can be selected by change",
            &old.selectable_fields,
            &new.selectable_fields,
        ),
    ];
    for (rule, class, message, before, after) in compared {
        if before != after {
            let change = Change::new(rule, class, message.to_owned()).at(name, "");
            changes.push(change.with(Some(before.clone()), Some(after.clone())));
        }
    }
}
