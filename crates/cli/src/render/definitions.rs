//! Two CustomResourceDefinitions side by side.

use wavelift_catalog::crd::{Class, CrdDiff, FromTo, RefusedByV0, V1};

use super::table::{Cell, Table};
use crate::printer::{Printer, Tone};

/// What changes, and who refuses it.
pub(crate) fn definitions(diff: &CrdDiff, printer: &Printer) -> String {
    let paint = printer.paint();
    let mut text = format!("{}\n\n", diff.name);
    let (tone, v0) = match diff.refused_by_v0 {
        RefusedByV0::Never => (Tone::Good, "takes it"),
        RefusedByV0::IfObjectsInvalid => {
            (Tone::Warn, "refuses it if there is an object that does not fit the new schema")
        }
        RefusedByV0::IfStored => {
            (Tone::Bad, "refuses it if objects were ever stored in a version that goes")
        }
    };
    text.push_str(&format!("OLM v0: {}\n", paint.tone(tone, v0)));
    let (tone, v1) = match diff.v1 {
        V1::Accepts => (Tone::Good, "takes it".to_owned()),
        V1::Refuses => (Tone::Bad, format!("refuses it: {}", rules(diff))),
        V1::Crashes => (Tone::Bad, "its check crashes on a version without a schema".to_owned()),
    };
    text.push_str(&format!("OLM v1: {}\n", paint.tone(tone, &v1)));
    let versions = versions(diff);
    let other = if versions.is_empty() { "" } else { " else" };
    for (what, said) in versions {
        text.push_str(&format!("{what}: {said}\n"));
    }
    for unknown in &diff.unknown {
        text.push_str(&format!("Not known: {unknown}\n"));
    }
    if diff.changes.is_empty() {
        text.push_str(&format!("\nNothing{other} changes.\n"));
        return text;
    }
    let mut table = Table::new(&["CLASS", "VERSION", "PROPERTY", "RULE", "CHANGE"]);
    let mut changes: Vec<_> = diff.changes.iter().collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.class));
    for change in changes {
        let (word, tone) = match change.class {
            Class::Compatible => ("Compatible", Tone::Quiet),
            Class::Risky => ("Risky", Tone::Warn),
            Class::Breaking => ("Breaking", Tone::Bad),
        };
        table.row(vec![
            Cell::text(word).tone(tone),
            Cell::text(&change.version),
            Cell::text(&change.property),
            Cell::text(change.rule.to_string()),
            Cell::text(&change.message),
        ]);
    }
    format!("{text}\n{}", table.render(printer))
}

fn rules(diff: &CrdDiff) -> String {
    let rules: Vec<_> =
        diff.by_rule.iter().map(|(rule, count)| format!("{rule} ({count})")).collect();
    rules.join(", ")
}

fn versions(diff: &CrdDiff) -> Vec<(&'static str, String)> {
    let versions = &diff.versions;
    let removed: Vec<_> = versions.removed.iter().map(|one| one.name.clone()).collect();
    let turned = |one: &Option<FromTo>| {
        one.as_ref().map_or_else(String::new, |one| format!("{} -> {}", one.from, one.to))
    };
    let mut said = vec![
        ("Versions added", versions.added.join(", ")),
        ("Versions removed", removed.join(", ")),
        ("No longer served", versions.no_longer_served.join(", ")),
        ("Newly served", versions.newly_served.join(", ")),
        ("Storage version", turned(&versions.storage)),
        ("Conversion", turned(&versions.conversion)),
        ("Scope", turned(&versions.scope)),
    ];
    said.retain(|(_, text)| !text.is_empty());
    said
}
