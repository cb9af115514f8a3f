//! A bundle as the simulated OLM installs it: the manifests that a plan's steps hold.
//!
//! Where the catalog carries manifests they are used, cut down to what somebody can observe;
//! where it carries none, stand-ins named after the package take their place.

use serde_json::{Map, Value, json};

use super::objects::{array, at, text};

/// A bundle chosen by a resolution.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    /// The name of its CSV.
    pub(crate) name: String,
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) channel: String,
    /// What the catalog says it replaces.
    pub(crate) replaces: Option<String>,
    /// The least Kubernetes version, when the catalog names one.
    pub(crate) min_kube_version: Option<String>,
    /// Its properties, as a list of `{type, value}`.
    pub(crate) properties: Vec<Value>,
    /// Its manifests, when the catalog has them.
    pub(crate) objects: Vec<Value>,
    /// The catalog source that it comes from: namespace and name.
    pub(crate) source: (String, String),
}

/// An API that a bundle provides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Api {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Bundle {
    /// The APIs it provides.
    pub(crate) fn provides(&self) -> Vec<Api> {
        let mut apis: Vec<Api> = self
            .properties_of("olm.gvk")
            .map(|value| Api {
                group: text(value, "/group").to_owned(),
                version: text(value, "/version").to_owned(),
                kind: text(value, "/kind").to_owned(),
            })
            .collect();
        apis.sort();
        apis.dedup();
        apis
    }

    /// The CSV to install; `installed` is the CSV that it takes over from.
    pub(crate) fn csv(&self, namespace: &str, installed: Option<&str>) -> Value {
        let inline = self.objects.iter().find(|o| text(o, "/kind") == "ClusterServiceVersion");
        let properties = json!({ "properties": self.properties }).to_string();
        let mut spec = inline.map_or_else(|| self.stand_in_spec(), kept_spec);
        spec.insert("version".to_owned(), json!(self.version));
        let replaces = installed.or(self.replaces.as_deref());
        match replaces {
            Some(replaces) => spec.insert("replaces".to_owned(), json!(replaces)),
            None => spec.remove("replaces"),
        };
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "annotations": {
                    "capabilities": "Basic Install",
                    "operatorframework.io/properties": properties,
                },
                "labels": { "olm.managed": "true" },
            },
            "spec": spec,
        })
    }

    /// The CRDs to install.
    pub(crate) fn crds(&self) -> Vec<Value> {
        let inline: Vec<Value> = self
            .objects
            .iter()
            .filter(|o| text(o, "/kind") == "CustomResourceDefinition")
            .map(kept_crd)
            .collect();
        if inline.is_empty() { self.stand_in_crds() } else { inline }
    }

    fn properties_of(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.properties
            .iter()
            .filter(move |property| text(property, "/type") == kind)
            .filter_map(|property| property.get("value"))
    }

    fn stand_in_spec(&self) -> Map<String, Value> {
        let owned: Vec<Value> = self
            .provides()
            .iter()
            .map(|api| json!({ "name": api.crd_name(), "version": api.version, "kind": api.kind }))
            .collect();
        let mut spec = Map::new();
        if let Some(version) = &self.min_kube_version {
            spec.insert("minKubeVersion".to_owned(), json!(version));
        }
        spec.insert("customresourcedefinitions".to_owned(), json!({ "owned": owned }));
        let image = format!("registry.example.com/{}:{}", self.package, self.version);
        spec.insert(
            "install".to_owned(),
            json!({ "strategy": "deployment", "spec": { "deployments": [
                { "name": self.package, "spec": deployment_spec(&self.package, &image, 1) },
            ] } }),
        );
        spec
    }

    fn stand_in_crds(&self) -> Vec<Value> {
        let mut by_name = std::collections::BTreeMap::<String, Vec<Api>>::new();
        for api in self.provides() {
            by_name.entry(api.crd_name()).or_default().push(api);
        }
        let crd = |(name, apis): (String, Vec<Api>)| {
            let last = apis.last()?;
            let versions: Vec<Value> = apis
                .iter()
                .map(|api| json!({ "name": api.version, "served": true, "storage": api == last }))
                .collect();
            Some(json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": name, "labels": { "olm.managed": "true" } },
                "spec": {
                    "group": last.group,
                    "names": { "kind": last.kind, "plural": last.plural() },
                    "scope": "Namespaced",
                    "versions": versions,
                },
            }))
        };
        by_name.into_iter().filter_map(crd).collect()
    }
}

