//! A registry as it runs in a CatalogSource's pod, in this process.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use futures::{Stream, stream};
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};
use wavelift_catalog::{Catalog, release};
use wavelift_proto::olm_registry::{
    self as wire,
    experimental_registry_server::{ExperimentalRegistry, ExperimentalRegistryServer},
    registry_server::{Registry, RegistryServer},
};

use crate::catalogs::Settings;

/// A registry; clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Fake(Arc<State>);

#[derive(Debug)]
struct State {
    /// Nothing: it answers every call with an error.
    catalog: Mutex<Option<Arc<Catalog>>>,
    /// Whether it answers at all.
    is_open: watch::Sender<bool>,
    /// Readings that have begun, that are under way, and at most were at the same time.
    readings: watch::Sender<Readings>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readings {
    pub(crate) begun: usize,
    pub(crate) open: usize,
    pub(crate) at_once: usize,
}

/// How registries are read where nothing is but for a reason that the test gives.
pub(crate) fn settings() -> Settings {
    let never = Duration::from_hours(24);
    Settings {
        period: never,
        first_pause: never,
        pause_max: never * 2,
        settle: Duration::ZERO,
        ..Settings::default()
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn answers<T: Send + 'static>(items: Vec<T>) -> Response<Answers<T>> {
    Response::new(Box::pin(stream::iter(items.into_iter().map(Ok))))
}

impl Fake {
    /// A registry that is open, and its address.
    pub(crate) async fn serve(catalog: Arc<Catalog>) -> (Self, String) {
        let fake = Self(Arc::new(State {
            catalog: Mutex::new(Some(catalog)),
            is_open: watch::channel(true).0,
            readings: watch::channel(Readings::default()).0,
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Server::builder()
            .add_service(RegistryServer::new(fake.clone()))
            .add_service(ExperimentalRegistryServer::new(fake.clone()));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        (fake, address)
    }

    /// Serves another catalog, or nothing any more.
    pub(crate) fn set(&self, catalog: Option<Arc<Catalog>>) {
        *self.0.catalog.lock() = catalog;
    }

    /// Leaves readings unanswered, or answers them.
    pub(crate) fn open(&self, is_open: bool) {
        self.0.is_open.send_replace(is_open);
    }

    pub(crate) fn readings(&self) -> Readings {
        *self.0.readings.borrow()
    }

    /// Waits until so many readings have begun.
    pub(crate) async fn begun(&self, readings: usize) {
        let mut seen = self.0.readings.subscribe();
        seen.wait_for(|now| now.begun >= readings).await.unwrap();
    }

    fn catalog(&self) -> Result<Arc<Catalog>, Status> {
        self.0.catalog.lock().clone().ok_or_else(|| Status::unavailable("it is down"))
    }
}

fn properties(bundle: &wavelift_catalog::graph::Bundle) -> Vec<wire::Property> {
    let property = |one: &Arc<wavelift_catalog::graph::Property>| wire::Property {
        r#type: one.kind.clone(),
        value: one.value.to_string(),
    };
    bundle.properties.iter().map(property).collect()
}

#[tonic::async_trait]
impl Registry for Fake {
    type ListPackagesStream = Answers<wire::PackageName>;
    type ListBundlesStream = Answers<wire::Bundle>;

    async fn list_packages(
        &self,
        _: Request<wire::ListPackageRequest>,
    ) -> Result<Response<Self::ListPackagesStream>, Status> {
        self.0.readings.send_modify(|readings| {
            readings.begun += 1;
            readings.open += 1;
            readings.at_once = readings.at_once.max(readings.open);
        });
        let mut gate = self.0.is_open.subscribe();
        drop(gate.wait_for(|is_open| *is_open).await.unwrap());
        self.0.readings.send_modify(|readings| readings.open -= 1);
        let catalog = self.catalog()?;
        let names = catalog.graph().packages.keys();
        Ok(answers(names.map(|name| wire::PackageName { name: name.clone() }).collect()))
    }

    async fn get_package(
        &self,
        request: Request<wire::GetPackageRequest>,
    ) -> Result<Response<wire::Package>, Status> {
        let name = request.into_inner().name;
        let catalog = self.catalog()?;
        let package = &catalog.graph().packages[&name];
        let channel = |name: &String| wire::Channel { name: name.clone(), ..Default::default() };
        Ok(Response::new(wire::Package {
            channels: package.channels.keys().map(channel).collect(),
            default_channel_name: package.default_channel.clone().unwrap_or_default(),
            deprecation: None,
            name,
        }))
    }

    async fn get_bundle(
        &self,
        request: Request<wire::GetBundleRequest>,
    ) -> Result<Response<wire::Bundle>, Status> {
        let wire::GetBundleRequest { pkg_name, csv_name, .. } = request.into_inner();
        let catalog = self.catalog()?;
        let bundle = catalog.bundle(&pkg_name, &csv_name).unwrap();
        let needs = bundle.min_kube_version.clone().unwrap_or_default();
        let csv_json = serde_json::json!({"spec": {"minKubeVersion": needs}}).to_string();
        Ok(Response::new(wire::Bundle { csv_name, csv_json, ..Default::default() }))
    }

    async fn list_bundles(
        &self,
        _: Request<wire::ListBundlesRequest>,
    ) -> Result<Response<Self::ListBundlesStream>, Status> {
        let catalog = self.catalog()?;
        let mut listed = vec![];
        for (name, package) in &catalog.graph().packages {
            for (channel, of) in &package.channels {
                for (csv, entry) in &of.entries {
                    let bundle = &package.bundles[csv];
                    listed.push(wire::Bundle {
                        csv_name: csv.clone(),
                        package_name: name.clone(),
                        channel_name: channel.clone(),
                        bundle_path: bundle.image.clone().unwrap_or_default(),
                        version: bundle.version.as_ref().unwrap().to_string(),
                        replaces: entry.replaces.clone().unwrap_or_default(),
                        properties: properties(bundle),
                        ..Default::default()
                    });
                }
            }
        }
        Ok(answers(listed))
    }
}

#[tonic::async_trait]
impl ExperimentalRegistry for Fake {
    type ExperimentalListPackageCustomSchemasStream = Answers<prost_types::Struct>;

    /// One document of ours for each package.
    async fn experimental_list_package_custom_schemas(
        &self,
        request: Request<wire::ExperimentalListPackageCustomSchemasRequest>,
    ) -> Result<Response<Self::ExperimentalListPackageCustomSchemasStream>, Status> {
        let request = request.into_inner();
        if request.schema != release::SCHEMA {
            return Ok(answers(vec![]));
        }
        let text = |text: String| prost_types::Value {
            kind: Some(prost_types::value::Kind::StringValue(text)),
        };
        let fields = BTreeMap::from([
            ("schema".to_owned(), text(request.schema)),
            ("package".to_owned(), text(request.package_name)),
        ]);
        Ok(answers(vec![prost_types::Struct { fields }]))
    }
}
