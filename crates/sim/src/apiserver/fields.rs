//! Who owns which field: sets of fields in the form `fieldsV1` has on the wire, how two objects
//! differ, and how an applied configuration merges into a live object.

mod managers;

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value, json};

use super::schema::{ListType, Schema};

pub(super) use managers::{Manager, Writer, after_apply, after_update, conflict};

/// A set of fields. Keys are those of `fieldsV1`: `f:name`, `k:{"key":"value"}`, `v:"value"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    /// Whether the path that leads here is itself in the set.
    member: bool,
    children: BTreeMap<String, Self>,
}

/// How two objects differ.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Fields that are new or have another value.
    pub(super) changed: FieldSet,
    /// Fields that are gone.
    pub(super) removed: FieldSet,
}

/// Whether the maps and lists around fields are in a set themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Containers {
    Counted,
    Skipped,
}

/// What is known of the shape of a value when it is merged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hint<'a> {
    /// The whole object.
    Top(Option<&'a Schema>),
    /// `metadata`.
    Metadata,
    /// A value with a schema.
    Known(&'a Schema),
    /// A value without one; the name of the field is all there is to go by.
    Free(&'a str),
}

// === impl Hint ===

impl<'a> Hint<'a> {
    fn field(self, name: &'a str) -> Self {
        match self {
            Self::Top(_) if name == "metadata" => Self::Metadata,
            Self::Top(Some(schema)) | Self::Known(schema) => {
                schema.field(name).map_or(Self::Free(name), Self::Known)
            }
            Self::Top(None) | Self::Metadata | Self::Free(_) => Self::Free(name),
        }
    }

    fn item(self) -> Self {
        match self {
            Self::Known(schema) => schema.item().map_or(Self::Free(""), Self::Known),
            Self::Free("ownerReferences") => Self::Free("ownerReference"),
            Self::Top(_) | Self::Metadata | Self::Free(_) => Self::Free(""),
        }
    }

    fn list(self) -> Cow<'a, ListType> {
        let by = |key: &str| Cow::Owned(ListType::Map(vec![key.to_owned()]));
        match self {
            Self::Known(schema) => Cow::Borrowed(schema.list_type()),
            Self::Free("finalizers") => Cow::Owned(ListType::Set),
            Self::Free("ownerReferences") => by("uid"),
            Self::Free("conditions") => by("type"),
            Self::Free("containers" | "initContainers" | "env" | "volumes") => by("name"),
            Self::Free(_) | Self::Top(_) | Self::Metadata => Cow::Owned(ListType::Atomic),
        }
    }

    fn is_atomic_map(self) -> bool {
        match self {
            Self::Known(schema) => schema.is_atomic_map(),
            Self::Free(name) => name == "ownerReference",
            Self::Top(_) | Self::Metadata => false,
        }
    }

    /// Nobody owns the object or its metadata as such.
    fn is_owned(self) -> bool {
        match self {
            Self::Top(_) | Self::Metadata => false,
            Self::Known(_) | Self::Free(_) => true,
        }
    }

    /// A key that no schema declares is a thing of its own and is owned as such.
    fn declares(self, name: &str) -> bool {
        match self {
            Self::Known(schema) => schema.declares(name),
            Self::Top(_) | Self::Metadata | Self::Free(_) => true,
        }
    }

    /// Fields nobody owns.
    fn ignores(self, name: &str) -> bool {
        match self {
            Self::Top(_) => matches!(name, "apiVersion" | "kind"),
            Self::Metadata => {
                !matches!(name, "labels" | "annotations" | "finalizers" | "ownerReferences")
            }
            Self::Known(_) | Self::Free(_) => false,
        }
    }
}

/// The part of `fieldsV1` that stands for an item of a list.
fn item_key(list: &ListType, item: &Value) -> Option<String> {
    match list {
        ListType::Atomic => None,
        ListType::Set => Some(format!("v:{item}")),
        ListType::Map(keys) => {
            let found: Map<String, Value> = keys
                .iter()
                .map(|k| (k.clone(), item.get(k).cloned().unwrap_or_default()))
                .collect();
            Some(format!("k:{}", Value::Object(found)))
        }
    }
}

// === impl FieldSet ===

impl FieldSet {
    /// Every field of a value: what an applier who sends it owns.
    pub(super) fn of(value: &Value, hint: Hint<'_>) -> Self {
        Self::collected(value, hint, Containers::Skipped)
    }

    /// Every field of a value that was not there before, the maps and lists around them too.
    fn with_containers(value: &Value, hint: Hint<'_>) -> Self {
        Self::collected(value, hint, Containers::Counted)
    }

    fn collected(value: &Value, hint: Hint<'_>, containers: Containers) -> Self {
        let mut set = Self::default();
        match value {
            Value::Object(map) if !hint.is_atomic_map() && !map.is_empty() => {
                set.member = containers == Containers::Counted && hint.is_owned();
                for (name, inner) in map.iter().filter(|(name, _)| !hint.ignores(name)) {
                    let mut child = Self::collected(inner, hint.field(name), containers);
                    child.member |= !hint.declares(name);
                    set.adopt(format!("f:{name}"), child);
                }
            }
            Value::Array(items) if *hint.list() != ListType::Atomic && !items.is_empty() => {
                set.member = containers == Containers::Counted;
                let list = hint.list();
                for item in items {
                    let mut child = Self::collected(item, hint.item(), containers);
                    child.member = true;
                    if let Some(key) = item_key(&list, item) {
                        set.adopt(key, child);
                    }
                }
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => set.member = true,
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Adds a child unless there is nothing in it.
    fn adopt(&mut self, key: String, child: Self) {
        if !child.is_empty() {
            self.children.insert(key, child);
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.member |= other.member;
        for (key, theirs) in &other.children {
            let merged = all.children.get(key).map_or_else(|| theirs.clone(), |c| c.union(theirs));
            all.children.insert(key.clone(), merged);
        }
        all
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let mut left = Self { member: self.member && !other.member, ..Self::default() };
        for (key, mine) in &self.children {
            let rest =
                other.children.get(key).map_or_else(|| mine.clone(), |theirs| mine.minus(theirs));
            left.adopt(key.clone(), rest);
        }
        left
    }

    pub(super) fn both(&self, other: &Self) -> Self {
        let mut common = Self { member: self.member && other.member, ..Self::default() };
        for (key, mine) in &self.children {
            if let Some(theirs) = other.children.get(key) {
                common.adopt(key.clone(), mine.both(theirs));
            }
        }
        common
    }

    /// The wire form.
    pub(super) fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.children.is_empty() {
            map.insert(".".to_owned(), json!({}));
        }
        map.extend(self.children.iter().map(|(key, child)| (key.clone(), child.to_json())));
        Value::Object(map)
    }

    /// Reads the wire form.
    pub(super) fn from_json(value: &Value) -> Self {
        let Some(map) = value.as_object() else { return Self::default() };
        let children: BTreeMap<String, Self> = map
            .iter()
            .filter(|(key, _)| *key != ".")
            .map(|(key, inner)| {
                let mut child = Self::from_json(inner);
                child.member |= child.children.is_empty();
                (key.clone(), child)
            })
            .collect();
        Self { member: map.contains_key("."), children }
    }

    /// The paths in the way conflicts list them: `.spec.source`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, at: &str, found: &mut Vec<String>) {
        if self.member {
            found.push(at.to_owned());
        }
        for (key, child) in &self.children {
            let step = match key.split_once(':') {
                Some(("f", name)) => format!(".{name}"),
                Some(("k", keys)) => {
                    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                    let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                    format!("[{}]", keys.join(","))
                }
                Some((_, value)) => format!("[={value}]"),
                None => key.clone(),
            };
            child.collect(&format!("{at}{step}"), found);
        }
    }

    /// Takes the fields of this set out of a value; a container emptied by it goes as well.
    pub(super) fn take_out(&self, value: &mut Value, hint: Hint<'_>) {
        match value {
            Value::Object(map) => {
                for (key, child) in &self.children {
                    let Some(name) = key.strip_prefix("f:") else { continue };
                    let Some(inner) = map.get_mut(name) else { continue };
                    child.take_out(inner, hint.field(name));
                    let emptied = !child.children.is_empty() && is_empty_container(inner);
                    if (child.member && child.children.is_empty()) || emptied {
                        map.remove(name);
                    }
                }
            }
            Value::Array(items) => {
                let list = hint.list();
                items.retain_mut(|item| {
                    let Some(key) = item_key(&list, item) else { return true };
                    let Some(child) = self.children.get(&key) else { return true };
                    if child.member {
                        return false;
                    }
                    child.take_out(item, hint.item());
                    true
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn is_empty_container(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// How `new` differs from `old`.
pub(super) fn compare(old: &Value, new: &Value, hint: Hint<'_>) -> Difference {
    let mut found = Difference::default();
    if old == new {
        return found;
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) if !hint.is_atomic_map() => {
            let names = before.keys().chain(after.keys().filter(|k| !before.contains_key(*k)));
            for name in names.filter(|name| !hint.ignores(name)) {
                let inner = compare_entry(
                    before.get(name),
                    after.get(name),
                    hint.field(name),
                    !hint.declares(name),
                );
                found.changed.adopt(format!("f:{name}"), inner.changed);
                found.removed.adopt(format!("f:{name}"), inner.removed);
            }
        }
        (Value::Array(before), Value::Array(after)) if *hint.list() != ListType::Atomic => {
            let list = hint.list();
            let keyed = |items: &[Value]| -> BTreeMap<String, Value> {
                items.iter().filter_map(|i| Some((item_key(&list, i)?, i.clone()))).collect()
            };
            let (before, after) = (keyed(before), keyed(after));
            let keys = before.keys().chain(after.keys().filter(|k| !before.contains_key(*k)));
            for key in keys {
                let inner = compare_entry(before.get(key), after.get(key), hint.item(), true);
                found.changed.adopt(key.clone(), inner.changed);
                found.removed.adopt(key.clone(), inner.removed);
            }
        }
        (_, after) => {
            found.changed = FieldSet::of(after, hint);
            found.removed = FieldSet::of(old, hint).minus(&found.changed);
        }
    }
    found
}

fn compare_entry(
    old: Option<&Value>,
    new: Option<&Value>,
    hint: Hint<'_>,
    is_member: bool,
) -> Difference {
    let whole = |value: &Value| {
        let mut set = FieldSet::with_containers(value, hint);
        set.member |= is_member;
        set
    };
    match (old, new) {
        (Some(old), Some(new)) => compare(old, new, hint),
        (None, Some(new)) => Difference { changed: whole(new), ..Difference::default() },
        (Some(old), None) => Difference { removed: whole(old), ..Difference::default() },
        (None, None) => Difference::default(),
    }
}

/// The live object with an applied configuration merged in.
pub(super) fn merge(live: &Value, applied: &Value, hint: Hint<'_>) -> Value {
    match (live, applied) {
        (Value::Object(before), Value::Object(after)) if !hint.is_atomic_map() => {
            let mut merged = before.clone();
            for (name, value) in after {
                let value = match before.get(name) {
                    Some(live) => merge(live, value, hint.field(name)),
                    None => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(before), Value::Array(after)) if *hint.list() != ListType::Atomic => {
            let list = hint.list();
            let mut merged = before.clone();
            for item in after {
                let key = item_key(&list, item);
                match merged.iter_mut().find(|there| item_key(&list, there) == key) {
                    Some(there) => *there = merge(there, item, hint.item()),
                    None => merged.push(item.clone()),
                }
            }
            Value::Array(merged)
        }
        (_, applied) => applied.clone(),
    }
}
