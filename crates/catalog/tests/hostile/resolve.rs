//! Questions and catalogs that somebody made to keep the engines busy.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use wavelift_catalog::{
    Catalog, Engine as _, Fbc, Limits, OlmV0,
    engine::{
        CatalogKey, Catalogs, Installed, InstalledProperties, Request, ResolveError, Subscription,
        line::Resolver,
    },
    validate::validate,
};
use wavelift_core::{target::Goal, version::Version};

use crate::hostile::check_memory;

fn key() -> CatalogKey {
    CatalogKey { name: "cat".to_owned(), namespace: "ns".to_owned() }
}

fn bundle(package: &str, name: &str, version: &str, needs: &[Value]) -> Value {
    let stated =
        json!({"type": "olm.package", "value": {"packageName": package, "version": version}});
    let properties: Vec<&Value> = std::iter::once(&stated).chain(needs).collect();
    json!({"schema": "olm.bundle", "package": package, "name": name, "image": "r/x",
        "properties": properties})
}

/// A package with one version.
fn package(name: &str, needs: &[Value]) -> Vec<Value> {
    let csv = format!("{name}.v1");
    vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "c"}),
        json!({"schema": "olm.channel", "package": name, "name": "c", "entries": [{"name": csv}]}),
        bundle(name, &csv, "1.0.0", needs),
    ]
}

fn fbc(documents: &[Value], limits: &Limits) -> Fbc {
    let text: String = documents.iter().map(Value::to_string).collect();
    Fbc::parse("file", text.as_bytes(), limits).unwrap()
}

fn catalogs(documents: &[Value]) -> Catalogs {
    let limits = Limits::default();
    Catalogs::one(key(), Arc::new(Catalog::from_fbc(fbc(documents, &limits), &limits).unwrap()))
}

fn subscription(package: &str, installed: Option<(&str, &str)>) -> Subscription {
    Subscription {
        package: package.to_owned(),
        channel: "c".to_owned(),
        catalog: key(),
        installed: installed.map(|(csv, version)| Installed {
            csv: csv.to_owned(),
            version: Some(Version::parse(version).unwrap()),
            properties: InstalledProperties::AsInCatalog,
        }),
        starting_csv: None,
    }
}

fn request(subscriptions: Vec<Subscription>) -> Request {
    Request { namespace: "ns".to_owned(), subscriptions, unreferenced: Vec::new() }
}

fn goal(version: &str) -> Goal {
    Goal::Version(Version::parse(version).unwrap())
}

fn needs(package: &str) -> Value {
    json!({"type": "olm.package.required",
        "value": {"packageName": package, "versionRange": ">=1.0.0"}})
}

#[test]
fn a_million_skips() {
    let limits = Limits { skips: 1_000_000, ..Limits::default() };
    let mut text = package("p", &[]).iter().map(Value::to_string).collect::<String>();
    let names: Vec<String> = (0..1_000_000).map(|index| format!("\"p.v0.{index}\"")).collect();
    let entry = r#"{"name":"p.v1""#;
    text = text.replace(entry, &format!("{entry},\"skips\":[{}]", names.join(",")));
    drop(names);
    let fbc = Fbc::parse("file", text.as_bytes(), &limits).unwrap();
    drop(text);
    assert_eq!(fbc.channels[0].entries[0].skips.len(), 1_000_000);
    assert_eq!(validate(&fbc), []);
    let catalog = Catalog::from_fbc(fbc, &limits).unwrap();
    assert_eq!(catalog.head("p", "c").unwrap(), "p.v1");
    let catalogs = Catalogs::one(key(), Arc::new(catalog));
    let request = request(vec![subscription("p", Some(("p.v0.999999", "0.1.0")))]);
    let next = OlmV0.next(&catalogs, &request).unwrap();
    assert_eq!(next.csvs().into_iter().collect::<Vec<_>>(), ["p.v1"]);
    let targets = BTreeMap::from([("p".to_owned(), Version::parse("1.0.0").unwrap())]);
    assert_eq!(OlmV0.path(&catalogs, &request, &targets).unwrap().hops.len(), 1);
    let route = OlmV0.route(&catalogs, &request, "p", &goal("1.0.0"));
    assert_eq!(route.hops.len(), 1);
    check_memory();
}

