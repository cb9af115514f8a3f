//! A real kubectl on a living fleet: all of a campaign without any program of ours.

use std::{fs, path::PathBuf, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
};
use wavelift_api::live::PhaseName;
use wavelift_runtime::testing::kubectl_or_skip;

use crate::stage::{Answer, Stage, answer, options, soon};

/// A FleetUpgrade as a person writes it; `AT_ONCE` is what is changed later.
const BY_HAND: &str = "\
apiVersion: wavelift.io/v1alpha1
kind: FleetUpgrade
metadata:
  name: by-hand
spec:
  targets:
    operators:
    - package: lantern-operator
      version: 1.5.0
  clusters:
    labelSelector:
      matchLabels: {fleet: demo}
  waves:
  - name: all
    selector: {}
    maxConcurrent: AT_ONCE
    maxFailures: 9
";

/// kubectl, pointed at a stage.
struct Kubectl<'a> {
    program: PathBuf,
    stage: &'a Stage,
}

impl Kubectl<'_> {
    fn command(&self, args: &str) -> tokio::process::Command {
        let args: Vec<&str> = args.split(' ').collect();
        let mut command = self.stage.command(&self.program, &args);
        command.arg("--cache-dir").arg(self.stage.folder().join("cache"));
        command
    }

    async fn answer(&self, args: &str) -> Answer {
        answer(&mut self.command(args)).await
    }

    async fn good(&self, args: &str) -> String {
        self.answer(args).await.good()
    }

    /// Starts it; its lines come while it goes on.
    fn start(&self, args: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines)
    }

    /// A file with the FleetUpgrade that is written by hand.
    fn by_hand(&self, at_once: &str) -> String {
        let file = self.stage.folder().join("by-hand.yaml");
        fs::write(&file, BY_HAND.replace("AT_ONCE", at_once)).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_applies_explains_and_deletes_campaigns() {
    let Some(program) = kubectl_or_skip() else { return };
    let stage = Stage::set(&options(6, 3, 10.0)).await;
    let kubectl = Kubectl { program, stage: &stage };
    let object = "fleetupgrade.wavelift.io/by-hand";
    let file = kubectl.by_hand("2");
    // Ten failures are tolerated, so two at once ask for no mode.
    assert_eq!(kubectl.good(&format!("apply -f {file}")).await, format!("{object} created\n"));
    assert_eq!(kubectl.good(&format!("apply -f {file}")).await, format!("{object} unchanged\n"));
    let file = kubectl.by_hand("3");
    assert_eq!(kubectl.good(&format!("apply -f {file}")).await, format!("{object} configured\n"));
    let at_once = "get flup by-hand -o jsonpath={.spec.waves[0].maxConcurrent}";
    assert_eq!(kubectl.good(at_once).await, "3");

    let told = kubectl.answer(&format!("apply --server-side -f {}", kubectl.by_hand("4"))).await;
    assert!(told.err.contains("conflict"), "client-side apply owns the waves: {told:?}");
    let file = kubectl.by_hand("4");
    let forced = format!("apply --server-side --force-conflicts -f {file}");
    assert_eq!(kubectl.good(&forced).await, format!("{object} serverside-applied\n"));
    assert_eq!(kubectl.good(at_once).await, "4");

    let told = kubectl.answer(&format!("apply -f {}", kubectl.by_hand("0"))).await;
    assert!(told.err.contains("spec.waves[0].maxConcurrent"), "{told:?}");

    let explained = kubectl.good("explain fleetupgrade.spec.waves.maxFailures").await;
    for part in ["GROUP:      wavelift.io", "KIND:       FleetUpgrade", "FIELD: maxFailures"] {
        assert!(explained.contains(part), "no {part:?} in {explained}");
    }

    let wait = "wait --for=jsonpath={.status.phase}=Previewed flup/by-hand --timeout=300s";
    let told = kubectl.good(wait).await;
    assert_eq!(told, format!("{object} condition met\n"));
    // Newer releases also say from where.
    let told = kubectl.good("delete flup by-hand").await;
    assert!(told.starts_with("fleetupgrade.wavelift.io \"by-hand\" deleted"), "{told}");
    let told = kubectl.answer("get flup by-hand").await.bad(1);
    assert!(told.contains("NotFound"), "{told}");
    stage.strike().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_alone_takes_a_campaign_to_its_end() {
    let Some(program) = kubectl_or_skip() else { return };
    // One is not heard, one is held at first, and one fails.
    let stage = Stage::set(&options(6, 8, 10.0)).await;
    let kubectl = Kubectl { program, stage: &stage };
    let file = stage.folder().join("demo.json");
    fs::write(&file, serde_json::to_string(&stage.cast.campaign).unwrap()).unwrap();
    let (watching, mut seen) = kubectl.start("get fleetupgrades -w");
    kubectl.good(&format!("apply --server-side -f {}", file.display())).await;
    stage.until(|u| u.view.row.phase == PhaseName::Previewed).await;
    kubectl.good("patch flup demo --type=merge -p {\"spec\":{\"stage\":\"Preflight\"}}").await;
    stage.until(|u| u.view.row.phase == PhaseName::Preflighted).await;
    let digest = kubectl.good("get flup demo -o jsonpath={.status.planDigest}").await;
    let launch = format!(r#"{{"spec":{{"stage":"Rollout","planDigest":"{digest}"}}}}"#);
    kubectl.good(&format!("patch flup demo --type=merge -p {launch}")).await;
    let waiting =
        kubectl.command("wait --for=condition=Succeeded fleetupgrade/demo --timeout=900s");
    let waiting = tokio::spawn(async move { answer(&mut { waiting }).await });

    let running = find(&mut seen, "Running").await;
    assert_eq!(running.split_whitespace().nth(1), Some("Rollout"), "{running}");
    let table = kubectl.good("get fleetupgrades").await;
    let headers: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    let usual = ["NAME", "STAGE", "CLUSTERS", "DONE", "FAILED", "READY", "STATUS"];
    assert_eq!(headers, [&usual[..], &["AGE"]].concat());
    let table = kubectl.good("get wavelift -o wide").await;
    let headers: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(headers, [&usual[..], &["WAVE", "PLAN", "AGE"]].concat());
    assert!(table.contains(&digest), "{table}");

    assert_eq!(
        waiting.await.unwrap().good(),
        "fleetupgrade.wavelift.io/demo condition met\n",
        "the campaign ended as it should"
    );
    let ended = stage.ended().await;
    assert_eq!(ended.view.row.phase, PhaseName::SucceededWithFailures);
    let last = find(&mut seen, "SucceededWithFailures").await;
    let row: Vec<&str> = last.split_whitespace().take(7).collect();
    let (done, failed) = (ended.view.row.summary.succeeded, ended.view.row.summary.failed);
    let numbers = [done.to_string(), failed.to_string()];
    assert_eq!(row[..3], ["demo", "Rollout", "8"]);
    assert_eq!(row[3..5], numbers);
    assert_eq!(row[5..], ["True", "SucceededWithFailures"]);
    drop(watching);
    told_in_full(&kubectl).await;
    stage.strike().await;
}

/// What is left to read after the end, on the hub and on the clusters.
async fn told_in_full(kubectl: &Kubectl<'_>) {
    let told = kubectl.good("describe fleetupgrade demo").await;
    let (_, events) = told.split_once("\nEvents:\n").expect(&told);
    for reason in ["Launched", "WaveStarted", "WaveComplete"] {
        assert!(events.contains(reason), "no {reason} in {events}");
    }
    let all = kubectl.good("get clusterupgrades -A --no-headers").await;
    let states: Vec<(&str, &str)> = all
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .map(|row| (row[0], row[2]))
        .collect();
    assert!(states.iter().any(|(_, state)| *state == "Succeeded"), "{all}");
    assert!(states.iter().any(|(_, state)| *state == "Stalled"), "{all}");
    // The same object, on the cluster itself.
    let (cluster, state) = states.iter().find(|(_, state)| *state == "Stalled").unwrap();
    let local = kubectl.good(&format!("--context {cluster} get clusterupgrade --no-headers")).await;
    let row: Vec<&str> = local.split_whitespace().collect();
    assert!(row[0].starts_with("demo-"), "{local}");
    assert_eq!(row[1], *state, "{local}");
    let headed = kubectl.good(&format!("--context {cluster} get clusterupgrade")).await;
    let mut columns = headed.lines().next().unwrap().split_whitespace();
    for column in ["STATE", "PERCENT", "MESSAGE"] {
        assert!(columns.any(|found| found == column), "no {column} in {headed}");
    }
    assert!(local.contains("kiln-operator"), "the message says what it waits for: {local}");
    let told = kubectl.good(&format!("--context {cluster} describe clusterupgrade")).await;
    assert!(told.contains("kiln-operator"), "{told}");
}

/// The next line with `text` in it.
async fn find(lines: &mut Lines<BufReader<ChildStdout>>, text: &str) -> String {
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("kubectl ended");
            if line.split_whitespace().any(|word| word == text) {
                return line;
            }
        }
    };
    soon(text, found).await
}
