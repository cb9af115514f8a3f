use super::*;

const TEXT: &str = r#"
{"schema":"olm.package","name":"alpha","defaultChannel":"stable"}
{"schema":"olm.channel","package":"alpha","name":"stable","entries":[
  {"name":"alpha.v1.1.0","replaces":"alpha.v1.0.0"},{"name":"alpha.v1.0.0"},{"name":"alpha.v0.9.0"}]}
{"schema":"olm.bundle","package":"alpha","name":"alpha.v1.0.0","image":"r.example.com/a:1","properties":[
  {"type":"olm.package","value":{"packageName":"alpha","version":"1.0.0"}},
  {"type":"olm.maxOpenShiftVersion","value":5.0},
  {"type":"olm.csv.metadata","value":{"minKubeVersion":"1.25.0", "displayName": "Alpha"}}],
  "relatedImages":[{"name":"","image":"r.example.com/a:1"}]}
{"schema":"olm.bundle","package":"alpha","name":"alpha.v1.1.0","image":"r.example.com/a:2","properties":[
  {"type":"olm.package","value":{"packageName":"alpha","version":"1.1.0"}},
  {"type":"olm.csv.metadata","value":{}}]}
{"schema":"io.openshift.operators.lifecycles.v1alpha1","package":"alpha","versions":[
  {"name":"1.0","phases":[{"name":"Full support","startDate":"2026-01-01","endDate":"2026-12-31"},{"name":"Maintenance"}],
   "platformCompatibility":[{"name":"openshift","versions":["4.18","4.19"]}]},
  {"name":"1.1","phases":null}]}
{"schema":"example.com.own","package":"alpha","text":"a  b"}
{"schema":"example.com.own","package":"beta","text":"of another package"}
"#;

fn catalog(text: &str, coverage: Coverage) -> Catalog {
    let fbc = Fbc::parse("test", text.as_bytes(), &Limits::default()).unwrap();
    Catalog::from_fbc_as(coverage, fbc, &Limits::default()).unwrap()
}

#[test]
fn documents_of_other_schemas_are_kept_by_package() {
    let catalog = catalog(TEXT, Coverage::Full);
    let own: Vec<&str> = catalog.blobs("alpha", "example.com.own").map(Json::as_str).collect();
    assert_eq!(own, [r#"{"package":"alpha","schema":"example.com.own","text":"a  b"}"#]);
    assert_eq!(catalog.blobs("beta", "example.com.own").count(), 1);
    assert_eq!(catalog.blobs("alpha", "example.com.other").count(), 0);
    assert_eq!(catalog.subset(&["beta"]).blobs("alpha", "example.com.own").count(), 0);
}

#[test]
fn the_lifecycle_of_a_package_is_typed() {
    let read = catalog(TEXT, Coverage::Full);
    let lifecycle = read.lifecycle("alpha").unwrap().unwrap();
    let first = lifecycle.version("1.0").unwrap();
    assert_eq!(first.phases[0].end_date.as_deref(), Some("2026-12-31"));
    assert_eq!(first.phases[1].start_date, None);
    assert_eq!(first.platform_compatibility[0].versions, ["4.18", "4.19"]);
    assert!(lifecycle.version("1.1").unwrap().phases.is_empty());
    assert!(read.lifecycle("beta").is_none());
    let bad =
        r#"{"schema":"io.openshift.operators.lifecycles.v1alpha1","package":"p","versions":1}"#;
    let of_bad = catalog(bad, Coverage::Full);
    assert!(of_bad.lifecycle("p").unwrap().is_err());
}

#[test]
fn details_that_were_not_read_are_unknown_and_the_digest_stays() {
    let full = catalog(TEXT, Coverage::Full);
    assert_eq!(full.min_kube_version("alpha", "alpha.v1.0.0"), Stated::As("1.25.0"));
    assert_eq!(full.min_kube_version("alpha", "alpha.v1.1.0"), Stated::Nothing);
    assert_eq!(full.related_images("alpha", "alpha.v1.0.0").unwrap().len(), 1);
    let metadata = full.csv_metadata("alpha", "alpha.v1.0.0").unwrap();
    assert_eq!(metadata.value().unwrap()["displayName"], "Alpha");
    // As OLM v0's registry serves it: no metadata, no related images, no entry without a bundle,
    // and numbers in the form that the registry gives them.
    let served = TEXT
        .replace(r#",{"name":"alpha.v0.9.0"}"#, "")
        .replace(
            r#",
  {"type":"olm.csv.metadata","value":{"minKubeVersion":"1.25.0", "displayName": "Alpha"}}],
  "relatedImages":[{"name":"","image":"r.example.com/a:1"}]"#,
            "]",
        )
        .replace(
            r#",
  {"type":"olm.csv.metadata","value":{}}"#,
            "",
        )
        .replace("5.0", "5");
    assert!(!served.contains("metadata") && !served.contains("relatedImages"));
    let registry = catalog(&served, Coverage::Registry);
    assert_eq!(registry.digest(), full.digest());
    assert_eq!(registry.min_kube_version("alpha", "alpha.v1.1.0"), Stated::Unread);
    assert_eq!(registry.related_images("alpha", "alpha.v1.0.0"), None);
    // Where the description was asked for, that it states none is known.
    let described = catalog(TEXT, Coverage::Registry);
    assert_eq!(described.min_kube_version("alpha", "alpha.v1.0.0"), Stated::As("1.25.0"));
    assert_eq!(described.min_kube_version("alpha", "alpha.v1.1.0"), Stated::Nothing);
    // As it was sent.
    let bytes = full.graph().to_canonical_json();
    let sent = Graph::parse_announced(&bytes, full.digest(), &Limits::default()).unwrap();
    let sent = Catalog::from_graph(sent);
    assert_eq!(sent.digest(), full.digest());
    assert_eq!(sent.min_kube_version("alpha", "alpha.v1.0.0"), Stated::Unread);
    assert_eq!(sent.coverage(), Coverage::Graph);
    let bundle = sent.bundle("alpha", "alpha.v1.0.0").unwrap();
    assert_eq!(bundle.max_openshift_version().as_deref(), Some("5"));
}
