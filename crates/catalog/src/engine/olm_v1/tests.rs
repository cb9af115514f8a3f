use std::sync::Arc;

use serde_json::{Value, json};
use wavelift_core::constraint::Constraint;

use super::*;
use crate::{Catalog, Fbc, Limits};

/// A package `op` with these bundles and one channel entry per item: (channel, entry).
pub(super) fn content(
    bundles: &[Value],
    entries: &[(&str, Value)],
    deprecated: &[&str],
) -> Content {
    Content::from_fbc(&fbc(bundles, entries, deprecated))
}

fn fbc(bundles: &[Value], entries: &[(&str, Value)], deprecated: &[&str]) -> Fbc {
    let mut documents = vec![json!({"schema": "olm.package", "name": "op"})];
    let mut channels: Vec<&str> = entries.iter().map(|(channel, _)| *channel).collect();
    channels.sort_unstable();
    channels.dedup();
    for channel in channels {
        let of = entries.iter().filter(|(name, _)| *name == channel).map(|(_, entry)| entry);
        let entries: Vec<&Value> = of.collect();
        documents.push(json!({
            "schema": "olm.channel", "package": "op", "name": channel, "entries": entries,
        }));
    }
    documents.extend_from_slice(bundles);
    if !deprecated.is_empty() {
        let entries: Vec<Value> = deprecated
            .iter()
            .map(|name| json!({
                "reference": {"schema": "olm.bundle", "name": name}, "message": format!("leave {name}"),
            }))
            .collect();
        documents.push(json!({"schema": "olm.deprecations", "package": "op", "entries": entries}));
    }
    let text: String = documents.iter().map(Value::to_string).collect();
    Fbc::parse("op", text.as_bytes(), &Limits::default()).unwrap()
}

/// The bundle `op.v<version>`.
pub(super) fn bundle(version: &str) -> Value {
    named(&format!("op.v{version}"), version, &[])
}

pub(super) fn named(name: &str, version: &str, more: &[Value]) -> Value {
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": "op", "version": version}})];
    properties.extend_from_slice(more);
    json!({"schema": "olm.bundle", "package": "op", "name": name, "properties": properties})
}

/// An entry of the bundle `op.v<version>` that replaces another one.
pub(super) fn entry(version: &str, replaces: &str) -> Value {
    json!({"name": format!("op.v{version}"), "replaces": format!("op.v{replaces}")})
}

pub(super) fn catalog(name: &str, priority: i32, content: Content) -> ClusterCatalog {
    ClusterCatalog { name: name.to_owned(), priority, content: Arc::new(content) }
}

pub(super) fn asked(installed: Option<&str>, channels: &[&str], constraint: &str) -> Extension {
    Extension {
        package: "op".to_owned(),
        channels: channels.iter().map(|channel| (*channel).to_owned()).collect(),
        constraint: (!constraint.is_empty()).then(|| Constraint::parse(constraint).unwrap()),
        installed: installed.map(|version| InstalledBundle {
            name: format!("op.v{version}"),
            version: version.to_owned(),
            release: None,
        }),
        ..Extension::default()
    }
}

/// The name of the chosen bundle, or the kind of the error.
fn outcome(answer: &Answer) -> &str {
    match &answer.outcome {
        Ok(resolved) => &resolved.bundle,
        Err(error) => error.kind(),
    }
}

/// Why a bundle of the catalog `cat` was passed over.
fn why<'a>(answer: &'a Answer, bundle: &str) -> &'a Why {
    let passed = |passed: &&PassedOver| passed.catalog == "cat" && passed.bundle == bundle;
    &answer.passed_over.iter().find(passed).unwrap_or_else(|| panic!("{bundle}: {answer:?}")).why
}

