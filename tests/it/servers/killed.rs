//! SIGKILL of the agent, right before and right after each of its writes to a real API server.
//!
//! An upgrade that nothing disturbs says how many writes there are. Then each of them is hit twice:
//! once the agent dies before it has gone out, once when it has been carried out and not been
//! answered. Either way the next life must end where the undisturbed one did.

use std::{
    fs,
    io::{self, Write as _},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{
    Cluster,
    api::free_port,
    objects::{CATALOG_SOURCE, SUBSCRIPTION},
    pinned::jumping,
    proxy::{Harm, Proxy},
    rig::Rig,
    upgrades::chain,
};
use crate::harness::{
    binaries::programs,
    child::{self, Child},
    router::Moment,
    victim::Victim,
};

/// At the same time: OLM throttles itself.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_around_any_of_its_writes_ends_where_an_undisturbed_one_does() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    kill_around_each_write(&cluster, Course::TwoHops).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_around_any_of_its_writes_leaves_no_pinned_catalog() {
    let Some(cluster) = Cluster::shared_if_long().await else { return };
    kill_around_each_write(&cluster, Course::Pinned).await;
}

/// What the agent is about when it is killed.
#[derive(Debug, Clone, Copy)]
enum Course {
    /// An upgrade of two hops.
    TwoHops,
    /// One that OLM stops at a pinned catalog, beside an operator that stays.
    Pinned,
}

