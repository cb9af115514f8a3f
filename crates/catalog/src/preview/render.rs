//! A preview for people: text for a terminal, Markdown, and a page of HTML that stands alone.
//!
//! All three are written from one outline, sections by importance. Words from catalogs are untrusted:
//! control characters are dropped, and each form escapes what it would take for its own.

pub use self::{
    outline::{Item, Part},
    page::{Form, Page},
};
use super::{Changes, Preview};

mod html;
mod markdown;
mod outline;
mod page;
mod text;

/// How much of a preview is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The summary alone, a screenful.
    Summary,
    /// The summary, then the important sections in full and the others in a line.
    Important,
    /// Everything, hop by hop too.
    All,
}

/// Plain text, without colours. Lines of high importance start with `!!`, of medium with `! `.
pub fn text(preview: &Preview, detail: Detail) -> String {
    text::write(preview, detail)
}

/// Markdown, as GitHub and GitLab show it; what is less important is folded.
pub fn markdown(preview: &Preview) -> String {
    document(Form::Markdown, preview)
}

/// A page of HTML that loads nothing: to be attached to a change request, printed, kept.
pub fn html(preview: &Preview) -> String {
    document(Form::Html, preview)
}

fn document(form: Form, preview: &Preview) -> String {
    let outline = outline::of(preview);
    let mut page = Page::new(form, &outline.title);
    let summary = outline.summary.iter();
    page.list(summary.map(|(importance, text)| (*importance, text.as_str())));
    if outline.summary.is_empty() {
        page.line("No change found.");
    }
    for part in &outline.overall {
        page.part(2, part);
    }
    for (title, parts) in &outline.hops {
        page.heading(2, title);
        for part in parts {
            page.part(3, part);
        }
    }
    page.end()
}

/// What a hop or a whole path changes in sections, the most important first: for those who write a
/// form of their own. Control characters are dropped, nothing is escaped.
pub fn parts(changes: &Changes) -> Vec<Part> {
    outline::parts(changes)
}
