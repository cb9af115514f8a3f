//! Plain text for a terminal.

use super::{
    Detail,
    outline::{self, Item, Part},
};
use crate::preview::{Importance, Preview};

/// Headlines on a screen.
const SUMMARY_MAX: usize = 30;

pub(super) fn write(preview: &Preview, detail: Detail) -> String {
    let outline = outline::of(preview);
    let mut out = format!("{}\n\n", outline.title);
    if outline.summary.is_empty() {
        out.push_str("No change found.\n");
    }
    for (importance, text) in outline.summary.iter().take(SUMMARY_MAX) {
        out.push_str(&format!("{} {text}\n", mark(*importance)));
    }
    if outline.summary.len() > SUMMARY_MAX {
        out.push_str(&format!("   and {} more\n", outline.summary.len() - SUMMARY_MAX));
    }
    if detail == Detail::Summary {
        return out;
    }
    parts(&mut out, &outline.overall, detail);
    match detail {
        Detail::All => {
            for (title, of_hop) in &outline.hops {
                out.push_str(&format!("\n{title}\n{}\n", "=".repeat(title.chars().count())));
                parts(&mut out, of_hop, detail);
            }
        }
        Detail::Important | Detail::Summary => {}
    }
    out
}

const fn mark(importance: Importance) -> &'static str {
    match importance {
        Importance::High => "!!",
        Importance::Medium => "! ",
        Importance::Low => "  ",
    }
}

fn parts(out: &mut String, parts: &[Part], detail: Detail) {
    let (shown, folded): (Vec<&Part>, Vec<&Part>) = parts
        .iter()
        .partition(|part| detail == Detail::All || part.importance <= Importance::Medium);
    for part in shown {
        out.push_str(&format!("\n{}\n", part.title));
        let (shown, folded): (Vec<&Item>, Vec<&Item>) = part
            .items
            .iter()
            .partition(|item| detail == Detail::All || item.importance <= Importance::Medium);
        for of in shown {
            item(out, of);
        }
        if !folded.is_empty() {
            out.push_str(&format!("   and {} of less importance\n", folded.len()));
        }
    }
    if !folded.is_empty() {
        let folded: Vec<String> =
            folded.iter().map(|part| format!("{} {}", part.title, part.items.len())).collect();
        out.push_str(&format!("\nFolded: {}\n", folded.join(", ")));
    }
}

fn item(out: &mut String, item: &Item) {
    out.push_str(&format!("{} {}\n", mark(item.importance), item.text));
    for line in &item.lines {
        out.push_str(format!("     {line}").trim_end());
        out.push('\n');
    }
    if let Some(url) = &item.url {
        out.push_str(&format!("     {url}\n"));
    }
}
