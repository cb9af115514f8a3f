//! A definition on a cluster and the one that is to take its place: what OLM v0 asks before it lets
//! it.
//!
//! It asks two things, in this order: whether every object that is there fits the new schema of each
//! version that was served and still is, and whether every version that objects are stored in is
//! still there. It tries again for a minute; then its InstallPlan has failed for good.

use serde_json::Value;

use super::{
    Error, Side,
    definition::{Api, Definition},
    fit::Judge,
    objects::{self, Unknown},
    schema::Schema,
};

/// A definition on a cluster and the one that is to take its place.
#[derive(Debug)]
pub struct Replacement {
    live: Definition,
    new: Definition,
}

/// Judges the objects of one version.
#[derive(Debug)]
pub struct Validator<'r> {
    schema: Option<&'r Schema>,
    judge: Judge,
    /// Whether the new schema lets less through than the one on the cluster.
    is_tightened: bool,
}

/// Whether an object fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It does.
    Fits,
    /// It can't be told here, and what about.
    Unsure(Vec<String>),
    /// It does not, in OLM's words.
    Not(Vec<String>),
}

// === impl Replacement ===

impl Replacement {
    /// Takes the definition of a cluster, with its status, and the new one.
    pub fn read(live: &Value, new: &Value) -> Result<Self, Error> {
        let live = Definition::read(live, Side::Old)?;
        let new = Definition::read(new, Side::New)?;
        if live.name != new.name {
            return Err(Error::TwoNames { old: live.name, new: new.name });
        }
        Ok(Self { live, new })
    }

    /// The name of both.
    pub fn name(&self) -> &str {
        &self.new.name
    }

    /// The group of its objects.
    pub fn group(&self) -> &str {
        &self.new.group
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &str {
        &self.new.kind
    }

    /// What its objects are called in paths.
    pub fn plural(&self) -> &str {
        &self.new.plural
    }

    /// Versions that objects on the cluster are, or were, stored in and that the new one is without.
    pub fn stored_and_gone(&self) -> Vec<&str> {
        let stored = self.live.stored.iter().map(String::as_str);
        stored.filter(|name| self.new.version(name).is_none()).collect()
    }

    /// Versions whose objects OLM validates: those that both serve.
    pub fn validated(&self) -> Vec<&str> {
        let served = self.new.versions.iter().filter(|version| version.is_served);
        let names = served.map(|version| version.name.as_str());
        names.filter(|name| self.live.version(name).is_some_and(|live| live.is_served)).collect()
    }

    /// Whether OLM only warns of objects that do not fit, as a webhook is to convert them.
    pub fn trusts_webhook(&self) -> bool {
        self.new.has_webhook() && self.new.api == Api::V1
    }

    /// What judges the objects of a version.
    pub fn validator(&self, version: &str) -> Validator<'_> {
        let schema = self.new.version(version).and_then(|version| version.body.schema());
        let before = self.live.version(version).and_then(|version| version.body.schema());
        let unknown = if self.live.preserves_unknown { Unknown::Kept } else { Unknown::Pruned };
        let is_tightened =
            schema.is_some_and(|schema| !objects::tightened(before, schema, unknown).is_empty());
        Validator { schema, judge: Judge::default(), is_tightened }
    }
}

// === impl Validator ===

impl Validator<'_> {
    /// Judges one object, as the API server gives it in this version.
    pub fn judge(&self, object: &Value) -> Fit {
        let Some(schema) = self.schema else { return Fit::Fits };
        let seen = self.judge.judge(schema, "", object);
        if !seen.wrong.is_empty() {
            return Fit::Not(seen.wrong);
        }
        // What the API server let through by the same rule needs no second opinion.
        if seen.doubts.is_empty() || !self.is_tightened {
            return Fit::Fits;
        }
        Fit::Unsure(seen.doubts)
    }
}

/// OLM's words for a version that is stored and goes.
pub fn data_loss(definition: &str, version: &str) -> String {
    format!(
        "risk of data loss updating \"{definition}\": new CRD removes version {version} that is \
         listed as a stored version on the existing CRD"
    )
}

/// OLM's words for an object that does not fit.
pub fn too_restrictive(
    replacement: &Replacement,
    version: &str,
    object: &str,
    causes: &[String],
) -> String {
    let (name, group, kind) = (replacement.name(), replacement.group(), replacement.kind());
    let causes = match causes {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    format!(
        "error validating existing CRs against new CRD's schema for \"{name}\": error validating \
         {group}/{version}, Kind={kind} \"{object}\": updated validation is too restrictive: {causes}"
    )
}
