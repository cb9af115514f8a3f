//! One agent's session, from its first message after Hello to its end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tonic::{Status, Streaming};
use tracing::info;
use wavelift_core::fence::Term;
use wavelift_proto::v1::{AgentMessage, HubMessage};
use wavelift_runtime::identity::AgentIdentity;

use super::{
    convert::{self, Incoming},
    event::{AgentHello, Content, LinkEvent, SessionEnd, SessionId, UploadDropped},
    parts::{Assembly, Part, Taken},
    queries::Queries,
    rate::Bucket,
    refusal::Refusal,
    registry::Outgoing,
    service::{Phase, Shared},
    settings::LeaderState,
};

/// A session is silent when it has missed so many signs of life.
const HEARTBEATS_MISSED: u32 = 3;
/// tokio's timers and `Instant` have an end; this is far enough.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 30);

pub(super) struct Session<A> {
    pub(super) shared: Arc<Shared<A>>,
    pub(super) phase: Arc<watch::Sender<Phase>>,
    pub(super) remote: SocketAddr,
    pub(super) identity: AgentIdentity,
    pub(super) id: SessionId,
    pub(super) term: Term,
    pub(super) hello: AgentHello,
    pub(super) incoming: Streaming<AgentMessage>,
    pub(super) out: Outgoing,
    /// The place that is kept for the stream's last word.
    pub(super) last: mpsc::OwnedPermit<Result<HubMessage, Status>>,
    pub(super) closed: watch::Receiver<Option<SessionEnd>>,
    pub(super) queries: Arc<Queries>,
}

/// What a session keeps while it runs.
struct Running {
    bucket: Bucket,
    inventory: Assembly,
    catalog: Assembly,
    piece: Assembly,
    /// When the session ends for want of signs of life, or of leaving when asked to.
    deadline: Instant,
    /// Why the hub asked the agent to leave.
    leaving: Option<SessionEnd>,
}

/// Why a session ended, with the word for the agent if it broke a rule.
enum Ended {
    By(SessionEnd),
    Refused(Refusal),
}

