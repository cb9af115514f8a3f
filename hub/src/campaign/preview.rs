//! What a campaign's plans change: puts its clusters into groups, sees that every piece and every
//! image that a comparison needs is there or asked for, and has each way compared once.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use tokio::time::Instant;
use tracing::{debug, warn};
use wavelift_api::live::BlockerKind;
use wavelift_catalog::{Catalog, Contents, contents};
use wavelift_core::{
    campaign::{Cluster, PlanFact, PreflightFact, Run},
    ids::{ClusterName, CsvName, PackageName},
    plan::Plan,
};
use wavelift_runtime::telemetry::chain;

use super::{Commands, Driver, facts::Facts, observe::Observed, writes::Done};
use crate::{
    cluster::{Catalogs, Clusters},
    link::HubCommand,
    preview::{
        Blocker, Bundle, Content, Fetched, Found, GROUPS_MAX, Graphs, Group, GroupPreview, Holders,
        Image, ImageFailure, Images, Made, Named, Piece, PieceKey, Pieces, Planned, Preview,
        Question, Seen, Shape, Version, Way, groups,
    },
};

/// Versions that one hop jumps over and whose notes are read; the newest are.
const SKIPPED_MAX: usize = 16;
/// Comparisons at the same time.
const COMPARISONS_MAX: usize = 2;

/// Looks for what one group needs.
struct Search<'a, C> {
    pieces: &'a mut Pieces,
    images: &'a mut Images,
    clusters: &'a Clusters,
    catalogs: &'a Catalogs,
    commands: &'a C,
    group: &'a Group,
    connected: &'a OnceCell<Connected>,
    now: Instant,
}

/// The clusters that can be asked, by the table that they announce: of this campaign or not.
type Connected = BTreeMap<String, Vec<ClusterName>>;

/// Something is on its way.
struct Awaited;

impl Graphs for Catalogs {
    fn has_bundle(&self, digest: &str, package: &PackageName, csv: &CsvName) -> bool {
        let catalog = self.get(digest);
        catalog.is_some_and(|catalog| catalog.bundle(package.as_str(), csv.as_str()).is_some())
    }

    fn deprecated(&self, digest: &str, package: &PackageName, channel: &str) -> Option<String> {
        let package = self.get(digest)?.graph().packages.get(package.as_str())?;
        let name = if channel.is_empty() { package.default_channel.as_deref()? } else { channel };
        package.channels.get(name)?.deprecation.is_some().then(|| name.to_owned())
    }
}

impl<C: Commands> Driver<C> {
    /// The preview as it is known now; what is missing is asked for.
    pub(super) fn preview(&mut self, observed: &Observed, facts: &Facts) -> Arc<Preview> {
        let grouped = self.grouped(observed);
        let mut left_out = (0, 0);
        let mut shown = vec![];
        let connected = OnceCell::new();
        for (index, group) in grouped.into_iter().enumerate() {
            if index >= GROUPS_MAX {
                left_out.0 += 1;
                left_out.1 += super::report::content::number(group.clusters.len());
                continue;
            }
            let made = self.compared(&group, &connected);
            shown.push(Arc::new(GroupPreview { group, made }));
        }
        let at_target = facts.clusters.values().filter(|c| c.plan == PlanFact::AtTarget).count();
        Arc::new(Preview {
            clusters: super::report::content::number(observed.members.len()),
            at_target: super::report::content::number(at_target),
            groups: shown,
            left_out,
            blockers: facts.clusters.iter().filter_map(|(n, c)| blocker(n, c)).collect(),
        })
    }

    fn grouped(&self, observed: &Observed) -> Vec<Group> {
        let planned = observed.members.iter().filter_map(|(cluster, member)| {
            let plan: &Plan = member.plan().filter(|plan| !plan.is_empty())?;
            let known = self.clusters.get(cluster);
            let inventory = known.and_then(|known| known.inventory.as_ref());
            Some(Planned { cluster, plan, inventory: inventory.map(|held| &*held.inventory) })
        });
        groups(planned, &self.catalogs)
    }

