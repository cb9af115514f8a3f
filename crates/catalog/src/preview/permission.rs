//! What the service accounts of a CSV may do, flattened: one entry per service account, scope, API
//! group, resource or URL, verb and resource names. A wildcard is an entry like any other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::danger::Danger;
use super::{Change, Changes, Confidence, Importance, Source, bundle::Bundle, danger};
use crate::{fbc::FieldError, manifests::view::View};

/// How many entries one CSV may flatten to. The largest public one has about 1,500.
const ENTRIES_MAX: usize = 100_000;

/// How far entries with several resource names are looked through for one that covers another.
const NAMES_LOOK_MAX: usize = 64;

/// Where a permission holds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Scope {
    /// In the operator's namespace. OLM v0 widens it to the namespaces of the OperatorGroup, or to
    /// the cluster where that selects all: the entry is as written.
    Namespace,
    /// In the whole cluster.
    Cluster,
}

/// One permission gained or lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The service account.
    pub service_account: String,
    /// Where it holds.
    pub scope: Scope,
    /// Whether it comes or goes.
    pub change: Change,
    /// What may be done.
    #[serde(flatten)]
    pub entry: Entry,
    /// Gained: the old version's entry that gave this already. Lost: the new version's entry that
    /// still gives it. So the literal change changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered_by: Option<CoveredBy>,
    /// Why a gained permission deserves a look, the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dangers: Vec<Danger>,
    /// Gained here and lost again in a later hop of the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub only_on_the_way: bool,
    /// The CSV it was gained in, where it is not this hop's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gained_in: Option<String>,
    /// The CSV it is lost again in, for one that is needed only on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What may be done: a verb on a resource or on a URL.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The API group; empty for the core group and for URLs.
    pub api_group: String,
    /// The resource, with a subresource after `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The URL, instead of a resource.
    #[serde(rename = "nonResourceURL", default, skip_serializing_if = "Option::is_none")]
    pub non_resource_url: Option<String>,
    /// The verb.
    pub verb: String,
    /// The names that it is limited to, sorted; all where empty.
    pub resource_names: Vec<String>,
}

/// An entry that gives at least as much as another one, for the same service account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoveredBy {
    /// Where it holds.
    pub scope: Scope,
    /// What may be done.
    #[serde(flatten)]
    pub entry: Entry,
}

/// An entry of a CSV.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Granted {
    pub(super) account: String,
    pub(super) scope: Scope,
    pub(super) entry: Entry,
}

// === impl Entry ===

impl fmt::Display for Entry {
    /// As `kubectl` users write it: `list pods.apps`, `get secrets (one, two)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.resource.as_ref().or(self.non_resource_url.as_ref());
        write!(f, "{} {}", self.verb, what.map_or("", String::as_str))?;
        if !self.api_group.is_empty() {
            write!(f, ".{}", self.api_group)?;
        }
        if !self.resource_names.is_empty() {
            write!(f, " ({})", self.resource_names.join(", "))?;
        }
        Ok(())
    }
}

// === impl Permission ===

