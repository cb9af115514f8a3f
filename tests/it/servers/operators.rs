//! Operators that do nothing, for a real OLM to install.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// A version of an operator.
#[derive(Debug, Clone)]
pub(crate) struct Release<'a> {
    pub(crate) package: &'a str,
    pub(crate) version: &'a str,
    /// The version before it in the channel.
    pub(crate) replaces: Option<&'a str>,
    pub(crate) skip_range: Option<&'a str>,
    pub(crate) min_kube_version: Option<&'a str>,
    /// The channel that it is in.
    pub(crate) channel: &'a str,
    /// Further properties of the bundle.
    pub(crate) properties: Vec<Value>,
    /// Further manifests of the bundle. Definitions among them are owned.
    pub(crate) manifests: Vec<Value>,
    /// Fields of the CSV's spec that are not what they are in all others.
    pub(crate) spec: Vec<(&'a str, Value)>,
}

/// A kind that a definition defines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defined<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) plural: &'a str,
}

/// A version of a kind, and what `spec.size` must be.
#[derive(Debug, Clone)]
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_stored: bool,
    pub(crate) size: Value,
}

// === impl Release ===

impl<'a> Release<'a> {
    pub(crate) fn new(package: &'a str, version: &'a str) -> Self {
        Self {
            package,
            version,
            replaces: None,
            skip_range: None,
            min_kube_version: None,
            channel: "stable",
            properties: vec![],
            manifests: vec![],
            spec: vec![],
        }
    }

    /// A manifest more.
    pub(crate) fn with(mut self, manifest: Value) -> Self {
        self.manifests.push(manifest);
        self
    }

    /// Definitions of the bundle: name, group, kind, plural and versions.
    fn definitions(&self) -> impl Iterator<Item = &Value> {
        let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
        self.manifests.iter().filter(is_definition)
    }

    pub(crate) fn replaces(mut self, version: &'a str) -> Self {
        self.replaces = Some(version);
        self
    }

    pub(crate) fn skip_range(mut self, range: &'a str) -> Self {
        self.skip_range = Some(range);
        self
    }

    pub(crate) fn channel(mut self, channel: &'a str) -> Self {
        self.channel = channel;
        self
    }

    fn csv_name(&self) -> String {
        csv_name(self.package, self.version)
    }

    fn entry(&self) -> Value {
        let mut entry = json!({"name": self.csv_name()});
        if let Some(version) = self.replaces {
            entry["replaces"] = json!(csv_name(self.package, version));
        }
        if let Some(range) = self.skip_range {
            entry["skipRange"] = json!(range);
        }
        entry
    }

    fn csv(&self) -> Value {
        let Self { package, version, .. } = self;
        let labels = json!({"app": package});
        let pod = json!({
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": package, "containers": [
                {"name": "main", "image": format!("registry.example.com/{package}:{version}")}]},
        });
        let deployment = json!({"name": package, "spec": {
            "replicas": 1, "selector": {"matchLabels": labels}, "template": pod}});
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
        let permissions = json!([{"serviceAccountName": package, "rules": rules}]);
        let mode =
            |name: &str, is_supported: bool| json!({"type": name, "supported": is_supported});
        let mut spec = json!({
            "displayName": package, "version": version,
            "install": {"strategy": "deployment",
                "spec": {"deployments": [deployment], "permissions": permissions}},
            "installModes": [mode("OwnNamespace", true), mode("SingleNamespace", true),
                mode("MultiNamespace", false), mode("AllNamespaces", true)],
        });
        if let Some(version) = self.replaces {
            spec["replaces"] = json!(csv_name(package, version));
        }
        if let Some(version) = self.min_kube_version {
            spec["minKubeVersion"] = json!(version);
        }
        let owned: Vec<Value> = self
            .apis()
            .map(|(definition, version)| {
                let kind = &definition["spec"]["names"]["kind"];
                json!({"name": definition["metadata"]["name"], "kind": kind, "version": version})
            })
            .collect();
        if !owned.is_empty() {
            spec["customresourcedefinitions"] = json!({"owned": owned});
        }
        for (field, value) in &self.spec {
            spec[*field] = value.clone();
        }
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": self.csv_name()}, "spec": spec,
        })
    }

    /// Each version of each definition.
    fn apis(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.definitions().flat_map(|definition| {
            let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
            versions.map(move |version| (definition, &version["name"]))
        })
    }

    fn bundle(&self) -> Value {
        let value = json!({"packageName": self.package, "version": self.version});
        let mut properties = vec![json!({"type": "olm.package", "value": value})];
        properties.extend(self.properties.iter().cloned());
        for (definition, version) in self.apis() {
            let spec = &definition["spec"];
            let value = json!({"group": spec["group"], "kind": spec["names"]["kind"],
                "version": version});
            properties.push(json!({"type": "olm.gvk", "value": value}));
        }
        for manifest in [&self.csv()].into_iter().chain(&self.manifests) {
            let data = STANDARD.encode(manifest.to_string());
            properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
        }
        // Without an image: a real OLM would want a Job to unpack it.
        json!({"schema": "olm.bundle", "package": self.package, "name": self.csv_name(),
            "image": "", "properties": properties})
    }
}

// === impl Defined ===

impl Defined<'_> {
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// A definition with these versions.
    pub(crate) fn definition(&self, versions: &[Version<'_>]) -> Value {
        let version = |version: &Version<'_>| {
            let spec = json!({"type": "object", "properties": {"size": version.size}});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            json!({"name": version.name, "served": true, "storage": version.is_stored,
                "schema": {"openAPIV3Schema": schema}})
        };
        let versions: Vec<Value> = versions.iter().map(version).collect();
        let Self { group, kind, plural } = self;
        let names = json!({"kind": kind, "plural": plural, "singular": kind.to_lowercase(),
            "listKind": format!("{kind}List")});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": versions},
        })
    }
}

// === impl Version ===

impl<'a> Version<'a> {
    /// A version whose objects have an integer of at most `max`, or any where there is none.
    pub(crate) fn new(name: &'a str, max: Option<i64>) -> Self {
        let mut size = json!({"type": "integer"});
        if let Some(max) = max {
            size["maximum"] = json!(max);
        }
        Self { name, is_stored: false, size }
    }

    pub(crate) fn stored(mut self) -> Self {
        self.is_stored = true;
        self
    }
}

/// The name of a version's CSV.
pub(crate) fn csv_name(package: &str, version: &str) -> String {
    format!("{package}.v{version}")
}

/// The documents of a catalog that holds these; each package's default channel is `stable`.
pub(crate) fn catalog(releases: &[Release<'_>]) -> Vec<Value> {
    let mut packages: Vec<&str> = releases.iter().map(|release| release.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let mut documents = vec![];
    for package in packages {
        let own = releases.iter().filter(|release| release.package == package);
        documents.push(json!({
            "schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let mut channels: Vec<&str> = own.clone().map(|release| release.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        for channel in channels {
            let within = own.clone().filter(|release| release.channel == channel);
            let entries: Vec<Value> = within.map(Release::entry).collect();
            documents.push(json!({
                "schema": "olm.channel", "package": package, "name": channel, "entries": entries}));
        }
        documents.extend(own.map(Release::bundle));
    }
    documents
}
