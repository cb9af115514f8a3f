use serde_json::{Value, json};
use wavelift_core::version::Version;

use super::bundle;
use crate::{
    manifests::Manifests,
    preview::{Facts, Notes, Source, Step, path},
    release::{Impact, SCHEMA},
};

fn step<'a>(version: &str, documents: &[&'a Value]) -> Step<'a> {
    Step {
        name: format!("pump.v{version}"),
        version: Version::parse(version).ok(),
        facts: Facts { documents: documents.to_vec(), ..Facts::default() },
        ..Step::default()
    }
}

fn with_description(version: &str, description: &str, links: Value, changes: &str) -> Manifests {
    let mut manifests = json!({"description": description, "links": links});
    manifests["version"] = version.into();
    let csv = json!({
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("pump.v{version}"),
            "annotations": {"artifacthub.io/changes": changes},
        },
        "spec": manifests,
    });
    let files = [("a.json".to_owned(), csv.to_string().into_bytes())];
    Manifests::from_files(&files.into(), [].into(), &crate::manifests::Limits::default()).unwrap()
}

/// Each note in a line.
fn lines(notes: &Notes) -> Vec<String> {
    let line = |note: &crate::preview::ReleaseNote| {
        let parts = [&note.kind, &note.title, &note.text, &note.url];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        format!("{:?} {}: {}", note.source, note.versions, parts.join(" | "))
    };
    notes.release_notes.iter().map(line).collect()
}

#[test]
fn the_newest_assessment_of_an_id_counts_and_the_worst_is_the_first() {
    let assessment = |id: &str, versions: &str, title: &str, impact: &str| json!({"id": id, "versions": versions, "title": title, "impact": impact});
    let document = json!({"schema": SCHEMA, "package": "pump", "assessments": [
        assessment("stop", ">=1.2.0 <1.3.0", "stops for an hour", "Medium"),
        // About a version that the path jumps over.
        assessment("leak", ">=1.1.1 <1.1.5", "leaks", "High"),
        assessment("stop", ">=1.1.0 <1.2.0", "stops for a day", "High"),
        assessment("old", "<=1.0.0", "installed already", "High"),
        assessment("far", ">=2.0.0", "not on the way", "High"),
        assessment("mild", "1.2.x", "hardly noticed", "None"),
    ]});
    let preview = path(&[step("1.0.0", &[]), step("1.1.0", &[]), step("1.2.0", &[&document])]);
    let told: Vec<_> = preview
        .overall
        .notes
        .assessments
        .iter()
        .map(|a| (a.id.as_str(), a.title.as_str(), a.impact))
        .collect();
    assert_eq!(
        told,
        [
            ("leak", "leaks", Impact::High),
            ("stop", "stops for an hour", Impact::Medium),
            ("mild", "hardly noticed", Impact::None),
        ]
    );
    // The document is known at the second hop only; there it is asked about that hop.
    assert!(preview.hops[0].notes.assessments.is_empty());
    assert_eq!(preview.hops[1].notes.assessments.len(), 3);
}

#[test]
fn a_later_document_has_the_last_word() {
    let of = |title: &str| {
        let said = json!({"id": "a", "versions": ">=1.0.0", "title": title, "impact": "Low"});
        json!({"schema": SCHEMA, "package": "pump", "assessments": [said]})
    };
    let (old, new) = (of("old word"), of("new word"));
    let preview = path(&[step("1.0.0", &[&new, &old]), step("1.1.0", &[&new])]);
    assert_eq!(preview.overall.notes.assessments[0].title, "new word");
    let preview = path(&[step("1.0.0", &[&new]), step("1.1.0", &[&old])]);
    assert_eq!(preview.overall.notes.assessments[0].title, "old word");
}

#[test]
fn steps_notes_and_checks_are_those_of_the_way() {
    let document = json!({
        "schema": SCHEMA, "package": "pump", "typo": 1,
        "manualSteps": [
            {"version": "1.2.0", "title": "Close the valve", "when": "After"},
            {"version": "1.2.0", "title": "Drain", "url": "https://pump.example/drain"},
            {"version": "1.1.0", "title": "Measure"},
            {"version": "1.0.0", "title": "Done long ago"},
        ],
        "releaseNotes": [
            {"version": "1.1.0", "text": "Pumps faster"},
            {"version": "1.3.0", "text": "Not yet"},
        ],
        "checks": [{"name": "level", "versions": ">=1.2.0", "collect": {"type": "PromQL"}}],
        "statusSources": [{"name": "progress", "versions": ">=2.0.0"}],
    });
    let preview = path(&[step("1.0.0", &[]), step("1.1.0", &[]), step("1.2.0", &[&document])]);
    let notes = &preview.overall.notes;
    let steps: Vec<_> = notes.manual_steps.iter().map(|s| s.title.as_str()).collect();
    assert_eq!(steps, ["Measure", "Drain", "Close the valve"]);
    assert_eq!(lines(notes), ["FromRelease 1.1.0: Pumps faster"]);
    let brought: Vec<_> = notes.brought.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(brought, ["level"]);
    assert_eq!(notes.brought[0].definition, json!({"collect": {"type": "PromQL"}}));
    assert_eq!(notes.unknown_fields.iter().collect::<Vec<_>>(), ["typo"]);
}

