use std::{convert::Infallible, io::Write as _};

use ::http::{
    HeaderMap, StatusCode, Uri,
    header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE},
};
use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Ca, patience, retries, serve};

const REPOSITORY: &str = "team/lantern-bundle";

/// How the fake is convinced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Login {
    Nobody,
    Basic,
    /// With a token, which anybody gets or only who has the password.
    Token,
    TokenWithPassword,
}

/// What the fake does before it answers well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mishap {
    Busy,
    Endless,
}

/// A registry.
#[derive(Debug, Clone)]
struct Fake {
    content: BTreeMap<String, Vec<u8>>,
    login: Login,
    mishaps: Arc<Mutex<Vec<Mishap>>>,
    /// Blobs are elsewhere.
    blobs_at: Option<String>,
    /// What was asked for, and whether with credentials.
    asked: Arc<Mutex<Vec<String>>>,
    port: Arc<Mutex<u16>>,
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

impl Fake {
    /// A registry with one bundle image, under the tag `v1`.
    fn with(layers: &[Vec<u8>], labels: &Value) -> Self {
        let mut fake = Self {
            content: BTreeMap::new(),
            login: Login::Nobody,
            mishaps: Arc::default(),
            blobs_at: None,
            asked: Arc::default(),
            port: Arc::default(),
        };
        let config = json!({"config": {"Labels": labels}}).to_string().into_bytes();
        let mut descriptor = |content: &[u8]| {
            let digest = Digest::of(content);
            fake.content.insert(format!("blobs/{digest}"), content.to_vec());
            json!({"digest": digest.as_str(), "size": content.len()})
        };
        let config = descriptor(&config);
        let layers: Vec<_> = layers.iter().map(|layer| descriptor(layer)).collect();
        fake.add_manifest("v1", &json!({"schemaVersion": 2, "config": config, "layers": layers}));
        fake
    }

    fn lantern() -> Self {
        let files = [
            ("manifests/csv.yaml", "kind: ClusterServiceVersion"),
            ("metadata/annotations.yaml", "annotations: {}"),
            ("tests/scorecard/config.yaml", "kind: Configuration"),
        ];
        let labels = json!({
            "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
            "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        });
        Self::with(&[archive(&files)], &labels)
    }

    fn add_manifest(&mut self, tag: &str, manifest: &Value) -> Digest {
        let manifest = manifest.to_string().into_bytes();
        let digest = Digest::of(&manifest);
        self.content.insert(format!("manifests/{digest}"), manifest.clone());
        self.content.insert(format!("manifests/{tag}"), manifest);
        digest
    }

    fn digest(&self) -> Digest {
        Digest::of(&self.content["manifests/v1"])
    }

    /// The image at its source, by digest.
    fn image(&self) -> String {
        format!("source.invalid/{REPOSITORY}@{}", self.digest())
    }

    async fn serve(self, ca: &Ca) -> String {
        let port = Arc::clone(&self.port);
        let router = Router::new().fallback(answer).with_state(self);
        let served = serve(router, Some(ca.server("localhost"))).await;
        *port.lock() = served;
        format!("localhost:{served}")
    }

    fn is_convinced(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        match self.login {
            Login::Nobody => true,
            Login::Basic => given == Some(basic().as_str()),
            Login::Token | Login::TokenWithPassword => given == Some("Bearer token-of-a-test"),
        }
    }
}

fn basic() -> String {
    format!("Basic {}", STANDARD.encode("robot:secret"))
}

async fn answer(State(fake): State<Fake>, uri: Uri, headers: HeaderMap) -> Response {
    let given = if headers.contains_key(AUTHORIZATION) { " with credentials" } else { "" };
    fake.asked.lock().push(format!("{}{given}", uri.path()));
    if uri.path() == "/token" {
        assert_eq!(
            uri.query(),
            Some("service=fake&scope=repository%3Ateam%2Flantern%2Dbundle%3Apull")
        );
        let is_known = headers.get(AUTHORIZATION).is_some_and(|value| *value == *basic());
        return match fake.login {
            Login::Token => r#"{"token":"token-of-a-test"}"#.into_response(),
            Login::Nobody | Login::Basic | Login::TokenWithPassword if is_known => {
                r#"{"access_token":"token-of-a-test"}"#.into_response()
            }
            Login::Nobody | Login::Basic | Login::TokenWithPassword => {
                StatusCode::UNAUTHORIZED.into_response()
            }
        };
    }
    if !fake.is_convinced(&headers) {
        let challenge = match fake.login {
            Login::Basic | Login::Nobody => "Basic realm=\"fake\"".to_owned(),
            Login::Token | Login::TokenWithPassword => {
                let port = *fake.port.lock();
                format!("Bearer realm=\"https://localhost:{port}/token\",service=\"fake\"")
            }
        };
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
    }
    match fake.mishaps.lock().pop() {
        Some(Mishap::Busy) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Mishap::Endless) => {
            let piece = Bytes::from(vec![b' '; 1 << 20]);
            let pieces = futures::stream::repeat(Ok::<_, Infallible>(piece));
            return Body::from_stream(pieces).into_response();
        }
        None => {}
    }
    let prefix = format!("/v2/{REPOSITORY}/");
    let Some(path) = uri.path().strip_prefix(&prefix) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let (Some(elsewhere), true) = (&fake.blobs_at, path.starts_with("blobs/")) {
        let location = format!("{elsewhere}{}", uri.path());
        return (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, location)]).into_response();
    }
    match fake.content.get(path) {
        Some(content) => content.clone().into_response(),
        None => (StatusCode::NOT_FOUND, "no such thing").into_response(),
    }
}

