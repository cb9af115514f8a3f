//! The manifests of a bundle, from its image in an OCI registry.
//!
//! An image is looked for where the cluster's own nodes would look: at its mirrors first, and at its
//! source if the rules allow it, with the cluster's pull secret and CA bundle. Everything is named by
//! digest and verified, so it does not matter who answers. Unpacked in memory, to the files of
//! `manifests/` and `metadata/` alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::{sync::Semaphore, time::timeout};
use wavelift_catalog::Manifests;

pub use self::{
    error::{Attempt, Error},
    layers::{Error as LayersError, Limits},
    manifest::Error as ManifestError,
    mirrors::{Has, Mirrors, SourcePolicy},
    reference::{BadReference, Digest, Reference, Repository, Version},
    registry::Error as RegistryError,
    secrets::PullSecrets,
    store::Store,
};
use self::{
    layers::{Files, Folder},
    manifest::{Descriptor, Document},
    registry::{Scheme, Session},
};
use crate::{
    bounds::{Patience, Retries},
    http,
    trust::{self, Trust},
};

mod challenge;
mod error;
mod layers;
mod manifest;
/// Mirror rules of a cluster.
pub mod mirrors;
mod reference;
mod registry;
/// Pull secrets.
pub mod secrets;
mod store;

/// Bytes of an image's configuration.
const CONFIG_BYTES_MAX: usize = 1 << 20;
/// Bytes of a manifest that is read back from disk.
const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Images that are fetched at the same time, each with its layers in memory.
const IMAGES_AT_ONCE: usize = 4;

const LABEL: &str = "operators.operatorframework.io.bundle";
const REGISTRY_V1: &str = "registry+v1";

/// How bundle images are fetched.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where else than at its source an image is looked for.
    pub mirrors: Mirrors,
    /// Who we are at which registry.
    pub secrets: PullSecrets,
    /// Whose word counts for a registry's certificate.
    pub trust: Trust,
    /// Registries that have no TLS, as `host` or `host:port`.
    pub plaintext: BTreeSet<String>,
    /// Where content is kept; nowhere if absent.
    pub store: Option<Store>,
    /// How much an image may hold.
    pub limits: Limits,
    /// How long a registry is waited for.
    pub patience: Patience,
    /// How often it is asked again.
    pub retries: Retries,
}

/// Fetches bundle images.
#[derive(Debug, Clone)]
pub struct BundleImages {
    options: Arc<Options>,
    client: http::Client,
    permits: Arc<Semaphore>,
}

/// What a bundle image holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleImage {
    /// The digest of the manifest or index that the name stands for.
    pub digest: Digest,
    /// Which registry had it.
    pub place: Repository,
    /// The files, as `manifests/<name>` and `metadata/<name>`, wherever the image has them.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The image's labels. They say the same as `metadata/annotations.yaml`, if that is there.
    pub labels: BTreeMap<String, String>,
}

impl BundleImage {
    /// The manifests, as the preview reads them. The labels count where no file says otherwise.
    pub fn manifests(
        &self,
        limits: &wavelift_catalog::manifests::Limits,
    ) -> Result<Manifests, wavelift_catalog::manifests::Error> {
        Manifests::from_files(&self.files, self.labels.clone(), limits)
    }
}

/// The parts of an image as they are stored.
struct Parts {
    digest: Digest,
    labels: BTreeMap<String, String>,
    layers: Vec<Vec<u8>>,
}

// === impl BundleImages ===

impl BundleImages {
    /// Prepares to fetch images. Connects when the first is asked for.
    pub fn new(options: Options) -> Result<Self, trust::Error> {
        let client = http::Client::new(&options.trust, options.patience)?;
        let permits = Arc::new(Semaphore::new(IMAGES_AT_ONCE));
        Ok(Self { options: Arc::new(options), client, permits })
    }

    /// The registries that would be asked for an image, and in which order.
    pub fn registries(&self, image: &str) -> Result<Vec<String>, Error> {
        let reference = reference(image)?;
        let places = self.options.mirrors.places(&reference).into_iter();
        Ok(places.map(|place| place.registry).collect())
    }

    /// The files of a bundle image.
    pub async fn fetch(&self, image: &str) -> Result<BundleImage, Error> {
        let reference = reference(image)?;
        let places = self.options.mirrors.places(&reference);
        if places.is_empty() {
            return Err(Error::Blocked { image: reference.to_string() });
        }
        let _permit = self.permits.acquire().await;
        let mut attempts = Vec::new();
        for place in places {
            let after = self.options.patience.attempt;
            let fetched = timeout(after, self.fetch_from(&place, &reference.version)).await;
            match fetched.unwrap_or(Err(RegistryError::Slow(after))) {
                Ok(parts) => return self.unpack(&reference, place, parts).await,
                Err(error) => {
                    tracing::debug!(%place, error = error.chain(), "an image is not there");
                    attempts.push(Attempt { place, error });
                }
            }
        }
        Err(Error::Nowhere { image: reference.to_string(), attempts })
    }

