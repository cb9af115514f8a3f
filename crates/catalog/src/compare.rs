//! Two catalogs side by side: what changes for a cluster whose catalog is exchanged, by an update of
//! its index image or because the platform's minor version brings another one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use wavelift_core::{causes::sentence, version::Version};

use crate::{
    Catalog, Engine, OlmV0,
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, PathEnd, Request, Subscription,
    },
    graph::{Channel, Package},
};

/// An operator as a cluster has it. Other fields are not looked at, so that questions to the engines
/// can be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// Its package.
    pub package: String,
    /// The channel of its Subscription; empty where it names none.
    #[serde(default)]
    pub channel: String,
    /// The installed CSV.
    pub installed: String,
    /// Its version; taken from the catalogs where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// What the new catalog changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// What it means for each installed operator, in the order they were given.
    pub operators: Vec<OperatorChange>,
    /// Every package that is not the same in both, by name.
    pub packages: BTreeMap<String, PackageChange>,
}

/// What changes for one installed operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorChange {
    /// The operator.
    #[serde(flatten)]
    pub operator: Operator,
    /// In one word.
    pub verdict: Verdict,
    /// The same for people.
    pub message: String,
    /// Where OLM takes it with the old catalog.
    pub before: Outlook,
    /// Where OLM takes it with the new one.
    pub after: Outlook,
}

/// What became of an operator's way, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// The new catalog does not resolve, and that stops every operator of its namespace.
    Broken,
    /// It had a way on and has none now.
    Stranded,
    /// Its way now ends at an earlier version than before.
    EndsEarlier,
    /// It goes elsewhere, or by other hops.
    Changed,
    /// Nothing changes for it.
    Same,
}

/// Where OLM v0 takes an operator that is alone in its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outlook {
    /// Whether the catalog has the installed bundle. OLM can do without it.
    pub has_installed: bool,
    /// The hops, in order; empty = it stays.
    pub hops: Vec<String>,
    /// Where they end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Version>,
    /// Why OLM does not resolve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What changed in one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change")]
pub enum PackageChange {
    /// Only the new catalog has it.
    Added,
    /// Only the old catalog has it.
    Removed,
    /// Both have it, not the same.
    Changed(Box<PackageDelta>),
}

/// The differences of a package that both catalogs have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageDelta {
    /// The default channel, before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<(String, String)>,
    /// Channels that are new.
    pub channels_added: Vec<String>,
    /// Channels that are gone.
    pub channels_removed: Vec<String>,
    /// Heads of channels, before and after; empty where the channel has none.
    pub heads: BTreeMap<String, (String, String)>,
    /// Bundles that are new.
    pub bundles_added: Vec<String>,
    /// Bundles that are gone.
    pub bundles_removed: Vec<String>,
    /// By channel: entries whose edges are not the same, though the entry is in both.
    pub edges_changed: BTreeMap<String, Vec<String>>,
    /// What is deprecated now and was not: the package itself, channels, bundles.
    pub deprecated: Vec<String>,
}

/// Compares two catalogs, for a cluster with these operators.
pub fn compare(old: &Arc<Catalog>, new: &Arc<Catalog>, operators: &[Operator]) -> Comparison {
    let operators = operators.iter().map(|operator| outlook(old, new, operator)).collect();
    let (old, new) = (&old.graph().packages, &new.graph().packages);
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let mut packages = BTreeMap::new();
    for name in names {
        let change = match (old.get(name), new.get(name)) {
            (Some(_), None) => PackageChange::Removed,
            (None, Some(_)) => PackageChange::Added,
            (Some(old), Some(new)) if old != new => {
                PackageChange::Changed(Box::new(delta(old, new)))
            }
            (Some(_), Some(_)) | (None, None) => continue,
        };
        packages.insert(name.clone(), change);
    }
    Comparison { operators, packages }
}

fn outlook(old: &Arc<Catalog>, new: &Arc<Catalog>, operator: &Operator) -> OperatorChange {
    let version_in =
        |catalog: &Catalog| catalog.bundle(&operator.package, &operator.installed)?.version.clone();
    let mut operator = operator.clone();
    operator.version = operator.version.or_else(|| version_in(old)).or_else(|| version_in(new));
    let before = ahead(old, &operator);
    let after = ahead(new, &operator);
    let (verdict, message) = judge(&operator, &before, &after);
    OperatorChange { operator, verdict, message, before, after }
}