fn options(ca: &Ca, mirrors: &[&str], secrets: &Value) -> Options {
    let mut rules = Mirrors::default();
    let places = || mirrors.iter().map(|&mirror| mirror.to_owned());
    let never = SourcePolicy::NeverContactSource;
    rules.add("source.invalid", Has::Digests, places(), never).unwrap();
    rules.add("source.invalid", Has::Tags, places(), never).unwrap();
    Options {
        mirrors: rules,
        secrets: PullSecrets::parse(json!({"auths": secrets}).to_string().as_bytes()).unwrap(),
        trust: Trust::Only(ca.pem().into_bytes()),
        patience: patience(),
        retries: retries(),
        ..Options::default()
    }
}

fn images(ca: &Ca, mirrors: &[&str]) -> BundleImages {
    BundleImages::new(options(ca, mirrors, &json!({}))).unwrap()
}

#[tokio::test]
async fn a_bundle_comes_from_a_mirror_over_tls_with_the_pull_secret() {
    let ca = Ca::new("registries");
    for login in [Login::Basic, Login::Token, Login::TokenWithPassword] {
        let fake = Fake { login, ..Fake::lantern() };
        let (image, digest) = (fake.image(), fake.digest());
        let mirror = fake.serve(&ca).await;
        let secrets = json!({ &mirror: {"username": "robot", "password": "secret"} });
        let images = BundleImages::new(options(&ca, &[&mirror], &secrets)).unwrap();
        let bundle = images.fetch(&image).await.unwrap();
        let paths: Vec<_> = bundle.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["manifests/csv.yaml", "metadata/annotations.yaml"], "{login:?}");
        assert_eq!(bundle.files["manifests/csv.yaml"], b"kind: ClusterServiceVersion");
        assert_eq!((bundle.digest, bundle.place.registry), (digest, mirror));
        assert_eq!(bundle.labels.len(), 2);
    }
}

#[tokio::test]
async fn what_the_registry_refuses_says_what_is_missing() {
    let ca = Ca::new("registries");
    for (login, password, expected) in [
        (Login::Basic, None, "give a pull secret"),
        (Login::Basic, Some("wrong"), "it is wrong, or may not pull this"),
        (Login::TokenWithPassword, None, "give a pull secret"),
        (Login::TokenWithPassword, Some("wrong"), "it is wrong, or may not pull this"),
    ] {
        let fake = Fake { login, ..Fake::lantern() };
        let image = fake.image();
        let mirror = fake.serve(&ca).await;
        let secrets = match password {
            Some(password) => json!({ &mirror: {"username": "robot", "password": password} }),
            None => json!({}),
        };
        let images = BundleImages::new(options(&ca, &[&mirror], &secrets)).unwrap();
        let error = images.fetch(&image).await.unwrap_err();
        assert!(error.advice().contains(expected), "{login:?} {error}: {}", error.advice());
    }
    // Whoever needs no password does not get one.
    let fake = Fake::lantern();
    let (image, asked) = (fake.image(), Arc::clone(&fake.asked));
    let mirror = fake.serve(&ca).await;
    let secrets = json!({ &mirror: {"username": "robot", "password": "secret"} });
    BundleImages::new(options(&ca, &[&mirror], &secrets)).unwrap().fetch(&image).await.unwrap();
    assert!(asked.lock().iter().all(|line| !line.ends_with("credentials")));
}

