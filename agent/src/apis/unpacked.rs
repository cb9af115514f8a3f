//! Manifests of a bundle that its catalog does not carry: OLM has unpacked the image before it makes
//! an InstallPlan, and the plan's steps hold them, or say in which ConfigMap they are.

use std::{collections::BTreeMap, io::Read as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use serde_json::Value;
use wavelift_catalog::manifests::{Limits, Manifests};
use wavelift_core::causes::sentence;

/// Bytes of one unpacked manifest.
const MANIFEST_MAX: u64 = 16 << 20;

/// Where a plan has the manifests of a bundle.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kept {
    /// In itself.
    Inline(Vec<Value>),
    /// In a ConfigMap.
    ConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It has none.
    Nowhere,
}

/// Where an InstallPlan has the manifests of a CSV's bundle.
pub(super) fn kept(plan: &Value, csv: &str) -> Kept {
    let steps = plan.pointer("/status/plan").and_then(Value::as_array);
    let own = steps.into_iter().flatten().filter(|step| step["resolving"] == csv);
    let texts = own.filter_map(|step| step.pointer("/resource/manifest").and_then(Value::as_str));
    let mut manifests = vec![];
    for manifest in texts.filter_map(|text| serde_json::from_str::<Value>(text).ok()) {
        // A ConfigMap of the bundle has its name elsewhere.
        let text = |field: &str| manifest[field].as_str().filter(|text| !text.is_empty());
        if manifest["kind"] == "ConfigMap"
            && let (Some(name), Some(namespace), Some(_)) =
                (text("name"), text("namespace"), text("catalogSourceName"))
        {
            let (name, namespace) = (name.to_owned(), namespace.to_owned());
            return Kept::ConfigMap { namespace, name };
        }
        manifests.push(manifest);
    }
    if manifests.is_empty() { Kept::Nowhere } else { Kept::Inline(manifests) }
}

/// The manifests in a ConfigMap of OLM's.
pub(super) fn manifests(config_map: &Value) -> Result<Vec<Value>, String> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (field, decode) in [("data", plain as Decode), ("binaryData", packed)] {
        let texts = config_map[field].as_object().into_iter().flatten();
        for (name, text) in texts.filter_map(|(name, text)| Some((name, text.as_str()?))) {
            let content = decode(text).map_err(|why| format!("{name}: {why}"))?;
            // Whatever its ending, it is YAML or JSON.
            let name = format!("{}.yaml", name.trim_end_matches(".yaml"));
            files.insert(name, content);
        }
    }
    let read = Manifests::from_files(&files, BTreeMap::new(), &Limits::default());
    let read = read.and_then(|manifests| manifests.objects());
    read.map_err(|error| sentence(&error))
}

type Decode = fn(&str) -> Result<Vec<u8>, String>;

#[expect(clippy::unnecessary_wraps, reason = "one of two ways to decode")]
fn plain(text: &str) -> Result<Vec<u8>, String> {
    Ok(text.as_bytes().to_vec())
}

/// Compressed, and base64 within the base64 that all binary data is.
fn packed(text: &str) -> Result<Vec<u8>, String> {
    let decode = |bytes: &[u8]| STANDARD.decode(bytes).map_err(|error| error.to_string());
    let compressed = decode(&decode(text.as_bytes())?)?;
    let mut content = vec![];
    let mut reader = GzDecoder::new(compressed.as_slice()).take(MANIFEST_MAX + 1);
    reader.read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > MANIFEST_MAX {
        return Err(format!("more than {MANIFEST_MAX} bytes"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;

    fn plan(manifests: &[Value]) -> Value {
        let step = |manifest: &Value| json!({"resolving": "oak.v2", "resource": {"kind": "K", "manifest": manifest.to_string()}});
        let mut steps: Vec<Value> = manifests.iter().map(step).collect();
        steps.push(json!({"resolving": "elm.v1", "resource": {"manifest": "{\"kind\":\"E\"}"}}));
        json!({"status": {"plan": steps}})
    }

    #[test]
    fn a_plan_has_manifests_itself_or_says_where_they_are() {
        let own = [json!({"kind": "ConfigMap", "metadata": {"name": "a"}}), json!({"kind": "B"})];
        assert_eq!(kept(&plan(&own), "oak.v2"), Kept::Inline(own.to_vec()));
        assert_eq!(kept(&plan(&[]), "oak.v2"), Kept::Nowhere);
        let reference = json!({"kind": "ConfigMap", "name": "abc", "namespace": "market",
            "catalogSourceName": "own", "catalogSourceNamespace": "market", "replaces": ""});
        let expected = Kept::ConfigMap { namespace: "market".to_owned(), name: "abc".to_owned() };
        assert_eq!(kept(&plan(&[reference]), "oak.v2"), expected);
    }

    #[test]
    fn manifests_are_read_plain_and_packed() {
        let csv = "kind: ClusterServiceVersion\napiVersion: operators.coreos.com/v1alpha1\n\
            metadata: {name: oak.v2}\nspec: {version: 2.0.0}\n";
        let crd = "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n\
            metadata: {name: oaks.example.com}\nspec: {group: example.com}\n";
        let mut gzip = GzEncoder::new(vec![], Compression::default());
        gzip.write_all(crd.as_bytes()).unwrap();
        let packed = STANDARD.encode(STANDARD.encode(gzip.finish().unwrap()));
        let map = json!({"data": {"oak.csv.yaml": csv}, "binaryData": {"oaks.crd.yaml": packed}});
        let found = manifests(&map).unwrap();
        let mut kinds: Vec<&str> =
            found.iter().filter_map(|object| object["kind"].as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["ClusterServiceVersion", "CustomResourceDefinition"]);
        let broken = json!({"binaryData": {"a": "e30="}});
        assert!(manifests(&broken).unwrap_err().starts_with("a: "));
    }
}
