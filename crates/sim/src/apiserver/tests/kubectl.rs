//! A real kubectl over loopback. Skipped with one line where there is none, unless
//! `WAVELIFT_REQUIRE_ALL=1`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

use super::{GADGET, mk_gadget, server, soon};
use crate::apiserver::{ApiServer, Served, gk};

const GADGET_YAML: &str = "
apiVersion: test.wavelift.io/v1alpha1
kind: Gadget
metadata: {name: one, labels: {env: prod}}
spec: {size: 3, note: hello}
";

struct Kubectl {
    program: PathBuf,
    dir: tempfile::TempDir,
    _served: Served,
}

impl Kubectl {
    /// Makes the server reachable for kubectl, where there is one.
    async fn start(server: &ApiServer) -> Option<Self> {
        let program = wavelift_runtime::testing::kubectl_or_skip()?;
        let dir = tempfile::tempdir().unwrap();
        let served = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
        served.write_kubeconfig("sim", &dir.path().join("kubeconfig")).unwrap();
        Some(Self { program, dir, _served: served })
    }

    fn command(&self, args: &[&str]) -> Command {
        let at = |name: &str| self.dir.path().join(name);
        let mut command = Command::new(&self.program);
        command
            .env("KUBECONFIG", at("kubeconfig"))
            .env("HOME", self.dir.path())
            .arg("--cache-dir")
            .arg(at("cache"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// What it printed; the error output follows when it failed.
    async fn run(&self, args: &[&str], input: &str) -> Result<String, String> {
        let mut child = self.command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = soon(child.wait_with_output()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_applies_shows_changes_and_deletes_our_kinds() {
    let server = server();
    let Some(kubectl) = Kubectl::start(&server).await else { return };
    let run = async |args: &str, input: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        kubectl.run(&args, input).await
    };
    assert_eq!(
        run("apply -f -", GADGET_YAML).await.unwrap(),
        "gadget.test.wavelift.io/one created\n"
    );
    assert_eq!(
        run("apply -f -", GADGET_YAML).await.unwrap(),
        "gadget.test.wavelift.io/one unchanged\n"
    );
    let bigger = GADGET_YAML.replace("size: 3", "size: 4");
    assert_eq!(
        run("apply -f -", &bigger).await.unwrap(),
        "gadget.test.wavelift.io/one configured\n"
    );
    let wrong = GADGET_YAML.replace("size: 3", "sise: 3");
    let refused = run("apply -f -", &wrong).await.unwrap_err();
    assert!(refused.contains("unknown field \"spec.sise\""), "{refused}");

    let table = run("get gd", "").await.unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "SIZE", "READY", "AGE"]);
    assert_eq!(rows[1], ["one", "4", "0s"]);
    assert!(run("get gadgets -o wide -A", "").await.unwrap().contains("hello"));
    assert_eq!(
        run("get all -o name -l env=prod", "").await.unwrap(),
        "gadget.test.wavelift.io/one\n"
    );

    let applied = run("apply --server-side --field-manager=ops -f -", &bigger).await.unwrap();
    assert_eq!(applied, "gadget.test.wavelift.io/one serverside-applied\n");
    run("patch gadget one --type=merge -p {\"spec\":{\"size\":5}}", "").await.unwrap();
    let refused = run("apply --server-side --field-manager=ops -f -", &bigger).await.unwrap_err();
    assert!(
        refused.contains("conflict with \"kubectl-patch\"") && refused.contains(".spec.size"),
        "{refused}"
    );
    run("label gadget one tier=gold", "").await.unwrap();
    let found = server.store().get(&GADGET, Some("default"), "one").unwrap();
    assert_eq!(found["metadata"]["labels"], json!({"env": "prod", "tier": "gold"}));
    assert_eq!(found["spec"]["size"], 5);

    let explained = run("explain gadget.spec.size", "").await.unwrap();
    assert!(
        explained.contains("FIELD: size <integer>") && explained.contains("How big it is."),
        "{explained}"
    );
    assert_eq!(run("delete gadget one", "").await.unwrap().lines().count(), 1);
    assert!(server.store().list(&GADGET, None).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_describes_waits_and_watches() {
    let server = server();
    let Some(kubectl) = Kubectl::start(&server).await else { return };
    let made = server.store().create(&GADGET, mk_gadget("one", &json!({"size": 3}))).unwrap();
    let event = json!({"metadata": {"name": "e", "namespace": "default"}, "type": "Warning",
        "reason": "Stuck", "message": "it does not move", "count": 1,
        "firstTimestamp": "2026-02-01T11:50:00Z", "lastTimestamp": "2026-02-01T11:50:00Z",
        "involvedObject": {"kind": "Gadget", "name": "one", "namespace": "default",
            "uid": made["metadata"]["uid"]}});
    server.store().create(&gk::EVENT, event).unwrap();
    let described = kubectl.run(&["describe", "gadget", "one"], "").await.unwrap();
    assert!(described.contains("it does not move") && described.contains("Size:"), "{described}");
    let events = kubectl.run(&["get", "events"], "").await.unwrap();
    assert!(events.contains("gadget/one") && events.contains("10m"), "{events}");

    let mut watching = kubectl.command(&["get", "gadgets", "-w", "--no-headers"]).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut waiting = kubectl
        .command(&["wait", "--for=condition=Ready", "gadget/one", "--timeout=60s"])
        .spawn()
        .unwrap();
    let first = soon(lines.next_line()).await.unwrap().unwrap();
    assert_eq!(first.split_whitespace().collect::<Vec<_>>(), ["one", "3", "0s"]);
    server
        .store()
        .modify(&GADGET, Some("default"), "one", |g| {
            g["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        })
        .unwrap();
    let second = soon(lines.next_line()).await.unwrap().unwrap();
    assert_eq!(second.split_whitespace().collect::<Vec<_>>(), ["one", "3", "True", "0s"]);
    assert!(soon(waiting.wait()).await.unwrap().success());
    watching.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works_on_built_in_kinds_and_definitions() {
    let server = server();
    let Some(kubectl) = Kubectl::start(&server).await else { return };
    let objects = "
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: one}, {name: side, image: two}]}
";
    kubectl.run(&["apply", "-f", "-"], objects).await.unwrap();
    let changed = objects.replace("image: one", "image: three");
    kubectl.run(&["apply", "-f", "-"], &changed).await.unwrap();
    let web = server.store().get(&gk::DEPLOYMENT, Some("team"), "web").unwrap();
    assert_eq!(
        web["spec"]["template"]["spec"]["containers"],
        json!([
        {"name": "main", "image": "three"}, {"name": "side", "image": "two"}])
    );
    kubectl.run(&["delete", "namespace", "team"], "").await.unwrap();
    assert!(server.store().list(&gk::DEPLOYMENT, None).is_empty());

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/apiserver/tests/gadgets.yaml");
    kubectl.run(&["delete", "crd", "gadgets.test.wavelift.io"], "").await.unwrap();
    kubectl.run(&["apply", "-f", file.to_str().unwrap()], "").await.unwrap();
    let condition = ["wait", "--for=condition=Established", "crd/gadgets.test.wavelift.io"];
    kubectl.run(&condition, "").await.unwrap();
    kubectl.run(&["apply", "-f", "-"], GADGET_YAML).await.unwrap();
    assert_eq!(server.store().list(&GADGET, None).len(), 1);
}
