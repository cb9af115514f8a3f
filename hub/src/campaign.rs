//! Runs campaigns, as long as this hub leads.
//!
//! One task, the driver, owns all that the leader knows and never waits for anybody: watches
//! and agents tell it what is new, writes are carried out beside it and come back as news. After
//! each batch of news it looks at every campaign from the beginning: observe, validate, decide (in
//! core), apply, report. Nothing it remembers is needed to go on: a hub that is killed at any
//! moment finds everything in the objects and in what the agents repeat.

mod apply;
mod consent;
mod facts;
mod intake;
mod memory;
mod objects;
mod observe;
mod orphans;
mod part;
mod preview;
mod report;
mod select;
mod shown;
mod statuses;
mod tell;
mod validate;
mod writes;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use wavelift_api::{ClusterUpgrade, FleetUpgrade, managed_cluster::ManagedCluster};
use wavelift_core::{
    campaign::Limits,
    ids::{ClusterName, Uid},
};
use wavelift_runtime::{Clock, lease::Claim};
use wavelift_sources::BundleImages;

use self::{memory::Memory, objects::Objects, writes::Done};
pub(crate) use self::{objects::Watched, part::Part, report::Shown};
use crate::{
    cluster::{Admissions, Catalogs, Clusters, Planning, Room},
    events::Events,
    link::{HubCommand, LeaderState, LinkEvent, Registry, SendError},
    metrics::Metrics,
    preview::{ImageRoom, Images, Pieces, Previews, Room as PieceRoom},
    view::Board,
};

/// News taken in one go before the campaigns are looked at.
const BATCH_MAX: usize = 1_024;
/// How long writes under way may take to end when the hub stops leading of its own will.
const ENDING: Duration = Duration::from_secs(5);

/// The way to the agents.
pub(crate) trait Commands: Send + Sync + 'static {
    /// Sends a command, without waiting.
    fn send(&self, cluster: &ClusterName, command: HubCommand) -> Result<(), SendError>;
}

impl Commands for Registry {
    fn send(&self, cluster: &ClusterName, command: HubCommand) -> Result<(), SendError> {
        Self::send(self, cluster, command)
    }
}

/// How the driver behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What bounds one pass of the scheduler.
    pub limits: Limits,
    /// Writes of ClusterUpgrades at the same time.
    pub writes_max: usize,
    /// Plans made at the same time.
    pub plans_max: usize,
    /// How long one call to the API server may take; shorter than the time between the end of a
    /// claim and the end of its lease.
    pub call_timeout: Duration,
    /// How often the board is renewed, at most.
    pub board_period: Duration,
    /// How often what is missing is looked for though nothing happens.
    pub sweep: Duration,
    /// How long after taking over a shorter list of plans is not yet shown: agents come back one
    /// after another.
    pub settling: Duration,
}

/// Everything the driver needs and does not own.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) claim: Claim,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
    pub(crate) board: Board,
    pub(crate) identity: String,
    pub(crate) leading: Leading,
    pub(crate) settings: Settings,
    /// Fetches bundle images, if that is done.
    pub(crate) images: Option<BundleImages>,
}

/// Where it is said that this hub leads, once it knows everything.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    pub(crate) leader: watch::Sender<LeaderState>,
    pub(crate) readiness: wavelift_runtime::admin::Part,
}

/// News of the API server.
#[derive(Debug)]
pub(crate) enum News {
    Cluster(Watched<ManagedCluster>),
    Fleet(Watched<FleetUpgrade>),
    Part(Watched<ClusterUpgrade>),
}

/// Where news comes from.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) watches: mpsc::Receiver<News>,
    pub(crate) link: &'a mut mpsc::Receiver<LinkEvent>,
}

/// Runs all campaigns under one claim.
pub(crate) struct Driver<C> {
    context: Context,
    commands: C,
    clusters: Clusters,
    catalogs: Catalogs,
    planning: Planning,
    pieces: Pieces,
    images: Images,
    previews: Previews,
    objects: Objects,
    memory: Memory,
    tasks: JoinSet<Done>,
    writing: Arc<Semaphore>,
    plans_open: usize,
    previews_open: usize,
    requests: u64,
    /// A campaign carries a higher term: whatever the claim says, another hub leads.
    is_deposed: bool,
    /// This pass looks at everything, whether something happened or not.
    is_sweep: bool,
    /// Something may have to be done.
    is_dirty: bool,
    /// A command could not be sent: try again soon.
    must_resend: bool,
    /// Something new may have to be shown.
    is_shown: bool,
    publish_at: Option<Instant>,
    swept_at: Instant,
    began_at: Instant,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            writes_max: 32,
            plans_max: 2,
            call_timeout: Duration::from_secs(4),
            board_period: Duration::from_millis(100),
            sweep: Duration::from_secs(10),
            settling: Duration::from_secs(15),
        }
    }
}

