//! How bad a finding of OLM v1's check is for those who have objects, or write them.

use super::{
    Class, Rule, rules,
    schema::{Additional, Schema},
    v1::Place,
};

/// The class of what `rule` says of a part; `is_tightened` is whether existing objects may fail it.
pub(super) fn class(
    rule: Rule,
    place: Place,
    parts: (&Schema, &Schema),
    is_tightened: bool,
) -> Class {
    match place {
        // No object was ever valid for the one because it was for the other, and none must be.
        Place::Pair => return Class::Risky,
        Place::Definition | Place::Part { is_gone: true } => return Class::Breaking,
        Place::Part { is_gone: false } => {}
    }
    if is_tightened {
        return Class::Breaking;
    }
    if rule == Rule::Unhandled {
        let (old, new) = parts;
        let classes = rules::rest(old, new).into_iter();
        return classes.map(|keyword| rest(keyword, old, new)).max().unwrap_or(Class::Compatible);
    }
    if [Rule::Default, Rule::Type, Rule::Required].contains(&rule) {
        // Objects stay valid; what is written next, or read, may be another.
        return Class::Risky;
    }
    // It does not let less through: then it lets more.
    Class::Compatible
}

/// The class of a change of a keyword that has no rule, where it does not refuse objects.
fn rest(keyword: &str, old: &Schema, new: &Schema) -> Class {
    let keeps = |schema: &Schema| schema.x_preserve_unknown_fields == Some(true);
    match keyword {
        "x-kubernetes-preserve-unknown-fields" if keeps(old) && !keeps(new) => Class::Breaking,
        "additionalProperties" => additional(old, new),
        "x-kubernetes-validations" => {
            // The reader bounds how many there are.
            let is_known = |rule| old.x_validations.contains(rule);
            if new.x_validations.iter().all(is_known) { Class::Compatible } else { Class::Risky }
        }
        // Another merge of what several write, and lists that must not repeat.
        "x-kubernetes-list-type"
        | "x-kubernetes-list-map-keys"
        | "x-kubernetes-map-type"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => Class::Risky,
        _ => Class::Compatible,
    }
}

/// Fields that were kept because of it are pruned when it goes.
fn additional(old: &Schema, new: &Schema) -> Class {
    let is_open = |schema: &Schema| {
        !matches!(schema.additional_properties, None | Some(Additional::Allowed(false)))
    };
    let constraints = |schema: &Schema| match &schema.additional_properties {
        Some(Additional::Fitting(schema)) => schema.constraints(),
        Some(Additional::Allowed(_)) | None => Schema::default(),
    };
    if is_open(old) && !is_open(new) {
        Class::Breaking
    } else if is_open(old) && constraints(old) != constraints(new) {
        Class::Risky
    } else {
        Class::Compatible
    }
}
