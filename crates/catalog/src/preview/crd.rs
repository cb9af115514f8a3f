//! Custom resource definitions that come, go or change.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Confidence, Importance, Source, bundle::Content, difference::ObjectChange};

/// A CRD that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Crd {
    /// Its name.
    pub name: String,
    /// What became of it. One that the new bundle does without stays on the cluster, as it is.
    pub change: ObjectChange,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

// === impl Crd ===

impl Crd {
    /// How much it matters.
    pub fn importance(&self) -> Importance {
        match self.change {
            ObjectChange::Removed => Importance::Medium,
            ObjectChange::Added | ObjectChange::Renamed | ObjectChange::Changed => Importance::Low,
        }
    }
}

pub(super) fn compare(old: &Content<'_>, new: &Content<'_>) -> Vec<Crd> {
    let (olds, news) = (of_bundle(old), of_bundle(new));
    let crd = |name: &str, change| Crd {
        name: name.to_owned(),
        change,
        source: Source::FromManifests,
        confidence: Confidence::Certain,
    };
    let mut changes = Vec::new();
    for (name, new) in &news {
        match olds.get(name) {
            None => changes.push(crd(name, ObjectChange::Added)),
            Some(old) if old != new => changes.push(crd(name, ObjectChange::Changed)),
            Some(_) => {}
        }
    }
    let gone = olds.keys().filter(|name| !news.contains_key(*name));
    changes.extend(gone.map(|name| crd(name, ObjectChange::Removed)));
    changes
}

fn of_bundle<'a>(content: &'a Content<'_>) -> BTreeMap<&'a str, &'a Value> {
    let objects = content.objects.iter().map(Cow::as_ref);
    let crds = objects.filter(|object| object["kind"] == "CustomResourceDefinition");
    crds.filter_map(|crd| Some((crd.pointer("/metadata/name")?.as_str()?, crd))).collect()
}
