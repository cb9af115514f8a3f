use std::{pin::Pin, sync::Arc};

use futures::Stream;
use parking_lot::Mutex;
use prost_types::value::Kind;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Code, Request, Response,
    transport::{Identity, Server, ServerTlsConfig},
};
use wavelift_catalog::catalog::Stated;
use wavelift_proto::olm_registry::{
    experimental_registry_server::{ExperimentalRegistry, ExperimentalRegistryServer},
    registry_server::{Registry, RegistryServer},
};

use super::*;
use crate::testing::Ca;

/// A catalog as its author writes it.
const FILES: &str = r#"
{"schema":"olm.package","name":"lantern","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lantern","name":"stable","entries":[
  {"name":"lantern.v1.1.0","replaces":"lantern.v1.0.0","skips":["lantern.v1.0.1"],"skipRange":"<1.1.0"},
  {"name":"lantern.v1.0.0","replaces":"lantern.v0.9.0"}]}
{"schema":"olm.channel","package":"lantern","name":"fast","entries":[{"name":"lantern.v1.1.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v1.0.0","image":"r.example.com/lantern:1.0.0","properties":[
  {"type":"olm.package","value":{"packageName":"lantern","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v1.1.0","image":"r.example.com/lantern:1.1.0","properties":[
  {"type":"olm.gvk","value":{"group":"lantern.example.com","version":"v1","kind":"Lantern"}},
  {"type":"olm.maxOpenShiftVersion","value":4.21},
  {"type":"olm.package","value":{"packageName":"lantern","version":"1.1.0"}}]}
{"schema":"olm.deprecations","package":"lantern","entries":[
  {"reference":{"schema":"olm.package"},"message":"use torch"},
  {"reference":{"schema":"olm.channel","name":"fast"},"message":"use stable"},
  {"reference":{"schema":"olm.bundle","name":"lantern.v1.0.0"},"message":"too old"}]}
"#;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What the fake does next instead of answering; afterwards it answers.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    Fails(Code),
    Stalls,
    /// A channel that came with the bundles is not in the package.
    ForgetsChannel,
}

/// A registry that serves what it was given.
#[derive(Debug, Clone, Default)]
struct Fake {
    packages: Vec<wire::Package>,
    bundles: Vec<wire::Bundle>,
    documents: Vec<prost_types::Struct>,
    is_old: bool,
    /// CSVs that come with one bundle alone, by its name.
    described: BTreeMap<String, String>,
    mishaps: Arc<Mutex<Vec<Mishap>>>,
}

fn answers<T: Send + 'static>(items: Vec<T>) -> Response<Answers<T>> {
    Response::new(Box::pin(stream::iter(items.into_iter().map(Ok))))
}

#[tonic::async_trait]
impl Registry for Fake {
    type ListPackagesStream = Answers<wire::PackageName>;
    type ListBundlesStream = Answers<wire::Bundle>;

    async fn list_packages(
        &self,
        _: Request<wire::ListPackageRequest>,
    ) -> Result<Response<Self::ListPackagesStream>, Status> {
        let names = self.packages.iter().map(|p| wire::PackageName { name: p.name.clone() });
        Ok(answers(names.collect()))
    }

    async fn get_package(
        &self,
        request: Request<wire::GetPackageRequest>,
    ) -> Result<Response<wire::Package>, Status> {
        let name = request.into_inner().name;
        let mut package = self.packages.iter().find(|p| p.name == name).unwrap().clone();
        if let Some(Mishap::ForgetsChannel) = self.mishaps.lock().pop() {
            package.channels.pop();
        }
        Ok(Response::new(package))
    }

    async fn get_bundle(
        &self,
        request: Request<wire::GetBundleRequest>,
    ) -> Result<Response<wire::Bundle>, Status> {
        let name = request.into_inner().csv_name;
        let bundle = self.bundles.iter().find(|b| b.csv_name == name);
        let described = self.described.get(&name);
        let with_csv = |bundle: &wire::Bundle| wire::Bundle {
            csv_json: described.unwrap_or(&bundle.csv_json).clone(),
            ..bundle.clone()
        };
        bundle.map(with_csv).map(Response::new).ok_or_else(|| Status::unknown("not found"))
    }

    async fn list_bundles(
        &self,
        _: Request<wire::ListBundlesRequest>,
    ) -> Result<Response<Self::ListBundlesStream>, Status> {
        let mishap = self.mishaps.lock().last().copied();
        match mishap {
            Some(Mishap::Fails(code)) => {
                self.mishaps.lock().pop();
                return Err(Status::new(code, "mishap"));
            }
            Some(Mishap::Stalls) => {
                self.mishaps.lock().pop();
                let first = stream::iter(self.bundles.first().cloned().map(Ok));
                return Ok(Response::new(Box::pin(first.chain(stream::pending()))));
            }
            Some(Mishap::ForgetsChannel) | None => {}
        }
        Ok(answers(self.bundles.clone()))
    }
}

#[tonic::async_trait]
impl ExperimentalRegistry for Fake {
    type ExperimentalListPackageCustomSchemasStream = Answers<prost_types::Struct>;

    async fn experimental_list_package_custom_schemas(
        &self,
        request: Request<wire::ExperimentalListPackageCustomSchemasRequest>,
    ) -> Result<Response<Self::ExperimentalListPackageCustomSchemasStream>, Status> {
        if self.is_old {
            return Err(Status::unimplemented("unknown service"));
        }
        let is_meant = request
            .metadata()
            .get("x-acknowledge-experimental")
            .is_some_and(|value| value == "true");
        Ok(answers(if is_meant { self.documents.clone() } else { Vec::new() }))
    }
}

impl Fake {
    fn lantern() -> Self {
        let noted = |message: &str| Some(wire::Deprecation { message: message.to_owned() });
        let property = |kind: &str, value: &str| wire::Property {
            r#type: kind.to_owned(),
            value: value.to_owned(),
        };
        let old = wire::Bundle {
            csv_name: "lantern.v1.0.0".to_owned(),
            package_name: "lantern".to_owned(),
            channel_name: "stable".to_owned(),
            bundle_path: "r.example.com/lantern:1.0.0".to_owned(),
            version: "1.0.0".to_owned(),
            replaces: "lantern.v0.9.0".to_owned(),
            properties: vec![property(
                "olm.package",
                r#"{"packageName":"lantern","version":"1.0.0"}"#,
            )],
            deprecation: noted("too old"),
            ..wire::Bundle::default()
        };
        let new = wire::Bundle {
            csv_name: "lantern.v1.1.0".to_owned(),
            bundle_path: "r.example.com/lantern:1.1.0".to_owned(),
            version: "1.1.0".to_owned(),
            properties: vec![
                property(
                    "olm.gvk",
                    r#"{"group":"lantern.example.com","kind":"Lantern","version":"v1"}"#,
                ),
                property("olm.maxOpenShiftVersion", "4.21"),
                property("olm.package", r#"{"packageName": "lantern", "version": "1.1.0"}"#),
            ],
            replaces: String::new(),
            deprecation: None,
            ..old.clone()
        };
        let fast = wire::Bundle { channel_name: "fast".to_owned(), ..new.clone() };
        let stable = wire::Bundle {
            replaces: "lantern.v1.0.0".to_owned(),
            skips: vec!["lantern.v1.0.1".to_owned()],
            skip_range: "<1.1.0".to_owned(),
            ..new
        };
        let channel = |name: &str, deprecation| wire::Channel {
            name: name.to_owned(),
            csv_name: "lantern.v1.1.0".to_owned(),
            deprecation,
        };
        let package = wire::Package {
            name: "lantern".to_owned(),
            channels: vec![channel("fast", noted("use stable")), channel("stable", None)],
            default_channel_name: "stable".to_owned(),
            deprecation: noted("use torch"),
        };
        Self { packages: vec![package], bundles: vec![stable, fast, old], ..Self::default() }
    }

    fn with_mishaps(self, mishaps: &[Mishap]) -> Self {
        // They are taken from the end.
        *self.mishaps.lock() = mishaps.iter().rev().copied().collect();
        self
    }

    /// Serves until the test's runtime ends; the answer is the address.
    async fn serve(self, tls: Option<ServerTlsConfig>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).unwrap();
        }
        let router = server
            .add_service(RegistryServer::new(self.clone()))
            .add_service(ExperimentalRegistryServer::new(self));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        format!("localhost:{}", address.port())
    }

    async fn source(self) -> CatalogSource {
        client(&self.serve(None).await, &Transport::Plaintext, Limits::default())
    }
}

fn client(address: &str, transport: &Transport, limits: Limits) -> CatalogSource {
    let patience = Patience { silence: Duration::from_millis(300), ..Patience::default() };
    let retries = Retries {
        again_max: 2,
        first_pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(1),
    };
    CatalogSource::new(address, transport, limits, patience, retries).unwrap()
}

fn from_files() -> Catalog {
    let limits = Limits::default();
    let fbc = Fbc::parse("lantern.json", FILES.as_bytes(), &limits).unwrap();
    Catalog::from_fbc(fbc, &limits).unwrap()
}

#[tokio::test]
async fn a_catalog_is_the_same_from_its_registry_and_from_its_files() {
    let served = Fake::lantern().source().await.read().await.unwrap();
    let both = ["lantern.v1.0.0".to_owned(), "lantern.v1.1.0".to_owned()];
    assert_eq!(served.left_out["lantern"], BTreeSet::from(both));
    let catalog = served.into_catalog(&Limits::default()).unwrap();
    assert_eq!(catalog.graph(), from_files().graph());
    assert_eq!(catalog.digest(), from_files().digest());
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for mishap in [
        Mishap::Fails(Code::Unavailable),
        Mishap::Fails(Code::Unknown),
        Mishap::Stalls,
        Mishap::ForgetsChannel,
    ] {
        let fake = Fake::lantern().with_mishaps(&[mishap, mishap]);
        let served = fake.source().await.read().await.unwrap();
        assert_eq!(served.fbc.bundles.len(), 2, "{mishap:?}");
    }
}

#[tokio::test]
async fn what_does_not_pass_is_an_error_that_says_what_to_do() {
    let call = |code| vec![Mishap::Fails(code); 3];
    for (mishaps, kind, advice) in [
        (call(Code::Unavailable), "Call", "pod runs"),
        (vec![Mishap::Fails(Code::Unimplemented)], "Call", "is that of a catalog's registry"),
        (vec![Mishap::Fails(Code::Internal)], "Call", "log of the CatalogSource's pod"),
        (vec![Mishap::Stalls; 3], "Silent", "memory or CPU"),
        (vec![Mishap::ForgetsChannel; 3], "Changed", "has settled"),
    ] {
        let fake = Fake::lantern().with_mishaps(&mishaps);
        let left = Arc::clone(&fake.mishaps);
        let error = fake.source().await.read().await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.advice().contains(advice), "{error}: {}", error.advice());
        // As many attempts as there were mishaps: no more, and no fewer.
        assert!(left.lock().is_empty(), "{error}");
    }
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let error = client(&nobody, &Transport::Plaintext, Limits::default()).read().await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains(&nobody) && error.advice().contains("pod runs"), "{error}");
}

