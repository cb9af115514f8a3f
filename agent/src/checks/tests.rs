//! Each check on a cluster that is well but for one thing.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wavelift_catalog::Coverage;
use wavelift_core::{
    check::{Finding, OnOutcome, Outcome, Policy},
    plan::{Move, Plan, Step, Via},
};

use super::{CHECKS, Facts, NamespaceFacts, objection};
use crate::{
    apis::{Brought, Definition, Turn},
    drivers::olm_v0::Reason,
    tests::rig,
    upgrade::replan::Standing,
};

fn objects<K: DeserializeOwned>(values: &[Value]) -> Vec<K> {
    values.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect()
}

fn subscription(approval: &str, managers: &[(&str, &str)]) -> Value {
    let entry = |(manager, field): &(&str, &str)| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "operators.coreos.com/v1alpha1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {(*field): {}}}})
    };
    json!({
        "metadata": {"name": "oak", "namespace": "trees",
            "managedFields": managers.iter().map(entry).collect::<Vec<_>>()},
        "spec": {"name": "oak", "channel": "stable", "source": "own", "sourceNamespace": rig::MARKET,
            "installPlanApproval": approval},
        "status": {"installedCSV": "oak.v1.0.0"},
    })
}

fn csv(name: &str, phase: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "trees"},
        "spec": {"install": {"spec": {"deployments": [{"name": "oak"}]}}},
        "status": {"phase": phase, "reason": "Because", "message": "of something"}})
}

fn source(namespace: &str, name: &str, state: Option<&str>) -> Value {
    let status = state.map_or_else(
        || json!({}),
        |state| json!({"connectionState": {"lastObservedState": state}}),
    );
    json!({"metadata": {"name": name, "namespace": namespace}, "status": status})
}

fn deployment(available: u32) -> Value {
    json!({"metadata": {"name": "oak", "generation": 1}, "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
            "availableReplicas": available}})
}

/// A cluster on which oak 1.0.0 is well and 2.0.0 is to follow.
fn well() -> Facts {
    let item = Move {
        package: "oak".try_into().unwrap(),
        from: Some("oak.v1.0.0".try_into().unwrap()),
        to: "oak.v2.0.0".try_into().unwrap(),
        from_version: Some("1.0.0".to_owned()),
        to_version: "2.0.0".to_owned(),
    };
    let step =
        Step { namespace: "trees".try_into().unwrap(), moves: vec![item], via: Via::Cluster };
    Facts {
        plan: Plan { steps: vec![step] },
        next: Some(0),
        namespaces: vec![NamespaceFacts {
            name: "trees".to_owned(),
            subscriptions: Ok(objects(&[subscription("Manual", &[("kubectl-edit", "f:source")])])),
            csvs: Ok(objects(&[csv("oak.v1.0.0", "Succeeded")])),
            groups: Ok(objects(&[json!({"metadata": {"name": "og", "namespace": "trees"}})])),
            plans: Ok(vec![]),
            deployments: Ok(objects(&[deployment(1)])),
            conditions: Ok(vec![]),
            contents: vec![rig::catalog()],
        }],
        catalogs: Ok(objects(&[source(rig::MARKET, "own", Some("READY"))])),
        global_namespaces: vec![rig::MARKET.to_owned()],
        kube_version: Ok("v1.31.4+abc".to_owned()),
        standing: Standing::Same,
        apis: vec![],
    }
}

fn run(facts: &Facts) -> Vec<Finding> {
    CHECKS.iter().map(|(_, check)| check(facts)).collect()
}

/// Only `check` finds something: `outcome`, `reason`, and a message with `text` in it.
#[track_caller]
fn finds(check: &str, outcome: Outcome, reason: &str, text: &str, spoil: impl FnOnce(&mut Facts)) {
    let mut facts = well();
    spoil(&mut facts);
    let findings = run(&facts);
    let found = findings.iter().find(|finding| finding.check == check).unwrap();
    assert_eq!((found.outcome, found.reason.as_str()), (outcome, reason), "{found:?}");
    assert!(found.message.contains(text), "`{text}` is not in `{}`", found.message);
    let others: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.check != check && finding.outcome != Outcome::Pass)
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

fn trees(facts: &mut Facts) -> &mut NamespaceFacts {
    &mut facts.namespaces[0]
}

