//! A pinned catalog: some bundles of registries, served on as those gave them.
//!
//! What is kept are the registries' own messages. Nothing of a bundle is made up or written anew, so
//! that OLM installs from here exactly what it would have installed from there.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use futures::{Stream, stream};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, transport::Server};
use wavelift_catalog::{Catalog, Limits, pin::Kept};
use wavelift_proto::olm_registry::{
    self as wire,
    registry_server::{Registry, RegistryServer},
};

use super::{Assembly, CatalogSource, Error, MESSAGE_BYTES_MAX, connections};

/// Bundles that one pinned catalog may keep.
const BUNDLES_MAX: usize = 100;
/// Connections at the same time: OLM's catalog operator has one, another while it starts anew.
const CONNECTIONS_MAX: usize = 16;
/// Calls that are answered at the same time on one connection.
const STREAMS_MAX: u32 = 32;
/// How long one call may take.
const CALL_MAX: Duration = Duration::from_secs(30);

/// What a pinned catalog serves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pinned {
    packages: BTreeMap<String, wire::Package>,
    bundles: BTreeMap<Key, Bundle>,
}

/// A package, a channel and a bundle.
type Key = (String, String, String);

/// One bundle in the two forms in which a registry gives it.
#[derive(Debug, Clone, PartialEq)]
struct Bundle {
    /// In the list of all.
    listed: wire::Bundle,
    /// Alone, with its description.
    alone: wire::Bundle,
}

// === impl CatalogSource ===

impl CatalogSource {
    /// Reads the bundles to keep. That of another catalog than this one is not looked at is for the
    /// caller to see to.
    pub async fn keep(&self, kept: &[Kept]) -> Result<Pinned, Error> {
        self.within("pinned bundles", kept.len(), BUNDLES_MAX)?;
        self.again("the pinned bundles", || self.keep_once(kept)).await
    }

    async fn keep_once(&self, kept: &[Kept]) -> Result<Pinned, Error> {
        let mut listed = self.entries_of(kept).await?;
        let mut pinned = Pinned::default();
        for Kept { package, channel, csv, .. } in kept {
            let key = (package.clone(), channel.clone(), csv.clone());
            let Some(listed) = listed.remove(&key) else {
                let detail = format!(
                    "`{csv}` is not in channel `{channel}` of package `{package}` any more"
                );
                return Err(Error::Changed { detail });
            };
            let from = self.package(package.clone()).await?;
            let call = format!("GetBundle {package} {channel} {csv}");
            let request = wire::GetBundleRequest {
                pkg_name: package.clone(),
                channel_name: channel.clone(),
                csv_name: csv.clone(),
            };
            let mut client = self.client();
            let alone = self.answer(&call, client.get_bundle(request)).await?;
            let of_channel = from.channels.into_iter().find(|of| of.name == *channel);
            let only = wire::Channel {
                name: channel.clone(),
                csv_name: csv.clone(),
                deprecation: of_channel.and_then(|channel| channel.deprecation),
            };
            let restricted = wire::Package {
                name: package.clone(),
                channels: vec![only],
                default_channel_name: channel.clone(),
                deprecation: from.deprecation,
            };
            pinned.packages.insert(package.clone(), restricted);
            pinned.bundles.insert(key, Bundle { listed, alone });
        }
        Ok(pinned)
    }

    /// The messages about these bundles, out of the list of all.
    async fn entries_of(&self, kept: &[Kept]) -> Result<BTreeMap<Key, wire::Bundle>, Error> {
        let call = "ListBundles";
        let mut client = self.client();
        let listed = client.list_bundles(wire::ListBundlesRequest {});
        let mut stream = self.answer(call, listed).await?;
        let (mut found, mut entries, mut bytes) = (BTreeMap::new(), 0, 0);
        while let Some(bundle) = self.next(call, &mut stream).await? {
            entries += 1;
            self.within("channel entries", entries, self.limits.entries)?;
            let is_kept = kept.iter().any(|kept| {
                kept.package == bundle.package_name
                    && kept.channel == bundle.channel_name
                    && kept.csv == bundle.csv_name
            });
            if is_kept {
                bytes += prost::Message::encoded_len(&bundle);
                self.within("bytes", bytes, self.limits.total_bytes)?;
                found.insert(key(&bundle), bundle);
            }
        }
        Ok(found)
    }
}