/// 1.0.0 to 1.3.0 in `stable`, of which 1.2.0 is skipped, and 2.0.0 in `fast`.
fn chain() -> Content {
    let skipping = json!({"name": "op.v1.3.0", "replaces": "op.v1.1.0", "skips": ["op.v1.2.0"]});
    let fast = json!({"name": "op.v2.0.0", "skipRange": ">=1.0.0 <1.3.0"});
    let bundles = ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "2.0.0"].map(bundle);
    let entries = [
        ("stable", entry("1.1.0", "1.0.0")),
        ("stable", json!({"name": "op.v1.0.0"})),
        ("stable", entry("1.2.0", "1.1.0")),
        ("stable", skipping),
        ("fast", fast),
    ];
    content(&bundles, &entries, &[])
}

fn resolve_one(content: Content, extension: &Extension) -> Answer {
    resolve(&[catalog("cat", 0, content)], extension)
}

#[test]
fn the_highest_version_that_an_edge_leads_to_is_chosen() {
    let answer = resolve_one(chain(), &asked(Some("1.1.0"), &[], ""));
    let resolved = answer.outcome.as_ref().unwrap();
    assert_eq!((resolved.bundle.as_str(), resolved.step), ("op.v2.0.0", Step::Moves));
    let kind = EdgeKind::SkipRange(">=1.0.0 <1.3.0".to_owned());
    assert_eq!(resolved.edges, [Edge { channel: "fast".to_owned(), kind }]);
    let chosen = || "op.v2.0.0".to_owned();
    assert_eq!(*why(&answer, "op.v1.3.0"), Why::Older { chosen: chosen() });
    assert_eq!(*why(&answer, "op.v1.1.0"), Why::Older { chosen: chosen() });
    assert_eq!(*why(&answer, "op.v1.0.0"), Why::NoEdge { installed: "op.v1.1.0".to_owned() });
    assert_eq!(answer.passed_over.len(), 4);
}

#[test]
fn channels_bind_bundles_and_edges() {
    let answer = resolve_one(chain(), &asked(Some("1.1.0"), &["stable"], ""));
    assert_eq!(outcome(&answer), "op.v1.3.0");
    let channels = BTreeSet::from(["fast".to_owned()]);
    assert_eq!(*why(&answer, "op.v2.0.0"), Why::NotInChannels { channels });
    // What is installed stays though nothing else is there; it must be in the channels itself.
    assert_eq!(outcome(&resolve_one(chain(), &asked(Some("2.0.0"), &["fast"], ""))), "op.v2.0.0");
    assert_eq!(outcome(&resolve_one(chain(), &asked(Some("2.0.0"), &["stable"], ""))), "NoEdge");
    assert_eq!(outcome(&resolve_one(chain(), &asked(None, &["slow"], ""))), "ChannelsEmpty");
}

#[test]
fn a_skipped_bundle_is_a_target() {
    let answer = resolve_one(chain(), &asked(Some("1.1.0"), &[], "1.2.x"));
    assert_eq!(outcome(&answer), "op.v1.2.0");
    assert_eq!(*why(&answer, "op.v1.3.0"), Why::Constraint { constraint: "1.2.x".to_owned() });
    let resolved = answer.outcome.unwrap();
    assert_eq!(resolved.edges[0].kind, EdgeKind::Replaces);
    // And from it the edge that skips it leads on.
    let answer = resolve_one(chain(), &asked(Some("1.2.0"), &["stable"], ""));
    assert_eq!(answer.outcome.unwrap().edges[0].kind, EdgeKind::Skips);
}

#[test]
fn what_is_installed_stays_when_nothing_follows() {
    let answer = resolve_one(chain(), &asked(Some("2.0.0"), &[], ""));
    let resolved = answer.outcome.unwrap();
    assert_eq!((resolved.step, resolved.edges.len()), (Step::Stays, 0));
    // A constraint that leaves it out is an error, not a stay.
    let answer = resolve_one(chain(), &asked(Some("2.0.0"), &[], "<2"));
    let wanted = vec!["op.v1.3.0", "op.v1.2.0", "op.v1.1.0", "op.v1.0.0"];
    let wanted = wanted.into_iter().map(str::to_owned).collect();
    let installed = "op.v2.0.0".to_owned();
    assert_eq!(answer.outcome.unwrap_err(), ResolveError::NoEdge { installed, wanted });
}

