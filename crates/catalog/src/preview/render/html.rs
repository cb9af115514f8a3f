//! A page of HTML that loads nothing. Its security policy forbids scripts and requests, should some
//! word of a catalog get past the escaping.

use super::outline::{self, Item, Part};
use crate::preview::{Importance, Preview};

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --high: #c9190b; --medium: #b86e00; }
@media (prefers-color-scheme: dark) { :root { --high: #ff7b72; --medium: #f0b35a; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
ul { padding-left: 1.2rem; } li { margin: .2rem 0; overflow-wrap: anywhere; }
li ul { font: 13px/1.45 ui-monospace, monospace; list-style: none; opacity: .85; }
.high { color: var(--high); font-weight: 600; } .medium { color: var(--medium); }
li ul, li a { color: CanvasText; font-weight: 400; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; font-weight: 600; } summary small { font-weight: 400; opacity: .7; }
@media print {
  body { margin: 0; max-width: none; font-size: 11px; }
  details::details-content { content-visibility: visible; block-size: auto; }
  details > *:not(summary) { display: block; }
}
";

pub(super) fn write(preview: &Preview) -> String {
    let outline = outline::of(preview);
    let title = escaped(&outline.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n<ul>\n"
    );
    if outline.summary.is_empty() {
        out.push_str("<li>No change found.</li>\n");
    }
    for (importance, text) in &outline.summary {
        let class = class(*importance);
        out.push_str(&format!("<li class=\"{class}\">{}</li>\n", escaped(text)));
    }
    out.push_str("</ul>\n");
    for part in &outline.overall {
        write_part(&mut out, part);
    }
    for (title, parts) in &outline.hops {
        out.push_str(&format!("<h2>{}</h2>\n", escaped(title)));
        for part in parts {
            write_part(&mut out, part);
        }
    }
    out.push_str("</body></html>\n");
    out
}

const fn class(importance: Importance) -> &'static str {
    match importance {
        Importance::High => "high",
        Importance::Medium => "medium",
        Importance::Low => "low",
    }
}

fn write_part(out: &mut String, part: &Part) {
    let open = if part.importance == Importance::High { " open" } else { "" };
    out.push_str(&format!(
        "<details{open}><summary class=\"{}\">{} <small>{}</small></summary>\n<ul>\n",
        class(part.importance),
        escaped(&part.title),
        part.items.len(),
    ));
    for item in &part.items {
        write_item(out, item);
    }
    out.push_str("</ul></details>\n");
}

fn write_item(out: &mut String, item: &Item) {
    out.push_str(&format!("<li class=\"{}\">{}", class(item.importance), escaped(&item.text)));
    if let Some(url) = &item.url {
        let url = escaped(url);
        out.push_str(&format!(" <a rel=\"noreferrer\" href=\"{url}\">{url}</a>"));
    }
    let mut lines = item.lines.iter().filter(|line| !line.trim().is_empty()).peekable();
    if lines.peek().is_some() {
        out.push_str("\n<ul>\n");
        for line in lines {
            out.push_str(&format!("<li>{}</li>\n", escaped(line)));
        }
        out.push_str("</ul>");
    }
    out.push_str("</li>\n");
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
