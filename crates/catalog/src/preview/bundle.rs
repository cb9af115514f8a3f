//! One step of the path, read once: all that the sections compare.

use std::{borrow::Cow, collections::BTreeSet, error::Error as _};

use serde_json::Value;
use wavelift_core::version::Version;

use super::{
    Confidence, Facts, Missing, Section, Source, Step,
    image::{self, Used},
    permission::{self, Granted},
};
use crate::manifests;

/// A step with its manifests decoded. What could not be read is nothing here and named in `missing`.
#[derive(Debug)]
pub(super) struct Bundle<'a> {
    pub(super) name: String,
    pub(super) version: Option<Version>,
    pub(super) package: Option<String>,
    pub(super) facts: &'a Facts<'a>,
    pub(super) content: Option<Content<'a>>,
    pub(super) permissions: Option<BTreeSet<Granted>>,
    pub(super) images: Vec<Used>,
    pub(super) missing: Vec<Missing>,
}

/// The manifests of a bundle.
#[derive(Debug)]
pub(super) struct Content<'a> {
    pub(super) csv: Cow<'a, Value>,
    /// All others.
    #[expect(dead_code, reason = "the sections that look at other manifests come next")]
    pub(super) objects: Vec<Cow<'a, Value>>,
}

/// What only manifests tell.
const ALL: [Section; 9] = [
    Section::Permissions,
    Section::Crds,
    Section::Webhooks,
    Section::ApiServices,
    Section::Deployments,
    Section::Images,
    Section::Objects,
    Section::Alerts,
    Section::Compatibility,
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
            content: None,
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

    /// Notes what can't be told. Images and compatibility are told by the catalog where it has them.
    fn miss(&mut self, sections: &[Section], reason: String) {
        let told = |section: &Section| match section {
            Section::Images => !self.facts.related_images.is_empty(),
            Section::Compatibility | Section::ApiServices => self.facts.csv_metadata.is_some(),
            Section::Permissions
            | Section::Crds
            | Section::Webhooks
            | Section::Deployments
            | Section::Objects
            | Section::Alerts
            | Section::ReleaseNotes => false,
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

/// The error with its causes, in one line.
fn sentence(error: &manifests::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
