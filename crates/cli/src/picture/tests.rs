use wavelift_catalog::{Catalog, Fbc, Limits};

use super::*;

/// Two channels; 1.1.0 is skipped, 0.9.0 is spoken of and not there, the range takes 1.0.0.
const FERRY: &str = r#"
{"schema":"olm.package","name":"ferry","defaultChannel":"stable"}
{"schema":"olm.channel","package":"ferry","name":"fast","entries":[{"name":"ferry.v2.0.0","skipRange":">=1.0.0 <2.0.0"}]}
{"schema":"olm.channel","package":"ferry","name":"stable","entries":[
  {"name":"ferry.v1.2.0","replaces":"ferry.v1.0.0","skips":["ferry.v1.1.0"]},
  {"name":"ferry.v1.1.0","replaces":"ferry.v1.0.0"},
  {"name":"ferry.v1.0.0","replaces":"ferry.v0.9.0"}]}
{"schema":"olm.bundle","package":"ferry","name":"ferry.v1.0.0","image":"i:1","properties":[{"type":"olm.package","value":{"packageName":"ferry","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"ferry","name":"ferry.v1.1.0","image":"i:2","properties":[{"type":"olm.package","value":{"packageName":"ferry","version":"1.1.0"}}]}
{"schema":"olm.bundle","package":"ferry","name":"ferry.v1.2.0","image":"i:3","properties":[{"type":"olm.package","value":{"packageName":"ferry","version":"1.2.0"}}]}
{"schema":"olm.bundle","package":"ferry","name":"ferry.v2.0.0","image":"i:4","properties":[{"type":"olm.package","value":{"packageName":"ferry","version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"ferry","entries":[{"reference":{"schema":"olm.bundle","name":"ferry.v1.0.0"},"message":"too\n\"old\""}]}
"#;

fn ferry() -> Catalog {
    let limits = Limits::default();
    let fbc = Fbc::parse("ferry", FERRY.as_bytes(), &limits).unwrap();
    Catalog::from_fbc(fbc, &limits).unwrap()
}

fn model(channel: Option<&str>) -> Model {
    Model::of(&ferry(), Scope { package: "ferry", channel }).unwrap()
}

#[test]
fn the_tree_tells_heads_skips_and_what_is_missing() {
    let expected = "\
ferry
├── stable (default)
│   ├── ferry.v1.2.0  [replaces ferry.v1.0.0; skips ferry.v1.1.0]  <- head
│   ├── ferry.v1.0.0  [replaces ferry.v0.9.0 (not in this catalog)]  deprecated: too \"old\"
│   └── never a target in OLM v0 (skipped): ferry.v1.1.0
└── fast
    └── ferry.v2.0.0  [skipRange >=1.0.0 <2.0.0]  <- head
";
    assert_eq!(tree(&model(None)), expected);
}

#[test]
fn versions_stand_from_new_to_old_and_names_without_one_last() {
    let model = model(None);
    let names: Vec<_> = model.nodes.iter().map(|node| node.name.as_str()).collect();
    let expected = ["ferry.v2.0.0", "ferry.v1.2.0", "ferry.v1.1.0", "ferry.v1.0.0", "ferry.v0.9.0"];
    assert_eq!(names, expected);
    // The range takes the three versions from 1.0.0 on.
    assert_eq!(model.channels[1].edges.len(), 3);
}

#[test]
fn a_channel_alone_and_names_that_are_not_there() {
    let model = model(Some("fast"));
    assert_eq!(model.channels.len(), 1);
    let refused =
        |package, channel| Model::of(&ferry(), Scope { package, channel }).unwrap_err().to_string();
    assert_eq!(refused("x", None), "there is no package `x` in this catalog; it has: ferry");
    assert_eq!(
        refused("ferry", Some("x")),
        "package `ferry` has no channel `x`; it has: fast, stable"
    );
}

#[test]
fn other_forms_hold_every_edge_and_escape_what_has_a_meaning() {
    let mut model = model(None);
    model.package = "fer\"ry<&".to_owned();
    let dot = dot(&model);
    assert!(dot.starts_with("digraph \"fer\\\"ry<&\" {"));
    assert_eq!(dot.matches(" -> ").count(), 7, "{dot}");
    assert!(dot.contains("\"ferry.v1.1.0\" -> \"ferry.v1.2.0\" [style=dashed"));
    let mermaid = mermaid(&model);
    assert_eq!(mermaid.matches("==>").count(), 3, "{mermaid}");
    assert!(mermaid.contains("n4[\"ferry.v0.9.0\"]:::missing"));
    let svg = svg(&model);
    assert!(svg.contains("<title>Upgrade graph of fer&quot;ry&lt;&amp;</title>"));
    // Three `replaces` and one `skips` are drawn, four entries are dots.
    assert_eq!((svg.matches("<path").count(), svg.matches("<circle").count()), (4, 4), "{svg}");
    assert!(svg.contains("too &quot;old&quot;") || svg.contains("too\u{20}&quot;old&quot;"));
}
