//! What the agent's ServiceAccount may do on a real API server, and all that it may not.

use std::collections::BTreeSet;

use kube::Client;
use serde_json::{Value, json};
use wavelift_agent::rights::Grant;
use wavelift_runtime::metrics::Metrics;

use super::{
    Cluster,
    objects::{CLUSTER_ROLE, Objects},
    rig::Rig,
    upgrades::chain,
};

const OLM: &str = "/apis/operators.coreos.com/v1alpha1";
const OURS: &str = "/apis/wavelift.io/v1alpha1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const READING: [&str; 3] = ["get", "list", "watch"];

/// Sends one request; the status that it is refused with.
async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, u16> {
    let request = http::Request::builder().method(method).uri(path);
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { vec![] } else { serde_json::to_vec(body).unwrap() };
    let request = request.header(http::header::CONTENT_TYPE, kind).body(body).unwrap();
    match client.request::<Value>(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{method} {path}: {error}"),
    }
}

/// Everything but reading that the API server says it may do in a namespace.
async fn writes(client: &Client, namespace: &str) -> BTreeSet<String> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let answer = ask(client, "POST", path, &review).await.unwrap();
    assert_eq!(answer["status"]["incomplete"], false, "{answer}");
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|t| t.as_str().unwrap().to_owned()).collect()
    };
    let mut writes = BTreeSet::new();
    for rule in answer["status"]["resourceRules"].as_array().unwrap() {
        for verb in texts(&rule["verbs"]).iter().filter(|verb| !READING.contains(&verb.as_str())) {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    writes.insert(format!("{verb} {group}/{resource}"));
                }
            }
        }
    }
    writes
}

async fn may(client: &Client, verb: &str, group: &str, resource: &str) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = json!({"verb": verb, "group": group, "resource": resource,
        "subresource": subresource});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    ask(client, "POST", path, &review).await.unwrap()["status"]["allowed"] == true
}

async fn rig(cluster: std::sync::Arc<Cluster>, name: &str) -> (Rig, Client) {
    let rig = Rig::start(cluster, name, &[]).await.unwrap();
    let client = rig.account().client(None, &Metrics::new()).await.unwrap();
    (rig, client)
}

/// What every user of a cluster may do: ask who they are and what they may.
const ANYBODY: [&str; 3] = [
    "create authentication.k8s.io/selfsubjectreviews",
    "create authorization.k8s.io/selfsubjectaccessreviews",
    "create authorization.k8s.io/selfsubjectrulesreviews",
];
const OPERATORS: [&str; 3] = [
    "delete operators.coreos.com/installplans",
    "patch operators.coreos.com/installplans",
    "patch operators.coreos.com/subscriptions",
];
const HOME: [&str; 4] = [
    "create wavelift.io/clusterupgrades",
    "delete wavelift.io/clusterupgrades",
    "patch wavelift.io/clusterupgrades",
    "update wavelift.io/clusterupgrades/status",
];

