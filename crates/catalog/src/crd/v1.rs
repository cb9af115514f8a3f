//! The whole check of OLM v1: the definition, each version against itself, and the new versions
//! against each other.

use std::{cmp::Ordering, collections::BTreeMap};

use serde_json::json;

use super::{
    Rule,
    definition::{Definition, Version},
    flat::Flat,
    rules::{self, Finding, Identity},
};

/// What is held against a definition, and where.
#[derive(Debug)]
pub(super) struct Held {
    /// `a -> b` for versions compared with each other; empty for the whole definition.
    pub(super) version: String,
    /// Empty for the whole definition.
    pub(super) property: String,
    pub(super) place: Place,
    pub(super) finding: Finding,
}

/// What kind of comparison it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole definition, or a field that is gone.
    Definition,
    /// A part of a version, old against new. It may be gone.
    Part {
        /// Whether the part is still there.
        is_gone: bool,
    },
    /// Two new versions that are served.
    Pair,
}

/// Where the findings go; it takes so many and no more.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) held: Vec<Held>,
    pub(super) max: usize,
    pub(super) is_full: bool,
}

/// The schemas of a definition by path, as many as it has versions.
pub(super) type Flats<'a> = Vec<Flat<'a>>;

/// The parts of each version.
pub(super) fn flats(definition: &Definition) -> Flats<'_> {
    definition.versions.iter().map(|version| Flat::new(version.body.schema())).collect()
}

