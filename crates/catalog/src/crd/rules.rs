//! What the check of OLM v1 holds against one changed part of a schema.
//!
//! Each rule looks at one keyword of two parts and says at most one thing. What is left different
//! after all of them, whatever it is, is one more: [`Rule::Unhandled`].

use std::{collections::BTreeSet, fmt::Display};

use serde_json::{Value, json};

use super::{
    Rule,
    schema::{Additional, Dependency, Items, Schema},
};

/// One thing held against a part.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) rule: Rule,
    pub(super) message: String,
    pub(super) identity: Identity,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

/// What makes a finding the same as one of another pair of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// Its message, which names all that the rule looked at.
    Message,
    /// This text.
    Text(String),
    /// All that the parts hold beside the keywords that have rules.
    Rest,
    /// Nothing: OLM's message holds memory addresses.
    Unique,
}

/// What is held against a part that was `old` and is `new`.
pub(super) fn findings(old: &Schema, new: &Schema) -> Vec<Finding> {
    if !is_different(old, new) {
        return Vec::new();
    }
    let (most, least) = (Bound::Most, Bound::Least);
    let findings = [
        default(old, new),
        values(old, new),
        bound(Rule::Maximum, most, old.maximum, new.maximum),
        bound(Rule::MaxItems, most, old.max_items, new.max_items),
        bound(Rule::MaxLength, most, old.max_length, new.max_length),
        bound(Rule::MaxProperties, most, old.max_properties, new.max_properties),
        bound(Rule::Minimum, least, old.minimum, new.minimum),
        bound(Rule::MinItems, least, old.min_items, new.min_items),
        bound(Rule::MinLength, least, old.min_length, new.min_length),
        bound(Rule::MinProperties, least, old.min_properties, new.min_properties),
        required(old, new),
        type_name(old, new),
        pattern(old, new),
        nullable(old, new),
        one_of(old, new),
        unhandled(old, new),
    ];
    findings.into_iter().flatten().collect()
}

/// Whether the parts differ in more than their fields and elements, which have paths of their own.
fn is_different(old: &Schema, new: &Schema) -> bool {
    let bounds = |schema: &Schema| {
        let floats = [schema.maximum, schema.minimum];
        let counts = [
            schema.max_items,
            schema.max_length,
            schema.max_properties,
            schema.min_items,
            schema.min_length,
            schema.min_properties,
        ];
        (floats, counts, schema.nullable)
    };
    let texts = |schema: &Schema| {
        [&schema.description, &schema.type_name, &schema.pattern].map(String::clone)
    };
    bounds(old) != bounds(new)
        || texts(old) != texts(new)
        || old.default != new.default
        || old.values != new.values
        || old.required != new.required
        || old.one_of != new.one_of
        || !rest(old, new).is_empty()
}

/// The keywords without a rule in which the parts differ.
pub(super) fn rest(old: &Schema, new: &Schema) -> Vec<&'static str> {
    let same = [
        ("id", old.id == new.id),
        ("$schema", old.dialect == new.dialect),
        ("$ref", old.reference == new.reference),
        ("format", old.format == new.format),
        ("title", old.title == new.title),
        ("exclusiveMaximum", old.exclusive_maximum == new.exclusive_maximum),
        ("exclusiveMinimum", old.exclusive_minimum == new.exclusive_minimum),
        ("uniqueItems", old.unique_items == new.unique_items),
        ("multipleOf", old.multiple_of == new.multiple_of),
        ("allOf", old.all_of == new.all_of),
        ("anyOf", old.any_of == new.any_of),
        ("not", old.not == new.not),
        ("additionalProperties", old.additional_properties == new.additional_properties),
        ("patternProperties", old.pattern_properties == new.pattern_properties),
        ("dependencies", old.dependencies == new.dependencies),
        ("additionalItems", old.additional_items == new.additional_items),
        ("definitions", old.definitions == new.definitions),
        ("externalDocs", old.external_docs == new.external_docs),
        ("example", old.example == new.example),
        (
            "x-kubernetes-preserve-unknown-fields",
            old.x_preserve_unknown_fields == new.x_preserve_unknown_fields,
        ),
        ("x-kubernetes-embedded-resource", old.x_embedded_resource == new.x_embedded_resource),
        ("x-kubernetes-int-or-string", old.x_int_or_string == new.x_int_or_string),
        ("x-kubernetes-list-map-keys", old.x_list_map_keys == new.x_list_map_keys),
        ("x-kubernetes-list-type", old.x_list_type == new.x_list_type),
        ("x-kubernetes-map-type", old.x_map_type == new.x_map_type),
        ("x-kubernetes-validations", old.x_validations == new.x_validations),
    ];
    same.into_iter().filter_map(|(keyword, is_same)| (!is_same).then_some(keyword)).collect()
}