fn set(parts: &[&[&str]]) -> BTreeSet<String> {
    parts.iter().flat_map(|part| part.iter()).map(|text| (*text).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_may_write_what_its_list_says_and_nothing_else() {
    let Some(cluster) = Cluster::shared().await else { return };
    let (rig, client) = rig(cluster, "rights-all").await;
    assert_eq!(writes(&client, &rig.namespace).await, set(&[&ANYBODY, &OPERATORS]));
    assert_eq!(writes(&client, rig.home()).await, set(&[&ANYBODY, &OPERATORS, &HOME]));
    rig.account().allow(&rig.objects, Grant::Remedies).await.unwrap();
    let remedies = [
        "delete operators.coreos.com/clusterserviceversions",
        "patch operators.coreos.com/installplans/status",
        "patch operators.coreos.com/subscriptions/status",
    ];
    let wanted = set(&[&ANYBODY, &OPERATORS, &remedies]);
    let look = || async { Ok((writes(&client, &rig.namespace).await == wanted).then_some(())) };
    rig.objects.until("the rights of remedies", look).await.unwrap();
    rig.account().allow(&rig.objects, Grant::PinnedCatalogs).await.unwrap();
    let pinned = [
        "create operators.coreos.com/catalogsources",
        "delete operators.coreos.com/catalogsources",
    ];
    let wanted = set(&[&ANYBODY, &OPERATORS, &remedies, &pinned]);
    let look = || async { Ok((writes(&client, &rig.namespace).await == wanted).then_some(())) };
    rig.objects.until("the rights of pinned catalogs", look).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_that_is_not_the_agents_is_refused() {
    let Some(cluster) = Cluster::shared().await else { return };
    let (rig, client) = rig(cluster, "rights-refused").await;
    let at = &rig.namespace;
    let core = format!("/api/v1/namespaces/{at}");
    let apps = format!("/apis/apps/v1/namespaces/{at}");
    let olm = format!("{OLM}/namespaces/{at}");
    let ours = format!("{OURS}/namespaces/{at}");
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/subscriptions.operators.coreos.com";
    let refused = [
        ("GET", format!("{core}/secrets")),
        ("GET", format!("{core}/secrets/pull")),
        ("GET", "/api/v1/secrets".to_owned()),
        ("POST", format!("{core}/secrets")),
        ("POST", format!("{core}/pods/main/exec?command=id")),
        ("GET", format!("{core}/pods/main/exec?command=id")),
        ("POST", format!("{core}/pods/main/attach")),
        ("POST", format!("{core}/pods/main/eviction")),
        ("POST", format!("{core}/pods")),
        ("DELETE", format!("{core}/pods/main")),
        ("POST", format!("{core}/configmaps")),
        ("POST", format!("{core}/serviceaccounts/wavelift-agent/token")),
        ("POST", "/api/v1/namespaces".to_owned()),
        ("DELETE", core.clone()),
        ("GET", "/api/v1/nodes".to_owned()),
        ("POST", format!("{apps}/deployments")),
        ("PATCH", format!("{apps}/deployments/main")),
        ("DELETE", format!("{apps}/deployments/main")),
        ("PATCH", format!("{apps}/deployments/main/scale")),
        ("POST", format!("{olm}/clusterserviceversions")),
        ("PATCH", format!("{olm}/clusterserviceversions/main")),
        ("DELETE", format!("{olm}/clusterserviceversions/main")),
        ("POST", format!("{olm}/subscriptions")),
        ("DELETE", format!("{olm}/subscriptions/main")),
        ("PATCH", format!("{olm}/subscriptions/main/status")),
        ("POST", format!("{olm}/installplans")),
        ("PATCH", format!("{olm}/installplans/main/status")),
        ("POST", format!("{olm}/catalogsources")),
        ("PATCH", format!("{olm}/catalogsources/own")),
        ("DELETE", format!("{olm}/catalogsources/own")),
        ("GET", format!("{ours}/clusterupgrades")),
        ("POST", format!("{ours}/clusterupgrades")),
        ("PATCH", crd.to_owned()),
        ("DELETE", crd.to_owned()),
        ("GET", format!("{RBAC}/clusterroles")),
        ("POST", format!("{RBAC}/clusterrolebindings")),
        ("POST", format!("{RBAC}/namespaces/{at}/rolebindings")),
        ("PATCH", format!("{RBAC}/clusterroles/wavelift-agent")),
    ];
    for (method, path) in refused {
        let body = if method == "GET" { Value::Null } else { json!({}) };
        let answer = ask(&client, method, &path, &body).await;
        assert_eq!(answer.err(), Some(403), "{method} {path}");
    }
    // Nor may it speak in another's name.
    let request = http::Request::get("/api/v1/namespaces").header("Impersonate-User", "admin");
    let answer = client.request::<Value>(request.body(vec![]).unwrap()).await;
    assert!(matches!(answer, Err(kube::Error::Api(status)) if status.code == 403));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_cluster_lets_people_view_and_labelled_roles_are_the_agents_to_read() {
    let Some(cluster) = Cluster::shared().await else { return };
    let (rig, client) = rig(cluster, "rights-view").await;
    let now = |verb: &'static str, group: &'static str, resource: &'static str| {
        let client = client.clone();
        async move { Ok(may(&client, verb, group, resource).await.then_some(())) }
    };
    rig.objects.until("view", || now("list", "", "configmaps")).await.unwrap();
    assert!(!may(&client, "list", "", "secrets").await);
    // As OLM does for each API that an operator owns.
    assert!(!may(&client, "list", "example.com", "lanterns").await);
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    grant(&rig.objects, "lanterns-view", label, ("example.com", "lanterns")).await;
    rig.objects.until("operators' APIs", || now("list", "example.com", "lanterns")).await.unwrap();
    assert!(!may(&client, "patch", "example.com", "lanterns").await);
    // As an administrator does for what `view` leaves out.
    assert!(!may(&client, "list", "example.com", "beacons").await);
    let label = "wavelift.io/aggregate-to-agent";
    grant(&rig.objects, "beacons-for-agents", label, ("example.com", "beacons")).await;
    rig.objects.until("a labelled role", || now("list", "example.com", "beacons")).await.unwrap();
    assert!(!may(&client, "list", "", "secrets").await);
}

/// A role to read one resource, with one label.
async fn grant(objects: &Objects, name: &str, label: &str, (group, resource): (&str, &str)) {
    let role = json!({
        "metadata": {"name": name, "labels": {label: "true"}},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": READING}],
    });
    objects.create(CLUSTER_ROLE, "", &role).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_the_agent_may_not_read_is_unknown_and_holds() {
    let Some(cluster) = Cluster::shared().await else { return };
    let releases = chain("sieve", &["1.0.0", "1.1.0"]);
    let rig = Rig::start_without(cluster, "may-not-read", &releases, Some("operatorconditions"));
    let rig = rig.await.unwrap();
    rig.install(&[("sieve", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["sieve"]).await.unwrap();
    let unknown = |status: &Value| {
        let results = status["preflight"]["results"].as_array().into_iter().flatten();
        results.filter(|result| result["outcome"] == "Unknown").cloned().collect::<Vec<_>>()
    };
    let held = rig.until(|status| !unknown(status).is_empty()).await.unwrap();
    let [result] = &unknown(&held)[..] else { panic!("{held}") };
    assert_eq!(result["check"], "operator-upgradeable", "{held}");
    assert_eq!(result["reason"], "CannotRead", "{held}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("operatorconditions") && message.contains("forbidden"), "{message}");
    assert_eq!(held["state"], "Blocked", "{held}");
    assert!(rig.writes().unwrap().is_empty(), "{:?}", rig.writes());
}