#[tokio::test]
async fn a_mirror_that_lies_is_passed_over() {
    let ca = Ca::new("registries");
    let good = Fake::lantern();
    let (image, digest) = (good.image(), good.digest());
    let manifest: Value = serde_json::from_slice(&good.content["manifests/v1"]).unwrap();
    let layer = &format!("blobs/{}", manifest["layers"][0]["digest"].as_str().unwrap());
    let mut wrong = [Fake::lantern(), Fake::lantern(), Fake::lantern()];
    // Another manifest, another layer, half a layer.
    wrong[0].content.insert(format!("manifests/{digest}"), b"{}".to_vec());
    wrong[1].content.insert(layer.clone(), b"other".to_vec());
    let half = good.content[layer].len() / 2;
    wrong[2].content.get_mut(layer).unwrap().truncate(half);
    let right = good.clone().serve(&ca).await;
    for fake in wrong {
        let wrong = fake.serve(&ca).await;
        let bundle = images(&ca, &[&wrong, &right]).fetch(&image).await.unwrap();
        assert_eq!(bundle.place.registry, right);
        let error = images(&ca, &[&wrong]).fetch(&image).await.unwrap_err();
        assert!(error.to_string().contains("has digest sha256:"), "{error}");
        assert!(error.advice().contains("damaged or forged"), "{}", error.advice());
    }
}

#[tokio::test]
async fn who_can_not_be_reached_or_trusted_is_named() {
    let ca = Ca::new("registries");
    let fake = Fake::lantern();
    let image = fake.image();
    let mirror = fake.serve(&ca).await;
    let error = images(&Ca::new("other"), &[&mirror]).fetch(&image).await.unwrap_err();
    assert!(error.to_string().contains(&format!("can't trust {mirror}")), "{error}");
    assert!(!error.is_transient() && error.unreachable().is_some());
    assert!(error.advice().contains("to the CA bundle"), "{}", error.advice());

    let closed = "localhost:1";
    assert_eq!(images(&ca, &[closed]).registries(&image).unwrap(), [closed]);
    let error = images(&ca, &[closed]).fetch(&image).await.unwrap_err();
    assert!(error.to_string().contains("can't connect to localhost:1"), "{error}");
    assert!(error.is_transient());
    assert_eq!(error.unreachable().unwrap()[0].place.registry, closed);
    let absent = format!("source.invalid/{REPOSITORY}:absent");
    let error = images(&ca, &[closed, &mirror]).fetch(&absent).await.unwrap_err();
    assert!(error.is_transient() && error.unreachable().is_none(), "one did answer: {error}");
    let error = images(&ca, &[&mirror]).fetch(&absent).await.unwrap_err();
    assert!(!error.is_transient() && error.unreachable().is_none(), "{error}");

    let error = images(&ca, &[]).fetch(&image).await.unwrap_err();
    assert_eq!(error.kind(), "Blocked");
    let error = images(&ca, &[]).fetch("Not An Image").await.unwrap_err();
    assert_eq!(error.kind(), "Reference");
}

