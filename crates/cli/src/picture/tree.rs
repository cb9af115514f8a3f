//! The picture as text: one block a channel, the newest first.

use super::model::{Lane, Model, Presence};

/// The most names that one line lists.
const NAMES_MAX: usize = 6;

/// The picture.
pub(crate) fn tree(model: &Model) -> String {
    let mut text = format!("{}\n", model.package);
    for (at, lane) in model.channels.iter().enumerate() {
        let is_last = at + 1 == model.channels.len();
        let (branch, rest) =
            if is_last { ("└── ", "    ") } else { ("├── ", "│   ") };
        let default = if lane.is_default { " (default)" } else { "" };
        text.push_str(&format!(
            "{branch}{}{default}{}\n",
            lane.name,
            note(lane.deprecation.as_ref())
        ));
        for line in lines(model, lane) {
            text.push_str(&format!("{rest}{line}\n"));
        }
    }
    text
}

fn lines(model: &Model, lane: &Lane) -> Vec<String> {
    let chain = match &lane.chain {
        Ok(chain) => chain,
        Err(why) => return vec![format!("└── OLM v0 refuses this channel: {why}")],
    };
    let mut lines = vec![];
    let mut rows: Vec<String> = chain.iter().map(|name| row(model, lane, name)).collect();
    if let Some(head) = rows.first_mut() {
        head.push_str("  <- head");
    }
    let not_in_chain = lane.entries.keys().filter(|name| !chain.contains(name));
    let skipped: Vec<&str> = not_in_chain.map(String::as_str).collect();
    if !skipped.is_empty() {
        rows.push(format!("never a target in OLM v0 (skipped): {}", list(&skipped)));
    }
    for (at, row) in rows.iter().enumerate() {
        let branch = if at + 1 == rows.len() { "└── " } else { "├── " };
        lines.push(format!("{branch}{row}"));
    }
    lines
}

fn row(model: &Model, lane: &Lane, name: &str) -> String {
    let Some(entry) = lane.entries.get(name) else { return name.to_owned() };
    let node = model.node(name);
    let mut said = vec![];
    if let Some(replaces) = &entry.replaces {
        let is_here = model.node(replaces).is_some_and(|node| node.presence == Presence::Here);
        let missing = if is_here { "" } else { " (not in this catalog)" };
        said.push(format!("replaces {replaces}{missing}"));
    }
    if !entry.skips.is_empty() {
        let skips: Vec<&str> = entry.skips.iter().map(String::as_str).collect();
        said.push(format!("skips {}", list(&skips)));
    }
    if let Some(range) = &entry.skip_range {
        said.push(format!("skipRange {range}"));
    }
    let said = if said.is_empty() { String::new() } else { format!("  [{}]", said.join("; ")) };
    let deprecated = node.and_then(|node| node.deprecation.as_ref());
    format!("{name}{said}{}", note(deprecated))
}

fn note(deprecation: Option<&String>) -> String {
    deprecation.map_or_else(String::new, |why| {
        let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("  deprecated: {line}")
    })
}

fn list(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
