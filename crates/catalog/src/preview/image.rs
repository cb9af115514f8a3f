//! Images to pull, and to mirror before that where there is no internet access.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Confidence, Facts, Source, bundle::Bundle};
use crate::{fbc::FieldError, manifests::view::View};

/// An image that a version pulls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The pull specification.
    pub image: String,
    /// Its digest; absent where the image is named by a tag, which may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether the version before does not pull it.
    pub is_new: bool,
    /// The CSVs that pull it.
    pub bundles: Vec<String>,
    /// What names it, e.g. a container.
    pub used_by: Vec<String>,
    /// Where this comes from.
    pub source: Source,
    /// How sure it is.
    pub confidence: Confidence,
}

/// One mention of an image.
#[derive(Debug, Clone)]
pub(super) struct Used {
    image: String,
    by: String,
    source: Source,
}

// === impl Image ===

impl Image {
    fn of(used: &Used, is_new: bool) -> Self {
        Self {
            image: used.image.clone(),
            digest: used.image.rsplit_once('@').map(|(_, digest)| digest.to_owned()),
            is_new,
            bundles: Vec::new(),
            used_by: Vec::new(),
            source: used.source,
            confidence: Confidence::Certain,
        }
    }
}

/// What the catalog names.
pub(super) fn of_catalog(facts: &Facts<'_>) -> Vec<Used> {
    let related = facts.related_images.iter().filter(|related| !related.image.is_empty());
    let used = related.map(|related| {
        let by = match related.name.as_str() {
            "" => "relatedImages".to_owned(),
            name => format!("relatedImages {name}"),
        };
        Used { image: related.image.clone(), by, source: Source::FromCatalog }
    });
    used.collect()
}

/// What the CSV names: its related images, and the containers of its Deployments.
pub(super) fn of_csv(csv: &Value) -> Result<Vec<Used>, FieldError> {
    let csv = View::root(csv);
    let mut used = Vec::new();
    let mut add = |image: &View<'_>, by: String| -> Result<(), FieldError> {
        if let Some(image) = image.text()?.map(str::trim).filter(|image| !image.is_empty()) {
            used.push(Used { image: image.to_owned(), by, source: Source::FromManifests });
        }
        Ok(())
    };
    for related in csv.find(&["spec", "relatedImages"])?.items()? {
        let name = related.get("name")?.text()?.unwrap_or_default();
        add(&related.get("image")?, format!("relatedImages {name}").trim_end().to_owned())?;
    }
    for deployment in csv.find(&["spec", "install", "spec", "deployments"])?.items()? {
        let name = deployment.get("name")?.text()?.unwrap_or_default();
        let pod = deployment.find(&["spec", "template", "spec"])?;
        for (field, what) in [("initContainers", "initContainer"), ("containers", "container")] {
            for container in pod.get(field)?.items()? {
                let of = container.get("name")?.text()?.unwrap_or_default();
                add(&container.get("image")?, format!("deployment {name}, {what} {of}"))?;
            }
        }
    }
    Ok(used)
}

/// What containers are told about images in their environment. Most operators pull these for what
/// they manage, so they are worth mirroring; none is written down as an image.
pub(super) fn in_environment(bundles: &[Bundle<'_>]) -> Vec<Image> {
    let arrived = bundles.get(1..).unwrap_or_default();
    let listed: BTreeSet<&str> =
        arrived.iter().flat_map(|b| b.images.iter().map(|used| used.image.as_str())).collect();
    let before: BTreeSet<String> = bundles
        .first()
        .map(|bundle| mentioned(bundle).into_iter().map(|used| used.image).collect())
        .unwrap_or_default();
    let mut images: BTreeMap<String, Image> = BTreeMap::new();
    for bundle in arrived {
        for used in mentioned(bundle) {
            if listed.contains(used.image.as_str()) {
                continue;
            }
            let is_new = !before.contains(&used.image);
            let image = images.entry(used.image.clone()).or_insert_with(|| Image {
                confidence: Confidence::Inferred,
                ..Image::of(&used, is_new)
            });
            add(&mut image.bundles, &bundle.name);
            add(&mut image.used_by, &used.by);
        }
    }
    images.into_values().collect()
}

/// Images in the environment of a bundle's containers.
fn mentioned(bundle: &Bundle<'_>) -> Vec<Used> {
    let Some(content) = &bundle.content else { return Vec::new() };
    let list = |value: &'_ Value, field: &str| -> Vec<Value> {
        value.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let spec = content.csv.pointer("/spec/install/spec").unwrap_or(&Value::Null);
    let mut used = Vec::new();
    for deployment in list(spec, "deployments") {
        let pod = deployment.pointer("/spec/template/spec").unwrap_or(&Value::Null);
        for variable in list(pod, "containers").iter().flat_map(|of| list(of, "env")) {
            let text = |field: &str| variable[field].as_str().unwrap_or_default();
            if !text("name").contains("IMAGE") {
                continue;
            }
            // Some hold lists, or pairs of a version and an image.
            let words = text("value").split(|c: char| c.is_whitespace() || c == ',' || c == ';');
            let images = words.map(|word| word.split_once('=').map_or(word, |(_, image)| image));
            used.extend(images.filter(|image| is_image(image)).map(|image| Used {
                image: image.to_owned(),
                by: format!("environment variable {}", text("name")),
                source: Source::FromManifests,
            }));
        }
    }
    used
}

/// A pull specification with a tag or a digest.
fn is_image(text: &str) -> bool {
    let Some((_, name)) = text.rsplit_once('/') else { return false };
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    (name.contains(':') || name.contains('@')) && !text.contains("//") && text.chars().all(is_word)
}

/// The images of every bundle after the first.
pub(super) fn of_path(bundles: &[Bundle<'_>]) -> Vec<Image> {
    let Some((installed, others)) = bundles.split_first() else { return Vec::new() };
    let before: BTreeSet<&str> = installed.images.iter().map(|used| used.image.as_str()).collect();
    let mut images: BTreeMap<&str, Image> = BTreeMap::new();
    for (bundle, used) in others.iter().flat_map(|b| b.images.iter().map(move |used| (b, used))) {
        let is_new = !before.contains(used.image.as_str());
        let image = images.entry(&used.image).or_insert_with(|| Image::of(used, is_new));
        // Manifests are what OLM applies; the catalog repeats them.
        image.source = image.source.min(used.source);
        add(&mut image.bundles, &bundle.name);
        add(&mut image.used_by, &used.by);
    }
    let mut images: Vec<Image> = images.into_values().collect();
    images.sort_by(|a, b| b.is_new.cmp(&a.is_new).then_with(|| a.image.cmp(&b.image)));
    images
}

/// What the old version pulls and the new one does not; nothing where the new one is not known.
pub(super) fn gone(old: &Bundle<'_>, new: &Bundle<'_>) -> Vec<String> {
    if new.images.is_empty() && new.content.is_none() {
        return Vec::new();
    }
    let names = |bundle: &Bundle<'_>| -> BTreeSet<String> {
        bundle.images.iter().map(|used| used.image.clone()).collect()
    };
    names(old).difference(&names(new)).cloned().collect()
}

/// Users of an image that are named.
const LISTED_MAX: usize = 1_000;

fn add(list: &mut Vec<String>, text: &str) {
    if list.len() < LISTED_MAX && !list.iter().any(|listed| listed == text) {
        list.push(text.to_owned());
    }
}
