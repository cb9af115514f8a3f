//! What is written, whatever the form: sections with items, by importance.

use crate::preview::{Changes, Difference, Importance, Preview, Section};

mod authors;
mod cluster;
mod objects;

/// All of a preview.
pub(super) struct Outline {
    pub(super) title: String,
    pub(super) summary: Vec<(Importance, String)>,
    /// The whole path.
    pub(super) overall: Vec<Part>,
    /// Each hop, if there are several.
    pub(super) hops: Vec<(String, Vec<Part>)>,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// That of its most important item.
    pub importance: Importance,
    /// What it is about.
    pub title: String,
    /// The most important first.
    pub items: Vec<Item>,
}

/// One thing of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How much it matters.
    pub importance: Importance,
    /// What it is, in a line.
    pub text: String,
    /// Lines below it.
    pub lines: Vec<String>,
    /// Where it can be read.
    pub url: Option<String>,
}

pub(super) fn of(preview: &Preview) -> Outline {
    let Preview { package, hops, overall, summary } = preview;
    let name = package.as_deref().unwrap_or_default();
    let count = if hops.len() == 1 { "1 hop".to_owned() } else { format!("{} hops", hops.len()) };
    let title = format!("Preview {name}: {} -> {} ({count})", overall.from, overall.to);
    let of_hop = |(index, hop): (usize, &Changes)| {
        let title = format!("Hop {} of {}: {} -> {}", index + 1, hops.len(), hop.from, hop.to);
        (clean(&title), parts(hop))
    };
    Outline {
        title: clean(&title.replace("Preview :", "Preview:")),
        summary: summary.iter().map(|line| (line.importance, clean(&line.text))).collect(),
        overall: parts(overall),
        hops: if hops.len() > 1 {
            hops.iter().enumerate().map(of_hop).collect()
        } else {
            Vec::new()
        },
    }
}

/// One line without what a terminal would take for a command.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_bad(*c)).collect()
}

/// Control characters, and those that turn the direction of writing round.
fn is_bad(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Item {
    fn new(importance: Importance, text: &str) -> Self {
        Self { importance, text: clean(text), lines: Vec::new(), url: None }
    }

    fn with_lines<'a>(mut self, lines: impl IntoIterator<Item = &'a str>) -> Self {
        self.lines.extend(lines.into_iter().map(clean));
        self
    }

    fn with_text(self, text: Option<&String>) -> Self {
        self.with_lines(text.iter().flat_map(|text| text.lines()))
    }

    /// Only links that lead to a page.
    fn with_url(mut self, url: Option<&String>) -> Self {
        let is_page = |url: &&String| url.starts_with("https://") || url.starts_with("http://");
        self.url = url.filter(is_page).map(|url| clean(url));
        self
    }

    fn with_differences(mut self, differences: &[Difference]) -> Self {
        for Difference { field, old, new } in differences {
            let line = match (old, new) {
                (Some(old), Some(new)) => format!("{field}: {old} -> {new}"),
                (None, Some(new)) => format!("{field}: added {new}"),
                (Some(old), None) => format!("{field}: removed {old}"),
                (None, None) => field.clone(),
            };
            self.lines.push(clean(&line));
        }
        self
    }
}

pub(super) fn parts(changes: &Changes) -> Vec<Part> {
    let part = |section: Section, items: Vec<Item>| Part {
        importance: items.iter().map(|item| item.importance).min().unwrap_or(Importance::Low),
        title: section.to_string(),
        items,
    };
    let mut parts = vec![
        Part {
            importance: Importance::High,
            title: "Not known".to_owned(),
            items: cluster::missing(changes),
        },
        part(Section::Assessments, authors::assessments(changes)),
        part(Section::ManualSteps, authors::manual_steps(changes)),
        part(Section::Permissions, objects::permissions(changes)),
        part(Section::Crds, objects::crds(changes)),
        part(Section::Webhooks, objects::webhooks(changes)),
        part(Section::ApiServices, objects::api_services(changes)),
        part(Section::Compatibility, cluster::compatibility(changes)),
        part(Section::Deployments, objects::deployments(changes)),
        part(Section::Objects, objects::objects(changes)),
        part(Section::Alerts, cluster::alerts(changes)),
        part(Section::Images, cluster::images(changes)),
        part(Section::ReleaseNotes, authors::release_notes(changes)),
    ];
    parts.retain(|part| !part.items.is_empty());
    parts.sort_by_key(|part| part.importance);
    parts
}
