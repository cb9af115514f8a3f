//! Clusters on real catalogs: what they offer and install is what a real OLM answered.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use wavelift_catalog::{Catalog, Fbc, Limits};

use super::{Operator, drive::Driver};
use crate::olm_v0::{Timing, objects::text};

const CATALOGS: [&str; 4] = [
    "rendered/argocd-operator.json",
    "rendered/opendatahub-operator.json",
    "fbc/certified-operators/catalogs/v4.20/gpu-operator-certified",
    "fbc/community-operators-prod/catalogs/v4.20/rabbitmq-cluster-operator",
];

/// Package, channel and installed CSV, and the CSVs that come next.
type Answers = BTreeMap<[String; 3], Vec<String>>;

fn answers(shared: &std::path::Path, catalog: &str) -> Answers {
    let text_of = std::fs::read_to_string(shared.join("vectors/olm-v0-next.jsonl")).unwrap();
    let mut answers = Answers::new();
    for line in text_of.lines() {
        let said: Value = serde_json::from_str(line).unwrap();
        if text(&said, "/catalog") == catalog {
            let key = ["/package", "/channel", "/installed"].map(|p| text(&said, p).to_owned());
            let next = said["next"].as_array().unwrap().iter();
            answers.insert(key, next.map(|csv| csv.as_str().unwrap().to_owned()).collect());
        }
    }
    assert!(!answers.is_empty(), "no answers about {catalog}");
    answers
}

fn cluster(catalog: &Arc<Catalog>, [package, channel, installed]: &[String; 3]) -> Driver {
    Driver::new(|cluster| {
        let timing = Timing { flap_percent: 0, ..Timing::default() };
        cluster
            .kube_version("1.99.0")
            .timing(timing)
            .catalog("ops", "cat", Arc::clone(catalog))
            .operator(Operator {
                channel: channel.clone(),
                ..super::drive::operator(package, Some(installed))
            })
    })
}

#[test]
fn clusters_offer_and_install_what_a_real_olm_would() {
    let Some(shared) = wavelift_runtime::testing::shared_or_skip() else { return };
    for name in CATALOGS {
        let limits = Limits::default();
        let fbc = Fbc::read(&shared.join("catalogs").join(name), &limits).unwrap();
        let catalog = Arc::new(Catalog::from_fbc(fbc, &limits).unwrap());
        let answers = answers(&shared, name);
        for (key, next) in &answers {
            let world = cluster(&catalog, key);
            world.pass(30);
            assert_eq!(world.offered(&key[0]), *next, "{name} {key:?}");
        }
        let Some((start, _)) = answers.iter().find(|(_, next)| !next.is_empty()) else { continue };
        follow(&cluster(&catalog, start), start, &answers);
    }
}

/// Approves what is offered until nothing is, and compares each hop.
fn follow(world: &Driver, [package, channel, installed]: &[String; 3], answers: &Answers) {
    let mut installed = installed.clone();
    loop {
        world.pass(60);
        let next = &answers[&[package.clone(), channel.clone(), installed]];
        assert_eq!(world.offered(package), *next);
        let [csv] = &next[..] else { break };
        world.approve(package);
        world.until(60, csv, |w| {
            w.csv(csv) == "Succeeded/InstallSucceeded" && w.subscription(package)[2] == *csv
        });
        installed = csv.clone();
    }
}
