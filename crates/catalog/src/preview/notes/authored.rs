//! From release documents to what they say about a path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wavelift_core::version::Version;

use super::{Assessment, Brought, BroughtKind, ManualStep, Notes, ReleaseNote};
use crate::{
    preview::{Confidence, Source, bundle::Bundle},
    release::{self, Carried, Release, SCHEMA, Span, StatusSource},
};

/// The part of a path that documents are asked about.
struct Way<'a> {
    installed: &'a Version,
    target: &'a Version,
    known: Vec<Version>,
}

/// Items of one kind that are shown for a path. A document has at most as many.
const ITEMS_MAX: usize = 2_000;

const SAID: (Source, Confidence) = (Source::FromRelease, Confidence::Stated);

/// Adds what release documents say. The answer is the versions of the path whose release notes they
/// have.
pub(super) fn add(
    notes: &mut Notes,
    installed: &Bundle<'_>,
    arrived: &[Bundle<'_>],
) -> BTreeSet<Version> {
    let releases = releases(notes, installed, arrived);
    let ends = installed.version.as_ref().zip(arrived.last().and_then(|b| b.version.as_ref()));
    let Some((from, target)) = ends else { return BTreeSet::new() };
    let skipped = arrived.iter().flat_map(|bundle| &bundle.skipped);
    let known = arrived.iter().chain(skipped).filter_map(|bundle| bundle.version.clone());
    let way = Way { installed: from, target, known: known.collect() };
    let mut told = BTreeSet::new();
    for release in &releases {
        way.add_notes(notes, release, &mut told);
        way.add_steps(notes, release);
        way.add_brought(notes, BroughtKind::Check, &release.checks);
        way.add_sources(notes, &release.status_sources);
    }
    notes.assessments = way.assessments(&releases);
    let found = [notes.release_notes.len(), notes.manual_steps.len(), notes.brought.len()];
    if found.into_iter().any(|found| found > ITEMS_MAX) {
        notes.release_notes.truncate(ITEMS_MAX);
        notes.manual_steps.truncate(ITEMS_MAX);
        notes.brought.truncate(ITEMS_MAX);
        let text = format!("there are more items than are shown: {ITEMS_MAX} of each kind");
        notes.unreadable.insert(text);
    }
    told
}

/// Every document once, the newest last: first those of the installed version.
fn releases(notes: &mut Notes, installed: &Bundle<'_>, arrived: &[Bundle<'_>]) -> Vec<Release> {
    let mut values: Vec<&Value> = Vec::new();
    // All bundles of a catalog share its documents: most are known by where they are.
    let (mut places, mut texts) = (BTreeSet::new(), BTreeSet::new());
    for bundle in arrived.iter().rev().chain([installed]) {
        let properties = bundle.properties.iter().filter(|property| property.kind == SCHEMA);
        let documents = bundle.facts.documents.iter().copied();
        let documents = documents.filter(|document| document["schema"] == SCHEMA);
        let all: Vec<&Value> = properties.map(|p| &p.value).chain(documents).collect();
        for value in all.into_iter().rev() {
            if places.insert(std::ptr::from_ref(value)) && texts.insert(value.to_string()) {
                values.push(value);
            }
        }
    }
    values.reverse();
    let mut releases = Vec::new();
    for value in values {
        match Release::parse(value) {
            Ok(release) => {
                notes.unknown_fields.extend(release.unknown_fields());
                releases.push(release);
            }
            Err(error) => {
                notes.unreadable.insert(error.to_string());
            }
        }
    }
    releases
}

impl Way<'_> {
    fn highest(&self, span: &Span) -> Option<Version> {
        span.highest_between(self.installed, self.target, &self.known)
    }

    fn add_notes(&self, notes: &mut Notes, release: &Release, told: &mut BTreeSet<Version>) {
        for note in &release.release_notes {
            if self.highest(&note.span).is_none() {
                continue;
            }
            told.extend(self.known.iter().filter(|v| note.span.contains(v)).cloned());
            let (source, confidence) = SAID;
            let note = ReleaseNote {
                versions: note.span.to_string(),
                kind: None,
                title: note.title.clone(),
                text: note.text.clone(),
                url: note.url.clone(),
                source,
                confidence,
            };
            push(&mut notes.release_notes, note);
        }
    }

    fn add_steps(&self, notes: &mut Notes, release: &Release) {
        let mut steps: Vec<(Version, &release::ManualStep)> = release
            .manual_steps
            .iter()
            .filter_map(|step| Some((self.highest(&step.span)?, step)))
            .collect();
        steps.sort_by(|a, b| (a.1.when, &a.0).cmp(&(b.1.when, &b.0)));
        for (_, step) in steps {
            let (source, confidence) = SAID;
            let step = ManualStep {
                versions: step.span.to_string(),
                title: step.title.clone(),
                when: step.when,
                description: step.description.clone(),
                url: step.url.clone(),
                source,
                confidence,
            };
            push(&mut notes.manual_steps, step);
        }
    }

    fn add_brought(&self, notes: &mut Notes, kind: BroughtKind, items: &[Carried]) {
        for item in items {
            let definition = Value::Object(item.definition.clone().into_iter().collect());
            self.add_one(notes, kind, (&item.name, &item.span), definition);
        }
    }

    fn add_sources(&self, notes: &mut Notes, items: &[StatusSource]) {
        for item in items {
            let mut definition = serde_json::to_value(item).unwrap_or_default();
            if let Some(fields) = definition.as_object_mut() {
                fields
                    .retain(|field, _| !matches!(field.as_str(), "name" | "version" | "versions"));
            }
            self.add_one(notes, BroughtKind::StatusSource, (&item.name, &item.span), definition);
        }
    }

    fn add_one(
        &self,
        notes: &mut Notes,
        kind: BroughtKind,
        (name, span): (&str, &Span),
        definition: Value,
    ) {
        if self.highest(span).is_none() {
            return;
        }
        let (source, confidence) = SAID;
        let (name, versions) = (name.to_owned(), span.to_string());
        push(&mut notes.brought, Brought { kind, name, versions, definition, source, confidence });
    }

    /// One per id: the one about the highest version of the path, of several the one that was said
    /// last.
    fn assessments(&self, releases: &[Release]) -> Vec<Assessment> {
        let mut newest: BTreeMap<&str, (Version, &release::Assessment)> = BTreeMap::new();
        for assessment in releases.iter().flat_map(|release| &release.assessments) {
            let Some(version) = self.highest(&assessment.span) else { continue };
            let known = newest.get(assessment.id.as_str());
            if known.is_none_or(|(known, _)| *known <= version) {
                newest.insert(&assessment.id, (version, assessment));
            }
        }
        let (source, confidence) = SAID;
        let mut found: Vec<Assessment> = newest
            .into_values()
            .map(|(_, said)| Assessment {
                id: said.id.clone(),
                versions: said.span.to_string(),
                title: said.title.clone(),
                impact: said.impact,
                description: said.description.clone(),
                action: said.action.clone(),
                url: said.url.clone(),
                source,
                confidence,
            })
            .collect();
        found.sort_by(|a, b| b.impact.cmp(&a.impact).then_with(|| a.id.cmp(&b.id)));
        found
    }
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    // One more than are shown tells that there are more.
    if list.len() <= ITEMS_MAX && !list.contains(&item) {
        list.push(item);
    }
}
