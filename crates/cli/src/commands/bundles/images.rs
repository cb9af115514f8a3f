//! Bundle images from registries, kept by digest below the user's cache directory.

use std::path::PathBuf;

use anyhow::Context as _;
use wavelift_catalog::manifests::{Limits, Manifests};
use wavelift_sources::{
    BundleImages, Trust,
    bundle_image::{Mirrors, Options, PullSecrets, Store},
};

use crate::{args::preview::ImageArgs, fault::Fault, offline, printer::Printer};

/// Bytes that are kept. Bundle images have some hundred kilobytes each.
const CACHE_BYTES_MAX: u64 = 512 << 20;

/// Fetches bundle images.
pub(super) struct Images {
    images: BundleImages,
}

impl Images {
    /// As the options say.
    pub(super) fn of(what: &ImageArgs, printer: &Printer) -> anyhow::Result<Self> {
        let mut options = Options {
            plaintext: what.image_plaintext.iter().cloned().collect(),
            store: store(printer),
            ..Options::default()
        };
        if let Some(file) = &what.image_mirrors {
            options.mirrors = Mirrors::parse(&offline::bytes(file)?).map_err(|error| {
                let text = format!("cannot use {}", file.display());
                let fault = Fault::usage(text).advice(error.advice());
                anyhow::Error::new(error).context(fault)
            })?;
        }
        if let Some(file) = &what.pull_secret {
            options.secrets = PullSecrets::parse(&offline::bytes(file)?).map_err(|error| {
                let text = format!("cannot use {}", file.display());
                let fault = Fault::usage(text).advice(error.advice());
                anyhow::Error::new(error).context(fault)
            })?;
        }
        if let Some(file) = &what.image_ca {
            options.trust = Trust::SystemAnd(offline::bytes(file)?);
        }
        let images = BundleImages::new(options).map_err(|error| {
            let fault = Fault::usage("cannot fetch bundle images").advice(error.advice());
            anyhow::Error::new(error).context(fault)
        })?;
        Ok(Self { images })
    }

    /// The manifests of one.
    pub(super) async fn fetch(&self, image: &str) -> anyhow::Result<Manifests> {
        let fetched = self.images.fetch(image).await.map_err(|error| {
            let text = format!("cannot fetch the bundle image {image}");
            let fault = Fault::error(text).advice(error.advice());
            anyhow::Error::new(error).context(fault)
        })?;
        fetched
            .manifests(&Limits::default())
            .with_context(|| Fault::usage(format!("cannot read the bundle image {image}")))
    }
}

/// Where content is kept. It is fetched anew each time where nothing can be kept.
fn store(printer: &Printer) -> Option<Store> {
    let folder = folder()?;
    match Store::open(&folder, CACHE_BYTES_MAX) {
        Ok(store) => Some(store),
        Err(error) => {
            printer.note(&format!("bundle images are not kept in {}: {error}", folder.display()));
            None
        }
    }
}

/// As the system's programs agree on it.
fn folder() -> Option<PathBuf> {
    let path = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|value| value.is_absolute())
    };
    let home = |below: &str| path("HOME").map(|home| home.join(below));
    let caches = path("XDG_CACHE_HOME").or_else(|| match std::env::consts::OS {
        "macos" => home("Library/Caches"),
        "windows" => path("LOCALAPPDATA"),
        _ => home(".cache"),
    });
    Some(caches?.join("wavelift").join("bundle-images"))
}