#[tokio::test]
async fn more_than_the_limits_allow_is_refused() {
    let limits = Limits::default();
    for (limits, what) in [
        (Limits { entries: 2, ..limits }, "more than 2 channel entries"),
        (Limits { total_bytes: 300, ..limits }, "more than 300 bytes"),
        (Limits { entries: 0, ..limits }, "more than 0 packages"),
    ] {
        let address = Fake::lantern().serve(None).await;
        let error = client(&address, &Transport::Plaintext, limits).read().await.unwrap_err();
        assert!(error.to_string().ends_with(what), "{error}");
        assert_eq!(error.kind(), "TooLarge");
    }
    let mut long = Fake::lantern();
    long.bundles[0].csv_json = "x".repeat(MESSAGE_BYTES_MAX + 1);
    let error = long.source().await.read().await.unwrap_err();
    assert!(error.advice().contains("longer than OLM accepts"), "{error:?}");
}

#[tokio::test]
async fn one_bundle_that_is_two_is_refused() {
    let mut fake = Fake::lantern();
    fake.bundles[1].bundle_path.push_str("-other");
    let error = fake.source().await.read().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "bundle `lantern.v1.1.0` of package `lantern` is two different ones in two channels"
    );
    let mut fake = Fake::lantern();
    fake.bundles[2].properties[0].value = "{".to_owned();
    let error = fake.source().await.read().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "bundle `lantern.v1.0.0` of package `lantern`: the value of property `olm.package` is not JSON"
    );
}

