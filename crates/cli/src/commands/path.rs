//! `wavelift path`: by which hops OLM takes an operator where it is wanted.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use serde::Serialize;
use wavelift_catalog::{
    Catalog, OlmV0,
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, Route, RouteEnd,
        Subscription,
        olm_v1::{
            self, ClusterCatalog, Content, Extension, InstalledBundle, ReleaseSource, Target,
            UpgradePolicy,
        },
    },
};
use wavelift_core::{constraint::Constraint, range::Range, target::Goal, version::Version};

use crate::{
    args::offline::{Olm, PathArgs},
    exit::Exit,
    fault::Fault,
    offline,
    printer::Printer,
    render,
};

/// Why there is no path, as machines read it.
#[derive(Debug, Serialize)]
pub(super) struct NoPath {
    pub(super) error: String,
}

/// A way that somebody asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) catalogs: &'a [PathBuf],
    pub(super) package: &'a str,
    /// A CSV's name or a version.
    pub(super) from: &'a str,
    /// A version or a range; as far as OLM goes if there is none.
    pub(super) to: Option<&'a str>,
    /// The default channel if there is none; empty for a Subscription that names none.
    pub(super) channel: Option<&'a str>,
    pub(super) olm: Olm,
}

/// What OLM does.
pub(super) struct Found {
    pub(super) catalog: Arc<Catalog>,
    /// What is installed.
    pub(super) installed: At,
    pub(super) way: Way,
}

/// An installed CSV and its version.
pub(super) type At = (String, Option<Version>);

/// The way of a generation of OLM.
pub(super) enum Way {
    V0(Route),
    V1(Result<olm_v1::Path, Box<olm_v1::NoPath>>),
}

/// Runs it; exit code 3 where there is no path.
pub(super) fn path(what: &PathArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let wanted = Wanted {
        catalogs: &what.catalogs,
        package: &what.package,
        from: &what.from,
        to: what.to.as_deref(),
        channel: what.channel.as_deref(),
        olm: what.olm,
    };
    match find(wanted, printer)?.way {
        Way::V0(route) => {
            let names = |route: &Route| {
                route.hops.iter().flat_map(|hop| &hop.moves).map(|one| one.to.clone()).collect()
            };
            if !printer.machine(&route, names)? {
                printer.text(&render::route(&route, printer));
            }
            let is_reached = matches!(route.end, RouteEnd::Reached { .. });
            Ok(if is_reached { Exit::Success } else { Exit::Blocked })
        }
        Way::V1(Ok(path)) => {
            let names = |path: &olm_v1::Path| path.hops.iter().map(|hop| hop.to.clone()).collect();
            if !printer.machine(&path, names)? {
                printer.text(&render::extension_path(&path, printer));
            }
            Ok(Exit::Success)
        }
        Way::V1(Err(error)) => {
            let no_path = NoPath { error: error.to_string() };
            if !printer.machine(&no_path, |_| vec![])? {
                printer.text(&format!("No path: {error}"));
            }
            Ok(Exit::Blocked)
        }
    }
}

/// The way that OLM takes.
pub(super) fn find(wanted: Wanted<'_>, printer: &Printer) -> anyhow::Result<Found> {
    let documents = offline::documents(wanted.catalogs, printer)?;
    let content = match wanted.olm {
        Olm::V0 => Content::default(),
        Olm::V1 => Content::from_fbc(&documents),
    };
    let catalog = offline::catalog_of(documents)?;
    let Some(package) = catalog.graph().packages.get(wanted.package) else {
        let has: Vec<_> = catalog.graph().packages.keys().take(20).cloned().collect();
        let text = format!("there is no package `{}` in the catalog", wanted.package);
        return Err(Fault::usage(text).advice(format!("it has: {}", has.join(", "))).into());
    };
    let channel = match (wanted.channel, wanted.olm) {
        (Some(channel), _) => Some(channel.to_owned()),
        (None, Olm::V0) => package.default_channel.clone(),
        (None, Olm::V1) => None,
    };
    let channel = channel.filter(|channel| !channel.is_empty());
    if let Some(channel) = &channel
        && !package.channels.contains_key(channel)
    {
        let has: Vec<_> = package.channels.keys().cloned().collect();
        let text = format!("package `{}` has no channel `{channel}`", wanted.package);
        return Err(Fault::usage(text).advice(format!("it has: {}", has.join(", "))).into());
    }
    let installed = installed(&catalog, wanted)?;
    let way = match wanted.olm {
        Olm::V0 => Way::V0(v0(wanted, &catalog, channel.unwrap_or_default(), &installed)?),
        Olm::V1 => Way::V1(v1(wanted, content, channel, &installed)?.map_err(Box::new)),
    };
    Ok(Found { catalog, installed, way })
}

