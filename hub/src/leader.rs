//! Runs campaigns while this process leads, and stands by while it does not.

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::info;
use wavelift_runtime::{
    Clock,
    lease::{Claim, Leadership},
};
use wavelift_sources::BundleImages;

use crate::{
    campaign::{Context, Driver, Inputs, Leading, Settings},
    cluster::Admissions,
    events,
    link::{DrainHint, DrainReason, LeaderState, LinkEvent, Registry},
    metrics::Metrics,
    view::Board,
    watches,
};

/// What every term begins with.
pub(crate) struct Leader {
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) identity: String,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) board: Board,
    pub(crate) sessions: Registry,
    pub(crate) admissions: Admissions,
    pub(crate) leading: Leading,
    /// Fetches bundle images, if that is done.
    pub(crate) images: Option<BundleImages>,
    /// What agents are told when this hub stops leading.
    pub(crate) drain: DrainHint,
}

impl Leader {
    /// Leads and stands by until `stop`.
    pub(crate) async fn run(
        self,
        mut leadership: watch::Receiver<Leadership>,
        mut link: mpsc::Receiver<LinkEvent>,
        stop: CancellationToken,
    ) {
        let mut spent = None;
        while let Some(claim) =
            self.stand_by(&mut leadership, &mut link, spent.as_ref(), &stop).await
        {
            spent = Some(claim.clone());
            let term = stop.child_token();
            // Nobody may write a moment longer than the elector believes that it leads.
            let lost = watch_claim(leadership.clone(), claim.clone(), term.clone());
            tokio::join!(self.lead(claim, &mut link, term), lost);
        }
    }

    /// Waits for a new claim; what agents still say is for nobody.
    async fn stand_by(
        &self,
        leadership: &mut watch::Receiver<Leadership>,
        link: &mut mpsc::Receiver<LinkEvent>,
        spent: Option<&Claim>,
        stop: &CancellationToken,
    ) -> Option<Claim> {
        loop {
            // The lease is given back last: until then it still says that this process leads.
            if stop.is_cancelled() {
                return None;
            }
            let now = leadership.borrow_and_update().clone();
            match now {
                // A claim that was given up is not taken up again: another hub's term was found.
                Leadership::Leader(claim) if claim.check().is_ok() && spent != Some(&claim) => {
                    while link.try_recv().is_ok() {}
                    return Some(claim);
                }
                Leadership::Standby { holder } => {
                    let holder = holder.unwrap_or_else(|| "nobody".to_owned());
                    self.leading.readiness.set_waiting(&format!("standing by, {holder} leads"));
                }
                Leadership::Leader(_) | Leadership::Unknown => {
                    self.leading.readiness.set_waiting("who leads is not known yet");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                changed = leadership.changed() => changed.ok()?,
                event = link.recv() => drop(event?),
            }
        }
    }

    async fn lead(
        &self,
        claim: Claim,
        link: &mut mpsc::Receiver<LinkEvent>,
        stop: CancellationToken,
    ) {
        self.leading.readiness.set_waiting("reading what there is");
        self.metrics.leader_term.set(i64::try_from(claim.term().0).unwrap_or(i64::MAX));
        let context = Context {
            client: self.client.clone(),
            clock: self.clock.clone(),
            claim: claim.clone(),
            metrics: self.metrics.clone(),
            events: events::spawn(
                self.client.clone(),
                &self.identity,
                claim.clone(),
                self.metrics.clone(),
                stop.clone(),
            ),
            board: self.board.clone(),
            identity: self.identity.clone(),
            leading: self.leading.clone(),
            settings: self.settings.clone(),
            images: self.images.clone(),
        };
        let watches = watches::spawn(&self.client, &self.metrics, &stop);
        let driver = Driver::new(context, self.sessions.clone(), self.admissions.clone());
        driver.run(Inputs { watches, link }, stop.clone()).await;
        stop.cancel();
        self.admissions.close();
        self.leading.leader.send_replace(LeaderState { term: None });
        self.leading.readiness.set_waiting("not leading any more");
        self.metrics.leader_term.set(0);
        self.sessions.drain(DrainHint { reason: DrainReason::NotLeader, ..self.drain });
        info!(term = claim.term().0, "gave up leading");
    }
}

/// Ends a term when the elector does not hold its claim any more.
async fn watch_claim(
    mut leadership: watch::Receiver<Leadership>,
    claim: Claim,
    stop: CancellationToken,
) {
    let is_other = |now: &Leadership| now.claim() != Some(&claim);
    tokio::select! {
        () = stop.cancelled() => {}
        _ = leadership.wait_for(is_other) => stop.cancel(),
    }
}
