//! How long the author stands by a version, from the catalog's lifecycle document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavelift_core::causes::cut;

use super::super::{Confidence, Missing, Section, Source, bundle::Bundle};
use crate::lifecycle;

/// Bytes of the reason why a document can't be read.
const REASON_MAX: usize = 200;

/// The lifecycle of one minor version of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The CSV that it is about.
    pub bundle: String,
    /// The minor version of the operator, e.g. `4.18`.
    pub version: String,
    /// The phases of support, as they stand in the document.
    pub phases: Vec<Phase>,
    /// The last day of the last phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// The platforms that it works with.
    pub platforms: Vec<Platform>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A phase of support. Dates are as the author wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Its first day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// Its last day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
}

/// A platform and its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// Its name, e.g. `openshift`.
    pub name: String,
    /// Its versions.
    pub versions: Vec<String>,
}

/// The lifecycle of the old version and of the new one, as far as they are known; and that a document
/// can't be read, where one can't.
pub(super) fn of(old: &Bundle<'_>, new: &Bundle<'_>) -> (Vec<Lifecycle>, Option<Missing>) {
    let (mut documents, mut missing) = (Vec::new(), None);
    // The newest document is the last word, also on the old version.
    for bundle in [new, old] {
        let all = bundle.facts.documents.iter().copied();
        for document in all.filter(|of: &&Value| of["schema"] == lifecycle::Lifecycle::SCHEMA) {
            match lifecycle::Lifecycle::deserialize(document) {
                Ok(document) => documents.push(document),
                // Mostly both bundles have the same documents.
                Err(error) => missing = missing.or_else(|| Some(unreadable(bundle, &error))),
            }
        }
    }
    let lifecycles = [old, new].into_iter().filter_map(|bundle| of_bundle(bundle, &documents));
    (lifecycles.collect(), missing)
}

fn unreadable(bundle: &Bundle<'_>, error: &serde_json::Error) -> Missing {
    let reason = format!("the lifecycle document can't be read: {error}");
    Missing {
        bundle: bundle.name.clone(),
        sections: vec![Section::Compatibility],
        reason: cut(&reason, REASON_MAX),
        source: Source::Missing,
        confidence: Confidence::Unknown,
    }
}

fn of_bundle(bundle: &Bundle<'_>, documents: &[lifecycle::Lifecycle]) -> Option<Lifecycle> {
    let version = bundle.version.as_ref()?;
    let name = format!("{}.{}", version.major(), version.minor());
    let found = documents.iter().find_map(|document| document.version(&name))?;
    let phase = |phase: &lifecycle::Phase| Phase {
        name: phase.name.clone(),
        start_date: phase.start_date.clone(),
        end_date: phase.end_date.clone(),
    };
    let platform = |platform: &lifecycle::PlatformCompatibility| Platform {
        name: platform.name.clone(),
        versions: platform.versions.clone(),
    };
    Some(Lifecycle {
        bundle: bundle.name.clone(),
        version: name,
        // Dates in ISO form sort as texts.
        ends: found.phases.iter().filter_map(|phase| phase.end_date.clone()).max(),
        phases: found.phases.iter().map(phase).collect(),
        platforms: found.platform_compatibility.iter().map(platform).collect(),
        source: Source::FromLifecycle,
        confidence: Confidence::Stated,
    })
}