#[tokio::test]
async fn a_registry_that_is_busy_is_asked_again_and_an_endless_one_is_not() {
    let ca = Ca::new("registries");
    let fake = Fake::lantern();
    *fake.mishaps.lock() = vec![Mishap::Busy; 2];
    let image = fake.image();
    let mirror = fake.serve(&ca).await;
    images(&ca, &[&mirror]).fetch(&image).await.unwrap();

    let fake = Fake::lantern();
    *fake.mishaps.lock() = vec![Mishap::Busy; 3];
    let mirror = fake.serve(&ca).await;
    let error = images(&ca, &[&mirror]).fetch(&image).await.unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");

    let fake = Fake::lantern();
    *fake.mishaps.lock() = vec![Mishap::Endless];
    let mirror = fake.serve(&ca).await;
    let error = images(&ca, &[&mirror]).fetch(&image).await.unwrap_err();
    assert!(error.to_string().contains("longer than 4194304 bytes"), "{error}");
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_server() {
    let ca = Ca::new("registries");
    let elsewhere = Fake::lantern();
    let asked = Arc::clone(&elsewhere.asked);
    let elsewhere = elsewhere.serve(&ca).await;
    let fake = Fake {
        login: Login::Basic,
        blobs_at: Some(format!("https://{elsewhere}")),
        ..Fake::lantern()
    };
    let image = fake.image();
    let mirror = fake.clone().serve(&ca).await;
    let secrets = json!({
        &mirror: {"username": "robot", "password": "secret"},
        &elsewhere: {"username": "robot", "password": "secret"},
    });
    let fetch = async |mirror: &str, secrets: &Value| {
        BundleImages::new(options(&ca, &[mirror], secrets)).unwrap().fetch(&image).await
    };
    fetch(&mirror, &secrets).await.unwrap();
    assert_eq!(asked.lock().len(), 2, "the configuration and the layer");
    assert!(asked.lock().iter().all(|line| !line.ends_with("credentials")), "{asked:?}");

    for (blobs_at, expected) in [
        (format!("http://{elsewhere}"), "to an address without TLS"),
        (format!("https://robot:secret@{elsewhere}"), "to an address that is none"),
    ] {
        let fake = Fake { blobs_at: Some(blobs_at), login: Login::Nobody, ..fake.clone() };
        let mirror = fake.serve(&ca).await;
        let error = fetch(&mirror, &json!({})).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut circle = Fake { blobs_at: Some(String::new()), ..Fake::lantern() };
    circle.blobs_at = Some(String::new());
    let mirror = circle.serve(&ca).await;
    let error = fetch(&mirror, &json!({})).await.unwrap_err();
    assert!(error.to_string().contains("redirects in a circle"), "{error}");
}

#[tokio::test]
async fn what_was_fetched_once_is_not_fetched_again() {
    let ca = Ca::new("registries");
    let fake = Fake::lantern();
    let (image, asked) = (fake.image(), Arc::clone(&fake.asked));
    let mirror = fake.serve(&ca).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Some(Store::open(folder.path(), 1 << 20).unwrap());
    let options = Options { store, ..options(&ca, &[&mirror], &json!({})) };
    let images = BundleImages::new(options).unwrap();
    let first = images.fetch(&image).await.unwrap();
    assert_eq!(asked.lock().len(), 3);
    assert_eq!(images.fetch(&image).await.unwrap(), first);
    assert_eq!(asked.lock().len(), 3);
    // A tag may have moved: that much is asked.
    images.fetch(&format!("source.invalid/{REPOSITORY}:v1")).await.unwrap();
    assert_eq!(asked.lock().len(), 4);
    // What is damaged on disk is fetched again.
    for entry in std::fs::read_dir(folder.path().join("sha256")).unwrap() {
        std::fs::File::create(entry.unwrap().path()).unwrap().write_all(b"damaged").unwrap();
    }
    assert_eq!(images.fetch(&image).await.unwrap(), first);
    assert_eq!(asked.lock().len(), 7);
}

#[tokio::test]
async fn an_index_stands_for_its_image() {
    let ca = Ca::new("registries");
    let mut fake = Fake::lantern();
    let child = json!({"digest": fake.digest().as_str(), "size": 1,
        "platform": {"os": "linux", "architecture": "amd64"}});
    let index = fake.add_manifest("all", &json!({"schemaVersion": 2, "manifests": [child]}));
    let nested = json!({"digest": index.as_str(), "size": 1});
    fake.add_manifest("nested", &json!({"schemaVersion": 2, "manifests": [nested]}));
    let mirror = fake.serve(&ca).await;
    let images = images(&ca, &[&mirror]);
    let bundle = images.fetch(&format!("source.invalid/{REPOSITORY}:all")).await.unwrap();
    assert_eq!((bundle.files.len(), bundle.digest), (2, index));
    let error = images.fetch(&format!("source.invalid/{REPOSITORY}:nested")).await.unwrap_err();
    assert!(error.to_string().contains("names another index"), "{error}");
}

#[tokio::test]
async fn an_image_that_is_no_bundle_or_too_much_is_refused() {
    let ca = Ca::new("registries");
    let files = |files: &[(&str, &str)]| vec![archive(files)];
    let zeros = "\0".repeat(8 << 20);
    let mediatype = "operators.operatorframework.io.bundle.mediatype.v1";
    for (layers, labels, expected) in [
        (files(&[("bin/sh", "x")]), json!({}), "has no manifests"),
        (files(&[("manifests/a", "x")]), json!({ mediatype: "helm+v3" }), "of format `helm+v3`"),
        (files(&[("manifests/a", &zeros)]), json!({}), "failed to unpack image"),
        (vec![b"no archive".to_vec()], json!({}), "failed to unpack image"),
    ] {
        let fake = Fake::with(&layers, &labels);
        let image = fake.image();
        let mirror = fake.serve(&ca).await;
        let limits = Limits { unpacked_bytes: 4 << 20, ..Limits::default() };
        let options = Options { limits, ..options(&ca, &[&mirror], &json!({})) };
        let error = BundleImages::new(options).unwrap().fetch(&image).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    // Elsewhere than usual, as its labels say.
    let labels = json!({"operators.operatorframework.io.bundle.manifests.v1": "/opt/objects/"});
    let fake = Fake::with(&files(&[("opt/objects/a.yaml", "x")]), &labels);
    let image = fake.image();
    let mirror = fake.serve(&ca).await;
    let bundle = images(&ca, &[&mirror]).fetch(&image).await.unwrap();
    assert_eq!(bundle.files.into_keys().collect::<Vec<_>>(), ["manifests/a.yaml"]);
}
