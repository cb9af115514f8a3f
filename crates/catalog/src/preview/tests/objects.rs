use serde_json::{Value, json};

use super::{bundle, preview};
use crate::{
    manifests::Manifests,
    preview::{Aspect, Confidence, CrdRefusal, Importance, Object, ObjectChange, RoleEntry},
};

fn deployment(name: &str, account: &str, container: Value) -> Value {
    let pod = json!({"serviceAccountName": account, "containers": [container]});
    json!({"name": name, "spec": {"replicas": 1, "template": {"spec": pod}}})
}

fn with_deployments(version: &str, deployments: &[Value]) -> Manifests {
    bundle(version, json!({"install": {"spec": {"deployments": deployments}}}), &[])
}

#[test]
fn a_deployment_is_compared_field_by_field() {
    let container = |image: &str, more: Value| {
        let mut container = json!({
            "name": "manager", "image": image, "env": [{"name": "LEVEL", "value": "1"}],
        });
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        container
    };
    let old = deployment("pump", "pump", container("r.example/pump:1", json!({})));
    let mut new = deployment(
        "pump",
        "pump",
        container(
            "r.example/pump:2",
            json!({
                "env": [{"name": "MODE", "value": "a"}, {"name": "LEVEL", "value": "2"}],
                "securityContext": {"privileged": true},
            }),
        ),
    );
    new["spec"]["template"]["spec"]["nodeSelector"] = json!({"pool": "wet"});
    let preview = preview(&[with_deployments("1.0.0", &[old]), with_deployments("1.1.0", &[new])]);
    let [changed] = preview.overall.deployments.as_slice() else { panic!("{preview:?}") };
    assert_eq!(changed.change, ObjectChange::Changed);
    let aspects: Vec<_> = changed.aspects.iter().copied().collect();
    assert_eq!(
        aspects,
        [Aspect::Security, Aspect::Images, Aspect::Scheduling, Aspect::Environment]
    );
    let differences: Vec<String> = changed
        .differences
        .iter()
        .map(|d| format!("{} {:?} {:?}", d.field, d.old.as_deref(), d.new.as_deref()))
        .collect();
    let at = "spec.template.spec";
    assert_eq!(
        differences,
        [
            format!(r#"{at}.containers[manager].env[LEVEL].value Some("1") Some("2")"#),
            format!(
                r#"{at}.containers[manager].env[MODE] None Some("{{\"name\":\"MODE\",\"value\":\"a\"}}")"#
            ),
            format!(
                r#"{at}.containers[manager].image Some("r.example/pump:1") Some("r.example/pump:2")"#
            ),
            format!(
                r#"{at}.containers[manager].securityContext None Some("{{\"privileged\":true}}")"#
            ),
            format!(r#"{at}.nodeSelector None Some("{{\"pool\":\"wet\"}}")"#),
        ]
    );
    assert_eq!(changed.importance(), Importance::Medium);
}

#[test]
fn a_new_name_is_concluded_from_what_stays_the_same() {
    let check = |olds: &[Value], news: &[Value], expected: &[&str]| {
        let bundles = [with_deployments("1.0.0", olds), with_deployments("1.1.0", news)];
        let preview = preview(&bundles);
        let changes = preview.overall.deployments.iter().map(|d| {
            assert_eq!(d.was.is_some(), d.confidence == Confidence::Inferred);
            let was = d.was.as_ref().map_or_else(String::new, |was| format!(" from {was}"));
            format!("{} {}{was}", d.change, d.name)
        });
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    };
    let of = |image: &str| json!({"name": "manager", "image": image});
    let old = deployment("pump", "pump", of("r.example:5000/pump:1"));
    // The same service account.
    check(
        std::slice::from_ref(&old),
        &[deployment("pump-v2", "pump", of("r.example/other:2"))],
        &["renamed pump-v2 from pump"],
    );
    // The same container and repository.
    check(
        std::slice::from_ref(&old),
        &[deployment("pump-v2", "other", of("r.example:5000/pump@sha256:aa"))],
        &["renamed pump-v2 from pump"],
    );
    check(
        std::slice::from_ref(&old),
        &[deployment("pump-v2", "other", of("r.example/other:2"))],
        &["added pump-v2", "removed pump"],
    );
    // Which of the two it is can't be told.
    let news = [
        deployment("one", "pump", of("r.example/one:2")),
        deployment("two", "pump", of("r.example/two:2")),
    ];
    check(&[old], &news, &["added one", "added two", "removed pump"]);
}

#[test]
fn webhooks_are_told_apart_by_type_and_name() {
    let webhook = |kind: &str, name: &str, policy: &str| {
        json!({
            "type": kind, "generateName": name, "failurePolicy": policy,
            "rules": [{
                "apiGroups": ["", "apps"], "apiVersions": ["v1"], "scope": "Namespaced",
                "operations": ["CREATE", "UPDATE"], "resources": ["pods"],
            }],
        })
    };
    let of = |version: &str, webhooks: &[Value]| {
        bundle(version, json!({"webhookdefinitions": webhooks}), &[])
    };
    let (validating, mutating) = ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook");
    let old = of(
        "1.0.0",
        &[webhook(validating, "a.example", "Ignore"), webhook(mutating, "b.example", "Fail")],
    );
    let conversion = json!({
        "type": "ConversionWebhook", "generateName": "c.example",
        "conversionCRDs": ["pumps.example.com"],
    });
    let new = of(
        "1.1.0",
        &[
            webhook(validating, "a.example", "Fail"),
            webhook(validating, "b.example", "Fail"),
            conversion,
        ],
    );
    let preview = preview(&[old, new]);
    let lines: Vec<String> = preview
        .overall
        .webhooks
        .iter()
        .map(|w| format!("{:?} {} {} {}", w.importance(), w.change, w.kind, w.name))
        .collect();
    assert_eq!(
        lines,
        [
            "High added ConversionWebhook c.example",
            "Medium changed ValidatingAdmissionWebhook a.example",
            "Medium added ValidatingAdmissionWebhook b.example",
            "Low removed MutatingAdmissionWebhook b.example",
        ]
    );
    let changed = &preview.overall.webhooks[1];
    assert_eq!(changed.rules, ["CREATE, UPDATE pods in core, apps/v1 (Namespaced)"]);
    let [difference] = changed.differences.as_slice() else { panic!("{changed:?}") };
    assert_eq!(difference.field, "failurePolicy");
    assert_eq!(preview.overall.webhooks[0].conversion_crds, ["pumps.example.com"]);
}

#[test]
fn other_objects_are_named_and_roles_say_what_they_allow() {
    let role = |verbs: &[&str]| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": verbs}],
        })
    };
    let service = |name: &str, port: u16| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"name": "web", "port": port}]},
        })
    };
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pumps.example.com"},
    });
    let old = [role(&["get", "watch"]), service("a", 80), service("b", 80)];
    let new = [role(&["get", "list"]), service("b", 81), service("c", 80), crd];
    let preview = preview(&[bundle("1.0.0", json!({}), &old), bundle("1.1.0", json!({}), &new)]);
    let overall = preview.overall;
    let [role] = overall.rbac_objects.as_slice() else { panic!("{:?}", overall.rbac_objects) };
    let entries = |of: &[RoleEntry]| -> Vec<String> {
        of.iter().map(|of| format!("{} {:?}", of.entry, of.dangers)).collect()
    };
    assert_eq!(entries(&role.gained), ["list secrets [Secrets]", "list pods []"]);
    assert_eq!(entries(&role.lost), ["watch pods []", "watch secrets []"]);
    let line = |o: &Object| format!("{} {} {}", o.change, o.kind, o.name);
    let objects: Vec<String> = overall.objects.iter().map(line).collect();
    assert_eq!(objects, ["removed Service a", "changed Service b", "added Service c"]);
    let [difference] = overall.objects[1].differences.as_slice() else { panic!("{objects:?}") };
    assert_eq!(difference.field, "spec.ports[web].port");
    assert_eq!(overall.crds[0].change, ObjectChange::Added);
}

