use super::*;
use crate::{Catalog, Fbc};

const CATALOG: &str = r#"
{"schema":"olm.package","name":"alpha","defaultChannel":"stable"}
{"schema":"olm.channel","package":"alpha","name":"stable","entries":[
  {"name":"alpha.v1.1.0","replaces":"alpha.v1.0.0","skips":["b","a"]},{"name":"alpha.v1.0.0"}]}
{"schema":"olm.bundle","package":"alpha","name":"alpha.v1.0.0","image":"r.example.com/a:1","properties":[
  {"type":"olm.package","value":{"packageName":"alpha","version":"1.0.0"}},
  {"type":"olm.csv.metadata","value":{"minKubeVersion":"1.25.0"}}]}
{"schema":"olm.bundle","package":"alpha","name":"alpha.v1.1.0","properties":[
  {"type":"olm.package","value":{"version":"1.1.0","packageName":"alpha"}},
  {"type":"olm.maxOpenShiftVersion","value":4.18},
  {"type":"olm.gvk","value":{"group":"g.example.com","version":"v1","kind":"K"}},
  {"type":"olm.bundle.object","value":{"data":"CSV"}}]}
{"schema":"olm.package","name":"beta","defaultChannel":"x"}
{"schema":"olm.deprecations","package":"alpha","entries":[
  {"reference":{"schema":"olm.bundle","name":"alpha.v1.0.0"},"message":"old"}]}
"#;

/// A CSV with one Deployment, in base64.
const CSV: &str = "eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwic3BlYyI6eyJtaW5LdWJlVmVyc2lvbiI6IjEuMjcuMCIsImluc3RhbGwiOnsic3BlYyI6eyJkZXBsb3ltZW50cyI6W3sibmFtZSI6ImQiLCJzcGVjIjp7fX1dfX19fQ==";

fn catalog(text: &str) -> Catalog {
    let text = text.replace("CSV", CSV);
    let fbc = Fbc::parse("test", text.as_bytes(), &Limits::default()).unwrap();
    Catalog::from_fbc(fbc, &Limits::default()).unwrap()
}

#[test]
fn a_graph_holds_what_decides_and_no_manifests() {
    let catalog = catalog(CATALOG);
    let alpha = &catalog.graph().packages["alpha"];
    assert_eq!(alpha.default_channel.as_deref(), Some("stable"));
    let entry = &alpha.channels["stable"].entries["alpha.v1.1.0"];
    assert_eq!(entry.replaces.as_deref(), Some("alpha.v1.0.0"));
    let (old, new) = (&alpha.bundles["alpha.v1.0.0"], &alpha.bundles["alpha.v1.1.0"]);
    assert_eq!(old.version, Some(Version::new(1, 0, 0)));
    assert_eq!(old.min_kube_version.as_deref(), Some("1.25.0"));
    assert_eq!(old.deprecation.as_deref(), Some("old"));
    // From the CSV that stands inline.
    assert_eq!(new.min_kube_version.as_deref(), Some("1.27.0"));
    assert_eq!(new.max_openshift_version().as_deref(), Some("4.18"));
    assert_eq!(new.provides()[0].kind, "K");
    let json = String::from_utf8(catalog.graph().to_canonical_json()).unwrap();
    assert!(!json.contains("bundle.object") && !json.contains(CSV));
    let manifests = catalog.manifests("alpha", "alpha.v1.1.0").unwrap();
    assert_eq!(manifests.deployments()[0]["name"], "d");
    assert!(catalog.manifests("alpha", "alpha.v1.0.0").is_none());
    assert_eq!(catalog.head("alpha", "stable").unwrap(), "alpha.v1.1.0");
}

#[test]
fn the_digest_does_not_depend_on_the_order_of_documents_or_keys() {
    let reversed: Vec<&str> = CATALOG.trim().split("\n{").collect();
    let reversed: Vec<String> = reversed
        .iter()
        .rev()
        .map(|d| if d.starts_with('{') { (*d).to_owned() } else { format!("{{{d}") })
        .collect();
    let turned = catalog(&reversed.join("\n").replace("\"b\",\"a\"", "\"a\",\"b\""));
    assert_eq!(turned.digest(), catalog(CATALOG).digest());
    let swapped = CATALOG.replace(
        "\"version\":\"1.1.0\",\"packageName\":\"alpha\"",
        "\"packageName\":\"alpha\",\"version\":\"1.1.0\"",
    );
    assert_ne!(swapped, CATALOG);
    assert_eq!(catalog(&swapped).digest(), catalog(CATALOG).digest());
    let other = catalog(&CATALOG.replace("\"a\"]", "\"c\"]"));
    assert_ne!(other.digest(), catalog(CATALOG).digest());
}

