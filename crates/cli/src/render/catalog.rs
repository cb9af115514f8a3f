//! Catalogs: lists of packages, one package, and two catalogs side by side.

use wavelift_catalog::{
    compare::{Comparison, OperatorChange, PackageChange, PackageDelta, Verdict},
    graph::Package,
};

use super::table::{Cell, Table};
use crate::{
    commands::catalog::Listing,
    picture::{Model, Presence},
    printer::{Printer, Tone},
};

/// The most names that one line lists.
const NAMES_MAX: usize = 8;

/// What a catalog holds.
pub(crate) fn listing(listing: &Listing, printer: &Printer) -> String {
    let mut table = Table::new(&["PACKAGE", "DEFAULT", "CHANNELS", "BUNDLES", "HEAD", "NOTE"]);
    for one in &listing.packages {
        let note = one.deprecation.as_ref().map(|why| format!("deprecated: {why}"));
        table.row(vec![
            Cell::text(&one.name),
            Cell::text(one.default_channel.clone().unwrap_or_default()),
            Cell::number(i64::try_from(one.channels).unwrap_or(i64::MAX)),
            Cell::number(i64::try_from(one.bundles).unwrap_or(i64::MAX)),
            Cell::text(one.head.clone().unwrap_or_default()),
            Cell::text(note.unwrap_or_default()).tone_if_any(Tone::Warn),
        ]);
    }
    format!("{}\nContent: {}\n", table.render(printer), listing.digest)
}

/// One package.
pub(crate) fn package(model: &Model, package: &Package, printer: &Printer) -> String {
    let mut text = format!("Package:  {}\n", model.package);
    text.push_str(&format!(
        "Default:  {}\n",
        package.default_channel.as_deref().unwrap_or("none named")
    ));
    if let Some(why) = &package.deprecation {
        text.push_str(&printer.paint().tone(Tone::Warn, &format!("Deprecated: {why}\n")));
    }
    let mut channels = Table::new(&["CHANNEL", "ENTRIES", "HEAD", "NOTE"]);
    for lane in &model.channels {
        let (head, note) = match &lane.chain {
            Ok(chain) => (chain.first().cloned().unwrap_or_default(), lane.deprecation.clone()),
            Err(why) => (String::new(), Some(format!("refused by OLM v0: {why}"))),
        };
        channels.row(vec![
            Cell::text(&lane.name),
            Cell::number(i64::try_from(lane.entries.len()).unwrap_or(i64::MAX)),
            Cell::text(head),
            Cell::text(note.unwrap_or_default()).tone_if_any(Tone::Warn),
        ]);
    }
    let mut bundles = Table::new(&["BUNDLE", "VERSION", "CHANNELS", "NOTE"]);
    for node in &model.nodes {
        let lanes = model.channels.iter().filter(|lane| lane.entries.contains_key(&node.name));
        let lanes: Vec<_> = lanes.map(|lane| lane.name.as_str()).collect();
        let note = match (node.presence, &node.deprecation) {
            (Presence::Missing, _) => "not in this catalog".to_owned(),
            (Presence::Here, Some(why)) => format!("deprecated: {why}"),
            (Presence::Here, None) => String::new(),
        };
        bundles.row(vec![
            Cell::text(&node.name),
            Cell::text(node.version.as_ref().map(ToString::to_string).unwrap_or_default()),
            Cell::text(lanes.join(", ")),
            Cell::text(note).tone_if_any(Tone::Warn),
        ]);
    }
    format!("{text}\n{}\n{}", channels.render(printer), bundles.render(printer))
}

/// What a new catalog changes.
pub(crate) fn comparison(comparison: &Comparison, printer: &Printer) -> String {
    let mut text = String::new();
    if !comparison.operators.is_empty() {
        text.push_str(&operators(&comparison.operators, printer));
        text.push('\n');
    }
    if comparison.packages.is_empty() {
        text.push_str("Packages: the same in both catalogs\n");
        return text;
    }
    text.push_str(&format!("Packages that are not the same: {}\n", comparison.packages.len()));
    for (name, change) in &comparison.packages {
        match change {
            PackageChange::Added => text.push_str(&format!("\n{name}: new\n")),
            PackageChange::Removed => {
                let gone = printer.paint().tone(Tone::Bad, "not in the new catalog");
                text.push_str(&format!("\n{name}: {gone}\n"));
            }
            PackageChange::Changed(delta) => {
                text.push_str(&format!("\n{name}\n{}", package_delta(delta)));
            }
        }
    }
    text
}

fn operators(operators: &[OperatorChange], printer: &Printer) -> String {
    let mut table = Table::new(&["OPERATOR", "INSTALLED", "VERDICT", "WHY"]);
    for one in operators {
        let (word, tone) = match one.verdict {
            Verdict::Broken => ("Broken", Tone::Bad),
            Verdict::Stranded => ("Stranded", Tone::Bad),
            Verdict::EndsEarlier => ("EndsEarlier", Tone::Warn),
            Verdict::Changed => ("Changed", Tone::Busy),
            Verdict::Same => ("Same", Tone::Good),
        };
        table.row(vec![
            Cell::text(&one.operator.package),
            Cell::text(&one.operator.installed),
            Cell::text(word).tone(tone),
            Cell::text(&one.message),
        ]);
    }
    table.render(printer)
}

fn package_delta(delta: &PackageDelta) -> String {
    let mut text = String::new();
    let mut line = |what: &str, said: String| {
        if !said.is_empty() {
            text.push_str(&format!("  {what}: {said}\n"));
        }
    };
    let default = delta.default_channel.as_ref();
    line("default channel", default.map_or_else(String::new, |(a, b)| format!("{a} -> {b}")));
    line("channels added", list(&delta.channels_added));
    line("channels removed", list(&delta.channels_removed));
    for (channel, (was, is)) in &delta.heads {
        line(&format!("head of {channel}"), format!("{was} -> {is}"));
    }
    line("bundles added", list(&delta.bundles_added));
    line("bundles removed", list(&delta.bundles_removed));
    for (channel, entries) in &delta.edges_changed {
        line(&format!("other edges in {channel}"), list(entries));
    }
    line("now deprecated", list(&delta.deprecated));
    text
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
