//! Carries ClusterUpgrades out, one at a time.
//!
//! [`Executor::pass`] looks at all local ClusterUpgrades and does what is due: plans, checks,
//! starts the oldest that may start, takes the one that has started a bit further, and writes down
//! and reports what came of it. It is called after every change and when the time it names has
//! come; calling it more often changes nothing.

mod adopt;
mod advance;
mod authors;
mod blind;
mod end;
mod look;
mod pinning;
mod prepare;
pub mod replan;
mod report;
mod show;
mod status;

pub use self::prepare::NO_PATH;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::{Client, ResourceExt as _};
use tracing::{info, warn};
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus,
    cluster_upgrade::{ClusterStateName, Origin, SkipReasonName, UpgradeControl, UpgradeStage},
};
use wavelift_catalog::planner::Planned;
use wavelift_core::{
    fence::{Fence, Revision},
    ids::ClusterName,
    plan::Plan,
    state::ClusterState,
};
use wavelift_runtime::{Clock, tokens::TokenBucket};

use crate::{
    drivers::olm_v0::{self, decide::Memory},
    inventory::Current,
    journal::{self, Journal, Written},
    link::LinkHandle,
    metrics::Metrics,
    mirror::{Mirror, NamespaceMirror},
    pins::Pins,
};

/// From a write that did not go through to the next try.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// How the executor behaves; all of it in the clock's time.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The cluster.
    pub cluster: ClusterName,
    /// The namespaces whose catalogs every other one sees.
    pub global_namespaces: Vec<String>,
    /// The driver's times.
    pub driver: olm_v0::Timings,
    /// From one check of a held cluster to the next.
    pub recheck: SignedDuration,
    /// How long a changed plan must stay changed before it counts.
    pub settle: SignedDuration,
    /// From one write of a mere percent to the next.
    pub percent_period: SignedDuration,
    /// Whether remedies that an upgrade names are taken at all.
    pub remedies: Switch,
}

/// Whether something is done at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Switch {
    /// It is.
    Enabled,
    /// It is not.
    #[default]
    Disabled,
}

/// What the executor works with.
pub struct Executor {
    client: Client,
    clock: Clock,
    settings: Settings,
    journal: Journal,
    link: Option<LinkHandle>,
    metrics: Metrics,
    boot: u64,
    sequence: u64,
    /// What is served while a step needs a pinned catalog.
    pins: Pins,
    /// Not before then is it tried again to take away what is pinned.
    unpin_at: Option<Timestamp>,
    /// What the API server did not let it take away.
    left_pinned: Option<String>,
    /// The upgrade under way.
    running: Option<Running>,
    /// What is remembered of upgrades that have not started.
    waiting: BTreeMap<String, Prepared>,
    /// Last words that have been handed to the link in this life.
    told: BTreeSet<String>,
    /// Upgrades that the hub has given again, and whose end it therefore does not know.
    repeat: BTreeSet<String>,
    /// The newest status of each upgrade that was handed to the link in this life.
    reported: BTreeMap<String, Revision>,
}

/// What one pass needs to see.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The cluster.
    pub mirror: &'a Mirror,
    /// The inventory and the catalogs' content.
    pub current: &'a Current,
}

/// The upgrade under way.
#[derive(Debug)]
struct Running {
    uid: String,
    fence: Fence,
    step: usize,
    memory: Memory,
    looked: look::Looked,
    authors: authors::Authors,
    watched: Option<(String, NamespaceMirror)>,
    written_at: Option<Timestamp>,
    /// Since when what is seen of the cluster may be old.
    blind_since: Option<Timestamp>,
    /// What was last told of a step between two transitions.
    said: Option<Box<(usize, ClusterUpgradeStatus)>>,
    /// How often that may be.
    pace: TokenBucket,
}

/// What is remembered of an upgrade that has not started.
#[derive(Debug, Default)]
struct Prepared {
    generation: Option<i64>,
    /// The agent's own plan, and the inventory that it was made of.
    planned: Option<(String, Planned)>,
    /// Not before then are the checks run again.
    look_at: Option<Timestamp>,
    changed_since: Option<Timestamp>,
}

/// When to look again though nothing changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wake(pub Option<Timestamp>);

