use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{code, dynamic, gadgets, mk_gadget, server};
use crate::apiserver::gk;

/// The owners as (manager, operation, fields).
fn owners(object: &Value) -> Vec<(String, String, Value)> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let owner = |e: &Value| (text(e, "manager"), text(e, "operation"), e["fieldsV1"].clone());
    list.iter().map(owner).collect()
}

fn config(spec: &Value) -> Patch<Value> {
    Patch::Apply(mk_gadget("a", spec))
}

#[tokio::test]
async fn two_appliers_share_an_object_and_each_takes_back_only_its_own() {
    let server = server();
    let api = gadgets(&server.client("test/1"));
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    let spec = json!({"size": 1, "parts": [{"name": "x"}], "tags": ["p"]});
    api.patch("a", &one, &config(&spec)).await.unwrap();
    let spec = json!({"size": 1, "parts": [{"name": "y", "count": 5}], "tags": ["q"]});
    let both = api.patch("a", &two, &config(&spec)).await.unwrap();
    assert_eq!(
        both.data["spec"],
        json!({"size": 1, "colour": "red", "tags": ["p", "q"],
        "parts": [{"name": "x", "count": 1}, {"name": "y", "count": 5}]})
    );
    let both = serde_json::to_value(both).unwrap();
    assert_eq!(
        owners(&both),
        [
            (
                "one".into(),
                "Apply".into(),
                json!({"f:spec": {"f:size": {},
            "f:parts": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}},
            "f:tags": {"v:\"p\"": {}}}})
            ),
            (
                "two".into(),
                "Apply".into(),
                json!({"f:spec": {"f:size": {},
            "f:parts": {"k:{\"name\":\"y\"}": {".": {}, "f:count": {}, "f:name": {}}},
            "f:tags": {"v:\"q\"": {}}}})
            ),
        ]
    );

    let left = api.patch("a", &one, &config(&json!({"size": 1}))).await.unwrap();
    assert_eq!(
        left.data["spec"],
        json!({"size": 1, "colour": "red", "tags": ["q"],
        "parts": [{"name": "y", "count": 5}]})
    );
    // `size` is still claimed by `two`, so it stays although `one` no longer sends it.
    let left = api.patch("a", &one, &config(&json!({"note": "n"}))).await.unwrap();
    assert_eq!((&left.data["spec"]["size"], &left.data["spec"]["note"]), (&json!(1), &json!("n")));
}

#[tokio::test]
async fn an_apply_that_would_change_anothers_field_names_the_owner() {
    let server = server();
    let api = gadgets(&server.client("test/1"));
    let create = PostParams { field_manager: Some("person".into()), ..PostParams::default() };
    api.create(&create, &dynamic(mk_gadget("a", &json!({"size": 1})))).await.unwrap();
    let agent = PatchParams::apply("agent");
    let refused = api.patch("a", &agent, &config(&json!({"size": 2}))).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let causes = status.details.unwrap().causes;
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].field, ".spec.size");
    assert!(causes[0].message.contains("\"person\""), "{}", causes[0].message);

    // The same value is no conflict: the field is then shared.
    api.patch("a", &agent, &config(&json!({"size": 1}))).await.unwrap();
    let forced =
        api.patch("a", &agent.clone().force(), &config(&json!({"size": 2}))).await.unwrap();
    let forced = serde_json::to_value(forced).unwrap();
    assert_eq!(forced["spec"]["size"], 2);
    let of_size: Vec<String> = owners(&forced)
        .into_iter()
        .filter(|(_, _, fields)| fields.pointer("/f:spec/f:size").is_some())
        .map(|(manager, ..)| manager)
        .collect();
    assert_eq!(of_size, ["agent"]);
}

#[tokio::test]
async fn applying_the_same_again_writes_nothing() {
    let server = server();
    let api = gadgets(&server.client("test/1"));
    let agent = PatchParams::apply("agent");
    let first = api.patch("a", &agent, &config(&json!({"size": 1}))).await.unwrap();
    let again = api.patch("a", &agent, &config(&json!({"size": 1}))).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(
        code(api.patch("a", &PatchParams::default(), &config(&json!({"size": 1}))).await),
        422
    );
    let mut gone = mk_gadget("b", &json!({"size": 1}));
    gone["metadata"]["uid"] = json!("of-a-deleted-one");
    assert_eq!(code(api.patch("b", &agent, &Patch::Apply(gone)).await), 409);
}

#[tokio::test]
async fn status_is_applied_apart_from_spec() {
    let server = server();
    let api = gadgets(&server.client("test/1"));
    api.patch("a", &PatchParams::apply("spec"), &config(&json!({"size": 1}))).await.unwrap();
    let condition = |kind: &str, status: &str| {
        let conditions = json!([{"type": kind, "status": status}]);
        Patch::Apply(json!({"apiVersion": "test.wavelift.io/v1alpha1", "kind": "Gadget",
            "metadata": {"name": "a"}, "spec": {"size": 9}, "status": {"conditions": conditions}}))
    };
    api.patch_status("a", &PatchParams::apply("x"), &condition("Ready", "True")).await.unwrap();
    let done =
        api.patch_status("a", &PatchParams::apply("y"), &condition("Done", "False")).await.unwrap();
    assert_eq!(done.data["spec"]["size"], 1);
    assert_eq!(
        done.data["status"]["conditions"],
        json!([
        {"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}])
    );
    assert_eq!(done.metadata.generation, Some(1));
    let managers = done.metadata.managed_fields.unwrap();
    let of_x = managers.iter().find(|m| m.manager.as_deref() == Some("x")).unwrap();
    assert_eq!(of_x.subresource.as_deref(), Some("status"));
}

#[test]
fn the_last_writer_of_a_field_can_be_seen() {
    let server = server();
    let sub = json!({"metadata": {"name": "s", "namespace": "default"},
        "spec": {"source": "catalog-a", "channel": "stable"}});
    server.store().with_manager("argocd").create(&gk::SUBSCRIPTION, sub).unwrap();
    let person = server.store().with_manager("kubectl-edit");
    let found = person
        .modify(&gk::SUBSCRIPTION, Some("default"), "s", |s| s["spec"]["source"] = json!("b"))
        .unwrap();
    assert_eq!(
        owners(&found),
        [
            ("argocd".into(), "Update".into(), json!({"f:spec": {".": {}, "f:channel": {}}})),
            ("kubectl-edit".into(), "Update".into(), json!({"f:spec": {"f:source": {}}})),
        ]
    );
    // A writer without a name owns nothing, but what it wrote is no longer the other's.
    let found = server
        .store()
        .modify(&gk::SUBSCRIPTION, Some("default"), "s", |s| s["spec"]["source"] = json!("c"))
        .unwrap();
    assert_eq!(
        owners(&found),
        [("argocd".into(), "Update".into(), json!({"f:spec": {".": {}, "f:channel": {}}})),]
    );
}
