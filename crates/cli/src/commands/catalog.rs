//! Catalogs in files: what they hold, what is wrong with them, and how a package's graph looks.

mod validate;

use std::path::Path;

use anyhow::bail;
use serde::Serialize;
use wavelift_catalog::Catalog;

use crate::{
    args::offline::{CatalogCommand, Drawing, GraphArgs, ShowArgs},
    exit::Exit,
    offline,
    picture::{self, Model, Scope},
    printer::Printer,
    render,
};

/// A package in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PackageRow {
    pub(crate) name: String,
    pub(crate) default_channel: Option<String>,
    pub(crate) channels: usize,
    pub(crate) bundles: usize,
    /// What OLM v0 installs from the default channel.
    pub(crate) head: Option<String>,
    pub(crate) deprecation: Option<String>,
}

/// A catalog as it is listed.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    pub(crate) digest: String,
    pub(crate) packages: Vec<PackageRow>,
}

/// `wavelift catalog`
pub(super) fn catalog(command: &CatalogCommand, printer: &Printer) -> anyhow::Result<Exit> {
    match command {
        CatalogCommand::Show(what) => show(what, printer),
        CatalogCommand::Graph(what) => graph(what, printer),
        CatalogCommand::Validate(what) => validate::run(what, printer),
    }
}

fn show(what: &ShowArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let catalog = offline::catalog(&what.path)?;
    if let Some(package) = &what.package {
        let model = Model::of(&catalog, Scope { package, channel: None })?;
        let whole = &catalog.graph().packages[package];
        let names = |_: &_| whole.bundles.keys().cloned().collect();
        if !printer.machine(whole, names)? {
            printer.text(&render::package(&model, whole, printer));
        }
        return Ok(Exit::Success);
    }
    let listing = listing(&catalog);
    let names = |listing: &Listing| listing.packages.iter().map(|one| one.name.clone()).collect();
    if !printer.machine(&listing, names)? {
        printer.text(&render::listing(&listing, printer));
    }
    Ok(Exit::Success)
}

fn listing(catalog: &Catalog) -> Listing {
    let row = |(name, package): (&String, &wavelift_catalog::graph::Package)| PackageRow {
        name: name.clone(),
        default_channel: package.default_channel.clone(),
        channels: package.channels.len(),
        bundles: package.bundles.len(),
        head: package
            .default_channel
            .as_ref()
            .and_then(|channel| catalog.head(name, channel).ok().map(str::to_owned)),
        deprecation: package.deprecation.clone(),
    };
    Listing {
        digest: catalog.digest().to_string(),
        packages: catalog.graph().packages.iter().map(row).collect(),
    }
}

fn graph(what: &GraphArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let catalog = offline::catalog(&what.path)?;
    let package = match &what.package {
        Some(package) => package,
        None => only_package(&catalog, &what.path)?,
    };
    let model = Model::of(&catalog, Scope { package, channel: what.channel.as_deref() })?;
    let drawn = match what.format {
        Drawing::Tree => picture::tree(&model),
        Drawing::Dot => picture::dot(&model),
        Drawing::Mermaid => picture::mermaid(&model),
        Drawing::Svg => picture::svg(&model),
    };
    printer.text(&drawn);
    Ok(Exit::Success)
}

fn only_package<'a>(catalog: &'a Catalog, path: &Path) -> anyhow::Result<&'a String> {
    let mut names = catalog.graph().packages.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) | (None, _) => bail!(
            "{} has {} packages, name one; `catalog show {0}` lists them",
            path.display(),
            catalog.graph().packages.len(),
        ),
    }
}