impl Settings {
    /// Settings for a clock that runs `factor` times as fast: answers take real time, so what
    /// bounds them in upgrade time must not be shorter than that.
    #[must_use]
    pub fn for_factor(factor: f64) -> Self {
        let mut settings = Self::default();
        let real = |seconds: f64| {
            SignedDuration::try_from_secs_f64(seconds * factor).unwrap_or(SignedDuration::MAX)
        };
        let limits = &mut settings.limits;
        limits.check_timeout = limits.check_timeout.max(real(30.0));
        limits.preflight_fresh = limits.preflight_fresh.max(real(5.0));
        limits.return_grace = limits.return_grace.max(real(5.0));
        settings
    }
}

impl<C: Commands> Driver<C> {
    /// A driver that knows nothing yet.
    pub(crate) fn new(context: Context, commands: C, admissions: Admissions) -> Self {
        let now = Instant::now();
        Self {
            clusters: Clusters::new(admissions, context.clock.now()),
            catalogs: Catalogs::new(Room::default()),
            planning: Planning::default(),
            pieces: Pieces::new(PieceRoom::default()),
            images: Images::new(ImageRoom::default(), context.images.clone()),
            previews: Previews::default(),
            objects: Objects::default(),
            memory: Memory::default(),
            tasks: JoinSet::new(),
            writing: Arc::new(Semaphore::new(context.settings.writes_max.max(1))),
            plans_open: 0,
            previews_open: 0,
            requests: 0,
            is_deposed: false,
            is_sweep: false,
            is_dirty: true,
            must_resend: false,
            is_shown: true,
            publish_at: None,
            swept_at: now,
            began_at: now,
            context,
            commands,
        }
    }