fn default(old: &Schema, new: &Schema) -> Option<Finding> {
    let message = match (&old.default, &new.default) {
        (None, Some(new)) => format!("gets a default: {new}"),
        (Some(old), None) => format!("loses its default: {old}"),
        (Some(old), Some(new)) if old != new => format!("its default {old} becomes {new}"),
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let finding = Finding::new(Rule::Default, message);
    Some(finding.with(old.default.clone(), new.default.clone()))
}

fn values(old: &Schema, new: &Schema) -> Option<Finding> {
    let texts = |schema: &Schema| -> BTreeSet<String> {
        schema.values.iter().map(Value::to_string).collect()
    };
    let (before, after) = (texts(old), texts(new));
    let gone: Vec<_> = before.difference(&after).map(String::as_str).collect();
    let message = if before.is_empty() && !after.is_empty() {
        let after: Vec<_> = after.iter().map(String::as_str).collect();
        format!("is limited to these values: {}", after.join(", "))
    } else if gone.is_empty() {
        return None;
    } else {
        format!("no longer allows these values: {}", gone.join(", "))
    };
    let list =
        |schema: &Schema| (!schema.values.is_empty()).then(|| Value::Array(schema.values.clone()));
    Some(Finding::new(Rule::Enum, message).with(list(old), list(new)))
}

/// Which way a bound tightens.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// By going down.
    Most,
    /// By going up.
    Least,
}

fn bound<T>(rule: Rule, bound: Bound, old: Option<T>, new: Option<T>) -> Option<Finding>
where
    T: PartialOrd + Display + Copy + Into<Value>,
{
    let new = new?;
    let message = match (old, bound) {
        (None, _) => format!("gets a {rule}: {new}"),
        (Some(old), Bound::Most) if new < old => format!("its {rule} falls from {old} to {new}"),
        (Some(old), Bound::Least) if new > old => format!("its {rule} rises from {old} to {new}"),
        (Some(_), Bound::Most | Bound::Least) => return None,
    };
    Some(Finding::new(rule, message).with(old.map(Into::into), Some(new.into())))
}

fn required(old: &Schema, new: &Schema) -> Option<Finding> {
    let before: BTreeSet<_> = old.required.iter().collect();
    let after: BTreeSet<_> = new.required.iter().collect();
    let added: Vec<_> = after.difference(&before).map(|name| name.as_str()).collect();
    if added.is_empty() {
        return None;
    }
    let message = format!("requires what was not required: {}", added.join(", "));
    Some(Finding::new(Rule::Required, message).with(None, Some(json!(added))))
}

fn type_name(old: &Schema, new: &Schema) -> Option<Finding> {
    (old.type_name != new.type_name).then(|| {
        let message = format!("its type `{}` becomes `{}`", old.type_name, new.type_name);
        Finding::new(Rule::Type, message).with_texts(&old.type_name, &new.type_name)
    })
}

fn pattern(old: &Schema, new: &Schema) -> Option<Finding> {
    let message = match (old.pattern.as_str(), new.pattern.as_str()) {
        (old, new) if old == new => return None,
        ("", new) => format!("must match a pattern: {new}"),
        (old, "") => format!("need no longer match a pattern: {old}"),
        (old, new) => format!("its pattern {old} becomes {new}"),
    };
    Some(Finding::new(Rule::Pattern, message).with_texts(&old.pattern, &new.pattern))
}

fn nullable(old: &Schema, new: &Schema) -> Option<Finding> {
    let message = match (old.nullable, new.nullable) {
        (false, true) => "may be null",
        (true, false) => "may no longer be null",
        (false, false) | (true, true) => return None,
    };
    let finding = Finding::new(Rule::Nullable, message.to_owned());
    Some(finding.with(Some(json!(old.nullable)), Some(json!(new.nullable))))
}

