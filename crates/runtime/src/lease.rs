//! One leader among several replicas, by a `Lease` object and terms.
//!
//! An [`Elector`] competes for the lease and publishes the outcome as a [`Leadership`]. The pure
//! rules are in [`decide`]; a leader's right to act is a [`Claim`], which ends by itself before
//! anybody else may take over. All of this runs on the process's own monotonic clock.
//!
//! The monotonic clock does not count the time a machine is suspended, so a claim alone cannot
//! stop a leader that is resumed with its machine. What it writes is protected besides by
//! resource versions, and its messages by their term.

mod claim;
mod decide;
mod object;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kube::{Client, api::Api};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use wavelift_core::fence::Term;

use self::object::{Store, Stored};
pub use self::{
    claim::{Claim, Expired},
    decide::{Me, Record, Step, decide},
    object::TERM_ANNOTATION,
};
use crate::telemetry::chain;

/// Why the lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings contradict each other.
    #[error("lease settings: {0}")]
    Settings(&'static str),
    /// Reading failed.
    #[error("failed to read the lease")]
    Read(#[source] Box<kube::Error>),
    /// Writing failed for another reason than a conflict.
    #[error("failed to write the lease")]
    Write(#[source] Box<kube::Error>),
    /// The API server did not answer in time.
    #[error("no answer about the lease within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// How to compete.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// Who this process is: unique to the process, see [`unique_identity`].
    pub identity: String,
    /// For how long after each renewal nobody else may take the lease (whole seconds).
    pub duration: Duration,
    /// For how long after its last renewal a leader believes itself to be one; shorter than
    /// `duration`, so that it has stepped down before anybody else may step up.
    pub renew_deadline: Duration,
    /// How often to renew, and how often a standby looks; jittered.
    pub retry: Duration,
    /// How long one call to the API server may take.
    pub request_timeout: Duration,
    /// The highest term known from elsewhere.
    pub floor: Term,
}

/// Who leads, as far as this process knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// The lease could not be read yet.
    Unknown,
    /// Somebody else leads, or nobody.
    Standby {
        /// The holder that the lease names.
        holder: Option<String>,
    },
    /// This process leads, as long as the claim is valid.
    Leader(Claim),
}

/// Competes for one lease.
#[derive(Debug)]
pub struct Elector {
    settings: Settings,
    store: Store,
    publish: watch::Sender<Leadership>,
    observed: Option<Observed>,
    claim: Option<Claim>,
    /// The highest term this process has seen, so that deleting the lease does not lower it.
    highest: Term,
    failures: u32,
    jitter: SmallRng,
}

/// The lease as last read, and when it was first seen like that.
#[derive(Debug)]
struct Observed {
    stored: Option<Stored>,
    changed_at: Instant,
}

/// A process's identity: its host or pod name and something that a restart changes.
pub fn unique_identity(name: &str) -> String {
    format!("{name}_{}", uuid::Uuid::new_v4())
}

// === impl Error ===

impl Error {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Settings(_) => "settings",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::TimedOut(_) => "timed_out",
        }
    }
}

// === impl Settings ===

impl Settings {
    /// The usual times: 15 s, of which a leader uses 10, renewed every 2.
    pub fn new(namespace: &str, name: &str, identity: String) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity,
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            request_timeout: Duration::from_secs(3),
            floor: Term(0),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.identity.is_empty() {
            return Err(Error::Settings("the identity is empty"));
        }
        if self.duration < Duration::from_secs(1) || self.duration.subsec_nanos() != 0 {
            return Err(Error::Settings("the duration must be whole seconds, at least one"));
        }
        if self.renew_deadline >= self.duration {
            return Err(Error::Settings("the renew deadline must be shorter than the duration"));
        }
        if self.retry.is_zero() || self.retry >= self.renew_deadline {
            return Err(Error::Settings(
                "the retry period must be shorter than the renew deadline",
            ));
        }
        Ok(())
    }
}

// === impl Leadership ===

impl Leadership {
    /// The claim, if this process leads.
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Leader(claim) => Some(claim),
            Self::Unknown | Self::Standby { .. } => None,
        }
    }
}

// === impl Elector ===

impl Elector {
    /// An elector and the place where it says who leads. It does nothing until run.
    pub fn new(
        client: Client,
        settings: Settings,
    ) -> Result<(Self, watch::Receiver<Leadership>), Error> {
        settings.check()?;
        let api = Api::namespaced(client, &settings.namespace);
        let store = Store::new(api, &settings);
        let (publish, leadership) = watch::channel(Leadership::Unknown);
        let highest = settings.floor;
        let elector = Self {
            settings,
            store,
            publish,
            observed: None,
            claim: None,
            highest,
            failures: 0,
            jitter: SmallRng::from_os_rng(),
        };
        Ok((elector, leadership))
    }

