//! The catalog of OLM v0: the gRPC registry of a CatalogSource.
//!
//! What comes is put together to the documents it was made of, and from there on the catalog is the
//! same as one read from files. A list of bundles has no manifests and no descriptions of bundles
//! that have an image, and no channel entries without a bundle. [`Served::left_out`] names the
//! bundles; [`CatalogSource::bundle`] fetches what there is of one.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use backon::Retryable as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use tokio::time::timeout;
use tonic::{
    Status, Streaming,
    transport::{Channel, ClientTlsConfig, Endpoint},
};
use wavelift_catalog::{Catalog, Coverage, Fbc, Limits, fbc, graph};
use wavelift_proto::olm_registry::{self as wire, registry_client::RegistryClient};

use self::assemble::Assembly;
pub use self::{assemble::BundleContent, custom::CustomSchema, error::Error, pinned::Pinned};
use crate::{
    bounds::{Patience, Retries},
    trust::Trust,
};

mod assemble;
mod connections;
mod custom;
mod describe;
mod error;
mod pinned;

/// Bytes of one message. Four times what OLM itself would accept.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Packages that are asked about at the same time.
const CALLS_AT_ONCE: usize = 8;

/// Whether the registry is spoken to in the clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// As a CatalogSource's pod is, within its cluster.
    Plaintext,
    /// TLS; the name in the address is verified.
    Tls(Trust),
}

/// A client of one CatalogSource's registry.
#[derive(Debug, Clone)]
pub struct CatalogSource {
    address: String,
    channel: Channel,
    limits: Limits,
    patience: Patience,
    retries: Retries,
}

/// What a registry serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// The catalog's documents, but the ones of custom schemas.
    pub fbc: Fbc,
    /// Bundles, by package, whose manifests and description were not sent. They may exist all the
    /// same.
    pub left_out: BTreeMap<String, BTreeSet<String>>,
}

// === impl CatalogSource ===

impl CatalogSource {
    /// A client of the registry at `address`, a host and a port. Connects when it is first used.
    pub fn new(
        address: &str,
        transport: &Transport,
        limits: Limits,
        patience: Patience,
        retries: Retries,
    ) -> Result<Self, Error> {
        let scheme = match transport {
            Transport::Plaintext => "http",
            Transport::Tls(_) => "https",
        };
        let bad = |source| Error::Address { address: address.to_owned(), source: Box::new(source) };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(bad)?
            .connect_timeout(patience.connect)
            .keep_alive_timeout(patience.silence)
            .http2_keep_alive_interval(patience.silence);
        if let Transport::Tls(trust) = transport {
            let roots = trust.roots().map_err(Error::Trust)?.roots;
            let tls = ClientTlsConfig::new().trust_anchors(roots).timeout(patience.connect);
            endpoint = endpoint.tls_config(tls).map_err(bad)?;
        }
        let channel = endpoint.connect_lazy();
        Ok(Self { address: address.to_owned(), channel, limits, patience, retries })
    }

    /// The whole catalog.
    pub async fn read(&self) -> Result<Served, Error> {
        self.again("the catalog", || self.read_once()).await
    }

    /// One bundle with its description, and its manifests where the catalog has them inline.
    pub async fn bundle(
        &self,
        package: &str,
        channel: &str,
        name: &str,
    ) -> Result<BundleContent, Error> {
        let call = format!("GetBundle {package} {channel} {name}");
        let bundle = self
            .again(&call, || async {
                let request = wire::GetBundleRequest {
                    pkg_name: package.to_owned(),
                    channel_name: channel.to_owned(),
                    csv_name: name.to_owned(),
                };
                let mut client = self.client();
                self.answer(&call, client.get_bundle(request)).await
            })
            .await?;
        assemble::content(bundle)
    }

    async fn read_once(&self) -> Result<Served, Error> {
        let names = self.package_names().await?;
        let mut assembly = Assembly::default();
        self.add_bundles(&mut assembly).await?;
        let packages: Vec<wire::Package> = stream::iter(names)
            .map(|name| self.package(name))
            .buffered(CALLS_AT_ONCE)
            .try_collect()
            .await?;
        for package in packages {
            assembly.add_package(package);
        }
        // All documents are parsed here: that takes its time, and others must not wait for it.
        let (address, limits) = (self.address.clone(), self.limits);
        let finished =
            tokio::task::spawn_blocking(move || assembly.finish(&address, &limits)).await;
        finished.unwrap_or(Err(Error::Interrupted))
    }