    /// What each way of a group changes, once all of it is known.
    fn compared(
        &mut self,
        group: &Group,
        connected: &OnceCell<Connected>,
    ) -> Option<Vec<Arc<Made>>> {
        let mut search = Search {
            pieces: &mut self.pieces,
            images: &mut self.images,
            clusters: &self.clusters,
            catalogs: &self.catalogs,
            commands: &self.commands,
            group,
            connected,
            now: Instant::now(),
        };
        // All are looked at before one is waited for, so that all is asked for at once.
        let questions: Vec<_> = group.ways.iter().map(|way| search.question(way)).collect();
        let mut made = Some(vec![]);
        for question in questions {
            let found = question.ok().and_then(|question| self.previews.made(question));
            made = made.zip(found).map(|(mut made, found)| {
                made.push(found);
                made
            });
        }
        made
    }

    /// Compares ways that were asked for, some at a time.
    pub(super) fn make_previews(&mut self) {
        while self.previews_open < COMPARISONS_MAX {
            let Some(question) = self.previews.next() else { return };
            self.previews_open += 1;
            self.tasks.spawn_blocking(move || Done::Preview { made: Box::new(question.answer()) });
        }
    }

    /// Fetches images that were asked for, some at a time.
    pub(super) fn fetch_images(&mut self) {
        while let Some(fetch) = self.images.next(Instant::now()) {
            let image = fetch.image.clone();
            self.tasks.spawn(async move { Done::Image { image, result: fetch.run().await } });
        }
        // Some are known to be out of reach without trying.
        self.is_dirty |= self.images.take_news();
    }

    pub(super) fn imaged(&mut self, image: &str, result: Result<Fetched, ImageFailure>) {
        if let Err(failure) = &result {
            debug!(image, %failure, "a bundle image was not fetched");
        }
        let became = self.images.fetched(image, result, Instant::now());
        self.context.metrics.images.with([became]).inc();
        self.fetch_images();
    }

    /// Reads a piece beside the driver, if this cluster was asked for it.
    pub(super) fn piece_uploaded(&mut self, cluster: ClusterName, name: &str, bytes: Bytes) {
        let Some(key) = self.pieces.expected(&cluster, name) else {
            self.context.metrics.uploads.with(["piece", "unasked"]).inc();
            return;
        };
        self.tasks.spawn_blocking(move || {
            let read = Piece::read(&bytes, &key).map(Box::new);
            Done::Piece { cluster, key, bytes: bytes.len(), read }
        });
    }

    pub(super) fn pieced(
        &mut self,
        cluster: &ClusterName,
        key: &PieceKey,
        bytes: usize,
        read: Result<Box<Piece>, contents::Error>,
    ) {
        let result = match read {
            Ok(piece) => {
                if self.pieces.keep(cluster, key, *piece, bytes) {
                    "taken"
                } else {
                    "not_kept"
                }
            }
            Err(error) => {
                warn!(%cluster, error = %chain(&error), "a piece of a catalog was refused");
                self.pieces.failed(cluster, key, "what it sent is not what was asked for");
                "refused"
            }
        };
        self.context.metrics.uploads.with(["piece", result]).inc();
        self.is_dirty = true;
    }

    pub(super) fn piece_failed(&mut self, cluster: &ClusterName, name: &str, why: &str) {
        if let Some(key) = self.pieces.expected(cluster, name) {
            self.pieces.failed(cluster, &key, why);
        }
        self.is_dirty = true;
    }
}