impl Permission {
    /// How much it matters: what changes nothing does not.
    pub fn importance(&self) -> Importance {
        match self.dangers.first() {
            _ if self.covered_by.is_some() => Importance::Low,
            Some(danger) if *danger <= Danger::RolesAndBindings => Importance::High,
            Some(_) => Importance::Medium,
            None => Importance::Low,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// All entries of a CSV.
pub(super) fn of_csv(csv: &Value) -> Result<BTreeSet<Granted>, FieldError> {
    let spec = View::root(csv).find(&["spec", "install", "spec"])?;
    let mut granted = BTreeSet::new();
    for (field, scope) in
        [("permissions", Scope::Namespace), ("clusterPermissions", Scope::Cluster)]
    {
        for permission in spec.get(field)?.items()? {
            let account = permission.get("serviceAccountName")?.text()?.unwrap_or_default();
            let rules = permission.get("rules")?;
            for entry in of_rules(&rules, ENTRIES_MAX.saturating_sub(granted.len()))? {
                granted.insert(Granted { account: account.to_owned(), scope, entry });
            }
        }
    }
    Ok(granted)
}

/// Names of resources in all entries together: each entry has all names of its rule.
const NAMES_MAX: usize = 1_000_000;

/// All entries of a list of rules.
pub(super) fn of_rules(rules: &View<'_>, max: usize) -> Result<BTreeSet<Entry>, FieldError> {
    let mut entries = BTreeSet::new();
    let (mut count, mut named) = (0_usize, 0_usize);
    for rule in rules.items()? {
        let (groups, resources) =
            (rule.get("apiGroups")?.texts()?, rule.get("resources")?.texts()?);
        let (urls, verbs) = (rule.get("nonResourceURLs")?.texts()?, rule.get("verbs")?.texts()?);
        let names: BTreeSet<&str> = rule.get("resourceNames")?.texts()?.into_iter().collect();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        // Counted before they are made: a small rule can stand for very many entries.
        let products = groups.len().saturating_mul(resources.len()).saturating_add(urls.len());
        let products = products.saturating_mul(verbs.len());
        count = count.saturating_add(products);
        if count > max {
            return Err(rules.wrong("short: it stands for more than 100,000 permissions"));
        }
        named = named.saturating_add(products.saturating_mul(names.len()));
        if named > NAMES_MAX {
            return Err(rules.wrong("short: its permissions have more than 1,000,000 names"));
        }
        for verb in verbs {
            let entry = |api_group: &str, resource: Option<&str>, url: Option<&str>| Entry {
                api_group: api_group.to_owned(),
                resource: resource.map(str::to_owned),
                non_resource_url: url.map(str::to_owned),
                verb: verb.to_owned(),
                resource_names: names.clone(),
            };
            for group in &groups {
                entries.extend(resources.iter().map(|r| entry(group, Some(r), None)));
            }
            entries.extend(urls.iter().map(|url| entry("", None, Some(url))));
        }
    }
    Ok(entries)
}

/// Adds what the CSV's service accounts gain and lose.
pub(super) fn compare(changes: &mut Changes, old: &Bundle<'_>, new: &Bundle<'_>) {
    let (Some(old), Some(new)) = (&old.permissions, &new.permissions) else { return };
    let gained = new.difference(old).map(|granted| change(granted, Change::Gained, old));
    let lost = old.difference(new).map(|granted| change(granted, Change::Lost, new));
    changes.permissions = gained.chain(lost).collect();
    changes.permissions.sort_by_cached_key(|p| (p.covered_by.is_some(), rank(p), p.change));
    changes.permissions_kept = new.intersection(old).count();
}

/// The gravest danger, those without any last.
fn rank(permission: &Permission) -> (bool, Option<Danger>) {
    let gravest = permission.dangers.first().copied();
    (gravest.is_none(), gravest)
}

fn change(granted: &Granted, change: Change, others: &BTreeSet<Granted>) -> Permission {
    let covered_by = covering(granted, others);
    let dangers = match change {
        Change::Gained => {
            let in_namespace = Granted { scope: Scope::Namespace, ..granted.clone() };
            let is_widened = granted.scope == Scope::Cluster && others.contains(&in_namespace);
            danger::of(&granted.entry, is_widened)
        }
        Change::Lost => Vec::new(),
    };
    Permission {
        service_account: granted.account.clone(),
        scope: granted.scope,
        change,
        entry: granted.entry.clone(),
        covered_by,
        dangers,
        only_on_the_way: false,
        gained_in: None,
        lost_in: None,
        source: Source::FromManifests,
        confidence: Confidence::Certain,
    }
}

/// An entry that gives the same and more. Looked up, not searched for: both sets may be large.
fn covering(granted: &Granted, others: &BTreeSet<Granted>) -> Option<CoveredBy> {
    for scope in [granted.scope, Scope::Cluster] {
        for entry in danger::wider(&granted.entry) {
            let candidate = Granted { account: granted.account.clone(), scope, entry };
            if candidate != *granted && others.contains(&candidate) {
                return Some(CoveredBy { scope, entry: candidate.entry });
            }
        }
        if !granted.entry.resource_names.is_empty()
            && let Some(entry) = with_more_names(granted, scope, others)
        {
            return Some(CoveredBy { scope, entry });
        }
    }
    None
}

/// The same entry with these names and others.
fn with_more_names(granted: &Granted, scope: Scope, others: &BTreeSet<Granted>) -> Option<Entry> {
    let Granted { account, entry, .. } = granted;
    let first = Entry { resource_names: Vec::new(), ..entry.clone() };
    let start = Granted { account: account.clone(), scope, entry: first };
    let same = others.range(&start..).take(NAMES_LOOK_MAX).take_while(|other| {
        let Granted { account, scope, entry } = &start;
        other.account == *account
            && other.scope == *scope
            && other.entry.api_group == entry.api_group
            && other.entry.resource == entry.resource
            && other.entry.non_resource_url == entry.non_resource_url
            && other.entry.verb == entry.verb
    });
    let has_all = |other: &&Granted| {
        other.entry.resource_names.len() > entry.resource_names.len()
            // They are sorted.
            && entry
                .resource_names
                .iter()
                .all(|name| other.entry.resource_names.binary_search(name).is_ok())
    };
    same.filter(|other| *other != granted).find(has_all).map(|other| other.entry.clone())
}

/// Marks what is gained in one hop and lost in a later one, and lists it for the whole path. What
/// the target has after all is not listed.
pub(super) fn on_the_way(hops: &mut [Changes]) -> Vec<Permission> {
    type Key = (String, Scope, Entry);
    let key = |permission: &Permission| -> Key {
        (permission.service_account.clone(), permission.scope, permission.entry.clone())
    };
    let mut open: BTreeMap<Key, (usize, usize)> = BTreeMap::new();
    let mut spans: BTreeMap<Key, (usize, usize, usize)> = BTreeMap::new();
    for (at, hop) in hops.iter().enumerate() {
        for (index, permission) in hop.permissions.iter().enumerate() {
            let key = key(permission);
            match permission.change {
                Change::Gained => {
                    open.insert(key, (at, index));
                }
                Change::Lost => {
                    if let Some((gained_at, index)) = open.remove(&key) {
                        spans.insert(key, (gained_at, index, at));
                    }
                }
            }
        }
    }
    spans.retain(|key, _| !open.contains_key(key));
    let mut found = Vec::new();
    for (gained_at, index, lost_at) in spans.into_values() {
        let (gained_in, lost_in) = (hops[gained_at].to.clone(), hops[lost_at].to.clone());
        let gained = &mut hops[gained_at].permissions[index];
        gained.only_on_the_way = true;
        gained.lost_in = Some(lost_in);
        found.push(Permission { gained_in: Some(gained_in), ..gained.clone() });
    }
    found.sort_by_cached_key(|p| (rank(p), p.entry.clone()));
    found
}