fn key(bundle: &wire::Bundle) -> Key {
    (bundle.package_name.clone(), bundle.channel_name.clone(), bundle.csv_name.clone())
}

// === impl Pinned ===

impl Pinned {
    /// Adds what is kept of another registry.
    pub fn add(&mut self, other: Self) {
        self.packages.extend(other.packages);
        self.bundles.extend(other.bundles);
    }

    /// The catalog that OLM sees in it.
    pub fn catalog(&self, limits: &Limits) -> Result<Catalog, Error> {
        let mut assembly = Assembly::default();
        for bundle in self.bundles.values() {
            assembly.add_bundle(bundle.listed.clone())?;
        }
        for package in self.packages.values() {
            assembly.add_package(package.clone());
        }
        let served = assembly.finish("pinned", limits)?;
        let broken = |error| Error::Changed { detail: wavelift_core::causes::sentence(&error) };
        served.into_catalog(limits).map_err(|error: wavelift_catalog::graph::Error| broken(error))
    }

    /// Serves it, and nothing else, in the clear as a CatalogSource's pod would; until `stop`.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> Result<(), tonic::transport::Error> {
        let service = RegistryServer::new(Service(Arc::new(self)))
            .max_decoding_message_size(MESSAGE_BYTES_MAX / 16);
        let incoming = connections::at_most(CONNECTIONS_MAX, listener);
        Server::builder()
            .timeout(CALL_MAX)
            .max_concurrent_streams(STREAMS_MAX)
            .concurrency_limit_per_connection(STREAMS_MAX as usize)
            .http2_keepalive_interval(Some(CALL_MAX))
            .http2_keepalive_timeout(Some(CALL_MAX))
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
            .await
    }
}

/// What answers OLM.
#[derive(Debug)]
struct Service(Arc<Pinned>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn answers<T: Send + 'static>(items: Vec<T>) -> Response<Answers<T>> {
    Response::new(Box::pin(stream::iter(items.into_iter().map(Ok))))
}

#[tonic::async_trait]
impl Registry for Service {
    type ListPackagesStream = Answers<wire::PackageName>;
    type ListBundlesStream = Answers<wire::Bundle>;

    async fn list_packages(
        &self,
        _: Request<wire::ListPackageRequest>,
    ) -> Result<Response<Self::ListPackagesStream>, Status> {
        let names = self.0.packages.keys().map(|name| wire::PackageName { name: name.clone() });
        Ok(answers(names.collect()))
    }

    async fn get_package(
        &self,
        request: Request<wire::GetPackageRequest>,
    ) -> Result<Response<wire::Package>, Status> {
        let found = self.0.packages.get(&request.into_inner().name).cloned();
        found.map(Response::new).ok_or_else(|| Status::not_found("no such package is pinned"))
    }

    async fn get_bundle(
        &self,
        request: Request<wire::GetBundleRequest>,
    ) -> Result<Response<wire::Bundle>, Status> {
        let wire::GetBundleRequest { pkg_name, channel_name, csv_name } = request.into_inner();
        let found = self.0.bundles.get(&(pkg_name, channel_name, csv_name));
        let alone = found.map(|bundle| Response::new(bundle.alone.clone()));
        alone.ok_or_else(|| Status::not_found("no such bundle is pinned"))
    }

    async fn list_bundles(
        &self,
        _: Request<wire::ListBundlesRequest>,
    ) -> Result<Response<Self::ListBundlesStream>, Status> {
        Ok(answers(self.0.bundles.values().map(|bundle| bundle.listed.clone()).collect()))
    }
}