#[test]
fn a_small_graph_has_this_canonical_form_and_digest() {
    let text = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}
        {"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1"},{"name":"a.v0"}]}
        {"schema":"olm.bundle","package":"a","name":"a.v1"}"#;
    let graph = catalog(text).graph().clone();
    let expected = r#"{"packages":{"a":{"bundles":{"a.v1":{}},"channels":{"s":{"entries":{"a.v1":{}}}},"defaultChannel":"s"}}}"#;
    assert_eq!(String::from_utf8(graph.to_canonical_json()).unwrap(), expected);
    // The entry without a bundle is in the graph, but not every reader would see it.
    assert!(graph.packages["a"].channels["s"].entries.contains_key("a.v0"));
    // As `sha256sum` prints it for the line above.
    assert_eq!(
        graph.digest().as_str(),
        "sha256:1ad0302f111846bb691cd1796cd30f617d1f69c6ae4c1c468e85e7a235ac483e"
    );
}

#[test]
fn a_sent_graph_is_checked_against_its_digest() {
    let limits = Limits::default();
    let graph = catalog(CATALOG).graph().clone();
    let bytes = graph.to_canonical_json();
    let digest = graph.digest();
    let sent = Graph::parse_announced(&bytes, &digest, &limits).unwrap();
    assert_eq!(sent.to_canonical_json(), bytes);
    // All of it but what is not in the canonical form.
    let mut expected = graph.clone();
    for bundle in expected.packages.get_mut("alpha").unwrap().bundles.values_mut() {
        bundle.min_kube_version = None;
    }
    assert_eq!(sent, expected);
    // Another spelling of the same graph is the same graph.
    let pretty = serde_json::to_vec_pretty(&graph).unwrap();
    assert_eq!(Graph::parse_announced(&pretty, &digest, &limits).unwrap(), sent);
    let forged = String::from_utf8(bytes.clone()).unwrap().replace("alpha.v1.0.0", "alpha.v0.9.0");
    let error = Graph::parse_announced(forged.as_bytes(), &digest, &limits).unwrap_err();
    assert_eq!(error.kind(), "Digest");
    for (bytes, limits, kind) in [
        (b"{}".as_slice(), limits, "Parse"),
        (b"{\"packages\":{},\"more\":1}", limits, "Parse"),
        (bytes.as_slice(), Limits { total_bytes: 10, ..limits }, "TooLarge"),
        (bytes.as_slice(), Limits { entries: 1, ..limits }, "TooLarge"),
    ] {
        assert_eq!(Graph::parse(bytes, &limits).unwrap_err().kind(), kind);
    }
}

#[test]
fn a_subset_keeps_only_the_named_packages() {
    let catalog = catalog(CATALOG);
    let subset = catalog.subset(&["alpha", "absent"]);
    assert_eq!(subset.graph().packages.keys().collect::<Vec<_>>(), ["alpha"]);
    assert!(subset.manifests("alpha", "alpha.v1.1.0").is_some());
    assert_ne!(subset.digest(), catalog.digest());
    assert_eq!(subset.subset(&["alpha"]).digest(), subset.digest());
}

#[test]
fn what_has_two_meanings_is_refused() {
    let refused = |extra: &str| {
        let text = format!("{}{extra}", CATALOG.replace("CSV", CSV));
        let fbc = Fbc::parse("test", text.as_bytes(), &Limits::default()).unwrap();
        Catalog::from_fbc(fbc, &Limits::default()).map_err(|error| error.kind()).err()
    };
    assert_eq!(refused(""), None);
    for twice in [
        r#"{"schema":"olm.package","name":"alpha"}"#,
        r#"{"schema":"olm.channel","package":"alpha","name":"stable"}"#,
        r#"{"schema":"olm.channel","package":"alpha","name":"n","entries":[{"name":"x"},{"name":"x"}]}"#,
        r#"{"schema":"olm.bundle","package":"alpha","name":"alpha.v1.0.0"}"#,
    ] {
        assert_eq!(refused(twice), Some("Duplicate"), "{twice}");
    }
}

#[test]
fn digests_are_read_strictly() {
    let good = catalog(CATALOG).digest().to_string();
    assert!(Digest::try_from(good.as_str()).is_ok());
    for bad in
        ["", "sha256:", &good.to_uppercase(), &good.replace("sha256:", ""), &format!("{good}0")]
    {
        assert!(Digest::try_from(bad).is_err(), "{bad}");
    }
}