    /// Competes until `stop`, then releases the lease if it is ours.
    ///
    /// Stop the elector last: everything done under the claim must have ended before, for another
    /// replica leads as soon as the lease is released.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let pause = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                pause = self.turn() => pause,
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep(pause) => {}
            }
        }
        self.release().await;
    }

    /// One look at the lease and one step; answers how long to wait before the next.
    async fn turn(&mut self) -> Duration {
        self.step_down_if_over(Instant::now());
        match self.step().await {
            Ok(()) => self.failures = 0,
            Err(error) => {
                // One line for a streak, and another every tenth time it goes on.
                if self.failures.is_multiple_of(10) {
                    warn!(error = %chain(&error), kind = error.kind(), "lease: cannot compete");
                }
                self.failures = self.failures.saturating_add(1);
            }
        }
        let now = Instant::now();
        self.step_down_if_over(now);
        self.pause(now)
    }

    async fn step(&mut self) -> Result<(), Error> {
        let timeout = self.timeout(Instant::now());
        let stored = self.store.read(timeout).await?;
        let now = Instant::now();
        self.observe(stored, now);
        // The answer may have taken longer than the claim lasted.
        self.step_down_if_over(now);
        let Some(Observed { stored, changed_at }) = &self.observed else { return Ok(()) };
        let me =
            Me { identity: &self.settings.identity, held: self.claim.as_ref().map(Claim::term) };
        let record = stored.as_ref().map(|stored| &stored.record);
        match decide(record, *changed_at, me, now, self.highest) {
            Step::Wait { .. } => {
                let holder = record.and_then(|record| record.holder.clone());
                self.stand_by(holder, now);
                Ok(())
            }
            Step::Create { term } | Step::Take { term } | Step::Renew { term } => {
                self.write(term, now).await
            }
        }
    }

    /// Writes the lease in our name; a conflict means that somebody else was faster.
    async fn write(&mut self, term: Term, sent_at: Instant) -> Result<(), Error> {
        let timeout = self.timeout(sent_at);
        let previous = self.observed.as_ref().and_then(|observed| observed.stored.as_ref());
        let Some(stored) = self.store.hold(previous, term, timeout).await? else {
            // Lost the race: the next turn reads what the winner wrote.
            return Ok(());
        };
        let now = Instant::now();
        self.observe(Some(stored), now);
        // Counted from before the request left: the others count from when they see its effect.
        let until = sent_at + self.settings.renew_deadline;
        match &self.claim {
            Some(claim) if claim.term() == term => {
                if claim.renew(now, until).is_err() {
                    self.step_down_if_over(now);
                }
            }
            Some(_) | None => self.step_up(term, until, now),
        }
        Ok(())
    }

    fn step_up(&mut self, term: Term, until: Instant, now: Instant) {
        if now >= until {
            // The answer came too late to lead with this term; the next turn takes a new one.
            return;
        }
        self.revoke(now);
        let claim = Claim::new(term, until);
        info!(term = term.0, identity = self.settings.identity, "lease: leading");
        self.claim = Some(claim.clone());
        self.publish.send_replace(Leadership::Leader(claim));
    }

    /// Keeps the time at which the record was first seen as it is.
    fn observe(&mut self, stored: Option<Stored>, now: Instant) {
        if let Some(stored) = &stored {
            self.highest = self.highest.max(stored.record.term);
        }
        let changed_at = match &self.observed {
            Some(before) if Stored::same_record(before.stored.as_ref(), stored.as_ref()) => {
                before.changed_at
            }
            Some(_) | None => now,
        };
        self.observed = Some(Observed { stored, changed_at });
    }

    fn step_down_if_over(&mut self, now: Instant) {
        let over = self.claim.as_ref().is_some_and(|claim| !claim.is_valid_at(now));
        if over {
            warn!("lease: not renewed in time, stepping down");
            self.stand_by(None, now);
        }
    }

    fn stand_by(&mut self, holder: Option<String>, now: Instant) {
        self.revoke(now);
        let standby = Leadership::Standby { holder };
        self.publish.send_if_modified(|leadership| {
            let changed = *leadership != standby;
            if changed {
                info!(?standby, "lease: standing by");
                *leadership = standby;
            }
            changed
        });
    }

    fn revoke(&mut self, now: Instant) {
        if let Some(claim) = self.claim.take() {
            claim.revoke(now);
        }
    }

    /// A call may not outlast the claim: stepping down must not wait for an answer.
    fn timeout(&self, now: Instant) -> Duration {
        let timeout = self.settings.request_timeout;
        match &self.claim {
            Some(claim) => timeout.min(claim.valid_until().saturating_duration_since(now)),
            None => timeout,
        }
    }

    /// Between half the retry period and the whole of it, but not past the end of a time we know.
    fn pause(&mut self, now: Instant) -> Duration {
        let retry = self.settings.retry.mul_f64(self.jitter.random_range(0.5..=1.0));
        let end = match &self.claim {
            Some(claim) => Some(claim.valid_until()),
            None => self.observed.as_ref().and_then(Observed::ends_at),
        };
        match end {
            // Over already, and the attempt failed: the usual pause.
            Some(end) if end > now => retry.min(end - now),
            Some(_) | None => retry,
        }
    }

    /// Gives the lease back if it is ours, so that the next leader need not wait for its end.
    async fn release(&mut self) {
        let timeout = self.settings.request_timeout;
        let led = self.claim.is_some();
        self.stand_by(None, Instant::now());
        if !led {
            return;
        }
        // Read again: a write that was cut off by the stop may have gone through.
        let released = match self.store.read(timeout).await {
            Ok(Some(stored))
                if stored.record.holder.as_deref() == Some(&*self.settings.identity) =>
            {
                self.store.release(&stored, timeout).await
            }
            Ok(_) => return,
            Err(error) => Err(error),
        };
        match released {
            Ok(()) => info!("lease: released"),
            Err(error) => warn!(error = %chain(&error), "lease: not released, it will run out"),
        }
    }
}

impl Drop for Elector {
    fn drop(&mut self) {
        // An elector that no longer runs renews nothing, and must not leave a claim behind.
        self.revoke(Instant::now());
    }
}

// === impl Observed ===

impl Observed {
    fn ends_at(&self) -> Option<Instant> {
        let record = &self.stored.as_ref()?.record;
        record.holder.as_ref().map(|_| self.changed_at + record.duration)
    }
}
