//! What authors say.

use super::Item;
use crate::{
    preview::{BroughtKind, Changes, Importance, Source},
    release::{Impact, When},
};

pub(super) fn assessments(changes: &Changes) -> Vec<Item> {
    let items = changes.notes.assessments.iter().map(|assessment| {
        let importance = match assessment.impact {
            Impact::High => Importance::High,
            Impact::Medium => Importance::Medium,
            Impact::Low | Impact::None => Importance::Low,
        };
        let text =
            format!("[{:?}] {} ({})", assessment.impact, assessment.title, assessment.versions);
        let action = assessment.action.as_ref().map(|action| format!("What to do: {action}"));
        Item::new(importance, &text)
            .with_text(assessment.description.as_ref())
            .with_text(action.as_ref())
            .with_url(assessment.url.as_ref())
    });
    items.collect()
}

pub(super) fn manual_steps(changes: &Changes) -> Vec<Item> {
    let items = changes.notes.manual_steps.iter().map(|step| {
        let when = match step.when {
            When::Before => "Before",
            When::After => "After",
        };
        Item::new(Importance::High, &format!("{when}: {} ({})", step.title, step.versions))
            .with_text(step.description.as_ref())
            .with_url(step.url.as_ref())
    });
    items.collect()
}

pub(super) fn release_notes(changes: &Changes) -> Vec<Item> {
    let notes = &changes.notes;
    let mut items: Vec<Item> = notes
        .release_notes
        .iter()
        .map(|note| {
            let source = match note.source {
                Source::FromRelease => "release document",
                Source::FromArtifactHub => "artifacthub.io/changes",
                Source::FromDescription => "taken from the description",
                Source::FromLinks => "link",
                Source::FromManifests
                | Source::FromMetadata
                | Source::FromCatalog
                | Source::FromLifecycle
                | Source::Missing => "catalog",
            };
            let kind = note.kind.as_ref().map_or_else(String::new, |kind| format!(" {kind}:"));
            let title = note.title.as_deref().unwrap_or_default();
            let mut text = format!("{}{kind} {title} [{source}]", note.versions);
            let lines = note.text.as_deref().unwrap_or_default();
            // A short note needs no line of its own.
            if title.is_empty() && lines.lines().count() == 1 {
                text = format!("{}{kind} {lines} [{source}]", note.versions);
                return Item::new(Importance::Low, &text).with_url(note.url.as_ref());
            }
            let text = text.replace("  ", " ");
            Item::new(Importance::Low, &text)
                .with_text(note.text.as_ref())
                .with_url(note.url.as_ref())
        })
        .collect();
    if !notes.without_release_notes.is_empty() {
        let text = format!("none found for {}", notes.without_release_notes.join(", "));
        items.push(Item::new(Importance::Low, &text));
    }
    for brought in &notes.brought {
        let kind = match brought.kind {
            BroughtKind::Check => "preflight check",
            BroughtKind::StatusSource => "status source",
        };
        let text = format!("{} brings the {kind} {}", brought.versions, brought.name);
        items.push(Item::new(Importance::Low, &text));
    }
    for field in &notes.unknown_fields {
        let text = format!("field `{field}` of the release document is not known");
        items.push(Item::new(Importance::Low, &text));
    }
    for unreadable in &notes.unreadable {
        let text = format!("a release document can't be read: {unreadable}");
        items.push(Item::new(Importance::Medium, &text));
    }
    items
}
