//! What the plans of a campaign change: one screen over all groups, and one group whole.

use std::collections::BTreeMap;

use wavelift_api::{
    fleet_upgrade::GroupChanges,
    live::{
        BlockerKind, DifferenceKind, ImportanceName, PreviewDetail, PreviewGroup, PreviewList,
        PreviewState, WayView,
    },
};

use super::table::{Cell, Table};
use crate::printer::{Printer, Tone};

/// Lines of one kind on the first screen, and of one section of a group.
const SCREEN_MAX: usize = 5;
const SECTION_MAX: usize = 15;

/// All groups on one screen: the gravest by name, the rest in numbers.
pub(crate) fn groups(list: &PreviewList, printer: &Printer) -> String {
    let mut text = String::new();
    let mut table = Table::new(&[
        "GROUP", "CLUSTERS", "GAINED", "LOOK-AT", "REFUSED", "STEPS", "MISSING", "UNLIKE",
        "CHANGES",
    ]);
    for (index, group) in list.items.iter().enumerate() {
        let counts = &group.counts;
        let ways: Vec<String> = group.ways.iter().map(way).collect();
        let ways = match group.state {
            PreviewState::Made => ways.join("; "),
            PreviewState::Making => format!("{} (being found out)", ways.join("; ")),
        };
        table.row(vec![
            Cell::text(format!("{} {}", index + 1, group.id)),
            Cell::number(group.clusters),
            Cell::number(counts.permissions_gained),
            Cell::number(counts.dangerous_total).tone_if_any(Tone::Warn),
            Cell::number(length(counts.crds_refused.len())).tone_if_any(Tone::Bad),
            Cell::number(counts.manual_steps_total).tone_if_any(Tone::Warn),
            Cell::number(counts.missing_total).tone_if_any(Tone::Warn),
            Cell::number(group.differences),
            Cell::text(ways),
        ]);
    }
    if !list.items.is_empty() {
        text.push_str(&table.render(printer));
    }
    if list.left_out > 0 {
        out!(text, "and {} smaller groups that were not compared", list.left_out);
    }
    named(&mut text, "Refused by OLM", list, |group| &group.counts.crds_refused);
    named(&mut text, "Manual steps", list, |group| &group.counts.manual_steps);
    named(&mut text, "Deserves a look", list, |group| &group.counts.dangerous);
    named(&mut text, "Could not be looked at, nothing is said of it", list, |group| {
        &group.counts.missing
    });
    blockers(&mut text, list);
    if list.state == PreviewState::Making {
        out!(text, "\nNot complete: some changes are still being found out.");
    }
    text
}

/// Lines that any of the groups has, once each, with how many clusters have it.
fn named(
    text: &mut String,
    title: &str,
    list: &PreviewList,
    pick: fn(&PreviewGroup) -> &Vec<String>,
) {
    let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
    for group in &list.items {
        for line in pick(group) {
            *lines.entry(line).or_insert(0) += group.clusters;
        }
    }
    if lines.is_empty() {
        return;
    }
    let total = lines.len();
    let mut lines: Vec<(&str, u32)> = lines.into_iter().collect();
    lines.sort_by_key(|(_, clusters)| std::cmp::Reverse(*clusters));
    out!(text, "\n{title}:");
    for (line, clusters) in lines.iter().take(SCREEN_MAX) {
        out!(text, "  {line} ({clusters} clusters)");
    }
    if total > SCREEN_MAX {
        out!(text, "  and {} more", total - SCREEN_MAX);
    }
}

fn blockers(text: &mut String, list: &PreviewList) {
    if list.blocked == 0 {
        return;
    }
    out!(text, "\nIn the way of {} clusters:", list.blocked);
    for one in list.blockers.iter().take(SCREEN_MAX) {
        let kind = match one.kind {
            BlockerKind::NoPath => "no path",
            BlockerKind::NotKnown => "not known",
            BlockerKind::Checks => "checks",
            BlockerKind::Held => "held",
        };
        out!(text, "  {}: {kind}: {}", one.cluster, one.why);
    }
    let shown = list.blockers.len().min(SCREEN_MAX);
    let more = usize::try_from(list.blocked).unwrap_or(usize::MAX).saturating_sub(shown);
    if more > 0 {
        out!(text, "  and {more} more");
    }
}