    async fn package_names(&self) -> Result<Vec<String>, Error> {
        let call = "ListPackages";
        let mut client = self.client();
        let listed = client.list_packages(wire::ListPackageRequest {});
        let mut stream = self.answer(call, listed).await?;
        let mut names = Vec::new();
        while let Some(package) = self.next(call, &mut stream).await? {
            self.within("packages", names.len() + 1, self.limits.entries)?;
            names.push(package.name);
        }
        Ok(names)
    }

    async fn package(&self, name: String) -> Result<wire::Package, Error> {
        let call = format!("GetPackage {name}");
        let mut client = self.client();
        self.answer(&call, client.get_package(wire::GetPackageRequest { name })).await
    }

    async fn add_bundles(&self, assembly: &mut Assembly) -> Result<(), Error> {
        let call = "ListBundles";
        let mut client = self.client();
        let listed = client.list_bundles(wire::ListBundlesRequest {});
        let mut stream = self.answer(call, listed).await?;
        let (mut entries, mut bytes) = (0, 0);
        while let Some(bundle) = self.next(call, &mut stream).await? {
            entries += 1;
            bytes += prost::Message::encoded_len(&bundle);
            self.within("channel entries", entries, self.limits.entries)?;
            self.within("bytes", bytes, self.limits.total_bytes)?;
            assembly.add_bundle(bundle)?;
        }
        Ok(())
    }

    fn client(&self) -> RegistryClient<Channel> {
        RegistryClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Makes the attempt, and makes it again after what may pass.
    async fn again<T, F, R>(&self, call: &str, attempt: F) -> Result<T, Error>
    where
        F: Fn() -> R,
        R: Future<Output = Result<T, Error>>,
    {
        let after = self.patience.attempt;
        let bounded = || async {
            timeout(after, attempt()).await.unwrap_or_else(|_| Err(self.silent(call, after)))
        };
        bounded
            .retry(self.retries.backoff())
            .when(Error::is_transient)
            .notify(|error, pause| {
                let error = error as &dyn std::error::Error;
                tracing::debug!(address = self.address, error, ?pause, "asking again");
            })
            .await
    }

    /// Waits until the answer begins.
    async fn answer<T>(
        &self,
        call: &str,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, Error> {
        let after = self.patience.connect + self.patience.silence;
        let answer = timeout(after, answer).await.map_err(|_| self.silent(call, after))?;
        answer.map(tonic::Response::into_inner).map_err(|status| self.failed(call, status))
    }

    /// The next message of a stream; nothing at its end.
    async fn next<T>(&self, call: &str, stream: &mut Streaming<T>) -> Result<Option<T>, Error> {
        let after = self.patience.silence;
        let message =
            timeout(after, stream.message()).await.map_err(|_| self.silent(call, after))?;
        message.map_err(|status| self.failed(call, status))
    }

    fn silent(&self, call: &str, after: Duration) -> Error {
        Error::Silent { address: self.address.clone(), call: call.to_owned(), after }
    }

    fn failed(&self, call: &str, status: Status) -> Error {
        Error::Call {
            address: self.address.clone(),
            call: call.to_owned(),
            source: Box::new(status),
        }
    }

    fn within(&self, what: &'static str, found: usize, max: usize) -> Result<(), Error> {
        if found > max {
            return Err(Error::TooLarge { address: self.address.clone(), what, max });
        }
        Ok(())
    }
}

// === impl Served ===

impl Served {
    /// The catalog, with the digest of its files.
    pub fn into_catalog(self, limits: &Limits) -> Result<Catalog, graph::Error> {
        Catalog::from_fbc_as(Coverage::Registry, self.fbc, limits)
    }

    /// Adds documents of custom schemas, as they would stand in the catalog's files.
    pub fn add_custom(&mut self, documents: &[Value], limits: &Limits) -> Result<(), fbc::Error> {
        for document in documents {
            let text = document.to_string();
            self.fbc.add_file("custom schema", text.as_bytes(), limits)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
