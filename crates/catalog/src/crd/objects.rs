//! Whether objects that fit a version's old schema may fail its new one.
//!
//! OLM v0 lists the objects and validates each against the new schema. The list comes through the
//! old definition: fields which it does not name are pruned (unless it keeps them) and its defaults
//! are filled in, while defaults of the new one are not. Rules in CEL and list types are not looked
//! at. So a keyword of the new schema can refuse an object if what the old one lets through is not
//! all within it. Where this can't be told (patterns, `anyOf`, ...) it can.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use super::schema::{Additional, Items, Schema};

/// A keyword that may refuse existing objects, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tightened {
    pub(super) property: String,
    pub(super) keyword: &'static str,
}

/// Formats that the API server knows for text; others are ignored.
pub(super) const FORMATS: [&str; 25] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Members that are compared with each other, each with each. More than that can't be told.
const COMPARED_MAX: usize = 250_000;

/// How an object's metadata is, whatever a definition says of it.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let of = |name: &str| Schema { type_name: name.to_owned(), ..Schema::default() };
    let texts = Schema {
        additional_properties: Some(Additional::Fitting(Box::new(of("string")))),
        ..of("object")
    };
    let list = |each: Schema| Schema { items: Some(Items::Each(Box::new(each))), ..of("array") };
    let single = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
    ];
    let mut properties: BTreeMap<String, Schema> =
        single.iter().map(|name| ((*name).to_owned(), of("string"))).collect();
    properties.insert("labels".to_owned(), texts.clone());
    properties.insert("annotations".to_owned(), texts);
    properties.insert("finalizers".to_owned(), list(of("string")));
    properties.insert("ownerReferences".to_owned(), list(of("object")));
    properties.insert("managedFields".to_owned(), list(of("object")));
    properties.insert("generation".to_owned(), of("integer"));
    let required = vec!["name".to_owned()];
    Schema { required, properties, ..of("object") }
});

/// The kind and version of every object.
static TEXT: LazyLock<Schema> =
    LazyLock::new(|| Schema { type_name: "string".to_owned(), ..Schema::default() });

/// What the old definition lets through where it does not name a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Nothing: unknown fields are pruned.
    Pruned,
    /// Anything.
    Kept,
}

/// Where in an object a schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The object itself, or one within it that is an object of its own.
    Object,
    /// Its metadata.
    Metadata,
    /// Anything else.
    Field,
}

/// All keywords of `new` that may refuse objects which `old` let through.
pub(super) fn tightened(old: Option<&Schema>, new: &Schema, unknown: Unknown) -> Vec<Tightened> {
    // Without a schema there is nothing to prune by.
    let anything = Schema::default();
    let (old, unknown) = match old {
        Some(old) => (old, unknown),
        None => (&anything, Unknown::Kept),
    };
    let mut walk = Walk { unknown, path: "^".to_owned(), found: Vec::new() };
    walk.compare(old, new, Level::Object);
    walk.found
        .sort_by(|one, other| (&one.property, one.keyword).cmp(&(&other.property, other.keyword)));
    walk.found.dedup();
    walk.found
}

struct Walk {
    unknown: Unknown,
    path: String,
    found: Vec<Tightened>,
}

// === impl Walk ===

impl Walk {
    /// No deeper than the schemas are, which the reader bounds.
    fn compare(&mut self, old: &Schema, new: &Schema, level: Level) {
        for keyword in own_keywords(old, new) {
            let is_implied =
                keyword == "type" && level != Level::Field && new.type_name == "object";
            if !is_implied {
                self.push(keyword);
            }
        }
        let required: BTreeSet<&String> = old.required.iter().collect();
        for name in &new.required {
            let field = old.properties.get(name);
            let is_there = required.contains(name)
                || field.is_some_and(|field| field.default.is_some())
                || level == Level::Object
                    && ["apiVersion", "kind", "metadata"].contains(&name.as_str())
                || level == Level::Metadata && name == "name";
            if !is_there {
                self.push("required");
                break;
            }
        }
        self.items(old, new);
        self.properties(old, new, level);
        self.additional(old, new);
    }

    fn items(&mut self, old: &Schema, new: &Schema) {
        match (&old.items, &new.items) {
            (Some(Items::Each(before)), Some(Items::Each(after))) => {
                self.step(".items", |walk| walk.compare(before, after, level_of(after)));
            }
            (None, Some(Items::Each(after))) => {
                self.step(".items", |walk| walk.compare_anything(after));
            }
            (before, Some(Items::Places(_))) if *before != new.items => self.push("items"),
            (Some(Items::Places(_)), Some(Items::Each(_))) => self.push("items"),
            (_, None | Some(Items::Places(_))) => {}
        }
    }

