//! Markdown, as GitHub and GitLab show it.

use super::outline::{self, Item, Part};
use crate::preview::{Importance, Preview};

pub(super) fn write(preview: &Preview) -> String {
    let outline = outline::of(preview);
    let mut out = format!("# {}\n\n", escaped(&outline.title));
    if outline.summary.is_empty() {
        out.push_str("No change found.\n");
    }
    for (importance, text) in &outline.summary {
        match importance {
            Importance::High => out.push_str(&format!("- **{}**\n", escaped(text))),
            Importance::Medium | Importance::Low => {
                out.push_str(&format!("- {}\n", escaped(text)));
            }
        }
    }
    for part in &outline.overall {
        write_part(&mut out, "##", part);
    }
    for (title, parts) in &outline.hops {
        out.push_str(&format!("\n## {}\n", escaped(title)));
        for part in parts {
            write_part(&mut out, "###", part);
        }
    }
    out
}

/// What is less important is folded.
fn write_part(out: &mut String, level: &str, part: &Part) {
    let (title, count) = (escaped(&part.title), part.items.len());
    let is_open = part.importance == Importance::High;
    if is_open {
        out.push_str(&format!("\n{level} {title}\n\n"));
    } else {
        out.push_str(&format!("\n<details><summary>{title} ({count})</summary>\n\n"));
    }
    for item in &part.items {
        write_item(out, item);
    }
    if !is_open {
        out.push_str("\n</details>\n");
    }
}

fn write_item(out: &mut String, item: &Item) {
    let text = escaped(&item.text);
    match item.importance {
        Importance::High => out.push_str(&format!("- **{text}**")),
        Importance::Medium | Importance::Low => out.push_str(&format!("- {text}")),
    }
    if let Some(url) = &item.url {
        out.push_str(&format!(" <{}>", in_link(url)));
    }
    out.push('\n');
    for line in item.lines.iter().filter(|line| !line.trim().is_empty()) {
        out.push_str(&format!("  - {}\n", escaped(line.trim())));
    }
}

/// Text that is nothing but text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '@' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// A link in angle brackets ends at the first one.
fn in_link(url: &str) -> String {
    url.replace('<', "%3C").replace('>', "%3E").replace(' ', "%20")
}