#[test]
fn alert_rules_that_warn_before_upgrades_are_always_told() {
    let rules = |rules: Value| {
        json!({
            "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
            "metadata": {"name": "pump"}, "spec": {"groups": [{"name": "g", "rules": rules}]},
        })
    };
    let precheck = json!({
        "alert": "TankFull", "expr": "tank > 9",
        "labels": {"severity": "warning", "openShiftUpdatePrecheck": "true"},
        "annotations": {"summary": "Empty it", "runbook_url": "https://pump.example/full"},
    });
    let plain = |name: &str, expr: &str| json!({"alert": name, "expr": expr});
    let record = json!({"record": "tank:level", "expr": "tank"});
    let old = rules(json!([precheck, plain("Leak", "leak > 0"), plain("Stays", "up"), record]));
    let new = rules(json!([precheck, plain("Leak", "leak > 1"), plain("Stays", "up")]));
    let preview =
        preview(&[bundle("1.0.0", json!({}), &[old]), bundle("1.1.0", json!({}), &[new])]);
    let alerts = &preview.overall.alerts;
    let names: Vec<_> = alerts.iter().map(|a| (a.alert.as_str(), a.change)).collect();
    assert_eq!(names, [("TankFull", None), ("Leak", Some(ObjectChange::Changed))]);
    assert!(alerts[0].is_precheck && !alerts[1].is_precheck);
    assert_eq!(alerts[0].summary.as_deref(), Some("Empty it"));
    assert_eq!(alerts[0].runbook_url.as_deref(), Some("https://pump.example/full"));
    assert_eq!(alerts[1].expression, "leak > 1");
}

