//! Decisions along recordings of real OLM: what a person did there is what is decided here, at the
//! moment when it was possible, and no flap of a good upgrade ends it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use wavelift_core::plan::Step;
use wavelift_runtime::testing;

use super::{RULES, object, step};
use crate::drivers::olm_v0::{
    Observed,
    decide::{Action, Memory, decide},
    failure::Reason,
};

/// What a step came to along a recording.
#[derive(Debug, Default)]
struct Told {
    /// The plans whose approval was decided, in order, without repeats.
    approved: Vec<String>,
    /// The plans whose deletion was decided.
    deleted: Vec<String>,
    /// The reason of the first failure, and when.
    failed: Option<(Reason, String, i64)>,
    /// When it was done.
    done: Option<i64>,
}

/// One kind's objects by name.
type World = BTreeMap<(String, String), Value>;

fn records(file: &str) -> Option<Vec<Value>> {
    let shared = testing::shared_or_skip()?;
    let text = std::fs::read_to_string(shared.join("recordings/olm-v0").join(file)).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Fills in what a record leaves out as unchanged.
fn expand(new: &mut Value, old: &Value) {
    if *new == "=" {
        *new = old.clone();
        return;
    }
    match new {
        Value::Object(fields) => {
            for (key, value) in fields {
                expand(value, &old[key.as_str()]);
            }
        }
        Value::Array(items) if items.first().is_some_and(|first| *first == "=") => {
            let mut all = old.as_array().cloned().unwrap_or_default();
            all.extend(items.drain(1..));
            *items = all;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

fn take(world: &mut World, record: &Value) -> bool {
    let (Some(kind), Some(name)) = (record["kind"].as_str(), record["name"].as_str()) else {
        return false;
    };
    let key = (kind.to_owned(), name.to_owned());
    if record["type"] == "DELETED" {
        return world.remove(&key).is_some();
    }
    if record["note"].is_string() {
        return false;
    }
    let mut object = record["object"].clone();
    if let Some(old) = world.get(&key) {
        expand(&mut object, old);
    }
    object["metadata"]["name"] = name.into();
    world.insert(key, object);
    true
}

fn observed(world: &World) -> Observed {
    let of = |kind: &str| -> Vec<Value> {
        let all = world.iter().filter(|((of, _), _)| of == kind);
        all.map(|(_, object)| object.clone()).collect()
    };
    let not_ready =
        |source: &Value| source["status"]["connectionState"]["lastObservedState"] != "READY";
    Observed {
        subscriptions: of("Subscription").into_iter().map(object).collect(),
        plans: of("InstallPlan").into_iter().map(object).collect(),
        csvs: of("ClusterServiceVersion").into_iter().map(object).collect(),
        deployments: of("Deployment").into_iter().map(object).collect(),
        operator_conditions: of("OperatorCondition").into_iter().map(object).collect(),
        operator_groups: of("OperatorGroup").len(),
        catalogs_not_ready: of("CatalogSource")
            .iter()
            .filter(|source| not_ready(source))
            .map(|source| source["metadata"]["name"].to_string())
            .collect(),
        objection: None,
        unreadable: vec![],
        authored: vec![],
    }
}

/// Decides after every event from `from` milliseconds on, until the step ends.
fn follow(records: &[Value], step: &Step, from: i64) -> Told {
    let mut world = World::new();
    let mut memory = Memory::default();
    let mut told = Told::default();
    let origin = Timestamp::from_second(1_700_000_000).unwrap();
    for record in records {
        let time = record["t"].as_i64().unwrap();
        let is_news = take(&mut world, record);
        if !is_news || time < from {
            continue;
        }
        let now = origin.checked_add(SignedDuration::from_millis(time)).unwrap();
        let decision = decide(step, &observed(&world), &memory, RULES, now);
        memory = decision.memory;
        match decision.action {
            Action::Approve { name, .. } if told.approved.last() != Some(&name) => {
                told.approved.push(name);
            }
            Action::DeletePlan { name, .. } if told.deleted.last() != Some(&name) => {
                told.deleted.push(name);
            }
            Action::Fail(failure) => {
                told.failed = Some((failure.reason, failure.message, time));
                return told;
            }
            Action::Done => {
                told.done = Some(time);
                return told;
            }
            Action::Approve { .. }
            | Action::DeletePlan { .. }
            | Action::Hold(_)
            | Action::RetryPlan { .. }
            | Action::DeleteCsv { .. }
            | Action::ResetSubscription { .. }
            | Action::Wait(_) => {}
        }
    }
    told
}

/// The plan of the n-th approval by the recorder, and when.
fn approval(records: &[Value], nth: usize) -> (String, i64) {
    let approvals = records.iter().filter_map(|record| {
        let action = record["action"].as_str()?.strip_prefix("approve InstallPlan ")?;
        Some((action.to_owned(), record["t"].as_i64()?))
    });
    approvals.into_iter().nth(nth).unwrap()
}

fn alpha(from: &str, to: &str) -> Step {
    let name = |version: &str| format!("alpha-operator.v{version}");
    step(&[("alpha-operator", Some(&name(from)), &name(to))])
}

#[test]
fn a_straight_upgrade_is_approved_where_the_person_approved_it_and_is_done() {
    let Some(records) = records("01-install-and-upgrade.jsonl") else { return };
    for (from, to, nth) in [("1.0.0", "1.1.0", 1), ("1.1.0", "1.2.0", 2)] {
        let (expected, at) = approval(&records, nth);
        // From the approval of the hop before, so that everything of this one is seen.
        let (_, since) = approval(&records, nth - 1);
        let told = follow(&records, &alpha(from, to), since + 6_000);
        assert_eq!(told.approved, [expected], "{told:?}");
        assert!(told.deleted.is_empty() && told.failed.is_none(), "{told:?}");
        // The first hop is overtaken by the second before the window is over.
        if nth == 2 {
            assert!(told.done.is_some_and(|done| done >= at + 10_000), "{told:?}");
        }
    }
}

#[test]
fn a_shared_plan_is_approved_once_for_both() {
    let Some(records) = records("03-two-operators-one-namespace.jsonl") else { return };
    let both = step(&[
        ("alpha-operator", Some("alpha-operator.v1.0.0"), "alpha-operator.v1.1.0"),
        ("beta-operator", Some("beta-operator.v2.0.0"), "beta-operator.v2.1.0"),
    ]);
    let (expected, at) = approval(&records, 1);
    let told = follow(&records, &both, 36_161);
    assert_eq!(told.approved, [expected], "{told:?}");
    assert!(told.failed.is_none() && told.deleted.is_empty(), "{told:?}");
    assert!(told.done.is_none_or(|done| done >= at + 10_000), "{told:?}");
}

#[test]
fn a_kubernetes_that_is_too_old_fails_with_the_requirement() {
    let Some(records) = records("07-min-kube-version-too-high.jsonl") else { return };
    let (expected, at) = approval(&records, 1);
    let told = follow(&records, &alpha("1.0.0", "1.1.0"), 22_800);
    assert_eq!(told.approved, [expected]);
    let (reason, message, when) = told.failed.unwrap();
    assert_eq!(reason, Reason::RequirementsNotMet);
    assert!(message.contains("minKubeVersion (1.99.0) > server version (1.36.3)"), "{message}");
    assert!(when < at + 60_000, "at once, not at the deadline");
}

#[test]
fn a_failure_that_heals_is_no_failure() {
    let Some(records) = records("09-deployment-never-available.jsonl") else { return };
    let (expected, _) = approval(&records, 1);
    let told = follow(&records, &alpha("1.0.0", "1.1.0"), 23_000);
    assert_eq!(told.approved, [expected], "{told:?}");
    assert!(told.failed.is_none(), "{told:?}");
    assert!(told.done.is_some_and(|done| done >= 396_744 + 10_000), "{told:?}");
}

#[test]
fn a_refused_plan_fails_with_olms_words() {
    for (file, text) in [
        ("11-crd-stored-version-removed.jsonl", "risk of data loss updating"),
        ("12-crd-validation-too-restrictive.jsonl", "updated validation is too restrictive"),
    ] {
        let Some(records) = records(file) else { return };
        let last = (0..)
            .map_while(|nth| {
                let all = records.iter().filter(|r| {
                    r["action"].as_str().is_some_and(|a| a.starts_with("approve InstallPlan "))
                });
                (nth < all.count()).then_some(nth)
            })
            .last()
            .unwrap();
        let (expected, at) = approval(&records, last);
        let plan = records.iter().find(|r| r["kind"] == "InstallPlan" && r["name"] == *expected);
        let to = plan.unwrap()["object"]["spec"]["clusterServiceVersionNames"][0].as_str().unwrap();
        let step = step(&[("alpha-operator", None, to)]);
        let told = follow(&records, &step, at - 1_000);
        let (reason, message, when) = told.failed.unwrap();
        assert_eq!(reason, Reason::InstallPlanFailed, "{file}");
        assert!(message.contains(text), "{message}");
        assert!(when > at + 50_000, "{file}: OLM tried for a minute first");
    }
}

#[test]
fn the_plan_that_was_superseded_is_deleted_and_never_approved() {
    let Some(records) = records("16-approve-unreferenced-plan.jsonl") else { return };
    // Up to the moment when the person approved the wrong one.
    let before: Vec<Value> =
        records.into_iter().filter(|record| record["t"].as_i64().unwrap() < 71_357).collect();
    let told = follow(&before, &alpha("1.0.0", "1.2.0"), 60_000);
    assert_eq!(told.deleted, ["install-6rtjq"], "{told:?}");
    assert!(told.approved.is_empty() && told.failed.is_none(), "{told:?}");
}

#[test]
fn a_version_that_failed_for_good_is_waited_for_until_the_deadline() {
    let Some(records) = records("24-failed-csv-blocks-next.jsonl") else { return };
    let (expected, _) = approval(&records, 1);
    let before: Vec<Value> =
        records.into_iter().filter(|record| record["t"].as_i64().unwrap() < 125_358).collect();
    let told = follow(&before, &alpha("1.0.0", "1.1.0"), 26_000);
    assert_eq!(told.approved, [expected], "{told:?}");
    assert!(told.failed.is_none() && told.done.is_none(), "{told:?}");
}