#[test]
fn nothing_installed_takes_the_highest() {
    let answer = resolve_one(chain(), &asked(None, &[], ""));
    assert_eq!(answer.outcome.as_ref().unwrap().step, Step::Installs);
    assert_eq!(outcome(&answer), "op.v2.0.0");
    assert_eq!(outcome(&resolve_one(chain(), &asked(None, &[], "~1.1"))), "op.v1.1.0");
}

#[test]
fn self_certified_leaves_the_edges() {
    let mut extension = asked(Some("1.3.0"), &[], "1.0.0");
    assert_eq!(outcome(&resolve_one(chain(), &extension)), "NoEdge");
    extension.policy = UpgradePolicy::SelfCertified;
    let resolved = resolve_one(chain(), &extension).outcome.unwrap();
    assert_eq!((resolved.bundle.as_str(), resolved.edges.len()), ("op.v1.0.0", 0));
}

#[test]
fn deprecated_bundles_come_last() {
    let bundles = ["1.0.0", "1.1.0", "1.2.0"].map(bundle);
    let range = |version: &str| json!({"name": format!("op.v{version}"), "skipRange": "<1.2.0"});
    let entries = [("a", range("1.0.0")), ("a", range("1.1.0")), ("a", range("1.2.0"))];
    let content = |deprecated: &[&str]| content(&bundles, &entries, deprecated);
    let answer = resolve_one(content(&["op.v1.2.0"]), &asked(Some("1.0.0"), &[], ""));
    assert_eq!(outcome(&answer), "op.v1.1.0");
    assert_eq!(*why(&answer, "op.v1.2.0"), Why::Deprecated { chosen: "op.v1.1.0".to_owned() });
    // Even the installed one is preferred to a deprecated newer one.
    let answer = resolve_one(content(&["op.v1.1.0", "op.v1.2.0"]), &asked(Some("1.0.0"), &[], ""));
    assert_eq!(outcome(&answer), "op.v1.0.0");
    // Where all are, the highest is taken and its message given on.
    let all = ["op.v1.0.0", "op.v1.1.0", "op.v1.2.0"];
    let resolved = resolve_one(content(&all), &asked(Some("1.0.0"), &[], "")).outcome.unwrap();
    assert_eq!(resolved.deprecation.as_deref(), Some("leave op.v1.2.0"));
}

#[test]
fn a_bundle_with_dependencies_is_refused_not_passed_by() {
    for property in ["olm.package.required", "olm.gvk.required", "olm.constraint"] {
        let needy = named("op.v1.1.0", "1.1.0", &[json!({"type": property, "value": "anything"})]);
        let content = content(
            &[bundle("1.0.0"), needy],
            &[("a", json!({"name": "op.v1.0.0"})), ("a", entry("1.1.0", "1.0.0"))],
            &[],
        );
        let catalogs = [catalog("cat", 0, content)];
        let answer = resolve(&catalogs, &asked(Some("1.0.0"), &[], ""));
        assert_eq!(outcome(&answer), "Dependencies");
        let property = property.to_owned();
        assert_eq!(*why(&answer, "op.v1.1.0"), Why::HasDependencies { property });
        assert_eq!(outcome(&resolve(&catalogs, &asked(Some("1.0.0"), &[], "1.0.0"))), "op.v1.0.0");
    }
    // A label is no dependency that OLM v1 looks at.
    let label = json!({"type": "olm.label.required", "value": {"label": "x"}});
    let content = content(&[named("op.v1.0.0", "1.0.0", &[label])], &[], &[]);
    assert_eq!(outcome(&resolve_one(content, &asked(None, &[], ""))), "op.v1.0.0");
}

