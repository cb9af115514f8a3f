//! From a File-Based Catalog to its graph and inline manifests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wavelift_core::version::Version;

use super::{Bundle, Channel, Entry, Error, Graph, Package, Property, within};
use crate::{
    fbc::{self, Fbc, RelatedImage},
    json::Json,
    limits::Limits,
    manifests::Manifests,
};

/// What a catalog says about a bundle that decides nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Details {
    pub(crate) csv_metadata: Option<Json>,
    pub(crate) related_images: Vec<RelatedImage>,
    pub(crate) manifests: Manifests,
}

type DetailsByBundle = BTreeMap<String, BTreeMap<String, Details>>;

impl Graph {
    pub(crate) fn from_fbc(fbc: Fbc, limits: &Limits) -> Result<(Self, DetailsByBundle), Error> {
        within("bundles", fbc.bundles.len(), limits.entries)?;
        within(
            "channel entries",
            fbc.channels.iter().map(|channel| channel.entries.len()).sum(),
            limits.entries,
        )?;
        let entries = fbc.channels.iter().flat_map(|channel| &channel.entries);
        within("skipped entries", entries.map(|entry| entry.skips.len()).sum(), limits.skips)?;
        let mut graph = Self::default();
        let mut details = DetailsByBundle::new();
        for package in fbc.packages {
            graph.add_package(package)?;
        }
        for channel in fbc.channels {
            graph.add_channel(channel)?;
        }
        for bundle in fbc.bundles {
            let (package, name) = (bundle.package.clone(), bundle.name.clone());
            let of_bundle = graph.add_bundle(bundle)?;
            details.entry(package).or_default().insert(name, of_bundle);
        }
        for deprecations in fbc.deprecations {
            graph.add_deprecations(deprecations);
        }
        Ok((graph, details))
    }

    fn add_package(&mut self, package: fbc::Package) -> Result<(), Error> {
        let added =
            Package { default_channel: some(package.default_channel), ..Package::default() };
        match self.packages.insert(package.name.clone(), added) {
            None => Ok(()),
            Some(_) => Err(duplicate("package", &package.name, &package.name)),
        }
    }

    fn add_channel(&mut self, channel: fbc::Channel) -> Result<(), Error> {
        let package = self.packages.entry(channel.package.clone()).or_default();
        if package.channels.contains_key(&channel.name) {
            return Err(duplicate("channel", &channel.package, &channel.name));
        }
        let mut added = Channel::default();
        for entry in channel.entries {
            let edges = Entry {
                replaces: some(entry.replaces),
                skips: entry.skips.into_iter().filter(|name| !name.is_empty()).collect(),
                skip_range: some(entry.skip_range),
            };
            if added.entries.insert(entry.name.clone(), edges).is_some() {
                return Err(duplicate("entry", &channel.package, &entry.name));
            }
        }
        package.channels.insert(channel.name, added);
        Ok(())
    }

    fn add_bundle(&mut self, bundle: fbc::Bundle) -> Result<Details, Error> {
        let details = Details {
            csv_metadata: bundle.csv_metadata.into_iter().next(),
            related_images: bundle.related_images,
            manifests: Manifests::new(bundle.objects),
        };
        let stated = bundle.properties.iter().find(|p| p.kind == Property::PACKAGE);
        let text = |field: &str| stated.and_then(|p| p.value.get(field)).and_then(Value::as_str);
        let added = Bundle {
            version: text("version").and_then(|text| Version::parse_tolerant(text).ok()),
            release: text("release").map(str::to_owned).and_then(some),
            image: some(bundle.image),
            min_kube_version: min_kube_version(&details),
            properties: bundle.properties,
            deprecation: None,
        };
        let package = self.packages.entry(bundle.package.clone()).or_default();
        match package.bundles.insert(bundle.name.clone(), added) {
            None => Ok(details),
            Some(_) => Err(duplicate("bundle", &bundle.package, &bundle.name)),
        }
    }

    /// What a deprecation names and the catalog does not have is left out; `validate` reports it.
    fn add_deprecations(&mut self, deprecations: fbc::Deprecations) {
        let Some(package) = self.packages.get_mut(&deprecations.package) else {
            return;
        };
        for deprecation in deprecations.entries {
            let place = match deprecation.schema.as_str() {
                "olm.package" => Some(&mut package.deprecation),
                "olm.channel" => {
                    package.channels.get_mut(&deprecation.name).map(|c| &mut c.deprecation)
                }
                "olm.bundle" => {
                    package.bundles.get_mut(&deprecation.name).map(|b| &mut b.deprecation)
                }
                _ => None,
            };
            if let Some(place) = place {
                *place = Some(deprecation.message);
            }
        }
    }
}

fn min_kube_version(details: &Details) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        min_kube_version: Option<String>,
    }
    if let Some(metadata) = &details.csv_metadata {
        return metadata.read::<Metadata>().ok()?.min_kube_version.and_then(some);
    }
    let csv = details.manifests.csv()?;
    csv.pointer("/spec/minKubeVersion").and_then(Value::as_str).map(str::to_owned).and_then(some)
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn duplicate(what: &'static str, package: &str, name: &str) -> Error {
    Error::Duplicate { what, package: package.to_owned(), name: name.to_owned() }
}
