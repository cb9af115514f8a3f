//! A budget that is spent ends a campaign, and the program says so.

use std::{path::PathBuf, process::Stdio};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::watcher,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_util::sync::CancellationToken;
use wavelift_api::FleetUpgrade;
use wavelift_demo::{Cast, drive::NAME, fleet::NAMESPACE, run_cast};

use super::SPEED;
use crate::stage::{Silent, options, soon, wavelift};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_budget_the_first_failure_halts_the_campaign() {
    let options = options(6, 12, SPEED);
    let mut cast = Cast::of(&options).unwrap();
    tolerate_nothing(&mut cast.campaign);
    let mut nobody = Silent;
    let demo = run_cast(&cast, &options, &mut nobody, CancellationToken::new());
    let outcome = soon("the demo", Box::pin(demo)).await.unwrap();
    let summary = serde_json::to_value(outcome.summary).unwrap();
    assert_eq!(summary["phase"], "Failed", "{summary}");
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(number("failed"), 1, "{summary}");
    let all = ["succeeded", "failed", "skipped", "unreachable", "notStarted"];
    assert_eq!(all.map(number).iter().sum::<u64>(), 12, "{summary}");
    assert!(number("notStarted") > 0, "{summary}");
    // Seed 6 has its failure in the second wave: the third never begins.
    let waves = summary["waves"].as_array().unwrap();
    assert_eq!((&waves[0]["state"], &waves[1]["failed"]), (&"Complete".into(), &1.into()));
    assert_ne!(waves[2]["state"], "Complete", "{summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_says_that_a_campaign_was_halted() {
    let mut demo = tokio::process::Command::new(wavelift())
        .args(["demo", "--once", "--seed", "3", "--clusters", "12", "--speed", "20"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut kubeconfig = None;
    while kubeconfig.is_none() {
        let line = soon("a line", lines.next_line()).await.unwrap().expect("it ended early");
        kubeconfig = line.split_once("KUBECONFIG=").map(|(_, path)| PathBuf::from(path));
    }
    soon("a smaller budget", take_the_budget(kubeconfig.unwrap())).await;
    let mut told = vec![];
    while let Some(line) = soon("the end", lines.next_line()).await.unwrap() {
        told.push(line);
    }
    let status = soon("its end", demo.wait()).await.unwrap();
    assert_eq!(status.code(), Some(3), "{told:#?}");
    assert!(told.iter().any(|line| line.starts_with("Failed: ")), "{told:#?}");
}

fn tolerate_nothing(campaign: &mut FleetUpgrade) {
    for wave in campaign.spec.waves.as_mut().unwrap() {
        wave.max_failures = 0;
    }
    campaign.spec.budget.as_mut().unwrap().max_failures = Some(0);
}

/// What a person might do while a demo runs: tolerate no failure any more.
async fn take_the_budget(kubeconfig: PathBuf) {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let api: Api<FleetUpgrade> = Api::namespaced(client, NAMESPACE);
    let seen = watcher::watch_object(api.clone(), NAME).filter_map(async |seen| seen.transpose());
    let mut campaign = std::pin::pin!(seen).try_next().await.unwrap().unwrap();
    tolerate_nothing(&mut campaign);
    let spec = json!({"waves": campaign.spec.waves, "budget": campaign.spec.budget});
    let patch: Patch<Value> = Patch::Merge(json!({"spec": spec}));
    api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
}
