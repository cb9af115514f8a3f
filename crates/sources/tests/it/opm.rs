//! `opm serve` is what runs in a CatalogSource's pod.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use wavelift_catalog::{Catalog, Coverage, Fbc, Limits, catalog::Stated};
use wavelift_runtime::testing::{programs_or_skip, shared_or_skip};
use wavelift_sources::{
    CatalogSource,
    catalog_source::{CustomSchema, Transport},
};

use crate::support::{Server, free_port, patience, retries, start};

const LANTERN: &str = r#"
{"schema":"olm.package","name":"lantern","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lantern","name":"stable","entries":[
  {"name":"lantern.v1.1.0","replaces":"lantern.v1.0.0","skips":["lantern.v1.0.1"],"skipRange":">=1.0.0 <1.1.0"},
  {"name":"lantern.v1.0.0","replaces":"lantern.v0.9.0"}]}
{"schema":"olm.channel","package":"lantern","name":"fast","entries":[{"name":"lantern.v1.1.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v1.0.0","image":"r.example.com/lantern:1.0.0","properties":[
  {"type":"olm.package","value":{"packageName":"lantern","version":"1.0.0"}},
  {"type":"olm.csv.metadata","value":{"displayName":"Lantern","minKubeVersion":"1.28.0"}}],
  "relatedImages":[{"name":"lantern","image":"r.example.com/lantern-operator:1.0.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v1.1.0","image":"r.example.com/lantern:1.1.0","properties":[
  {"type":"olm.gvk.required","value":{"group":"wick.example.com","kind":"Wick","version":"v1"}},
  {"type":"olm.maxOpenShiftVersion","value":4.20},
  {"type":"olm.package","value":{"version":"1.1.0","packageName":"lantern"}},
  {"type":"example.com/own","value":{"list":[1,2.5,null,true,"<&>"],"map":{"b":1,"a":2}}}]}
{"schema":"olm.deprecations","package":"lantern","entries":[
  {"reference":{"schema":"olm.package"},"message":"use torch"},
  {"reference":{"schema":"olm.channel","name":"fast"},"message":"use stable"},
  {"reference":{"schema":"olm.bundle","name":"lantern.v1.0.0"},"message":"too old"}]}
{"schema":"io.example.notes.v1","package":"lantern","name":"notes","count":3,"share":0.25,"list":[{"a":null}]}
{"schema":"io.example.notes.v1","name":"of no package"}
"#;

/// The CSV of a bundle without an image: `{"kind":"ClusterServiceVersion","apiVersion":
/// "operators.coreos.com/v1alpha1","metadata":{"name":"wick.v1.0.0"},"spec":{"version":"1.0.0",
/// "minKubeVersion":"1.29.0","install":{"strategy":"deployment","spec":{"deployments":[{"name":"wick",
/// "spec":{}}]}}}}`.
const WICK_CSV: &str = r#"{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"wick.v1.0.0"},"spec":{"version":"1.0.0","minKubeVersion":"1.29.0","install":{"strategy":"deployment","spec":{"deployments":[{"name":"wick","spec":{}}]}}}}"#;

fn wick() -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let documents = [
        json!({"schema": "olm.package", "name": "wick", "defaultChannel": "only"}),
        json!({"schema": "olm.channel", "package": "wick", "name": "only",
            "entries": [{"name": "wick.v1.0.0"}]}),
        json!({"schema": "olm.bundle", "package": "wick", "name": "wick.v1.0.0", "properties": [
            {"type": "olm.package", "value": {"packageName": "wick", "version": "1.0.0"}},
            {"type": "olm.gvk",
                "value": {"group": "wick.example.com", "kind": "Wick", "version": "v1"}},
            {"type": "olm.bundle.object", "value": {"data": STANDARD.encode(WICK_CSV)}}]}),
    ];
    documents.map(|document| document.to_string()).join("\n")
}

async fn serve(opm: &Path, catalog: &Path, work: &Path) -> (Server, CatalogSource) {
    let port = free_port();
    let mut command = Command::new(opm);
    command
        .args(["serve", "--cache-enforce-integrity=false", "--pprof-addr", "127.0.0.1:0"])
        .args(["--port", &port.to_string()])
        .arg("--cache-dir")
        .arg(work.join("cache"))
        .arg("--termination-log")
        .arg(work.join("log"))
        .arg(catalog);
    let server = start(command, "serving registry").await;
    let address = format!("127.0.0.1:{port}");
    let limits = Limits::default();
    let source =
        CatalogSource::new(&address, &Transport::Plaintext, limits, patience(), retries()).unwrap();
    (server, source)
}

fn from_files(path: &Path) -> Catalog {
    let limits = Limits::default();
    let fbc = Fbc::read(path, &limits).unwrap();
    Catalog::from_fbc_as(Coverage::Registry, fbc, &limits).unwrap()
}

#[tokio::test]
async fn a_real_registry_serves_the_catalog_of_its_files() {
    let Some([opm]) = programs_or_skip(["opm"]) else { return };
    let work = tempfile::tempdir().unwrap();
    let files = work.path().join("catalog");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("lantern.json"), LANTERN).unwrap();
    fs::write(files.join("wick.json"), wick()).unwrap();
    let (_server, source) = serve(&opm, &files, work.path()).await;

    let mut served = source.read().await.unwrap();
    let left_out: Vec<_> = served.left_out.values().flatten().collect();
    assert_eq!(left_out, ["lantern.v1.0.0", "lantern.v1.1.0"]);
    let expected = from_files(&files);
    source.describe(&mut served, &BTreeSet::from(["lantern".to_owned()])).await;
    let catalog = served.into_catalog(&Limits::default()).unwrap();
    assert_eq!(catalog.digest(), expected.digest());
    // Its author gave the one a description and the other none.
    assert_eq!(catalog.min_kube_version("lantern", "lantern.v1.0.0"), Stated::As("1.28.0"));
    assert_eq!(catalog.min_kube_version("lantern", "lantern.v1.1.0"), Stated::Unread);
    let manifests = catalog.manifests("wick", "wick.v1.0.0").unwrap();
    assert_eq!(manifests.deployments()[0]["name"], "wick");

    // What the list leaves out can be had one by one.
    let old = source.bundle("lantern", "stable", "lantern.v1.0.0").await.unwrap();
    let csv = old.csv.unwrap();
    assert_eq!(csv["spec"]["minKubeVersion"], "1.28.0");
    assert_eq!(csv["spec"]["relatedImages"][0]["image"], "r.example.com/lantern-operator:1.0.0");
    assert!(old.manifests.is_empty(), "it is in the image");
    let wick = source.bundle("wick", "only", "wick.v1.0.0").await.unwrap();
    assert_eq!(
        (wick.manifests.as_slice(), wick.image.as_str()),
        ([WICK_CSV.to_owned()].as_slice(), "")
    );
    assert!(source.bundle("lantern", "stable", "lantern.v9.9.9").await.is_err());

    let notes = source.custom_schema("io.example.notes.v1", Some("lantern")).await.unwrap();
    let expected = json!({"schema": "io.example.notes.v1", "package": "lantern", "name": "notes",
        "count": 3, "share": 0.25, "list": [{"a": null}]});
    assert_eq!(notes, CustomSchema::Documents(vec![expected]));
    let CustomSchema::Documents(of_none) =
        source.custom_schema("io.example.notes.v1", None).await.unwrap()
    else {
        panic!("not served")
    };
    assert_eq!(of_none[0]["name"], "of no package");
    let both = ["lantern".to_owned(), "wick".to_owned()];
    let schemas = ["io.example.notes.v1", "io.example.other.v1"];
    let of_both = source.custom_schemas(&schemas, &both).await.unwrap();
    assert_eq!(of_both, notes);
    let unknown = source.custom_schema("io.example.other.v1", Some("lantern")).await.unwrap();
    assert_eq!(unknown, CustomSchema::Documents(Vec::new()));
}

#[tokio::test]
async fn real_catalogs_are_the_same_from_a_real_registry() {
    let Some([opm]) = programs_or_skip(["opm"]) else { return };
    let Some(shared) = shared_or_skip() else { return };
    let names = fs::read_to_string(shared.join("vectors/combined-catalogs.txt")).unwrap();
    let work = tempfile::tempdir().unwrap();
    let files = work.path().join("catalog");
    for (number, name) in names.lines().map(str::trim).filter(|name| !name.is_empty()).enumerate() {
        copy(&shared.join("catalogs").join(name), &files.join(number.to_string()));
    }
    let (_server, source) = serve(&opm, &files, work.path()).await;
    let mut served = source.read().await.unwrap();
    let all = served.fbc.packages.iter().map(|package| package.name.clone()).collect();
    source.describe(&mut served, &all).await;
    let served = served.into_catalog(&Limits::default()).unwrap();
    let expected = from_files(&files);
    assert!(expected.graph().packages.len() > 30, "{}", expected.graph().packages.len());
    for name in expected.graph().packages.keys() {
        let alone = |catalog: &Catalog| catalog.subset(&[name]).digest().clone();
        assert_eq!(alone(&served), alone(&expected), "{name}");
        for bundle in expected.graph().packages[name].bundles.keys() {
            let needs = |catalog: &Catalog| match catalog.min_kube_version(name, bundle) {
                Stated::As(version) => Stated::As(version.to_owned()),
                Stated::Nothing => Stated::Nothing,
                Stated::Unread => Stated::Unread,
            };
            assert_eq!(needs(&served), needs(&expected), "{bundle}");
        }
    }
    assert_eq!(served.digest(), expected.digest());
}

/// Copies a file, or a folder with all below it.
fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to).unwrap();
        fs::copy(from, to.join(from.file_name().unwrap())).unwrap();
        return;
    }
    let entries: Vec<PathBuf> =
        fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    for entry in entries {
        let below =
            if entry.is_dir() { to.join(entry.file_name().unwrap()) } else { to.to_owned() };
        copy(&entry, &below);
    }
}