#[test]
fn aggregated_apis_come_and_go() {
    let of = |version: &str, kinds: &[(&str, &str)]| {
        let owned: Vec<_> = kinds
            .iter()
            .map(|(kind, deployment)| {
                json!({
                    "group": "example.com", "version": "v1", "kind": kind, "name": "x",
                    "deploymentName": deployment, "description": version,
                })
            })
            .collect();
        bundle(version, json!({"apiservicedefinitions": {"owned": owned}}), &[])
    };
    let old = of("1.0.0", &[("Old", "a"), ("Same", "a"), ("Moved", "a")]);
    let new = of("1.1.0", &[("New", "a"), ("Same", "a"), ("Moved", "b")]);
    let preview = preview(&[old, new]);
    let services = preview.overall.api_services.iter();
    let lines: Vec<_> = services.map(|s| format!("{} {}", s.change, s.name)).collect();
    assert_eq!(
        lines,
        ["changed Moved.v1.example.com", "added New.v1.example.com", "removed Old.v1.example.com"]
    );
}

#[test]
fn crds_say_who_refuses_them() {
    let crd = |versions: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "pumps.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Pump", "plural": "pumps", "singular": "pump", "listKind": "L"},
                "versions": versions,
            },
        })
    };
    let version = |name: &str, is_stored: bool| {
        json!({
            "name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"level": {"type": "integer"}}},
            }}},
        })
    };
    let owned = json!({"customresourcedefinitions": {"owned": [
        {"name": "pumps.example.com", "kind": "Pump", "version": "v1alpha1"},
    ]}});
    let old = bundle("1.0.0", owned, &[crd(json!([version("v1alpha1", true)]))]);
    let new = bundle("1.1.0", json!({}), &[crd(json!([version("v1", true)]))]);
    let changes = preview(&[old, new]);
    let [crd] = changes.overall.crds.as_slice() else { panic!("{:?}", changes.overall.crds) };
    assert_eq!(crd.refused_by_v0, CrdRefusal::IfStored);
    assert!(crd.refused_by_v1);
    assert_eq!(crd.owned_not_served, ["Pump v1alpha1: removed"]);
    let versions: Vec<String> = crd.versions.iter().map(ToString::to_string).collect();
    assert_eq!(
        versions,
        [
            "version v1 added",
            "version v1alpha1 removed, objects may be stored in it",
            "storage version v1 (was v1alpha1)",
        ]
    );
    assert_eq!(crd.importance(), Importance::High);
    assert!(changes.summary[0].text.starts_with("pump.v1.1.0: "), "{:?}", changes.summary);

    let broken = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pumps.example.com"},
    });
    let old = bundle("1.0.0", json!({}), &[broken]);
    let new = bundle(
        "1.1.0",
        json!({}),
        &[json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "pumps.example.com"}, "spec": {},
        })],
    );
    let changes = preview(&[old, new]);
    assert_eq!(changes.overall.crds[0].confidence, Confidence::Unknown);
    assert_eq!(changes.overall.crds[0].refused_by_v0, CrdRefusal::Unknown);
}
