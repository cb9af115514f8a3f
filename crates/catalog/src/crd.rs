//! What changes when one CustomResourceDefinition replaces another, and whether OLM lets it.
//!
//! [`diff`] names every change, and by its `refused_by` which OLM holds it against the upgrade:
//!
//! - *OLM v1* compares the definitions ([`Rule`] has its rules) and refuses on any finding. Findings
//!   are complete and counted in [`CrdDiff::by_rule`]; what it lets pass is in `changes` too, with a
//!   rule name of our own.
//! - *OLM v0* looks at the cluster: at the versions that objects are stored in, and at the objects.
//!   Neither is in a definition, so the answer is on what it depends ([`RefusedByV0`]).
//!
//! Objects can fail the new schema of a version which both definitions serve (unless the new one
//! converts by a webhook: then OLM v0 only warns) where that lets less through than the old one did:
//! see [`Change::refused_by`]. Rules in CEL are not among it, OLM v0 does not evaluate them.
//! Both is said of the schemas: objects that were written under an older, looser schema, and are
//! not valid for the old one either, can't be seen here.
//!
//! Definitions come from outside, in the form of today or in the one before (`v1beta1`), and are
//! bounded in all that they hold.

mod answer;
mod class;
mod conversion;
mod definition;
mod error;
mod fit;
mod flat;
mod gentle;
mod objects;
mod owned;
mod parse;
mod reader;
mod replacement;
mod rule;
mod rules;
mod schema;
mod v1;
mod whole;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::{
    answer::{Change, Class, CrdDiff, FromTo, Olm, RefusedByV0, Removed, Stored, V1, Versions},
    conversion::{conversion_faults, converted},
    error::{Error, Side},
    owned::{Fate, OwnedNotServed, owned_not_served},
    parse::parse,
    replacement::{Fit, Replacement, Validator, data_loss, too_restrictive},
    rule::Rule,
};
use self::{
    definition::{Api, Definition},
    flat::Flat,
    objects::{Tightened, Unknown},
    schema::Schema,
    v1::{Findings, Flats, Held},
};

/// Changes of one pair of definitions.
const CHANGES_MAX: usize = 200_000;

/// Compares the definition that is there with the one that is to replace it.
pub fn diff(old: &Value, new: &Value) -> Result<CrdDiff, Error> {
    diff_within(old, new, CHANGES_MAX)
}

/// The same where so many changes are too many.
fn diff_within(old: &Value, new: &Value, changes_max: usize) -> Result<CrdDiff, Error> {
    let too_many = Error::TooManyChanges { max: changes_max };
    let old = Definition::read(old, Side::Old)?;
    let new = Definition::read(new, Side::New)?;
    if old.name != new.name {
        return Err(Error::TwoNames { old: old.name, new: new.name });
    }
    let (old_flats, new_flats) = (v1::flats(&old), v1::flats(&new));
    let mut findings = Findings::new(changes_max);
    v1::check((&old, &old_flats), (&new, &new_flats), &mut findings);
    if findings.is_full {
        return Err(too_many);
    }
    let versions = whole::versions(&old, &new);
    let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
    for held in &findings.held {
        *by_rule.entry(held.finding.rule.to_string()).or_default() += 1;
    }
    let tightened = tightened(&old, &new);
    let mut changes = classed(findings.held, (&old, &old_flats), (&new, &new_flats), &tightened);
    whole::changes(&old, &new, &versions, &mut changes);
    for (version, before, after) in same_versions((&old, &old_flats), (&new, &new_flats)) {
        gentle::changes(version, before, after, &mut changes);
    }
    hold_against_objects(&old, &new, &tightened, &mut changes);
    hold_stored_versions(&versions, &mut changes);
    if changes.len() > changes_max {
        return Err(too_many);
    }
    changes.sort_by(|one, other| one.key().cmp(&other.key()));
    let crashes_at = v1::crashes_at(&old, &new);
    let v1 = match (crashes_at.is_empty(), by_rule.is_empty()) {
        (false, _) => V1::Crashes,
        (true, false) => V1::Refuses,
        (true, true) => V1::Accepts,
    };
    Ok(CrdDiff {
        refused_by_v1: v1 != V1::Accepts,
        v1,
        by_rule,
        refused_by_v0: refused_by_v0(&changes),
        versions,
        changes,
        unknown: unknown(&old, &new, &crashes_at),
        name: new.name,
    })
}

/// Whether OLM v0 refuses `new` where objects are stored in these versions: it does not, or it does
/// ([`RefusedByV0::IfStored`]). That it may because of objects is not looked at.
pub fn refused_by_v0_for(old_stored_versions: &[&str], new: &Value) -> Result<RefusedByV0, Error> {
    let new = Definition::read(new, Side::New)?;
    let is_gone = |name: &&str| new.version(name).is_none();
    Ok(if old_stored_versions.iter().any(is_gone) {
        RefusedByV0::IfStored
    } else {
        RefusedByV0::Never
    })
}

type Sides<'d, 'f> = (&'d Definition, &'f Flats<'f>);

/// The versions that both have, with their parts.
fn same_versions<'d>(
    (old, old_flats): Sides<'d, 'd>,
    (new, new_flats): Sides<'d, 'd>,
) -> impl Iterator<Item = (&'d str, &'d Flat<'d>, &'d Flat<'d>)> {
    new.versions.iter().zip(new_flats).filter_map(move |(version, after)| {
        let index = old.versions.iter().position(|before| before.name == version.name)?;
        Some((version.name.as_str(), old_flats.get(index)?, after))
    })
}

