//! The agent's one loop: the hub's wishes, the cluster's changes, and the time.

mod options;

use std::time::{Duration, Instant};

use backon::{ExponentialBuilder, Retryable as _};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use wavelift_core::{fence::Term, plan::Plan};
use wavelift_runtime::{Clock, admin::Part, telemetry::chain};

pub use self::options::{AgentOptions, HubOptions, Timings};
use crate::{
    drivers::olm_v0,
    inventory::Current,
    journal::{self, Journal, Start},
    link::{
        self, AgentReport, CheckReport, CheckRequest, ControlAction, HubAddress, HubCommand,
        LinkHandle, Query,
    },
    metrics::Metrics,
    mirror::Mirror,
    pins::Pins,
    query,
    upgrade::{Executor, Seen, Settings, Wake, signed},
    wishes::{Wish, Wishes},
};

/// From one look at the cluster's versions to the next, at least, in real time: they change once
/// in weeks.
const VERSIONS_PERIOD: Duration = Duration::from_secs(30);
/// From a pass that failed to the next, in real time. It doubles with each further one.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(16);

/// Why the agent ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The metrics could not be registered.
    #[error("metrics")]
    Metrics(#[from] crate::metrics::Error),
}

/// Runs the agent until `shutdown`.
pub async fn run(options: AgentOptions, shutdown: CancellationToken) -> Result<(), Error> {
    Box::pin(run_with(options, connect, shutdown)).await
}

/// The way to the hub and what comes from there, if there is a hub.
type Way = (Option<LinkHandle>, Option<mpsc::Receiver<HubCommand>>);

/// Runs the agent with the way to the hub that `connect` makes.
pub(crate) async fn run_with(
    options: AgentOptions,
    connect: impl FnOnce(&AgentOptions, &Metrics, Start, &Current, &CancellationToken) -> Way,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let metrics = Metrics::register(&options.metrics)?;
    let ready = options.readiness.part("cluster", "first look under way");
    let journal = Journal::new(&options.client, &options.namespace);
    let begun = tokio::select! {
        start = begin(&journal) => start,
        () = shutdown.cancelled() => return Ok(()),
    };
    info!(cluster = %options.cluster, boot = begun.boot, term = %begun.term, "agent starts");
    let mut current = Current::default();
    current.read_versions(&options.client).await;
    let (link, commands) = connect(&options, &metrics, begun, &current, &shutdown);
    let mirror = Mirror::start(&options.client, options.namespace.as_str());
    let executor = Executor::new(
        options.client.clone(),
        options.clock.clone(),
        settings(&options),
        journal.clone(),
        begun.boot,
        metrics.clone(),
    )
    .with_link(link.clone())
    .with_pins(Pins::new(options.pinned_catalogs.clone()));
    let agent = Agent {
        period: options.timings.inventory_period,
        complete_by: olm_v0::decide::later(options.clock.now(), options.timings.first_readings),
        versions_read: Instant::now(),
        announced: None,
        announce_at: None,
        is_ready: false,
        wake: Wake::default(),
        retry: None,
        pause: RETRY,
        is_blind: false,
        wishes: Wishes::default(),
        options,
        ready,
        journal,
        current,
        link,
        mirror,
        executor,
        metrics,
    };
    agent.run(commands, shutdown).await;
    Ok(())
}

struct Agent {
    options: AgentOptions,
    ready: Part,
    journal: Journal,
    current: Current,
    link: Option<LinkHandle>,
    mirror: Mirror,
    executor: Executor,
    metrics: Metrics,
    /// From one announcement to the next.
    period: SignedDuration,
    /// Until then nothing is announced while a catalog is read for the first time.
    complete_by: Timestamp,
    versions_read: Instant,
    /// The digest that the hub was told, and when.
    announced: Option<(String, Timestamp)>,
    announce_at: Option<Timestamp>,
    is_ready: bool,
    wake: Wake,
    retry: Option<tokio::time::Instant>,
    /// What comes before the next try.
    pause: Duration,
    /// Whether something that was read before cannot be read now.
    is_blind: bool,
    wishes: Wishes,
}