#[test]
fn circles_end_in_every_question() {
    let names: Vec<String> = (0..1000).map(|index| format!("n{index}")).collect();
    let mut entries = vec![json!({"name": "head", "replaces": "n0"})];
    entries.extend(
        names.iter().enumerate().map(
            |(index, name)| json!({"name": name, "replaces": names[(index + 1) % names.len()]}),
        ),
    );
    let mut documents = vec![
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "c"}),
        json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": entries}),
        // Two channels, each of which leads to where the other one starts.
        json!({"schema": "olm.package", "name": "q", "defaultChannel": "c"}),
        json!({"schema": "olm.channel", "package": "q", "name": "c",
            "entries": [{"name": "q.v2", "replaces": "q.v1"}]}),
        json!({"schema": "olm.channel", "package": "q", "name": "d",
            "entries": [{"name": "q.v1", "replaces": "q.v2"}]}),
        bundle("q", "q.v1", "1.0.0", &[]),
        bundle("q", "q.v2", "2.0.0", &[]),
    ];
    documents.extend(
        names
            .iter()
            .chain([&"head".to_owned()])
            .enumerate()
            .map(|(index, name)| bundle("p", name, &format!("1.{index}.0"), &[])),
    );
    let catalogs = catalogs(&documents);
    let in_circle = request(vec![subscription("p", Some(("n5", "1.5.0")))]);
    let error = OlmV0.next(&catalogs, &in_circle).unwrap_err();
    assert!(matches!(error, ResolveError::Channel { .. }), "{error:?}");
    let route = OlmV0.route(&catalogs, &in_circle, "p", &goal("1.1000.0"));
    assert!(route.hops.is_empty(), "{route:?}");
    let target = |package: &str, version: &str| {
        BTreeMap::from([(package.to_owned(), Version::parse(version).unwrap())])
    };
    let path = OlmV0.path(&catalogs, &in_circle, &target("p", "1.1000.0")).unwrap_err();
    assert_eq!(path.kind(), "Channel");
    // Back and forth between the channels, for ever.
    let mut both = subscription("q", Some(("q.v1", "1.0.0")));
    both.channel = String::new();
    let both = request(vec![both]);
    let path = OlmV0.path(&catalogs, &both, &target("q", "3.0.0")).unwrap_err();
    assert_eq!(path.kind(), "Circle", "{path:?}");
    let route = OlmV0.route(&catalogs, &both, "q", &goal("3.0.0"));
    assert!(route.hops.len() <= 2, "{route:?}");
}

#[test]
fn a_circle_of_needs_and_a_chain_without_end() {
    // Deeper than choices may hang on each other in the search.
    const LENGTH: usize = 2_100;
    let of = |count: usize, next: &dyn Fn(usize) -> Vec<Value>| {
        (0..count)
            .flat_map(|index| package(&format!("p{index}"), &next(index)))
            .collect::<Vec<Value>>()
    };
    let ask = |documents: &[Value]| {
        OlmV0.next(&catalogs(documents), &request(vec![subscription("p0", None)]))
    };
    let circle = of(LENGTH, &|index| vec![needs(&format!("p{}", (index + 1) % LENGTH))]);
    assert_eq!(ask(&circle).unwrap().csvs().len(), LENGTH);
    // The last one needs what is not there.
    let chain = of(LENGTH, &|index| vec![needs(&format!("p{}", index + 1))]);
    let error = ask(&chain).unwrap_err();
    assert!(matches!(error, ResolveError::Unsatisfiable { .. }), "{error:?}");
    assert!(error.sentence().len() < 10_000);
    // Each needs one of two, so that choices hang on each other: the last two exclude each other.
    let either = |index: usize| {
        let one = |index: usize| {
            json!({"package": {"packageName": format!("p{index}"),
            "versionRange": ">=1.0.0"}})
        };
        let constraints = [one(index + 1), one(index + 2)];
        vec![json!({"type": "olm.constraint", "value": {"any": {"constraints": constraints}}})]
    };
    let error = ask(&of(300, &either)).unwrap_err();
    assert!(
        matches!(error, ResolveError::Unsatisfiable { .. } | ResolveError::TooHard { .. }),
        "{error:?}"
    );
    // Itself, and the contrary of itself.
    let own = package("p0", &[needs("p0")]);
    assert_eq!(ask(&own).unwrap().csvs().len(), 1);
    let mut deep = json!({"gvk": {"group": "g", "version": "v1", "kind": "K"}});
    for _ in 0..60 {
        deep = json!({"not": {"constraints": [deep]}});
    }
    // The catalog itself allows it no deeper than a document may be.
    let mut text = package("p0", &[]);
    text[2]["properties"] = json!([{"type": "olm.constraint", "value": deep}]);
    let text: String = text.iter().map(Value::to_string).collect();
    let error = Fbc::parse("file", text.as_bytes(), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("levels of nesting, more than 64"), "{error}");
    check_memory();
}

#[test]
fn lines_without_end() {
    let resolver = Resolver::default();
    let ask = |line: &str| resolver.answer(line).unwrap_err().to_string();
    let blank = " ".repeat(100 << 20);
    assert_eq!(ask(&blank), "line has 104857600 bytes, more than 67108864");
    drop(blank);
    let limits = Limits { file_nodes: 100_000, ..Limits::default() };
    let values = format!("{{\"catalogs\":[{}1]}}", "1,".repeat(100_000));
    let error = Resolver::new(None, limits).answer(&values).unwrap_err();
    assert_eq!(error.to_string(), "line has 100003 values, more than 100000");
    let one = r#"{"package":"p","catalog":"c","catalogNamespace":"n"}"#;
    let many = |list: &str, one: &str, count: usize| {
        format!("{{\"{list}\":[{}{one}]}}", format!("{one},").repeat(count - 1))
    };
    let error = ask(&many("subscriptions", one, 1_000_000));
    assert_eq!(error, "line has 1000000 subscriptions, more than 1000");
    let catalog = r#"{"name":"c","namespace":"n"}"#;
    let error = ask(&many("catalogs", catalog, 1_001));
    assert_eq!(error, "line has 1001 catalogs, more than 1000");
    let deep = format!("{{\"subscriptions\":{}", "[".repeat(1_000_000));
    assert!(ask(&deep).starts_with("line is no question"));
    check_memory();
}
