//! What a version asks of the cluster around it: platform, Kubernetes, install modes, other packages
//! and APIs; and how long its author stands by it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, Confidence, Deprecated, Missing, Source, bundle::Bundle};

pub use self::{
    dependency::{Dependency, DependencyChange, DependencyKind},
    lifecycle::{Lifecycle, Phase, Platform},
    openshift::{OpenShift, OpenShiftError, OpenShiftSpan},
};

mod dependency;
mod lifecycle;
mod openshift;

/// What a version asks of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compatibility {
    /// The least Kubernetes version. OLM v0 does not look at it when it resolves: an upgrade to a
    /// version that needs a newer cluster lands in `Pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_kube_version: Option<Requirement>,
    /// The last OpenShift minor (`olm.maxOpenShiftVersion`). The platform refuses to go beyond.
    #[serde(rename = "maxOpenShiftVersion", default, skip_serializing_if = "Option::is_none")]
    pub max_openshift_version: Option<Requirement>,
    /// The OpenShift minors whose index gets the bundle (`com.redhat.openshift.versions`).
    #[serde(rename = "openShiftVersions", default, skip_serializing_if = "Option::is_none")]
    pub openshift_versions: Option<Requirement>,
    /// Install modes that come or go. An OperatorGroup that needs a lost one stops the upgrade.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_modes: Vec<InstallMode>,
    /// Packages and APIs that are needed now, no longer, or in another version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// What the catalog calls deprecated of all that the path arrives at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deprecations: Vec<Deprecation>,
    /// The lifecycle of the old and of the new version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<Lifecycle>,
}

/// A bound, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// As the old version's author wrote it; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// As the new version's author wrote it; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// What the new one means, e.g. 5.0 for 4.23.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// Why the new one means nothing. The platform then refuses every minor upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// An install mode that comes or goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallMode {
    /// `OwnNamespace`, `SingleNamespace`, `MultiNamespace` or `AllNamespaces`.
    pub mode: String,
    /// Whether it comes or goes.
    pub change: Change,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// Something deprecated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deprecation {
    /// The CSV that it was told with.
    pub bundle: String,
    /// What is deprecated.
    pub of: Deprecated,
    /// What the author says.
    pub message: String,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// From the first of the bundles to the last, by way of the others; and what could not be looked at.
pub(super) fn compare(bundles: &[Bundle<'_>]) -> (Compatibility, Option<Missing>) {
    let (Some(old), Some(new)) = (bundles.first(), bundles.last()) else {
        return (Compatibility::default(), None);
    };
    let (lifecycle, missing) = lifecycle::of(old, new);
    let compatibility = Compatibility {
        min_kube_version: min_kube_version(old, new),
        max_openshift_version: max_openshift_version(old, new),
        openshift_versions: openshift_versions(old, new),
        install_modes: install_modes(old, new),
        dependencies: dependency::compare(old, new),
        deprecations: deprecations(bundles.get(1..).unwrap_or_default()),
        lifecycle,
    };
    (compatibility, missing)
}

fn requirement(old: Option<String>, new: Option<String>, source: Source) -> Option<Requirement> {
    let is_there = old.is_some() || new.is_some();
    let confidence = Confidence::Certain;
    is_there.then_some(Requirement { old, new, meaning: None, problem: None, source, confidence })
}

fn min_kube_version(old: &Bundle<'_>, new: &Bundle<'_>) -> Option<Requirement> {
    let text = |bundle: &Bundle<'_>| -> Option<String> {
        let (value, _) = bundle.described("minKubeVersion")?;
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let source = new.described("minKubeVersion").map_or_else(|| new.source(), |(_, source)| source);
    requirement(text(old), text(new), source)
}

fn max_openshift_version(old: &Bundle<'_>, new: &Bundle<'_>) -> Option<Requirement> {
    let text = |bundle: &Bundle<'_>| {
        let values: Vec<String> = openshift::max_of(bundle).map(super::difference::shown).collect();
        (!values.is_empty()).then(|| values.join(" and "))
    };
    let mut requirement = requirement(text(old), text(new), Source::FromCatalog)?;
    if new.facts.properties.is_empty() {
        requirement.source = Source::FromMetadata;
    }
    match openshift::max(new) {
        None => {}
        Some(Ok(minor)) => requirement.meaning = Some(minor.to_string()),
        Some(Err(error)) => requirement.problem = Some(error.to_string()),
    }
    Some(requirement)
}

fn openshift_versions(old: &Bundle<'_>, new: &Bundle<'_>) -> Option<Requirement> {
    let text = |bundle: &Bundle<'_>| {
        bundle.annotations.get("com.redhat.openshift.versions").map(|text| text.trim().to_owned())
    };
    let mut requirement = requirement(text(old), text(new), Source::FromMetadata)?;
    match requirement.new.as_deref().map(OpenShiftSpan::parse) {
        None => {}
        Some(Ok(span)) => requirement.meaning = Some(span.to_string()),
        Some(Err(error)) => requirement.problem = Some(error.to_string()),
    }
    Some(requirement)
}

fn install_modes(old: &Bundle<'_>, new: &Bundle<'_>) -> Vec<InstallMode> {
    let Some((olds, (news, source))) =
        old.described("installModes").map(|(value, _)| value).zip(new.described("installModes"))
    else {
        return Vec::new();
    };
    let (olds, news) = (supported(olds), supported(news));
    let mode = |mode: &str, change| InstallMode {
        mode: mode.to_owned(),
        change,
        source,
        confidence: Confidence::Certain,
    };
    let is_in = |modes: &BTreeMap<&str, bool>, mode: &str| modes.get(mode) == Some(&true);
    let mut names: Vec<&&str> = olds.keys().chain(news.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let changes =
        names.into_iter().filter_map(|name| match (is_in(&olds, name), is_in(&news, name)) {
            (true, false) => Some(mode(name, Change::Lost)),
            (false, true) => Some(mode(name, Change::Gained)),
            (true, true) | (false, false) => None,
        });
    changes.collect()
}

fn supported(modes: &Value) -> BTreeMap<&str, bool> {
    let list = modes.as_array().into_iter().flatten();
    let modes = list
        .filter_map(|mode| Some((mode.get("type")?.as_str()?, mode.get("supported")?.as_bool()?)));
    modes.collect()
}

fn deprecations(arrived: &[Bundle<'_>]) -> Vec<Deprecation> {
    let mut found: Vec<Deprecation> = Vec::new();
    // The last word on package and channel counts; each bundle has its own.
    for bundle in arrived.iter().rev() {
        for (of, message) in &bundle.facts.deprecated {
            let is_known = found.iter().any(|known| {
                known.of == *of && (*of != Deprecated::Bundle || known.bundle == bundle.name)
            });
            if !is_known {
                found.push(Deprecation {
                    bundle: bundle.name.clone(),
                    of: of.clone(),
                    message: message.clone(),
                    source: Source::FromCatalog,
                    confidence: Confidence::Stated,
                });
            }
        }
    }
    found.sort_by(|a, b| a.of.cmp(&b.of));
    found
}