#[test]
fn rebuilds_are_ordered_by_their_release() {
    let bundles = ["1.0.0", "1.0.0+2", "1.0.0+10"].map(bundle);
    let range = |version: &str| json!({"name": format!("op.v{version}"), "skipRange": "<=1.0.0"});
    let entries = [("a", range("1.0.0+2")), ("a", range("1.0.0+10")), ("a", range("1.0.0"))];
    let of = |extension: &Extension| {
        outcome(&resolve_one(content(&bundles, &entries, &[]), extension)).to_owned()
    };
    assert_eq!(of(&asked(Some("1.0.0"), &[], "")), "op.v1.0.0+10");
    // A constraint does not look at releases.
    assert_eq!(of(&asked(None, &[], "1.0.0")), "op.v1.0.0+10");
    assert_eq!(of(&asked(None, &[], "1.0.0+2")), "op.v1.0.0+10");
    // Without edges a rebuild is another bundle: only what is installed may stay.
    let lonely = content(&bundles, &[], &[]);
    assert_eq!(outcome(&resolve_one(lonely, &asked(Some("1.0.0+2"), &[], ""))), "op.v1.0.0+2");
}

#[test]
fn the_release_field_counts_only_where_the_cluster_reads_it() {
    let with = |name: &str, release: Value| {
        let value = json!({"packageName": "op", "version": "1.0.0+9", "release": release});
        let property = json!({"type": "olm.package", "value": value});
        json!({"schema": "olm.bundle", "package": "op", "name": name, "properties": [property]})
    };
    let bundles = [with("one", json!("1")), with("two", json!("2")), with("none", json!(""))];
    let content = || content(&bundles, &[], &[]);
    let mut extension = asked(None, &[], "");
    // All three are 1.0.0 with release 9: the first one of the catalog is taken.
    let answer = resolve_one(content(), &extension);
    assert_eq!(outcome(&answer), "one");
    assert_eq!(*why(&answer, "two"), Why::SameRank { chosen: "one".to_owned() });
    assert_eq!(answer.outcome.unwrap().same_rank, ["two", "none"]);
    extension.releases = ReleaseSource::ReleaseField;
    assert_eq!(outcome(&resolve_one(content(), &extension)), "two");
    // What is installed says its release in a field, too.
    extension.installed = Some(InstalledBundle {
        name: "gone".to_owned(),
        version: "1.0.0+9".to_owned(),
        release: Some("1".to_owned()),
    });
    assert_eq!(outcome(&resolve_one(content(), &extension)), "one");
}

#[test]
fn versions_are_read_strictly() {
    let odd = |name: &str, value: Value| {
        let property = json!({"type": "olm.package", "value": value});
        json!({"schema": "olm.bundle", "package": "op", "name": name, "properties": [property]})
    };
    let bundles = [
        odd("v", json!({"packageName": "op", "version": "v9.0.0"})),
        odd("number", json!({"packageName": "op", "version": 9})),
        odd("list", json!([])),
        odd("release", json!({"packageName": "op", "version": "9.0.0", "release": 1})),
        json!({"schema": "olm.bundle", "package": "op", "name": "none"}),
    ];
    // They may be chosen, last of all, and can then not be installed.
    let catalogs = [catalog("cat", 0, content(&bundles, &[], &[]))];
    assert_eq!(outcome(&resolve(&catalogs, &asked(None, &[], ""))), "BundleVersion");
    let answer = resolve(&catalogs, &asked(None, &[], "*"));
    assert_eq!(outcome(&answer), "ConstraintUnmet");
    for name in ["v", "number", "list", "release", "none"] {
        assert_eq!(why(&answer, name).kind(), "NoVersion", "{name}");
    }
    let capital = odd("capital", json!({"PackageName": "op", "Version": "1.0.0"}));
    let mut bundles = bundles.to_vec();
    bundles.push(capital);
    let answer = resolve_one(content(&bundles, &[], &[]), &asked(None, &[], ""));
    assert_eq!(outcome(&answer), "capital");
}