#[test]
fn a_cluster_that_is_well_passes_every_check() {
    let findings = run(&well());
    assert!(findings.iter().all(|finding| finding.outcome == Outcome::Pass), "{findings:?}");
    let names: Vec<&str> = findings.iter().map(|finding| finding.check.as_str()).collect();
    let expected = [
        "catalog-ready",
        "operatorgroup-single",
        "installed-csv-healthy",
        "namespace-quiet",
        "operator-upgradeable",
        "min-kube-version",
        "crd-stored-versions",
        "custom-resources-valid",
        "conversion-webhook",
        "approval-automatic",
        "foreign-manager",
        "plan-current",
    ];
    assert_eq!(names, expected, "the names are part of the API");
}

#[test]
fn catalogs_must_be_ready_all_that_are_seen() {
    let check = "catalog-ready";
    let dead = source(rig::MARKET, "own", Some("TRANSIENT_FAILURE"));
    finds(check, Outcome::Fail, "CatalogNotReady", "own is TRANSIENT_FAILURE", |facts| {
        facts.catalogs = Ok(objects(&[dead]));
    });
    let unrelated = [
        source(rig::MARKET, "own", Some("READY")),
        source(rig::MARKET, "unrelated", Some("CONNECTING")),
        source("elsewhere", "unseen", Some("TRANSIENT_FAILURE")),
    ];
    finds(check, Outcome::Fail, "CatalogNotReady", "unrelated is CONNECTING", |facts| {
        facts.catalogs = Ok(objects(&unrelated));
    });
    finds(check, Outcome::Pass, "AsExpected", "READY", |facts| {
        facts.catalogs = Ok(objects(&unrelated));
        let annotations = json!({crate::objects::EXCLUDE_GLOBAL: "true"});
        let group = json!({"metadata": {"name": "og", "annotations": annotations}});
        trees(facts).groups = Ok(objects(&[group]));
    });
    finds(check, Outcome::Unknown, "CatalogStateUnknown", "no connection state", |facts| {
        facts.catalogs = Ok(objects(&[source(rig::MARKET, "own", None)]));
    });
    finds(check, Outcome::Fail, "CatalogMissing", "own of Subscription oak is missing", |facts| {
        facts.catalogs = Ok(vec![]);
    });
    finds(check, Outcome::Unknown, "CannotRead", "catalogs is forbidden", |facts| {
        facts.catalogs = Err("catalogs is forbidden".to_owned());
    });
}

#[test]
fn there_must_be_one_operator_group() {
    let group = |name: &str| json!({"metadata": {"name": name}});
    let check = "operatorgroup-single";
    finds(check, Outcome::Fail, "NoOperatorGroup", "trees has no OperatorGroup", |facts| {
        trees(facts).groups = Ok(vec![]);
    });
    finds(check, Outcome::Fail, "TooManyOperatorGroups", "2 OperatorGroups", |facts| {
        trees(facts).groups = Ok(objects(&[group("a"), group("b")]));
    });
}

#[test]
fn what_is_installed_must_be_well() {
    let check = "installed-csv-healthy";
    finds(check, Outcome::Fail, "CsvNotSucceeded", "oak.v1.0.0 is Failed/Because", |facts| {
        trees(facts).csvs = Ok(objects(&[csv("oak.v1.0.0", "Failed")]));
    });
    finds(check, Outcome::Fail, "DeploymentNotAvailable", "0 of 1 replicas", |facts| {
        trees(facts).deployments = Ok(objects(&[deployment(0)]));
    });
    finds(check, Outcome::Fail, "DeploymentNotAvailable", "deployment oak is missing", |facts| {
        trees(facts).deployments = Ok(vec![]);
    });
    finds(check, Outcome::Fail, "NotInstalled", "oak.v1.0.0, from which oak", |facts| {
        trees(facts).csvs = Ok(vec![]);
    });
    finds(check, Outcome::Unknown, "CannotRead", "Deployments of trees: timed out", |facts| {
        trees(facts).deployments = Err("timed out".to_owned());
    });
}

