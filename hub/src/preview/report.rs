//! A preview as one document that stands for itself: Markdown, or HTML to attach to a change
//! request. The HTML loads nothing and runs nothing.

use wavelift_api::live::{DifferenceKind, DifferenceView, ImportanceName, SectionView};
use wavelift_catalog::preview::{
    Importance,
    render::{self, Item, Part},
};

use super::{
    Counted, GroupPreview, Made, Preview,
    differ::each,
    summary::{counts, number},
};

/// Groups in one document, blockers, and lines of one section.
const GROUPS_MAX: usize = 50;
const BLOCKERS_MAX: usize = 500;
const LINES_MAX: usize = 2_000;
const DIFFERENCES_MAX: usize = 200;
/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people and for tickets.
    Markdown,
    /// For a browser.
    Html,
}

/// A document about one campaign, of all groups or of some.
pub fn report(title: &str, preview: &Preview, only: Option<&GroupPreview>, form: Form) -> String {
    let counted = Counted::of(preview);
    let mut page = Page::new(form, title);
    let all = preview.groups.iter().map(AsRef::as_ref);
    let groups: Vec<&GroupPreview> = match only {
        Some(one) => vec![one],
        None => all.take(GROUPS_MAX).collect(),
    };
    if only.is_none() {
        head(&mut page, preview);
    }
    for shown in &groups {
        group(&mut page, shown, &counted);
    }
    if only.is_none() {
        let more = preview.groups.len() - groups.len() + preview.left_out.0 as usize;
        if more > 0 {
            page.line(&format!("{more} smaller groups are not in this document."));
        }
        blockers(&mut page, preview);
    }
    page.end()
}

fn head(page: &mut Page, preview: &Preview) {
    let planned: usize = preview.groups.iter().map(|shown| shown.group.clusters.len()).sum();
    page.line(&format!(
        "{} clusters: {planned} with a plan in {} groups, {} at the target, {} blocked.",
        preview.clusters,
        preview.groups.len(),
        preview.at_target,
        preview.blockers.len()
    ));
    if preview.is_making() {
        page.line("Not complete: some changes are still being found out.");
    }
}

fn group(page: &mut Page, shown: &GroupPreview, counted: &Counted<'_>) {
    let group = &shown.group;
    let examples: Vec<&str> = group.clusters.iter().take(5).map(AsRef::as_ref).collect();
    let more = group.clusters.len().saturating_sub(5);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    page.heading(2, &format!("Group {}: {} clusters", group.id, group.clusters.len()));
    page.line(&format!("{}{more}", examples.join(", ")));
    let ways: Vec<String> = group
        .ways
        .iter()
        .map(|way| format!("{} in {}: {}", way.package, way.namespace, way.text()))
        .collect();
    page.list(&ways);
    let catalogs = group.catalogs();
    let catalogs: Vec<String> =
        catalogs.iter().map(|seen| format!("catalog {} {}", seen.source, seen.digest)).collect();
    page.list(&catalogs);
    if shown.made.is_none() {
        page.line("Its changes are still being found out.");
        return;
    }
    let counts = counts(shown);
    page.line(&format!(
        "{} permissions gained ({} deserve a look), {} lost, {} CRD changes ({} refused), {} \
         images, {} manual steps, {} release notes, {} not looked at.",
        counts.permissions_gained,
        counts.dangerous_total,
        counts.permissions_lost,
        counts.crd_changes,
        counts.crds_refused.len(),
        counts.images,
        counts.manual_steps_total,
        counts.release_notes,
        counts.missing_total
    ));
    page.section("Deserves a look", &counts.dangerous);
    page.section("Refused by OLM", &counts.crds_refused);
    page.section("Manual steps", &counts.manual_steps);
    page.section("Could not be looked at: nothing is said of it", &counts.missing);
    let differences = counted.differences(shown);
    let differences: Vec<String> =
        differences.iter().take(DIFFERENCES_MAX).map(difference).collect();
    page.section("Unlike other groups", &differences);
    for (way, (package, made)) in group.ways.iter().zip(each(shown)) {
        page.heading(3, &format!("{package} in {}: {}", way.namespace, way.text()));
        operator(page, made);
    }
}

fn operator(page: &mut Page, made: &Made) {
    let sections = sections(made);
    if sections.is_empty() {
        page.line("Nothing changes.");
    }
    for section in sections {
        page.section(&section.title, &section.lines);
    }
}

