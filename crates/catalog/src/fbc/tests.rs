use std::{fmt::Write as _, fs};

use super::*;

fn parse(text: &str) -> Result<Fbc, Error> {
    Fbc::parse("file", text.as_bytes(), &Limits::default())
}

fn field_error(text: &str) -> (usize, String) {
    match parse(text).unwrap_err() {
        Error::Document { file, document, source, .. } => {
            assert_eq!(file, "file");
            (document, source.to_string())
        }
        other @ (Error::Read { .. }
        | Error::Ignore { .. }
        | Error::TooLarge { .. }
        | Error::Json { .. }
        | Error::Text { .. }
        | Error::Kind { .. }
        | Error::Yaml { .. }) => panic!("{other:?}"),
    }
}

const YAML: &str = r#"---
# A comment.
schema: olm.package
name: alpha
defaultChannel: stable
icon: {base64data: "", mediatype: image/png}
---
schema: olm.channel
package: alpha
name: stable
entries:
  - name: alpha.v1.1.0
    replaces: alpha.v1.0.0
    skips: [alpha.v1.0.1]
    skipRange: ">=1.0.0 <1.1.0"
---
schema: olm.bundle
package: alpha
name: alpha.v1.1.0
image: registry.example.com/alpha:1
properties:
  - type: olm.package
    value: {packageName: alpha, version: 1.1.0}
  - type: olm.csv.metadata
    value: {minKubeVersion: 1.25.0}
  - type: example.com/own
    value: [1, {a: b}]
relatedImages:
  - {name: "", image: registry.example.com/x}
---
schema: olm.deprecations
package: alpha
entries:
  - reference: {schema: olm.channel, name: stable}
    message: use another
---
schema: example.com.notes
package: alpha
text: hello
"#;

#[test]
fn yaml_documents_are_read_by_schema() {
    let fbc = parse(YAML).unwrap();
    assert_eq!(fbc.packages[0].default_channel, "stable");
    let entry = &fbc.channels[0].entries[0];
    assert_eq!((entry.replaces.as_str(), entry.skips.len()), ("alpha.v1.0.0", 1));
    assert_eq!(entry.skip_range, ">=1.0.0 <1.1.0");
    let bundle = &fbc.bundles[0];
    assert_eq!(bundle.csv_metadata[0].value().unwrap()["minKubeVersion"], "1.25.0");
    let kinds: Vec<&str> = bundle.properties.iter().map(|p| p.kind.as_str()).collect();
    assert_eq!(kinds, ["olm.package", "example.com/own"]);
    assert_eq!(bundle.properties[1].value, serde_json::json!([1, {"a": "b"}]));
    assert_eq!(fbc.deprecations[0].entries[0].message, "use another");
    assert_eq!(fbc.others[0].schema, "example.com.notes");
    assert_eq!(fbc.others[0].json.value().unwrap()["text"], "hello");
}

#[test]
fn json_documents_follow_each_other_with_or_without_line_ends() {
    let text = "\n {\"schema\":\"olm.package\",\"name\":\"a\"}{\"schema\":\"x.y\"}\n\n{\"schema\":\"x.z\"}";
    let fbc = parse(text).unwrap();
    assert_eq!((fbc.packages.len(), fbc.others.len()), (1, 2));
    let error = parse("{\"schema\":\"x.y\"}{\"schema\":").unwrap_err();
    assert!(matches!(error, Error::Json { document: 2, .. }), "{error:?}");
}

#[test]
fn yaml_that_does_not_parse_is_named_by_document() {
    let error = parse("schema: x.y\n---\nschema: [").unwrap_err();
    assert!(matches!(error, Error::Yaml { document: 2, .. }), "{error:?}");
}

#[test]
fn field_names_may_be_written_in_any_case_but_not_in_two() {
    let fbc =
        parse("Schema: olm.channel\nPackage: a\nNAME: s\nEntries: [{Name: a.v2, Replaces: a.v1}]");
    let channel = fbc.unwrap().channels.remove(0);
    assert_eq!((channel.package.as_str(), channel.name.as_str()), ("a", "s"));
    assert_eq!(channel.entries[0].replaces, "a.v1");
    let (document, text) = field_error("schema: x.y\n---\nschema: x.y\nName: a\nname: b");
    assert_eq!(document, 2);
    assert!(text.contains("`name`"), "{text}");
    // Not only the three fields that are read from every document.
    assert!(field_error("schema: x.y\nother: 1\nOther: 2").1.contains("`other`"));
}

