//! Changes of a version's schema that the check of OLM v1 lets pass.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Change, Class, Rule, flat::Flat, schema::Schema};

/// What a field gained, and what it no longer insists on. All are compatible.
pub(super) fn changes(version: &str, old: &Flat<'_>, new: &Flat<'_>, changes: &mut Vec<Change>) {
    for (path, node) in new.iter() {
        let Some(before) = old.get(path) else {
            let is_top = node.parent(path).is_some_and(|parent| old.get(parent).is_some());
            if is_top {
                let new = Some(json!(node.schema.type_name)).filter(|name| name != "");
                let message = "is new".to_owned();
                changes.push(change((version, path), Rule::FieldAdded, message, (None, new)));
            }
            continue;
        };
        let place = (version, path);
        words(place, before, node.schema, changes);
        values(place, before, node.schema, changes);
        bounds(place, before, node.schema, changes);
        required(place, before, node.schema, changes);
    }
}

type Place<'p> = (&'p str, &'p str);

fn words(place: Place<'_>, old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    if old.description != new.description {
        let message = match (old.description.as_str(), new.description.as_str()) {
            ("", _) => "is described",
            (_, "") => "is no longer described",
            (_, _) => "is described anew",
        };
        let value = |text: &str| Some(json!(text)).filter(|text| text != "");
        let values = (value(&old.description), value(&new.description));
        changes.push(change(place, Rule::DescriptionChanged, message.to_owned(), values));
    }
}

fn values(place: Place<'_>, old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    if old.values.is_empty() || old.values == new.values {
        return;
    }
    let before: BTreeSet<String> = old.values.iter().map(ToString::to_string).collect();
    let added: Vec<&Value> =
        new.values.iter().filter(|value| !before.contains(&value.to_string())).collect();
    if !added.is_empty() {
        let texts: Vec<_> = added.iter().map(ToString::to_string).collect();
        let message = format!("allows more values: {}", texts.join(", "));
        let values = (None, Some(json!(added)));
        changes.push(change(place, Rule::EnumValueAdded, message, values));
    }
}

fn bounds(place: Place<'_>, old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    let counts =
        [("maximum", true, old.maximum, new.maximum), ("minimum", false, old.minimum, new.minimum)];
    for (keyword, is_most, old, new) in counts {
        loosened(place, (keyword, is_most), (old, new), changes);
    }
    let counts = [
        ("maxItems", true, old.max_items, new.max_items),
        ("maxLength", true, old.max_length, new.max_length),
        ("maxProperties", true, old.max_properties, new.max_properties),
        ("minItems", false, old.min_items, new.min_items),
        ("minLength", false, old.min_length, new.min_length),
        ("minProperties", false, old.min_properties, new.min_properties),
    ];
    for (keyword, is_most, old, new) in counts {
        loosened(place, (keyword, is_most), (old, new), changes);
    }
}

fn loosened<T>(
    place: Place<'_>,
    (keyword, is_most): (&str, bool),
    (old, new): (Option<T>, Option<T>),
    changes: &mut Vec<Change>,
) where
    T: PartialOrd + std::fmt::Display + Copy + Into<Value>,
{
    let Some(old) = old else { return };
    let message = match new {
        None => format!("has no {keyword} any more: it was {old}"),
        Some(new) if is_most && new > old || !is_most && new < old => {
            format!("its {keyword} goes from {old} to {new}")
        }
        Some(_) => return,
    };
    let values = (Some(old.into()), new.map(Into::into));
    changes.push(change(place, Rule::BoundLoosened, message, values));
}

fn required(place: Place<'_>, old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    let still: BTreeSet<&String> = new.required.iter().collect();
    let no_longer: Vec<_> = old.required.iter().filter(|name| !still.contains(name)).collect();
    if !no_longer.is_empty() {
        let names: Vec<_> = no_longer.iter().map(|name| name.as_str()).collect();
        let message = format!("no longer requires: {}", names.join(", "));
        let values = (Some(json!(no_longer)), None);
        changes.push(change(place, Rule::RequiredRemoved, message, values));
    }
}

fn change(
    (version, property): Place<'_>,
    rule: Rule,
    message: String,
    (old, new): (Option<Value>, Option<Value>),
) -> Change {
    Change::new(rule, Class::Compatible, message).at(version, property).with(old, new)
}
