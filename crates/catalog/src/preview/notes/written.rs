//! Release notes that stand in bundles: the `artifacthub.io/changes` annotation, a section of the
//! description, links.

use std::collections::BTreeSet;

use serde_json::Value;
use wavelift_core::version::Version;

use super::{Notes, ReleaseNote};
use crate::preview::{Confidence, Source, bundle::Bundle};

const CHANGES: &str = "artifacthub.io/changes";

/// Bytes of an annotation or a section that are read.
const TEXT_MAX: usize = 64 << 10;

/// Changes of one annotation.
const CHANGES_MAX: usize = 1_000;

/// What a heading or a link about changes is called.
const WORDS: [&str; 8] = [
    "release note",
    "releasenote",
    "what's new",
    "what’s new",
    "changelog",
    "change log",
    "changes in",
    "new in ",
];

/// Adds what the bundles say themselves, and names those for which there is nothing at all.
pub(super) fn add(
    notes: &mut Notes,
    installed: &Bundle<'_>,
    arrived: &[Bundle<'_>],
    told: &BTreeSet<Version>,
) {
    let mut section_before = section(installed);
    for bundle in arrived {
        let mut skipped: Vec<&Bundle<'_>> = bundle.skipped.iter().collect();
        skipped.sort_by(|a, b| a.version.cmp(&b.version));
        for bundle in skipped.into_iter().chain([bundle]) {
            let mut found = Vec::new();
            changes(bundle, &mut found);
            let section_now = section(bundle);
            // The same words as before are not about this version.
            if section_now != section_before {
                found.extend(section_now.clone().map(|text| of_section(bundle, text)));
            }
            section_before = section_now.or(section_before);
            links(bundle, &mut found);
            let is_told = bundle.version.as_ref().is_some_and(|version| told.contains(version));
            if found.is_empty() && !is_told && bundle.is_described() {
                notes.without_release_notes.push(bundle.name.clone());
            }
            for note in found {
                add_note(&mut notes.release_notes, note);
            }
        }
    }
}

/// A link that every version repeats is kept once, with the last of them.
fn add_note(notes: &mut Vec<ReleaseNote>, note: ReleaseNote) {
    if note.source == Source::FromLinks {
        notes.retain(|known| known.source != Source::FromLinks || known.url != note.url);
    }
    notes.push(note);
}

fn note(bundle: &Bundle<'_>, source: Source, confidence: Confidence) -> ReleaseNote {
    ReleaseNote {
        versions: bundle.version_text().unwrap_or_else(|| bundle.name.clone()),
        kind: None,
        title: None,
        text: None,
        url: None,
        source,
        confidence,
    }
}

/// Texts, or objects of `kind`, `description` and `links`.
fn changes(bundle: &Bundle<'_>, found: &mut Vec<ReleaseNote>) {
    let Some(text) = bundle.csv_annotation(CHANGES).filter(|text| text.len() <= TEXT_MAX) else {
        return;
    };
    let Ok(Value::Array(changes)) = serde_saphyr::from_str::<Value>(text) else { return };
    for change in changes.iter().take(CHANGES_MAX) {
        let of = |field: &str| change.get(field).and_then(Value::as_str).map(str::to_owned);
        let mut note = note(bundle, Source::FromArtifactHub, Confidence::Stated);
        note.kind = of("kind");
        note.text = change.as_str().map(str::to_owned).or_else(|| of("description"));
        note.url = change.pointer("/links/0/url").and_then(Value::as_str).map(str::to_owned);
        if note.text.is_some() {
            found.push(note);
        }
    }
}

fn of_section(bundle: &Bundle<'_>, text: String) -> ReleaseNote {
    let text = Some(text);
    ReleaseNote { text, ..note(bundle, Source::FromDescription, Confidence::Inferred) }
}

/// The first section of the description whose heading is about changes.
fn section(bundle: &Bundle<'_>) -> Option<String> {
    let (description, _) = bundle.described("description")?;
    let description = description.as_str()?;
    let mut lines = Vec::new();
    let mut level = None;
    let mut is_code = false;
    let mut bytes = 0;
    for line in description.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let heading = heading(line).filter(|_| !is_code);
        match (level, heading) {
            (None, Some((depth, title))) if is_about_changes(title) => level = Some(depth),
            (Some(level), Some((depth, _))) if depth <= level => break,
            (Some(_), _) => {
                bytes += line.len() + 1;
                if bytes > TEXT_MAX {
                    break;
                }
                lines.push(line);
            }
            (None, _) => {}
        }
    }
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The depth and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let depth = line.len() - title.len();
    ((1..=6).contains(&depth) && title.starts_with(' ')).then(|| (depth, title.trim()))
}

fn is_about_changes(title: &str) -> bool {
    let title = title.to_lowercase();
    title == "changes" || WORDS.iter().any(|word| title.contains(word))
}

fn links(bundle: &Bundle<'_>, found: &mut Vec<ReleaseNote>) {
    let links = bundle.described("links").and_then(|(links, _)| links.as_array());
    for link in links.into_iter().flatten() {
        let text = |field: &str| link.get(field).and_then(Value::as_str);
        let Some((name, url)) = text("name").zip(text("url")) else { continue };
        if is_about_changes(name) {
            found.push(ReleaseNote {
                title: Some(name.to_owned()),
                url: Some(url.to_owned()),
                ..note(bundle, Source::FromLinks, Confidence::Stated)
            });
        }
    }
}
