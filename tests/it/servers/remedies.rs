//! Ways out of what OLM gives up, each only where the order names it, and none where it does not.

use serde_json::{Value, json};

use super::{
    Cluster, World,
    crds::{correct, insight, put},
    in_both_worlds,
    objects::{CSV, INSTALL_PLAN, Kind, SUBSCRIPTION},
    operators::{Defined, Release, Version, csv_name},
    rig::{Remedies, Rig},
};

/// Whatever the checks find, the order goes on: so what OLM refuses is seen to be refused.
fn in_spite_of_all(remedies: &[&str]) -> Value {
    let policy = json!({"onFail": "Proceed", "reason": "to see what OLM does"});
    json!({"preflight": policy, "remedies": remedies})
}

/// Two versions of which the second has a schema that an object of size 9 does not fit.
fn stricter<'a>(package: &'a str, defined: Defined<'_>) -> [Release<'a>; 2] {
    let with = |max| defined.definition(&[Version::new("v1", max).stored()]);
    [
        Release::new(package, "1.0.0").with(with(None)),
        Release::new(package, "1.1.0").replaces("1.0.0").with(with(Some(5))),
    ]
}

const TOO_RESTRICTIVE: &str = "updated validation is too restrictive: [].spec.size: Invalid value: 9: \
    spec.size in body should be less than or equal to 5";

/// What the agent wrote, in order, each kind of write once in a row.
fn written(rig: &Rig) -> Vec<String> {
    let text = |event: &Value| {
        let target = &event["objectRef"];
        let part = target["subresource"].as_str().map_or(String::new(), |part| format!("/{part}"));
        let (verb, kind) = (event["verb"].as_str(), target["resource"].as_str());
        format!("{} {}{part}", verb.unwrap_or_default(), kind.unwrap_or_default())
    };
    let mut all: Vec<String> = rig.writes().unwrap().iter().map(text).collect();
    all.dedup();
    all
}

