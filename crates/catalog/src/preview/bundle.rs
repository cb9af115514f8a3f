//! One step of the path, read once: all that the sections compare.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;
use wavelift_core::{causes::sentence, version::Version};

use super::{
    Confidence, Facts, Missing, Section, Source, Step,
    image::{self, Used},
    permission::{self, Granted},
};
use crate::{
    graph::Property,
    manifests::{self, Manifests},
};

/// A step with its manifests decoded. What could not be read is nothing here and named in `missing`.
#[derive(Debug)]
pub(super) struct Bundle<'a> {
    pub(super) name: String,
    pub(super) version: Option<Version>,
    pub(super) package: Option<String>,
    pub(super) facts: &'a Facts<'a>,
    /// The catalog's, and those that the bundle's own files state.
    pub(super) properties: Vec<Property>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) content: Option<Content<'a>>,
    /// The versions that the hop to this one jumps over.
    pub(super) skipped: Vec<Self>,
    pub(super) permissions: Option<BTreeSet<Granted>>,
    pub(super) images: Vec<Used>,
    pub(super) missing: Vec<Missing>,
}

/// The manifests of a bundle.
#[derive(Debug)]
pub(super) struct Content<'a> {
    pub(super) csv: Cow<'a, Value>,
    /// All others.
    /// All others.
    pub(super) objects: Vec<Cow<'a, Value>>,
}

/// What only manifests tell.
const ALL: [Section; 10] = [
    Section::Permissions,
    Section::Crds,
    Section::Webhooks,
    Section::ApiServices,
    Section::Deployments,
    Section::Images,
    Section::Objects,
    Section::Alerts,
    Section::Compatibility,
    Section::ReleaseNotes,
];

// === impl Bundle ===

impl<'a> Bundle<'a> {
    pub(super) fn of(step: &'a Step<'_>) -> Self {
        let package = step.manifests.and_then(|manifests| manifests.package());
        let mut bundle = Self {
            name: step.name.clone(),
            version: step.version.clone(),
            package: step.facts.package.clone().or_else(|| package.map(str::to_owned)),
            facts: &step.facts,
            properties: properties(step),
            annotations: step.manifests.map(|m| m.annotations().clone()).unwrap_or_default(),
            content: None,
            skipped: step.skipped.iter().map(Self::of).collect(),
            permissions: None,
            images: image::of_catalog(&step.facts),
            missing: Vec::new(),
        };
        match content(step) {
            Ok(content) => bundle.read(content),
            Err(reason) => bundle.miss(&ALL, reason),
        }
        bundle
    }

    /// The version, also where it is none by OLM's rules.
    pub(super) fn version_text(&self) -> Option<String> {
        let written = || self.content.as_ref()?.csv.pointer("/spec/version")?.as_str();
        self.version.as_ref().map(ToString::to_string).or_else(|| written().map(str::to_owned))
    }

    /// A field of the CSV's `spec`, or of what the catalog repeats of it.
    pub(super) fn described(&self, field: &str) -> Option<(&Value, Source)> {
        match (&self.content, self.facts.csv_metadata) {
            (Some(content), _) => {
                let value = content.csv.get("spec")?.get(field)?;
                Some((value, Source::FromManifests))
            }
            (None, metadata) => Some((metadata?.get(field)?, Source::FromCatalog)),
        }
    }

    /// An annotation of the CSV, or what the catalog repeats of it.
    pub(super) fn csv_annotation(&self, name: &str) -> Option<&str> {
        let annotations = match (&self.content, self.facts.csv_metadata) {
            (Some(content), _) => content.csv.pointer("/metadata/annotations"),
            (None, metadata) => metadata?.get("annotations"),
        };
        annotations?.get(name)?.as_str()
    }

    /// The items of a list of the CSV, or of the list that the catalog has for it.
    pub(super) fn listed(&self, pointer: &str, field: &str, list: &str) -> Vec<(&Value, Source)> {
        let (value, source) = match (&self.content, self.facts.csv_metadata) {
            (Some(content), _) => (content.csv.pointer(pointer), Source::FromManifests),
            (None, Some(metadata)) => {
                (metadata.get(field).and_then(|of| of.get(list)), Source::FromCatalog)
            }
            (None, None) => (None, Source::Missing),
        };
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.map(|item| (item, source)).collect()
    }

