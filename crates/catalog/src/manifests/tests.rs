use std::{collections::BTreeMap, error::Error as _, fs};

use super::{Error, Limits, Manifests, read as reading};

const CSV: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: pump.v1.2.0
  annotations:
    olm.properties: '[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": \"4.18\"}]'
spec:
  version: 1.2.0
  install:
    spec:
      deployments: []
";
const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pumps.example.com}
";

fn read(files: &[(&str, &str)]) -> Result<Manifests, Error> {
    read_within(files, &Limits::default())
}

fn read_within(files: &[(&str, &str)], limits: &Limits) -> Result<Manifests, Error> {
    let files: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
    Manifests::from_files(&files, BTreeMap::new(), limits)
}

/// The error with its causes.
fn complaint(result: Result<Manifests, Error>) -> String {
    let error = result.unwrap_err();
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn a_bundle_directory_is_read_with_its_metadata() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("manifests/below")).unwrap();
    fs::create_dir(dir.path().join("metadata")).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("manifests/csv.yaml", CSV);
    // Two documents and an empty one.
    write("manifests/crds.yml", &format!("{CRD}---{CRD}---\n"));
    write("manifests/README.md", "no manifest");
    write("manifests/below/csv.yaml", CSV);
    write("manifests/.hidden.yaml", "]");
    write(
        "metadata/annotations.yaml",
        "annotations: {operators.operatorframework.io.bundle.package.v1: pump, number: 4.1}",
    );
    write(
        "metadata/dependencies.yaml",
        "dependencies: [{type: olm.package, value: {packageName: pipes, version: '>=1.0.0'}}]",
    );
    let manifests = Manifests::from_dir(dir.path(), &Limits::default()).unwrap();
    assert_eq!(manifests.len(), 3);
    assert_eq!(manifests.crds().len(), 2);
    assert_eq!(manifests.package(), Some("pump"));
    assert_eq!(manifests.annotations()["number"], "4.1");
    let properties: Vec<_> =
        manifests.properties().iter().map(|p| format!("{} {}", p.kind, p.value)).collect();
    assert_eq!(
        properties,
        [
            r#"olm.package.required {"packageName":"pipes","versionRange":">=1.0.0"}"#,
            r#"olm.maxOpenShiftVersion "4.18""#
        ]
    );
}

#[test]
fn a_bundle_in_one_folder_is_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("csv.yaml"), CSV).unwrap();
    fs::write(dir.path().join("release.yaml"), "channels: [stable]").unwrap();
    let manifests = Manifests::from_dir(dir.path(), &Limits::default()).unwrap();
    assert_eq!(manifests.len(), 1);
}

#[test]
fn json_counts_as_much_as_yaml() {
    let csv = r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
        "metadata":{"name":"pump.v1"}}"#;
    let crd = r#"{"kind":"CustomResourceDefinition"}"#;
    let manifests = read(&[("manifests/all.json", &format!("{csv}\n{crd}"))]).unwrap();
    assert_eq!(manifests.len(), 2);
}

