//! Definitions and custom resources that OLM would refuse once it is too late, and an agent that
//! finds it out before.
//!
//! Each test has a kind of its own: definitions are the whole cluster's.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    Cluster, World, in_both_worlds,
    objects::{CRD, Kind, OPERATOR_GROUP},
    operators::{Defined, Release, Version},
    rig::Rig,
};

/// An object with `spec.size`.
pub(super) async fn put(rig: &Rig, kind: Kind, name: &str, size: i64) {
    let metadata = json!({"name": name, "namespace": rig.namespace});
    let object = json!({"metadata": metadata, "spec": {"size": size}});
    rig.objects.create(kind, &rig.namespace, &object).await.unwrap();
}

pub(super) async fn correct(rig: &Rig, kind: Kind, name: &str, size: i64) {
    let at = (rig.namespace.as_str(), name);
    rig.objects.patch(kind, at, &json!({"spec": {"size": size}})).await.unwrap();
}

/// Whether a cluster is held by this check and by no other.
pub(super) fn is_held_by(check: &str) -> impl Fn(&Value) -> bool {
    move |status| {
        let results = status["preflight"]["results"].as_array().into_iter().flatten();
        let failed = results.filter(|result| result["outcome"] == "Fail");
        let failed: Vec<&Value> = failed.map(|result| &result["check"]).collect();
        let mut insights = status["insights"].as_array().into_iter().flatten();
        let is_told = |insight: &Value| {
            insight["id"].as_str().is_some_and(|id| id.ends_with(&format!("/{check}")))
        };
        status["state"] == "Blocked" && failed == [check] && insights.any(is_told)
    }
}

/// What a check says: its reason and its words.
fn said(status: &Value, check: &str) -> (String, String) {
    let mut results = status["preflight"]["results"].as_array().into_iter().flatten();
    let result = results.find(|result| result["check"] == check).unwrap();
    let text = |field: &str| result[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

/// The words of an insight with this reason.
pub(super) fn insight<'s>(status: &'s Value, reason: &str) -> Option<&'s str> {
    let mut insights = status["insights"].as_array().into_iter().flatten();
    insights.find(|insight| insight["reason"] == reason)?["message"].as_str()
}