/// Reads what the life before this one left; waits for the API server as long as it takes.
async fn begin(journal: &Journal) -> Start {
    let patience = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(15))
        .with_jitter()
        .without_max_times();
    let told = |error: &journal::Error, after: Duration| {
        warn!(error = %chain(error), ?after, "the API server is not there yet");
    };
    let start = (|| journal.start()).retry(patience).notify(told).await;
    start.unwrap_or_default()
}

fn connect(
    options: &AgentOptions,
    metrics: &Metrics,
    begun: Start,
    current: &Current,
    shutdown: &CancellationToken,
) -> Way {
    let Some(hub) = &options.hub else { return (None, None) };
    let address =
        HubAddress { host: hub.host.clone(), port: hub.port, server_name: hub.server_name.clone() };
    let version = env!("CARGO_PKG_VERSION");
    let mut settings = link::Settings::new(address, options.cluster.clone(), version, begun.boot);
    settings.highest_term = begun.term;
    current.kube_version().unwrap_or_default().clone_into(&mut settings.kube_version);
    let (handle, commands) =
        link::spawn(settings, hub.tls.clone(), metrics.link.clone(), shutdown.child_token());
    (Some(handle), Some(commands))
}

fn settings(options: &AgentOptions) -> Settings {
    let timings = options.timings;
    Settings {
        cluster: options.cluster.clone(),
        global_namespaces: options.global_catalog_namespaces.clone(),
        driver: timings.driver,
        recheck: timings.recheck,
        settle: timings.settle,
        percent_period: timings.percent_period,
        remedies: options.remedies,
    }
}

// === impl Agent ===

impl Agent {
    async fn run(
        mut self,
        mut commands: Option<mpsc::Receiver<HubCommand>>,
        shutdown: CancellationToken,
    ) {
        let mut changes = self.mirror.changes();
        let mut contents = self.options.catalogs.changes();
        let clock = self.options.clock.clone();
        loop {
            let at = self.wake.0.into_iter().chain(self.announce_at).min();
            let retry = self.retry;
            let wishes = self.wishes.again_at();
            tokio::select! {
                () = shutdown.cancelled() => break,
                // Nothing is answered before the first look.
                command = next(&mut commands), if self.is_ready => match command {
                    Some(command) => self.obey(command).await,
                    None => commands = None,
                },
                () = news(&mut changes, &mut contents) => {}
                () = sleep(&clock, at) => {}
                () = sleep_real(retry) => {}
                () = sleep_real(wishes) => self.carry_out().await,
            }
            changes.mark_unchanged();
            self.look().await;
        }
        info!(cluster = %self.options.cluster, "agent ends");
    }

    /// Looks at the cluster and does what is due.
    async fn look(&mut self) {
        if !self.mirror.is_settled() {
            return;
        }
        if self.versions_read.elapsed() >= VERSIONS_PERIOD {
            self.versions_read = Instant::now();
            self.current.read_versions(&self.options.client).await;
        }
        self.current.refresh(&self.mirror, &*self.options.catalogs).await;
        if !self.is_ready {
            self.is_ready = true;
            self.ready.set_ready();
        }
        self.announce();
        self.note_what_is_unread();
        let seen = Seen { mirror: &self.mirror, current: &self.current };
        match self.executor.pass(seen).await {
            Ok(wake) => {
                self.wake = wake;
                self.retry = None;
                self.pause = RETRY;
            }
            Err(error) => {
                warn!(error = %chain(&error), "a pass was not finished");
                self.wake = Wake::default();
                self.retry = Some(tokio::time::Instant::now() + self.pause);
                self.pause = (self.pause * 2).min(RETRY_MAX);
            }
        }
    }

