//! The catalogs of a recording: its lists of channels, and what its CSVs say of themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};
use wavelift_catalog::{Catalog, Fbc, Limits};

use super::recording::Line;
use crate::olm_v0::objects::text;

/// What is known of bundles besides their place in a channel, by CSV.
#[derive(Debug, Default)]
pub(super) struct Bundles(BTreeMap<String, Vec<Value>>);

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
        Self(of)
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
        properties.extend(self.0.get(name).into_iter().flatten().cloned());
        json!({
            "schema": "olm.bundle",
            "name": name,
            "package": package,
            "image": format!("registry.example.com/{package}-bundle:{version}"),
            "properties": properties,
        })
    }
}