/// Follows OLM v0 in one catalog until it stays.
fn ahead(catalog: &Arc<Catalog>, operator: &Operator) -> Outlook {
    let key = CatalogKey { name: "catalog".to_owned(), namespace: "catalogs".to_owned() };
    let installed = catalog.bundle(&operator.package, &operator.installed);
    let request = Request {
        namespace: "operators".to_owned(),
        subscriptions: vec![Subscription {
            package: operator.package.clone(),
            channel: operator.channel.clone(),
            catalog: key.clone(),
            installed: Some(Installed {
                csv: operator.installed.clone(),
                version: operator.version.clone(),
                properties: InstalledProperties::AsInCatalog,
            }),
            starting_csv: None,
        }],
        unreferenced: vec![],
    };
    let catalogs = Catalogs::one(key, Arc::clone(catalog));
    let mut outlook = Outlook { has_installed: installed.is_some(), ..Outlook::default() };
    match OlmV0.path(&catalogs, &request, &BTreeMap::new()) {
        Ok(path) => {
            debug_assert_eq!(path.end, PathEnd::Stays);
            let own = |hop: &crate::engine::Hop| {
                hop.moves.iter().find(|one| one.package == operator.package).cloned()
            };
            let moves: Vec<_> = path.hops.iter().filter_map(own).collect();
            outlook.end = moves.last().and_then(|last| last.to_version.clone());
            outlook.hops = moves.into_iter().map(|one| one.to).collect();
        }
        Err(error) => outlook.error = Some(sentence(&error)),
    }
    outlook
}

fn judge(operator: &Operator, before: &Outlook, after: &Outlook) -> (Verdict, String) {
    let end = |outlook: &Outlook| {
        let last = outlook.hops.last();
        last.map_or_else(|| "it stays".to_owned(), |last| format!("on to {last}"))
    };
    match (&before.error, &after.error) {
        (None, Some(error)) => (
            Verdict::Broken,
            format!("OLM does not resolve its namespace with the new catalog: {error}"),
        ),
        (Some(_), Some(error)) => {
            (Verdict::Broken, format!("OLM resolves it with neither catalog: {error}"))
        }
        (Some(_), None) => {
            (Verdict::Changed, format!("OLM resolves it with the new catalog only: {}", end(after)))
        }
        (None, None) if before.hops == after.hops => {
            (Verdict::Same, format!("nothing changes: {}", end(after)))
        }
        (None, None) if after.hops.is_empty() => (
            Verdict::Stranded,
            format!(
                "the old catalog leads {}, the new one has no edge from {}{}",
                end(before),
                operator.installed,
                if after.has_installed { "" } else { ", nor the bundle itself" },
            ),
        ),
        (None, None) => match (&before.end, &after.end) {
            (Some(was), Some(is)) if is.cmp_precedence(was).is_lt() => {
                (Verdict::EndsEarlier, format!("its way ends at {is}, it was {was}"))
            }
            (Some(_) | None, _) => {
                (Verdict::Changed, format!("before: {}; now: {}", end(before), end(after)))
            }
        },
    }
}

fn delta(old: &Package, new: &Package) -> PackageDelta {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let is_other = old.default_channel != new.default_channel;
    let mut delta = PackageDelta {
        default_channel: is_other.then(|| (text(&old.default_channel), text(&new.default_channel))),
        channels_added: only(&new.channels, &old.channels),
        channels_removed: only(&old.channels, &new.channels),
        bundles_added: only(&new.bundles, &old.bundles),
        bundles_removed: only(&old.bundles, &new.bundles),
        ..PackageDelta::default()
    };
    if old.deprecation.is_none() && new.deprecation.is_some() {
        delta.deprecated.push("the package".to_owned());
    }
    for (name, after) in &new.channels {
        let before = old.channels.get(name);
        if after.deprecation.is_some() && before.is_none_or(|before| before.deprecation.is_none()) {
            delta.deprecated.push(format!("channel {name}"));
        }
        let Some(before) = before else { continue };
        let (was, is) = (head(before), head(after));
        if was != is {
            delta.heads.insert(name.clone(), (was, is));
        }
        let changed: Vec<_> = after
            .entries
            .iter()
            .filter(|(entry, edges)| before.entries.get(*entry).is_some_and(|was| was != *edges))
            .map(|(entry, _)| entry.clone())
            .collect();
        if !changed.is_empty() {
            delta.edges_changed.insert(name.clone(), changed);
        }
    }
    for (name, bundle) in &new.bundles {
        let was = old.bundles.get(name).and_then(|bundle| bundle.deprecation.as_ref());
        if bundle.deprecation.is_some() && was.is_none() {
            delta.deprecated.push(format!("bundle {name}"));
        }
    }
    delta
}

/// The entries that no other replaces or skips; more than one make a channel that OLM refuses.
fn head(channel: &Channel) -> String {
    let followed: BTreeSet<&String> =
        channel.entries.values().flat_map(|e| e.replaces.iter().chain(&e.skips)).collect();
    let heads: Vec<_> =
        channel.entries.keys().filter(|name| !followed.contains(name)).cloned().collect();
    heads.join(", ")
}

fn only<T>(these: &BTreeMap<String, T>, not_those: &BTreeMap<String, T>) -> Vec<String> {
    these.keys().filter(|name| !not_those.contains_key(*name)).cloned().collect()
}

#[cfg(test)]
mod tests;