#[test]
fn labels_count_where_no_file_says_otherwise() {
    let files = BTreeMap::from([
        ("manifests/csv.yaml".to_owned(), CSV.as_bytes().to_vec()),
        ("metadata/annotations.yaml".to_owned(), b"annotations: {a: file}".to_vec()),
    ]);
    let labels = [("a", "label"), ("b", "label")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let manifests =
        Manifests::from_files(&files, BTreeMap::from(labels), &Limits::default()).unwrap();
    assert_eq!(manifests.annotations()["a"], "file");
    assert_eq!(manifests.annotations()["b"], "label");
}

#[test]
fn there_is_one_csv() {
    assert_eq!(
        complaint(read(&[("manifests/crd.yaml", CRD)])),
        "bundle has no ClusterServiceVersion"
    );
    assert_eq!(
        complaint(read(&[("manifests/a.yaml", CSV), ("manifests/b.yaml", CSV)])),
        "bundle has 2 ClusterServiceVersions: manifests/a.yaml, document 1; \
         manifests/b.yaml, document 1"
    );
}

#[test]
fn complaints_name_file_document_and_field() {
    let broken = complaint(read(&[("manifests/a.yaml", "kind: A\n---\nkind: [")]));
    assert!(broken.starts_with("manifests/a.yaml, document 2: not YAML: "), "{broken}");
    let broken = complaint(read(&[("manifests/a.json", "{")]));
    assert!(broken.starts_with("manifests/a.json, document 1: not JSON: "), "{broken}");
    assert_eq!(
        complaint(read(&[("manifests/a.yaml", "- kind")])),
        "manifests/a.yaml, document 1: document is no object"
    );
    assert_eq!(
        complaint(read(&[("manifests/a.yaml", "kind: 7")])),
        "manifests/a.yaml, document 1: field `kind` is not a text"
    );
    let rules = "spec: {install: {spec: {permissions: [{rules: [{}, {verbs: [7]}]}]}}}";
    assert_eq!(
        complaint(read(&[("manifests/a.yaml", &format!("kind: ClusterServiceVersion\n{rules}"))])),
        "manifests/a.yaml, document 1: \
         field `spec.install.spec.permissions[0].rules[1].verbs[0]` is not a text"
    );
    assert_eq!(
        complaint(read(&[("metadata/x.yaml", "properties: [{value: 1}]")])),
        "metadata/x.yaml, document 1: field `properties[0].type` is not a text"
    );
}

#[test]
fn too_much_is_refused_by_name() {
    let limits = Limits { files: 2, file_bytes: 1_000, depth: 5, ..Limits::default() };
    let check = |files: &[(&str, &str)], expected: &str| {
        assert_eq!(complaint(read_within(files, &limits)), expected);
    };
    let files = [("a.yaml", ""), ("b.yaml", ""), ("c.yaml", "")];
    check(&files, "bundle has 3 files, more than 2");
    check(&[("a.yaml", &" ".repeat(1_001))], "a.yaml has 1001 bytes, more than 1000");
    let deep = r#"{"a":{"a":{"a":{"a":{"a":{}}}}}}"#;
    check(&[("a.json", deep)], "a.json has 6 levels of nesting, more than 5");

    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.yaml"), " ".repeat(2_000)).unwrap();
    let error = Manifests::from_dir(dir.path(), &limits).unwrap_err();
    assert_eq!(error.to_string(), "a.yaml has 1001 bytes, more than 1000");
}

#[test]
fn aliases_do_not_multiply_without_end() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let one = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{one}]\n"));
    }
    let limits = Limits { file_nodes: 20_000, ..Limits::default() };
    let yaml = complaint(read_within(&[("manifests/a.yaml", &bomb)], &limits));
    assert!(yaml.starts_with("manifests/a.yaml, document 1: not YAML: "), "{yaml}");
    let json = format!("{{\"a\":[{}1]}}", "1,".repeat(20_000));
    let json = complaint(read_within(&[("manifests/a.json", &json)], &limits));
    assert!(json.starts_with("manifests/a.json has 20003 values, more than 20000"), "{json}");
    let inline = reading::inline(7, json.as_bytes(), &Limits { file_bytes: 9, ..limits });
    assert!(inline.unwrap_err().to_string().starts_with("inline manifest 7 has "));
    let values = format!("[{}1]", "1,".repeat(20_000));
    let inline = reading::inline(7, values.as_bytes(), &limits).unwrap_err();
    assert_eq!(inline.to_string(), "inline manifest 7 has 20002 values, more than 20000");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let complaint = complaint(Manifests::from_dir("/no/such/bundle".as_ref(), &Limits::default()));
    assert!(complaint.starts_with("can't read /no/such/bundle"), "{complaint}");
}