#[test]
fn a_document_that_can_not_be_read_is_named() {
    let document = json!({"schema": SCHEMA, "assessments": [{"id": 7}]});
    let preview = path(&[step("1.0.0", &[]), step("1.1.0", &[&document])]);
    let unreadable: Vec<_> = preview.overall.notes.unreadable.iter().collect();
    assert_eq!(unreadable, ["field `assessments[0].id` is not a text"]);
    assert!(preview.summary.iter().any(|line| line.text.contains("assessments[0].id")));
}

#[test]
fn bundles_tell_in_three_places_and_skipped_ones_too() {
    let link = json!([
        {"name": "Docs", "url": "https://pump.example"},
        {"name": "Release Notes", "url": "https://pump.example/notes"},
    ]);
    let changes = "
- kind: added
  description: A second valve
  links: [{name: issue, url: 'https://pump.example/7'}]
- Quieter
";
    let section = |text: &str| {
        format!("# Pump\nPumps.\n## What's new\n{text}\n### Details\nmore\n## Usage\nPump.\n")
    };
    let bundles = [
        with_description("1.0.0", &section("first"), json!([]), ""),
        with_description("1.1.0", &section("second"), link.clone(), changes),
        with_description("1.2.0", &section("second"), link, ""),
        with_description("1.3.0", "```\n## Changelog\n```\nnothing", json!(null), ""),
    ];
    let of = |index: usize| Step::of_manifests(&bundles[index]).unwrap();
    let jump = Step { skipped: vec![of(1)], ..of(2) };
    let preview = path(&[of(0), jump, of(3)]);
    let notes = &preview.overall.notes;
    assert_eq!(
        lines(notes),
        [
            "FromArtifactHub 1.1.0: added | A second valve | https://pump.example/7",
            "FromArtifactHub 1.1.0: Quieter",
            "FromDescription 1.1.0: second\n### Details\nmore",
            "FromLinks 1.2.0: Release Notes | https://pump.example/notes",
        ]
    );
    assert_eq!(notes.without_release_notes, ["pump.v1.3.0"]);
    assert_eq!(preview.hops[1].notes.release_notes, []);
    assert_eq!(preview.hops[0].notes.release_notes.len(), 4);
}

#[test]
fn a_version_that_nobody_could_look_at_is_not_called_silent() {
    let old = bundle("1.0.0", json!({}), &[]);
    let gone = || Step { name: "pump.v1.1.0".to_owned(), ..Step::default() };
    let preview = path(&[Step::of_manifests(&old).unwrap(), gone()]);
    assert_eq!(preview.overall.notes.without_release_notes, Vec::<String>::new());
    let new = bundle("1.2.0", json!({}), &[]);
    let jump = Step { skipped: vec![gone()], ..Step::of_manifests(&new).unwrap() };
    let preview = path(&[Step::of_manifests(&old).unwrap(), jump]);
    assert_eq!(preview.overall.notes.without_release_notes, ["pump.v1.2.0"]);
    let [missing] = preview.overall.missing.as_slice() else { panic!("{preview:?}") };
    assert_eq!(missing.bundle, "pump.v1.1.0");
    assert_eq!(missing.sections, [crate::preview::Section::ReleaseNotes]);
    assert_eq!(missing.source, Source::Missing);
}

#[test]
fn the_same_document_counts_once_and_of_too_many_items_the_first_are_told() {
    let of = |from: usize, count: usize| {
        let notes: Vec<Value> = (from..from + count)
            .map(|index| json!({"version": "1.1.0", "text": format!("note {index}")}))
            .collect();
        json!({"schema": SCHEMA, "package": "pump", "releaseNotes": notes})
    };
    let (one, same, other) = (of(0, 1_500), of(0, 1_500), of(1_500, 1_500));
    let notes = |documents: &[&Value]| {
        path(&[step("1.0.0", documents), step("1.1.0", documents)]).overall.notes
    };
    let once = notes(&[&one, &same]);
    assert_eq!(once.release_notes.len(), 1_500);
    assert!(once.unreadable.is_empty());
    let both = notes(&[&one, &other]);
    assert_eq!(both.release_notes.len(), 2_000);
    assert_eq!(both.release_notes[1_999].text.as_deref(), Some("note 1999"));
    assert!(both.unreadable.iter().any(|text| text.contains("more items than are shown")));
}
