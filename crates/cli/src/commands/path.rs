//! `wavelift path`: by which hops OLM takes an operator where it is wanted.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde::Serialize;
use wavelift_catalog::{
    Catalog, OlmV0,
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, RouteEnd, Subscription,
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
    offline,
    printer::Printer,
    render,
};

/// Why there is no path, as machines read it.
#[derive(Debug, Serialize)]
struct NoPath {
    error: String,
}

/// Runs it; exit code 3 where there is no path.
pub(super) fn path(what: &PathArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let documents = offline::documents(&what.catalogs)?;
    let content = match what.olm {
        Olm::V0 => Content::default(),
        Olm::V1 => Content::from_fbc(&documents),
    };
    let catalog = offline::catalog_of(documents)?;
    let Some(package) = catalog.graph().packages.get(&what.package) else {
        let has: Vec<_> = catalog.graph().packages.keys().take(20).cloned().collect();
        bail!("there is no package {} in the catalog; it has: {}", what.package, has.join(", "));
    };
    let channel = match (&what.channel, what.olm) {
        (Some(channel), _) => Some(channel.clone()),
        (None, Olm::V0) => package.default_channel.clone(),
        (None, Olm::V1) => None,
    };
    if let Some(channel) = &channel
        && !package.channels.contains_key(channel)
    {
        let has: Vec<_> = package.channels.keys().cloned().collect();
        bail!("{} has no channel {channel}; it has: {}", what.package, has.join(", "));
    }
    let installed = installed(&catalog, what)?;
    match what.olm {
        Olm::V0 => v0(what, &catalog, channel.unwrap_or_default(), installed, printer),
        Olm::V1 => v1(what, content, channel, &installed, printer),
    }
}

/// What `--from` names: a CSV, or the version of a bundle.
fn installed(catalog: &Catalog, what: &PathArgs) -> anyhow::Result<(String, Option<Version>)> {
    let bundles = &catalog.graph().packages[&what.package].bundles;
    if let Some(bundle) = bundles.get(&what.from) {
        return Ok((what.from.clone(), bundle.version.clone()));
    }
    let wanted = Version::parse(what.from.trim_start_matches('v')).ok();
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
        bail!(
            "`{}` is neither a bundle of {} nor a version, and no version can be read from it",
            what.from,
            what.package
        );
    }
    Ok((what.from.clone(), version))
}

fn v0(
    what: &PathArgs,
    catalog: &Arc<Catalog>,
    channel: String,
    (csv, version): (String, Option<Version>),
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let key = CatalogKey { name: "catalog".to_owned(), namespace: "catalogs".to_owned() };
    let request = Request {
        namespace: "operators".to_owned(),
        subscriptions: vec![Subscription {
            package: what.package.clone(),
            channel,
            catalog: key.clone(),
            installed: Some(Installed {
                csv,
                version,
                properties: InstalledProperties::AsInCatalog,
            }),
            starting_csv: None,
        }],
        unreferenced: vec![],
    };
    let catalogs = Catalogs::one(key, Arc::clone(catalog));
    let goal = match &what.to {
        None => Goal::Latest,
        Some(text) => match Version::parse(text) {
            Ok(version) => Goal::Version(version),
            Err(_) => Goal::Range(
                Range::parse(text)
                    .with_context(|| format!("`{text}` is neither a version nor a range"))?,
            ),
        },
    };
    let route = OlmV0.route(&catalogs, &request, &what.package, &goal);
    let is_reached = matches!(route.end, RouteEnd::Reached { .. });
    let names = |route: &wavelift_catalog::engine::Route| {
        route.hops.iter().flat_map(|hop| &hop.moves).map(|one| one.to.clone()).collect()
    };
    if !printer.machine(&route, names)? {
        printer.text(&render::route(&route, printer));
    }
    Ok(if is_reached { Exit::Success } else { Exit::Blocked })
}

fn v1(
    what: &PathArgs,
    content: Content,
    channel: Option<String>,
    (name, version): &(String, Option<Version>),
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let catalogs =
        [ClusterCatalog { name: "catalog".to_owned(), priority: 0, content: Arc::new(content) }];
    let extension = Extension {
        package: what.package.clone(),
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
    let text = what.to.as_deref().unwrap_or(">=0.0.0-0");
    let target = match Version::parse(text) {
        Ok(version) => Target::Version(version),
        Err(_) => Target::Within(Constraint::parse(text).with_context(|| {
            format!("`{text}` is neither a version nor a constraint as OLM v1 takes it")
        })?),
    };
    match olm_v1::path(&catalogs, &extension, &target) {
        Ok(path) => {
            let names = |path: &olm_v1::Path| path.hops.iter().map(|hop| hop.to.clone()).collect();
            if !printer.machine(&path, names)? {
                printer.text(&render::extension_path(&path, printer));
            }
            Ok(Exit::Success)
        }
        Err(error) => {
            let no_path = NoPath { error: error.to_string() };
            if !printer.machine(&no_path, |_| vec![])? {
                printer.text(&format!("No path: {error}"));
            }
            Ok(Exit::Blocked)
        }
    }
}
