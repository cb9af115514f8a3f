//! `wavelift preview` of files, with no cluster at all: of bundles in directories and images, or of
//! the way that OLM takes through catalogs.

mod images;
mod way;

use std::path::Path;

use anyhow::Context as _;
use wavelift_catalog::{
    manifests::{self, Limits, Manifests},
    preview::{
        self, Preview, Step,
        render::{self, Detail},
    },
};

use self::images::Images;
use super::{path::NoPath, preview::deliver};
use crate::{
    args::{Form, preview::PreviewArgs},
    exit::Exit,
    fault::Fault,
    printer::Printer,
};

/// What the name of an image begins with.
const IMAGE: &str = "docker://";

/// Runs it; exit code 3 where there is no path.
pub(super) async fn preview(what: &PreviewArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if what.files.catalogs.is_empty() {
        let made = of_bundles(what, printer).await?;
        return show(&made, what, printer);
    }
    match way::preview(what, printer).await? {
        Ok(made) => show(&made, what, printer),
        Err(error) => {
            let no_path = NoPath { error };
            let text = match printer.form() {
                Some(Form::Json | Form::Yaml | Form::Name) => {
                    printer.written(&no_path, |_| vec![])?.unwrap_or_default()
                }
                Some(Form::Wide | Form::Markdown | Form::Html) | None => {
                    format!("No path: {}", no_path.error)
                }
            };
            printer.text(&text);
            Ok(Exit::Blocked)
        }
    }
}

async fn of_bundles(what: &PreviewArgs, printer: &Printer) -> anyhow::Result<Preview> {
    let names = &what.files.bundles;
    if names.len() < 2 {
        return Err(Fault::usage("a path has two bundles at least")
            .advice("give the installed one first: --bundle OLD --bundle NEW")
            .into());
    }
    let has_images = names.iter().any(|name| name.starts_with(IMAGE));
    let images = has_images.then(|| Images::of(&what.images, printer)).transpose()?;
    let mut bundles = vec![];
    for name in names {
        bundles.push(match (name.strip_prefix(IMAGE), &images) {
            (Some(image), Some(images)) => images.fetch(image).await?,
            (Some(_), None) | (None, _) => of_dir(Path::new(name))?,
        });
    }
    let mut steps = vec![];
    for (manifests, name) in bundles.iter().zip(names) {
        let step = Step::of_manifests(manifests);
        steps.push(step.with_context(|| {
            Fault::usage(format!("{name} has no ClusterServiceVersion with a name"))
        })?);
    }
    Ok(preview::path(&steps))
}

fn of_dir(path: &Path) -> anyhow::Result<Manifests> {
    Manifests::from_dir(path, &Limits::default()).map_err(|error| {
        let text = format!("cannot read the bundle {}", path.display());
        let fault = match &error {
            manifests::Error::Read { .. } if path.exists() => Fault::error(text),
            manifests::Error::Read { .. } => Fault::error(text)
                .advice("give a bundle's directory, or docker://NAME for a bundle image"),
            manifests::Error::NoCsv => Fault::usage(text).advice(
                "a bundle's directory holds `manifests` with one ClusterServiceVersion, and \
                 `metadata`",
            ),
            manifests::Error::Base64 { .. }
            | manifests::Error::Parse { .. }
            | manifests::Error::TooLarge { .. }
            | manifests::Error::Json { .. }
            | manifests::Error::Yaml { .. }
            | manifests::Error::Field { .. }
            | manifests::Error::Kind { .. }
            | manifests::Error::Outside { .. }
            | manifests::Error::SeveralCsvs { .. } => Fault::usage(text),
        };
        anyhow::Error::new(error).context(fault)
    })
}

fn show(made: &Preview, what: &PreviewArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let text = match printer.form() {
        Some(Form::Markdown) => render::markdown(made),
        Some(Form::Html) => render::html(made),
        Some(Form::Json | Form::Yaml | Form::Name) => {
            let names = |made: &Preview| made.hops.iter().map(|hop| hop.to.clone()).collect();
            printer.written(made, names)?.unwrap_or_default()
        }
        Some(Form::Wide) | None if made.hops.is_empty() => {
            format!("{} is there already: nothing changes", made.overall.to)
        }
        form @ (Some(Form::Wide) | None) => {
            let is_whole = what.files.all || form.is_some();
            render::text(made, if is_whole { Detail::All } else { Detail::Important })
        }
    };
    deliver(printer, what.out.as_deref(), &text)
}