    fn properties(&mut self, old: &Schema, new: &Schema, level: Level) {
        for (name, after) in &new.properties {
            let implied: Option<&Schema> = match (level, name.as_str()) {
                (Level::Object, "metadata") => Some(&METADATA),
                (Level::Object, "apiVersion" | "kind") => Some(&TEXT),
                (Level::Metadata, name) => METADATA.properties.get(name),
                (Level::Object | Level::Field, _) => None,
            };
            let next = match (level, name.as_str()) {
                (Level::Object, "metadata") => Level::Metadata,
                _ => level_of(after),
            };
            let step = if name.is_empty() { "[]".to_owned() } else { format!(".{name}") };
            let known = old.properties.get(name);
            let known = known.filter(|known| implied.is_none() || !types(known).is_empty());
            match (known.or(implied), &old.additional_properties) {
                (Some(before), _) => self.step(&step, |walk| walk.compare(before, after, next)),
                (None, Some(Additional::Fitting(before))) => {
                    self.step(&step, |walk| walk.compare(before, after, next));
                }
                (None, _) if level != Level::Metadata && self.keeps(old) => {
                    self.step(&step, |walk| walk.compare_anything(after));
                }
                (None, _) => {}
            }
        }
    }

    /// Fields that the new schema does not name.
    fn additional(&mut self, old: &Schema, new: &Schema) {
        let mut unnamed =
            old.properties.iter().filter(|(name, _)| !new.properties.contains_key(*name));
        match (&old.additional_properties, &new.additional_properties) {
            (_, None | Some(Additional::Allowed(true))) => {}
            (before, Some(Additional::Allowed(false))) => {
                let is_open = match before {
                    Some(Additional::Allowed(allowed)) => *allowed,
                    Some(Additional::Fitting(_)) => true,
                    None => self.keeps(old),
                };
                if is_open || unnamed.next().is_some() {
                    self.push("additionalProperties");
                }
            }
            (before, Some(Additional::Fitting(after))) => {
                let level = level_of(after);
                let unnamed: Vec<_> = unnamed.map(|(_, schema)| schema).collect();
                self.step(".additionalProperties", |walk| {
                    for schema in unnamed {
                        walk.compare(schema, after, level);
                    }
                    match before {
                        Some(Additional::Fitting(before)) => walk.compare(before, after, level),
                        Some(Additional::Allowed(true)) => walk.compare_anything(after),
                        None if walk.keeps(old) => walk.compare_anything(after),
                        Some(Additional::Allowed(false)) | None => {}
                    }
                });
            }
        }
    }

    /// Where the old schema said nothing at all.
    fn compare_anything(&mut self, new: &Schema) {
        let before = self.unknown;
        self.unknown = Unknown::Kept;
        self.compare(&Schema::default(), new, Level::Field);
        self.unknown = before;
    }

    /// Whether a field that the old schema does not name is still there.
    fn keeps(&self, old: &Schema) -> bool {
        self.unknown == Unknown::Kept
            || old.x_preserve_unknown_fields == Some(true)
            || matches!(old.additional_properties, Some(Additional::Allowed(true)))
    }

    fn step(&mut self, step: &str, next: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        next(self);
        self.path.truncate(length);
    }

    fn push(&mut self, keyword: &'static str) {
        self.found.push(Tightened { property: self.path.clone(), keyword });
    }
}

fn level_of(schema: &Schema) -> Level {
    if schema.x_embedded_resource { Level::Object } else { Level::Field }
}

/// Keywords of the schema itself that let less through than before.
fn own_keywords(old: &Schema, new: &Schema) -> Vec<&'static str> {
    let texts = |schema: &Schema| -> BTreeSet<String> {
        schema.values.iter().map(ToString::to_string).collect()
    };
    let (before, after) = (texts(old), texts(new));
    let has_fewer_values =
        !after.is_empty() && (before.is_empty() || before.iter().any(|text| !after.contains(text)));
    let checks = [
        ("type", has_fewer_types(old, new)),
        ("nullable", old.nullable && !new.nullable && !types(new).is_empty()),
        ("enum", has_fewer_values),
        ("maximum", has_lower_maximum(old, new)),
        ("minimum", has_higher_minimum(old, new)),
        ("maxLength", is_lower(old.max_length, new.max_length)),
        ("minLength", is_higher(old.min_length, new.min_length)),
        ("maxItems", is_lower(old.max_items, new.max_items)),
        ("minItems", is_higher(old.min_items, new.min_items)),
        ("maxProperties", is_lower(old.max_properties, new.max_properties)),
        ("minProperties", is_higher(old.min_properties, new.min_properties)),
        ("pattern", !new.pattern.is_empty() && new.pattern != old.pattern),
        ("format", has_new_format(old, new)),
        ("uniqueItems", new.unique_items && !old.unique_items),
        ("multipleOf", new.multiple_of.is_some() && new.multiple_of != old.multiple_of),
    ];
    let own = checks.into_iter().filter_map(|(keyword, is_tighter)| is_tighter.then_some(keyword));
    own.chain(joined(old, new)).collect()
}

