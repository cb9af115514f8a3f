//! A campaign by its command line alone, as a person or a script would run it.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};
use wavelift_api::live::PhaseName;
use wavelift_sim::apiserver::gk;
use wavelift_sim::workload::Behaviour;

use crate::stage::{Stage, answer, options, soon, wavelift};

/// Six clusters of which one is not heard, one is held at first and one fails.
async fn stage() -> Stage {
    Stage::set(&options(7, 6, 10.0)).await
}

/// Makes the operator that never gets available on a cluster available.
fn heal(stage: &Stage, cluster: &str) {
    let member = stage.fleet.members().iter().find(|member| member.name() == cluster).unwrap();
    member.sim().with_workload(|workload| {
        workload.unscript("kiln-operator.v1.0.0");
        let at_once = Behaviour::Available { after: Duration::ZERO };
        workload.change("kiln-system", "kiln-operator", at_once);
    });
}

/// What the scenario of the stage says, as data.
fn with_fault(stage: &Stage, kind: &str) -> String {
    let scenario = serde_json::to_value(wavelift_demo::Scenario::new(7, 6)).unwrap();
    assert_eq!(stage.fleet.members().len(), 6);
    let clusters = scenario["clusters"].as_array().unwrap();
    let found = clusters.iter().find(|cluster| cluster["fault"]["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}"))["name"].as_str().unwrap().to_owned()
}

/// A cluster on which nothing goes wrong by itself.
fn healthy(stage: &Stage) -> String {
    let scenario = serde_json::to_value(wavelift_demo::Scenario::new(7, 6)).unwrap();
    assert_eq!(stage.fleet.members().len(), 6);
    let clusters = scenario["clusters"].as_array().unwrap();
    let calm = |cluster: &&Value| {
        cluster["fault"].is_null() && cluster["installed"]["lantern-operator"] == "1.4.0"
    };
    clusters.iter().find(calm).unwrap()["name"].as_str().unwrap().to_owned()
}

/// An operator of the cluster says whether it may be upgraded, and OLM has heard it.
async fn upgradeable(stage: &Stage, cluster: &str, status: &str) {
    let member = stage.fleet.members().iter().find(|member| member.name() == cluster).unwrap();
    let condition = json!({
        "type": "Upgradeable", "status": status, "reason": "Test", "message": "says the test",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    });
    let (namespace, csv) = (Some("lantern-system"), "lantern-operator.v1.4.0");
    let store = member.sim().store();
    store
        .modify(&gk::OPERATOR_CONDITION, namespace, csv, |object| {
            object["spec"]["conditions"] = json!([condition]);
        })
        .unwrap();
    let heard = async {
        let mut changes = store.subscribe();
        loop {
            let object = store.get(&gk::OPERATOR_CONDITION, namespace, csv).unwrap();
            if object["status"]["conditions"][0]["status"] == status {
                return;
            }
            changes.next().await;
        }
    };
    soon("OLM to hear of the condition", heard).await;
}