async fn kill_around_each_write(cluster: &Arc<Cluster>, course: Course) {
    let wanted = undisturbed(cluster, course).await.unwrap();
    tell(&format!("undisturbed: {} writes: {}", wanted.writes.len(), wanted.writes.join(", ")));
    let outcomes = futures::stream::iter(aims(&wanted.writes))
        .map(|aim| {
            let wanted = &wanted;
            async move {
                let outcome = disturbed(cluster, course, aim, wanted).await;
                let line = match &outcome {
                    Ok(hit) => format!("{aim:?}: {hit}"),
                    Err(error) => format!("{aim:?}: FAILED: {error:#}"),
                };
                tell(&line);
                (line, outcome.is_ok())
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let bad = outcomes.iter().filter(|(_, is_good)| !is_good).map(|(line, _)| line.as_str());
    let bad: Vec<&str> = bad.collect();
    assert!(bad.is_empty(), "{} of {} failed:\n{}", bad.len(), outcomes.len(), bad.join("\n"));
}

/// Past the test harness, which keeps the output of good tests to itself.
fn tell(line: &str) {
    drop(writeln!(io::stderr(), "killed: {line}"));
}

/// Which write is hit, and on which side of it.
#[derive(Debug, Clone, Copy)]
struct Aim {
    nth: usize,
    moment: Moment,
}

fn aims(writes: &[String]) -> Vec<Aim> {
    let sides = |nth| [Moment::Before, Moment::After].map(|moment| Aim { nth, moment });
    (1..).take(writes.len()).flat_map(sides).collect()
}

/// How an upgrade ended.
#[derive(Debug, PartialEq, Eq)]
struct End {
    csvs: Vec<String>,
    approved: Vec<String>,
    status: Value,
    subscriptions: Value,
    catalogs: Value,
}

struct Undisturbed {
    end: End,
    writes: Vec<String>,
}

/// Operators, an order, and the way of an agent that is not there yet.
struct Stage {
    course: Course,
    rig: Rig,
    proxy: Proxy,
    /// What sets it apart from the others.
    suffix: String,
    packages: Vec<String>,
    /// Where the agent serves pinned catalogs.
    port: u16,
}

impl Stage {
    async fn set(cluster: &Arc<Cluster>, course: Course, name: &str) -> Result<Self> {
        let suffix = format!("-{course:?}-{name}").to_lowercase();
        let packages: Vec<String> = match course {
            Course::TwoHops => vec![format!("kiln{suffix}")],
            Course::Pinned => vec![format!("anchor{suffix}"), format!("chain{suffix}")],
        };
        let releases = match (course, &*packages) {
            (Course::Pinned, [anchor, other]) => {
                [jumping(anchor), chain(other, &["1.0.0", "1.1.0"])].concat()
            }
            (_, packages) => chain(&packages[0], &["1.0.0", "1.1.0", "1.2.0"]),
        };
        let rig = Rig::start(Arc::clone(cluster), &format!("killed{suffix}"), &releases).await?;
        let installed: Vec<(&str, &str)> = packages.iter().map(|p| (&**p, "1.0.0")).collect();
        rig.install(&installed).await?;
        match course {
            Course::TwoHops => {
                // As if an agent had held it from an earlier step on: so it is given back at the end.
                let held = json!({"metadata": {"annotations": {
                    "wavelift.io/held-by": format!("{}/go", rig.home()),
                    "wavelift.io/install-plan-approval-before": "Automatic",
                }}});
                rig.objects.patch(SUBSCRIPTION, (&rig.namespace, &packages[0]), &held).await?;
                rig.order_and_restore(&packages[0]).await?;
            }
            Course::Pinned => {
                rig.allow_pins().await?;
                rig.order_pinned(&[(&packages[0], "1.1.0")]).await?;
            }
        }
        let proxy = Proxy::start(rig.cluster().api()).await?;
        Ok(Self { course, rig, proxy, suffix, packages, port: free_port()? })
    }

    fn spawn(&self) -> Result<Child> {
        let dir = self.rig.cluster().ground.folder(&format!("{}-process", self.rig.home()));
        fs::create_dir_all(&dir)?;
        let kubeconfig = dir.join("kubeconfig");
        let content = self.rig.account().kubeconfig(Some(&self.proxy.url()));
        fs::write(&kubeconfig, content.to_string())?;
        let args = ["--cluster", "one", "--namespace", self.rig.home(), "--http", "none"];
        let mut args: Vec<_> = args.iter().map(Into::into).collect();
        args.extend(["--recheck", "5s"].map(Into::into));
        let address = format!("127.0.0.1:{}", self.port);
        for flag in ["--pinned-catalog-listen", "--pinned-catalog-address"] {
            args.extend([flag.into(), address.clone().into()]);
        }
        args.extend(["--kubeconfig".into(), kubeconfig.into_os_string()]);
        Child::spawn(&programs()?.agent, args, &dir.join("agent.log"))
    }

    fn log(&self) -> String {
        let folder = self.rig.cluster().ground.folder(&format!("{}-process", self.rig.home()));
        child::tail(&folder.join("agent.log"))
    }

    /// The Subscriptions, but for what OLM says of them.
    async fn subscriptions(&self) -> Result<Value> {
        let mut told = vec![];
        for package in &self.packages {
            let found = self.rig.objects.get(SUBSCRIPTION, &self.rig.namespace, package).await?;
            let found = found.unwrap_or_default();
            let annotations = &found["metadata"]["annotations"];
            told.push(json!({"spec": found["spec"], "annotations": annotations}));
        }
        self.general(&json!(told))
    }

    /// The same without what sets this stage apart.
    fn general(&self, value: &Value) -> Result<Value> {
        Ok(serde_json::from_str(&value.to_string().replace(&self.suffix, ""))?)
    }

    /// Waits until it has succeeded, and says what is there then.
    async fn end(&self) -> Result<End> {
        let status = self.rig.until_state("Succeeded").await?;
        if matches!(self.course, Course::TwoHops) {
            let at = (self.rig.namespace.as_str(), self.packages[0].as_str());
            let is_back =
                |subscription: &Value| subscription["spec"]["installPlanApproval"] != "Manual";
            self.rig.objects.until_object(SUBSCRIPTION, at, is_back).await?;
        }
        let catalogs = self.rig.objects.list(CATALOG_SOURCE, &self.rig.namespace).await?;
        let catalogs: Vec<&Value> = catalogs.iter().map(|c| &c["metadata"]["name"]).collect();
        let names =
            |names: Vec<String>| names.iter().map(|name| name.replace(&self.suffix, "")).collect();
        Ok(End {
            csvs: names(self.rig.csvs().await?),
            approved: names(self.rig.approved().await?),
            status: self.general(&without_times(&status))?,
            subscriptions: self.subscriptions().await?,
            catalogs: json!(catalogs),
        })
    }
}

/// A status but for what differs from one run to the next anyway.
fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    let Some(fields) = status.as_object_mut() else { return status };
    for name in ["boot", "sequence", "planDigest", "conditions", "startTime", "completionTime"] {
        fields.remove(name);
    }
    if let Some(report) = fields.get_mut("preflight").and_then(Value::as_object_mut) {
        report.remove("observedTime");
    }
    for step in status["steps"].as_array_mut().into_iter().flatten() {
        let has_plan = step["installPlan"].is_string();
        if let Some(step) = step.as_object_mut() {
            step.remove("startTime");
            step.remove("completionTime");
            step.insert("installPlan".to_owned(), json!(has_plan));
        }
    }
    status
}

async fn undisturbed(cluster: &Arc<Cluster>, course: Course) -> Result<Undisturbed> {
    let stage = Stage::set(cluster, course, "never").await?;
    let before = stage.subscriptions().await?;
    let agent = stage.spawn()?;
    let end = stage.end().await.with_context(|| stage.log())?;
    drop(agent);
    match course {
        Course::TwoHops => {
            ensure!(end.approved == ["kiln.v1.1.0", "kiln.v1.2.0"], "{end:?}");
            ensure!(end.csvs == ["kiln.v1.2.0"], "{end:?}");
            let given_back = json!(["Automatic", null]);
            let subscription = &end.subscriptions[0];
            let is = [&subscription["spec"]["installPlanApproval"], &subscription["annotations"]];
            ensure!(json!(is) == given_back, "{end:?}");
        }
        Course::Pinned => {
            ensure!(end.approved == ["anchor.v1.1.0"], "{end:?}");
            ensure!(end.csvs == ["anchor.v1.1.0", "chain.v1.0.0"], "{end:?}");
            ensure!(end.subscriptions == before, "{end:?}");
            ensure!(end.catalogs == json!(["own"]), "{end:?}");
        }
    }
    Ok(Undisturbed { end, writes: stage.proxy.writes() })
}

async fn disturbed(
    cluster: &Arc<Cluster>,
    course: Course,
    aim: Aim,
    wanted: &Undisturbed,
) -> Result<String> {
    let name = format!("{}-{:?}", aim.nth, aim.moment).to_lowercase();
    let stage = Stage::set(cluster, course, &name).await?;
    let victim = Victim::new();
    let trap = victim.clone();
    stage.proxy.set(move |asked| {
        if asked.write != Some(aim.nth) {
            return Harm::None;
        }
        match aim.moment {
            Moment::Before => {
                trap.kill(&asked.to_string());
                Harm::DropBefore
            }
            Moment::After => {
                let (trap, what) = (trap.clone(), asked.to_string());
                Harm::After(Arc::new(move || trap.kill(&what)))
            }
        }
    });
    victim.start(|| stage.spawn())?;
    let told = tokio::select! {
        told = victim.killed() => told,
        end = stage.end() => {
            end.with_context(|| stage.log())?;
            format!("it was through after {} writes", stage.proxy.writes().len())
        }
    };
    victim.kill(&told);
    let next = stage.spawn()?;
    let end = stage.end().await.with_context(|| format!("{told}\n{}", stage.log()))?;
    drop(next);
    let differs = format!("{told}\n  it is {end:?}\n  not   {:?}\n{}", wanted.end, stage.log());
    ensure!(end == wanted.end, differs);
    Ok(told)
}