#[test]
fn errors_name_the_field() {
    let cases = [
        ("name: a", "`schema` is missing"),
        ("schema: ''", "`schema` is missing"),
        ("schema: 1", "field `schema` is not a text"),
        ("- a", "document is no object"),
        ("schema: olm.channel\nentries: 1", "field `entries` is not a list"),
        (
            "schema: olm.channel\nentries: [{name: a}, {name: 1}]",
            "field `entries[1].name` is not a text",
        ),
        (
            "schema: olm.channel\nentries: [{skips: [[]]}]",
            "field `entries[0].skips` is not a list of texts",
        ),
        ("schema: olm.bundle\nproperties: [1]", "field `properties` is not a list of objects"),
        (
            "schema: olm.bundle\nproperties: [{type: olm.bundle.object, value: {data: 1}}]",
            "field `properties[0].value.data` is not a text",
        ),
        (
            "schema: olm.deprecations\nentries: [{reference: a}]",
            "field `entries[0].reference` is not an object",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(field_error(text), (1, expected.to_owned()), "{text}");
    }
}

#[test]
fn everything_is_bounded() {
    let small = Limits { file_bytes: 100, file_documents: 2, depth: 4, ..Limits::default() };
    let kind = |text: &str| Fbc::parse("f", text.as_bytes(), &small).map_err(|e| e.kind());
    assert_eq!(kind(&"#".repeat(101)), Err("TooLarge"));
    assert!(kind("schema: a.b\n---\nschema: a.b").is_ok());
    assert!(kind("schema: a.b\n---\nschema: a.b\n---\nschema: a.b").is_err());
    assert_eq!(kind("{\"schema\":\"a\"}{\"schema\":\"a\"}{\"schema\":\"a\"}"), Err("TooLarge"));
    assert!(kind("schema: a.b\na: [[[1]]]").is_ok());
    assert!(kind("schema: a.b\na: [[[[1]]]]").is_err());
    assert_eq!(kind("{\"schema\":\"a\",\"a\":[[[[1]]]]}"), Err("TooLarge"));
    // Nesting beyond what any recursion would stand.
    assert!(kind(&format!("schema: {}", "[".repeat(90))).is_err());
    let deep = "[".repeat(100_000);
    assert!(parse(&format!("{{\"schema\":\"a\",\"a\":{deep}")).is_err());
    assert!(parse(&format!("schema: {deep}")).is_err());
    // Ten anchors, each ten times the one before, would be 10^10 nodes.
    let mut bomb = String::from("schema: a.b\nl0: &l0 [x]\n");
    for level in 1..=10 {
        let before = format!("*l{},", level - 1).repeat(10);
        writeln!(bomb, "l{level}: &l{level} [{before}]").unwrap();
    }
    assert!(parse(&bomb).is_err());
}

#[test]
fn a_tree_is_read_whole_but_what_indexignore_names() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("a/catalog.yaml", "schema: a.one");
    write("a/no-extension", "{\"schema\":\"a.two\"}");
    write("a/README.md", "# not a catalog: [");
    write("b/skipped/x.yaml", "schema: [");
    write("b/deep/x.tmp", "schema: [");
    write("b/deep/keep.tmp", "schema: a.three");
    write(".indexignore", "# comment\n*.md\n/b/skipped/\n");
    write("b/.indexignore", "*.tmp\n!keep.tmp\n");
    let fbc = Fbc::read(dir.path(), &Limits::default()).unwrap();
    let schemas: Vec<&str> = fbc.others.iter().map(|meta| meta.schema.as_str()).collect();
    assert_eq!(schemas, ["a.one", "a.two", "a.three"]);
    // One file alone.
    let one = Fbc::read(&dir.path().join("a/catalog.yaml"), &Limits::default()).unwrap();
    assert_eq!(one.others.len(), 1);
    // A file that does not parse fails the whole tree and is named.
    write("c/bad", "schema: [");
    let error = Fbc::read(dir.path(), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("c/bad, document 1"), "{error}");
    assert!(Fbc::read(&dir.path().join("absent"), &Limits::default()).is_err());
}