#[test]
fn ranges_of_edges_and_constraints_treat_prereleases_differently() {
    let entries = [
        ("a", json!({"name": "op.v1.1.0-rc.1", "skipRange": ">=1.0.0 <1.1.0"})),
        ("a", json!({"name": "op.v1.1.0", "skipRange": ">=1.0.0 <1.1.0"})),
        ("a", json!({"name": "op.v1.2.0", "skipRange": "not a range"})),
    ];
    let bundles = ["1.1.0-rc.1", "1.1.0", "1.2.0"].map(bundle);
    let catalogs = [catalog("cat", 0, content(&bundles, &entries, &[]))];
    // The range holds the prerelease; an unreadable one is no edge.
    let answer = resolve(&catalogs, &asked(Some("1.1.0-rc.1"), &[], ""));
    assert_eq!(outcome(&answer), "op.v1.1.0");
    assert_eq!(why(&answer, "op.v1.2.0").kind(), "NoEdge");
    // A constraint takes one only where it names one.
    let answer = resolve(&catalogs, &asked(Some("1.0.0"), &[], "<1.1.0"));
    assert_eq!(why(&answer, "op.v1.1.0-rc.1").kind(), "Prerelease");
    let error = answer.outcome.unwrap_err();
    assert!(error.to_string().contains("`1.1.0-rc.1` would be in it"), "{error}");
    let answer = resolve(&catalogs, &asked(Some("1.0.0"), &[], "<1.1.0-z"));
    assert_eq!(outcome(&answer), "op.v1.1.0-rc.1");
}

#[test]
fn between_catalogs_deprecation_comes_first_then_priority() {
    let of = |versions: &[&str], deprecated: &[&str]| {
        let bundles: Vec<Value> = versions.iter().map(|version| bundle(version)).collect();
        content(&bundles, &[], deprecated)
    };
    let extension = asked(None, &[], "");
    let catalogs = [
        catalog("low", 1, of(&["3.0.0"], &[])),
        catalog("cat", 5, of(&["1.0.0", "2.0.0"], &[])),
        catalog("high", 9, of(&["4.0.0"], &["op.v4.0.0"])),
    ];
    // Not the highest version of all, but the highest of the catalog that wins.
    let answer = resolve(&catalogs, &extension);
    assert_eq!(outcome(&answer), "op.v2.0.0");
    assert_eq!(answer.outcome.as_ref().unwrap().catalog, "cat");
    let reasons: Vec<(&str, &str)> =
        answer.passed_over.iter().map(|p| (p.catalog.as_str(), p.why.kind())).collect();
    assert_eq!(reasons, [("low", "LowerPriority"), ("cat", "Older"), ("high", "Deprecated")]);
    // All deprecated: priority alone decides.
    let catalogs = [
        catalog("cat", 1, of(&["1.0.0"], &["op.v1.0.0"])),
        catalog("high", 9, of(&["0.9.0"], &["op.v0.9.0"])),
    ];
    assert_eq!(outcome(&resolve(&catalogs, &extension)), "op.v0.9.0");
}

#[test]
fn two_catalogs_of_the_same_priority_are_an_error_even_with_the_same_bundle() {
    let of = || content(&[bundle("1.0.0")], &[], &[]);
    let empty = || content(&[], &[], &[]);
    let extension = asked(None, &[], "");
    let catalogs = [catalog("b", 1, of()), catalog("a", 1, of()), catalog("c", 0, of())];
    let expected = ResolveError::SeveralCatalogs {
        package: "op".to_owned(),
        // All in the running, as OLM names them.
        catalogs: vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
    };
    assert_eq!(resolve(&catalogs, &extension).outcome.unwrap_err(), expected);
    // A tie below the first is none.
    let catalogs = [catalog("a", 1, of()), catalog("b", 1, of()), catalog("c", 2, of())];
    assert_eq!(resolve(&catalogs, &extension).outcome.unwrap().catalog, "c");
    let catalogs = [catalog("a", 1, empty()), catalog("b", 1, of())];
    assert_eq!(resolve(&catalogs, &extension).outcome.unwrap().catalog, "b");
}

