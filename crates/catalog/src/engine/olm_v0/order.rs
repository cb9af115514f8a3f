//! OLM's preferences: which entry comes before which.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    nodes::{EntryNode, too_hard},
    solver::{Budget, Exhausted},
};
use crate::{
    catalog::{Candidate, Catalog, EntryId, Index, IndexedEntry, Need, Origin, Properties},
    engine::{CatalogKey, Catalogs, ResolveError, Source, Subscription},
};

/// The entries that a Subscription may go to: channel by channel, the one nearest to the head first.
/// Entries of one rank are the same bundle in several channels, between which OLM does not choose.
pub(super) fn candidates<'a>(
    catalogs: &'a Catalogs,
    subscription: &'a Subscription,
    budget: &mut Budget,
) -> Result<Vec<Vec<EntryNode<'a>>>, ResolveError> {
    let Subscription { package, channel, catalog, installed, starting_csv } = subscription;
    let source = catalogs.get(catalog).filter(|source| !source.catalog.index().is_empty());
    let source = source.ok_or_else(|| ResolveError::CatalogMissing {
        package: package.clone(),
        catalog: catalog.clone(),
    })?;
    let index = source.catalog.index();
    let channels = channels(index, subscription)?;
    let mut by_name: BTreeMap<&str, Vec<EntryId>> = BTreeMap::new();
    for id in channels.iter().flat_map(|channel| index.channel_entries(package, channel)) {
        // A look at a name in `skips` is far less than one at an entry.
        let cost = 1 + index.entry(*id).skips.len() / 16;
        budget.spend(cost).map_err(|Exhausted| too_hard(budget))?;
        by_name.entry(&index.entry(*id).name).or_default().push(*id);
    }
    let starting_csv = starting_csv.as_deref().filter(|csv| !csv.is_empty() && installed.is_none());
    let mut ranks = Vec::new();
    if let Some(csv) = starting_csv {
        // Wherever it stands in its channel, and even if another entry skips it.
        ranks.push(by_name.remove(csv).ok_or_else(|| {
            let (package, channel) = (package.clone(), channel.clone());
            ResolveError::StartingCsvMissing { package, channel, csv: csv.to_owned() }
        })?);
    } else {
        for channel in &channels {
            let chain = chain(index, package, channel)?.iter().map(|id| index.entry(*id));
            for entry in chain.filter(|entry| follows(entry, subscription)) {
                // The same bundle in the other channels is as good as in the one where it was found.
                ranks.extend(by_name.remove(entry.name.as_str()));
            }
        }
    }
    // Mostly the channel whose name comes last is the one: OLM takes the last of its list first.
    for rank in &mut ranks {
        rank.sort_by_key(|id| Reverse(index.entry(*id).channel.as_str()));
    }
    let node = |id| EntryNode { catalog, source, id };
    Ok(ranks.into_iter().map(|rank| rank.into_iter().map(node).collect()).collect())
}

fn follows(entry: &IndexedEntry, subscription: &Subscription) -> bool {
    let installed = subscription.installed.as_ref();
    installed.is_none_or(|installed| entry.follows(&installed.csv, installed.version.as_ref()))
}

/// The channels that a Subscription looks at: its own, or all with the default one first.
fn channels<'a>(
    index: &'a Index,
    subscription: &'a Subscription,
) -> Result<Vec<&'a str>, ResolveError> {
    let Subscription { package, channel, catalog, .. } = subscription;
    let all = index.channels(package).ok_or_else(|| ResolveError::PackageMissing {
        package: package.clone(),
        catalog: catalog.clone(),
    })?;
    let mut channels: Vec<&str> =
        all.filter(|name| channel.is_empty() || name == channel).collect();
    if channels.is_empty() {
        return Err(ResolveError::ChannelMissing {
            package: package.clone(),
            channel: channel.clone(),
        });
    }
    channels.sort_by_key(|channel| !is_default(index, package, channel));
    Ok(channels)
}

fn is_default(index: &Index, package: &str, channel: &str) -> bool {
    let first = index.channel_entries(package, channel).first();
    first.is_some_and(|id| index.entry(*id).is_in_default_channel)
}