    /// Whether there is a CSV, or what the catalog repeats of it.
    pub(super) fn is_described(&self) -> bool {
        self.content.is_some() || self.facts.csv_metadata.is_some()
    }

    /// Where its description is from.
    pub(super) fn source(&self) -> Source {
        match (&self.content, self.facts.csv_metadata) {
            (Some(_), _) => Source::FromManifests,
            (None, Some(_)) => Source::FromCatalog,
            (None, None) => Source::Missing,
        }
    }

    fn read(&mut self, content: Content<'a>) {
        match permission::of_csv(&content.csv) {
            Ok(permissions) => self.permissions = Some(permissions),
            Err(error) => self.miss(&[Section::Permissions], error.to_string()),
        }
        match image::of_csv(&content.csv) {
            Ok(images) => self.images.extend(images),
            Err(error) => self.miss(&[Section::Images], error.to_string()),
        }
        self.content = Some(content);
    }

    /// What can't be told of it, and of the versions that are jumped over to it: of those only the
    /// release notes count.
    pub(super) fn all_missing(&self) -> Vec<Missing> {
        let skipped = self.skipped.iter().flat_map(|skipped| &skipped.missing);
        let skipped = skipped.filter(|missing| missing.sections.contains(&Section::ReleaseNotes));
        let skipped = skipped
            .map(|missing| Missing { sections: vec![Section::ReleaseNotes], ..missing.clone() });
        skipped.chain(self.missing.iter().cloned()).collect()
    }

    /// Notes what can't be told. Images and compatibility are told by the catalog where it has them.
    fn miss(&mut self, sections: &[Section], reason: String) {
        let told = |section: &Section| match section {
            Section::Images => !self.facts.related_images.is_empty(),
            Section::Compatibility | Section::ApiServices | Section::ReleaseNotes => {
                self.facts.csv_metadata.is_some()
            }
            Section::Assessments
            | Section::ManualSteps
            | Section::Permissions
            | Section::Crds
            | Section::Webhooks
            | Section::Deployments
            | Section::Objects
            | Section::Alerts => false,
        };
        let sections = sections.iter().copied().filter(|section| !told(section)).collect();
        self.missing.push(Missing {
            bundle: self.name.clone(),
            sections,
            reason,
            source: Source::Missing,
            confidence: Confidence::Unknown,
        });
    }
}

/// What the catalog states, else what the bundle's own files do: a catalog has taken its properties
/// from there.
fn properties(step: &Step<'_>) -> Vec<Property> {
    let own = step.manifests.map(Manifests::properties).unwrap_or_default();
    if step.facts.properties.is_empty() { own.to_vec() } else { step.facts.properties.clone() }
}

/// The manifests, or why there are none.
fn content<'a>(step: &Step<'a>) -> Result<Content<'a>, String> {
    let manifests = step.manifests.filter(|manifests| !manifests.is_empty());
    let Some(manifests) = manifests else {
        return Err(match step.missing_because.as_str() {
            "" => "no manifests at hand".to_owned(),
            reason => reason.to_owned(),
        });
    };
    let mut csvs = Vec::new();
    let mut objects = Vec::new();
    for placed in manifests.placed() {
        let placed = placed.map_err(|error| sentence(&error))?;
        if placed.value["kind"] == "ClusterServiceVersion" {
            csvs.push(placed);
        } else {
            objects.push(placed.value);
        }
    }
    if csvs.len() > 1 {
        let places = csvs.into_iter().map(|csv| csv.place.into_owned()).collect();
        return Err(manifests::Error::SeveralCsvs { places }.to_string());
    }
    let csv = csvs.pop().ok_or_else(|| manifests::Error::NoCsv.to_string())?;
    Ok(Content { csv: csv.value, objects })
}