impl<A: Send + Sync + 'static> Session<A> {
    pub(super) async fn run(mut self) {
        let cluster = self.identity.cluster.clone();
        info!(%cluster, session = %self.id, remote = %self.remote, "agent connected");
        let connected = LinkEvent::Connected {
            cluster: cluster.clone(),
            session: self.id,
            hello: self.hello.clone(),
        };
        let ended = match self.emit(connected).await {
            Ok(()) => self.serve().await,
            Err(ended) => ended,
        };
        self.finish(ended).await;
    }

    async fn serve(&mut self) -> Ended {
        let limits = &self.shared.settings.limits;
        let silence = self.shared.settings.heartbeat_interval * HEARTBEATS_MISSED;
        let now = Instant::now();
        let mut running = Running {
            bucket: Bucket::new(limits.messages_burst, limits.messages_per_second, now),
            inventory: Assembly::new(self.shared.uploads.clone(), limits.inventory_bytes_max),
            catalog: Assembly::new(self.shared.uploads.clone(), limits.catalog_bytes_max),
            piece: Assembly::new(self.shared.uploads.clone(), limits.piece_bytes_max),
            deadline: now + silence,
            leaving: None,
        };
        let ended = self.listen(&mut running, silence).await;
        for (content, assembly) in [
            (Content::Inventory, &mut running.inventory),
            (Content::Catalog, &mut running.catalog),
            (Content::Piece, &mut running.piece),
        ] {
            if let Some(digest) = assembly.give_up() {
                // If nobody listens any more, nobody misses the upload.
                drop(self.dropped(content, digest, UploadDropped::Incomplete).await);
            }
        }
        ended
    }

    async fn listen(&mut self, running: &mut Running, silence: Duration) -> Ended {
        let mut leader = self.shared.leader.clone();
        let term = self.term;
        let expiry = expiry(self.identity.not_after, Timestamp::now());
        loop {
            tokio::select! {
                message = self.incoming.message() => {
                    if running.leaving.is_none() {
                        running.deadline = Instant::now() + silence;
                    }
                    if let Err(ended) = self.take(running, message).await {
                        return ended;
                    }
                }
                () = sleep_until(expiry) => return Ended::By(SessionEnd::CertificateExpired),
                () = sleep_until(running.deadline) => {
                    return Ended::By(running.leaving.unwrap_or(SessionEnd::Silent));
                }
                () = deposed(&mut leader, term) => return Ended::By(SessionEnd::NotLeader),
                why = leave(&mut self.closed), if running.leaving.is_none() => {
                    running.leaving = Some(why);
                    running.deadline = Instant::now() + self.shared.settings.closing_grace;
                }
            }
        }
    }

    async fn take(
        &self,
        running: &mut Running,
        message: Result<Option<AgentMessage>, Status>,
    ) -> Result<(), Ended> {
        let limits = &self.shared.settings.limits;
        let message = match message {
            Ok(Some(message)) => message,
            Ok(None) => {
                return Err(Ended::By(running.leaving.unwrap_or(SessionEnd::ClosedByAgent)));
            }
            Err(status) => {
                let lost = Ended::By(running.leaving.unwrap_or(SessionEnd::ConnectionLost));
                return Err(Refusal::from_stream(&status, limits).map_or(lost, Ended::Refused));
            }
        };
        if !running.bucket.take(Instant::now()) {
            let per_second = limits.messages_per_second;
            return Err(Ended::Refused(Refusal::Flood { per_second }));
        }
        let incoming = convert::incoming(message).map_err(Ended::Refused)?;
        self.shared.metrics.messages.with_label_values(&[incoming.kind()]).inc();
        self.pass_on(running, incoming).await
    }

    async fn pass_on(&self, running: &mut Running, incoming: Incoming) -> Result<(), Ended> {
        let cluster = self.identity.cluster.clone();
        let event = match incoming {
            Incoming::Heartbeat => {
                // A full queue says as well that the hub is alive.
                drop(self.out.try_send(Ok(convert::heartbeat())));
                LinkEvent::Heartbeat { cluster }
            }
            Incoming::InventoryDigest(digest) => LinkEvent::InventoryDigest { cluster, digest },
            Incoming::Part(content, part) => return self.assemble(running, content, part).await,
            Incoming::PieceMissing { digest, reason } => {
                LinkEvent::PieceMissing { cluster, digest, reason }
            }
            Incoming::Status(status) => LinkEvent::Status { cluster, status },
            Incoming::Progress(progress) => LinkEvent::Progress { cluster, progress },
            Incoming::CheckReport(report) => LinkEvent::CheckReport { cluster, report },
            Incoming::Answer { id, result } => {
                self.queries.answer(id, result);
                return Ok(());
            }
            Incoming::Unknown => return Ok(()),
        };
        self.emit(event).await
    }

    async fn assemble(
        &self,
        running: &mut Running,
        content: Content,
        part: Part,
    ) -> Result<(), Ended> {
        let assembly = match content {
            Content::Inventory => &mut running.inventory,
            Content::Catalog => &mut running.catalog,
            Content::Piece => &mut running.piece,
        };
        match assembly.take(part) {
            Taken::More | Taken::Ignored => Ok(()),
            Taken::Whole { digest, bytes } => {
                let cluster = self.identity.cluster.clone();
                self.emit(LinkEvent::Upload { cluster, content, digest, bytes }).await
            }
            Taken::Dropped { digest, reason } => self.dropped(content, digest, reason).await,
        }
    }

    async fn dropped(
        &self,
        content: Content,
        digest: String,
        reason: UploadDropped,
    ) -> Result<(), Ended> {
        self.shared.metrics.uploads_dropped.inc();
        let cluster = self.identity.cluster.clone();
        self.emit(LinkEvent::UploadDropped { cluster, content, digest, reason }).await
    }

    /// Hands an event to the rest of the hub. While that is busy, this agent waits.
    async fn emit(&self, event: LinkEvent) -> Result<(), Ended> {
        self.shared.events.send(event).await.map_err(|_| Ended::By(SessionEnd::Drained))
    }

    async fn finish(self, ended: Ended) {
        let cluster = self.identity.cluster.clone();
        let reason = match &ended {
            Ended::By(end) => *end,
            Ended::Refused(refusal) => SessionEnd::Refused(refusal.kind()),
        };
        self.shared.metrics.session_ends.with_label_values(&[reason.kind()]).inc();
        self.queries.close();
        if let Some(status) = last_word(&ended) {
            self.last.send(Err(status));
        }
        if let Ended::Refused(refusal) = &ended {
            self.shared.refuse(refusal, self.remote, Some(&cluster));
        }
        info!(%cluster, session = %self.id, reason = reason.kind(), "session ended");
        if self.shared.registry.remove(&cluster, self.id) {
            let event = LinkEvent::Disconnected { cluster, session: self.id, reason };
            // Fails only when nobody listens any more.
            drop(self.shared.events.send(event).await);
        }
        self.phase.send_replace(Phase::Over);
    }
}

/// Waits until the hub asks the agent to leave.
async fn leave(closed: &mut watch::Receiver<Option<SessionEnd>>) -> SessionEnd {
    match closed.wait_for(Option::is_some).await.map(|end| *end) {
        Ok(Some(end)) => end,
        // The registry drops an entry that was replaced after it has said so; the value stays.
        Ok(None) | Err(_) => SessionEnd::Replaced,
    }
}

/// Waits until this hub does not lead `term` any more.
async fn deposed(leader: &mut watch::Receiver<LeaderState>, term: Term) {
    // A sender that is gone belongs to a hub that ends; it leads no more.
    drop(leader.wait_for(|now| now.term != Some(term)).await);
}

fn last_word(ended: &Ended) -> Option<Status> {
    match ended {
        Ended::Refused(refusal) => Some(refusal.status()),
        Ended::By(SessionEnd::NotLeader) => Some(Refusal::NotLeader.status()),
        Ended::By(SessionEnd::CertificateExpired) => Some(Refusal::CertificateExpired.status()),
        Ended::By(SessionEnd::Silent) => {
            Some(Status::deadline_exceeded("the agent gave no sign of life"))
        }
        Ended::By(
            SessionEnd::ClosedByAgent
            | SessionEnd::ConnectionLost
            | SessionEnd::Replaced
            | SessionEnd::Drained
            | SessionEnd::Refused(_),
        ) => None,
    }
}

/// The end of a certificate on the process's own clock.
fn expiry(not_after: Timestamp, now: Timestamp) -> Instant {
    let left = Duration::try_from(not_after.duration_since(now)).unwrap_or(Duration::ZERO);
    Instant::now() + left.min(FOR_EVER)
}
