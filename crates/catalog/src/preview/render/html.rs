//! A page of HTML that loads nothing. Its security policy forbids scripts and requests, should some
//! word of a catalog get past the escaping.

use super::outline::{Item, Part, clean};
use crate::preview::Importance;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --high: #c9190b; --medium: #b86e00; }
@media (prefers-color-scheme: dark) { :root { --high: #ff7b72; --medium: #f0b35a; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
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

/// What closes the page.
pub(super) const END: &str = "</body></html>\n";

pub(super) fn begin(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
    )
}

pub(super) fn heading(level: usize, text: &str) -> String {
    format!("<h{level}>{}</h{level}>\n", escaped(text))
}

pub(super) fn line(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

pub(super) fn list(out: &mut String, lines: &[(Importance, &str)]) {
    out.push_str("<ul>\n");
    for (importance, text) in lines {
        out.push_str(&format!("<li class=\"{}\">{}</li>\n", class(*importance), escaped(text)));
    }
    out.push_str("</ul>\n");
}

const fn class(importance: Importance) -> &'static str {
    match importance {
        Importance::High => "high",
        Importance::Medium => "medium",
        Importance::Low => "low",
    }
}

pub(super) fn part(out: &mut String, part: &Part) {
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
    for c in clean(text).chars() {
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