/// Keywords that hold whole schemas: tighter unless the new one plainly lets as much through.
fn joined(old: &Schema, new: &Schema) -> impl Iterator<Item = &'static str> {
    let all = |schemas: &[Schema]| schemas.iter().map(Schema::constraints).collect::<Vec<_>>();
    let is_within = |few: &[Schema], many: &[Schema]| {
        few == many
            || few.len().saturating_mul(many.len()) <= COMPARED_MAX
                && few.iter().all(|one| many.contains(one))
    };
    let (old_any, new_any) = (all(&old.any_of), all(&new.any_of));
    let has_any = !new_any.is_empty()
        && !is_int_or_string(old, &new_any)
        && (old_any.is_empty() || !is_within(&old_any, &new_any));
    let (old_one, new_one) = (all(&old.one_of), all(&new.one_of));
    let is_same_one = is_within(&old_one, &new_one) && is_within(&new_one, &old_one);
    let not = |schema: &Schema| schema.not.as_ref().map(|schema| schema.constraints());
    let checks = [
        ("allOf", !is_within(&all(&new.all_of), &all(&old.all_of))),
        ("anyOf", has_any),
        ("oneOf", !new_one.is_empty() && !is_same_one),
        ("not", new.not.is_some() && not(old) != not(new)),
        (
            "patternProperties",
            !new.pattern_properties.is_empty() && old.pattern_properties != new.pattern_properties,
        ),
        ("dependencies", !new.dependencies.is_empty() && old.dependencies != new.dependencies),
        (
            "additionalItems",
            new.additional_items.is_some() && old.additional_items != new.additional_items,
        ),
    ];
    checks.into_iter().filter_map(|(keyword, is_tighter)| is_tighter.then_some(keyword))
}

/// Whether the members only say again what the types of the old schema are.
fn is_int_or_string(old: &Schema, members: &[Schema]) -> bool {
    let of = |name: &str| Schema { type_name: name.to_owned(), ..Schema::default() };
    let before = types(old);
    !before.is_empty() && before.iter().all(|name| members.contains(&of(name)))
}

/// The types that a value may have; none means any.
fn types(schema: &Schema) -> Vec<&str> {
    if schema.x_int_or_string {
        vec!["integer", "string"]
    } else {
        Some(schema.type_name.as_str()).filter(|name| !name.is_empty()).into_iter().collect()
    }
}

fn has_fewer_types(old: &Schema, new: &Schema) -> bool {
    let (before, after) = (types(old), types(new));
    let is_allowed =
        |name: &str| after.contains(&name) || name == "integer" && after.contains(&"number");
    !after.is_empty() && (before.is_empty() || !before.into_iter().all(is_allowed))
}

fn has_lower_maximum(old: &Schema, new: &Schema) -> bool {
    new.maximum.is_some_and(|after| {
        old.maximum.is_none_or(|before| {
            after < before || after <= before && new.exclusive_maximum && !old.exclusive_maximum
        })
    })
}

fn has_higher_minimum(old: &Schema, new: &Schema) -> bool {
    new.minimum.is_some_and(|after| {
        old.minimum.is_none_or(|before| {
            after > before || after >= before && new.exclusive_minimum && !old.exclusive_minimum
        })
    })
}

fn is_lower(old: Option<i64>, new: Option<i64>) -> bool {
    new.is_some_and(|after| old.is_none_or(|before| after < before))
}

fn is_higher(old: Option<i64>, new: Option<i64>) -> bool {
    new.unwrap_or(0) > old.unwrap_or(0)
}

fn has_new_format(old: &Schema, new: &Schema) -> bool {
    let plain = |format: &str| format.replace('-', "");
    let (before, after) = (plain(&old.format), plain(&new.format));
    let is_known = match new.type_name.as_str() {
        "" | "string" => FORMATS.contains(&after.as_str()),
        // Every whole number that can be stored is within 64 bits.
        "integer" => after == "int32",
        "number" => after == "float",
        _ => false,
    };
    is_known && before != after
}