/// One group: what sets it apart first, then its operators, section by section.
pub(crate) fn group(detail: &PreviewDetail, is_whole: bool) -> String {
    let group = &detail.group;
    let mut text = format!("Group {}: {} clusters", group.id, group.clusters);
    out!(text, " ({})", examples(group));
    for one in &group.ways {
        out!(text, "  {} in {}", way(one), one.namespace);
    }
    for seen in &group.catalogs {
        out!(text, "  from catalog {} {}", seen.source, seen.digest);
    }
    if group.state == PreviewState::Making {
        out!(text, "\nIts changes are still being found out.");
    }
    let most = |max: usize| if is_whole { usize::MAX } else { max };
    let counts = &group.counts;
    for (title, lines) in [
        ("Could not be looked at, nothing is said of it", &counts.missing),
        ("Refused by OLM", &counts.crds_refused),
        ("Manual steps", &counts.manual_steps),
        ("Deserves a look", &counts.dangerous),
    ] {
        section(&mut text, title, lines, lines.len(), most(SECTION_MAX));
    }
    let differences: Vec<String> = detail
        .differences
        .iter()
        .map(|one| {
            let place = match (one.kind, one.groups) {
                (DifferenceKind::Has, 0) => "here alone".to_owned(),
                (DifferenceKind::Has, groups) => format!("here and in {groups} other groups"),
                (DifferenceKind::Lacks, _) => "in all others, not here".to_owned(),
            };
            format!("{place}: {}, {}: {}", one.package, one.section, one.text)
        })
        .collect();
    let total = usize::try_from(group.differences).unwrap_or(usize::MAX);
    section(&mut text, "Unlike other groups", &differences, total, most(SECTION_MAX));
    for operator in &detail.operators {
        out!(text, "\n== {} in {} ==", operator.package, operator.namespace);
        if operator.sections.is_empty() {
            out!(text, "Nothing is known to change.");
        }
        for one in &operator.sections {
            let mark = match one.importance {
                ImportanceName::High => "!! ",
                ImportanceName::Medium => "! ",
                ImportanceName::Low => "",
            };
            let title = format!("{mark}{}", one.title);
            section(&mut text, &title, &one.lines, one.lines.len(), most(SECTION_MAX));
        }
    }
    text
}

fn section(text: &mut String, title: &str, lines: &[String], total: usize, max: usize) {
    if lines.is_empty() {
        return;
    }
    out!(text, "\n{title} ({total}):");
    for line in lines.iter().take(max) {
        out!(text, "  {line}");
    }
    let shown = lines.len().min(max);
    if total > shown {
        out!(text, "  and {} more: -o wide, or -o html --out FILE", total - shown);
    }
}

/// What the object itself says, for those who have no way to the hub.
pub(crate) fn changes(changes: &[GroupChanges], printer: &Printer) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    let mut table = Table::new(&[
        "GROUP", "CLUSTERS", "GAINED", "LOOK-AT", "REFUSED", "STEPS", "MISSING", "CHANGES",
    ]);
    for one in changes {
        table.row(vec![
            Cell::text(&one.group),
            Cell::number(one.clusters),
            Cell::number(one.permissions_gained),
            Cell::number(one.dangerous_permissions).tone_if_any(Tone::Warn),
            Cell::number(length(one.crds_refused.len())).tone_if_any(Tone::Bad),
            Cell::number(one.manual_steps).tone_if_any(Tone::Warn),
            Cell::number(one.missing).tone_if_any(Tone::Warn),
            Cell::text(&one.ways),
        ]);
    }
    text.push_str(&table.render(printer));
    text
}

fn examples(group: &PreviewGroup) -> String {
    let more = usize::try_from(group.clusters).unwrap_or(usize::MAX) - group.examples.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", group.examples.join(", "))
}

fn way(one: &WayView) -> String {
    let from = one.from.as_deref().unwrap_or("(new)");
    let all: Vec<&str> = std::iter::once(from).chain(one.to.iter().map(String::as_str)).collect();
    let way = format!("{} {}", one.package, all.join(" -> "));
    if one.pinned.is_empty() {
        return way;
    }
    format!("{way}, stops at {} by a pinned catalog", one.pinned.join(", "))
}

fn length(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