    /// Tells once that the cluster cannot be read, and once that it can be again.
    fn note_what_is_unread(&mut self) {
        let behind = self.mirror.behind();
        self.metrics.unread(behind.iter().map(|(kind, _)| *kind));
        let was_blind = std::mem::replace(&mut self.is_blind, !behind.is_empty());
        match behind.first() {
            Some((kind, behind)) if !was_blind => {
                warn!(kind, why = behind.why, "the cluster cannot be read; nothing is decided");
            }
            None if was_blind => info!("the cluster is read again"),
            Some(_) | None => {}
        }
    }

    /// Tells the hub the inventory's digest when it is another one, at most once in a period.
    fn announce(&mut self) {
        self.announce_at = None;
        if self.current.digest.is_empty() || self.link.is_none() {
            return;
        }
        let now = self.options.clock.now();
        if now < self.complete_by && self.current.is_reading() {
            self.announce_at = Some(self.complete_by);
            return;
        }
        if let Some((told, at)) = &self.announced {
            if *told == self.current.digest {
                return;
            }
            let due = olm_v0::decide::later(*at, self.period);
            if now < due {
                self.announce_at = Some(due);
                return;
            }
        }
        let digest = self.current.digest.clone();
        if self.send(AgentReport::InventoryDigest(digest.clone())) {
            self.announced = Some((digest, now));
        }
    }

    /// Never waits: what does not fit is asked for again, or said again at the next session.
    fn send(&self, report: AgentReport) -> bool {
        let Some(link) = &self.link else { return false };
        let sent = link.try_send(report);
        if let Err(error) = &sent {
            debug!(%error, "not sent");
        }
        sent.is_ok()
    }

    fn highest_term(&self) -> Term {
        self.link.as_ref().map(LinkHandle::highest_term).unwrap_or_default()
    }

    async fn obey(&mut self, command: HubCommand) {
        match command {
            HubCommand::Connected(welcome) => {
                self.period = signed(welcome.inventory_period);
                self.announced = None;
            }
            HubCommand::InventoryRequest { digest } => self.give_inventory(&digest),
            HubCommand::CatalogRequest { digest } => self.give_catalog(digest),
            HubCommand::PieceRequest { digest } => self.give_piece(digest),
            HubCommand::Assign(assignment) => {
                self.wishes.take(Wish::Assign(assignment));
                self.carry_out().await;
            }
            HubCommand::Control(control) => {
                self.wishes.take(Wish::Control(control));
                self.carry_out().await;
            }
            HubCommand::Check(request) => self.check(request).await,
            HubCommand::Query(query) => self.answer(query).await,
            HubCommand::Acknowledged { upgrade, fence, revision } => {
                let journal = &self.journal;
                let done = retried(|| journal.acknowledge(&upgrade, &fence, revision)).await;
                self.executor.acknowledged(upgrade.name.as_str());
                self.noted("acknowledgement", done);
            }
        }
    }

    /// Writes the hub's wishes down.
    async fn carry_out(&mut self) {
        let highest = self.highest_term();
        for (wish, outcome) in self.wishes.carry_out(&self.journal, highest).await {
            match (&wish, &outcome) {
                (Wish::Assign(assignment), Ok(())) => {
                    self.executor.assigned(assignment.upgrade.name.as_str());
                }
                (Wish::Control(control), Ok(())) if control.action == ControlAction::Forget => {
                    if let Some(link) = &self.link {
                        link.forget(&control.upgrade);
                    }
                }
                (Wish::Assign(_) | Wish::Control(_), Ok(()) | Err(_)) => {}
            }
            let what = match wish {
                Wish::Assign(_) => "assignment",
                Wish::Control(_) => "control",
            };
            self.noted(what, outcome);
        }
    }

    fn noted(&self, what: &str, done: Result<(), journal::Error>) {
        match done {
            Ok(()) => {}
            Err(error @ journal::Error::Refused(_)) => {
                warn!(error = %chain(&error), kind = error.kind(), "{what} of the hub");
                self.metrics.refused(error.kind());
            }
            Err(
                error @ (journal::Error::List(_)
                | journal::Error::Read { .. }
                | journal::Error::Write { .. }),
            ) => warn!(error = %chain(&error), "{what} of the hub was not written down"),
        }
    }