/// The order of a channel.
pub(super) fn chain<'a>(
    index: &'a Index,
    package: &str,
    channel: &str,
) -> Result<&'a [EntryId], ResolveError> {
    match index.chain(package, channel) {
        Some(Ok(chain)) => Ok(chain),
        Some(Err(source)) => Err(ResolveError::Channel {
            package: package.to_owned(),
            channel: channel.to_owned(),
            source: source.clone(),
        }),
        None => Ok(&[]),
    }
}

/// Who needs what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'q> {
    pub(super) namespace: &'q str,
    /// The catalog of the asking bundle; none for an installed CSV.
    pub(super) own_catalog: Option<&'q CatalogKey>,
    pub(super) need: &'q Need,
    /// The asking bundle.
    pub(super) bundle: &'q str,
}

/// The entries that satisfy a need: the asking bundle's own catalog first, then by priority, then the
/// namespace's catalogs before others; within a catalog default channels first; within a channel the
/// one nearest to the head first.
pub(super) fn providers<'a>(
    catalogs: &'a Catalogs,
    asking: Asking<'_>,
    budget: &mut Budget,
) -> Result<Vec<EntryNode<'a>>, ResolveError> {
    let Asking { namespace, own_catalog, .. } = asking;
    let mut sources: Vec<(&CatalogKey, &Source)> = catalogs.iter().collect();
    sources.sort_by_key(|(key, source)| {
        let is_foreign = key.namespace != namespace;
        (Some(*key) != own_catalog, Reverse(source.priority), is_foreign, &key.name)
    });
    let mut found = Vec::new();
    for (catalog, source) in sources {
        let index = source.catalog.index();
        let matching = matching(&source.catalog, asking, budget)?;
        let mut channels = BTreeSet::new();
        for id in &matching {
            let entry = index.entry(*id);
            let (package, channel) = (entry.package.as_str(), entry.channel.as_str());
            channels.insert((!entry.is_in_default_channel, package, channel));
        }
        for (_, package, channel) in channels {
            let chain = chain(index, package, channel)?;
            budget.spend(chain.len()).map_err(|Exhausted| too_hard(budget))?;
            let meeting = chain.iter().copied().filter(|id| matching.contains(id));
            found.extend(meeting.map(|id| EntryNode { catalog, source, id }));
        }
    }
    Ok(found)
}

/// All entries that satisfy a need, skipped ones too: they decide which channels are looked at.
fn matching(
    catalog: &Catalog,
    Asking { need, bundle, .. }: Asking<'_>,
    budget: &mut Budget,
) -> Result<BTreeSet<EntryId>, ResolveError> {
    let cel = |source| ResolveError::Cel { bundle: bundle.to_owned(), source };
    let index = catalog.index();
    let all: Vec<EntryId> = match need {
        Need::Api(gvk) => {
            let providers = index.providers(gvk);
            budget.spend(providers.len()).map_err(|Exhausted| too_hard(budget))?;
            return Ok(providers.iter().copied().collect());
        }
        Need::Package { name, .. } => {
            let channels = index.channels(name).into_iter().flatten();
            channels.flat_map(|channel| index.channel_entries(name, channel)).copied().collect()
        }
        Need::Label(_) | Need::All(_) | Need::Any(_) | Need::Not(_) | Need::Cel { .. } => {
            index.ids().collect()
        }
    };
    let mut matching = BTreeSet::new();
    for id in all {
        let mut work = 0;
        let candidate = candidate(catalog, index.entry(id));
        if need.is_met_by(&candidate, &mut work).map_err(cel)? {
            matching.insert(id);
        }
        budget.spend(work).map_err(|Exhausted| too_hard(budget))?;
    }
    Ok(matching)
}

fn candidate<'a>(catalog: &'a Catalog, entry: &'a IndexedEntry) -> Candidate<'a> {
    let bundle = catalog.bundle(&entry.package, &entry.name);
    Candidate {
        traits: &entry.traits,
        package: &entry.package,
        version: entry.version.as_ref(),
        properties: Properties::Shared(bundle.map_or(&[], |bundle| &bundle.properties)),
        origin: Origin::Catalog,
    }
}
