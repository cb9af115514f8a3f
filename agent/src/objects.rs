//! The objects of others that the agent reads, cut down to the fields it uses.
//!
//! Fields are named and mean what they do in the API. What is not listed here is never kept: an InstallPlan without its manifests is a few hundred
//! bytes instead of a few hundred thousand.

mod fields;

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use serde::Deserialize;

pub use self::fields::{annotation, field_managers, name, namespace, uid, version};

/// The label of a CSV that was copied from another namespace.
pub const COPIED_FROM: &str = "olm.copiedFrom";
/// The annotation of a Subscription that OLM made for a dependency.
pub const GENERATED_BY: &str = "olm.generated-by";
/// The annotation that keeps a CSV's properties.
pub const PROPERTIES: &str = "operatorframework.io/properties";
/// The annotation of an OperatorGroup that shuts out the global catalogs.
pub const EXCLUDE_GLOBAL: &str = "olm.operatorframework.io/exclude-global-namespace-resolution";

/// What the mirror does with an object before it keeps it.
pub trait Trim {
    /// Drops what nobody reads.
    fn trim(&mut self);
}

macro_rules! kind {
    ($type:ident, $scope:ty, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }
            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

const NO_ANNOTATIONS: &[&str] = &[];

fn trim_meta(meta: &mut ObjectMeta, annotations: &[&str]) {
    meta.managed_fields = None;
    meta.owner_references = None;
    meta.self_link = None;
    if let Some(kept) = &mut meta.annotations {
        kept.retain(|key, _| {
            annotations.contains(&key.as_str()) || key.starts_with("wavelift.io/")
        });
    }
}

// === Subscription ===

/// A Subscription of OLM v0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subscription {
    pub metadata: ObjectMeta,
    pub spec: SubscriptionSpec,
    pub status: SubscriptionStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionSpec {
    pub name: String,
    pub channel: String,
    pub source: String,
    pub source_namespace: String,
    #[serde(rename = "startingCSV")]
    pub starting_csv: Option<String>,
    pub install_plan_approval: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionStatus {
    #[serde(rename = "installedCSV")]
    pub installed_csv: Option<String>,
    #[serde(rename = "currentCSV")]
    pub current_csv: Option<String>,
    pub state: String,
    pub install_plan_ref: Option<Reference>,
    pub conditions: Vec<OlmCondition>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Reference {
    pub name: String,
}

/// A condition as OLM writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OlmCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
}

kind!(
    Subscription,
    NamespaceResourceScope,
    "operators.coreos.com",
    "v1alpha1",
    "Subscription",
    "subscriptions"
);

impl Trim for Subscription {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, &[GENERATED_BY]);
    }
}

impl Subscription {
    /// Namespace and name of the catalog that it reads when nothing is pinned.
    pub fn own_source(&self) -> (&str, &str) {
        self.source_before().unwrap_or((&self.spec.source_namespace, &self.spec.source))
    }

    /// Namespace and name of the catalog that it read before something was pinned.
    pub fn source_before(&self) -> Option<(&str, &str)> {
        annotation(self, wavelift_api::labels::SOURCE_BEFORE)?.split_once('/')
    }
}

// === InstallPlan ===

/// An InstallPlan of OLM v0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallPlan {
    pub metadata: ObjectMeta,
    pub spec: InstallPlanSpec,
    pub status: InstallPlanStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallPlanSpec {
    pub approval: String,
    pub approved: bool,
    pub cluster_service_version_names: Vec<String>,
    pub generation: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallPlanStatus {
    pub phase: String,
    pub message: String,
    pub start_time: Option<jiff::Timestamp>,
    pub conditions: Vec<OlmCondition>,
    /// What it makes, without the manifests.
    pub plan: Vec<PlanStep>,
}

/// One object that an InstallPlan makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    pub resource: PlanResource,
    pub status: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PlanResource {
    pub kind: String,
}

kind!(
    InstallPlan,
    NamespaceResourceScope,
    "operators.coreos.com",
    "v1alpha1",
    "InstallPlan",
    "installplans"
);

impl Trim for InstallPlan {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, NO_ANNOTATIONS);
    }
}

impl InstallPlan {
    /// How many of its steps are done, of how many.
    pub fn steps(&self) -> (usize, usize) {
        let steps = &self.status.plan;
        let is_done = |step: &&PlanStep| matches!(step.status.as_str(), "Created" | "Present");
        (steps.iter().filter(is_done).count(), steps.len())
    }
}

// === ClusterServiceVersion ===

/// A ClusterServiceVersion of OLM v0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Csv {
    pub metadata: ObjectMeta,
    pub spec: CsvSpec,
    pub status: CsvStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsvSpec {
    pub version: String,
    pub replaces: Option<String>,
    pub install: Install,
    #[serde(rename = "customresourcedefinitions")]
    pub definitions: Definitions,
}

