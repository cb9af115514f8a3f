//! Permissions and the objects that OLM creates.

use std::collections::BTreeMap;

use super::Item;
use crate::preview::{
    Change, Changes, Confidence, Crd, CrdClass, CrdRefusal, Danger, Entry, Importance, Object,
    ObjectChange, Permission, RoleEntry, SchemaChange, Scope,
};

/// Permissions, those of one service account, scope and danger together.
pub(super) fn permissions(changes: &Changes) -> Vec<Item> {
    let mut items = grouped(&changes.permissions, None);
    items.extend(grouped(&changes.permissions_on_the_way, Some("needed only on the way")));
    items.sort_by_key(|item| item.importance);
    items
}

type Group<'a> = (Importance, Change, &'a str, Scope, String);

fn grouped(permissions: &[Permission], title: Option<&str>) -> Vec<Item> {
    let mut groups: BTreeMap<Group<'_>, Vec<(&Entry, String)>> = BTreeMap::new();
    for permission in permissions {
        let is_covered = permission.covered_by.is_some();
        let word = match (title, permission.change, is_covered) {
            (Some(title), ..) => title,
            (None, Change::Gained, false) => "gains",
            (None, Change::Gained, true) => "gains, but had it already by a wider entry,",
            (None, Change::Lost, false) => "loses",
            (None, Change::Lost, true) => "loses, but still has it by a wider entry,",
        };
        let key = (
            permission.importance(),
            permission.change,
            permission.service_account.as_str(),
            permission.scope,
            format!("{word}{}", reason(permission)),
        );
        let mut after = String::new();
        if let Some(covered) = &permission.covered_by {
            after.push_str(&format!(" (by {})", covered.entry));
        }
        if permission.only_on_the_way {
            let lost_in = permission.lost_in.as_deref().unwrap_or("a later version");
            after.push_str(&format!(" (until {lost_in})"));
        }
        groups.entry(key).or_default().push((&permission.entry, after));
    }
    let items = groups.into_iter().map(|((importance, _, account, scope, word), entries)| {
        let place = match scope {
            Scope::Namespace => "in its namespaces",
            Scope::Cluster => "in the whole cluster",
        };
        let text = format!("{account} {word} {place} ({})", entries.len());
        Item::new(importance, &text).with_lines(joined(entries).iter().map(String::as_str))
    });
    items.collect()
}

/// Entries that differ in the verb alone, in a line.
fn joined<'a>(entries: impl IntoIterator<Item = (&'a Entry, String)>) -> Vec<String> {
    let mut verbs: BTreeMap<(Entry, String), Vec<&str>> = BTreeMap::new();
    for (entry, after) in entries {
        let of_any = Entry { verb: String::new(), ..entry.clone() };
        verbs.entry((of_any, after)).or_default().push(&entry.verb);
    }
    let lines = verbs.into_iter().map(|((entry, after), mut verbs)| {
        verbs.sort_unstable();
        let of = entry.to_string();
        format!("{}: {}{after}", of.trim_start(), verbs.join(", "))
    });
    lines.collect()
}

/// The dangers of a permission that is really gained.
fn reason(permission: &Permission) -> String {
    if permission.dangers.is_empty() || permission.covered_by.is_some() {
        return String::new();
    }
    let dangers: Vec<String> = permission.dangers.iter().map(ToString::to_string).collect();
    format!(" [{}]", dangers.join(", "))
}

pub(super) fn crds(changes: &Changes) -> Vec<Item> {
    changes.crds.iter().map(crd).collect()
}