    fn give_inventory(&mut self, asked: &str) {
        let digest = self.current.digest.clone();
        if digest != asked {
            // It has changed since: the new one is told first, and asked for.
            self.announced = None;
            return;
        }
        match serde_json::to_vec(&self.current.inventory) {
            Ok(json) => {
                self.send(AgentReport::Inventory { digest, content: Bytes::from(json) });
            }
            Err(error) => warn!(%error, "the inventory cannot be written as JSON"),
        }
    }

    fn give_catalog(&self, digest: String) {
        if let Some(catalog) = self.current.by_digest(&digest) {
            let content = Bytes::from(catalog.graph().to_canonical_json());
            self.send(AgentReport::Catalog { digest, content });
        } else {
            warn!(digest, "the hub asks for a catalog that is not here any more");
        }
    }

    fn give_piece(&self, digest: String) {
        if let Some(content) = self.current.piece(&digest) {
            self.send(AgentReport::Piece { digest, content: Bytes::from(content) });
        } else {
            let reason = "no catalog of this cluster holds it any more".to_owned();
            self.send(AgentReport::PieceMissing { digest, reason });
        }
    }

    async fn check(&mut self, request: CheckRequest) {
        let CheckRequest { request_id, fence, spec_json, .. } = request;
        let plan = match plan(&spec_json) {
            Ok(plan) => plan,
            Err(why) => {
                warn!(why, "a check request of the hub is not valid");
                self.metrics.refused("invalid");
                return;
            }
        };
        let moves = plan.steps.iter().flat_map(|step| &step.moves);
        self.current.want(moves.map(|item| item.package.as_str()));
        let seen = Seen { mirror: &self.mirror, current: &self.current };
        let findings = self.executor.check(&plan, seen).await;
        match serde_json::to_vec(&findings) {
            Ok(json) => {
                let results_json = Bytes::from(json);
                let report = CheckReport { request_id, fence, results_json };
                self.send(AgentReport::CheckReport(report));
            }
            Err(error) => warn!(%error, "check results cannot be written as JSON"),
        }
    }

    async fn answer(&self, query: Query) {
        let result = query::answer(&query, &self.journal, &self.current).await;
        self.send(AgentReport::QueryAnswer { id: query.id, result });
    }
}

fn plan(spec_json: &[u8]) -> Result<Plan, String> {
    let spec: wavelift_api::ClusterUpgradeSpec =
        serde_json::from_slice(spec_json).map_err(|error| error.to_string())?;
    let plan = spec.plan.ok_or("it has no plan")?;
    Plan::try_from(&plan).map_err(|error| error.to_string())
}

/// Tries a write a few times; a refusal is final.
async fn retried<F>(mut act: impl FnMut() -> F) -> Result<(), journal::Error>
where
    F: Future<Output = Result<(), journal::Error>>,
{
    let patience = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_times(5)
        .with_jitter();
    let is_transient = |error: &journal::Error| !matches!(error, journal::Error::Refused(_));
    (|| act()).retry(patience).when(is_transient).await
}

/// Waits until the cluster is another, or what its catalogs serve.
async fn news(changes: &mut watch::Receiver<u64>, contents: &mut Option<watch::Receiver<u64>>) {
    let served = async {
        if let Some(contents) = contents {
            // Whoever tells of them outlives the loop.
            contents.changed().await.is_ok()
        } else {
            false
        }
    };
    tokio::select! {
        // The mirror outlives the loop.
        _ = changes.changed() => {}
        true = served => {}
    }
}

async fn next(commands: &mut Option<mpsc::Receiver<HubCommand>>) -> Option<HubCommand> {
    match commands {
        Some(commands) => commands.recv().await,
        None => std::future::pending().await,
    }
}

async fn sleep(clock: &Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn sleep_real(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Metrics(error) => error.kind(),
        }
    }
}
