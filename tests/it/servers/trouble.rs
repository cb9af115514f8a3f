//! An API server that is away, slow or unwell: the agent waits, says so, and goes on where it was.
//!
//! The trouble begins with the first approval, so that the agent is in the midst of an upgrade.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use wavelift_runtime::metrics::Metrics;

use super::{
    Cluster,
    proxy::{Asked, Harm, Proxy},
    rig::{Agent, Rig},
    upgrades::chain,
};
use crate::harness::wait::polled;

const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "1.2.0"];

/// Waits until the agent's metrics have a line that begins so and does not end with 0.
async fn counted(metrics: &Metrics, line: &str) -> Result<()> {
    polled(line, || {
        let text = metrics.encode()?;
        let found = text.lines().find_map(|l| l.strip_prefix(line));
        Ok(found.filter(|value| value.trim() != "0").map(drop))
    })
    .await
}

const UNREAD: &str = "wavelift_agent_kind_unread{kind=\"Subscriptions\"}";

/// An upgrade of two hops by way of a proxy, right after its first approval.
async fn begun(name: &str, package: &str) -> Option<(Rig, Proxy, Agent)> {
    let cluster = Cluster::shared_if_long().await?;
    let rig = Rig::start(cluster, name, &chain(package, &VERSIONS)).await.unwrap();
    rig.install(&[(package, "1.0.0")]).await.unwrap();
    let proxy = Proxy::start(rig.cluster().api()).await.unwrap();
    let agent = rig.agent_by(&proxy.url()).await.unwrap();
    rig.order(&[package]).await.unwrap();
    approved(&rig, 1).await;
    Some((rig, proxy, agent))
}

async fn approved(rig: &Rig, wanted: usize) {
    let look = || async { Ok((rig.approved().await?.len() >= wanted).then_some(())) };
    rig.objects.until("an approval", look).await.unwrap();
}

/// It ends as if nothing had been.
async fn through(rig: &Rig, package: &str) {
    let done = rig.until_state("Succeeded").await.unwrap();
    assert!(done["failure"].is_null(), "{done}");
    let wanted = ["1.1.0", "1.2.0"].map(|version| format!("{package}.v{version}"));
    assert_eq!(rig.approved().await.unwrap(), wanted);
    assert_eq!(rig.csvs().await.unwrap(), wanted[1..]);
}

fn says(status: &Value, words: &str) -> bool {
    let is_over = matches!(status["state"].as_str(), Some("Failed" | "Stalled" | "Succeeded"));
    assert!(!is_over, "{status}");
    status["message"].as_str().is_some_and(|message| message.contains(words))
}

fn is_read(asked: &Asked) -> bool {
    asked.write.is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_dies_in_the_midst_of_an_upgrade_and_comes_back() {
    let Some(cluster) = Cluster::alone_if_long().await else { return };
    let rig = Rig::start(cluster, "api-dies", &chain("forge", &VERSIONS)).await.unwrap();
    rig.install(&[("forge", "1.0.0")]).await.unwrap();
    let agent = rig.agent().await.unwrap();
    rig.order(&["forge"]).await.unwrap();
    approved(&rig, 1).await;
    rig.cluster().api().stop();
    counted(&agent.metrics, UNREAD).await.unwrap();
    counted(&agent.metrics, "wavelift_agent_api_requests_total{result=\"broken\"}").await.unwrap();
    rig.cluster().api().resume().await.unwrap();
    through(&rig, "forge").await;
    assert!(agent.metrics.encode().unwrap().lines().all(|line| !line.starts_with(UNREAD)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_has_too_much_to_do() {
    let Some((rig, proxy, agent)) = begun("api-busy", "bench").await else { return };
    proxy.set(|_| Harm::Answer(429, Some(1)));
    proxy.cut();
    counted(&agent.metrics, UNREAD).await.unwrap();
    counted(&agent.metrics, "wavelift_agent_api_requests_total{result=\"429\"}").await.unwrap();
    proxy.set(|_| Harm::None);
    through(&rig, "bench").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_cannot_be_read_and_then_cannot_be_written() {
    let Some((rig, proxy, agent)) = begun("api-errors", "vise").await else { return };
    proxy.set(|asked| if is_read(asked) { Harm::Answer(500, None) } else { Harm::None });
    proxy.cut();
    counted(&agent.metrics, UNREAD).await.unwrap();
    let words = "cannot tell how it stands";
    rig.until(|status| says(status, words)).await.unwrap();
    // What is asked for next is refused instead.
    let is_approval =
        |asked: &Asked| asked.write.is_some() && asked.path.contains("/installplans/");
    let mut times = 0;
    proxy.set(move |asked| {
        if is_approval(asked) && times < 3 {
            times += 1;
            return Harm::Answer(500, None);
        }
        Harm::None
    });
    through(&rig, "vise").await;
    let unanswered = "wavelift_agent_installplan_approvals_total{result=\"unanswered\"} 3";
    assert!(agent.metrics.encode().unwrap().contains(unanswered));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_whose_watches_are_too_old() {
    let Some((rig, proxy, _agent)) = begun("api-gone", "anvils").await else { return };
    let mut times = 0;
    proxy.set(move |asked| {
        if asked.is_watch && times < 40 {
            times += 1;
            return Harm::Gone;
        }
        Harm::None
    });
    proxy.cut();
    through(&rig, "anvils").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_whose_watches_break_off_all_the_time() {
    let Some((rig, proxy, _agent)) = begun("api-breaks", "tongs").await else { return };
    let after = Duration::from_secs(3);
    proxy.set(move |asked| if asked.is_watch { Harm::Broken(after) } else { Harm::None });
    proxy.cut();
    through(&rig, "tongs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_whose_answers_are_lost() {
    let Some((rig, proxy, _agent)) = begun("api-mute", "rasp").await else { return };
    // Every second write is carried out and not answered, every fifth does not arrive.
    proxy.set(|asked| match asked.write {
        Some(write) if write % 2 == 0 => Harm::After(std::sync::Arc::new(|| {})),
        Some(write) if write % 5 == 0 => Harm::DropBefore,
        Some(_) | None => Harm::None,
    });
    through(&rig, "rasp").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_takes_ten_seconds_for_an_answer() {
    let Some((rig, proxy, agent)) = begun("api-slow", "hearth").await else { return };
    proxy.set(|_| Harm::Late(Duration::from_secs(10)));
    through(&rig, "hearth").await;
    counted(&agent.metrics, "wavelift_agent_api_slow_answers_total").await.unwrap();
}
