use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use serde_json::{Value, json};

use super::{GADGET, code, dynamic, gadgets, mk_gadget, server, soon};
use crate::apiserver::{Verb, gk};

#[tokio::test]
async fn objects_are_made_read_changed_and_deleted() {
    let server = server();
    let client = server.client("test/1");
    let api = gadgets(&client);
    let made = api
        .create(&PostParams::default(), &dynamic(mk_gadget("a", &json!({"size": 1}))))
        .await
        .unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(
        code(
            api.create(&PostParams::default(), &dynamic(mk_gadget("a", &json!({"size": 1})))).await
        ),
        409
    );

    let patch = Patch::Merge(json!({"spec": {"size": 2}, "status": {"phase": "no"}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data, json!({"spec": {"size": 2, "colour": "red"}}));
    let patch: Patch<Value> = Patch::Merge(json!({"metadata": {"resourceVersion": "1"}}));
    assert_eq!(code(api.patch("a", &PatchParams::default(), &patch).await), 409);
    let strategic = Patch::Strategic(json!({"spec": {"size": 3}}));
    assert_eq!(code(api.patch("a", &PatchParams::default(), &strategic).await), 415);
    let json_patch: json_patch::Patch =
        serde_json::from_value(json!([{"op": "replace", "path": "/spec/size", "value": 4}]))
            .unwrap();
    let patched =
        api.patch("a", &PatchParams::default(), &Patch::Json::<()>(json_patch)).await.unwrap();
    assert_eq!(patched.data["spec"]["size"], 4);
    assert_eq!(code(api.replace("a", &PostParams::default(), &made).await), 409);
    let blind = dynamic(mk_gadget("a", &json!({"size": 5})));
    assert_eq!(code(api.replace("a", &PostParams::default(), &blind).await), 422);

    let wrong = Preconditions { uid: Some("other".into()), ..Preconditions::default() };
    let wrong = DeleteParams { preconditions: Some(wrong), ..DeleteParams::default() };
    assert_eq!(code(api.delete("a", &wrong).await), 409);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(api.get("a").await), 404);
    assert_eq!(code(Api::<Namespace>::all(client).get("nowhere").await), 404);
}

#[tokio::test]
async fn unknown_fields_are_refused_when_the_client_is_strict() {
    let server = server();
    let api = gadgets(&server.client("test/1"));
    let spec = json!({"size": 1, "sise": 2});
    let params = PatchParams::apply("test").validation_strict();
    let refused = api.patch("a", &params, &Patch::Apply(mk_gadget("a", &spec))).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 400);
    assert!(status.message.contains("unknown field \"spec.sise\""), "{}", status.message);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &dynamic(mk_gadget("a", &spec))).await.unwrap();
    assert!(server.store().list(&GADGET, None).is_empty());
}

#[tokio::test]
async fn a_list_comes_in_pages_that_carry_the_first_ones_revision() {
    let server = server();
    for index in 0..5 {
        server
            .store()
            .create(&GADGET, mk_gadget(&format!("g{index}"), &json!({"size": 1})))
            .unwrap();
    }
    let api = gadgets(&server.client("test/1"));
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(2);
    let mut pages = Vec::new();
    loop {
        let page = api.list(&params).await.unwrap();
        names.extend(page.items.iter().filter_map(|g| g.metadata.name.clone()));
        pages.push((page.metadata.resource_version.clone(), page.metadata.remaining_item_count));
        server
            .store()
            .modify(&GADGET, Some("default"), "g4", |g| {
                let size = g["spec"]["size"].as_i64().unwrap() + 1;
                g["spec"]["size"] = json!(size);
            })
            .unwrap();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = ListParams::default().limit(2).continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["g0", "g1", "g2", "g3", "g4"]);
    let revision = pages[0].0.clone();
    assert_eq!(pages, [(revision.clone(), Some(3)), (revision.clone(), Some(1)), (revision, None)]);

    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    server
        .store()
        .modify(&GADGET, Some("default"), "g0", |g| g["spec"]["size"] = json!(9))
        .unwrap();
    server.store().compact();
    let token = first.metadata.continue_.unwrap();
    assert_eq!(code(api.list(&ListParams::default().limit(2).continue_token(&token)).await), 410);
}

