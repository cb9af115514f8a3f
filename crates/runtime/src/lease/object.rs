//! The lease as an object of the API server: reading, holding, releasing.

use std::{collections::BTreeMap, future::Future, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::api::{Api, PostParams};
use tokio::time::timeout;
use wavelift_core::fence::Term;

use super::{Error, Settings, decide::Record};

/// Where a lease keeps its term. `leaseTransitions` carries it too, as far as it can hold it.
pub const TERM_ANNOTATION: &str = "wavelift.io/term";

/// A lease as read: what counts for a decision, and the object itself for the next write.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) record: Record,
    lease: Box<Lease>,
}

/// The one lease an elector competes for.
#[derive(Debug)]
pub(super) struct Store {
    api: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    duration: Duration,
}

// === impl Stored ===

impl Stored {
    /// Whether two readings say the same, whatever else about the object changed.
    pub(super) fn same_record(one: Option<&Self>, other: Option<&Self>) -> bool {
        one.map(|stored| &stored.record) == other.map(|stored| &stored.record)
    }

    /// `fallback` is the duration to assume where the lease names none.
    fn read(lease: Lease, fallback: Duration) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let annotated = lease
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(TERM_ANNOTATION))
            .and_then(|term| term.parse::<u64>().ok())
            .unwrap_or(0);
        let transitions = spec.lease_transitions.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let duration = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map_or(fallback, Duration::from_secs);
        let record = Record {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            term: Term(annotated.max(transitions)),
            duration,
            renewed: spec.renew_time.map(|MicroTime(at)| at),
        };
        Self { record, lease: Box::new(lease) }
    }
}

// === impl Store ===

impl Store {
    pub(super) fn new(api: Api<Lease>, settings: &Settings) -> Self {
        Self {
            api,
            namespace: settings.namespace.clone(),
            name: settings.name.clone(),
            identity: settings.identity.clone(),
            duration: settings.duration,
        }
    }

    pub(super) async fn read(&self, limit: Duration) -> Result<Option<Stored>, Error> {
        let lease = within(limit, self.api.get_opt(&self.name))
            .await?
            .map_err(|error| Error::Read(Box::new(error)))?;
        Ok(lease.map(|lease| Stored::read(lease, self.duration)))
    }

    /// Writes the lease in our name over `previous` (none: creates it). `None` if somebody else
    /// wrote in between.
    pub(super) async fn hold(
        &self,
        previous: Option<&Stored>,
        term: Term,
        limit: Duration,
    ) -> Result<Option<Stored>, Error> {
        let mut lease = previous.map_or_else(|| self.empty(), |stored| (*stored.lease).clone());
        let spec = lease.spec.get_or_insert_default();
        let now = MicroTime(Timestamp::now());
        let stays = previous.is_some_and(|stored| {
            stored.record.term == term && stored.record.holder.as_ref() == Some(&self.identity)
        });
        if !stays {
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.duration.as_secs()).ok();
        spec.renew_time = Some(now);
        set_term(&mut lease, term);
        self.write(&lease, previous.is_some(), limit).await
    }

    /// Leaves the lease with its term and no holder.
    pub(super) async fn release(&self, stored: &Stored, limit: Duration) -> Result<(), Error> {
        let mut lease = (*stored.lease).clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        // A conflict means that it is somebody else's by now: nothing is left to release.
        self.write(&lease, true, limit).await.map(drop)
    }

    async fn write(
        &self,
        lease: &Lease,
        exists: bool,
        limit: Duration,
    ) -> Result<Option<Stored>, Error> {
        let params = PostParams::default();
        let written = if exists {
            within(limit, self.api.replace(&self.name, &params, lease)).await?
        } else {
            within(limit, self.api.create(&params, lease)).await?
        };
        match written {
            Ok(lease) => Ok(Some(Stored::read(lease, self.duration))),
            // Changed, created or deleted by somebody else meanwhile. (404 on a creation is a
            // namespace that is not there.)
            Err(kube::Error::Api(status))
                if status.code == 409 || (exists && status.code == 404) =>
            {
                Ok(None)
            }
            Err(error) => Err(Error::Write(Box::new(error))),
        }
    }

    fn empty(&self) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: Some(LeaseSpec::default()) }
    }
}

fn set_term(lease: &mut Lease, term: Term) {
    let annotations = lease.metadata.annotations.get_or_insert_with(BTreeMap::new);
    annotations.insert(TERM_ANNOTATION.to_owned(), term.0.to_string());
    if let Some(spec) = &mut lease.spec {
        spec.lease_transitions = Some(i32::try_from(term.0).unwrap_or(i32::MAX));
    }
}

async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> Result<T, Error> {
    timeout(limit, call).await.map_err(|_elapsed| Error::TimedOut(limit))
}