/// The campaign as a file; JSON is YAML.
fn file(stage: &Stage) -> PathBuf {
    let path = stage.folder().join("demo.yaml");
    std::fs::write(&path, serde_json::to_string(&stage.cast.campaign).unwrap()).unwrap();
    path
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_goes_from_preview_to_its_end() {
    let stage = stage().await;
    let run = |args: Vec<String>| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = stage.command(wavelift(), &args);
        async move { answer(&mut command).await }
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let held = healthy(&stage);
    let failing = with_fault(&stage, "neverAvailable");
    upgradeable(&stage, &held, "False").await;

    let file = file(&stage);
    let shown = run(vec!["preview".into(), "-f".into(), file.display().to_string()]).await.good();
    contains(&shown, &["Plan demo: ", "ferry-operator", "via 2.1.0, 2.2.0", "canary", "sha256:"]);
    contains(&shown, &["Nothing was changed. Next: wavelift preflight demo"]);

    // A held cluster blocks the verdict, and the table says by which check.
    let checked = run(words("preflight demo")).await;
    assert_eq!(checked.code, 3, "{checked:?}");
    contains(&checked.out, &["operator-upgradeable", "Verdict: BLOCKED", &held]);

    let refused = run(words("launch demo")).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    contains(&refused.err, &["launching needs --yes where nobody can be asked"]);
    let tried = run(words("launch demo --yes --dry-run server")).await.good();
    contains(&tried, &["Halts at", "fleetupgrade.wavelift.io/demo launched (server dry run)"]);
    let named = run(words("launch demo --yes -o name")).await.good();
    assert_eq!(named, "fleetupgrade.wavelift.io/demo launched\n");
    stage.until(|upgrade| upgrade.view.row.phase == PhaseName::Running).await;
    let again = run(words("launch demo --yes")).await.good();
    assert_eq!(again, "fleetupgrade.wavelift.io/demo already launched\n");

    run(words("pause demo")).await.good();
    stage.until(|upgrade| upgrade.view.row.phase == PhaseName::Paused).await;
    let status = run(words("status demo -o json")).await.json();
    assert_eq!(status["upgrade"]["control"], "Paused");
    let late = run(words("status demo --watch --timeout 0")).await;
    assert_eq!(late.code, 6, "{late:?}");
    run(words("freeze demo")).await.good();
    stage.until(|upgrade| upgrade.view.row.phase == PhaseName::Frozen).await;
    upgradeable(&stage, &held, "True").await;
    run(words("resume demo")).await.good();
    let twice = run(words("resume demo")).await.good();
    assert_eq!(twice, "fleetupgrade.wavelift.io/demo already resumed\n");

    let followed = run(words("status demo --watch")).await;
    assert_eq!(followed.code, 0, "{followed:?}");
    let last = followed.out.lines().last().unwrap();
    contains(last, &["demo SucceededWithFailures: 4 of 6 clusters done, 1 failed"]);
    let warned = run(words("status demo --fail-on warn")).await;
    assert_eq!(warned.code, 4, "{warned:?}");
    contains(&warned.out, &["= Waves =", "= Health =", "Completion:   66%"]);

    let failed = run(words("clusters demo --state Failed,Stalled -o name")).await.good();
    assert_eq!(failed, format!("{failing}\n"));
    let one = run(words(&format!("status demo --cluster {failing}"))).await.good();
    contains(&one, &["Stalled", "DeploymentNotAvailable", "What next: "]);
    contains(&one, &[&format!("wavelift retry demo --cluster {failing}")]);
    stage.strike().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_skipped_and_retried_and_a_campaign_is_cancelled() {
    let stage = stage().await;
    let held = healthy(&stage);
    upgradeable(&stage, &held, "False").await;
    stage.preview().await;
    let early = answer(&mut stage.command(wavelift(), &["retry", "demo", "-c", "x"])).await;
    contains(&early.bad(1), &["not launched yet"]);
    stage.launch().await;
    let skipped = answer(&mut stage.command(wavelift(), &["skip", "demo", "-c", &held])).await;
    assert_eq!(skipped.good(), format!("{held} to be skipped\n"));
    let upgrade = stage.until(|upgrade| upgrade.view.row.summary.skipped == 1).await;
    let cluster = upgrade.clusters.iter().find(|cluster| cluster.row.name == held).unwrap();
    assert_eq!(json!(cluster.row.state), "Skipped");

    let failing = with_fault(&stage, "neverAvailable");
    stage.until(|upgrade| upgrade.view.row.summary.failed == 1).await;
    let typo = answer(&mut stage.command(wavelift(), &["retry", "demo", "-c", "prod-x"])).await;
    contains(&typo.bad(1), &["prod-x"]);
    let retried = answer(&mut stage.command(wavelift(), &["retry", "demo", "-c", &failing])).await;
    assert_eq!(retried.good(), format!("{failing} to be retried\n"));
    // What is broken holds the second attempt; then somebody repairs it.
    heal(&stage, &failing);
    stage
        .until(|upgrade| {
            let retried = upgrade.clusters.iter().find(|cluster| cluster.row.name == failing);
            retried.is_some_and(|cluster| cluster.attempt == 1)
        })
        .await;

    let asked = answer(&mut stage.command(wavelift(), &["cancel", "demo"])).await;
    contains(&asked.bad(1), &["--yes"]);
    let gone = answer(&mut stage.command(wavelift(), &["cancel", "demo", "--yes"])).await;
    assert_eq!(gone.good(), "fleetupgrade.wavelift.io/demo cancelled\n");
    stage.until(|upgrade| upgrade.view.row.phase == PhaseName::Cancelled).await;
    let over = answer(&mut stage.command(wavelift(), &["resume", "demo"])).await;
    contains(&over.bad(1), &["a new attempt is a new FleetUpgrade"]);
    let ended = answer(&mut stage.command(wavelift(), &["status", "demo"])).await;
    assert_eq!(ended.code, 3, "{ended:?}");
    stage.strike().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_say_what_to_do_and_the_objects_speak_without_the_hub() {
    let stage = stage().await;
    let run = |args: &'static [&'static str]| {
        let mut command = stage.command(wavelift(), args);
        async move { answer(&mut command).await }
    };
    contains(
        &run(&["preview", "nothing"]).await.bad(1),
        &["no FleetUpgrade nothing", "is -n right"],
    );
    contains(&run(&["status", "nothing"]).await.bad(1), &["nothing"]);
    contains(&run(&["preview"]).await.bad(2), &["required"]);
    contains(&run(&["fly"]).await.bad(2), &["fly"]);
    contains(&run(&["preview", "-f", "/nowhere.yaml"]).await.bad(1), &["/nowhere.yaml"]);
    contains(
        &run(&["status", "--url", "http://127.0.0.1:1"]).await.bad(1),
        &["cannot reach the hub", "WAVELIFT_URL"],
    );
    contains(&run(&["status", "--kubeconfig", "/nowhere"]).await.bad(1), &["/nowhere"]);
    let empty = run(&["status"]).await;
    assert_eq!((empty.code, empty.out.as_str()), (0, ""), "{empty:?}");
    contains(&empty.err, &["No FleetUpgrades in namespace wavelift", "preview -f FILE"]);

    stage.preview().await;
    stage.launch().await;
    stage.ended().await;
    // The hub is not asked: what the objects say is shown.
    let alone = |args: &'static [&'static str]| {
        let mut command = stage.command(wavelift(), args);
        command.env_remove("WAVELIFT_URL");
        async move { answer(&mut command).await }
    };
    let list: Value = alone(&["status", "-A", "-o", "json"]).await.json();
    assert_eq!(list["items"][0]["summary"]["clusters"], 6);
    let status = alone(&["status", "demo"]).await.good();
    contains(&status, &["SucceededWithFailures", "canary", "Complete"]);
    let clusters = alone(&["clusters", "demo", "--state", "Succeeded", "-o", "name"]).await.good();
    assert_eq!(clusters.lines().count(), 4, "{clusters}");
    stage.strike().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_answers_to_the_names_of_plugins() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str, args: &[&str]| {
        let path = folder.path().join(name);
        if !path.exists() {
            std::os::unix::fs::symlink(wavelift(), &path).unwrap();
        }
        let mut command = tokio::process::Command::new(path);
        command.args(args);
        async move { answer(&mut command).await.good() }
    };
    contains(&named("kubectl-wavelift", &["--help"]).await, &["Usage: kubectl wavelift"]);
    contains(&named("oc-wavelift", &["--help"]).await, &["Usage: oc wavelift"]);
    let choices = named("kubectl_complete-wavelift", &["pre"]).await;
    assert_eq!(choices, "preflight\npreview\n:4\n");
    let flags = named("oc_complete-wavelift", &["launch", "--y"]).await;
    assert_eq!(flags, "--yes\n:4\n");
    for shell in ["bash", "zsh", "fish"] {
        let mut command = tokio::process::Command::new(wavelift());
        let script = answer(command.args(["completion", shell])).await.good();
        contains(&script, &["wavelift", "preflight"]);
    }
}
