use std::sync::Arc;

use serde_json::{Value, json};

use super::{GADGET, Limits, mk_gadget, server, server_with};
use crate::apiserver::{Batch, Change, ChangeKind, Gk, Reason, Subresource, gk, meta};

#[track_caller]
fn writes(batch: Batch) -> Vec<(String, String, ChangeKind)> {
    let Batch::Changes(changes) = batch else { panic!("lagged") };
    let told = |c: &Arc<Change>| (c.gk.kind().to_owned(), c.name.clone(), c.event);
    changes.iter().map(told).collect()
}

#[test]
fn generation_moves_with_the_spec_alone_and_status_has_its_own_door() {
    let server = server();
    let store = server.store();
    let made = store.create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    assert_eq!(meta::generation(&made), 1);
    assert_eq!(meta::text(&made, "creationTimestamp"), "2026-02-01T12:00:00Z");
    assert_eq!(made["spec"]["colour"], "red");

    let mut both = Value::clone(&made);
    both["spec"]["size"] = json!(2);
    both["status"] = json!({"phase": "Ignored"});
    let updated = store.update(&GADGET, both.clone()).unwrap();
    assert_eq!((meta::generation(&updated), &updated["spec"]["size"]), (2, &json!(2)));
    assert_eq!(updated.get("status"), None);

    both["metadata"]["resourceVersion"] = updated["metadata"]["resourceVersion"].clone();
    both["spec"]["size"] = json!(3);
    let status = store.update_status(&GADGET, both).unwrap();
    assert_eq!((meta::generation(&status), &status["spec"]["size"]), (2, &json!(2)));
    assert_eq!(status["status"]["phase"], "Ignored");

    let labelled = store
        .patch_merge(
            &GADGET,
            Some("default"),
            "a",
            Subresource::Main,
            &json!({"metadata": {"labels": {"x": "y"}}}),
        )
        .unwrap();
    assert_eq!(meta::generation(&labelled), 2);
}

#[test]
fn a_stale_resource_version_or_a_wrong_uid_is_a_conflict() {
    let server = server();
    let store = server.store();
    let old = store.create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    store.modify(&GADGET, Some("default"), "a", |g| g["spec"]["size"] = json!(2)).unwrap();

    let stale = store.update(&GADGET, Value::clone(&old)).unwrap_err();
    assert_eq!((stale.code, stale.reason), (409, Reason::Conflict));
    let patch = json!({"metadata": {"resourceVersion": meta::text(&old, "resourceVersion")}});
    let refused =
        store.patch_merge(&GADGET, Some("default"), "a", Subresource::Status, &patch).unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    let patch = json!({"metadata": {"uid": "another"}});
    let refused =
        store.patch_merge(&GADGET, Some("default"), "a", Subresource::Main, &patch).unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    let again = store.create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap_err();
    assert_eq!((again.code, again.reason), (409, Reason::AlreadyExists));
}

#[test]
fn a_change_that_changes_nothing_is_no_write() {
    let server = server();
    let store = server.store();
    let made = store.create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    let mut changes = store.subscribe();
    let same = store.modify(&GADGET, Some("default"), "a", |_| ()).unwrap();
    assert_eq!(made, same);
    assert_eq!(writes(changes.now()), []);
    store.modify(&GADGET, Some("default"), "a", |g| g["status"] = json!({"phase": "P"})).unwrap();
    assert_eq!(writes(changes.now()), [("Gadget".into(), "a".into(), ChangeKind::Modified)]);
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let server = server();
    let store = server.store();
    let mut gadget = mk_gadget("a", &json!({"size": 1}));
    gadget["metadata"]["finalizers"] = json!(["one/x", "two/x"]);
    store.create(&GADGET, gadget).unwrap();
    let marked = store.delete(&GADGET, Some("default"), "a").unwrap();
    assert_eq!(meta::text(&marked, "deletionTimestamp"), "2026-02-01T12:00:00Z");
    assert_eq!(meta::generation(&marked), 2);

    let add = json!({"metadata": {"finalizers": ["one/x", "two/x", "three/x"]}});
    let refused =
        store.patch_merge(&GADGET, Some("default"), "a", Subresource::Main, &add).unwrap_err();
    assert_eq!(refused.code, 422);
    let less = json!({"metadata": {"finalizers": ["two/x"]}});
    store.patch_merge(&GADGET, Some("default"), "a", Subresource::Main, &less).unwrap();
    assert!(store.get(&GADGET, Some("default"), "a").is_some());
    let mut changes = store.subscribe();
    let none = json!({"metadata": {"finalizers": null}});
    store.patch_merge(&GADGET, Some("default"), "a", Subresource::Main, &none).unwrap();
    assert!(store.get(&GADGET, Some("default"), "a").is_none());
    assert_eq!(
        writes(changes.now()),
        [
            ("Gadget".into(), "a".into(), ChangeKind::Modified),
            ("Gadget".into(), "a".into(), ChangeKind::Deleted),
        ]
    );
}

#[test]
fn what_an_object_owned_goes_with_it_unless_another_owner_stays() {
    let server = server();
    let store = server.store();
    let owner = |name: &str| {
        let made = store.create(&GADGET, mk_gadget(name, &json!({"size": 1}))).unwrap();
        json!({"apiVersion": "test.wavelift.io/v1alpha1", "kind": "Gadget", "name": name,
            "uid": meta::uid(&made)})
    };
    let (a, b) = (owner("a"), owner("b"));
    let config = |name: &str, owners: Value| {
        let metadata = json!({"name": name, "namespace": "default", "ownerReferences": owners});
        store.create(&gk::CONFIG_MAP, json!({"metadata": metadata})).unwrap()
    };
    let child = config("child", json!([a]));
    let of_child = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "child", "uid": meta::uid(&child)}]);
    config("grandchild", of_child);
    config("shared", json!([a, b]));
    store.delete(&GADGET, Some("default"), "a").unwrap();
    let left = store.list(&gk::CONFIG_MAP, None);
    assert_eq!(left.iter().map(|c| meta::name(c)).collect::<Vec<_>>(), ["shared"]);
    assert_eq!(left[0]["metadata"]["ownerReferences"], json!([b]));
}

