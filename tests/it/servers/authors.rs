//! What an operator's author lets be read of its objects while a real OLM installs it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Cluster,
    crds::{correct, put},
    objects::Kind,
    operators::{Defined, Release, Version},
    rig::Rig,
    workloads::Rollout,
};

/// The status sources of `tub`: one that the agent may read, one that it may not.
fn sources() -> Value {
    json!([
        {"name": "brew", "versions": ">=1.1.0",
            "objects": [{"variable": "brew", "apiVersion": "tub.example.com/v1", "kind": "Brew",
                "name": "main"}],
            "progress": "brew.spec.size * 100 / 8",
            "message": "'brewed ' + string(brew.spec.size) + ' of 8'",
            "conditions": [{"type": "tub.example.com/Brewing", "status": "brew.spec.size < 8",
                "message": "brew.metadata.namespace"}]},
        {"name": "roles", "versions": ">=1.1.0",
            "objects": [{"variable": "roles", "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role"}],
            "conditions": [{"type": "Guarded", "status": "size(roles) > 0"}]},
    ])
}

fn conditions(status: &Value) -> Vec<[&str; 4]> {
    let all = status["operatorConditions"].as_array().into_iter().flatten();
    let own = all.filter(|condition| condition["type"] != "Upgradeable");
    own.map(|c| ["csv", "type", "status", "reason"].map(|f| c[f].as_str().unwrap_or_default()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authors_progress_and_conditions_are_those_of_its_objects() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    let brew = Defined { group: "tub.example.com", kind: "Brew", plural: "brews" };
    let kind = Kind::new("tub.example.com", "v1", "Brew", "brews");
    let definition = brew.definition(&[Version::new("v1", None).stored()]);
    let mut new = Release::new("tub", "1.1.0").replaces("1.0.0").with(definition.clone());
    new.properties.push(json!({"type": "io.wavelift.release.v1alpha1",
        "value": {"statusSources": sources()}}));
    let releases = [Release::new("tub", "1.0.0").with(definition), new];
    let rig = Rig::start(cluster, "authors", &releases).await.unwrap();
    rig.install(&[("tub", "1.0.0")]).await.unwrap();
    put(&rig, kind, "main", 2).await;
    rig.workloads.tell("tub", Rollout::Never);
    let agent = rig.agent().await.unwrap();
    rig.order(&["tub"]).await.unwrap();
    // 50 and 40 times 26 of 102: besides there are a CSV, which is not yet well, and a replica.
    let percent = |wanted: i64| move |status: &Value| status["steps"][0]["percent"] == wanted;
    let early = rig.until(percent(60)).await.unwrap();
    assert!(early["message"].as_str().unwrap().ends_with("; brewed 2 of 8"), "{early}");
    let told = [
        ["tub.v1.1.0", "tub.example.com/Brewing", "True", "tub.example.com/Brewing"],
        ["tub.v1.1.0", "Guarded", "Unknown", "ObjectNotRead"],
    ];
    assert_eq!(conditions(&early), told);
    let words = early["operatorConditions"].to_string();
    assert!(words.contains("not allowed: roles.rbac.authorization.k8s.io is forbidden"), "{words}");
    let counted = agent.metrics.encode().unwrap();
    let series = "wavelift_agent_operator_condition{csv=\"tub.v1.1.0\",\
        status=\"True\",type=\"tub.example.com/Brewing\"} 1";
    assert!(counted.contains(series), "{counted}");
    correct(&rig, kind, "main", 6).await;
    rig.until(percent(79)).await.unwrap();
    correct(&rig, kind, "main", 8).await;
    rig.until(|status| conditions(status).iter().any(|c| c[2] == "False")).await.unwrap();
    rig.workloads.tell_now("tub", Rollout::Well(Duration::ZERO));
    rig.until_state("Succeeded").await.unwrap();
}
