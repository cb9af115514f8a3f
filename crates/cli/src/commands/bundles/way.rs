//! The preview of the way that OLM takes through catalogs in files.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use serde_json::Value;
use wavelift_catalog::{
    Catalog, Manifests,
    engine::RouteEnd,
    preview::{self, Facts, Preview, Step},
};
use wavelift_core::version::Version;

use super::images::Images;
use crate::{
    args::preview::PreviewArgs,
    commands::path::{self, Found, Wanted, Way},
    printer::Printer,
};

/// Versions that one hop jumps over and whose notes are looked at.
const SKIPPED_MAX: usize = 200;
/// Images that are fetched for one preview.
const IMAGES_MAX: usize = 200;
/// Images that are waited for at the same time.
const AT_ONCE: usize = 4;

/// One version on the way.
struct Bundle {
    csv: String,
    version: Option<Version>,
    /// The channel in which OLM finds it.
    channel: Option<String>,
    manifests: Result<Manifests, String>,
    /// What the catalog repeats of its CSV.
    metadata: Option<Value>,
    /// The versions that the hop to it jumps over.
    skipped: Vec<Self>,
}

/// Where bundles are looked up.
struct Shelf<'a> {
    catalog: &'a Catalog,
    package: &'a str,
}

/// What the way changes, or why there is none.
pub(super) async fn preview(
    what: &PreviewArgs,
    printer: &Printer,
) -> anyhow::Result<Result<Preview, String>> {
    let files = &what.files;
    let package = files.package.as_deref().unwrap_or_default();
    let wanted = Wanted {
        catalogs: &files.catalogs,
        package,
        from: files.from.as_deref().unwrap_or_default(),
        to: files.to.as_deref(),
        channel: files.channel.as_deref(),
        olm: files.olm,
    };
    let found = path::find(wanted, printer)?;
    let hops = match hops(&found, package, printer) {
        Ok(hops) => hops,
        Err(why) => return Ok(Err(why)),
    };
    let shelf = Shelf { catalog: &found.catalog, package };
    let (csv, version) = &found.installed;
    let mut bundles = vec![shelf.bundle(csv, version.clone(), None)];
    for (csv, channel) in hops {
        let before = bundles.last().and_then(|bundle| bundle.version.clone());
        let version = shelf.version(&csv).cloned();
        let mut bundle = shelf.bundle(&csv, version, channel);
        bundle.skipped = shelf.between(before.as_ref(), &bundle);
        bundles.push(bundle);
    }
    if files.fetch_images {
        shelf.fetch(&mut bundles, &Images::of(&what.images, printer)?, printer).await;
    }
    let steps: Vec<Step<'_>> = bundles.iter().map(|bundle| shelf.step(bundle)).collect();
    let mut made = preview::path(&steps);
    made.package = Some(package.to_owned());
    Ok(Ok(made))
}

type Hop = (String, Option<String>);

/// The CSVs that the package comes to, in order, each with its channel; or why there is no way.
fn hops(found: &Found, package: &str, printer: &Printer) -> Result<Vec<Hop>, String> {
    let route = match &found.way {
        Way::V1(Err(why)) => return Err(why.to_string()),
        Way::V1(Ok(path)) => {
            let channel = |hop: &wavelift_catalog::engine::olm_v1::Hop| {
                hop.edges.first().map(|edge| edge.channel.clone())
            };
            return Ok(path.hops.iter().map(|hop| (hop.to.clone(), channel(hop))).collect());
        }
        Way::V0(route) => route,
    };
    if let RouteEnd::NoWay(why) = &route.end {
        return Err(why.to_string());
    }
    let moves = || route.hops.iter().flat_map(|hop| &hop.moves);
    let along: BTreeSet<&str> =
        moves().filter(|one| one.package != package).map(|one| one.to.as_str()).collect();
    if !along.is_empty() {
        let along = along.into_iter().collect::<Vec<_>>().join(", ");
        printer.note(&format!("The same InstallPlans also bring {along}: preview each by itself"));
    }
    let own = moves().filter(|one| one.package == package);
    Ok(own.map(|one| (one.to.clone(), Some(one.channel.clone()))).collect())
}

// === impl Shelf ===