async fn a_stored_version_that_would_go_holds_until_nothing_is_stored_in_it(world: World) {
    let knot = Defined { group: "rope.example.com", kind: "Knot", plural: "knots" };
    let both =
        knot.definition(&[Version::new("v1alpha1", None).stored(), Version::new("v1", None)]);
    let new = knot.definition(&[Version::new("v1", None).stored()]);
    let releases = [
        Release::new("rope", "1.0.0").with(both),
        Release::new("rope", "1.1.0").replaces("1.0.0").with(new),
    ];
    let rig = Rig::start(world, "stored-version", &releases).await.unwrap();
    rig.install(&[("rope", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["rope"]).await.unwrap();
    let held = rig.until(is_held_by("crd-stored-versions")).await.unwrap();
    let (reason, words) = said(&held, "crd-stored-versions");
    assert_eq!(reason, "StoredVersionRemoved");
    let olm = "rope.v1.1.0: risk of data loss updating \"knots.rope.example.com\": new CRD removes \
        version v1alpha1 that is listed as a stored version on the existing CRD";
    assert!(words.starts_with(olm), "{words}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    // A person stores everything in v1: there is nothing yet.
    let at = ("", "knots.rope.example.com");
    let moved =
        knot.definition(&[Version::new("v1alpha1", None), Version::new("v1", None).stored()]);
    let versions = json!({"spec": {"versions": moved["spec"]["versions"]}});
    rig.objects.patch(CRD, at, &versions).await.unwrap();
    let stored = json!({"status": {"storedVersions": ["v1"]}});
    rig.objects.patch_status(CRD, at, &stored).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["rope.v1.1.0"]);
}

async fn objects_that_do_not_fit_hold_and_are_named_until_they_are_corrected(world: World) {
    let box_ = Defined { group: "crate.example.com", kind: "Box", plural: "boxes" };
    let kind = Kind::new("crate.example.com", "v1", "Box", "boxes");
    let loose = box_.definition(&[Version::new("v1", None).stored()]);
    let strict = box_.definition(&[Version::new("v1", Some(5)).stored()]);
    let releases = [
        Release::new("crate", "1.0.0").with(loose),
        Release::new("crate", "1.1.0").replaces("1.0.0").with(strict),
    ];
    let rig = Rig::start(world, "objects-invalid", &releases).await.unwrap();
    rig.install(&[("crate", "1.0.0")]).await.unwrap();
    for (name, size) in [("big", 9), ("fine", 3), ("huge", 70)] {
        put(&rig, kind, name, size).await;
    }
    let _agent = rig.agent().await.unwrap();
    rig.order(&["crate"]).await.unwrap();
    let held = rig.until(is_held_by("custom-resources-valid")).await.unwrap();
    let (reason, words) = said(&held, "custom-resources-valid");
    assert_eq!(reason, "CustomResourcesInvalid");
    let olm = "error validating existing CRs against new CRD's schema for \
        \"boxes.crate.example.com\": error validating crate.example.com/v1, Kind=Box \
        \"objects-invalid/big\": updated validation is too restrictive: [].spec.size: Invalid value: \
        9: spec.size in body should be less than or equal to 5";
    assert!(words.contains(olm), "{words}");
    assert!(words.contains("1 more do not fit: objects-invalid/huge"), "{words}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    correct(&rig, kind, "big", 5).await;
    correct(&rig, kind, "huge", 4).await;
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["crate.v1.1.0"]);
}

async fn a_later_hop_is_looked_at_before_its_own_approval(world: World) {
    let sail = Defined { group: "mast.example.com", kind: "Spar", plural: "spars" };
    let kind = Kind::new("mast.example.com", "v1", "Spar", "spars");
    let with = |max| sail.definition(&[Version::new("v1", max).stored()]);
    let releases = [
        Release::new("mast", "1.0.0").with(with(None)),
        Release::new("mast", "1.1.0").replaces("1.0.0").with(with(None)),
        Release::new("mast", "1.2.0").replaces("1.1.0").with(with(Some(5))),
    ];
    let rig = Rig::start(world, "later-hop", &releases).await.unwrap();
    rig.install(&[("mast", "1.0.0")]).await.unwrap();
    put(&rig, kind, "tall", 12).await;
    let _agent = rig.agent().await.unwrap();
    rig.order(&["mast"]).await.unwrap();
    let reason = "CustomResourcesInvalid";
    let held = rig.until(|status| insight(status, reason).is_some()).await.unwrap();
    let words = insight(&held, reason).unwrap();
    assert!(words.contains("\"later-hop/tall\": updated validation is too restrictive"), "{words}");
    assert_eq!(held["step"], "2/2", "{held}");
    assert_eq!(rig.approved().await.unwrap(), ["mast.v1.1.0"]);
    correct(&rig, kind, "tall", 2).await;
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["mast.v1.1.0", "mast.v1.2.0"]);
}

/// What a conversion webhook takes: the definition's part and the CSV's.
fn converting(mut definition: Value, package: &str, namespace: &str) -> (Value, Value) {
    let service = json!({"name": format!("{package}-service"), "namespace": namespace,
        "path": "/convert", "port": 9443});
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}});
    let webhook = json!([{
        "type": "ConversionWebhook", "generateName": format!("c.{package}.example.com"),
        "deploymentName": package, "containerPort": 9443, "targetPort": 9443,
        "webhookPath": "/convert", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "conversionCRDs": [definition["metadata"]["name"]],
    }]);
    (definition, webhook)
}