impl<C: Commands> Search<'_, C> {
    fn question(&mut self, way: &Way) -> Result<Question, Awaited> {
        let seen = way.catalog.as_ref();
        let catalog = seen.and_then(|seen| {
            self.catalogs.get(&seen.digest).map(|found| (seen.digest.clone(), Arc::clone(found)))
        });
        let table = match seen {
            None => Err("the catalog that it comes from is not known".to_owned()),
            Some(seen) => self.table(seen)?,
        };
        let mut is_awaited = false;
        let mut bundles: Vec<Bundle> = vec![];
        let mut before: Option<&Version> = None;
        for version in way.versions() {
            let mut bundle = self.bundle(way, version, &table, &mut is_awaited);
            if let (Some(before), Some((_, catalog))) = (before, &catalog) {
                for skipped in skipped(catalog, way, before, version) {
                    let skipped = self.bundle(way, &skipped, &table, &mut is_awaited);
                    bundle.skipped.push(skipped);
                }
            }
            bundles.push(bundle);
            before = Some(version);
        }
        let documents = self.documents(way, &table, &mut is_awaited);
        if is_awaited {
            return Err(Awaited);
        }
        Ok(Question::new(way, bundles, documents, catalog))
    }

    /// The table of a catalog's pieces, or why there is none.
    fn table(&mut self, seen: &Seen) -> Result<Result<Table, String>, Awaited> {
        let Some(name) = &seen.contents else {
            let why = format!(
                "the agent of {} is too old to tell what its catalogs hold",
                self.group.clusters.first().map_or("the cluster", ClusterName::as_str)
            );
            return Ok(Err(why));
        };
        match self.find(name, name, Shape::Table) {
            Found::Here(Piece::Table(contents)) => {
                Ok(Ok(Table { contents, name: name.clone(), source: seen.source.clone() }))
            }
            Found::Here(Piece::Manifests(_) | Piece::Documents(_)) | Found::Awaited => Err(Awaited),
            Found::Missing(why) => Ok(Err(why)),
        }
    }

    fn bundle(
        &mut self,
        way: &Way,
        version: &Version,
        table: &Result<Table, String>,
        is_awaited: &mut bool,
    ) -> Bundle {
        let (manifests, moving) = match self.inline(way, version, table) {
            Ok(Ok(inline)) => (Ok(inline), None),
            Ok(Err(why)) => self.image(way, version, why, is_awaited),
            Err(Awaited) => {
                *is_awaited = true;
                (Err(String::new()), None)
            }
        };
        Bundle {
            name: version.csv.to_string(),
            version: version.text.clone(),
            manifests,
            moving,
            skipped: vec![],
        }
    }

    /// The manifests that the catalog carries, or why there are none.
    fn inline(
        &mut self,
        way: &Way,
        version: &Version,
        table: &Result<Table, String>,
    ) -> Result<Content, Awaited> {
        let table = match table {
            Ok(table) => table,
            Err(why) => return Ok(Err(why.clone())),
        };
        let (package, csv) = (way.package.as_str(), version.csv.as_str());
        let Some(name) = table.contents.manifests(package, csv) else {
            return Ok(Err(format!("catalog {} does not carry them", table.source)));
        };
        match self.find(name.as_str(), &table.name, Shape::Manifests) {
            Found::Here(Piece::Manifests(found)) => Ok(Ok((name.to_string(), found))),
            Found::Here(Piece::Table(_) | Piece::Documents(_)) | Found::Awaited => Err(Awaited),
            Found::Missing(why) => Ok(Err(why)),
        }
    }

    /// The manifests from the bundle's image, where the catalog does not carry them because of
    /// `why`, and the image's name if that may move.
    fn image(
        &mut self,
        way: &Way,
        version: &Version,
        why: String,
        is_awaited: &mut bool,
    ) -> (Content, Option<String>) {
        let catalog = way.catalog.as_ref().and_then(|seen| self.catalogs.get(&seen.digest));
        let bundle =
            catalog.and_then(|found| found.bundle(way.package.as_str(), version.csv.as_str()));
        let Some(image) = bundle.and_then(|bundle| bundle.image.as_deref()) else {
            return (Err(why), None);
        };
        match self.images.find(image, self.group.clusters.len(), self.now) {
            Image::Here(fetched) => {
                let moving = (fetched.named == Named::Tag).then(|| image.to_owned());
                (Ok((format!("image {}", fetched.digest), fetched.manifests)), moving)
            }
            Image::Awaited => {
                *is_awaited = true;
                (Err(String::new()), None)
            }
            Image::Missing(also) => (Err(format!("{why}; {also}")), None),
        }
    }

    fn documents(
        &mut self,
        way: &Way,
        table: &Result<Table, String>,
        is_awaited: &mut bool,
    ) -> Result<(String, Arc<[serde_json::Value]>), String> {
        let table = table.as_ref().map_err(Clone::clone)?;
        let Some(name) = table.contents.documents(way.package.as_str()) else {
            return Ok((String::new(), Arc::default()));
        };
        match self.find(name.as_str(), &table.name, Shape::Documents) {
            Found::Here(Piece::Documents(found)) => Ok((name.to_string(), found)),
            Found::Here(Piece::Table(_) | Piece::Manifests(_)) | Found::Awaited => {
                *is_awaited = true;
                Err(String::new())
            }
            Found::Missing(why) => Err(why),
        }
    }

    /// Looks for a piece of the catalog whose table is called `table`.
    fn find(&mut self, name: &str, table: &str, shape: Shape) -> Found {
        let users = self.group.clusters.len();
        let key = (name.to_owned(), shape);
        if let Some(piece) = self.pieces.here(&key, users) {
            return Found::Here(piece);
        }
        let (clusters, commands) = (self.clusters, self.commands);
        let connected = self.connected.get_or_init(|| connected(clusters));
        let connected = connected.get(table).map_or(&[][..], Vec::as_slice);
        let mut ask = |cluster: &ClusterName| {
            let command = HubCommand::RequestPiece { digest: name.to_owned() };
            commands.send(cluster, command).is_ok()
        };
        self.pieces.find(&key, Holders { connected, users }, self.now, &mut ask)
    }
}

