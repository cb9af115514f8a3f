//! The command line: mistakes, what the objects alone say, and the names it answers to.

use serde_json::Value;

use crate::stage::{Stage, answer, options, wavelift};

/// Six clusters of which one is not heard, one is held at first and one fails.
async fn stage() -> Stage {
    Stage::set(&options(7, 6, 10.0)).await
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
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
