//! Two hubs, of which the leader stands still for longer than its lease lasts, just when a wave
//! starts, and then goes on as if nothing had been.
//!
//! Of six clusters two fail, one failure is tolerated and two run at once, so that one start too
//! many could be seen in the number of failures. While the former leader stands still, two agents
//! stay connected to it; the others find the new one.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use wavelift_api::labels::TERM;
use wavelift_sim::apiserver::{
    Action, ApiServer, AuditEffect, AuditEntry, Fault, Hook, Matcher, Request, Store, Times, Verb,
    Verbs, Verdict, gk,
};

use crate::harness::{
    blueprint::{self, Content},
    campaign::{self, Bounds},
    http,
    hub::{self, HubProcess, HubSide},
    laws,
    router::Moment,
    wait,
    world::World,
};

const BOUNDS: Bounds = Bounds { concurrent: 2, failures: 1 };
const FACTOR: f64 = 300.0;
const FIRST: &str = "hub-a";
const SECOND: &str = "hub-b";
/// Clusters whose agents stay with the former leader: those that it does not come to.
const LEFT_BEHIND: [usize; 2] = [4, 5];

/// What the leader is writing when it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    /// The names of the clusters that are about to start.
    Ahead,
    /// The first start itself.
    Start,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stops_before_it_writes_ahead_starts_nothing_late() {
    passes_over(Moment::Before, Write::Ahead).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stops_after_it_wrote_ahead_starts_nothing_late() {
    passes_over(Moment::After, Write::Ahead).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stops_before_it_starts_a_cluster_starts_nothing_twice() {
    passes_over(Moment::Before, Write::Start).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stops_after_it_started_a_cluster_starts_nothing_twice() {
    passes_over(Moment::After, Write::Start).await;
}

async fn passes_over(moment: Moment, write: Write) {
    use Content::{BrokenKiln, Ferry, FerryAndWeaving, Weaving};
    let contents = [BrokenKiln, FerryAndWeaving, Weaving, BrokenKiln, Weaving, Ferry];
    let fleet = blueprint::fleet(&contents, contents.len());
    let mut world = World::start(&fleet, FACTOR).await.unwrap();
    campaign::create(world.hub.store(), &fleet, BOUNDS).unwrap();
    world.follow_leader();
    world.run_agents().unwrap();
    let ended = story(&world, moment, write).await;
    ended.with_context(|| world.logs()).unwrap();
    // The second failure halts the campaign; whom it has come to by then depends on who was back.
    for member in &mut world.members {
        member.is_reached = is_started(&world.hub, member.name());
    }
    let logs = world.logs();
    laws::hold(&mut world, BOUNDS).context(logs).unwrap();
}

async fn story(world: &World, moment: Moment, write: Write) -> Result<()> {
    let store = world.hub.store();
    let first = Arc::new(world.hub.spawn(FIRST)?);
    wait::in_store(store, "the first hub to lead", |store| leads(store, FIRST)).await?;
    let second = world.hub.spawn(SECOND)?;
    is_ready(first.http().await?, true).await?;
    is_ready(second.http().await?, false).await?;

    let trap = Trap::set(&world.hub.api, moment, write, &first);
    campaign::launch(store).await?;
    trap.sprung().await?;
    let old_term = term(store)?;

    wait::in_store(store, "the second hub to lead", |store| leads(store, SECOND)).await?;
    let taken_at = world.hub.api.audit_total();
    ensure!(term(store)? > old_term, "a new leader has a new term");
    for (index, router) in world.routers.iter().enumerate() {
        if !LEFT_BEHIND.contains(&index) {
            router.cut();
        }
    }
    let held = trap.held().context("a write was held, or was done")?;
    wait::in_store(store, "the second hub to go on", |_| {
        let entries = world.hub.api.audit();
        let mut done = entries.iter().filter(|entry| entry.effect == AuditEffect::Changed);
        done.any(|entry| is_of(&entry.request, SECOND) && goes_past(&entry.request, &held))
            .then_some(())
    })
    .await?;
    is_ready(second.http().await?, true).await?;
    first.child.resume()?;
    trap.release();
    is_ready(first.http().await?, false).await?;

    let failed = halted(world).await?;
    ensure!(failed == ["prod-1", "prod-4"], "failed: {failed:?}");
    let audit = world.hub.api.audit();
    let late = written_over(&audit, taken_at);
    ensure!(late.is_empty(), "the former leader wrote over the new one's word: {late:?}");
    if moment == Moment::Before {
        let of_held = audit.iter().filter(|entry| {
            entry.sequence > taken_at
                && is_of(&entry.request, FIRST)
                && is_about_the_same(&entry.request, &held)
        });
        let codes: Vec<u16> = of_held.map(|entry| entry.code).collect();
        ensure!(codes == [409], "the late write was answered with {codes:?}");
    }
    Ok(())
}

/// What the first hub changed after the second one had: a write that was half sent when it stopped
/// may still be good for an object that nobody has touched since.
fn written_over(audit: &[AuditEntry], taken_at: u64) -> Vec<&AuditEntry> {
    let mut touched = vec![];
    let mut late = vec![];
    for entry in audit.iter().filter(|entry| entry.effect == AuditEffect::Changed) {
        let request = &entry.request;
        let about = (&request.gk, &request.namespace, &request.name);
        if is_of(request, SECOND) {
            touched.push(about);
        } else if entry.sequence > taken_at && touched.contains(&about) {
            late.push(entry);
        }
    }
    late
}

fn leads(store: &Store, who: &str) -> Option<()> {
    let is_adopted = campaign::read(store)?["status"]["term"].as_i64()? == term(store).ok()?;
    (is_adopted && hub::holder(store)? == who).then_some(())
}

fn term(store: &Store) -> Result<i64> {
    let lease = store.get(&gk::LEASE, Some(hub::NAMESPACE), hub::LEASE).context("no lease")?;
    let term = lease["metadata"]["annotations"][TERM].as_str().context("no term")?;
    Ok(term.parse()?)
}

async fn is_ready(addr: SocketAddr, wanted: bool) -> Result<()> {
    let wanted = if wanted { 200 } else { 503 };
    let mut looks = tokio::time::interval(crate::harness::child::LOOK);
    let look = async {
        loop {
            looks.tick().await;
            // A hub that does not answer yet is asked again.
            if http::status(addr, "/readyz").await.is_ok_and(|code| code == wanted) {
                return;
            }
        }
    };
    tokio::time::timeout(wait::PATIENCE, look)
        .await
        .with_context(|| format!("/readyz never answered {wanted}"))
}

/// Whether a write of the new leader shows that it goes on where the old one stopped.
fn goes_past(done: &Request, held: &Request) -> bool {
    if held.gk.as_ref() == Some(&gk::FLEET_UPGRADE) {
        // It starts somebody, or makes somebody's word durable.
        return done.gk.as_ref() == Some(&gk::CLUSTER_UPGRADE) && done.verb == Verb::Update;
    }
    is_about_the_same(done, held)
}

fn is_about_the_same(one: &Request, other: &Request) -> bool {
    (&one.gk, &one.namespace, &one.name, one.verb)
        == (&other.gk, &other.namespace, &other.name, other.verb)
}

fn is_started(hub: &HubSide, cluster: &str) -> bool {
    let parts = hub.store().list(&gk::CLUSTER_UPGRADE, Some(cluster));
    parts.iter().any(|part| part["spec"]["stage"] == "Rollout")
}

/// Waits until the campaign has halted and nothing is in flight; answers who failed.
async fn halted(world: &World) -> Result<Vec<String>> {
    wait::in_store(world.hub.store(), "the campaign to halt", |store| {
        let campaign = campaign::read(store)?;
        let is_halted = campaign::condition(&campaign, "Halted") == Some("True");
        let parts = store.list(&gk::CLUSTER_UPGRADE, None);
        let started = parts.iter().filter(|part| part["spec"]["stage"] == "Rollout");
        let is_still = started.clone().all(|part| laws::is_ended(part));
        let failed = started
            .filter(|part| matches!(part["status"]["state"].as_str(), Some("Failed" | "Stalled")));
        let names = failed.map(|part| part["metadata"]["namespace"].as_str().unwrap_or_default());
        (is_halted && is_still).then(|| names.map(str::to_owned).collect())
    })
    .await
}

fn is_of(request: &Request, who: &str) -> bool {
    request.user_agent.contains(&format!("({who})"))
}

/// Stops a hub around one of its writes, and holds the write until released.
struct Trap {
    sprung: watch::Receiver<Option<Result<(), String>>>,
    held: Arc<Mutex<Option<Request>>>,
    release: mpsc::Sender<()>,
}

impl Trap {
    fn set(api: &ApiServer, moment: Moment, write: Write, hub: &Arc<HubProcess>) -> Self {
        let (say, sprung) = watch::channel(None);
        let (release, released) = mpsc::channel();
        let held = Arc::new(Mutex::new(None));
        let (hub, keep) = (Arc::clone(hub), Arc::clone(&held));
        let released = Mutex::new(Some(released));
        let hook: Hook = Arc::new(move |request: &Request| {
            if !is_of(request, FIRST) || !is_write(request, write) {
                return Verdict::GoOn;
            }
            // Only the first one finds it.
            let Some(released) = released.lock().take() else { return Verdict::GoOn };
            *keep.lock() = Some(request.clone());
            say.send_replace(Some(hub.child.pause().map_err(|error| format!("{error:#}"))));
            if moment == Moment::Before {
                // Whoever releases it may be gone when the test has failed already.
                tokio::task::block_in_place(|| released.recv()).unwrap_or_default();
            }
            Verdict::GoOn
        });
        let action = match moment {
            Moment::Before => Action::Before(hook),
            Moment::After => Action::After(hook),
        };
        let on = Matcher { verbs: Verbs::Only(Verb::Update), ..Matcher::default() };
        api.faults().add(Fault { on, times: Times::all(), action });
        Self { sprung, held, release }
    }

    async fn sprung(&self) -> Result<()> {
        let mut sprung = self.sprung.clone();
        let wait = sprung.wait_for(Option::is_some);
        let sprung = tokio::time::timeout(wait::PATIENCE, wait).await.context("never sprung")??;
        let paused = sprung.clone().context("it is there")?;
        paused.map_err(anyhow::Error::msg)
    }

    fn release(&self) {
        // Nobody waits after a write.
        self.release.send(()).unwrap_or_default();
    }

    fn held(&self) -> Option<Request> {
        self.held.lock().clone()
    }
}

fn is_write(request: &Request, write: Write) -> bool {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match write {
        Write::Ahead => {
            request.gk.as_ref() == Some(&gk::FLEET_UPGRADE)
                && request.subresource == "status"
                && body["status"]["starting"].as_array().is_some_and(|names| !names.is_empty())
        }
        Write::Start => {
            request.gk.as_ref() == Some(&gk::CLUSTER_UPGRADE)
                && request.subresource.is_empty()
                && body["spec"]["stage"] == "Rollout"
        }
    }
}
