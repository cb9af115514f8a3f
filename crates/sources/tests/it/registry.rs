//! A bundle image that umoci puts together and skopeo pushes, in Debian's registry: over TLS with a
//! private authority, with a password, and under a mirror rule.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use wavelift_catalog::manifests::Limits as ManifestLimits;
use wavelift_runtime::{pki::Ca, testing::programs_or_skip};
use wavelift_sources::{
    BundleImages, Trust,
    bundle_image::{BundleImage, Error, Mirrors, Options, PullSecrets, Store},
};

use crate::support::{Server, authority, certificate, free_port, patience, run, start};

/// `robot:secret`, as a registry's password file has it.
const PASSWORDS: &str = "robot:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lantern.v1.0.0}
spec:
  version: 1.0.0
  install:
    strategy: deployment
    spec: {deployments: [{name: lantern, spec: {}}]}
";
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lanterns.example.com}
";
const ANNOTATIONS: &str =
    "annotations:\n  operators.operatorframework.io.bundle.package.v1: lantern\n";

const LABELS: [(&str, &str); 4] = [
    ("operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"),
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
    ("operators.operatorframework.io.bundle.package.v1", "lantern"),
];

struct Registry {
    _server: Server,
    work: tempfile::TempDir,
    ca: Ca,
    host: String,
    skopeo: PathBuf,
    umoci: PathBuf,
}

impl Registry {
    async fn start() -> Option<Self> {
        let programs = ["docker-registry", "skopeo", "umoci"];
        let [registry, skopeo, umoci] = programs_or_skip(programs)?;
        let work = tempfile::tempdir().unwrap();
        let ca = authority();
        let (certificate, key) = certificate(&ca);
        let file = |name: &str, content: &str| {
            let path = work.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        };
        let host = format!("127.0.0.1:{}", free_port());
        file("trusted/ca.crt", ca.certificate_pem());
        // JSON is YAML.
        let settings = json!({
            "version": 0.1,
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": work.path().join("data")}},
            "http": {"addr": host, "tls": {
                "certificate": file("tls.crt", &certificate), "key": file("tls.key", &key)}},
            "auth": {"htpasswd": {"realm": "test", "path": file("passwords", PASSWORDS)}},
        });
        let settings = file("registry.yml", &settings.to_string());
        let mut command = Command::new(registry);
        command.arg("serve").arg(settings);
        let server = start(command, "listening on").await;
        Some(Self { _server: server, work, ca, host, skopeo, umoci })
    }

    fn path(&self, name: &str) -> String {
        self.work.path().join(name).to_str().unwrap().to_owned()
    }