fn crd(crd: &Crd) -> Item {
    let text = match crd.change {
        ObjectChange::Removed => {
            format!("{}: no longer in the bundle; it stays on the cluster as it is", crd.name)
        }
        ObjectChange::Added | ObjectChange::Renamed | ObjectChange::Changed => {
            format!("{}: {}", crd.name, crd.change)
        }
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend(match crd.refused_by_v0 {
        CrdRefusal::Never => None,
        CrdRefusal::IfObjectsInvalid => {
            Some("OLM v0 refuses it if an object does not fit the new schema".to_owned())
        }
        CrdRefusal::IfStored => Some(
            "OLM v0 refuses it if objects are or were stored in a version that goes".to_owned(),
        ),
        CrdRefusal::Unknown => Some("could not be compared".to_owned()),
    });
    if crd.refused_by_v1 {
        lines.push("OLM v1 refuses it".to_owned());
    }
    let owned = crd.owned_not_served.iter();
    lines.extend(owned.map(|of| format!("the old version still needs {of}; OLM v0 then waits")));
    lines.extend(crd.versions.iter().map(ToString::to_string));
    lines.extend(crd.unknown.iter().map(|text| format!("not known: {text}")));
    lines.extend(crd.changes.iter().map(|change| {
        let SchemaChange { version, property, rule, class, message, .. } = change;
        let class = match class {
            CrdClass::Breaking => "breaking",
            CrdClass::Risky => "risky",
            CrdClass::Compatible => "compatible",
        };
        format!("{class}: {version} {property} {message} [{rule}]").replace("  ", " ")
    }));
    if crd.descriptions_changed > 0 {
        lines.push(format!("other words in {} descriptions", crd.descriptions_changed));
    }
    Item::new(crd.importance(), &text).with_lines(lines.iter().map(String::as_str))
}

pub(super) fn webhooks(changes: &Changes) -> Vec<Item> {
    let items = changes.webhooks.iter().map(|webhook| {
        let policy = webhook.failure_policy.as_deref().filter(|_| !webhook.is_conversion());
        let policy = policy.map_or_else(String::new, |policy| format!(", failure policy {policy}"));
        let text = format!("{} {}: {}{policy}", webhook.kind, webhook.name, webhook.change);
        let crds = webhook.conversion_crds.iter().map(|crd| format!("converts {crd}"));
        let lines: Vec<String> = webhook.rules.iter().cloned().chain(crds).collect();
        Item::new(webhook.importance(), &text)
            .with_lines(lines.iter().map(String::as_str))
            .with_differences(&webhook.differences)
    });
    items.collect()
}

pub(super) fn api_services(changes: &Changes) -> Vec<Item> {
    let items = changes.api_services.iter().map(|service| {
        let text = format!("{}: {}", service.name, service.change);
        Item::new(Importance::Medium, &text).with_differences(&service.differences)
    });
    items.collect()
}

pub(super) fn deployments(changes: &Changes) -> Vec<Item> {
    let items = changes.deployments.iter().map(|deployment| {
        let mut text = format!("{}: {}", deployment.name, deployment.change);
        if let Some(was) = &deployment.was {
            text.push_str(&format!(", was {was}"));
        }
        if deployment.confidence == Confidence::Inferred {
            text.push_str(" (concluded from what is in it)");
        }
        let aspects: Vec<String> = deployment.aspects.iter().map(ToString::to_string).collect();
        if !aspects.is_empty() {
            text.push_str(&format!(": {}", aspects.join(", ")));
        }
        Item::new(deployment.importance(), &text).with_differences(&deployment.differences)
    });
    items.collect()
}

pub(super) fn objects(changes: &Changes) -> Vec<Item> {
    changes.rbac_objects.iter().chain(&changes.objects).map(object).collect()
}

fn object(object: &Object) -> Item {
    let dangers = object.gained.iter().flat_map(|of| &of.dangers);
    let importance = match dangers.min() {
        Some(danger) if *danger <= Danger::RolesAndBindings => Importance::Medium,
        Some(_) | None => Importance::Low,
    };
    let text = format!("{} {}: {}", object.kind, object.name, object.change);
    let entries = |of: &[RoleEntry]| -> Vec<String> {
        let of: Vec<_> = of.iter().map(|of| (&of.entry, note(&of.dangers))).collect();
        joined(of)
    };
    let gained = entries(&object.gained).into_iter().map(|line| format!("allows {line}"));
    let lost = entries(&object.lost).into_iter().map(|line| format!("no longer allows {line}"));
    let lines: Vec<String> = gained.chain(lost).collect();
    Item::new(importance, &text)
        .with_lines(lines.iter().map(String::as_str))
        .with_differences(&object.differences)
}

fn note(dangers: &[Danger]) -> String {
    let dangers: Vec<String> = dangers.iter().map(ToString::to_string).collect();
    if dangers.is_empty() { String::new() } else { format!(" [{}]", dangers.join(", ")) }
}
