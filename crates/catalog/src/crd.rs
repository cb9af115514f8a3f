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

mod class;
mod definition;
mod flat;
mod gentle;
mod objects;
mod owned;
mod parse;
mod reader;
mod rule;
mod rules;
mod schema;
mod v1;
mod whole;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use serde_json::Value;

use self::{
    definition::{Api, Definition},
    flat::Flat,
    objects::{Tightened, Unknown},
    schema::Schema,
    v1::{Findings, Flats, Held},
};
pub use self::{
    owned::{Fate, OwnedNotServed, owned_not_served},
    parse::parse,
    rule::Rule,
};

/// Changes of one pair of definitions.
const CHANGES_MAX: usize = 200_000;
/// Bytes of a message.
const MESSAGE_MAX: usize = 500;
/// Bytes of a value before or after a change; larger ones are left out.
const VALUE_MAX: usize = 2_000;

/// All that changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdDiff {
    /// The name of both.
    pub name: String,
    /// Whether OLM v1 does not take the new definition: it refuses, or crashes.
    #[serde(rename = "refusedByV1")]
    pub refused_by_v1: bool,
    /// The answer of OLM v1 in full.
    pub v1: V1,
    /// How many findings of OLM v1 there are of each rule.
    pub by_rule: BTreeMap<String, usize>,
    /// Whether OLM v0 may not take the new definition.
    #[serde(rename = "refusedByV0")]
    pub refused_by_v0: RefusedByV0,
    /// Versions and what is said of all of them.
    pub versions: Versions,
    /// Every change, by version, property, rule and message.
    pub changes: Vec<Change>,
    /// What can't be said of these definitions, and why.
    pub unknown: Vec<String>,
}

/// What OLM v1 does with the new definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum V1 {
    /// It takes it.
    Accepts,
    /// It has findings, and refuses.
    Refuses,
    /// Its check crashes on a version without the place for a schema. The findings are then those
    /// it would have had of all else.
    Crashes,
}

/// Whether OLM v0 refuses, from the best to the worst.
///
/// The order is of how sure it is and of what must be done: objects that are in the way may not
/// exist, and can be edited; a stored version that goes needs objects to be migrated. Where both may
/// happen the worse is given, the other is among the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum RefusedByV0 {
    /// It does not refuse.
    Never,
    /// If an object does not fit the new schema.
    IfObjectsInvalid,
    /// If a version that goes is in `status.storedVersions`. Where the old definition has that
    /// field, only versions in it count, and OLM v0 does refuse.
    IfStored,
}

/// Versions that come, go, and change their part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Not in the old definition.
    pub added: Vec<String>,
    /// In both, and served in the old one only.
    pub no_longer_served: Vec<String>,
    /// In both, and served in the new one only.
    pub newly_served: Vec<String>,
    /// Not in the new definition.
    pub removed: Vec<Removed>,
    /// The version that objects are stored in.
    pub storage: Option<FromTo>,
    /// How objects are converted: `None` or `Webhook`.
    pub conversion: Option<FromTo>,
    /// `Namespaced` or `Cluster`. The API server refuses a change.
    pub scope: Option<FromTo>,
}

/// A version that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// Whether objects lie in it.
    pub stored: Stored,
}

/// Whether objects lie in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Stored {
    /// The cluster says so, or it is the storage version.
    Yes,
    /// It was not the last storage version; it may have been one before.
    Maybe,
    /// The cluster says that they don't.
    No,
}

/// A change from one to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FromTo {
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The version; `a -> b` for served versions of the new definition compared with each other;
    /// empty for the whole definition.
    pub version: String,
    /// The path in the schema, `^` for the whole of it; empty where it is not of a schema.
    pub property: String,
    /// What kind of change it is.
    pub rule: Rule,
    /// How bad it is.
    pub class: Class,
    /// Who refuses the new definition because of it; OLM v0 does only if there is an object, or a
    /// stored version, that it hits.
    pub refused_by: BTreeSet<Olm>,
    /// In words, to be read after the property or version.
    pub message: String,
    /// What was there, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What is there now, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// How bad a change is for those who have objects, or write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Class {
    /// What was right stays right.
    Compatible,
    /// What was right stays right, and may come to mean something else.
    Risky,
    /// What was right may be refused, or lost.
    Breaking,
}

/// The two OLMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Olm {
    /// OLM v0.
    V0,
    /// OLM v1.
    V1,
}

/// Which of the two definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that is there.
    Old,
    /// The one that is to come.
    New,
}

