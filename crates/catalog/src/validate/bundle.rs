//! Rules of bundles.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wavelift_core::version::Version;

use super::{OfPackage, Place, Report, Rule, image, repeated, shape::Shape};
use crate::{
    base64,
    fbc::{self, Bundle},
    graph::Property,
};

pub(super) fn check(report: &mut Report<'_>, package: &OfPackage<'_>) {
    for name in repeated(package.bundles.iter().map(|bundle| bundle.name.as_str())) {
        report.add(Place::Bundle(name.to_owned()), Rule::Duplicate);
    }
    let entries: BTreeSet<&str> = package
        .channels
        .iter()
        .flat_map(|channel| channel.entries.iter().map(|entry| entry.name.as_str()))
        .collect();
    let mut versions: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for bundle in &package.bundles {
        let place = || Place::Bundle(bundle.name.clone());
        report.add_if(bundle.name.is_empty(), place, Rule::NoName);
        report.add_if(!entries.contains(bundle.name.as_str()), place, Rule::NotInAChannel);
        images(report, bundle);
        properties(report, bundle);
        if let Some(version) = version(report, bundle) {
            versions.entry(version).or_default().insert(&bundle.name);
        }
    }
    for (version, bundles) in versions.into_iter().filter(|(_, bundles)| bundles.len() > 1) {
        let bundles = bundles.into_iter().map(str::to_owned).collect();
        report.add(Place::Package, Rule::SameVersion { version, bundles });
    }
}

fn images(report: &mut Report<'_>, bundle: &Bundle) {
    let place = || Place::Bundle(bundle.name.clone());
    let is_missing = bundle.image.is_empty() && bundle.objects.is_empty();
    report.add_if(is_missing, place, Rule::NoImage);
    let related = bundle.related_images.iter().enumerate();
    let related = related.map(|(i, related)| (format!("relatedImages[{i}].image"), &related.image));
    for (what, image) in std::iter::once(("image".to_owned(), &bundle.image)).chain(related) {
        let is_bad = !image.is_empty() && !image::is_pull_specification(image);
        report.add_if(is_bad, place, Rule::Image { what, image: image.clone() });
    }
    for (index, data) in bundle.objects.iter().enumerate() {
        report.add_if(!is_manifest(data), place, Rule::Manifest { index });
    }
}

/// Whether it is base64 of YAML. What looks like JSON is not looked into, as `opm` does not either.
fn is_manifest(data: &str) -> bool {
    let Some(bytes) = base64::decode(data) else { return false };
    if bytes.trim_ascii_start().starts_with(b"{") {
        return true;
    }
    std::str::from_utf8(&bytes).is_ok_and(fbc::is_yaml)
}

fn properties(report: &mut Report<'_>, bundle: &Bundle) {
    let place = || Place::Bundle(bundle.name.clone());
    for kind in &bundle.without_value {
        report.add(place(), Rule::NoValue { kind: kind.clone() });
    }
    let typed = bundle.properties.iter().map(|property| {
        (property.kind.as_str(), Shape::of(&property.kind).mismatch(&property.value))
    });
    let metadata = bundle
        .csv_metadata
        .iter()
        .map(|json| (Property::CSV_METADATA, Shape::of(Property::CSV_METADATA).mismatch_in(json)));
    for (kind, mismatch) in typed.chain(metadata) {
        if let Some(reason) = mismatch {
            report.add(place(), Rule::Property { kind: kind.to_owned(), reason });
        }
    }
}

/// A text of an object; the name of its field in any case, and nothing for whatever is no text.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    let in_any_case = || {
        let mut fields = value.as_object()?.iter();
        fields.find(|(name, _)| name.eq_ignore_ascii_case(field)).map(|(_, value)| value)
    };
    value.get(field).or_else(in_any_case).and_then(Value::as_str).unwrap_or_default()
}

/// The version and release as one text, if they can be told.
fn version(report: &mut Report<'_>, bundle: &Bundle) -> Option<String> {
    let place = || Place::Bundle(bundle.name.clone());
    let stated: Vec<&Value> = bundle
        .properties
        .iter()
        .filter(|property| property.kind == Property::PACKAGE)
        .map(|property| &property.value)
        .collect();
    let [stated] = stated.as_slice() else {
        report.add(place(), Rule::PackageProperties { found: stated.len() });
        return None;
    };
    let text = |field: &str| text(stated, field);
    let package = text("packageName").to_owned();
    report.add_if(package != bundle.package, place, Rule::OtherPackage { package });
    let version = match Version::parse(text("version")) {
        Ok(version) => version,
        Err(source) => {
            report.add(place(), Rule::Version { text: text("version").to_owned(), source });
            return None;
        }
    };
    let release = text("release");
    if release.is_empty() {
        return Some(version.to_string());
    }
    // A release has the form of a prerelease, so that of a version tells.
    if release.len() > 20
        || Version::parse(&format!("0.0.0-{release}")).is_err()
        || release.contains('+')
    {
        report.add(place(), Rule::Release { text: release.to_owned() });
    }
    let whole = format!("{version}-{release}");
    let expected = format!("{}-v{whole}", bundle.package);
    let is_bad = bundle.name != expected || version.build().is_some();
    report.add_if(is_bad, place, Rule::ReleaseForm { expected });
    Some(whole)
}