#[tokio::test]
async fn a_description_is_no_manifest() {
    // As registries make it up from what the catalog says of a bundle.
    let stub = r#"{"kind":"ClusterServiceVersion","spec":{"minKubeVersion":"1.30.0",
        "install":{"strategy":"deployment"}}}"#;
    let whole = r#"{"kind":"ClusterServiceVersion","spec":{"install":{"strategy":"deployment",
        "spec":{"deployments":[{"name":"d"}]}}}}"#;
    let crd = r#"{"kind":"CustomResourceDefinition"}"#;
    for (csv, objects, expected) in [
        (stub, vec![stub], 0),
        (whole, vec![whole], 1),
        (whole, vec![whole, crd], 2),
        ("", vec![], 0),
    ] {
        let mut fake = Fake::lantern();
        fake.bundles[2].csv_json = csv.to_owned();
        fake.bundles[2].object = objects.iter().map(|&object| object.to_owned()).collect();
        let source = fake.source().await;
        let content = source.bundle("lantern", "stable", "lantern.v1.0.0").await.unwrap();
        assert_eq!(content.manifests.len(), expected, "{csv}");
        assert_eq!(content.csv.is_none(), csv.is_empty());
        assert_eq!(content.image, "r.example.com/lantern:1.0.0");
    }
}

