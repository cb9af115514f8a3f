//! What one group has that another has not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use wavelift_api::live::{DifferenceKind, DifferenceView};

use super::{GroupPreview, Made, Preview, change::Change};

/// What each package's groups have, counted over all groups that move it.
#[derive(Debug, Default)]
pub(crate) struct Counted<'a> {
    packages: BTreeMap<&'a str, Package<'a>>,
}

#[derive(Debug, Default)]
struct Package<'a> {
    groups: u32,
    changes: BTreeMap<&'a Change, u32>,
}

impl<'a> Counted<'a> {
    /// Counts what the groups have whose changes are known.
    pub(crate) fn of(preview: &'a Preview) -> Self {
        // Many groups take the same way: each is looked at once.
        let mut ways: BTreeMap<(&str, &str), (&Made, u32)> = BTreeMap::new();
        for shown in &preview.groups {
            for (package, made) in each(shown) {
                ways.entry((package, made.key())).or_insert((made, 0)).1 += 1;
            }
        }
        let mut packages: BTreeMap<&str, Package<'_>> = BTreeMap::new();
        for ((name, _), (made, groups)) in ways {
            let package = packages.entry(name).or_default();
            package.groups += groups;
            for change in &made.changes {
                *package.changes.entry(change).or_insert(0) += groups;
            }
        }
        Self { packages }
    }

    /// What sets a group apart: first what it lacks, then what it has alone, by package.
    pub(crate) fn differences(&self, shown: &GroupPreview) -> Vec<DifferenceView> {
        let mut found = vec![];
        let mut seen = BTreeSet::new();
        for (name, made) in each(shown) {
            let Some(package) = self.packages.get(name).filter(|_| seen.insert(name)) else {
                continue;
            };
            let view = |kind, change: &Change, groups| DifferenceView {
                kind,
                package: name.to_owned(),
                section: change.section.clone(),
                text: change.text.clone(),
                groups,
            };
            for (change, groups) in &package.changes {
                let is_ours = made.changes.contains(*change);
                if is_ours && *groups < package.groups {
                    found.push(view(DifferenceKind::Has, change, groups.saturating_sub(1)));
                } else if !is_ours && *groups + 1 == package.groups {
                    found.push(view(DifferenceKind::Lacks, change, *groups));
                }
            }
        }
        found.sort_by(|a, b| {
            let order = |one: &DifferenceView| (one.kind, one.groups);
            order(b).0.cmp(&order(a).0).then(order(a).1.cmp(&order(b).1))
        });
        found
    }
}

/// The packages of a group and what their ways change.
pub(super) fn each(shown: &GroupPreview) -> impl Iterator<Item = (&str, &Made)> {
    let made = shown.made.iter().flatten().map(Arc::as_ref);
    shown.group.ways.iter().map(|way| way.package.as_str()).zip(made)
}