// === impl Wake ===

impl Wake {
    fn at(at: Timestamp) -> Self {
        Self(Some(at))
    }

    fn or(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self::at(a.min(b)),
            (a, b) => Self(a.or(b)),
        }
    }
}

// === impl Executor ===

impl Executor {
    /// An executor in its `boot`-th life.
    pub fn new(
        client: Client,
        clock: Clock,
        settings: Settings,
        journal: Journal,
        boot: u64,
        metrics: Metrics,
    ) -> Self {
        // Where the objects of earlier lives were lost their boots are forgotten: by the clock what
        // is said now is newer all the same.
        let sequence = u64::try_from(clock.now().as_second()).unwrap_or(0);
        Self {
            client,
            clock,
            settings,
            journal,
            link: None,
            metrics,
            boot,
            sequence,
            pins: Pins::new(None),
            unpin_at: None,
            left_pinned: None,
            running: None,
            waiting: BTreeMap::new(),
            told: BTreeSet::new(),
            repeat: BTreeSet::new(),
            reported: BTreeMap::new(),
        }
    }

    /// Reports go this way from now on.
    #[must_use]
    pub fn with_link(self, link: Option<LinkHandle>) -> Self {
        Self { link, ..self }
    }

    /// Catalogs can be pinned, and are served there.
    #[must_use]
    pub fn with_pins(self, pins: Pins) -> Self {
        Self { pins, ..self }
    }

    /// Does what is due.
    pub async fn pass(&mut self, seen: Seen<'_>) -> Result<Wake, journal::Error> {
        if !seen.mirror.is_settled() || !seen.mirror.upgrades.is_settled() {
            return Ok(Wake::default());
        }
        let mut upgrades = seen.mirror.upgrades.all();
        upgrades.retain(|upgrade| upgrade.metadata.deletion_timestamp.is_none());
        upgrades
            .sort_by_key(|u| (u.metadata.creation_timestamp.clone().map(|t| t.0), u.name_any()));
        self.drop_what_is_gone(&upgrades);
        for ended in upgrades.iter().filter(|upgrade| journal::is_terminal(upgrade)) {
            self.after_the_end(ended).await?;
        }
        upgrades.retain(|upgrade| !journal::is_terminal(upgrade));
        for upgrade in &upgrades {
            self.catch_up(upgrade);
        }
        let holder = upgrades.iter().find(|upgrade| has_begun(upgrade)).cloned();
        let mut wake = Wake::default();
        // What an upgrade that is gone has pinned, or an agent that was killed.
        if holder.is_none() && !self.unpin_all(seen.mirror).await {
            wake = Wake::at(olm_v0::decide::later(self.clock.now(), RETRY));
        }
        let mut holder_name = holder.as_ref().map(|holder| holder.name_any());
        for upgrade in &upgrades {
            if holder.as_ref().is_some_and(|holder| holder.name_any() == upgrade.name_any()) {
                continue;
            }
            let outcome = match &holder_name {
                Some(name) => self.queue(upgrade, name, seen).await?,
                None => self.prepare(upgrade, seen).await?,
            };
            match outcome {
                Readiness::Started => holder_name = Some(upgrade.name_any()),
                Readiness::Waits(more) => wake = wake.or(more),
            }
        }
        if let Some(holder) = holder {
            wake = wake.or(self.advance(&holder, seen).await?);
        }
        Ok(wake)
    }

    /// The hub has made a last word durable.
    pub fn acknowledged(&mut self, name: &str) {
        self.told.insert(name.to_owned());
    }

    /// The hub has given an upgrade: whatever end of it there is here, the hub does not know it.
    pub fn assigned(&mut self, name: &str) {
        self.repeat.insert(name.to_owned());
        self.told.remove(name);
        if let Some(running) = &mut self.running {
            running.said = None;
        }
    }