/// OLM compares the members as sets of the texts they print to.
fn one_of(old: &Schema, new: &Schema) -> Option<Finding> {
    let texts = |members: &[Schema]| -> BTreeSet<String> {
        members.iter().map(|member| format!("{:?}", member.without_words())).collect()
    };
    let (before, after) = (texts(&old.one_of), texts(&new.one_of));
    let any_address = |schema: &Schema| schema.one_of.iter().any(prints_address);
    let (old_address, new_address) = (any_address(old), any_address(new));
    let is_net_new = before.is_empty() && !after.is_empty();
    let gone: Vec<_> = before.difference(&after).map(String::as_str).collect();
    let added: Vec<_> = after.difference(&before).map(String::as_str).collect();
    let (message, identity) = if is_net_new {
        ("must fit exactly one of several schemas", ("net-new", &added, new_address))
    } else if !gone.is_empty() || old_address {
        ("one of the schemas it could fit is gone or changed", ("gone", &gone, old_address))
    } else if !added.is_empty() || new_address {
        ("must fit exactly one of more schemas than before", ("added", &added, new_address))
    } else {
        return None;
    };
    let (what, texts, has_address) = identity;
    let identity = if has_address {
        Identity::Unique
    } else {
        Identity::Text(format!("{what} {}", texts.join(" ")))
    };
    Some(Finding { identity, ..Finding::new(Rule::OneOf, message.to_owned()) })
}

fn unhandled(old: &Schema, new: &Schema) -> Option<Finding> {
    let rest = rest(old, new);
    if rest.is_empty() {
        return None;
    }
    let message = format!("changes in what has no rule: {}", rest.join(", "));
    Some(Finding { identity: Identity::Rest, ..Finding::new(Rule::Unhandled, message) })
}

// === impl Finding ===

impl Finding {
    fn new(rule: Rule, message: String) -> Self {
        Self { rule, message, identity: Identity::Message, old: None, new: None }
    }

    fn with(self, old: Option<Value>, new: Option<Value>) -> Self {
        Self { old, new, ..self }
    }

    fn with_texts(self, old: &str, new: &str) -> Self {
        let value = |text: &str| (!text.is_empty()).then(|| json!(text));
        self.with(value(old), value(new))
    }
}

/// Whether OLM's text of a member of `oneOf` holds memory addresses, so that it equals no other,
/// not even that of the same schema. It does where a field below prints by value: its optional
/// numbers and texts are then printed as where they lie. Such a `oneOf` counts as changed as soon
/// as anything else at its path is.
fn prints_address(schema: &Schema) -> bool {
    let by_value = [&schema.properties, &schema.pattern_properties, &schema.definitions];
    by_value.into_iter().flat_map(|schemas| schemas.values()).any(prints_own_address)
        || by_reference(schema).any(prints_address)
        || lists(schema).any(prints_address)
}

/// The same for a schema that is printed by value itself.
fn prints_own_address(schema: &Schema) -> bool {
    let counts = [
        schema.max_length,
        schema.min_length,
        schema.max_items,
        schema.min_items,
        schema.max_properties,
        schema.min_properties,
    ];
    let numbers = [schema.maximum, schema.minimum, schema.multiple_of];
    let texts = [&schema.reference, &schema.x_list_type, &schema.x_map_type];
    let mut rules = schema.x_validations.iter();
    let by_value = [&schema.properties, &schema.pattern_properties, &schema.definitions];
    counts.iter().any(Option::is_some)
        || numbers.iter().any(Option::is_some)
        || texts.iter().any(|text| text.is_some())
        || schema.x_preserve_unknown_fields.is_some()
        || rules.any(|rule| rule.reason.is_some() || rule.optional_old_self.is_some())
        || by_value.into_iter().flat_map(|schemas| schemas.values()).any(prints_own_address)
        || lists(schema).any(prints_own_address)
        || by_reference(schema).any(prints_address)
}

fn lists(schema: &Schema) -> impl Iterator<Item = &Schema> {
    schema.all_of.iter().chain(&schema.any_of).chain(&schema.one_of)
}

/// The parts that print themselves, wherever they stand.
fn by_reference(schema: &Schema) -> impl Iterator<Item = &Schema> {
    let items: &[Schema] = match &schema.items {
        Some(Items::Each(schema)) => std::slice::from_ref(schema.as_ref()),
        Some(Items::Places(schemas)) => schemas,
        None => &[],
    };
    let additional = [&schema.additional_properties, &schema.additional_items];
    let additional = additional.into_iter().filter_map(|additional| match additional {
        Some(Additional::Fitting(schema)) => Some(schema.as_ref()),
        Some(Additional::Allowed(_)) | None => None,
    });
    let dependencies = schema.dependencies.values().filter_map(|dependency| match dependency {
        Dependency::Fitting(schema) => Some(schema.as_ref()),
        Dependency::Fields(_) => None,
    });
    items.iter().chain(schema.not.as_deref()).chain(additional).chain(dependencies)
}
