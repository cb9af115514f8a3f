use super::*;
use crate::{Fbc, Limits};

/// A package with one channel `stable` of these (version, replaces, skipRange).
fn catalog(entries: &[(&str, Option<&str>, Option<&str>)]) -> Arc<Catalog> {
    let mut text =
        r#"{"schema":"olm.package","name":"ferry","defaultChannel":"stable"}"#.to_owned();
    let entry = |(version, replaces, range): &(&str, Option<&str>, Option<&str>)| {
        let mut entry = serde_json::json!({"name": format!("ferry.v{version}")});
        if let Some(replaces) = replaces {
            entry["replaces"] = format!("ferry.v{replaces}").into();
        }
        if let Some(range) = range {
            entry["skipRange"] = (*range).into();
        }
        entry
    };
    let all: Vec<_> = entries.iter().map(entry).collect();
    let channel = serde_json::json!(
        {"schema": "olm.channel", "package": "ferry", "name": "stable", "entries": all});
    text.push_str(&channel.to_string());
    for (version, _, _) in entries {
        let bundle = serde_json::json!({
            "schema": "olm.bundle", "package": "ferry", "name": format!("ferry.v{version}"),
            "image": "i:1", "properties": [{"type": "olm.package",
                "value": {"packageName": "ferry", "version": version}}]});
        text.push_str(&bundle.to_string());
    }
    let limits = Limits::default();
    let fbc = Fbc::parse("ferry", text.as_bytes(), &limits).unwrap();
    Arc::new(Catalog::from_fbc(fbc, &limits).unwrap())
}

fn ferry(version: &str) -> Operator {
    Operator {
        package: "ferry".to_owned(),
        channel: "stable".to_owned(),
        installed: format!("ferry.v{version}"),
        version: None,
    }
}

fn verdict(old: &Arc<Catalog>, new: &Arc<Catalog>, at: &str) -> (Verdict, String) {
    let change = compare(old, new, &[ferry(at)]).operators.remove(0);
    (change.verdict, change.message)
}

#[test]
fn an_operator_is_told_what_the_new_catalog_means_for_it() {
    let old = catalog(&[
        ("1.2.0", Some("1.1.0"), None),
        ("1.1.0", Some("1.0.0"), None),
        ("1.0.0", None, None),
    ]);
    assert_eq!(verdict(&old, &old, "1.0.0").0, Verdict::Same);
    // The next index goes there in one hop.
    let jump = catalog(&[("1.2.0", None, Some("<1.2.0"))]);
    let changed = verdict(&old, &jump, "1.0.0");
    assert_eq!(changed.0, Verdict::Changed);
    let hops = &compare(&old, &jump, &[ferry("1.0.0")]).operators[0];
    assert_eq!(hops.before.hops, ["ferry.v1.1.0", "ferry.v1.2.0"]);
    assert_eq!(hops.after.hops, ["ferry.v1.2.0"]);
    assert!(!hops.after.has_installed);
    // A mirror without the middle of the chain.
    let sparse = catalog(&[("1.2.0", Some("1.1.0"), None)]);
    let (stranded, why) = verdict(&old, &sparse, "1.0.0");
    assert_eq!(stranded, Verdict::Stranded);
    assert!(why.contains("no edge from ferry.v1.0.0, nor the bundle itself"), "{why}");
    let short = catalog(&[("1.1.0", Some("1.0.0"), None), ("1.0.0", None, None)]);
    assert_eq!(
        verdict(&old, &short, "1.0.0"),
        (Verdict::EndsEarlier, "its way ends at 1.1.0, it was 1.2.0".to_owned())
    );
    // Two heads: OLM refuses the channel, and with it the namespace.
    let heads = catalog(&[("1.2.0", None, None), ("1.1.0", None, None)]);
    assert_eq!(verdict(&old, &heads, "1.0.0").0, Verdict::Broken);
}

#[test]
fn packages_are_compared_by_what_decides_the_way() {
    let old = catalog(&[("1.1.0", Some("1.0.0"), None), ("1.0.0", None, None)]);
    let new = catalog(&[("1.2.0", Some("1.1.0"), None), ("1.1.0", Some("1.0.0"), Some("<1.1.0"))]);
    let comparison = compare(&old, &new, &[]);
    let PackageChange::Changed(delta) = &comparison.packages["ferry"] else {
        panic!("{comparison:?}")
    };
    assert_eq!(delta.bundles_added, ["ferry.v1.2.0"]);
    assert_eq!(delta.bundles_removed, ["ferry.v1.0.0"]);
    let heads = [("stable".to_owned(), ("ferry.v1.1.0".to_owned(), "ferry.v1.2.0".to_owned()))];
    assert_eq!(delta.heads, heads.into());
    assert_eq!(delta.edges_changed["stable"], ["ferry.v1.1.0"]);
    assert!(compare(&old, &old, &[]).packages.is_empty());
    let empty = Arc::new(Catalog::from_graph(crate::Graph::default()));
    assert_eq!(compare(&empty, &old, &[]).packages["ferry"], PackageChange::Added);
    assert_eq!(compare(&old, &empty, &[]).packages["ferry"], PackageChange::Removed);
}