    fn drop_what_is_gone(&mut self, upgrades: &[Arc<ClusterUpgrade>]) {
        let names: BTreeSet<String> = upgrades.iter().map(|upgrade| upgrade.name_any()).collect();
        self.waiting.retain(|name, _| names.contains(name));
        self.told.retain(|name| names.contains(name));
        self.repeat.retain(|name| names.contains(name));
        self.reported.retain(|name, _| names.contains(name));
        let is_there = |running: &Running| {
            upgrades.iter().any(|u| u.metadata.uid.as_deref() == Some(running.uid.as_str()))
        };
        if self.running.as_ref().is_some_and(|running| !is_there(running)) {
            warn!("the ClusterUpgrade under way was deleted; nothing more is done about it");
            self.running = None;
            self.metrics.in_progress(None);
        }
    }

    /// A last word is repeated after a restart until the hub has made it durable; one that the hub
    /// needs no more is dropped.
    async fn after_the_end(&mut self, upgrade: &ClusterUpgrade) -> Result<(), journal::Error> {
        let name = upgrade.name_any();
        if upgrade.annotations().contains_key(journal::FORGOTTEN) {
            self.told.remove(&name);
            let key = journal::key(upgrade, self.settings.cluster.as_str());
            if let (Some(link), Some(key)) = (&self.link, key) {
                link.forget(&key);
            }
            return self.journal.delete(&name).await;
        }
        if upgrade.spec.origin == Origin::Local || self.told.contains(&name) {
            return Ok(());
        }
        let Some(fence) = fence(upgrade) else { return Ok(()) };
        let is_said = match &upgrade.status {
            Some(status)
                if self.repeat.contains(&name) || !journal::is_acknowledged(upgrade, &fence) =>
            {
                self.tell(upgrade, status)
            }
            Some(_) | None => true,
        };
        if is_said {
            self.repeat.remove(&name);
            self.told.insert(name);
        }
        Ok(())
    }

    /// A status whose write was not answered, or found no room with the link, is reported late.
    fn catch_up(&mut self, upgrade: &ClusterUpgrade) {
        // An earlier attempt's last word was not this one's.
        self.told.remove(&upgrade.name_any());
        let Some(status) = &upgrade.status else { return };
        let is_of_this_life = u64::try_from(status.boot) == Ok(self.boot);
        let reported = self.reported.get(&upgrade.name_any());
        let is_news = reported.is_none_or(|reported| *reported < status.revision());
        if upgrade.spec.origin == Origin::Hub && is_of_this_life && is_news {
            self.tell(upgrade, status);
        }
    }

    /// Another upgrade holds the cluster.
    async fn queue(
        &mut self,
        upgrade: &Arc<ClusterUpgrade>,
        holder: &str,
        seen: Seen<'_>,
    ) -> Result<Readiness, journal::Error> {
        let mut next = status::begin(upgrade);
        if upgrade.spec.control == UpgradeControl::Cancelled {
            self.cancel(&mut next);
        } else {
            next.state = Some(ClusterStateName::Pending);
            next.message = Some(format!("waits for `{holder}`, which holds the cluster"));
        }
        self.write(upgrade, next, seen.mirror).await?;
        Ok(Readiness::Waits(Wake::default()))
    }

    fn cancel(&self, status: &mut ClusterUpgradeStatus) {
        status.state = Some(ClusterStateName::Skipped);
        status.skip_reason = Some(SkipReasonName::Cancelled);
        status.message = Some("cancelled".to_owned());
        status.completion_time = Some(self.clock.now());
    }

    /// Writes a status down if it says something new, and reports transitions.
    async fn write(
        &mut self,
        upgrade: &ClusterUpgrade,
        mut status: ClusterUpgradeStatus,
        mirror: &Mirror,
    ) -> Result<Option<Box<ClusterUpgrade>>, journal::Error> {
        let before = upgrade.status.clone().unwrap_or_default();
        let boot = i64::try_from(self.boot).unwrap_or(i64::MAX);
        status.boot = boot;
        status.sequence = before.sequence;
        status.observed_generation = upgrade.metadata.generation;
        let is_transition = status::is_transition(&before, &status);
        if !is_transition && !self.is_worth_writing(&before, &status) {
            return Ok(None);
        }
        if is_transition {
            self.sequence += 1;
            status.sequence = i64::try_from(self.sequence).unwrap_or(i64::MAX);
        }
        let now = self.clock.now();
        status::conditions(&before, &mut status, now);
        let Written::Done(written) = self.journal.write_status(upgrade, status).await? else {
            return Ok(None);
        };
        let uid = upgrade.metadata.uid.as_deref();
        if let Some(running) = &mut self.running
            && uid == Some(running.uid.as_str())
        {
            running.written_at = Some(now);
        }
        mirror.upgrades.assume((*written).clone());
        if is_transition && let Some(status) = &written.status {
            self.say(upgrade, status);
        }
        Ok(Some(written))
    }