#[test]
fn a_namespace_takes_its_content_and_waits_for_finalizers_in_it() {
    let server = server();
    let store = server.store();
    let nowhere = json!({"metadata": {"name": "c", "namespace": "team"}});
    assert_eq!(store.create(&gk::CONFIG_MAP, nowhere.clone()).unwrap_err().code, 404);
    store.create(&gk::NAMESPACE, json!({"metadata": {"name": "team"}})).unwrap();
    store.create(&gk::CONFIG_MAP, nowhere).unwrap();
    let held = json!({"metadata": {"name": "s", "namespace": "team", "finalizers": ["x/y"]}});
    store.create(&gk::SECRET, held).unwrap();

    let waiting = store.delete(&gk::NAMESPACE, None, "team").unwrap();
    assert_eq!(waiting["status"]["phase"], "Terminating");
    assert!(store.list(&gk::CONFIG_MAP, Some("team")).is_empty());
    let late = json!({"metadata": {"name": "late", "namespace": "team"}});
    assert_eq!(store.create(&gk::CONFIG_MAP, late).unwrap_err().code, 403);
    let free = json!({"metadata": {"finalizers": []}});
    store.patch_merge(&gk::SECRET, Some("team"), "s", Subresource::Main, &free).unwrap();
    assert!(store.get(&gk::NAMESPACE, None, "team").is_none());
}

#[test]
fn generated_names_differ_and_bad_names_are_refused() {
    let server = server();
    let store = server.store();
    let make = || {
        let metadata = json!({"generateName": "install-", "namespace": "default"});
        store.create(&gk::INSTALL_PLAN, json!({"metadata": metadata})).unwrap()
    };
    let (one, two) = (make(), make());
    assert_ne!(meta::name(&one), meta::name(&two));
    assert_eq!(meta::name(&one).len(), "install-".len() + 5);
    for bad in ["", "Upper", "under_score", "-dash", "dot..dot"] {
        let metadata = json!({"name": bad, "namespace": "default"});
        let refused = store.create(&gk::CONFIG_MAP, json!({"metadata": metadata})).unwrap_err();
        assert_eq!(refused.code, 422, "{bad:?}");
    }
}

#[test]
fn a_definition_brings_its_kind_and_takes_it_away() {
    let server = server();
    let store = server.store();
    let crd = json!({"metadata": {"name": "toys.play.io"}, "spec": {
        "group": "play.io", "scope": "Cluster", "names": {"kind": "Toy", "plural": "toys"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }});
    let toy = Gk::of("play.io", "Toy");
    assert_eq!(store.create(&toy, json!({"metadata": {"name": "t"}})).unwrap_err().code, 404);
    let made = store.create(&gk::CRD, crd).unwrap();
    let conditions = made["status"]["conditions"].as_array().unwrap();
    let is_true =
        |name: &str| conditions.iter().any(|c| c["type"] == name && c["status"] == "True");
    assert!(is_true("Established") && is_true("NamesAccepted"));
    store.create(&toy, json!({"metadata": {"name": "t"}})).unwrap();
    store.delete(&gk::CRD, None, "toys.play.io").unwrap();
    assert!(store.kinds().get(&toy).is_none());
    assert!(store.list(&toy, None).is_empty());
}

#[test]
fn a_subscriber_that_falls_behind_is_told_so() {
    let (server, _hand) = server_with(Limits { history_changes: 3, ..Limits::default() });
    let store = server.store();
    let mut changes = store.subscribe();
    for index in 0..4 {
        store.create(&GADGET, mk_gadget(&format!("g{index}"), &json!({"size": 1}))).unwrap();
    }
    assert!(matches!(changes.now(), Batch::Lagged));
    assert_eq!(writes(changes.now()), []);
    store.delete(&GADGET, Some("default"), "g0").unwrap();
    assert_eq!(writes(changes.now()), [("Gadget".into(), "g0".into(), ChangeKind::Deleted)]);
}

#[test]
fn history_is_bounded_in_bytes_too() {
    let limits = Limits { history_bytes: 15_000, ..Limits::default() };
    let (server, _hand) = server_with(limits);
    let store = server.store();
    let mut changes = store.subscribe();
    let big = "x".repeat(4_000);
    for index in 0..4 {
        let metadata = json!({"name": format!("c{index}"), "namespace": "default"});
        store.create(&gk::CONFIG_MAP, json!({"metadata": metadata, "data": {"big": big}})).unwrap();
    }
    assert!(matches!(changes.now(), Batch::Lagged));
}

#[test]
fn definitions_are_shared_between_servers() {
    let (one, two) = (server(), server());
    let stored = |server: &super::ApiServer| {
        server.store().get(&gk::CRD, None, "gadgets.test.wavelift.io").unwrap()
    };
    assert!(Arc::ptr_eq(&stored(&one), &stored(&two)));
    let kind = |server: &super::ApiServer| Arc::clone(server.store().kinds().get(&GADGET).unwrap());
    assert!(Arc::ptr_eq(&kind(&one), &kind(&two)));
}
