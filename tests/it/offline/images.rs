//! Bundle images for a preview, out of Debian's registry: over TLS with a private authority and a
//! password, under a mirror rule, in plain text, and from what was kept of them.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use wavelift_runtime::{
    pki::{Ca, PrivateKey, Validity, issue_server_certificate},
    testing::{programs_or_skip, workspace_root},
};

use super::{Said, run, write};

/// `robot:secret`, as a registry's password file has it.
const PASSWORDS: &str = "robot:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

const LABELS: [(&str, &str); 4] = [
    ("operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"),
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
    ("operators.operatorframework.io.bundle.package.v1", "ferry-operator"),
];

/// A registry that ends with the test.
struct Registry(Child);

impl Registry {
    fn start(program: &Path, settings: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg("serve").arg(settings).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = vec![];
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("listening on") => break,
                Some(Ok(line)) => said.push(line),
                Some(Err(_)) | None => panic!("the registry ended:\n{}", said.join("\n")),
            }
        }
        // Nobody reads further, and a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A folder with two registries over the same content, and what the program is given for them.
struct Site {
    work: tempfile::TempDir,
    plain: String,
    registries: Vec<Registry>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Site {
    fn start() -> Option<(Self, PathBuf, PathBuf)> {
        let [registry, skopeo, umoci] = programs_or_skip(["docker-registry", "skopeo", "umoci"])?;
        wavelift_runtime::tls::install_crypto();
        let work = tempfile::tempdir().unwrap();
        let validity = || Validity::from_now(Duration::from_hours(1));
        let ca = Ca::generate("a test's authority", validity()).unwrap();
        let key = PrivateKey::generate().unwrap();
        let names = ["127.0.0.1".to_owned()];
        let issued = issue_server_certificate(&ca, &names, &key, validity()).unwrap();
        let [secure, plain] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
        let secret = json!({"auths": {&secure: {"username": "robot", "password": "secret"}}});
        let rules = json!({"kind": "ImageDigestMirrorSet", "spec": {"imageDigestMirrors": [{
            "source": "registry.example.com/ferry", "mirrors": [format!("{secure}/mirror")],
            "mirrorSourcePolicy": "NeverContactSource"}]}});
        let path = |name: &str| work.path().join(name);
        let storage = json!({"filesystem": {"rootdirectory": path("data")}});
        // JSON is YAML.
        let settings = |http: Value, auth: Value| {
            json!({"version": 0.1, "log": {"level": "info"}, "storage": storage, "http": http,
                "auth": auth})
            .to_string()
        };
        let tls = json!({"certificate": path("tls.crt"), "key": path("tls.key")});
        let password = json!({"htpasswd": {"realm": "test", "path": path("passwords")}});
        let trusted = ca.certificate_pem();
        write(
            work.path(),
            &[
                ("ca.pem", trusted),
                ("tls.crt", &issued.certificate_pem),
                ("tls.key", &key.key_pem()),
                ("passwords", PASSWORDS),
                ("pull.json", &secret.to_string()),
                ("mirrors.yaml", &rules.to_string()),
                ("secure.yml", &settings(json!({"addr": secure, "tls": tls}), password)),
                ("plain.yml", &settings(json!({"addr": plain}), json!({}))),
            ],
        );
        let start = |name| Registry::start(&registry, &path(name));
        let registries = vec![start("secure.yml"), start("plain.yml")];
        Some((Self { work, plain, registries }, skopeo, umoci))
    }

    /// Pushes a bundle of the examples; the answer is its digest.
    fn push(&self, version: &str, skopeo: &Path, umoci: &Path) -> String {
        let bundle = workspace_root().join("docs/examples/ferry-operator").join(version);
        let path = |name: &str| self.work.path().join(name).display().to_string();
        let layout = path(&format!("layout-{version}"));
        let image = format!("{layout}:bundle");
        let call = |program: &Path, args: &[&str]| {
            let output = Command::new(program).args(args).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{} {args:?}: {error}", program.display());
        };
        call(umoci, &["init", "--layout", &layout]);
        call(umoci, &["new", "--image", &image]);
        for folder in ["manifests", "metadata"] {
            let (from, to) = (bundle.join(folder).display().to_string(), format!("/{folder}"));
            call(umoci, &["insert", "--rootless", "--image", &image, &from, &to]);
        }
        for (name, value) in LABELS {
            let label = format!("{name}={value}");
            call(umoci, &["config", "--image", &image, "--config.label", &label]);
        }
        let (source, digest) = (format!("oci:{image}"), path("digest"));
        let target = format!("docker://{}/mirror/operator-bundle:{version}", self.plain);
        let to_plain = ["--insecure-policy", "copy", "--dest-tls-verify=false", "--digestfile"];
        call(skopeo, &[&to_plain[..], &[&digest, &source, &target]].concat());
        fs::read_to_string(digest).unwrap().trim().to_owned()
    }

    fn run(&self, args: &[&str]) -> Said {
        run(self.work.path(), args)
    }
}

/// What a cluster behind a mirror gives its nodes.
const AS_THE_CLUSTER: [&str; 6] =
    ["--image-mirrors", "mirrors.yaml", "--pull-secret", "pull.json", "--image-ca", "ca.pem"];

#[test]
fn a_preview_takes_bundle_images_by_their_names() {
    let Some((mut site, skopeo, umoci)) = Site::start() else { return };
    let digest = site.push("2.1.0", &skopeo, &umoci);
    let old = workspace_root().join("docs/examples/ferry-operator/1.4.0");
    let new = workspace_root().join("docs/examples/ferry-operator/2.1.0");
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let expected = site.run(&["preview", "--bundle", old, "--bundle", new, "-o", "json"]).good();
    let preview = |image: &str, more: &[&str]| {
        let begin = ["preview", "-o", "json", "--bundle", old, "--bundle", image];
        site.run(&[&begin[..], more].concat())
    };
    // In plain text only where that is allowed, by tag as well.
    let plain = format!("docker://{}/mirror/operator-bundle:2.1.0", site.plain);
    assert_eq!(preview(&plain, &["--image-plaintext", &site.plain]).good(), expected);
    let err = preview(&plain, &[]).bad(1);
    assert!(err.contains("cannot fetch the bundle image") && err.contains("what to do"), "{err}");

    let source = format!("docker://registry.example.com/ferry/operator-bundle@{digest}");
    // Nothing was kept of a tag's name, but its content is there: only the way to it can fail.
    let kept = site.work.path().join(".cache/wavelift/bundle-images/sha256");
    assert!(fs::read_dir(&kept).unwrap().count() >= 3);
    fs::remove_dir_all(&kept).unwrap();
    let without = |flag: &str| {
        let at = AS_THE_CLUSTER.iter().position(|one| *one == flag).unwrap();
        let mut flags = AS_THE_CLUSTER.to_vec();
        flags.drain(at..at + 2);
        flags
    };
    let err = preview(&source, &without("--pull-secret")).bad(1);
    assert!(err.contains("credentials are needed"), "{err}");
    let err = preview(&source, &without("--image-ca")).bad(1);
    assert!(err.contains("to the CA bundle"), "{err}");
    assert_eq!(preview(&source, &AS_THE_CLUSTER).good(), expected);

    // What is named by its digest is kept.
    site.registries.clear();
    let source_again = [
        "preview",
        "-o",
        "json",
        "--bundle",
        old,
        "--bundle",
        &source,
        AS_THE_CLUSTER[0],
        AS_THE_CLUSTER[1],
        AS_THE_CLUSTER[2],
        AS_THE_CLUSTER[3],
        AS_THE_CLUSTER[4],
        AS_THE_CLUSTER[5],
    ];
    assert_eq!(site.run(&source_again).good(), expected);
}

#[test]
fn what_a_catalog_does_not_carry_is_fetched_or_named() {
    let Some((site, skopeo, umoci)) = Site::start() else { return };
    let image = |version: &str| {
        let digest = site.push(version, &skopeo, &umoci);
        format!("registry.example.com/ferry/operator-bundle@{digest}")
    };
    let absent = format!("registry.example.com/ferry/operator-bundle@sha256:{}", "0".repeat(64));
    let images = [
        ("1.4.0", image("1.4.0")),
        ("2.0.0", image("2.0.0")),
        ("2.0.1", absent),
        ("2.1.0", image("2.1.0")),
    ];
    let bundle = |(version, image): &(&str, String)| {
        let value = json!({"packageName": "ferry-operator", "version": version});
        json!({"schema": "olm.bundle", "package": "ferry-operator", "image": image,
            "name": format!("ferry-operator.v{version}"),
            "properties": [{"type": "olm.package", "value": value}]})
        .to_string()
    };
    let bundles: Vec<String> = images.iter().map(bundle).collect();
    let bundles = bundles.join("\n---\n");
    let text =
        fs::read_to_string(workspace_root().join("docs/examples/catalog/ferry-operator.yaml"));
    let text = text.unwrap();
    let channels = text.split("---\nschema: olm.bundle").next().unwrap();
    write(site.work.path(), &[("catalog.yaml", &format!("{channels}---\n{bundles}\n"))]);
    let preview = |more: &[&str]| {
        let begin = [
            "preview",
            "-o",
            "json",
            "--catalog",
            "catalog.yaml",
            "--package",
            "ferry-operator",
            "--from",
            "1.4.0",
        ];
        site.run(&[&begin[..], more].concat())
    };
    let without: Value = serde_json::from_str(&preview(&[]).good()).unwrap();
    let missing = without["overall"]["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 4, "{missing:?}");
    for ((version, _), said) in images.iter().zip(missing) {
        assert_eq!(said["bundle"], format!("ferry-operator.v{version}"));
        let reason = said["reason"].as_str().unwrap();
        assert!(
            reason.ends_with(
                "--fetch-images gets them from registry.example.com/ferry/operator-bundle"
            ),
            "{reason}"
        );
    }
    let with = preview(&[&AS_THE_CLUSTER[..], &["--fetch-images"]].concat());
    assert_eq!((with.code, with.err.as_str()), (0, "Fetching 4 bundle images\n"));
    let with = with.json();
    let missing = with["overall"]["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0]["bundle"], "ferry-operator.v2.0.1");
    assert!(missing[0]["reason"].as_str().unwrap().contains("is not there"), "{missing:?}");

    // The same as of the directories, but for what the catalog itself adds.
    let bundle =
        |version: &str| workspace_root().join("docs/examples/ferry-operator").join(version);
    let paths = ["1.4.0", "2.0.0", "2.1.0"].map(|version| bundle(version).display().to_string());
    let [a, b, c] = paths.each_ref().map(String::as_str);
    let args = ["preview", "-o", "json", "--bundle", a, "--bundle", b, "--bundle", c];
    let of_dirs = site.run(&args).json();
    for section in
        ["permissions", "permissionsOnTheWay", "crds", "webhooks", "deployments", "images"]
    {
        assert_eq!(with["overall"][section], of_dirs["overall"][section], "{section}");
    }
}
