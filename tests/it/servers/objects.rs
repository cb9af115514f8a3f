//! Objects of a real API server, read and written as JSON.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::harness::wait::PATIENCE;

/// From one look to the next; a watch would not be simpler.
const LOOK: Duration = Duration::from_millis(100);

/// A kind: group, version, kind and plural.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind(&'static str, &'static str, &'static str, &'static str);

pub(crate) const NAMESPACE: Kind = Kind("", "v1", "Namespace", "namespaces");
pub(crate) const SERVICE_ACCOUNT: Kind = Kind("", "v1", "ServiceAccount", "serviceaccounts");
pub(crate) const CLUSTER_ROLE: Kind = rbac("ClusterRole", "clusterroles");
pub(crate) const CLUSTER_ROLE_BINDING: Kind = rbac("ClusterRoleBinding", "clusterrolebindings");
pub(crate) const ROLE: Kind = rbac("Role", "roles");
pub(crate) const ROLE_BINDING: Kind = rbac("RoleBinding", "rolebindings");
pub(crate) const DEPLOYMENT: Kind = Kind("apps", "v1", "Deployment", "deployments");
pub(crate) const CRD: Kind =
    Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
pub(crate) const CATALOG_SOURCE: Kind = olm("v1alpha1", "CatalogSource", "catalogsources");
pub(crate) const SUBSCRIPTION: Kind = olm("v1alpha1", "Subscription", "subscriptions");
pub(crate) const INSTALL_PLAN: Kind = olm("v1alpha1", "InstallPlan", "installplans");
pub(crate) const CSV: Kind = olm("v1alpha1", "ClusterServiceVersion", "clusterserviceversions");
pub(crate) const OPERATOR_GROUP: Kind = olm("v1", "OperatorGroup", "operatorgroups");
pub(crate) const OPERATOR_CONDITION: Kind = olm("v2", "OperatorCondition", "operatorconditions");
pub(crate) const OLM_CONFIG: Kind = olm("v1", "OLMConfig", "olmconfigs");
pub(crate) const CLUSTER_UPGRADE: Kind =
    Kind("wavelift.io", "v1alpha1", "ClusterUpgrade", "clusterupgrades");

pub(crate) const FLEET_UPGRADE: Kind =
    Kind("wavelift.io", "v1alpha1", "FleetUpgrade", "fleetupgrades");
pub(crate) const MANAGED_CLUSTER: Kind =
    Kind("cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters");

const fn olm(version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind("operators.coreos.com", version, kind, plural)
}

const fn rbac(kind: &'static str, plural: &'static str) -> Kind {
    Kind("rbac.authorization.k8s.io", "v1", kind, plural)
}

impl Kind {
    /// A kind that a test defines.
    pub(crate) const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self(group, version, kind, plural)
    }
}

/// The objects of one API server.
#[derive(Clone)]
pub(crate) struct Objects(Client);

// === impl Objects ===

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// A client to whom the same is allowed.
    pub(crate) fn client(&self) -> Client {
        self.0.clone()
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let Kind(group, version, name, plural) = kind;
        let api_version =
            if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: name.to_owned(),
            plural: plural.to_owned(),
        };
        if namespace.is_empty() {
            Api::all_with(self.0.clone(), &resource)
        } else {
            Api::namespaced_with(self.0.clone(), namespace, &resource)
        }
    }

    pub(crate) async fn create(&self, kind: Kind, namespace: &str, object: &Value) -> Result<()> {
        let Kind(group, version, name, _) = kind;
        let mut object = object.clone();
        object["kind"] = json!(name);
        object["apiVersion"] =
            if group.is_empty() { json!(version) } else { json!(format!("{group}/{version}")) };
        let object: DynamicObject = serde_json::from_value(object)?;
        let made = self.api(kind, namespace).create(&PostParams::default(), &object).await;
        made.with_context(|| format!("cannot create {name} {}", object.name_any()))?;
        Ok(())
    }

    pub(crate) async fn get(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        let found = self.api(kind, namespace).get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    pub(crate) async fn list(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>> {
        let list = self.api(kind, namespace).list(&ListParams::default()).await?;
        let values = list.items.into_iter().map(serde_json::to_value);
        Ok(values.collect::<Result<_, _>>()?)
    }

    /// How many there are in all namespaces with these labels; nothing but metadata is read.
    pub(crate) async fn count(&self, kind: Kind, labels: &str) -> Result<usize> {
        let params = ListParams::default().labels(labels);
        Ok(self.api(kind, "").list_metadata(&params).await?.items.len())
    }

    /// A merge patch.
    pub(crate) async fn patch(
        &self,
        kind: Kind,
        (namespace, name): (&str, &str),
        patch: &Value,
    ) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.api(kind, namespace).patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// An apply under another name.
    pub(crate) async fn apply_as(
        &self,
        manager: &str,
        kind: Kind,
        (namespace, name): (&str, &str),
        fields: &Value,
    ) -> Result<()> {
        let Kind(group, version, kind_name, _) = kind;
        let mut object = fields.clone();
        object["kind"] = json!(kind_name);
        object["apiVersion"] = json!(format!("{group}/{version}"));
        let params = PatchParams::apply(manager).force();
        self.api(kind, namespace).patch(name, &params, &Patch::Apply(&object)).await?;
        Ok(())
    }

    /// A merge patch of the status.
    pub(crate) async fn patch_status(
        &self,
        kind: Kind,
        (namespace, name): (&str, &str),
        patch: &Value,
    ) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.api(kind, namespace).patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes all of a kind.
    pub(crate) async fn delete_all(&self, kind: Kind, namespace: &str) -> Result<()> {
        let (all, how) = (ListParams::default(), DeleteParams::default());
        self.api(kind, namespace).delete_collection(&how, &all).await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<()> {
        self.api(kind, namespace).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until `wanted` finds something.
    pub(crate) async fn until<T, F>(&self, what: &str, wanted: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<Option<T>>>,
    {
        self.until_within(PATIENCE, what, wanted).await
    }

    /// Waits for something that OLM itself takes minutes for.
    pub(crate) async fn until_late<T, F>(&self, what: &str, wanted: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<Option<T>>>,
    {
        self.until_within(PATIENCE * 3, what, wanted).await
    }

    async fn until_within<T, F>(
        &self,
        patience: Duration,
        what: &str,
        mut wanted: impl FnMut() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<Option<T>>>,
    {
        let mut last = String::new();
        let found = async {
            let mut turns = interval(LOOK);
            loop {
                turns.tick().await;
                match wanted().await {
                    Ok(Some(found)) => return found,
                    Ok(None) => {}
                    // An API server may be away for a while, and some tests take it away.
                    Err(error) => last = format!("{error:#}"),
                }
            }
        };
        let found = timeout(patience, found).await;
        found.with_context(|| format!("waited in vain for {what} {last}"))
    }

    /// Waits until an object is as `wanted`.
    pub(crate) async fn until_object(
        &self,
        kind: Kind,
        (namespace, name): (&str, &str),
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let what = format!("{} {namespace}/{name}", kind.2);
        let look = || async {
            let found = self.get(kind, namespace, name).await?;
            Ok(found.filter(|object| wanted(object)))
        };
        let found = self.until(&what, look).await;
        match found {
            Ok(found) => Ok(found),
            Err(error) => {
                let last = self.get(kind, namespace, name).await?;
                Err(error.context(format!("it is {}", last.unwrap_or_default())))
            }
        }
    }
}