    async fn fetch_from(
        &self,
        place: &Repository,
        version: &Version,
    ) -> Result<Parts, RegistryError> {
        let options = &*self.options;
        let credentials = options.secrets.of(place).map_err(RegistryError::Secret)?;
        let is_plain = options.plaintext.contains(&place.registry);
        let scheme = if is_plain { Scheme::Http } else { Scheme::Https };
        let session = Session::new(&self.client, place, scheme, credentials, options.retries);
        let top = self.manifest(&session, version).await?;
        let digest = Digest::of(&top);
        let (config, layers) = match manifest::parse(&top)? {
            Document::Image { config, layers } => (config, layers),
            Document::Index { chosen } => {
                let version = Version::Digest(chosen.digest);
                match manifest::parse(&self.manifest(&session, &version).await?)? {
                    Document::Image { config, layers } => (config, layers),
                    Document::Index { .. } => return Err(ManifestError::NestedIndex.into()),
                }
            }
        };
        let config = self.blob(&session, &config, CONFIG_BYTES_MAX).await?;
        let labels = manifest::labels(&config)?;
        let mut left = options.limits.unpacked_bytes;
        let mut contents = Vec::with_capacity(layers.len());
        for layer in &layers {
            let max = left.min(options.limits.layer_bytes);
            let content = self.blob(&session, layer, max).await?;
            left -= content.len();
            contents.push(content);
        }
        Ok(Parts { digest, labels, layers: contents })
    }

    async fn manifest(
        &self,
        session: &Session<'_>,
        version: &Version,
    ) -> Result<Vec<u8>, RegistryError> {
        let store = self.options.store.as_ref();
        if let (Some(store), Version::Digest(digest)) = (store, version)
            && let Some(kept) = store.get(digest, MANIFEST_BYTES_MAX).await
        {
            return Ok(kept);
        }
        let content = session.manifest(version).await?;
        if let Some(store) = store {
            store.put(&Digest::of(&content), &content).await;
        }
        Ok(content)
    }

    async fn blob(
        &self,
        session: &Session<'_>,
        descriptor: &Descriptor,
        max: usize,
    ) -> Result<Vec<u8>, RegistryError> {
        let store = self.options.store.as_ref();
        if let Some(store) = store
            && let Some(kept) = store.get(&descriptor.digest, max).await
        {
            return Ok(kept);
        }
        let content = session.blob(descriptor, max).await?;
        if let Some(store) = store {
            store.put(&descriptor.digest, &content).await;
        }
        Ok(content)
    }

    async fn unpack(
        &self,
        image: &Reference,
        place: Repository,
        parts: Parts,
    ) -> Result<BundleImage, Error> {
        let Parts { digest, labels, layers } = parts;
        let named = || image.to_string();
        if let Some(kind) = labels.get(&format!("{LABEL}.mediatype.v1"))
            && kind != REGISTRY_V1
        {
            return Err(Error::Format { image: named(), format: kind.clone() });
        }
        let folders = [folder(&labels, "manifests"), folder(&labels, "metadata")];
        let limits = self.options.limits;
        let unpacked =
            tokio::task::spawn_blocking(move || layers::unpack(&layers, &folders, &limits)).await;
        let files: Files = match unpacked {
            Ok(unpacked) => unpacked.map_err(|source| Error::Layers { image: named(), source })?,
            // The runtime is going down.
            Err(_) => return Err(Error::Interrupted { image: named() }),
        };
        if !files.keys().any(|path| path.starts_with("manifests/")) {
            return Err(Error::NoManifests { image: named() });
        }
        Ok(BundleImage { digest, place, files, labels })
    }
}

fn reference(image: &str) -> Result<Reference, Error> {
    Reference::parse(image).map_err(|source| Error::Reference { image: image.to_owned(), source })
}

/// Where the image says that it has a folder; else where all have it.
fn folder(labels: &BTreeMap<String, String>, name: &'static str) -> Folder {
    let said = labels.get(&format!("{LABEL}.{name}.v1")).map_or(name, String::as_str);
    let parts: Vec<&str> = said.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Folder { path: parts.join("/"), name }
}

#[cfg(test)]
mod tests;