impl Shelf<'_> {
    fn version(&self, csv: &str) -> Option<&Version> {
        self.catalog.bundle(self.package, csv)?.version.as_ref()
    }

    fn bundle(&self, csv: &str, version: Option<Version>, channel: Option<String>) -> Bundle {
        let manifests = self.catalog.manifests(self.package, csv).cloned();
        let metadata = self.catalog.csv_metadata(self.package, csv);
        Bundle {
            csv: csv.to_owned(),
            version,
            channel,
            manifests: manifests.ok_or_else(|| match self.image(csv) {
                Some(image) => {
                    let repository = image.split('@').next().unwrap_or(image);
                    format!(
                        "the catalog does not carry its manifests; --fetch-images gets them from \
                         {repository}"
                    )
                }
                None if self.catalog.bundle(self.package, csv).is_some() => {
                    "the catalog carries neither its manifests nor its image".to_owned()
                }
                None => "it is not in the catalog".to_owned(),
            }),
            metadata: metadata.and_then(|json| json.value().ok()),
            skipped: vec![],
        }
    }

    fn image(&self, csv: &str) -> Option<&str> {
        let image = self.catalog.bundle(self.package, csv)?.image.as_deref();
        image.filter(|image| !image.is_empty())
    }

    /// The versions of the bundle's channels that lie between one before and it.
    fn between(&self, before: Option<&Version>, bundle: &Bundle) -> Vec<Bundle> {
        let (Some(low), Some(high)) = (before, bundle.version.as_ref()) else { return vec![] };
        let Some(package) = self.catalog.graph().packages.get(self.package) else {
            return vec![];
        };
        let mut between = package.between(&bundle.csv, low, high);
        let first = between.len().saturating_sub(SKIPPED_MAX);
        let between = between.split_off(first);
        between
            .into_iter()
            .map(|(version, csv)| self.bundle(csv, Some(version.clone()), None))
            .collect()
    }

    /// Gets what the catalog does not carry. What can't be had is missing, with the reason.
    async fn fetch(&self, bundles: &mut [Bundle], images: &Images, printer: &Printer) {
        let all = bundles.iter_mut().flat_map(|bundle| {
            let Bundle { csv, manifests, skipped, .. } = bundle;
            let skipped = skipped.iter_mut().map(|one| (&one.csv, &mut one.manifests));
            std::iter::once((&*csv, manifests)).chain(skipped)
        });
        let lacking = all.filter(|(_, manifests)| manifests.is_err());
        let mut lacking: Vec<_> =
            lacking.filter_map(|(csv, place)| Some((self.image(csv)?, place))).collect();
        for (image, place) in lacking.iter_mut().skip(IMAGES_MAX) {
            **place = Err(format!("it is one of more than {IMAGES_MAX} images: {image}"));
        }
        lacking.truncate(IMAGES_MAX);
        if lacking.is_empty() {
            return;
        }
        printer.note(&format!("Fetching {} bundle images", lacking.len()));
        let fetches = stream::iter(lacking).map(|(image, place)| async move {
            let fetched = images.fetch(image).await;
            *place = fetched.map_err(|error| format!("{error:#}"));
        });
        fetches.buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    fn step<'a>(&'a self, bundle: &'a Bundle) -> Step<'a> {
        Step {
            name: bundle.csv.clone(),
            version: bundle.version.clone(),
            manifests: bundle.manifests.as_ref().ok(),
            missing_because: bundle.manifests.as_ref().err().cloned().unwrap_or_default(),
            facts: self.facts(bundle),
            skipped: bundle.skipped.iter().map(|skipped| self.step(skipped)).collect(),
        }
    }

    fn facts<'a>(&'a self, bundle: &'a Bundle) -> Facts<'a> {
        let (catalog, package) = (self.catalog, self.package);
        let channel = bundle.channel.as_deref();
        let images = catalog.related_images(package, &bundle.csv);
        Facts {
            csv_metadata: bundle.metadata.as_ref(),
            related_images: images.map(<[_]>::to_vec).unwrap_or_default(),
            documents: catalog.documents(package).iter().collect(),
            ..Facts::of_graph(catalog.graph(), package, channel, &bundle.csv)
        }
    }
}