/// The definitions that a CSV speaks of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Definitions {
    pub owned: Vec<Reference>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Install {
    pub spec: InstallSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct InstallSpec {
    pub deployments: Vec<Reference>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsvStatus {
    pub phase: String,
    pub reason: String,
    pub message: String,
    pub requirement_status: Vec<Requirement>,
    /// The history; Failed is often too short to be seen otherwise.
    pub conditions: Vec<CsvCondition>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub kind: String,
    pub name: String,
    pub status: String,
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CsvCondition {
    pub phase: String,
    pub reason: String,
    pub message: String,
}

kind!(
    Csv,
    NamespaceResourceScope,
    "operators.coreos.com",
    "v1alpha1",
    "ClusterServiceVersion",
    "clusterserviceversions"
);

/// How much of a CSV's history is kept.
const HISTORY_MAX: usize = 8;

impl Csv {
    /// What OLM has written on it of the properties of its bundle.
    pub fn properties(&self) -> Vec<serde_json::Value> {
        let text = annotation(self, PROPERTIES).unwrap_or_default();
        let mut properties: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        properties["properties"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Trim for Csv {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, &[PROPERTIES]);
        let cut = self.status.conditions.len().saturating_sub(HISTORY_MAX);
        self.status.conditions.drain(..cut);
    }
}

// === OperatorCondition ===

/// An OperatorCondition: what an operator says of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorCondition {
    pub metadata: ObjectMeta,
    pub spec: OperatorConditionSpec,
    pub status: OperatorConditionStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OperatorConditionSpec {
    pub conditions: Vec<Said>,
    pub overrides: Vec<Said>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OperatorConditionStatus {
    pub conditions: Vec<Said>,
}

/// One thing that an operator, or its administrator, says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Said {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub observed_generation: Option<i64>,
}

kind!(
    OperatorCondition,
    NamespaceResourceScope,
    "operators.coreos.com",
    "v2",
    "OperatorCondition",
    "operatorconditions"
);

impl Trim for OperatorCondition {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, NO_ANNOTATIONS);
    }
}

// === OperatorGroup ===

/// An OperatorGroup of OLM v0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OperatorGroup {
    pub metadata: ObjectMeta,
}

kind!(
    OperatorGroup,
    NamespaceResourceScope,
    "operators.coreos.com",
    "v1",
    "OperatorGroup",
    "operatorgroups"
);

impl Trim for OperatorGroup {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, &[EXCLUDE_GLOBAL]);
    }
}

impl OperatorGroup {
    /// True when its namespace does not see the global catalogs.
    pub fn excludes_global(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.and_then(|a| a.get(EXCLUDE_GLOBAL)).is_some_and(|value| value == "true")
    }
}

// === CatalogSource ===

/// A CatalogSource of OLM v0.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CatalogSource {
    pub metadata: ObjectMeta,
    pub spec: CatalogSourceSpec,
    pub status: CatalogSourceStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CatalogSourceSpec {
    pub priority: i32,
    /// Of a registry that is there already; OLM starts none then.
    pub address: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSourceStatus {
    pub connection_state: Option<ConnectionState>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionState {
    pub address: Option<String>,
    /// When the connection's state last changed; `null` before.
    pub last_connect: Option<String>,
    pub last_observed_state: String,
}

kind!(
    CatalogSource,
    NamespaceResourceScope,
    "operators.coreos.com",
    "v1alpha1",
    "CatalogSource",
    "catalogsources"
);

impl Trim for CatalogSource {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, NO_ANNOTATIONS);
    }
}

impl CatalogSource {
    /// `status.connectionState.lastObservedState`, when there is one.
    pub fn connection(&self) -> Option<&str> {
        self.status.connection_state.as_ref().map(|state| state.last_observed_state.as_str())
    }

    /// Host and port of its registry: the one that it was given, else the one that OLM connects to.
    pub fn address(&self) -> Option<&str> {
        let connected = self.status.connection_state.as_ref();
        let given = self.spec.address.as_deref().filter(|address| !address.is_empty());
        let observed = connected.and_then(|state| state.address.as_deref());
        given.or(observed).filter(|address| !address.is_empty())
    }

    /// When the connection's state last changed.
    pub fn last_connect(&self) -> Option<&str> {
        self.status.connection_state.as_ref()?.last_connect.as_deref()
    }
}

// === Deployment ===

/// A Deployment, as far as its rollout goes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    pub metadata: ObjectMeta,
    pub spec: DeploymentSpec,
    pub status: DeploymentStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    pub replicas: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    pub observed_generation: i64,
    pub replicas: u32,
    pub updated_replicas: u32,
    pub available_replicas: u32,
    pub conditions: Vec<OlmCondition>,
}

kind!(Deployment, NamespaceResourceScope, "apps", "v1", "Deployment", "deployments");

impl Trim for Deployment {
    fn trim(&mut self) {
        trim_meta(&mut self.metadata, NO_ANNOTATIONS);
    }
}

// === ClusterVersion ===

/// OpenShift's ClusterVersion.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClusterVersion {
    pub metadata: ObjectMeta,
    pub status: ClusterVersionStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClusterVersionStatus {
    pub history: Vec<Update>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Update {
    pub state: String,
    pub version: String,
}

kind!(
    ClusterVersion,
    ClusterResourceScope,
    "config.openshift.io",
    "v1",
    "ClusterVersion",
    "clusterversions"
);

impl ClusterVersion {
    /// The newest version that was reached.
    pub fn completed(&self) -> Option<&str> {
        let mut reached = self.status.history.iter().filter(|update| update.state == "Completed");
        reached.next().map(|update| update.version.as_str())
    }
}

// === our own ===

impl Trim for wavelift_api::ClusterUpgrade {
    fn trim(&mut self) {
        self.metadata.managed_fields = None;
    }
}
