//! Markdown, as GitHub and GitLab show it.

use super::outline::{Item, Part, clean};
use crate::preview::Importance;

pub(super) fn begin(title: &str) -> String {
    format!("# {}\n", escaped(title))
}

pub(super) fn heading(level: usize, text: &str) -> String {
    format!("\n{} {}\n", "#".repeat(level), escaped(text))
}

pub(super) fn line(text: &str) -> String {
    format!("\n{}\n", escaped(text))
}

pub(super) fn list(out: &mut String, lines: &[(Importance, &str)]) {
    out.push('\n');
    for (importance, text) in lines {
        let text = escaped(text);
        out.push_str(&match importance {
            Importance::High => format!("- **{text}**\n"),
            Importance::Medium | Importance::Low => format!("- {text}\n"),
        });
    }
}

/// What is less important is folded.
pub(super) fn part(out: &mut String, level: usize, part: &Part) {
    let (title, count) = (escaped(&part.title), part.items.len());
    let is_open = part.importance == Importance::High;
    if is_open {
        out.push_str(&format!("\n{} {title}\n\n", "#".repeat(level)));
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
    for c in clean(text).chars() {
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
