//! The catalogs of a recording: its lists of channels, and what its CSVs say of themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use wavelift_catalog::{Catalog, Fbc, Limits};

use super::recording::Line;
use crate::olm_v0::objects::{array, text};

/// What is known of bundles besides their place in a channel, by CSV.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    properties: BTreeMap<String, Vec<Value>>,
    /// The CSVs whose CRDs are converted by a webhook, with their install modes.
    converting: BTreeMap<String, Value>,
}

impl Bundles {
    /// Collects the properties and the least Kubernetes version of every CSV that appears.
    pub(super) fn of(lines: &[Line]) -> Self {
        let mut of = BTreeMap::new();
        for line in lines {
            let Line::Event { kind, name, object, .. } = line else { continue };
            if kind != "ClusterServiceVersion" || of.contains_key(name) {
                continue;
            }
            let annotation = text(object, "/metadata/annotations/operatorframework.io~1properties");
            let said: Value = serde_json::from_str(annotation).unwrap_or_default();
            let mut properties = said["properties"].as_array().cloned().unwrap_or_default();
            properties.retain(|property| text(property, "/type") != "olm.package");
            if let Some(least) = object.pointer("/spec/minKubeVersion") {
                properties.push(json!({
                    "type": "olm.csv.metadata", "value": { "minKubeVersion": least },
                }));
            }
            of.insert(name.clone(), properties);
        }
        Self { properties: of, converting: converting(lines) }
    }

    /// A catalog with these packages, each a map of channels to entries.
    pub(super) fn catalog(&self, packages: &Value) -> Arc<Catalog> {
        let mut blobs = Vec::new();
        for (package, channels) in packages.as_object().into_iter().flatten() {
            let channels = channels.as_object().expect("channels are a map");
            let first = channels.keys().next().cloned().unwrap_or_default();
            blobs.push(json!({
                "schema": "olm.package", "name": package, "defaultChannel": first,
            }));
            let mut names = BTreeSet::new();
            for (channel, entries) in channels {
                names.extend(entries.as_array().into_iter().flatten().map(|e| text(e, "/name")));
                blobs.push(json!({
                    "schema": "olm.channel",
                    "package": package,
                    "name": channel,
                    "entries": entries,
                }));
            }
            blobs.extend(names.into_iter().map(|name| self.bundle(package, name)));
        }
        let lines: Vec<String> = blobs.iter().map(Value::to_string).collect();
        let text = lines.join("\n");
        let limits = Limits::default();
        let fbc = Fbc::parse("catalog.json", text.as_bytes(), &limits).expect("it is a catalog");
        Arc::new(Catalog::from_fbc(fbc, &limits).expect("nothing is defined twice"))
    }

    fn bundle(&self, package: &str, name: &str) -> Value {
        let version = name.split_once(".v").map_or("", |(_, version)| version);
        let mut properties = vec![json!({
            "type": "olm.package", "value": { "packageName": package, "version": version },
        })];
        properties.extend(self.properties.get(name).into_iter().flatten().cloned());
        if let Some(modes) = self.converting.get(name) {
            properties.push(inline(package, name, modes));
        }
        json!({
            "schema": "olm.bundle",
            "name": name,
            "package": package,
            "image": format!("registry.example.com/{package}-bundle:{version}"),
            "properties": properties,
        })
    }
}

/// The CSVs that came with a CRD that a webhook converts. Recorded CSVs have no install modes, but
/// a namespace whose operator group targets everything could take none but those for everything.
fn converting(lines: &[Line]) -> BTreeMap<String, Value> {
    let events = || {
        lines.iter().filter_map(|line| match line {
            Line::Event { kind, object, .. } => Some((kind.as_str(), object)),
            Line::Action { .. } | Line::Note(_) => None,
        })
    };
    let for_some = events().any(|(kind, object)| {
        kind == "OperatorGroup" && !array(object, "/spec/targetNamespaces").is_empty()
    });
    let modes = json!([
        { "type": "OwnNamespace", "supported": for_some },
        { "type": "AllNamespaces", "supported": true },
    ]);
    let mut converting = BTreeMap::new();
    let mut plain = BTreeSet::new();
    for (_, object) in events().filter(|(kind, _)| *kind == "CustomResourceDefinition") {
        let annotations = object["metadata"]["annotations"].as_object();
        let csvs = annotations.into_iter().flatten().filter_map(|(name, value)| {
            let alongside = name.starts_with("operatorframework.io/installed-alongside-");
            value.as_str().filter(|_| alongside)?.split('/').nth(1).map(str::to_owned)
        });
        for csv in csvs {
            if text(object, "/spec/conversion/strategy") != "Webhook" {
                plain.insert(csv);
            } else if !plain.contains(&csv) {
                converting.insert(csv, modes.clone());
            }
        }
    }
    converting
}

/// The manifest of a CSV with a conversion webhook.
fn inline(package: &str, name: &str, modes: &Value) -> Value {
    let manifest = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": { "name": name },
        "spec": {
            "installModes": modes,
            "webhookdefinitions": [{ "type": "ConversionWebhook", "deploymentName": package }],
            "install": { "strategy": "deployment", "spec": { "deployments": [{
                "name": package,
                "spec": {
                    "replicas": 1,
                    "template": { "spec": { "containers": [{ "image": name }] } },
                },
            }] } },
        },
    });
    json!({ "type": "olm.bundle.object", "value": { "data": STANDARD.encode(manifest.to_string()) } })
}