    /// Runs until `stop`, or until the claim is over.
    pub(crate) async fn run(mut self, mut inputs: Inputs<'_>, stop: CancellationToken) {
        info!(term = self.context.claim.term().0, "campaigns: leading");
        while !self.is_deposed && self.context.claim.check().is_ok() {
            let (wake_at, retry_at) = self.timers();
            let clock = self.context.clock.clone();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(news) = inputs.watches.recv() => self.news(news),
                Some(event) = inputs.link.recv() => self.event(event),
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => self.done(done),
                () = clock.sleep_until(wake_at) => self.is_dirty = true,
                () = sleep_until(retry_at) => {}
            }
            self.drain(&mut inputs);
            self.passes();
            self.publish();
        }
        self.end().await;
    }

    /// Takes what else has come meanwhile.
    fn drain(&mut self, inputs: &mut Inputs<'_>) {
        for _ in 0..BATCH_MAX {
            let mut is_empty = true;
            if let Ok(news) = inputs.watches.try_recv() {
                self.news(news);
                is_empty = false;
            }
            if let Ok(event) = inputs.link.try_recv() {
                self.event(event);
                is_empty = false;
            }
            if let Some(done) = self.tasks.try_join_next() {
                self.done(done);
                is_empty = false;
            }
            if is_empty {
                break;
            }
        }
    }

    /// Whether everything has been listed once; before that nothing is decided.
    fn is_ready(&self) -> bool {
        self.clusters.is_complete()
            && self.objects.fleets.is_complete()
            && self.objects.parts.is_complete()
    }

    /// Looks at every campaign, if there is a reason to.
    fn passes(&mut self) {
        let now = Instant::now();
        self.is_sweep = now.duration_since(self.swept_at) >= self.context.settings.sweep;
        if self.is_sweep {
            self.swept_at = now;
            self.want_catalogs();
            self.is_dirty = true;
        }
        let is_due = self.is_dirty || self.must_resend || self.is_retry_due(now);
        if !is_due || !self.is_ready() {
            return;
        }
        self.announce();
        let on_clock = self.context.clock.now();
        self.is_dirty = false;
        self.must_resend = false;
        self.is_shown = true;
        let timer = self.context.metrics.pass_seconds.start_timer();
        self.drop_gone();
        self.pieces.recount();
        self.images.recount(now);
        let uids: Vec<Uid> = self
            .objects
            .fleets
            .iter()
            .filter_map(|(_, fleet)| Uid::try_from(fleet.metadata.uid.as_deref()?).ok())
            .collect();
        for uid in &uids {
            self.pass(uid);
            if self.is_deposed {
                return;
            }
        }
        self.orphans();
        self.make_plans();
        self.make_previews();
        self.fetch_images();
        self.waited(now, on_clock);
        timer.observe_duration();
    }

    /// Everything is known: from now on agents are let in, and people are answered.
    fn announce(&self) {
        let term = self.context.claim.term();
        self.context.leading.leader.send_if_modified(|state| {
            let is_news = state.term != Some(term);
            state.term = Some(term);
            is_news
        });
        self.context.leading.readiness.set_ready();
    }

    /// Forgets campaigns and parts that no longer exist.
    fn drop_gone(&mut self) {
        let Self { objects, memory, context, .. } = self;
        memory.campaigns.retain(|uid, memory| {
            let exists = objects.has_campaign(uid);
            if let (false, Some(shown)) = (exists, &memory.shown) {
                context.metrics.forget(shown);
            }
            exists
        });
        memory.tracks.retain(|key, track| {
            let exists = objects.parts.get(key).is_some();
            exists || track.write.is_under_way || track.write.has_failed()
        });
    }

    /// When to look again: on the campaigns' clock, and in real time.
    fn timers(&self) -> (Timestamp, Instant) {
        let campaigns = self.memory.campaigns.values();
        let wake_at = campaigns.filter_map(|memory| memory.wake_at).min();
        let mut retry_at = self.swept_at + self.context.settings.sweep;
        if self.must_resend {
            retry_at = retry_at.min(Instant::now() + Duration::from_millis(250));
        }
        if let Some(at) = self.retries().min() {
            retry_at = retry_at.min(at);
        }
        if let (true, Some(at)) = (self.is_shown, self.publish_at) {
            retry_at = retry_at.min(at);
        }
        (wake_at.unwrap_or(Timestamp::MAX), retry_at)
    }

    fn retries(&self) -> impl Iterator<Item = Instant> {
        let campaigns = self.memory.campaigns.values().map(|memory| &memory.write);
        let parts = self.memory.tracks.values().map(|track| &track.write);
        let reports = self.memory.campaigns.values().filter_map(|memory| memory.report_at);
        campaigns.chain(parts).filter_map(memory::Attempt::not_before).chain(reports)
    }

    /// Everything whose pause was over has had its turn.
    ///
    /// Both times are those of the beginning of the pass: what it found to come is later.
    fn waited(&mut self, now: Instant, on_clock: Timestamp) {
        for memory in self.memory.campaigns.values_mut() {
            memory.write.waited(now);
            memory.report_at = memory.report_at.filter(|at| *at > now);
            // A time that is past must not wake a campaign that nobody looks at any more.
            memory.wake_at = memory.wake_at.filter(|at| *at > on_clock);
        }
        for track in self.memory.tracks.values_mut() {
            track.write.waited(now);
        }
    }

    fn is_retry_due(&self, now: Instant) -> bool {
        self.retries().any(|at| at <= now)
    }

    /// Renews what is shown, at most some times a second.
    fn publish(&mut self) {
        let now = Instant::now();
        let is_early = self.publish_at.is_some_and(|at| now < at);
        if !self.is_shown || is_early || !self.is_ready() {
            return;
        }
        self.is_shown = false;
        let fleet = self.fleet_view();
        self.context.board.publish(fleet);
        self.count();
        // A large fleet takes its time: most of it is left to other things.
        let pause = self.context.settings.board_period.max(now.elapsed() * 10);
        self.publish_at = Some(Instant::now() + pause);
    }

    /// Lets writes under way end, so that the next leader does not find half of them.
    async fn end(mut self) {
        self.context.leading.leader.send_replace(LeaderState { term: None });
        self.context.board.publish(crate::view::Fleet::default());
        self.images.end();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(ENDING, all).await.is_err() {
            warn!("campaigns: some writes did not end in time");
        }
        info!(term = self.context.claim.term().0, "campaigns: not leading any more");
    }

    /// Sends a command; one that found no room is sent again at a later pass.
    fn send(&mut self, cluster: &ClusterName, command: HubCommand) -> bool {
        match self.commands.send(cluster, command) {
            Ok(()) => true,
            // The session is over; its end is on its way here.
            Err(SendError::NotConnected) => false,
            Err(SendError::QueueFull) => {
                self.must_resend = true;
                false
            }
            Err(error @ SendError::TooLarge { .. }) => {
                warn!(%cluster, %error, "campaigns: a command is too long");
                false
            }
        }
    }
}