    /// Puts a bundle image together: what its layers bring and take away, and its labels.
    fn assemble(&self) {
        for (name, content) in [
            ("manifests/csv.yaml", CSV),
            ("manifests/crd.yaml", CRD),
            ("manifests/left-over.yaml", "kind: Secret\n"),
            ("metadata/annotations.yaml", ANNOTATIONS),
        ] {
            let path = self.work.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let layout = self.path("layout");
        let image = format!("{layout}:bundle");
        let umoci = |args: &[&str]| run(&self.umoci, args);
        umoci(&["init", "--layout", &layout]);
        umoci(&["new", "--image", &image]);
        for folder in ["manifests", "metadata"] {
            let target = format!("/{folder}");
            umoci(&["insert", "--rootless", "--image", &image, &self.path(folder), &target]);
        }
        umoci(&["insert", "--image", &image, "--whiteout", "/manifests/left-over.yaml"]);
        for (name, value) in LABELS {
            umoci(&["config", "--image", &image, "--config.label", &format!("{name}={value}")]);
        }
    }

    /// Pushes it in this format; the answer is its digest there.
    fn push(&self, name: &str, format: &str) -> String {
        let digest = self.path("digest");
        let source = format!("oci:{}", self.path("layout:bundle"));
        let target = format!("docker://{}/{name}", self.host);
        let trusted = self.path("trusted");
        run(
            &self.skopeo,
            &[
                "--insecure-policy",
                "copy",
                "--dest-creds",
                "robot:secret",
                "--dest-cert-dir",
                &trusted,
                "--digestfile",
                &digest,
                "--format",
                format,
                &source,
                &target,
            ],
        );
        fs::read_to_string(digest).unwrap().trim().to_owned()
    }

    fn options(&self) -> Options {
        let rules = format!(
            "kind: ImageDigestMirrorSet
spec:
  imageDigestMirrors:
  - source: registry.example.com/team
    mirrors: ['{host}/mirror/team']
    mirrorSourcePolicy: NeverContactSource
---
kind: ImageTagMirrorSet
spec:
  imageTagMirrors:
  - source: registry.example.com
    mirrors: ['{host}/mirror']
",
            host = self.host
        );
        let secret = json!({"auths": {&self.host: {"username": "robot", "password": "secret"}}});
        Options {
            mirrors: Mirrors::parse(rules.as_bytes()).unwrap(),
            secrets: PullSecrets::parse(secret.to_string().as_bytes()).unwrap(),
            trust: Trust::Only(self.ca.certificate_pem().as_bytes().to_vec()),
            patience: patience(),
            ..Options::default()
        }
    }
}

async fn fetch(options: Options, image: &str) -> Result<BundleImage, Error> {
    BundleImages::new(options).unwrap().fetch(image).await
}

fn expected() -> BTreeMap<String, Vec<u8>> {
    let files = [
        ("manifests/csv.yaml", CSV),
        ("manifests/crd.yaml", CRD),
        ("metadata/annotations.yaml", ANNOTATIONS),
    ];
    files.map(|(name, content)| (name.to_owned(), content.as_bytes().to_vec())).into()
}

#[tokio::test]
async fn bundle_images_come_from_a_real_registry() {
    let Some(registry) = Registry::start().await else { return };
    registry.assemble();
    for format in ["oci", "v2s2"] {
        let digest = registry.push(&format!("mirror/team/lantern:{format}"), format);
        let image = format!("registry.example.com/team/lantern@{digest}");
        let bundle = fetch(registry.options(), &image).await.unwrap();
        assert_eq!(bundle.files, expected(), "{format}");
        assert_eq!(bundle.digest.as_str(), digest);
        assert_eq!(bundle.place.to_string(), format!("{}/mirror/team/lantern", registry.host));
        for (name, value) in LABELS {
            assert_eq!(bundle.labels[name], value);
        }
        let manifests = bundle.manifests(&ManifestLimits::default()).unwrap();
        assert_eq!(manifests.deployments()[0]["name"], "lantern");
        assert_eq!(manifests.crds()[0]["metadata"]["name"], "lanterns.example.com");
        let direct = format!("{}/mirror/team/lantern:{format}", registry.host);
        assert_eq!(fetch(registry.options(), &direct).await.unwrap(), bundle);
    }

    // The longest source counts alone, and it has no mirror for tags.
    let error = fetch(registry.options(), "registry.example.com/team/lantern:oci").await;
    assert_eq!(error.unwrap_err().kind(), "Blocked");

    let direct = |tag: &str| format!("{}/mirror/team/lantern:{tag}", registry.host);
    let strangers = Options { secrets: PullSecrets::default(), ..registry.options() };
    let untrusting = Options {
        trust: Trust::Only(authority().certificate_pem().as_bytes().to_vec()),
        ..registry.options()
    };
    let wrong = json!({"auths": {&registry.host: {"username": "robot", "password": "guess"}}});
    let wrong = PullSecrets::parse(wrong.to_string().as_bytes()).unwrap();
    let wrong = Options { secrets: wrong, ..registry.options() };
    for (options, tag, advice) in [
        (strangers, "oci", "give a pull secret"),
        (wrong, "oci", "it is wrong, or may not pull this"),
        (untrusting, "oci", "to the CA bundle"),
        (registry.options(), "absent", "mirror the image there"),
    ] {
        let error = fetch(options, &direct(tag)).await.unwrap_err();
        assert!(error.advice().contains(advice), "{error}: {}", error.advice());
    }
}

#[tokio::test]
async fn what_a_real_registry_has_damaged_is_refused_and_what_was_kept_is_not_asked_for() {
    let Some(registry) = Registry::start().await else { return };
    registry.assemble();
    let digest = registry.push("mirror/team/lantern:v1", "oci");
    let image = format!("registry.example.com/team/lantern@{digest}");
    let store = Store::open(&registry.work.path().join("kept"), 1 << 20).unwrap();
    let keeping = || Options { store: Some(store.clone()), ..registry.options() };
    let bundle = fetch(keeping(), &image).await.unwrap();

    for blob in blobs(&registry.work.path().join("data")) {
        let content = fs::read(&blob).unwrap();
        // Layers, not the manifest and the configuration.
        if content.starts_with(&[0x1f, 0x8b]) {
            fs::write(&blob, content.iter().rev().copied().collect::<Vec<_>>()).unwrap();
        }
    }
    let error = fetch(registry.options(), &image).await.unwrap_err();
    assert!(error.advice().contains("damaged or forged"), "{error}");
    assert_eq!(fetch(keeping(), &image).await.unwrap(), bundle);
}

/// The files in which the registry keeps content.
fn blobs(folder: &Path) -> Vec<PathBuf> {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| blobs(folder));
    files.into_iter().filter(|path| path.ends_with("data")).chain(below).collect()
}