#[tokio::test]
async fn manifests_that_stand_in_the_catalog_come_with_it() {
    let mut fake = Fake::lantern();
    fake.bundles[2].bundle_path = String::new();
    fake.bundles[2].object = vec![r#"{"kind":"ClusterServiceVersion"}"#.to_owned()];
    let served = fake.source().await.read().await.unwrap();
    assert!(!served.left_out["lantern"].contains("lantern.v1.0.0"));
    let catalog = served.into_catalog(&Limits::default()).unwrap();
    let manifests = catalog.manifests("lantern", "lantern.v1.0.0").unwrap();
    assert_eq!(manifests.csv().unwrap()["kind"], "ClusterServiceVersion");
    assert!(catalog.manifests("lantern", "lantern.v1.1.0").is_none());
}

#[tokio::test]
async fn a_bundle_is_described_where_that_is_asked_for_and_stays_unknown_elsewhere() {
    let stub = |version: &str| format!(r#"{{"spec":{{"minKubeVersion":{version}}}}}"#);
    let packages = BTreeSet::from(["lantern".to_owned()]);
    let (old, new) = ("lantern.v1.0.0", "lantern.v1.1.0");
    for (csv, expected) in [
        (stub("\"1.30.0\""), Stated::As("1.30.0")),
        (stub("null"), Stated::Nothing),
        (String::new(), Stated::Unread),
        ("{".to_owned(), Stated::Unread),
    ] {
        let mut fake = Fake::lantern();
        fake.described.insert(old.to_owned(), csv);
        let source = fake.source().await;
        let mut served = source.read().await.unwrap();
        source.describe(&mut served, &packages).await;
        let catalog = served.into_catalog(&Limits::default()).unwrap();
        assert_eq!(catalog.min_kube_version("lantern", old), expected);
        assert_eq!(catalog.min_kube_version("lantern", new), Stated::Unread);
        assert_eq!(catalog.digest(), from_files().digest());
    }
    let mut fake = Fake::lantern();
    fake.described.insert(old.to_owned(), stub("\"1.30.0\""));
    let source = fake.source().await;
    let mut served = source.read().await.unwrap();
    source.describe(&mut served, &BTreeSet::new()).await;
    let catalog = served.into_catalog(&Limits::default()).unwrap();
    assert_eq!(catalog.min_kube_version("lantern", old), Stated::Unread, "nobody asked");
}

#[tokio::test]
async fn documents_of_several_schemas_are_within_one_limit() {
    let document = |length: usize| prost_types::Struct {
        fields: BTreeMap::from([(
            "schema".to_owned(),
            prost_types::Value { kind: Some(Kind::StringValue("x".repeat(length))) },
        )]),
    };
    // Each question is answered with the same document, whatever it is about.
    let fake = Fake { documents: vec![document(400)], ..Fake::lantern() };
    let address = fake.clone().serve(None).await;
    let packages = ["lantern".to_owned(), "wick".to_owned()];
    let ask = async |limits: Limits| {
        let source = client(&address, &Transport::Plaintext, limits);
        source.custom_schemas(&["io.example.a", "io.example.b"], &packages).await
    };
    let Ok(CustomSchema::Documents(documents)) = ask(Limits::default()).await else {
        panic!("not served")
    };
    assert_eq!(documents.len(), 4);
    for limits in [
        Limits { total_bytes: 1_000, ..Limits::default() },
        Limits { file_documents: 3, ..Limits::default() },
    ] {
        assert_eq!(ask(limits).await.unwrap_err().kind(), "TooLarge");
    }
    let old = Fake { is_old: true, ..fake };
    let answer = old.source().await.custom_schemas(&["io.example.a"], &packages).await;
    assert_eq!(answer.unwrap(), CustomSchema::NotServed);
}

#[tokio::test]
async fn documents_of_custom_schemas_come_as_they_were_written() {
    let text = |text: &str| prost_types::Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let number = |value| prost_types::Value { kind: Some(Kind::NumberValue(value)) };
    let list = prost_types::ListValue { values: vec![number(2.0), number(0.5)] };
    let document = prost_types::Struct {
        fields: BTreeMap::from([
            ("schema".to_owned(), text("io.example.v1")),
            ("package".to_owned(), text("lantern")),
            ("of".to_owned(), prost_types::Value { kind: Some(Kind::ListValue(list)) }),
        ]),
    };
    let mut fake = Fake { documents: vec![document], ..Fake::lantern() };
    let source = fake.clone().source().await;
    let answer = source.custom_schema("io.example.v1", Some("lantern")).await.unwrap();
    let expected =
        serde_json::json!({"schema": "io.example.v1", "package": "lantern", "of": [2, 0.5]});
    assert_eq!(answer, CustomSchema::Documents(vec![expected.clone()]));
    let mut served = source.read().await.unwrap();
    served.add_custom(std::slice::from_ref(&expected), &Limits::default()).unwrap();
    assert_eq!(served.fbc.others[0].schema, "io.example.v1");

    fake.is_old = true;
    let answer = fake.source().await.custom_schema("io.example.v1", None).await.unwrap();
    assert_eq!(answer, CustomSchema::NotServed);
}

#[tokio::test]
async fn over_tls_only_the_right_authority_counts() {
    let ca = Ca::new("registry");
    let (certificate, key) = ca.server("localhost");
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
    let address = Fake::lantern().serve(Some(tls)).await;
    let read = async |ca: &Ca| {
        let trust = Trust::Only(ca.pem().into_bytes());
        client(&address, &Transport::Tls(trust), Limits::default()).read().await
    };
    assert_eq!(read(&ca).await.unwrap().fbc.bundles.len(), 2);
    let error = read(&Ca::new("other")).await.unwrap_err();
    assert_eq!(error.kind(), "Call");
}

fn kept(channel: &str, csv: &str) -> wavelift_catalog::pin::Kept {
    wavelift_catalog::pin::Kept {
        package: "lantern".to_owned(),
        channel: channel.to_owned(),
        csv: csv.to_owned(),
        catalog: wavelift_catalog::engine::CatalogKey::default(),
    }
}

/// A registry of nothing but what is kept.
async fn pinned(pinned: Pinned) -> RegistryClient<Channel> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(pinned.serve(listener, tokio_util::sync::CancellationToken::new()));
    RegistryClient::connect(address).await.unwrap()
}

#[tokio::test]
async fn a_pinned_catalog_gives_on_what_the_registry_gave_and_nothing_else() {
    let csv = r#"{"kind": "ClusterServiceVersion",  "metadata": {"name": "lantern.v1.1.0"}}"#;
    let mut fake = Fake::lantern();
    fake.described = BTreeMap::from([("lantern.v1.1.0".to_owned(), csv.to_owned())]);
    let given = fake.bundles[0].clone();
    let held = fake.source().await.keep(&[kept("stable", "lantern.v1.1.0")]).await.unwrap();
    let catalog = held.catalog(&Limits::default()).unwrap();
    let package = &catalog.graph().packages["lantern"];
    assert_eq!(package.bundles.keys().collect::<Vec<_>>(), ["lantern.v1.1.0"]);
    assert_eq!(package.channels.keys().collect::<Vec<_>>(), ["stable"]);

    let mut client = pinned(held).await;
    let listed = client.list_bundles(wire::ListBundlesRequest {}).await.unwrap();
    let listed: Vec<wire::Bundle> = listed.into_inner().try_collect().await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&given));
    let names = client.list_packages(wire::ListPackageRequest {}).await.unwrap();
    let names: Vec<wire::PackageName> = names.into_inner().try_collect().await.unwrap();
    assert_eq!(names, [wire::PackageName { name: "lantern".to_owned() }]);
    let name = "lantern".to_owned();
    let package = client.get_package(wire::GetPackageRequest { name }).await.unwrap().into_inner();
    assert_eq!(package.default_channel_name, "stable");
    assert_eq!(package.channels.len(), 1);
    assert_eq!(package.channels[0].csv_name, "lantern.v1.1.0");
    assert_eq!(package.deprecation.unwrap().message, "use torch");
    let ask = |channel: &str, csv: &str| wire::GetBundleRequest {
        pkg_name: "lantern".to_owned(),
        channel_name: channel.to_owned(),
        csv_name: csv.to_owned(),
    };
    let alone = client.get_bundle(ask("stable", "lantern.v1.1.0")).await.unwrap().into_inner();
    // Byte by byte, spaces and all.
    assert_eq!(alone, wire::Bundle { csv_json: csv.to_owned(), ..given });
    let other = client.get_bundle(ask("stable", "lantern.v1.0.0")).await.unwrap_err();
    assert_eq!(other.code(), Code::NotFound);
}

#[tokio::test]
async fn what_the_registry_has_no_more_or_has_too_much_of_is_not_pinned() {
    let gone = [kept("fast", "lantern.v1.0.0")];
    let error = Fake::lantern().source().await.keep(&gone).await.unwrap_err();
    assert_eq!(error.kind(), "Changed");
    let many = vec![kept("stable", "lantern.v1.1.0"); 101];
    let error = Fake::lantern().source().await.keep(&many).await.unwrap_err();
    assert_eq!(error.kind(), "TooLarge");
}
