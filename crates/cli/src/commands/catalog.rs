//! Catalogs in files: what they hold, what is wrong with them, and how a package's graph looks.

mod validate;

use std::path::Path;

use serde::Serialize;
use wavelift_catalog::Catalog;

use crate::{
    args::offline::{CatalogCommand, Drawing, GraphArgs, ShowArgs},
    exit::Exit,
    fault::Fault,
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
    let catalog = offline::catalog(&what.path, printer)?;
    if let Some(package) = &what.package {
        let model = model(&catalog, Scope { package, channel: None })?;
        let whole = &catalog.graph().packages[package];
        let names = |_: &_| whole.bundles.keys().cloned().collect();
        if !printer.machine(whole, names)? {
            printer.text(&render::package(&model, whole, printer));
        }
        return Ok(Exit::Success);
    }
    let listing = listing_of(&catalog);
    let names = |listing: &Listing| listing.packages.iter().map(|one| one.name.clone()).collect();
    if !printer.machine(&listing, names)? {
        printer.text(&render::listing(&listing, printer));
    }
    Ok(Exit::Success)
}

/// What a catalog holds.
pub(crate) fn listing_of(catalog: &Catalog) -> Listing {
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
    let catalog = offline::catalog(&what.path, printer)?;
    let package = match &what.package {
        Some(package) => package,
        None => only_package(&catalog, &what.path)?,
    };
    let model = model(&catalog, Scope { package, channel: what.channel.as_deref() })?;
    let names = |model: &Model| model.nodes.iter().map(|node| node.name.clone()).collect();
    if printer.machine(&model, names)? {
        return Ok(Exit::Success);
    }
    let drawn = match what.format {
        Drawing::Tree => picture::tree(&model),
        Drawing::Dot => picture::dot(&model),
        Drawing::Mermaid => picture::mermaid(&model),
        Drawing::Svg => picture::svg(&model),
    };
    printer.text(&drawn);
    Ok(Exit::Success)
}

/// The picture; that there is none is a mistake of whoever asked for it.
fn model(catalog: &Catalog, scope: Scope<'_>) -> anyhow::Result<Model> {
    Model::of(catalog, scope).map_err(|error| Fault::usage(error.to_string()).into())
}

fn only_package<'a>(catalog: &'a Catalog, path: &Path) -> anyhow::Result<&'a String> {
    let mut names = catalog.graph().packages.keys();
    if let (Some(only), None) = (names.next(), names.next()) {
        return Ok(only);
    }
    let count = catalog.graph().packages.len();
    let fault = Fault::usage(format!("{} has {count} packages: name one", path.display()));
    Err(fault.advice(format!("`wavelift catalog show {}` lists them", path.display())).into())
}
