//! `wavelift preview` of bundles in directories, with no cluster at all.

use anyhow::{Context as _, bail};
use wavelift_catalog::{
    manifests::{Limits, Manifests},
    preview::{
        self, Preview, Step,
        render::{self, Detail},
    },
};

use crate::{
    args::{Form, PreviewArgs},
    exit::Exit,
    printer::Printer,
};

/// Runs it.
pub(super) fn preview(what: &PreviewArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if what.bundles.len() < 2 {
        bail!("a path has two bundles at least: the installed one, then the next");
    }
    let limits = Limits::default();
    let mut bundles = vec![];
    for path in &what.bundles {
        let read = Manifests::from_dir(path, &limits);
        bundles.push(read.with_context(|| format!("cannot read the bundle {}", path.display()))?);
    }
    let mut steps = vec![];
    for (manifests, path) in bundles.iter().zip(&what.bundles) {
        let step = Step::of_manifests(manifests);
        steps.push(step.with_context(|| {
            format!("{} has no ClusterServiceVersion with a name", path.display())
        })?);
    }
    let made = preview::path(&steps);
    match printer.form() {
        Some(Form::Markdown) => printer.text(&render::markdown(&made)),
        Some(Form::Html) => printer.text(&render::html(&made)),
        Some(Form::Json | Form::Yaml | Form::Name) => {
            let names = |made: &Preview| made.hops.iter().map(|hop| hop.to.clone()).collect();
            printer.machine(&made, names)?;
        }
        form @ (Some(Form::Wide) | None) => {
            let is_whole = what.all || form.is_some();
            let detail = if is_whole { Detail::All } else { Detail::Important };
            printer.text(&render::text(&made, detail));
        }
    }
    Ok(Exit::Success)
}