#[test]
fn nothing_else_may_move() {
    let check = "namespace-quiet";
    let plan = |approved: bool, phase: &str, csv: &str| {
        objects(&[json!({"metadata": {"name": "p1"},
            "spec": {"approved": approved, "clusterServiceVersionNames": [csv]},
            "status": {"phase": phase}})])
    };
    finds(check, Outcome::Fail, "InstallPlanRunning", "trees/p1 is being carried out", |facts| {
        trees(facts).plans = Ok(plan(true, "Installing", "elm.v2"));
    });
    finds(check, Outcome::Warn, "OtherPlanWaits", "holds elm.v2", |facts| {
        trees(facts).plans = Ok(plan(false, "RequiresApproval", "elm.v2"));
    });
    for (approved, phase, csv) in [
        (true, "Complete", "elm.v2"),
        (true, "Failed", "elm.v2"),
        (false, "RequiresApproval", "oak.v2.0.0"),
    ] {
        finds(check, Outcome::Pass, "AsExpected", "nothing else moves", |facts| {
            trees(facts).plans = Ok(plan(approved, phase, csv));
        });
    }
    let mut facts = well();
    trees(&mut facts).csvs =
        Ok(objects(&[csv("oak.v1.0.0", "Succeeded"), csv("elm.v2", "Pending")]));
    let finding = run(&facts).into_iter().find(|finding| finding.check == check).unwrap();
    assert_eq!((finding.outcome, finding.reason.as_str()), (Outcome::Fail, "CsvMoving"));
    assert!(finding.message.contains("elm.v2 (Pending)"), "{}", finding.message);
    // Who moves together is named.
    let mut facts = well();
    let mut other = facts.plan.steps[0].moves[0].clone();
    other.package = "elm".try_into().unwrap();
    facts.plan.steps[0].moves.push(other);
    let finding = run(&facts).into_iter().find(|finding| finding.check == check).unwrap();
    assert_eq!((finding.outcome, finding.reason.as_str()), (Outcome::Pass, "MovesTogether"));
    assert!(finding.message.contains("oak, elm"), "{}", finding.message);
}

#[test]
fn an_operator_may_say_no_and_its_administrator_may_overrule_it() {
    let check = "operator-upgradeable";
    let condition = |csv: &str, status: &str, observed: i64, overrides: &Value| {
        objects(&[json!({"metadata": {"name": csv, "generation": 2},
            "spec": {"overrides": overrides},
            "status": {"conditions": [{"type": "Upgradeable", "status": status,
                "message": "a migration is running", "observedGeneration": observed}]}})])
    };
    finds(check, Outcome::Fail, "OperatorNotUpgradeable", "a migration is running", |facts| {
        trees(facts).conditions = Ok(condition("oak.v1.0.0", "False", 2, &json!([])));
    });
    finds(check, Outcome::Fail, "OperatorNotUpgradeable", "outdated", |facts| {
        trees(facts).conditions = Ok(condition("oak.v1.0.0", "True", 1, &json!([])));
    });
    let yes = json!([{"type": "Upgradeable", "status": "True"}]);
    finds(check, Outcome::Pass, "AsExpected", "may be upgraded", |facts| {
        trees(facts).conditions = Ok(condition("oak.v1.0.0", "False", 2, &yes));
    });
    let no = json!([{"type": "Upgradeable", "status": "False", "message": "not today"}]);
    finds(check, Outcome::Fail, "OperatorNotUpgradeable", "not today", |facts| {
        trees(facts).conditions = Ok(condition("oak.v1.0.0", "True", 2, &no));
    });
    finds(check, Outcome::Pass, "AsExpected", "may be upgraded", |facts| {
        trees(facts).conditions = Ok(condition("another.v1", "False", 2, &json!([])));
    });
}

/// The plan leads from fir 1.0.0 to 2.0.0, which needs Kubernetes 1.99.0.
fn to_fir(facts: &mut Facts) {
    let item = &mut facts.plan.steps[0].moves[0];
    item.package = "fir".try_into().unwrap();
    item.to = "fir.v2.0.0".try_into().unwrap();
}