#[tokio::test]
async fn lists_are_narrowed_by_labels_and_fields() {
    let server = server();
    for (name, env) in [("a", "prod"), ("b", "dev"), ("c", "prod")] {
        let mut gadget = mk_gadget(name, &json!({"size": 1}));
        gadget["metadata"]["labels"] = json!({"env": env});
        server.store().create(&GADGET, gadget).unwrap();
    }
    let api = gadgets(&server.client("test/1"));
    let names = async |params: ListParams| -> Vec<String> {
        let list = api.list(&params).await.unwrap();
        list.items.into_iter().filter_map(|g| g.metadata.name).collect()
    };
    assert_eq!(names(ListParams::default().labels("env in (prod)")).await, ["a", "c"]);
    assert_eq!(names(ListParams::default().fields("metadata.name=b")).await, ["b"]);
    assert_eq!(names(ListParams::default().labels("env!=prod")).await, ["b"]);
    assert_eq!(code(api.list(&ListParams::default().fields("spec.size=1")).await), 400);
    let metadata = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(metadata.items.len(), 3);
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("env=prod"))
        .await
        .unwrap();
    assert_eq!(names(ListParams::default()).await, ["b"]);
}

#[tokio::test]
async fn a_recorder_writes_events_that_core_clients_find_by_their_object() {
    let server = server();
    let client = server.client("test/1");
    let made = server.store().create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    let reporter = Reporter { controller: "tester".into(), instance: None };
    let recorder = Recorder::new(client.clone(), reporter);
    let about = k8s_openapi::api::core::v1::ObjectReference {
        kind: Some("Gadget".into()),
        name: Some("a".into()),
        namespace: Some("default".into()),
        uid: made["metadata"]["uid"].as_str().map(str::to_owned),
        ..Default::default()
    };
    let event = Event {
        type_: EventType::Warning,
        reason: "Stuck".into(),
        note: Some("it does not move".into()),
        action: "Watching".into(),
        secondary: None,
    };
    // The second of the same kind makes a series of the first.
    recorder.publish(&event, &about).await.unwrap();
    recorder.publish(&event, &about).await.unwrap();

    let core: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(client.clone(), "default");
    let found = core
        .list(&ListParams::default().fields("involvedObject.name=a,type=Warning"))
        .await
        .unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.items[0].message.as_deref(), Some("it does not move"));
    assert_eq!(found.items[0].series.as_ref().and_then(|s| s.count), Some(2));
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client, "default");
    let found = new.list(&ListParams::default().fields("regarding.name=a")).await.unwrap();
    assert_eq!(found.items[0].note.as_deref(), Some("it does not move"));
    assert_eq!(server.store().list(&gk::EVENT, None).len(), 1);
}

#[tokio::test]
async fn discovery_finds_every_kind() {
    let server = server();
    let client = server.client("test/1");
    let plain = kube::discovery::Discovery::new(client.clone()).run().await.unwrap();
    let aggregated =
        kube::discovery::Discovery::new(client.clone()).run_aggregated().await.unwrap();
    for found in [plain, aggregated] {
        let gvk = kube::core::GroupVersionKind::gvk("test.wavelift.io", "v1alpha1", "Gadget");
        let (resource, capabilities) = found.resolve_gvk(&gvk).unwrap();
        assert_eq!(resource.plural, "gadgets");
        assert_eq!(capabilities.scope, kube::discovery::Scope::Namespaced);
        let pod = kube::core::GroupVersionKind::gvk("", "v1", "ConfigMap");
        assert!(found.resolve_gvk(&pod).is_some());
        let olm = found.get("operators.coreos.com").unwrap();
        assert_eq!(olm.versions().collect::<Vec<_>>(), ["v2", "v1", "v1alpha1"]);
    }
    assert_eq!(client.apiserver_version().await.unwrap().minor, "33");
    server.set_version("1.31.7");
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.31.7");
}

#[tokio::test]
async fn a_real_socket_answers_like_the_process_itself() {
    let server = server();
    let served = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = kube::Config::new(served.url().parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = json!({"metadata": {"name": "c"}, "data": {"k": "v"}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    soon(api.create(&PostParams::default(), &map)).await.unwrap();
    assert!(server.store().get(&gk::CONFIG_MAP, Some("default"), "c").is_some());
    let audit = server.audit();
    assert_eq!(audit.len(), 1);
    assert_eq!((audit[0].request.verb, audit[0].code), (Verb::Create, 201));
    assert_eq!(audit[0].request.name.as_deref(), Some("c"));
    served.stop();
}

#[tokio::test]
async fn our_own_definitions_are_served() {
    let server = server();
    for crd in wavelift_api::crds() {
        server.install_crd(&serde_json::to_value(crd).unwrap()).unwrap();
    }
    let kinds = server.store().kinds();
    for (gk, short) in
        [(&gk::FLEET_UPGRADE, "fleetupgrades"), (&gk::CLUSTER_UPGRADE, "clusterupgrades")]
    {
        let kind = kinds.get(gk).unwrap();
        assert_eq!(kind.plural, short);
        assert!(kind.has_status() && kind.is_namespaced());
        assert!(kind.schema.is_some() && !kind.columns.is_empty());
    }
}