#[test]
fn what_is_missing_is_named() {
    let mut extension = asked(None, &[], "");
    extension.package = "other".to_owned();
    let error = resolve_one(chain(), &extension).outcome.unwrap_err();
    assert!(error.to_string().contains("`other` (looked in `cat`)"), "{error}");
    let error = resolve_one(chain(), &asked(None, &["slow"], "")).outcome.unwrap_err();
    assert!(error.to_string().ends_with("its channels are `fast`, `stable`"), "{error}");
    let error = resolve_one(chain(), &asked(None, &["stable"], ">=2")).outcome.unwrap_err();
    assert!(error.to_string().contains("the newest there is 1.3.0"), "{error}");
    // The installed version is looked at only where the package is.
    assert_eq!(outcome(&resolve_one(chain(), &asked(Some("one"), &[], ""))), "InstalledVersion");
    extension.installed = asked(Some("one"), &[], "").installed;
    assert_eq!(outcome(&resolve_one(chain(), &extension)), "PackageMissing");
}

#[test]
fn catalogs_that_opm_refuses_are_read_all_the_same() {
    // A bundle that is there twice, and an entry that is: the edges of both count.
    let bundles = [bundle("1.0.0"), bundle("1.1.0"), bundle("1.1.0")];
    let entries = [
        ("a", json!({"name": "op.v1.1.0", "replaces": "op.v0.9.0"})),
        ("a", json!({"name": "op.v1.1.0", "skips": ["op.v1.0.0"]})),
    ];
    let answer = resolve_one(content(&bundles, &entries, &[]), &asked(Some("1.0.0"), &[], ""));
    assert_eq!(outcome(&answer), "op.v1.1.0");
    assert_eq!(why(&answer, "op.v1.1.0").kind(), "SameRank");
}

#[test]
fn the_graph_gives_the_same_answers_as_the_files() {
    let bundles = ["1.0.0", "1.1.0", "1.2.0"].map(bundle);
    let entries = [("a", entry("1.1.0", "1.0.0")), ("b", entry("1.2.0", "1.0.0"))];
    let fbc = fbc(&bundles, &entries, &["op.v1.2.0"]);
    let files = Content::from_fbc(&fbc);
    let graph = Content::from_catalog(&Catalog::from_fbc(fbc, &Limits::default()).unwrap());
    let extension = asked(Some("1.0.0"), &[], "");
    let answer = resolve_one(files, &extension);
    assert_eq!(answer, resolve_one(graph, &extension));
    assert_eq!(outcome(&answer), "op.v1.1.0");
}

#[test]
fn a_line_of_json_gets_a_line_of_json() {
    let catalogs = [catalog("cat", 0, chain())];
    let reply = |line: &str| {
        let query: Query = serde_json::from_str(line).unwrap();
        serde_json::to_string(&answer(&catalogs, &query)).unwrap()
    };
    let line = r#"{"package":"op","channels":["stable"],"constraint":"<1.3","installed":"op.v1.1.0","version":"1.1.0"}"#;
    assert_eq!(reply(line), r#"{"resolved":"op.v1.2.0"}"#);
    let line = r#"{"package":"op","channels":null,"constraint":"","installed":"","version":""}"#;
    assert_eq!(reply(line), r#"{"resolved":"op.v2.0.0"}"#);
    assert_eq!(reply(r#"{"package":"op"}"#), r#"{"resolved":"op.v2.0.0"}"#);
    let policy = r#"{"package":"op","constraint":"1.0.0","installed":"op.v1.3.0","version":"1.3.0","upgradeConstraintPolicy":"SelfCertified"}"#;
    assert_eq!(reply(policy), r#"{"resolved":"op.v1.0.0"}"#);
    let bad = reply(r#"{"package":"op","constraint":"nonsense"}"#);
    assert!(bad.starts_with(r#"{"error":"version `nonsense` of"#), "{bad}");
    assert!(bad.contains("is not made of terms"), "{bad}");
}