#[test]
fn every_hop_must_run_on_the_api_servers_version() {
    let check = "min-kube-version";
    let text = "fir.v2.0.0 needs Kubernetes 1.99.0, the API server has 1.31.4";
    finds(check, Outcome::Fail, "KubeVersionTooLow", text, to_fir);
    for new_enough in ["v1.99.0", "v1.99.0-rc.1", "v1.100.2+build"] {
        finds(check, Outcome::Pass, "AsExpected", "new enough", |facts| {
            to_fir(facts);
            facts.kube_version = Ok(new_enough.to_owned());
        });
    }
    finds(check, Outcome::Unknown, "CatalogNotRead", "in no catalog that could be read", |facts| {
        trees(facts).contents = vec![];
    });
    // A registry tells it for one bundle at a time, and of oak it was not asked.
    finds(
        check,
        Outcome::Unknown,
        "NotDescribed",
        "which Kubernetes version oak.v2.0.0",
        |facts| {
            trees(facts).contents = vec![rig::catalog_of(Coverage::Registry)];
        },
    );
    finds(check, Outcome::Fail, "KubeVersionTooLow", text, |facts| {
        to_fir(facts);
        trees(facts).contents = vec![rig::catalog_of(Coverage::Registry)];
    });
    finds(check, Outcome::Unknown, "CannotRead", "connection refused", |facts| {
        facts.kube_version = Err("connection refused".to_owned());
    });
    finds(check, Outcome::Unknown, "VersionNotUnderstood", "`latest`", |facts| {
        facts.kube_version = Ok("latest".to_owned());
    });
}

#[test]
fn automatic_approval_is_worth_a_word() {
    for approval in ["Automatic", ""] {
        let text = "trees/oak is approved automatically";
        finds("approval-automatic", Outcome::Warn, "ApprovalAutomatic", text, |facts| {
            trees(facts).subscriptions = Ok(objects(&[subscription(approval, &[])]));
        });
    }
}

#[test]
fn a_controller_that_writes_the_same_fields_is_named_and_people_are_fine() {
    let check = "foreign-manager";
    let with = |approval: &str, manager, field| {
        let managed = Ok(objects(&[subscription(approval, &[(manager, field)])]));
        move |facts: &mut Facts| trees(facts).subscriptions = managed
    };
    for (approval, manager) in [("Automatic", "argocd-controller"), ("", "helm-controller")] {
        let mut facts = well();
        with(approval, manager, "f:installPlanApproval")(&mut facts);
        let findings = run(&facts);
        let found = findings.iter().find(|finding| finding.check == check).unwrap();
        assert_eq!(found.outcome, Outcome::Fail);
        let text = format!("managed by {manager}, which would set installPlanApproval back");
        assert!(found.message.contains(&text), "{}", found.message);
    }
    let text = "config-policy-controller, which approves InstallPlans by itself";
    let change = with("Manual", "config-policy-controller", "f:channel");
    finds(check, Outcome::Fail, "ForeignManager", text, change);
    // What they keep as the upgrade needs it, or what it does not touch, is worth a word only.
    for (manager, field) in [
        ("argocd-controller", "f:installPlanApproval"),
        ("kustomize-controller", "f:source"),
        ("fleet-agent", "f:channel"),
    ] {
        let text = format!("trees/oak is managed by {manager}");
        let change = with("Manual", manager, field);
        finds(check, Outcome::Warn, "ForeignManager", &text, change);
    }
    let text = "kustomize-controller, which would set spec.source back";
    finds(check, Outcome::Fail, "ForeignManager", text, |facts| {
        facts.plan.steps[0].via = Via::PinnedCatalog;
        with("Manual", "kustomize-controller", "f:source")(facts);
    });
    let fine = [
        ("kubectl-client-side-apply", "f:installPlanApproval"),
        ("Mozilla", "f:channel"),
        ("catalog", "f:source"),
        ("wavelift-agent", "f:installPlanApproval"),
        ("argocd-controller", "f:name"),
    ];
    finds(check, Outcome::Pass, "AsExpected", "nobody else", |facts| {
        trees(facts).subscriptions = Ok(objects(&[subscription("Manual", &fine)]));
    });
}

#[test]
fn a_plan_that_is_not_current_is_told() {
    let check = "plan-current";
    finds(check, Outcome::Fail, "PlanChanged", "has become", |facts| {
        facts.standing = Standing::Changed("a has become b".to_owned());
    });
    finds(check, Outcome::Unknown, "CatalogNotRead", "catalog market/own", |facts| {
        facts.standing = Standing::Unknown("the content of catalog market/own".to_owned());
    });
}

