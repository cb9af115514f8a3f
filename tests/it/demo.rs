//! The demo keeps its word: what comes of a campaign is what the seed's faults say.

mod expected;
mod halted;

use std::{process::Stdio, sync::Arc};

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wavelift_demo::{Scenario, Teller, run};

use self::expected::{Expected, compare};
use crate::stage::{PATIENCE, answer, options, wavelift};

/// Ten times the default pace.
const SPEED: f64 = 10.0;
/// So many fleets live at once.
const AT_ONCE: usize = 7;

/// Keeps the story of a demo for the one that does not end.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn text(&self) -> String {
        self.0.lock().join("\n")
    }
}

impl Teller for Told {
    fn line(&mut self, line: &str) {
        self.0.lock().push(line.to_owned());
    }
    fn progress(&mut self, _: u64, _: u64, _: &str) {}
    fn finish(&mut self) {}
}

/// Seeds and sizes of fleets; the sixty clusters of seed 7 are the program's own.
fn fleets() -> Vec<(u64, usize)> {
    let small = (1..=18).map(|seed| (seed, [8, 9, 10][usize::try_from(seed).unwrap() % 3]));
    [(101, 30), (102, 24)].into_iter().chain(small).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_summaries_of_twenty_seeds_are_what_their_faults_say() {
    let fleets = fleets();
    assert_eq!(fleets.len(), 20);
    let outcomes = stream::iter(fleets).map(|(seed, clusters)| async move {
        // As text, so that nothing of the demo's own reading of it is used.
        let scenario = serde_json::to_string(&Scenario::new(seed, clusters)).unwrap();
        let options = options(seed, clusters, SPEED);
        let told = Told::default();
        let mut teller = told.clone();
        let demo = tokio::spawn(async move {
            run(&options, &mut teller, CancellationToken::new()).await.unwrap()
        });
        let Ok(outcome) = tokio::time::timeout(PATIENCE, demo).await else {
            panic!("seed {seed} with {clusters} clusters does not end:\n{}", told.text());
        };
        let outcome = outcome.unwrap();
        let summary = serde_json::to_value(outcome.summary).unwrap();
        compare(&summary, &Expected::of(&serde_json::from_str(&scenario).unwrap()))
    });
    let differences: Vec<String> = outcomes.buffer_unordered(AT_ONCE).concat().await;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_prints_one_summary_and_nothing_else() {
    let fleet = ["demo", "--seed", "7", "--clusters", "60"];
    let mut command = tokio::process::Command::new(wavelift());
    let listed = answer(command.args(fleet).arg("--list-faults")).await;
    let scenario: Value = serde_json::from_str(&listed.good()).unwrap();
    let mut command = tokio::process::Command::new(wavelift());
    let told = answer(
        command.args(fleet).args(["--once", "-o", "json", "--speed", "20"]).stdin(Stdio::null()),
    )
    .await;
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    let summary = told.json();
    let differences = compare(&summary, &Expected::of(&scenario));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(summary["seed"], 7);
    assert_eq!(summary["clusters"], 60);
}

#[test]
fn the_twenty_seeds_have_every_fault_in_every_place() {
    let mut seen = std::collections::BTreeSet::new();
    for (seed, clusters) in fleets() {
        let scenario = serde_json::to_value(Scenario::new(seed, clusters)).unwrap();
        for cluster in scenario["clusters"].as_array().unwrap() {
            let fault = cluster["fault"]["type"].as_str().unwrap_or("none").to_owned();
            seen.insert((cluster["ring"].as_str().unwrap().to_owned(), fault));
        }
    }
    for ring in ["canary", "early", "broad"] {
        for fault in ["offline", "slow", "neverAvailable", "notUpgradeable", "none"] {
            // A canary is there to hold the rest back, not to fail.
            let wanted = (ring, fault) != ("canary", "neverAvailable");
            let has = seen.contains(&(ring.to_owned(), fault.to_owned()));
            assert_eq!(has, wanted, "{fault} in {ring}");
        }
    }
}

#[test]
fn a_summary_that_says_something_else_is_noticed() {
    let mk_cluster = |name: &str, ring: &str, lantern: &str, fault: Value| {
        json!({
            "name": name, "ring": ring, "fault": fault,
            "installed": {
                "lantern-operator": lantern, "ferry-operator": "2.1.0", "loom-operator": "3.2.0",
                "spindle-operator": "5.1.0", "kiln-operator": "1.0.0",
            },
        })
    };
    let scenario = json!({"clusters": [
        mk_cluster("a", "canary", "1.4.0", Value::Null),
        mk_cluster("b", "broad", "1.5.0", json!({"type": "offline"})),
    ]});
    let good = json!({
        "clusters": 2, "succeeded": 1, "failed": 0, "skipped": 0, "unreachable": 1,
        "notStarted": 0, "writesPerCluster": 3.5, "phase": "SucceededWithFailures",
        "unexpected": [],
        "waves": [
            {"name": "canary", "state": "Complete", "clusters": 1, "succeeded": 1, "failed": 0},
            {"name": "broad", "state": "Complete", "clusters": 1, "succeeded": 0, "failed": 0},
        ],
    });
    let expected = Expected::of(&scenario);
    assert_eq!(compare(&good, &expected), Vec::<String>::new());
    let wrong = |pointer: &str, value: Value| {
        let mut summary = good.clone();
        *summary.pointer_mut(pointer).unwrap() = value;
        assert_ne!(compare(&summary, &expected), Vec::<String>::new(), "{pointer}");
    };
    wrong("/succeeded", json!(2));
    wrong("/unreachable", json!(0));
    wrong("/clusters", json!(3));
    wrong("/waves/1/succeeded", json!(1));
    wrong("/waves/0/state", json!("Running"));
    wrong("/unexpected", json!(["a: Stalled"]));
    // Three hops, so at most 7 writes for `a`, and 4 for `b`, which never started.
    wrong("/writesPerCluster", json!(5.51));
    wrong("/writesPerCluster", json!(0.5));
    wrong("/phase", json!("Succeeded"));
}