/// By version and property, what in the new schema existing objects may fail.
type TightenedBy = BTreeMap<String, BTreeMap<String, Vec<&'static str>>>;

fn tightened(old: &Definition, new: &Definition) -> TightenedBy {
    let unknown = if old.preserves_unknown { Unknown::Kept } else { Unknown::Pruned };
    let mut by_version = BTreeMap::new();
    for version in &new.versions {
        if let Some(before) = old.version(&version.name)
            && let Some(after) = version.body.schema()
        {
            let by_property: &mut BTreeMap<String, Vec<&'static str>> =
                by_version.entry(version.name.clone()).or_default();
            for Tightened { property, keyword } in
                objects::tightened(before.body.schema(), after, unknown)
            {
                by_property.entry(property).or_default().push(keyword);
            }
        }
    }
    by_version
}

/// The findings of OLM v1 as changes.
fn classed(
    held: Vec<Held>,
    old: Sides<'_, '_>,
    new: Sides<'_, '_>,
    tightened: &TightenedBy,
) -> Vec<Change> {
    let nothing = Schema::default();
    let change = |held: Held| {
        let Held { place, finding, .. } = &held;
        let mut keywords = tightened
            .get(&held.version)
            .and_then(|of| of.get(&held.property))
            .into_iter()
            .flatten();
        let is_tightened = keywords.any(|keyword| finding.rule.is_of(keyword));
        let (before, after) = (part(old, &held), part(new, &held));
        let parts = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
        let class = class::class(finding.rule, *place, parts, is_tightened);
        let Held { version, property, finding, .. } = held;
        let mut change = Change::new(finding.rule, class, finding.message)
            .at(&version, &property)
            .with(finding.old, finding.new);
        change.refused_by.insert(Olm::V1);
        change
    };
    held.into_iter().map(change).collect()
}

/// The part of a definition that a finding is of.
fn part<'f>((definition, flats): Sides<'_, 'f>, held: &Held) -> Option<&'f Schema> {
    let index = definition.versions.iter().position(|version| version.name == held.version)?;
    flats.get(index)?.get(&held.property)
}

/// Marks what OLM v0 may hold against objects, and adds what no other change speaks of.
fn hold_against_objects(
    old: &Definition,
    new: &Definition,
    tightened: &TightenedBy,
    changes: &mut Vec<Change>,
) {
    let is_served = |definition: &Definition, name: &str| {
        definition.version(name).is_some_and(|version| version.is_served)
    };
    let skips = new.has_webhook() && new.api == Api::V1;
    let mut index: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (place, change) in changes.iter().enumerate() {
        let key = (change.version.clone(), change.property.clone());
        index.entry(key).or_default().push(place);
    }
    for (version, tightened) in tightened {
        let counts = !skips && is_served(old, version) && is_served(new, version);
        let each = tightened.iter().flat_map(|(property, keywords)| {
            keywords.iter().map(move |keyword| (property, keyword))
        });
        for (property, keyword) in each {
            let known = index.get(&(version.clone(), property.clone())).into_iter().flatten();
            let known = known
                .copied()
                .find(|place| changes.get(*place).is_some_and(|change| change.rule.is_of(keyword)));
            let place = known.unwrap_or_else(|| {
                let message = format!("its {keyword} may refuse objects that are there");
                let change = Change::new(Rule::Tightened, Class::Breaking, message);
                changes.push(change.at(version, property));
                changes.len() - 1
            });
            if let Some(change) = changes.get_mut(place).filter(|_| counts) {
                change.refused_by.insert(Olm::V0);
            }
        }
    }
}

/// Marks removed versions that objects are, or may be, stored in.
fn hold_stored_versions(versions: &Versions, changes: &mut [Change]) {
    for change in changes.iter_mut().filter(|change| change.rule == Rule::VersionRemoved) {
        let mut removed = versions.removed.iter().filter(|removed| removed.name == change.version);
        if removed.any(|removed| removed.stored != Stored::No) {
            change.refused_by.insert(Olm::V0);
        }
    }
}

fn refused_by_v0(changes: &[Change]) -> RefusedByV0 {
    let held = changes.iter().filter(|change| change.refused_by.contains(&Olm::V0));
    let answer = held.map(|change| {
        if change.rule == Rule::VersionRemoved {
            RefusedByV0::IfStored
        } else {
            RefusedByV0::IfObjectsInvalid
        }
    });
    answer.max().unwrap_or(RefusedByV0::Never)
}

fn unknown(old: &Definition, new: &Definition, crashes_at: &[String]) -> Vec<String> {
    let mut unknown = Vec::new();
    if !crashes_at.is_empty() {
        unknown.push(format!(
            "OLM v1 does not come to an answer: its check crashes, as these versions have no \
             schema: {}",
            crashes_at.join(", ")
        ));
    }
    for (side, definition) in [(Side::Old, old), (Side::New, new)] {
        let without = definition.versions.iter().filter(|v| v.body.schema().is_none());
        for version in without {
            unknown.push(format!(
                "{side} version {} has no schema: what its objects look like is not known",
                version.name
            ));
        }
    }
    if new.api == Api::V1beta1 {
        unknown.push(
            "the new definition is of apiextensions.k8s.io/v1beta1, which no cluster since 1.22 \
             takes and OLM v1 does not check; it is compared as its v1 form"
                .to_owned(),
        );
    }
    if old.stored.is_empty() {
        unknown.push(
            "the old definition does not say in which versions objects are stored: its storage \
             version is taken for certain, its other versions for possible"
                .to_owned(),
        );
    }
    unknown
}
