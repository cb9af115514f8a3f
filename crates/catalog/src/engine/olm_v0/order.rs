//! OLM's preferences: which entry comes before which.

use std::{cmp::Reverse, collections::BTreeSet};

use super::nodes::EntryNode;
use crate::{
    catalog::{EntryId, Index, IndexedEntry, Need},
    engine::{CatalogKey, Catalogs, ResolveError, Source, Subscription},
};

/// The entries that a Subscription may go to: channel by channel, the one nearest to the head first.
pub(super) fn candidates<'a>(
    catalogs: &'a Catalogs,
    subscription: &'a Subscription,
) -> Result<Vec<EntryNode<'a>>, ResolveError> {
    let Subscription { package, channel, catalog, installed, starting_csv } = subscription;
    let source = catalogs.get(catalog).filter(|source| !source.catalog.index().is_empty());
    let source = source.ok_or_else(|| ResolveError::CatalogMissing {
        package: package.clone(),
        catalog: catalog.clone(),
    })?;
    let index = source.catalog.index();
    let channels = channels(index, subscription)?;
    // The same bundle in the other channels is as good as in the one where it was found.
    let named = |name: &str| -> Vec<EntryId> {
        let entries = channels.iter().flat_map(|channel| index.channel_entries(package, channel));
        entries.copied().filter(|id| index.entry(*id).name == name).collect()
    };
    let mut ids = Vec::new();
    match (installed, starting_csv.as_deref().filter(|csv| !csv.is_empty())) {
        (None, Some(csv)) => {
            ids = named(csv);
            if ids.is_empty() {
                let (package, channel) = (package.clone(), channel.clone());
                let csv = csv.to_owned();
                return Err(ResolveError::StartingCsvMissing { package, channel, csv });
            }
        }
        (Some(_), _) | (None, None) => {
            for channel in &channels {
                let chain = chain(index, package, channel)?.iter().copied();
                for id in chain.filter(|id| follows(index.entry(*id), subscription)) {
                    ids.push(id);
                    ids.extend(named(&index.entry(id).name));
                }
            }
        }
    }
    Ok(ids.into_iter().map(|id| EntryNode { catalog, source, id }).collect())
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

fn chain<'a>(
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

/// The entries that satisfy a need: the asking bundle's own catalog first, then by priority, then the
/// namespace's catalogs before others; within a catalog default channels first; within a channel the
/// one nearest to the head first.
pub(super) fn providers<'a>(
    catalogs: &'a Catalogs,
    namespace: &str,
    own_catalog: Option<&CatalogKey>,
    need: &Need,
) -> Result<Vec<EntryNode<'a>>, ResolveError> {
    let mut sources: Vec<(&CatalogKey, &Source)> = catalogs.iter().collect();
    sources.sort_by_key(|(key, source)| {
        let is_foreign = key.namespace != namespace;
        (Some(*key) != own_catalog, Reverse(source.priority), is_foreign, &key.name)
    });
    let mut found = Vec::new();
    for (catalog, source) in sources {
        let index = source.catalog.index();
        let mut channels = BTreeSet::new();
        for id in matching(index, need) {
            let entry = index.entry(id);
            let (package, channel) = (entry.package.as_str(), entry.channel.as_str());
            channels.insert((!entry.is_in_default_channel, package, channel));
        }
        for (_, package, channel) in channels {
            let chain = chain(index, package, channel)?.iter().copied();
            let meeting = chain.filter(|id| meets(index.entry(*id), need));
            found.extend(meeting.map(|id| EntryNode { catalog, source, id }));
        }
    }
    Ok(found)
}

/// All entries that satisfy a need, skipped ones too: they decide which channels are looked at.
fn matching(index: &Index, need: &Need) -> Vec<EntryId> {
    let meeting = |id: &EntryId| meets(index.entry(*id), need);
    match need {
        Need::Api(gvk) => index.providers(gvk).to_vec(),
        Need::Package { name, .. } => {
            let channels = index.channels(name).into_iter().flatten();
            let entries = channels.flat_map(|channel| index.channel_entries(name, channel));
            entries.copied().filter(meeting).collect()
        }
        Need::Label(_) | Need::All(_) | Need::Any(_) | Need::Not(_) | Need::Cel(_) => {
            index.ids().filter(meeting).collect()
        }
    }
}

fn meets(entry: &IndexedEntry, need: &Need) -> bool {
    need.is_met_by(&entry.traits, &entry.package, entry.version.as_ref())
}