#[test]
fn what_cannot_be_read_is_never_a_pass() {
    let mut facts = well();
    let refused = || Err("forbidden: no permission".to_owned());
    facts.catalogs = Err("forbidden: no permission".to_owned());
    facts.kube_version = Err("forbidden: no permission".to_owned());
    facts.namespaces = vec![NamespaceFacts {
        name: "trees".to_owned(),
        subscriptions: Err("forbidden: no permission".to_owned()),
        csvs: Err("forbidden: no permission".to_owned()),
        groups: Err("forbidden: no permission".to_owned()),
        plans: Err("forbidden: no permission".to_owned()),
        deployments: Err("forbidden: no permission".to_owned()),
        conditions: refused(),
        contents: vec![],
    }];
    facts.apis = vec![brought(|brought| brought.unknown = vec!["oaks: no permission".to_owned()])];
    for finding in run(&facts) {
        if finding.check == "plan-current" {
            continue;
        }
        assert_eq!(finding.outcome, Outcome::Unknown, "{finding:?}");
        assert!(finding.message.contains("no permission"), "{finding:?}");
    }
}

/// What oak 2.0.0 brings, spoilt.
fn brought(spoil: impl FnOnce(&mut Brought)) -> Brought {
    let mut brought = Brought {
        csv: "oak.v2.0.0".to_owned(),
        turn: Turn::Next,
        conversion: vec![],
        definitions: vec![Definition {
            name: "oaks.example.com".to_owned(),
            ..Definition::default()
        }],
        unknown: vec![],
    };
    spoil(&mut brought);
    brought
}

#[test]
fn what_olm_would_refuse_of_the_apis_is_found_before() {
    let words = || vec!["in OLM's words".to_owned()];
    let stored = "crd-stored-versions";
    finds(stored, Outcome::Fail, "StoredVersionRemoved", "oak.v2.0.0: in OLM's words", |facts| {
        facts.apis = vec![brought(|brought| brought.definitions[0].data_loss = words())];
    });
    // What the version before it may still put right is no reason to wait.
    finds(stored, Outcome::Warn, "StoredVersionRemoved", "unless that changes", |facts| {
        facts.apis = vec![brought(|brought| {
            brought.turn = Turn::Later;
            brought.definitions[0].data_loss = words();
        })];
    });
    let valid = "custom-resources-valid";
    let refused = |brought: &mut Brought| {
        let named = |name: &str| (name.to_owned(), "in OLM's words".to_owned());
        brought.definitions[0].invalid = vec![named("ns/one"), named("ns/two")];
        brought.definitions[0].invalid_count = 3;
    };
    finds(valid, Outcome::Fail, "CustomResourcesInvalid", "2 more do not fit: ns/two", |facts| {
        facts.apis = vec![brought(refused)];
    });
    finds(valid, Outcome::Warn, "CustomResourcesInvalid", "in OLM's words", |facts| {
        facts.apis = vec![brought(|brought| {
            refused(brought);
            brought.definitions[0].only_warns = true;
        })];
    });
    finds(valid, Outcome::Unknown, "CannotRead", "in OLM's words", |facts| {
        facts.apis = vec![brought(|brought| brought.definitions[0].unsure = words())];
    });
    let webhook = "conversion-webhook";
    finds(webhook, Outcome::Fail, "ConversionWebhookRefused", "in OLM's words", |facts| {
        facts.apis = vec![brought(|brought| brought.conversion = words())];
    });
}

#[test]
fn the_first_objection_holds_an_approval_and_what_the_user_waived_does_not() {
    let policy = |on_fail, on_unknown| Policy { on_fail, on_unknown };
    let (block, proceed) = (OnOutcome::Block, OnOutcome::Proceed);
    let invalid = [brought(|brought| {
        let words = "too restrictive".to_owned();
        brought.definitions[0].invalid = vec![("ns/one".to_owned(), words)];
        brought.definitions[0].invalid_count = 1;
    })];
    let unknown = [brought(|brought| brought.unknown = vec!["forbidden".to_owned()])];
    let (reason, words) = objection(&invalid, policy(block, proceed)).unwrap();
    assert_eq!(reason, Reason::CustomResourcesInvalid);
    assert!(words.contains("too restrictive"), "{words}");
    let (reason, words) = objection(&unknown, policy(proceed, block)).unwrap();
    assert_eq!(reason, Reason::ApisNotChecked);
    assert!(words.contains("forbidden"), "{words}");
    assert_eq!(objection(&invalid, policy(proceed, block)), None);
    assert_eq!(objection(&unknown, policy(block, proceed)), None);
    assert_eq!(objection(&[], policy(block, block)), None);
}