/// Why two definitions can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is another kind, or of an unknown version.
    #[error("the {side} one is no CustomResourceDefinition of apiextensions.k8s.io v1 or v1beta1")]
    NotADefinition {
        /// Which.
        side: Side,
    },
    /// A file has more than one.
    #[error("the {side} file holds several CustomResourceDefinitions")]
    Several {
        /// Which.
        side: Side,
    },
    /// A file is not JSON.
    #[error("the {side} definition is not JSON")]
    Json {
        /// Which.
        side: Side,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A file is not YAML.
    #[error("the {side} definition is not YAML")]
    Yaml {
        /// Which.
        side: Side,
        /// What is wrong with it.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// A field is not what the API server would take.
    #[error("`{path}` of the {side} definition is not {expected}")]
    Field {
        /// Which.
        side: Side,
        /// The path.
        path: String,
        /// What it should be.
        expected: &'static str,
    },
    /// It has no versions at all.
    #[error("the {side} definition has no versions")]
    NoVersions {
        /// Which.
        side: Side,
    },
    /// It holds more than is looked at.
    #[error("the {side} definition has more than {max} {what}")]
    TooLarge {
        /// Which.
        side: Side,
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// They are not of one name, so neither replaces the other.
    #[error("the definitions are of two names: `{old}` and `{new}`")]
    TwoNames {
        /// The old one's.
        old: String,
        /// The new one's.
        new: String,
    },
    /// There is more to say than is said.
    #[error("the definitions differ in more than {max} ways")]
    TooManyChanges {
        /// The bound.
        max: usize,
    },
}

/// Compares the definition that is there with the one that is to replace it.
pub fn diff(old: &Value, new: &Value) -> Result<CrdDiff, Error> {
    let old = Definition::read(old, Side::Old)?;
    let new = Definition::read(new, Side::New)?;
    if old.name != new.name {
        return Err(Error::TwoNames { old: old.name, new: new.name });
    }
    let (old_flats, new_flats) = (v1::flats(&old), v1::flats(&new));
    let mut findings = Findings::new(CHANGES_MAX);
    v1::check((&old, &old_flats), (&new, &new_flats), &mut findings);
    let versions = whole::versions(&old, &new);
    let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
    for held in &findings.held {
        *by_rule.entry(held.finding.rule.to_string()).or_default() += 1;
    }
    let tightened = tightened(&old, &new);
    let (is_full, held) = (findings.is_full, findings.held);
    let mut changes = classed(held, (&old, &old_flats), (&new, &new_flats), &tightened);
    whole::changes(&old, &new, &versions, &mut changes);
    for (version, before, after) in same_versions((&old, &old_flats), (&new, &new_flats)) {
        gentle::changes(version, before, after, &mut changes);
    }
    hold_against_objects(&old, &new, &tightened, &mut changes);
    hold_stored_versions(&versions, &mut changes);
    if is_full || changes.len() > CHANGES_MAX {
        return Err(Error::TooManyChanges { max: CHANGES_MAX });
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

/// By version, what in its new schema existing objects may fail.
type TightenedBy = BTreeMap<String, Vec<Tightened>>;

fn tightened(old: &Definition, new: &Definition) -> TightenedBy {
    let unknown = if old.preserves_unknown { Unknown::Kept } else { Unknown::Pruned };
    let mut by_version = BTreeMap::new();
    for version in &new.versions {
        if let Some(before) = old.version(&version.name)
            && let Some(after) = version.body.schema()
        {
            let tightened = objects::tightened(before.body.schema(), after, unknown);
            by_version.insert(version.name.clone(), tightened);
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
        let is_tightened = tightened.get(&held.version).into_iter().flatten().any(|tightened| {
            tightened.property == held.property && finding.rule.is_of(tightened.keyword)
        });
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
        for Tightened { property, keyword } in tightened {
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

// === impl FromTo ===

impl FromTo {
    fn of(from: &str, to: &str) -> Option<Self> {
        (from != to).then(|| Self { from: from.to_owned(), to: to.to_owned() })
    }
}

// === impl Change ===

impl Change {
    fn new(rule: Rule, class: Class, message: String) -> Self {
        Self {
            version: String::new(),
            property: String::new(),
            rule,
            class,
            refused_by: BTreeSet::new(),
            message: cut(message),
            old: None,
            new: None,
        }
    }

    fn at(mut self, version: &str, property: &str) -> Self {
        version.clone_into(&mut self.version);
        property.clone_into(&mut self.property);
        self
    }

    fn with(mut self, old: Option<Value>, new: Option<Value>) -> Self {
        let is_short = |value: &Value| value.to_string().len() <= VALUE_MAX;
        let shown = |value: Option<Value>| value.filter(|v| !v.is_null()).filter(is_short);
        self.old = shown(old);
        self.new = shown(new);
        self
    }

    fn key(&self) -> (&str, &str, &str, &str) {
        (&self.version, &self.property, self.rule.name(), &self.message)
    }
}

/// At most so much of a text, whole characters.
fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_MAX {
        text.truncate(text.floor_char_boundary(MESSAGE_MAX));
        text.push('…');
    }
    text
}

// === impl Side ===

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "old",
            Self::New => "new",
        })
    }
}