/// Install modes of an operator that is for all namespaces or for none.
fn all_namespaces_only() -> Value {
    let mode = |name: &str, is_supported: bool| json!({"type": name, "supported": is_supported});
    json!([
        mode("OwnNamespace", false),
        mode("SingleNamespace", false),
        mode("MultiNamespace", false),
        mode("AllNamespaces", true)
    ])
}

async fn a_conversion_webhook_that_olm_cannot_put_up_holds(world: World) {
    let wick = Defined { group: "candle.example.com", kind: "Wick", plural: "wicks" };
    let old = wick.definition(&[Version::new("v1alpha1", None).stored()]);
    let new = wick.definition(&[Version::new("v1alpha1", None).stored(), Version::new("v1", None)]);
    let (new, webhook) = converting(new, "candle", "webhook-modes");
    let mut second = Release::new("candle", "1.1.0").replaces("1.0.0").with(new);
    second.spec.push(("webhookdefinitions", webhook));
    let releases = [Release::new("candle", "1.0.0").with(old), second];
    let rig = Rig::start(world, "webhook-modes", &releases).await.unwrap();
    rig.install(&[("candle", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["candle"]).await.unwrap();
    let held = rig.until(is_held_by("conversion-webhook")).await.unwrap();
    let (reason, words) = said(&held, "conversion-webhook");
    assert_eq!(reason, "ConversionWebhookRefused");
    let olm = "CSVs with conversion webhooks must support only AllNamespaces";
    assert!(words.contains(olm), "{words}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
    assert_eq!(rig.csvs().await.unwrap(), ["candle.v1.0.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_cannot_be_read_after_success_are_told_in_the_api_servers_words() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let fin = Defined { group: "whale.example.com", kind: "Fin", plural: "fins" };
    let kind = Kind::new("whale.example.com", "v1alpha1", "Fin", "fins");
    let old = fin.definition(&[Version::new("v1alpha1", None).stored()]);
    let new = fin.definition(&[Version::new("v1alpha1", None).stored(), Version::new("v1", None)]);
    let (new, webhook) = converting(new, "whale", "unreadable");
    let mut first = Release::new("whale", "1.0.0").with(old);
    first.spec.push(("installModes", all_namespaces_only()));
    let mut second = Release::new("whale", "1.1.0").replaces("1.0.0").with(new);
    second.spec.push(("installModes", all_namespaces_only()));
    second.spec.push(("webhookdefinitions", webhook));
    let rig = Rig::start(cluster, "unreadable", &[first, second]).await.unwrap();
    rig.objects.delete(OPERATOR_GROUP, &rig.namespace, "group").await.unwrap();
    rig.group_for_all("everywhere").await.unwrap();
    rig.install(&[("whale", "1.0.0")]).await.unwrap();
    put(&rig, kind, "left", 1).await;
    let _agent = rig.agent_with_deadline(SignedDuration::from_mins(1)).await.unwrap();
    rig.order(&["whale"]).await.unwrap();
    let reason = "CustomResourcesUnreadable";
    let seen = rig.until(|status| insight(status, reason).is_some()).await.unwrap();
    let words = insight(&seen, reason).unwrap();
    assert!(words.contains("fins.v1.whale.example.com: conversion webhook for"), "{words}");
    assert!(!words.contains("fins.v1alpha1"), "what is stored is still read: {words}");
    let stalled = rig.until_state("Stalled").await.unwrap();
    assert_eq!(stalled["failure"]["reason"], reason, "{stalled}");
    // OLM has seen nothing of it.
    assert_eq!(rig.approved().await.unwrap(), ["whale.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["whale.v1.1.0"]);
}

in_both_worlds! {
    shared {
        a_conversion_webhook_that_olm_cannot_put_up_holds,
    }
    shared_if_long {
        a_stored_version_that_would_go_holds_until_nothing_is_stored_in_it,
        objects_that_do_not_fit_hold_and_are_named_until_they_are_corrected,
        a_later_hop_is_looked_at_before_its_own_approval,
    }
}