/// A table and where it is from.
struct Table {
    contents: Arc<Contents>,
    name: String,
    source: String,
}

fn connected(clusters: &Clusters) -> Connected {
    let mut connected = Connected::new();
    for (name, known) in clusters.iter().filter(|(_, known)| known.is_connected()) {
        let sources = known.current().into_iter().flat_map(|held| &held.inventory.catalogs);
        let tables: BTreeSet<&String> =
            sources.filter_map(|source| source.contents.as_ref()).collect();
        for table in tables {
            connected.entry(table.clone()).or_default().push(name.clone());
        }
    }
    connected
}

/// The versions of the target's channels that lie between two versions.
fn skipped(catalog: &Catalog, way: &Way, before: &Version, after: &Version) -> Vec<Version> {
    let Some(package) = catalog.graph().packages.get(way.package.as_str()) else { return vec![] };
    let version = |name: &str| package.bundles.get(name)?.version.as_ref();
    let (Some(low), Some(high)) = (version(before.csv.as_str()), version(after.csv.as_str()))
    else {
        return vec![];
    };
    let between = package.between(after.csv.as_str(), low, high).into_iter();
    let mut between: Vec<Version> = between
        .filter_map(|(version, name)| {
            let csv = CsvName::try_from(name).ok()?;
            Some(Version { csv, text: version.to_string() })
        })
        .collect();
    let first = between.len().saturating_sub(SKIPPED_MAX);
    between.split_off(first)
}

/// What stands in the way of a cluster that was not started.
fn blocker(name: &ClusterName, cluster: &Cluster) -> Option<Blocker> {
    if cluster.run != Run::NotStarted {
        return None;
    }
    let (kind, why) = match (&cluster.plan, &cluster.preflight, &cluster.holder) {
        (PlanFact::NoPath { why }, _, _) => (BlockerKind::NoPath, why.clone()),
        (PlanFact::Unknown { missing }, _, _) => {
            (BlockerKind::NotKnown, format!("not known yet: {missing}"))
        }
        (PlanFact::Planned | PlanFact::NotConsented, PreflightFact::Blocked { checks, .. }, _) => {
            (BlockerKind::Checks, format!("held by {}", checks.join(", ")))
        }
        (PlanFact::Planned | PlanFact::NotConsented, _, Some(holder)) => {
            (BlockerKind::Held, format!("FleetUpgrade {holder} is at work on it"))
        }
        (PlanFact::AtTarget, _, _) | (PlanFact::Planned | PlanFact::NotConsented, _, None) => {
            return None;
        }
    };
    Some(Blocker { cluster: name.clone(), kind, why })
}