    /// Percent and words alone are written once in a while; an upgrade that has not started says
    /// new words at once, there are few of them.
    fn is_worth_writing(
        &self,
        before: &ClusterUpgradeStatus,
        status: &ClusterUpgradeStatus,
    ) -> bool {
        if !status::is_other(before, status) {
            return false;
        }
        let last = self.running.as_ref().and_then(|running| running.written_at);
        let has_begun = status.start_time.is_some();
        let due = last.is_none_or(|last| {
            self.clock.now().duration_since(last) >= self.settings.percent_period
        });
        !has_begun || due
    }

    fn say(&mut self, upgrade: &ClusterUpgrade, status: &ClusterUpgradeStatus) {
        let state = status.state.map(ClusterState::from);
        let message = status.message.as_deref().unwrap_or_default();
        info!(upgrade = upgrade.name_any(), ?state, message, "status");
        let is_last = state.is_some_and(ClusterState::is_ended);
        if is_last {
            self.metrics.ended(state.map_or("", ClusterState::as_str));
            self.waiting.remove(&upgrade.name_any());
        }
        let is_said = upgrade.spec.origin == Origin::Local || self.tell(upgrade, status);
        if is_last && is_said {
            self.told.insert(upgrade.name_any());
        }
    }

    fn rules(&self, upgrade: &ClusterUpgrade) -> olm_v0::decide::Rules {
        let proceeds = upgrade
            .spec
            .preflight
            .as_ref()
            .is_some_and(|policy| policy.on_fail == wavelift_api::shared::OnOutcome::Proceed);
        let gates =
            if proceeds { olm_v0::decide::Gates::Open } else { olm_v0::decide::Gates::Closed };
        let remedies = match self.settings.remedies {
            Switch::Enabled => olm_v0::Remedies::of(&upgrade.spec.remedies),
            Switch::Disabled => olm_v0::Remedies::default(),
        };
        olm_v0::decide::Rules { timings: self.settings.driver, gates, remedies }
    }
}

/// What became of an upgrade that has not started.
enum Readiness {
    /// It has started now.
    Started,
    /// It has not.
    Waits(Wake),
}

/// The upgrade's fence.
fn fence(upgrade: &ClusterUpgrade) -> Option<Fence> {
    let own = upgrade.metadata.uid.as_deref().unwrap_or("-");
    upgrade.spec.fence(own).ok()
}

/// Whether an upgrade has started, under its present spec, and has not ended.
fn has_begun(upgrade: &ClusterUpgrade) -> bool {
    status::begin(upgrade).start_time.is_some()
}

/// The plan that an upgrade goes by: its own, or the one that the agent made.
fn plan_of(upgrade: &ClusterUpgrade) -> Option<Plan> {
    let made = upgrade.status.as_ref().and_then(|status| status.plan.as_ref());
    Plan::try_from(upgrade.spec.plan.as_ref().or(made)?).ok()
}

/// The default times.
impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster: ClusterName::try_from("local").expect("a label"),
            global_namespaces: vec!["openshift-marketplace".to_owned(), "olm".to_owned()],
            driver: olm_v0::Timings::default(),
            recheck: SignedDuration::from_mins(5),
            settle: SignedDuration::from_mins(1),
            percent_period: SignedDuration::from_secs(5),
            remedies: Switch::default(),
        }
    }
}

/// Whether an upgrade may touch the cluster.
fn may_start(upgrade: &ClusterUpgrade) -> bool {
    upgrade.spec.stage == UpgradeStage::Rollout
}

/// The namespaces of a plan's steps from `from` on.
fn namespaces(plan: &Plan, from: usize) -> BTreeSet<&str> {
    plan.steps.iter().skip(from).map(|step| step.namespace.as_str()).collect()
}

/// A duration in the clock's time.
pub(crate) fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("settings", &self.settings).finish_non_exhaustive()
    }
}