async fn a_plan_that_olm_gave_up_is_tried_again_once_the_objects_fit(world: World) {
    let defined = Defined { group: "hinge.example.com", kind: "Pin", plural: "pins" };
    let kind = Kind::new("hinge.example.com", "v1", "Pin", "pins");
    let rig = Rig::start(world, "tried-again", &stricter("hinge", defined)).await.unwrap();
    rig.install(&[("hinge", "1.0.0")]).await.unwrap();
    put(&rig, kind, "big", 9).await;
    let _agent = rig.agent_with(Remedies::Enabled).await.unwrap();
    let more = in_spite_of_all(&["RetryFailedInstallPlan"]);
    rig.order_with(&["hinge"], &more).await.unwrap();
    // What OLM says is word for word what the check has said.
    let says = |status: &Value| {
        let failed = insight(status, "InstallPlanFailed").unwrap_or_default();
        failed.contains(" failed: error validating") && failed.contains(TOO_RESTRICTIVE)
    };
    let failed = rig.until(says).await.unwrap();
    assert!(failed["preflight"].to_string().contains(TOO_RESTRICTIVE), "{failed}");
    let waits = |status: &Value| insight(status, "CustomResourcesInvalid").is_some();
    let waiting = rig.until(waits).await.unwrap();
    assert_eq!(waiting["state"], "Upgrading", "{waiting}");
    assert_eq!(written(&rig), ["patch installplans"], "it is no use to try while it does not fit");
    correct(&rig, kind, "big", 5).await;
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(written(&rig), ["patch installplans", "patch installplans/status"]);
    assert_eq!(rig.approved().await.unwrap(), ["hinge.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["hinge.v1.1.0"]);
}

async fn without_the_remedy_it_ends_and_says_which_there_is_and_a_retry_with_it_goes_on(
    world: World,
) {
    let defined = Defined { group: "latch.example.com", kind: "Bar", plural: "bars" };
    let kind = Kind::new("latch.example.com", "v1", "Bar", "bars");
    let rig = Rig::start(world, "no-remedy", &stricter("latch", defined)).await.unwrap();
    rig.install(&[("latch", "1.0.0")]).await.unwrap();
    put(&rig, kind, "big", 9).await;
    let _agent = rig.agent_with(Remedies::Enabled).await.unwrap();
    let item = json!({"package": "latch", "from": "latch.v1.0.0", "to": "latch.v1.1.0",
        "fromVersion": "1.0.0", "toVersion": "1.1.0"});
    let step = json!({"namespace": rig.namespace, "moves": [item]});
    let mut more = in_spite_of_all(&[]);
    more["type"] = json!("Plan");
    more["targets"] = Value::Null;
    more["plan"] = json!({"steps": [step]});
    rig.order_with(&["latch"], &more).await.unwrap();
    let failed = rig.until_state("Failed").await.unwrap();
    assert_eq!(failed["failure"]["reason"], "InstallPlanFailed", "{failed}");
    assert!(failed["failure"]["message"].as_str().unwrap().contains(TOO_RESTRICTIVE), "{failed}");
    let advice = failed["failure"]["remediation"].as_str().unwrap();
    assert!(advice.contains("RetryFailedInstallPlan"), "{advice}");
    assert_eq!(written(&rig), ["patch installplans"]);
    correct(&rig, kind, "big", 5).await;
    let again = json!({"attempt": 1, "remedies": ["RetryFailedInstallPlan"]});
    rig.change(&again).await.unwrap();
    rig.until(|status| status["attempt"] == 1 && status["state"] == "Succeeded").await.unwrap();
    assert_eq!(written(&rig), ["patch installplans", "patch installplans/status"]);
    assert_eq!(rig.csvs().await.unwrap(), ["latch.v1.1.0"]);
}

async fn a_step_that_olm_gave_up_is_taken_back_and_made_anew(world: World) {
    let defined = Defined { group: "spool.example.com", kind: "Reel", plural: "reels" };
    let kind = Kind::new("spool.example.com", "v1", "Reel", "reels");
    let rig = Rig::start(world, "made-anew", &stricter("spool", defined)).await.unwrap();
    rig.install(&[("spool", "1.0.0")]).await.unwrap();
    put(&rig, kind, "big", 9).await;
    let _agent = rig.agent_with(Remedies::Enabled).await.unwrap();
    let more = in_spite_of_all(&["RemakeFailedInstallPlan"]);
    rig.order_with(&["spool"], &more).await.unwrap();
    let tries = |status: &Value| insight(status, "InstallPlanFailed").is_some();
    rig.until(tries).await.unwrap();
    // OLM looked at it before; it looks again at the next plan only.
    let is_taken_back =
        || async { Ok(written(&rig).contains(&"delete installplans".to_owned()).then_some(())) };
    rig.objects.until("a step that is taken back", is_taken_back).await.unwrap();
    correct(&rig, kind, "big", 5).await;
    rig.until_state("Succeeded").await.unwrap();
    let mut written = written(&rig);
    // OLM clears the Subscription's reference by itself, or never: only then the agent does, here.
    if written.get(3).is_some_and(|write| write == "patch subscriptions/status") {
        written.remove(3);
    }
    assert_eq!(
        written,
        [
            "patch installplans",
            "delete clusterserviceversions",
            "delete installplans",
            "patch installplans",
        ]
    );
    assert_eq!(rig.csvs().await.unwrap(), ["spool.v1.1.0"]);
}

const POLICY: Kind = Kind::new(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
);
const BINDING: Kind = Kind::new(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
);
const CONFIG_MAP: Kind = Kind::new("", "v1", "ConfigMap", "configmaps");

/// Nobody makes a ConfigMap of this name in the rig's namespace any more.
async fn deny(rig: &Rig, name: &str) {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"]}]);
    let validation = json!({"expression": format!("object.metadata.name != '{name}'"),
        "message": "not in this house", "reason": "Invalid"});
    let policy = json!({"metadata": {"name": rig.namespace}, "spec": {"failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules}, "validations": [validation]}});
    rig.objects.create(POLICY, "", &policy).await.unwrap();
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": rig.namespace}});
    let binding = json!({"metadata": {"name": rig.namespace}, "spec": {
        "policyName": rig.namespace, "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selector}}});
    rig.objects.create(BINDING, "", &binding).await.unwrap();
    let object = json!({"metadata": {"name": name, "namespace": rig.namespace}});
    let look = || async {
        if rig.objects.create(CONFIG_MAP, &rig.namespace, &object).await.is_err() {
            return Ok(Some(()));
        }
        rig.objects.delete(CONFIG_MAP, &rig.namespace, name).await?;
        Ok(None)
    };
    rig.objects.until("a policy in force", look).await.unwrap();
}

async fn allow(rig: &Rig) {
    rig.objects.delete(BINDING, "", &rig.namespace).await.unwrap();
    rig.objects.delete(POLICY, "", &rig.namespace).await.unwrap();
}

/// Two versions of which the second brings a ConfigMap.
fn with_settings<'a>(package: &'a str, name: &str) -> [Release<'a>; 2] {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"key": "value"}});
    [
        Release::new(package, "1.0.0"),
        Release::new(package, "1.1.0").replaces("1.0.0").with(settings),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_a_policy_forbids_ends_with_the_policys_words() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let rig =
        Rig::start(cluster, "forbidden", &with_settings("gate", "gate-settings")).await.unwrap();
    rig.install(&[("gate", "1.0.0")]).await.unwrap();
    deny(&rig, "gate-settings").await;
    let _agent = rig.agent().await.unwrap();
    rig.order(&["gate"]).await.unwrap();
    let failed = rig.until_state("Failed").await.unwrap();
    allow(&rig).await;
    assert_eq!(failed["failure"]["reason"], "InstallPlanFailed", "{failed}");
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("denied request: not in this house"), "{message}");
    assert_eq!(insight(&failed, "InstallPlanFailed"), Some(message), "{failed}");
    assert_eq!(written(&rig), ["patch installplans"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_a_policy_forbade_is_tried_again() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let releases = with_settings("fence", "fence-settings");
    let rig = Rig::start(cluster, "forbade", &releases).await.unwrap();
    rig.install(&[("fence", "1.0.0")]).await.unwrap();
    deny(&rig, "fence-settings").await;
    let _agent = rig.agent_with(Remedies::Enabled).await.unwrap();
    rig.order_with(&["fence"], &json!({"remedies": ["RetryFailedInstallPlan"]})).await.unwrap();
    let is_tried = || async {
        Ok(written(&rig).contains(&"patch installplans/status".to_owned()).then_some(()))
    };
    rig.objects.until("another try", is_tried).await.unwrap();
    allow(&rig).await;
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(rig.approved().await.unwrap(), ["fence.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["fence.v1.1.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remedies_that_are_disabled_on_the_cluster_are_not_taken_and_that_is_said() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let releases = with_settings("stile", "stile-settings");
    let rig = Rig::start(cluster, "disabled", &releases).await.unwrap();
    rig.install(&[("stile", "1.0.0")]).await.unwrap();
    deny(&rig, "stile-settings").await;
    let _agent = rig.agent_with(Remedies::Disabled).await.unwrap();
    rig.order_with(&["stile"], &json!({"remedies": ["RetryFailedInstallPlan"]})).await.unwrap();
    let failed = rig.until_state("Failed").await.unwrap();
    allow(&rig).await;
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("remedies are disabled on this cluster"), "{message}");
    assert_eq!(written(&rig), ["patch installplans"]);
}

async fn a_neighbour_that_is_stuck_holds_and_is_named(world: World) {
    let mut stuck = Release::new("cart", "1.1.0").replaces("1.0.0");
    stuck.min_kube_version = Some("1.99.0");
    let first = [Release::new("cart", "1.0.0"), stuck.clone(), Release::new("horse", "2.0.0")];
    let mut rig = Rig::start(world, "neighbour", &first).await.unwrap();
    rig.install(&[("cart", "1.0.0"), ("horse", "2.0.0")]).await.unwrap();
    // A person approves what can never be installed here.
    rig.until_offered("cart", "cart.v1.1.0").await.unwrap();
    rig.approve(&[csv_name("cart", "1.1.0")]).await.unwrap();
    let at = (rig.namespace.as_str(), "cart.v1.1.0");
    let is_stuck = |csv: &Value| csv["status"]["phase"] == "Pending";
    rig.objects.until_object(CSV, at, is_stuck).await.unwrap();
    let second = [first.as_slice(), &[Release::new("horse", "2.1.0").replaces("2.0.0")]].concat();
    rig.serve(&second).await.unwrap();
    let _agent = rig.agent_with(Remedies::Enabled).await.unwrap();
    rig.order(&["horse"]).await.unwrap();
    let is_named = |status: &Value| {
        let message = status["message"].as_str().unwrap_or_default();
        status["state"] == "Blocked"
            && message.contains("cart.v1.1.0 is Pending/RequirementsNotMet")
            && message.contains("minKubeVersion (1.99.0) > server version")
    };
    let held = rig.until(is_named).await.unwrap();
    assert!(rig.writes().unwrap().is_empty(), "{held} {:?}", rig.writes());
    // OLM offers the neighbour nothing either.
    let plans = rig.objects.list(INSTALL_PLAN, &rig.namespace).await.unwrap();
    assert!(!json!(plans).to_string().contains("horse.v2.1.0"), "{plans:?}");
}

async fn a_csv_that_nobody_refers_to_is_adopted_and_upgraded(world: World) {
    let releases = [Release::new("raft", "1.0.0"), Release::new("raft", "1.1.0").replaces("1.0.0")];
    let rig = Rig::start(world, "adopted", &releases).await.unwrap();
    rig.install(&[("raft", "1.0.0")]).await.unwrap();
    rig.until_offered("raft", "raft.v1.1.0").await.unwrap();
    rig.objects.delete(SUBSCRIPTION, &rig.namespace, "raft").await.unwrap();
    rig.subscribe("raft", None).await.unwrap();
    let _agent = rig.agent_with(Remedies::Enabled).await.unwrap();
    rig.order_with(&["raft"], &json!({"remedies": ["AdoptOrphanCSV"]})).await.unwrap();
    rig.until_state("Succeeded").await.unwrap();
    assert_eq!(written(&rig), ["patch subscriptions/status", "patch installplans"]);
    assert_eq!(rig.approved().await.unwrap(), ["raft.v1.1.0"]);
    assert_eq!(rig.csvs().await.unwrap(), ["raft.v1.1.0"]);
}

in_both_worlds! {
    shared_if_long {
        a_plan_that_olm_gave_up_is_tried_again_once_the_objects_fit,
        without_the_remedy_it_ends_and_says_which_there_is_and_a_retry_with_it_goes_on,
        a_step_that_olm_gave_up_is_taken_back_and_made_anew,
        a_neighbour_that_is_stuck_holds_and_is_named,
        a_csv_that_nobody_refers_to_is_adopted_and_upgraded,
    }
}