/// What a way changes over all in lines, the most important sections first.
pub(crate) fn sections(made: &Made) -> Vec<SectionView> {
    let parts = render::parts(&made.preview.overall).into_iter();
    let mut sections: Vec<SectionView> = parts.map(section).collect();
    if !made.moving.is_empty() {
        sections.push(SectionView {
            title: "Looked at under a tag, which may be another image by now".to_owned(),
            importance: ImportanceName::Low,
            total: number(made.moving.len()),
            lines: made.moving.iter().cloned().collect(),
        });
    }
    sections
}

fn section(Part { importance, title, items }: Part) -> SectionView {
    let total = number(items.len());
    let mut lines = vec![];
    for Item { text, lines: below, url, .. } in items {
        lines.push(text);
        lines.extend(below.into_iter().chain(url).map(|line| format!("  {line}")));
    }
    SectionView {
        title,
        importance: match importance {
            Importance::High => ImportanceName::High,
            Importance::Medium => ImportanceName::Medium,
            Importance::Low => ImportanceName::Low,
        },
        total,
        lines,
    }
}

/// One line about a difference.
fn difference(one: &DifferenceView) -> String {
    let DifferenceView { kind, package, section, text, groups } = one;
    match kind {
        DifferenceKind::Has => {
            format!(
                "only here and in {groups} others: {package}, {}: {text}",
                section.to_lowercase()
            )
        }
        DifferenceKind::Lacks => {
            format!("in all others, not here: {package}, {}: {text}", section.to_lowercase())
        }
    }
}

fn blockers(page: &mut Page, preview: &Preview) {
    if preview.blockers.is_empty() {
        return;
    }
    page.heading(2, &format!("In the way of {} clusters", preview.blockers.len()));
    let lines: Vec<String> = preview
        .blockers
        .iter()
        .take(BLOCKERS_MAX)
        .map(|one| format!("{}: {:?}: {}", one.cluster, one.kind, one.why))
        .collect();
    page.list(&lines);
    if preview.blockers.len() > lines.len() {
        page.line(&format!("and {} more.", preview.blockers.len() - lines.len()));
    }
}

/// A document that grows.
struct Page {
    form: Form,
    text: String,
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
     padding:0 1rem;color:#1b1f24;background:#fff}h2{border-top:1px solid #ccd;padding-top:1rem}\
     summary{cursor:pointer;font-weight:600}li{overflow-wrap:anywhere}";

impl Page {
    fn new(form: Form, title: &str) -> Self {
        let mut page = Self { form, text: String::new() };
        if form == Form::Html {
            page.text = format!(
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                 <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
                html(title)
            );
        }
        page.heading(1, title);
        page
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.text.push_str(&match self.form {
            Form::Markdown => format!("\n{} {}\n\n", "#".repeat(level), markdown(text)),
            Form::Html => format!("<h{level}>{}</h{level}>\n", html(text)),
        });
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(&match self.form {
            Form::Markdown => format!("{}\n\n", markdown(text)),
            Form::Html => format!("<p>{}</p>\n", html(text)),
        });
    }

    fn list(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        match self.form {
            Form::Markdown => {
                for line in lines {
                    self.text.push_str(&format!("- {}\n", markdown(line)));
                }
                self.text.push('\n');
            }
            Form::Html => {
                self.text.push_str("<ul>\n");
                for line in lines {
                    self.text.push_str(&format!("<li>{}</li>\n", html(line)));
                }
                self.text.push_str("</ul>\n");
            }
        }
    }

    /// A list under a name, folded where that can be; nothing where there are no lines.
    fn section(&mut self, name: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let name = format!("{name} ({})", lines.len());
        self.text.push_str(&match self.form {
            Form::Markdown => format!("**{}**\n\n", markdown(&name)),
            Form::Html => format!("<details><summary>{}</summary>\n", html(&name)),
        });
        self.list(lines.get(..LINES_MAX).unwrap_or(lines));
        if lines.len() > LINES_MAX {
            self.line(&format!("and {} more.", lines.len() - LINES_MAX));
        }
        if self.form == Form::Html {
            self.text.push_str("</details>\n");
        }
    }

    fn end(mut self) -> String {
        if self.form == Form::Html {
            self.text.push_str("</body>\n</html>\n");
        }
        self.text.trim_start().to_owned()
    }
}

fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// One line in which nothing is mark-up.
fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_authors_write_is_text_and_never_mark_up() {
        assert_eq!(html("<b a='x'>&\""), "&lt;b a=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(markdown("a\n# *b* [c](d) <e>"), "a \\# \\*b\\* \\[c\\](d) &lt;e>");
    }
}
