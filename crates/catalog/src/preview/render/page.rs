//! A document that grows: Markdown or HTML, whatever it is about.

use super::{html, markdown, outline::Part};
use crate::preview::Importance;

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Markdown, as GitHub and GitLab show it; what is less important is folded.
    Markdown,
    /// A page of HTML that loads nothing: to be attached to a change request, printed, kept.
    Html,
}

/// A document in the making. All that is written is text: each form escapes what it would take for
/// its own, and control characters are dropped.
#[derive(Debug)]
pub struct Page {
    form: Form,
    text: String,
}

impl Page {
    /// With its title.
    pub fn new(form: Form, title: &str) -> Self {
        let text = match form {
            Form::Markdown => markdown::begin(title),
            Form::Html => html::begin(title),
        };
        Self { form, text }
    }

    /// A heading; that of the document has level 1.
    pub fn heading(&mut self, level: usize, text: &str) {
        self.text.push_str(&match self.form {
            Form::Markdown => markdown::heading(level, text),
            Form::Html => html::heading(level, text),
        });
    }

    /// A paragraph.
    pub fn line(&mut self, text: &str) {
        self.text.push_str(&match self.form {
            Form::Markdown => markdown::line(text),
            Form::Html => html::line(text),
        });
    }

    /// A list of lines; nothing where there are none.
    pub fn list<'a>(&mut self, lines: impl IntoIterator<Item = (Importance, &'a str)>) {
        let lines: Vec<_> = lines.into_iter().collect();
        if lines.is_empty() {
            return;
        }
        match self.form {
            Form::Markdown => markdown::list(&mut self.text, &lines),
            Form::Html => html::list(&mut self.text, &lines),
        }
    }

    /// A section, folded where it does not matter much; `level` is that of its heading.
    pub fn part(&mut self, level: usize, part: &Part) {
        match self.form {
            Form::Markdown => markdown::part(&mut self.text, level, part),
            Form::Html => html::part(&mut self.text, part),
        }
    }

    /// The document.
    pub fn end(mut self) -> String {
        match self.form {
            Form::Markdown => {}
            Form::Html => self.text.push_str(html::END),
        }
        self.text
    }
}
