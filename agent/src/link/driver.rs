//! The task that holds the session and comes back after every break.

use std::{pin::Pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rand::{SeedableRng as _, rngs::SmallRng};
use rustls::ClientConfig;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{info, warn};
use wavelift_proto::v1::{AgentMessage, HubMessage};

use super::{
    backoff::Hint,
    connect::{self, Connection},
    error::Error,
    handle::{LinkHandle, LinkState, Shared},
    inbox::{Inbox, Received},
    message::{AgentReport, HubCommand, Welcome},
    metrics::Metrics,
    outbox::Outbox,
    outgoing::Outgoing,
    settings::Settings,
};

/// The hub is silent when so many of its answers to signs of life are missing.
const HEARTBEATS_MISSED: u32 = 3;
/// A session that lived so long was a good one: the next break starts the backoff anew.
const GOOD_SESSION: Duration = Duration::from_secs(10);

/// Starts the link. `tls` is looked at for each session; when it changes, a second session is
/// opened before the first is left.
///
/// The task ends with `shutdown`, or when all handles or the receiver of commands are dropped.
pub fn spawn(
    settings: Settings,
    tls: watch::Receiver<Arc<ClientConfig>>,
    metrics: Metrics,
    shutdown: CancellationToken,
) -> (LinkHandle, mpsc::Receiver<HubCommand>) {
    let (queue, reports) = mpsc::channel(settings.queue_max);
    let (commands, taken) = mpsc::channel(settings.queue_max);
    let shared = Arc::new(Shared {
        outbox: Mutex::new(Outbox::new(settings.outbox_max)),
        outbox_changed: Notify::new(),
        highest_term: watch::channel(settings.highest_term).0,
        state: watch::channel(LinkState::Connecting).0,
    });
    let inbox = Inbox { shared: Arc::clone(&shared), metrics: metrics.clone(), commands };
    let driver = Driver {
        settings: Arc::new(settings),
        tls,
        shared: Arc::clone(&shared),
        inbox,
        outgoing: Outgoing::new(metrics.clone()),
        metrics,
        reports,
        shutdown,
        rng: SmallRng::from_os_rng(),
        failures: 0,
    };
    tokio::spawn(driver.run());
    (LinkHandle { shared, queue }, taken)
}

struct Driver {
    settings: Arc<Settings>,
    tls: watch::Receiver<Arc<ClientConfig>>,
    shared: Arc<Shared>,
    inbox: Inbox,
    outgoing: Outgoing,
    metrics: Metrics,
    reports: mpsc::Receiver<AgentReport>,
    shutdown: CancellationToken,
    rng: SmallRng,
    /// Tries in a row that came to nothing.
    failures: u32,
}

/// How a session ended.
enum End {
    /// The session broke, or was refused.
    Failed(Error),
    /// The hub asked the agent to come back later.
    Drained(Hint),
    /// Another agent with this cluster's certificate has taken the session's place.
    Replaced,
    /// A second session with the new certificate is there.
    Handover(Box<Connection>),
    /// The process ends, or nobody uses the link any more.
    Stop,
}

/// The second session that is being opened, while the first still serves.
type Handover = Pin<Box<dyn Future<Output = Result<Connection, Error>> + Send>>;

/// What a session keeps while it runs.
struct Running {
    welcome: Welcome,
    heard: Instant,
    heartbeats: Interval,
    repeats: Interval,
    /// Room for the command that the next message may hold.
    room: Option<mpsc::OwnedPermit<HubCommand>>,
    handover: Option<Handover>,
    handover_failures: u32,
    /// Whether certificates may still change.
    is_tls_live: bool,
}

impl Driver {
    async fn run(mut self) {
        let mut next = None;
        while let Some(connection) = self.connection(next.take()).await {
            let began = Instant::now();
            let end = self.serve(connection).await;
            if began.elapsed() >= GOOD_SESSION {
                self.failures = 0;
            }
            let (why, delay) = match end {
                End::Handover(connection) => {
                    next = Some(*connection);
                    continue;
                }
                End::Stop => break,
                End::Failed(error) => (error.chain(), self.backoff()),
                End::Drained(hint) => {
                    ("the hub asked to come back later".to_owned(), hint.delay(&mut self.rng))
                }
                End::Replaced => (
                    "another agent with this cluster's certificate has taken over".to_owned(),
                    self.settings.backoff.cap,
                ),
            };
            if !self.wait(why, delay).await {
                break;
            }
        }
        self.shared.state.send_replace(LinkState::Stopped);
    }

    /// A session: the one that is there, or else a new one, however long that takes.
    async fn connection(&mut self, ready: Option<Connection>) -> Option<Connection> {
        if ready.is_some() {
            return ready;
        }
        loop {
            self.shared.state.send_replace(LinkState::Connecting);
            let opening = self.open();
            let opened = tokio::select! {
                opened = opening => opened,
                () = self.shutdown.cancelled() => return None,
                () = self.inbox.commands.closed() => return None,
            };
            match self.count(opened) {
                Ok(connection) => return Some(connection),
                Err(error) => {
                    let delay = self.backoff();
                    if !self.wait(error.chain(), delay).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Begins to open a session with the certificate that is current now.
    fn open(&mut self) -> Handover {
        let tls = Arc::clone(&self.tls.borrow_and_update());
        Box::pin(connect::open(Arc::clone(&self.settings), tls, Arc::clone(&self.shared)))
    }

    fn count(&self, opened: Result<Connection, Error>) -> Result<Connection, Error> {
        let result = opened.as_ref().map_or_else(Error::kind, |_| "ok");
        self.metrics.connects.with_label_values(&[result]).inc();
        opened
    }

    fn backoff(&mut self) -> Duration {
        let delay = self.settings.backoff.delay(self.failures, &mut self.rng);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Waits before the next try; whether there is to be one.
    async fn wait(&self, why: String, delay: Duration) -> bool {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        info!(delay_ms, why, "no session with the hub, trying again");
        self.shared.state.send_replace(LinkState::Waiting { why });
        tokio::select! {
            () = sleep(delay) => true,
            () = self.shutdown.cancelled() => false,
            () = self.inbox.commands.closed() => false,
        }
    }

    async fn serve(&mut self, connection: Connection) -> End {
        let Connection { welcome, mut incoming, out } = connection;
        let (session, term) = (welcome.session, welcome.term);
        info!(session, %term, "connected to the hub");
        self.metrics.heard();
        self.outgoing.begin_session(&self.shared);
        self.shared.state.send_replace(LinkState::Connected { session, term });
        let connected = HubCommand::Connected(welcome.clone());
        let told = tokio::select! {
            told = self.inbox.commands.send(connected) => told.is_ok(),
            () = self.shutdown.cancelled() => false,
        };
        if !told {
            return End::Stop;
        }
        let mut running = Running::new(welcome);
        let end = loop {
            if let Some(end) = self.turn(&mut running, &mut incoming, &out).await {
                break end;
            }
        };
        // What was said is delivered and what the hub says to it is heard, beside whatever comes
        // next; only at the process's end there is nothing beside.
        drop(out);
        let finish = self.inbox.clone().finish(incoming, self.settings.closing_grace);
        match end {
            End::Stop => finish.await,
            End::Failed(_) => {}
            End::Drained(_) | End::Replaced | End::Handover(_) => {
                tokio::spawn(finish);
            }
        }
        end
    }

    /// Waits for the next thing to happen in a session and does what it asks for.
    async fn turn(
        &mut self,
        running: &mut Running,
        incoming: &mut tonic::Streaming<HubMessage>,
        out: &mpsc::Sender<AgentMessage>,
    ) -> Option<End> {
        let has_room = running.room.is_some();
        let is_waiting = self.outgoing.is_waiting(&self.shared);
        let silent_at = running.silent_at();
        tokio::select! {
            room = self.inbox.commands.clone().reserve_owned(), if !has_room => match room {
                Ok(room) => {
                    running.room = Some(room);
                    // What was not read can't have been heard.
                    running.heard = Instant::now();
                }
                Err(_) => return Some(End::Stop),
            },
            message = incoming.message(), if has_room => return self.take(running, message),
            slot = out.reserve(), if is_waiting => match slot {
                Ok(slot) => {
                    let bytes_max = running.welcome.message_bytes_max;
                    if let Some(message) = self.outgoing.next(&self.shared, bytes_max) {
                        slot.send(message);
                    }
                }
                // The stream is broken; the reader says why.
                Err(_) => return Some(End::Failed(Error::Closed)),
            },
            report = self.reports.recv(), if self.outgoing.wants_report() => match report {
                Some(report) => self.outgoing.put(report),
                None => return Some(End::Stop),
            },
            () = self.shared.outbox_changed.notified() => {}
            _ = running.heartbeats.tick() => self.outgoing.heartbeat(),
            _ = running.repeats.tick() => self.shared.outbox.lock().repeat(),
            () = sleep_until(silent_at), if has_room => {
                return Some(End::Failed(Error::Silent));
            }
            changed = self.tls.changed(), if running.is_tls_live => match changed {
                Ok(()) => running.handover = Some(self.open()),
                Err(_) => running.is_tls_live = false,
            },
            opened = opened(&mut running.handover) => return self.hand_over(running, opened),
            () = self.shutdown.cancelled() => return Some(End::Stop),
        }
        None
    }

    fn take(
        &self,
        running: &mut Running,
        message: Result<Option<HubMessage>, Status>,
    ) -> Option<End> {
        running.heard = Instant::now();
        let message = match message {
            Ok(Some(message)) => message,
            Ok(None) => return Some(End::Failed(Error::Closed)),
            Err(status) => return Some(End::Failed(Error::from_status(status))),
        };
        match self.inbox.take(message) {
            Ok(Received::Nothing) => None,
            Ok(Received::Command(command)) => {
                // A message is read only when there is room for its command.
                running.room.take()?.send(command);
                None
            }
            // The hub has the second session that we are about to hear of.
            Ok(Received::Drain { is_replaced: true, .. }) if running.handover.is_some() => None,
            Ok(Received::Drain { is_replaced: true, .. }) => Some(End::Replaced),
            Ok(Received::Drain { hint, is_replaced: false }) => Some(End::Drained(hint)),
            Err(error) => Some(End::Failed(error)),
        }
    }

    /// The second session is there, or could not be opened: then it is tried again while the
    /// first lasts.
    fn hand_over(
        &mut self,
        running: &mut Running,
        opened: Result<Connection, Error>,
    ) -> Option<End> {
        match self.count(opened) {
            Ok(connection) => Some(End::Handover(Box::new(connection))),
            Err(error) => {
                warn!(
                    kind = error.kind(),
                    "the new certificate opens no session, the former stays: {}",
                    error.chain()
                );
                let delay = self.settings.backoff.delay(running.handover_failures, &mut self.rng);
                running.handover_failures = running.handover_failures.saturating_add(1);
                let opening = self.open();
                running.handover = Some(Box::pin(async move {
                    sleep(delay).await;
                    opening.await
                }));
                None
            }
        }
    }
}

impl Running {
    fn new(welcome: Welcome) -> Self {
        let now = Instant::now();
        let every = |period| {
            let mut interval = interval_at(now + period, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        Self {
            heard: now,
            heartbeats: every(welcome.heartbeat_interval),
            repeats: every(welcome.status_repeat),
            room: None,
            handover: None,
            handover_failures: 0,
            is_tls_live: true,
            welcome,
        }
    }

    fn silent_at(&self) -> Instant {
        self.heard + self.welcome.heartbeat_interval * HEARTBEATS_MISSED
    }
}

/// Waits for the second session, for ever if none is being opened.
async fn opened(handover: &mut Option<Handover>) -> Result<Connection, Error> {
    match handover {
        Some(opening) => {
            let opened = opening.as_mut().await;
            *handover = None;
            opened
        }
        None => std::future::pending().await,
    }
}
