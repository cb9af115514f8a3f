//! The API server is new enough for every hop. OLM asks only after the approval, when there is no
//! way back and none forward.

use wavelift_catalog::{Coverage, catalog::Stated};
use wavelift_core::{
    check::{Finding, Outcome},
    version::Version,
};

use super::{Facts, Found, NamespaceFacts};

pub(super) const NAME: &str = "min-kube-version";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    let server = match &facts.kube_version {
        Ok(text) => version(text),
        Err(error) => {
            found.unread.push(format!("cannot read the API server's version: {error}"));
            None
        }
    };
    if let (None, Ok(text)) = (&server, &facts.kube_version) {
        let message = format!("the API server's version `{text}` is not understood");
        found.add(Outcome::Unknown, "VersionNotUnderstood", message, text);
    }
    if let Some(server) = &server {
        for namespace in &facts.namespaces {
            one(facts, namespace, server, &mut found);
        }
    }
    found.finding(
        "the API server is new enough for every hop",
        "Upgrade the platform first, or choose a version that runs on this one",
    )
}

fn one(facts: &Facts, namespace: &NamespaceFacts, server: &Version, found: &mut Found) {
    for item in facts.moves(&namespace.name) {
        let (package, csv) = (item.package.as_str(), item.to.as_str());
        let mut catalogs = namespace.contents.iter();
        let Some(catalog) = catalogs.find(|catalog| catalog.bundle(package, csv).is_some()) else {
            let message = format!("{csv} is in no catalog that could be read");
            found.add(Outcome::Unknown, "CatalogNotRead", message, csv);
            continue;
        };
        let text = match (catalog.min_kube_version(package, csv), catalog.coverage()) {
            (Stated::As(text), _) => text,
            (Stated::Unread, Coverage::Registry) => {
                let message = format!(
                    "the catalog's registry did not say which Kubernetes version {csv} needs"
                );
                found.add(Outcome::Unknown, "NotDescribed", message, csv);
                continue;
            }
            // A bundle that names no version runs on any.
            (Stated::Nothing, _) | (Stated::Unread, Coverage::Full | Coverage::Graph) => continue,
        };
        match version(text) {
            Some(wanted) if *server < wanted => {
                let message = format!("{csv} needs Kubernetes {text}, the API server has {server}");
                found.fail("KubeVersionTooLow", message, csv);
            }
            Some(_) => {}
            None => {
                let message = format!("the minKubeVersion `{text}` of {csv} is not understood");
                found.add(Outcome::Unknown, "VersionNotUnderstood", message, csv);
            }
        }
    }
}

/// Major, minor and patch alone, as OLM compares them: `v1.33.4-eks-1` counts as 1.33.4.
fn version(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches('v');
    let plain = text.split(['-', '+']).next().unwrap_or(text);
    Version::parse_tolerant(plain).ok()
}