/// Versions whose comparison makes the check of OLM v1 crash: they don't have the place for a
/// schema.
pub(super) fn crashes_at(old: &Definition, new: &Definition) -> Vec<String> {
    let mut names = Vec::new();
    for version in &new.versions {
        let before = old.version(&version.name);
        if before.is_some_and(|before| before.body.is_missing() || version.body.is_missing()) {
            names.push(version.name.clone());
        }
    }
    if !new.has_webhook() {
        for definition in [old, new] {
            let served: Vec<_> = definition.versions.iter().filter(|v| v.is_served).collect();
            if served.len() > 1 {
                let missing = served.iter().filter(|version| version.body.is_missing());
                names.extend(missing.map(|version| version.name.clone()));
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

/// All that is held against the new definition.
pub(super) fn check(
    (old, old_flats): (&Definition, &Flats<'_>),
    (new, new_flats): (&Definition, &Flats<'_>),
    findings: &mut Findings,
) {
    if old.scope != new.scope {
        let message = format!("its scope {} becomes {}", old.scope, new.scope);
        let finding = whole(Rule::Scope, message, &old.scope, &new.scope);
        findings.push("", "", Place::Definition, finding);
    }
    let removed: Vec<_> =
        old.stored_versions().into_iter().filter(|name| new.version(name).is_none()).collect();
    if !removed.is_empty() {
        let message = format!("stored versions are gone: {}", removed.join(", "));
        let mut finding = whole(Rule::StoredVersionRemoval, message, "", "");
        finding.old = Some(json!(removed));
        findings.push("", "", Place::Definition, finding);
    }
    for (version, flat) in new.versions.iter().zip(new_flats) {
        if let Some(index) = old.versions.iter().position(|before| before.name == version.name)
            && let Some(before) = old_flats.get(index)
        {
            removed_fields(&version.name, before, flat, findings);
        }
    }
    for (version, flat) in old.versions.iter().zip(old_flats) {
        if let Some(index) = new.versions.iter().position(|after| after.name == version.name)
            && let Some(after) = new_flats.get(index)
        {
            same_version(&version.name, flat, after, findings);
        }
    }
    if !new.has_webhook() {
        served_versions((old, old_flats), (new, new_flats), findings);
    }
}

fn whole(rule: Rule, message: String, old: &str, new: &str) -> Finding {
    let value = |text: &str| (!text.is_empty()).then(|| json!(text));
    Finding { rule, message, identity: Identity::Message, old: value(old), new: value(new) }
}

fn removed_fields(version: &str, old: &Flat<'_>, new: &Flat<'_>, findings: &mut Findings) {
    for (path, _) in old.iter().filter(|(path, _)| new.get(path).is_none()) {
        let finding = whole(Rule::ExistingFieldRemoval, "is gone".to_owned(), "", "");
        findings.push(version, path, Place::Part { is_gone: true }, finding);
    }
}

fn same_version(version: &str, old: &Flat<'_>, new: &Flat<'_>, findings: &mut Findings) {
    let nothing = super::schema::Schema::default();
    for (path, node) in old.iter() {
        let after = new.get(path);
        let place = Place::Part { is_gone: after.is_none() };
        for finding in rules::findings(node.schema, after.unwrap_or(&nothing)) {
            findings.push(version, path, place, finding);
        }
    }
}

/// Each served version against each later one. What the old definition already had is left out.
fn served_versions(
    (old, old_flats): (&Definition, &Flats<'_>),
    (new, new_flats): (&Definition, &Flats<'_>),
    findings: &mut Findings,
) {
    let nothing = super::schema::Schema::default();
    let known: BTreeMap<(&str, &str), (&Flat<'_>, &Flat<'_>)> =
        pairs(old, old_flats).into_iter().map(|pair| (pair.names, pair.flats)).collect();
    for pair in pairs(new, new_flats) {
        let version = format!("{} -> {}", pair.names.0, pair.names.1);
        let before = known.get(&pair.names);
        for (path, node) in pair.flats.0.iter() {
            let after = pair.flats.1.get(path).unwrap_or(&nothing);
            let mut held = rules::findings(node.schema, after);
            if let Some((first, second)) = before
                && let Some(first) = first.get(path)
                && !held.is_empty()
            {
                let second = second.get(path).unwrap_or(&nothing);
                let known = rules::findings(first, second);
                let has_rest = rules::rest(first, node.schema).is_empty()
                    && rules::rest(second, after).is_empty();
                held.retain(|finding| !known.iter().any(|known| is_same(finding, known, has_rest)));
            }
            for finding in held {
                findings.push(&version, path, Place::Pair, finding);
            }
        }
    }
}

/// Whether OLM says the same of both; `has_rest` is whether both pairs of parts hold the same in
/// what has no rule.
fn is_same(one: &Finding, other: &Finding, has_rest: bool) -> bool {
    one.rule == other.rule
        && match (&one.identity, &other.identity) {
            (Identity::Message, Identity::Message) => one.message == other.message,
            (Identity::Text(one), Identity::Text(other)) => one == other,
            (Identity::Rest, Identity::Rest) => has_rest,
            (
                Identity::Message | Identity::Text(_) | Identity::Rest | Identity::Unique,
                Identity::Message | Identity::Text(_) | Identity::Rest | Identity::Unique,
            ) => false,
        }
}

/// Two versions that are both served, the older name first.
struct Pair<'p, 'a> {
    names: (&'p str, &'p str),
    flats: (&'p Flat<'a>, &'p Flat<'a>),
}

fn pairs<'p, 'a>(definition: &'p Definition, flats: &'p Flats<'a>) -> Vec<Pair<'p, 'a>> {
    let versions = definition.versions.iter().zip(flats);
    let mut served: Vec<(&Version, &Flat<'a>)> =
        versions.filter(|(version, _)| version.is_served).collect();
    served.sort_by(|(one, _), (other, _)| by_age(&one.name, &other.name));
    let mut pairs = Vec::new();
    for (index, (one, first)) in served.iter().enumerate() {
        for (other, second) in served.iter().skip(index + 1) {
            let names = (one.name.as_str(), other.name.as_str());
            pairs.push(Pair { names, flats: (first, second) });
        }
    }
    pairs
}

/// `v1alpha1` before `v1beta1` before `v1` before `v2`; other names before all of these, the last
/// of the alphabet first.
pub(super) fn by_age(one: &str, other: &str) -> Ordering {
    match (age(one), age(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => other.cmp(one),
    }
}

/// Stage, then number, then number within the stage.
fn age(name: &str) -> Option<(u8, i64, i64)> {
    /// A number as the names hold it: digits and nothing else.
    fn number(text: &str) -> Option<i64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    }
    let name = name.strip_prefix('v')?;
    if let Some((major, minor)) = name.split_once("alpha") {
        return Some((0, number(major)?, number(minor)?));
    }
    if let Some((major, minor)) = name.split_once("beta") {
        return Some((1, number(major)?, number(minor)?));
    }
    Some((2, number(name)?, 0))
}

// === impl Findings ===

impl Findings {
    pub(super) fn new(max: usize) -> Self {
        Self { held: Vec::new(), max, is_full: false }
    }

    fn push(&mut self, version: &str, property: &str, place: Place, finding: Finding) {
        if self.held.len() >= self.max {
            self.is_full = true;
            return;
        }
        let (version, property) = (version.to_owned(), property.to_owned());
        self.held.push(Held { version, property, place, finding });
    }
}