#[test]
fn trees_are_bounded_too() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(dir.path().join(name), "schema: a.b").unwrap();
    }
    let kind = |limits: Limits| Fbc::read(dir.path(), &limits).map_err(|error| error.kind());
    assert_eq!(kind(Limits { files: 2, ..Limits::default() }), Err("TooLarge"));
    assert_eq!(kind(Limits { file_bytes: 10, ..Limits::default() }), Err("TooLarge"));
    assert_eq!(kind(Limits { total_bytes: 32, ..Limits::default() }), Err("TooLarge"));
    assert!(kind(Limits { total_bytes: 33, files: 3, ..Limits::default() }).is_ok());
}

/// What OLM's own tools do with these, one by one, was tried with `opm` 1.72.
#[test]
fn documents_are_separated_as_olm_s_own_tools_do() {
    let schemas = |text: &str| {
        let fbc = parse(text).map_err(|error| error.kind())?;
        Ok::<_, &str>(
            fbc.others.iter().map(|meta| meta.schema.clone()).collect::<Vec<_>>().join(" "),
        )
    };
    for (text, expected) in [
        ("", Ok("")),
        ("---\nschema: a.a\n", Ok("a.a")),
        ("schema: a.a\n---\nschema: a.b\n---\n", Ok("a.a a.b")),
        ("schema: a.a\n--- # comment\nschema: a.b", Ok("a.a a.b")),
        ("schema: a.a\r\n---\r\nschema: a.b\r\n", Ok("a.a a.b")),
        ("schema: a.a\n---\n---\nschema: a.b", Ok("a.a a.b")),
        ("schema: a.a\n...\n---\nschema: a.b", Ok("a.a a.b")),
        ("\u{feff}schema: a.a\n", Ok("a.a")),
        ("schema: a.a\nx: |\n  ---\n", Ok("a.a")),
        // Nothing but comments is a document too, and it has no schema.
        ("# comment\n---\nschema: a.a\n", Err("Document")),
        ("---\n---\nschema: a.a\n", Err("Document")),
        ("schema: a.a\n---\n# comment\n", Err("Document")),
        ("schema: a.a\n---\nnull\n", Err("Document")),
        ("schema: a.a\n---\tx\n", Err("Yaml")),
        ("%YAML 1.1\n---\nschema: a.a\n", Err("Yaml")),
        // A brace at the start is JSON at first.
        ("{schema: a.a}\n---\nschema: a.b\n", Ok("a.a a.b")),
        ("{\"schema\": \"a.a\"}\n---\nschema: a.b\n", Ok("a.a a.b")),
        ("{\"schema\": \"a.a\"}{\"schema\": \"a.b\"}\n---\nschema: a.c\n", Err("Json")),
    ] {
        assert_eq!(schemas(text).as_deref().map_err(|kind| *kind), expected, "{text:?}");
    }
}

#[test]
fn errors_name_the_line() {
    let error = parse("schema: a.b\n---\n# comment\nname: x\n").unwrap_err();
    assert!(matches!(error, Error::Document { document: 2, line: 3, .. }), "{error:?}");
    let error = parse("{\"schema\":\"a\"}\n\n {\"name\":1}").unwrap_err();
    assert!(matches!(error, Error::Document { document: 2, line: 3, .. }), "{error:?}");
    let error = parse("schema: a.b\n---\nname: x\nother: [\n").unwrap_err();
    let Error::Yaml { document: 2, source, .. } = error else { panic!("{error:?}") };
    assert!(source.line >= 4, "{source}");
}

#[test]
fn properties_are_shared_and_keep_whether_they_have_a_value() {
    let bundle = |name: &str, rest: &str| {
        format!(
            r#"{{"schema":"olm.bundle","name":"{name}","properties":[{{"type":"a.b","value":{{"x":5.0}}}}{rest}]}}"#
        )
    };
    let text = bundle("one", r#",{"type":"a.c"},{"Type":"a.d","Value":null}"#) + &bundle("two", "");
    let fbc = parse(&text).unwrap();
    let [one, two] = fbc.bundles.as_slice() else { panic!("{fbc:?}") };
    assert!(Arc::ptr_eq(&one.properties[0], &two.properties[0]));
    assert_eq!(one.properties[0].value.to_string(), r#"{"x":5}"#);
    assert_eq!(one.without_value, ["a.c"]);
    assert_eq!(
        (one.properties[1].kind.as_str(), &one.properties[1].value),
        ("a.d", &serde_json::Value::Null)
    );
}
