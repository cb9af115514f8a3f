//! A preview in numbers, and the gravest of it by name: for lists and for the object's status.

use wavelift_api::{convert::cut, fleet_upgrade::GroupChanges, live::PreviewCounts};
use wavelift_catalog::preview::{Change, Permission, Preview as Changes};

use super::{GroupPreview, Made, Preview};

/// Texts of one kind that a list names.
const NAMED_MAX: usize = 20;
/// The longest of them.
const TEXT_MAX: usize = 256;
/// Groups in the object's status, and texts of one kind in each.
const STATUS_GROUPS_MAX: usize = 10;
const STATUS_NAMED_MAX: usize = 5;

/// A group in numbers.
pub(crate) fn counts(shown: &GroupPreview) -> PreviewCounts {
    let mut counts = PreviewCounts::default();
    let mut dangerous: Vec<(&Permission, String)> = vec![];
    for (package, made) in super::differ::each(shown) {
        add(&mut counts, package, made, &mut dangerous);
    }
    dangerous.sort_by(|(a, _), (b, _)| a.dangers.first().cmp(&b.dangers.first()));
    counts.dangerous_total = number(dangerous.len());
    counts.dangerous = dangerous.into_iter().map(|(_, text)| text).take(NAMED_MAX).collect();
    counts
}

fn add<'a>(
    counts: &mut PreviewCounts,
    package: &str,
    made: &'a Made,
    dangerous: &mut Vec<(&'a Permission, String)>,
) {
    let overall = &made.preview.overall;
    for permission in &overall.permissions {
        match permission.change {
            Change::Gained => counts.permissions_gained += 1,
            Change::Lost => counts.permissions_lost += 1,
        }
        if is_dangerous(permission) {
            dangerous.push((permission, text(&danger(package, permission))));
        }
    }
    counts.images += number(overall.images.len());
    let missing = overall
        .missing
        .iter()
        .map(|missing| text(&format!("{}: no manifests: {}", missing.bundle, missing.reason)));
    let documents = made.documents_missing.iter();
    let documents = documents.map(|why| text(&format!("{package}: no release document: {why}")));
    for line in missing.chain(documents) {
        counts.missing_total += 1;
        push(&mut counts.missing, line);
    }
    counts.crd_changes += number(overall.crds.len());
    for crd in refused(&made.preview) {
        push(&mut counts.crds_refused, text(&format!("{package}: {crd}")));
    }
    let notes = &overall.notes;
    counts.manual_steps_total += number(notes.manual_steps.len());
    for step in &notes.manual_steps {
        push(&mut counts.manual_steps, text(&format!("{package}: {}", step.title)));
    }
    counts.release_notes += number(notes.release_notes.len());
}

fn is_dangerous(permission: &Permission) -> bool {
    permission.change == Change::Gained
        && permission.covered_by.is_none()
        && !permission.dangers.is_empty()
}

/// The CRDs that some hop changes in a way that OLM refuses or may refuse.
fn refused(preview: &Changes) -> Vec<String> {
    let mut names = std::collections::BTreeSet::new();
    for crd in preview.hops.iter().flat_map(|hop| &hop.crds) {
        let Ok(json) = serde_json::to_value(crd) else { continue };
        let by_v1 = json.get("refusedByV1").and_then(serde_json::Value::as_bool) == Some(true);
        let by_v0 = json.get("refusedByV0").and_then(serde_json::Value::as_str);
        if by_v1 || by_v0.is_some_and(|word| word != "Never") {
            names.insert(crd.name.clone());
        }
    }
    names.into_iter().collect()
}

/// `loom-operator: loom may get secrets (Cluster; Secrets)`
fn danger(package: &str, permission: &Permission) -> String {
    let dangers: Vec<String> = permission.dangers.iter().map(ToString::to_string).collect();
    format!(
        "{package}: {} may {} ({:?}; {})",
        permission.service_account,
        permission.entry,
        permission.scope,
        dangers.join(", ")
    )
}

/// The groups with the most clusters, for the object's status; those whose changes are not known
/// yet are left out.
pub(crate) fn status(preview: &Preview) -> Vec<GroupChanges> {
    let known = preview.groups.iter().filter(|shown| shown.made.is_some());
    known.take(STATUS_GROUPS_MAX).map(|shown| group(shown)).collect()
}

fn group(shown: &GroupPreview) -> GroupChanges {
    let counts = counts(shown);
    let few = |list: Vec<String>| list.into_iter().take(STATUS_NAMED_MAX).collect();
    let int = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let ways: Vec<String> =
        shown.group.ways.iter().map(|way| format!("{} {}", way.package, way.text())).collect();
    GroupChanges {
        group: shown.group.id.clone(),
        clusters: int(number(shown.group.clusters.len())),
        ways: cut(&ways.join("; "), 512),
        permissions_gained: int(counts.permissions_gained),
        dangerous_permissions: int(counts.dangerous_total),
        dangerous: few(counts.dangerous),
        crds_refused: few(counts.crds_refused),
        manual_steps: int(counts.manual_steps_total),
        missing: int(counts.missing_total),
    }
}

fn push(list: &mut Vec<String>, line: String) {
    if list.len() < NAMED_MAX {
        list.push(line);
    }
}

fn text(text: &str) -> String {
    cut(text, TEXT_MAX)
}

pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