impl Api {
    fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    /// The name of the CRD that defines it, by the plural that most kinds have.
    pub(crate) fn crd_name(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
    }
}

/// What is kept of an inline CSV's spec: what OLM and an observer look at.
fn kept_spec(csv: &Value) -> Map<String, Value> {
    let mut spec = Map::new();
    for field in ["displayName", "minKubeVersion", "installModes", "webhookdefinitions"] {
        if let Some(value) = at(csv, "/spec").get(field) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    let owned: Vec<Value> = array(csv, "/spec/customresourcedefinitions/owned")
        .iter()
        .map(|crd| json!({ "name": crd["name"], "version": crd["version"], "kind": crd["kind"] }))
        .collect();
    spec.insert("customresourcedefinitions".to_owned(), json!({ "owned": owned }));
    let deployments: Vec<Value> =
        array(csv, "/spec/install/spec/deployments").iter().map(kept_deployment).collect();
    let strategy = json!({ "strategy": "deployment", "spec": { "deployments": deployments } });
    spec.insert("install".to_owned(), strategy);
    spec
}

fn kept_deployment(deployment: &Value) -> Value {
    let name = text(deployment, "/name");
    let image = text(deployment, "/spec/template/spec/containers/0/image");
    let replicas = at(deployment, "/spec/replicas").as_u64().unwrap_or(1);
    json!({ "name": name, "spec": deployment_spec(name, image, replicas) })
}

fn deployment_spec(name: &str, image: &str, replicas: u64) -> Value {
    json!({
        "replicas": replicas,
        "selector": { "matchLabels": { "name": name } },
        "template": {
            "metadata": { "labels": { "name": name } },
            "spec": { "containers": [{ "name": "manager", "image": image }] },
        },
    })
}

fn kept_crd(crd: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": text(crd, "/metadata/name"), "labels": { "olm.managed": "true" } },
        "spec": at(crd, "/spec"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Bundle {
        Bundle {
            name: "tea.v1.1.0".to_owned(),
            package: "tea".to_owned(),
            version: "1.1.0".to_owned(),
            channel: "stable".to_owned(),
            replaces: Some("tea.v1.0.5".to_owned()),
            min_kube_version: Some("1.29.0".to_owned()),
            properties: vec![json!({
                "type": "olm.gvk", "value": { "group": "g.io", "version": "v1", "kind": "Pot" },
            })],
            objects: vec![],
            source: ("ns".to_owned(), "cat".to_owned()),
        }
    }

    #[test]
    fn a_bundle_without_manifests_gets_stand_ins() {
        let csv = bundle().csv("ns", None);
        assert_eq!(text(&csv, "/spec/replaces"), "tea.v1.0.5");
        assert_eq!(text(&csv, "/spec/minKubeVersion"), "1.29.0");
        assert_eq!(text(&csv, "/spec/install/spec/deployments/0/name"), "tea");
        let annotation = text(&csv, "/metadata/annotations/operatorframework.io~1properties");
        assert!(annotation.contains("olm.gvk"));
        let crds = bundle().crds();
        assert_eq!(crds.len(), 1);
        assert_eq!(text(&crds[0], "/metadata/name"), "pots.g.io");
    }

    #[test]
    fn a_csv_replaces_what_is_installed_whatever_its_bundle_says() {
        let csv = bundle().csv("ns", Some("tea.v1.0.0"));
        assert_eq!(text(&csv, "/spec/replaces"), "tea.v1.0.0");
    }
}