/// What `--from` names: a CSV, or the version of a bundle.
fn installed(catalog: &Catalog, what: Wanted<'_>) -> anyhow::Result<At> {
    let bundles = &catalog.graph().packages[what.package].bundles;
    if let Some(bundle) = bundles.get(what.from) {
        return Ok((what.from.to_owned(), bundle.version.clone()));
    }
    let wanted = Version::parse(bare(what.from)).ok();
    let named = wanted.as_ref().and_then(|wanted| {
        bundles.iter().find(|(_, bundle)| bundle.version.as_ref() == Some(wanted))
    });
    if let Some((name, bundle)) = named {
        return Ok((name.clone(), bundle.version.clone()));
    }
    // OLM needs no bundle of what is installed: a name and a version are enough.
    if let Some(version) = wanted {
        return Ok((format!("{}.v{version}", what.package), Some(version)));
    }
    let version = what.from.split_once(".v").and_then(|(_, text)| Version::parse(text).ok());
    if version.is_none() {
        let text = format!(
            "`{}` is neither a bundle of `{}` nor a version, and no version can be read from it",
            what.from, what.package
        );
        let advice = format!("`wavelift catalog show CATALOG {}` lists bundles", what.package);
        return Err(Fault::usage(text).advice(advice).into());
    }
    Ok((what.from.to_owned(), version))
}

fn v0(
    what: Wanted<'_>,
    catalog: &Arc<Catalog>,
    channel: String,
    (csv, version): &At,
) -> anyhow::Result<Route> {
    let key = CatalogKey { name: "catalog".to_owned(), namespace: "catalogs".to_owned() };
    let request = Request {
        namespace: "operators".to_owned(),
        subscriptions: vec![Subscription {
            package: what.package.to_owned(),
            channel,
            catalog: key.clone(),
            installed: Some(Installed {
                csv: csv.clone(),
                version: version.clone(),
                properties: InstalledProperties::AsInCatalog,
            }),
            starting_csv: None,
        }],
        unreferenced: vec![],
    };
    let catalogs = Catalogs::one(key, Arc::clone(catalog));
    let goal = match what.to {
        None => Goal::Latest,
        Some(text) => match Version::parse(bare(text)) {
            Ok(version) => Goal::Version(version),
            Err(_) => Goal::Range(Range::parse(text).with_context(|| {
                Fault::usage(format!("`{text}` is neither a version nor a range"))
            })?),
        },
    };
    Ok(OlmV0.route(&catalogs, &request, what.package, &goal))
}

fn v1(
    what: Wanted<'_>,
    content: Content,
    channel: Option<String>,
    (name, version): &At,
) -> anyhow::Result<Result<olm_v1::Path, olm_v1::NoPath>> {
    let catalogs =
        [ClusterCatalog { name: "catalog".to_owned(), priority: 0, content: Arc::new(content) }];
    let extension = Extension {
        package: what.package.to_owned(),
        channels: channel.into_iter().collect(),
        constraint: None,
        installed: Some(InstalledBundle {
            name: name.clone(),
            version: version.as_ref().map(ToString::to_string).unwrap_or_default(),
            release: None,
        }),
        policy: UpgradePolicy::default(),
        releases: ReleaseSource::default(),
    };
    let text = what.to.unwrap_or(">=0.0.0-0");
    let target = match Version::parse(bare(text)) {
        Ok(version) => Target::Version(version),
        Err(_) => Target::Within(Constraint::parse(text).with_context(|| {
            Fault::usage(format!(
                "`{text}` is neither a version nor a constraint as OLM v1 takes it"
            ))
        })?),
    };
    Ok(olm_v1::path(&catalogs, &extension, &target))
}

/// A version is often written with a `v` before it.
fn bare(text: &str) -> &str {
    text.strip_prefix('v').unwrap_or(text)
}
