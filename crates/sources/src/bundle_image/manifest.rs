//! Image manifests and indexes, of OCI and of Docker.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::reference::{BadReference, Digest};

/// Layers of one image.
const LAYERS_MAX: usize = 128;
/// Images of one index.
const INDEX_MAX: usize = 1000;

/// What a registry may answer with, as it is asked for.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// Why a document is no image of ours.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The manifest does not have the form of one.
    #[error("the image's manifest does not parse")]
    Parse(#[source] serde_json::Error),
    /// The document is a manifest and an index at once, or neither.
    #[error("the image's manifest is neither a manifest nor an index")]
    Form,
    /// Docker's first format.
    #[error("the image has a manifest of Docker's first schema")]
    Schema1,
    /// A name of content is not a SHA-256.
    #[error("the image's manifest names content by something else than a SHA-256")]
    Digest(#[source] BadReference),
    /// There is more of something than any bundle has.
    #[error("the image has {found} {what}, more than {max}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many may be.
        max: usize,
    },
    /// The index names no image.
    #[error("the image's index names no image")]
    EmptyIndex,
    /// An index within an index.
    #[error("the image's index names another index")]
    NestedIndex,
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// What a tag or digest stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Document {
    /// One image: its configuration and its layers, the lowest first.
    Image { config: Descriptor, layers: Vec<Descriptor> },
    /// An image for each platform; the one to take.
    Index { chosen: Descriptor },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    schema_version: u32,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<RawDescriptor>>,
}

#[derive(Deserialize)]
struct RawDescriptor {
    digest: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    platform: Platform,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Platform {
    os: String,
    architecture: String,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    config: Option<Settings>,
}

#[derive(Deserialize)]
struct Settings {
    #[serde(rename = "Labels", default)]
    labels: Option<BTreeMap<String, String>>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Document, Error> {
    let raw: Raw = serde_json::from_slice(bytes).map_err(Error::Parse)?;
    match (raw.config, raw.layers, raw.manifests) {
        (Some(config), Some(layers), None) => {
            within("layers", layers.len(), LAYERS_MAX)?;
            let layers = layers.iter().map(descriptor).collect::<Result<_, _>>()?;
            Ok(Document::Image { config: descriptor(&config)?, layers })
        }
        (None, None, Some(manifests)) => {
            within("images in its index", manifests.len(), INDEX_MAX)?;
            Ok(Document::Index { chosen: chosen(&manifests)? })
        }
        _ if raw.schema_version == 1 => Err(Error::Schema1),
        _ => Err(Error::Form),
    }
}

/// The labels in an image's configuration.
pub(super) fn labels(config: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let config: Config = serde_json::from_slice(config).map_err(Error::Parse)?;
    Ok(config.config.and_then(|settings| settings.labels).unwrap_or_default())
}

fn descriptor(raw: &RawDescriptor) -> Result<Descriptor, Error> {
    let digest = Digest::parse(&raw.digest).map_err(Error::Digest)?;
    Ok(Descriptor { digest, size: raw.size })
}

/// A bundle's files are the same for each platform. What is no platform is an attestation.
fn chosen(manifests: &[RawDescriptor]) -> Result<Descriptor, Error> {
    let rank = |raw: &RawDescriptor| match (&*raw.platform.os, &*raw.platform.architecture) {
        ("linux", "amd64") => 0,
        ("linux", _) => 1,
        ("unknown", _) => 3,
        _ => 2,
    };
    let best = manifests.iter().min_by_key(|raw| rank(raw)).ok_or(Error::EmptyIndex)?;
    descriptor(best)
}

fn within(what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max { Err(Error::TooMany { what, found, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(digit: &str) -> String {
        format!("sha256:{}", digit.repeat(64))
    }

    #[test]
    fn an_index_gives_the_image_that_people_run() {
        let image = |digit: &str, os: &str, architecture: &str| {
            let platform = serde_json::json!({"os": os, "architecture": architecture});
            serde_json::json!({"digest": digest(digit), "size": 1, "platform": platform})
        };
        let attestation = image("0", "unknown", "unknown");
        let bare = serde_json::json!({"digest": digest("3"), "size": 1});
        for (images, expected) in [
            (
                vec![
                    attestation.clone(),
                    image("1", "linux", "s390x"),
                    image("2", "linux", "amd64"),
                ],
                "2",
            ),
            (vec![attestation.clone(), image("1", "linux", "s390x")], "1"),
            (vec![attestation, bare], "3"),
        ] {
            let index = serde_json::json!({"schemaVersion": 2, "manifests": images});
            let Document::Index { chosen } = parse(index.to_string().as_bytes()).unwrap() else {
                panic!("not an index");
            };
            assert_eq!(chosen.digest.as_str(), digest(expected));
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let good = serde_json::json!({"digest": digest("1"), "size": 1});
        let sha512 = serde_json::json!({"digest": "sha512:00", "size": 1});
        for (document, expected) in [
            (serde_json::json!({"schemaVersion": 1, "fsLayers": []}), "first schema"),
            (serde_json::json!({"schemaVersion": 2}), "neither"),
            (serde_json::json!({"config": good, "layers": [], "manifests": []}), "neither"),
            (serde_json::json!({"manifests": []}), "names no image"),
            (serde_json::json!({"config": good, "layers": [sha512]}), "something else"),
            (serde_json::json!({"config": good, "layers": vec![&good; 129]}), "129 layers"),
            (serde_json::json!({"manifests": vec![&good; 1001]}), "1001 images"),
            (serde_json::json!([]), "does not parse"),
        ] {
            let error = parse(document.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn labels_are_in_the_configuration() {
        assert!(labels(b"{}").unwrap().is_empty());
        assert!(labels(br#"{"config":{"Labels":null}}"#).unwrap().is_empty());
        assert_eq!(labels(br#"{"config":{"Labels":{"a":"b"}}}"#).unwrap()["a"], "b");
    }
}
