//! What an upgrade changes: per hop, and over the whole path from the installed version to the
//! target.
//!
//! [`path`] compares the manifests of the path's bundles and what the catalog says about them. Where
//! manifests are missing the preview says so ([`Missing`]); an empty list next to that means "not
//! known", never "no change". [`render`] turns a preview into text, Markdown or HTML; its JSON form
//! is published as `docs/reference/preview.schema.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavelift_core::version::Version;

pub use self::{
    alert::Alert,
    api_service::ApiService,
    compatibility::{
        Compatibility, Dependency, DependencyChange, DependencyKind, Deprecation, InstallMode,
        Lifecycle, OpenShift, OpenShiftError, OpenShiftSpan, Phase, Platform, Requirement,
    },
    crd::{Crd, CrdClass, CrdRefusal, CrdVersionChange, CrdVersionChangeKind, SchemaChange},
    deployment::{Aspect, Deployment},
    difference::{Difference, ObjectChange},
    facts::{Deprecated, Facts},
    image::Image,
    notes::{Assessment, Brought, BroughtKind, ManualStep, Notes, ReleaseNote},
    object::{Object, RoleEntry},
    permission::{CoveredBy, Danger, Entry, Permission, Scope},
    summary::{Headline, Importance},
    webhook::Webhook,
};
use crate::{fbc::FieldError, manifests::Manifests};

mod alert;
mod api_service;
mod bundle;
mod compatibility;
mod crd;
mod danger;
mod deployment;
mod difference;
mod facts;
mod image;
mod notes;
mod object;
mod permission;
pub mod render;
mod summary;
mod webhook;
mod words;

/// One version on the path, with all that is known about it.
#[derive(Debug, Clone, Default)]
pub struct Step<'a> {
    /// The CSV's name, which is the bundle's.
    pub name: String,
    /// Its version, if the catalog's text is one.
    pub version: Option<Version>,
    /// Its manifests; nothing if they could not be had.
    pub manifests: Option<&'a Manifests>,
    /// Why there are no manifests, for people; empty where nobody knows.
    pub missing_because: String,
    /// What the catalog says about it.
    pub facts: Facts<'a>,
    /// The versions that the hop to this one jumps over. Their release notes count, no more.
    pub skipped: Vec<Self>,
}

/// All changes of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The package, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// What each hop changes, in order.
    pub hops: Vec<Changes>,
    /// What the whole path changes: the target against what is installed.
    pub overall: Changes,
    /// What to know first, the most important on top.
    pub summary: Vec<Headline>,
}

/// What changes between two versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The CSV before.
    pub from: String,
    /// The CSV after.
    pub to: String,
    /// Its version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_version: Option<String>,
    /// Its version after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_version: Option<String>,
    /// What could not be looked at. An empty list of a section that is named here means nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Permissions of the CSV gained and lost, the most dangerous first.
    pub permissions: Vec<Permission>,
    /// How many permissions stay as they are.
    #[serde(default)]
    pub permissions_kept: usize,
    /// Permissions that the path needs in between and that the target gives up again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions_on_the_way: Vec<Permission>,
    /// All images that the new version pulls; over a whole path, those of every version after the
    /// installed one.
    pub images: Vec<Image>,
    /// Images that are named in the environment of the operator's containers only: most likely they
    /// are pulled for what it manages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images_in_environment: Vec<Image>,
    /// Images that the installed version pulls and the new one does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images_gone: Vec<String>,
    /// Roles and bindings that the bundle ships beside the CSV's permissions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rbac_objects: Vec<Object>,
    /// Custom resource definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<Crd>,
    /// Webhooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<Webhook>,
    /// Aggregated APIs that the operator serves itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_services: Vec<ApiService>,
    /// The operator's own Deployments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deployments: Vec<Deployment>,
    /// Other objects of the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Object>,
    /// Alert rules that change, and those that warn before upgrades.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Alert>,
    /// What the new version asks of the cluster.
    #[serde(default)]
    pub compatibility: Compatibility,
    /// What authors say.
    #[serde(default)]
    pub notes: Notes,
}

/// Whether something comes or goes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Change {
    /// The new version has it, the old one not.
    Gained,
    /// The old version has it, the new one not.
    Lost,
}

