//! What the resolver of OLM v1 answers on real catalogs.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde::Deserialize;
use wavelift_catalog::{
    Catalog, Limits,
    engine::olm_v1::{self, ClusterCatalog, Content, Query, Reply, Target},
};
use wavelift_core::version::Version;

use super::support;

#[derive(Deserialize)]
struct Line {
    catalog: String,
    #[serde(flatten)]
    query: Query,
    resolved: String,
    error: Option<String>,
}

fn by_catalog(lines: &[Line]) -> BTreeMap<&str, Vec<&Line>> {
    let mut by_catalog: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        by_catalog.entry(&line.catalog).or_default().push(line);
    }
    by_catalog
}

fn one(content: Content) -> [ClusterCatalog; 1] {
    [ClusterCatalog { name: "cat".to_owned(), priority: 0, content: Arc::new(content) }]
}

#[test]
fn every_cluster_extension_resolves_as_olm_resolves_it() {
    let Some(shared) = support::shared("OLM v1") else { return };
    let lines: Vec<Line> = support::lines(&shared, "olm-v1-resolve.jsonl");
    let mut differences = String::new();
    for (name, lines) in by_catalog(&lines) {
        let fbc = support::fbc(&shared, name);
        let mut contents = vec![("files", one(Content::from_fbc(&fbc)))];
        // The graph, which agent and hub exchange, gives the same answers.
        if let Ok(catalog) = Catalog::from_fbc(fbc, &Limits::default()) {
            contents.push(("graph", one(Content::from_catalog(&catalog))));
        }
        for (Line { query, resolved, error, .. }, (form, catalogs)) in
            lines.iter().flat_map(|line| contents.iter().map(move |content| (*line, content)))
        {
            let reply = olm_v1::answer(catalogs, query);
            let is_same = match (&reply, error) {
                (Reply::Resolved(bundle), None) => bundle == resolved,
                (Reply::Error(_), Some(_)) => true,
                (Reply::Resolved(_), Some(_)) | (Reply::Error(_), None) => false,
            };
            if !is_same {
                writeln!(
                    differences,
                    "{name} ({form}) {query:?}: OLM {resolved} {error:?}, we {reply:?}"
                )
                .unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert_eq!(lines.len(), 2142);
}

#[test]
fn every_hop_of_a_path_is_what_its_pin_resolves_to() {
    let Some(shared) = support::shared("paths of OLM v1") else { return };
    let lines: Vec<Line> = support::lines(&shared, "olm-v1-resolve.jsonl");
    let (mut hops, mut longest) = (0, 0);
    for (name, lines) in by_catalog(&lines) {
        let catalogs = one(Content::from_fbc(&support::fbc(&shared, name)));
        for line in lines.iter().filter(|line| line.query.constraint.as_deref() == Some("")) {
            let mut extension = line.query.extension().unwrap();
            let all = olm_v1::resolve(&catalogs, &extension);
            let versions = all.passed_over.iter().filter_map(|passed| passed.version.as_deref());
            let versions: Vec<&str> = versions.collect();
            // A sample of what the package has: about four of them.
            for version in versions.iter().step_by(versions.len() / 4 + 1) {
                let target = Target::Version(Version::parse(version).unwrap());
                let Ok(path) = olm_v1::path(&catalogs, &extension, &target) else { continue };
                longest = longest.max(path.hops.len());
                let start = extension.clone();
                for hop in &path.hops {
                    extension.constraint = Some(hop.pin.parse().unwrap());
                    let resolved = olm_v1::resolve(&catalogs, &extension).outcome.unwrap();
                    assert_eq!(
                        (&resolved.bundle, &resolved.edges),
                        (&hop.to, &hop.edges),
                        "{name}"
                    );
                    let version = resolved.version.to_string();
                    extension.installed.as_mut().unwrap().name.clone_from(&resolved.bundle);
                    extension.installed.as_mut().unwrap().version = version;
                    hops += 1;
                }
                let at = extension.installed.as_ref().unwrap();
                assert_eq!(at.version, *version, "{name} {version}");
                extension = start;
            }
        }
    }
    assert!(hops > 500 && longest > 5, "{hops} hops, the longest path has {longest}");
}