/// Where a statement comes from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Source {
    /// The manifests that OLM will apply.
    FromManifests,
    /// The bundle's metadata files or labels.
    FromMetadata,
    /// The catalog: properties, related images, CSV metadata, deprecations.
    FromCatalog,
    /// The catalog's lifecycle document.
    FromLifecycle,
    /// The author's release document.
    FromRelease,
    /// The `artifacthub.io/changes` annotation.
    FromArtifactHub,
    /// The CSV's description.
    FromDescription,
    /// The CSV's links.
    FromLinks,
    /// Nowhere: it was not there to be read.
    Missing,
}

/// How sure a statement is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Confidence {
    /// It stands in what OLM applies.
    Certain,
    /// The author says so.
    Stated,
    /// It was concluded from other facts.
    Inferred,
    /// It could not be told.
    Unknown,
}

/// A part of a preview.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Section {
    /// Known effects, by the author's word.
    Assessments,
    /// What people have to do themselves.
    ManualSteps,
    /// What the operator's service accounts may do.
    Permissions,
    /// Custom resource definitions.
    Crds,
    /// Webhooks.
    Webhooks,
    /// Aggregated APIs.
    ApiServices,
    /// The operator's Deployments.
    Deployments,
    /// Images to pull.
    Images,
    /// Other objects of the bundle.
    Objects,
    /// Alert rules.
    Alerts,
    /// Platform, install modes, dependencies.
    Compatibility,
    /// Release notes.
    ReleaseNotes,
}

/// What could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// Of which bundle.
    pub bundle: String,
    /// The parts of the preview that lack it.
    pub sections: Vec<Section>,
    /// Why, for people.
    pub reason: String,
    /// Always `Missing`.
    pub source: Source,
    /// Always `Unknown`.
    pub confidence: Confidence,
}

// === impl Step ===

impl<'a> Step<'a> {
    /// A version of which there are manifests and nothing else. Nothing if they hold no CSV.
    pub fn of_manifests(manifests: &'a Manifests) -> Option<Self> {
        let csv = manifests.csv()?;
        let text = |pointer: &str| csv.pointer(pointer).and_then(Value::as_str);
        Some(Self {
            name: text("/metadata/name")?.to_owned(),
            version: text("/spec/version").and_then(|text| Version::parse_tolerant(text).ok()),
            manifests: Some(manifests),
            ..Self::default()
        })
    }
}

/// What the bundles of a path change. The first is installed, the last is the target.
pub fn path(bundles: &[Step<'_>]) -> Preview {
    let bundles: Vec<bundle::Bundle<'_>> = bundles.iter().map(bundle::Bundle::of).collect();
    let package = bundles.iter().rev().find_map(|b| b.package.clone());
    let mut hops: Vec<Changes> = bundles.windows(2).map(changes).collect();
    let mut overall = changes(&bundles);
    overall.permissions_on_the_way = permission::on_the_way(&mut hops);
    let mut preview = Preview { package, hops, overall, summary: Vec::new() };
    preview.summary = summary::of(&preview);
    preview
}

/// Whether a CSV has the form that is read here.
pub(crate) fn check(csv: &Value) -> Result<(), FieldError> {
    permission::of_csv(csv)?;
    image::of_csv(csv)?;
    Ok(())
}

/// From the first of the bundles to the last, by way of the others.
fn changes(bundles: &[bundle::Bundle<'_>]) -> Changes {
    let (Some(old), Some(new)) = (bundles.first(), bundles.last()) else {
        return Changes::default();
    };
    let mut changes = Changes {
        from: old.name.clone(),
        to: new.name.clone(),
        from_version: old.version_text(),
        to_version: new.version_text(),
        missing: bundles.iter().flat_map(bundle::Bundle::all_missing).collect(),
        ..Changes::default()
    };
    permission::compare(&mut changes, old, new);
    changes.images = image::of_path(bundles);
    changes.images_in_environment = image::in_environment(bundles);
    changes.images_gone = image::gone(old, new);
    changes.api_services = api_service::compare(old, new);
    let (compatibility, missing) = compatibility::compare(bundles);
    changes.compatibility = compatibility;
    changes.missing.extend(missing);
    changes.notes = notes::of_path(bundles);
    if let Some((old, new)) = old.content.as_ref().zip(new.content.as_ref()) {
        (changes.rbac_objects, changes.objects) = object::compare(old, new);
        changes.crds = crd::compare(old, new);
        changes.webhooks = webhook::compare(old, new);
        changes.deployments = deployment::compare(old, new);
        changes.alerts = alert::compare(old, new);
    }
    changes
}

#[cfg(test)]
mod tests;
