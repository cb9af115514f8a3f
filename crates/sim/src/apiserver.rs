//! A Kubernetes API server in memory, good enough for a kube client, for kubectl and for a
//! simulated operator lifecycle manager.
//!
//! What it keeps: resourceVersions and conflicts, watches with bookmarks and 410, paging, label and
//! field selectors, status apart from spec, generations, finalizers, ownership, namespaces, merge,
//! JSON and strategic patches, server-side apply with field managers, structural schemas.
//!
//! What it does not do, on purpose:
//! - CEL rules of a schema are not evaluated;
//! - versions of a kind differ in nothing but their name: objects are validated by the schema of the
//!   storage version, no conversion webhook is called (events have two forms of one object);
//! - built-in kinds have no schema: they are neither pruned nor validated, and a strategic merge
//!   patch knows only the merge keys of the usual lists, others are replaced;
//! - bodies in protobuf are refused (415), which some of `kubectl create ...` send; `apply` works;
//! - nobody is authenticated, everything is allowed; no admission webhooks, no quotas;
//! - garbage collection and namespace deletion are done when the delete returns, and an owner that
//!   never existed is not noticed;
//! - a list's pages are not a snapshot: each page is read when asked for, and all carry the first
//!   page's resourceVersion, so that a watch from there sees whatever moved in between.

mod admit;
mod audit;
mod crd;
mod error;
mod faults;
mod fields;
mod history;
mod http;
mod jsonpath;
mod kind;
pub mod kinds;
pub mod meta;
mod patch;
mod schema;
mod selector;
mod serve;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::watch;
use wavelift_runtime::Clock;

pub use audit::{AuditEffect, AuditEntry, CountKey, Request, Verb};
pub use crd::read_yaml;
pub use error::{ApiError, Reason};
pub use faults::{Action, Fault, FaultId, FaultPlan, Hook, Matcher, Times, Verbs, Verdict};
pub use history::{Change, ChangeKind};
pub use http::Dropped;
pub use kind::{Column, Gk, Kind, Origin, Scope, StatusEndpoint};
pub use kinds::{Kinds, gk};
pub use serve::Served;
pub use store::{Batch, Changes, Limits, Precondition, Propagation, Store, Subresource};

/// One API server. Cheap to clone; all clones are the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    audit: audit::Audit,
    faults: FaultPlan,
    version: RwLock<Arc<Value>>,
    /// Moved to end every open watch.
    cut: watch::Sender<u64>,
}

impl ApiServer {
    /// A server with the built-in kinds and the namespaces `default` and `kube-system`.
    pub fn new(clock: Clock) -> Self {
        Self::with_limits(clock, Limits::default())
    }

    /// The same with other limits; a hub's server remembers more than a cluster's.
    pub fn with_limits(clock: Clock, limits: Limits) -> Self {
        let store = Store::new(clock, limits);
        for name in ["default", "kube-system"] {
            store
                .create(&gk::NAMESPACE, json!({"metadata": {"name": name}}))
                .expect("a new store refuses no namespace");
        }
        let shared = Shared {
            store,
            audit: audit::Audit::new(limits.audit_entries),
            faults: FaultPlan::default(),
            version: RwLock::new(Arc::new(version("1.33.4"))),
            cut: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Serves the kind that a CustomResourceDefinition defines, from the beginning of time: there
    /// is no event, and servers of one process share the definition.
    pub fn install_crd(&self, crd: &Value) -> Result<(), ApiError> {
        self.shared.store.install(&crd::installed(crd)?)
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// What goes wrong, and when; nothing to begin with.
    pub fn faults(&self) -> &FaultPlan {
        &self.shared.faults
    }

    /// The last mutating requests, oldest first.
    pub fn audit(&self) -> Vec<AuditEntry> {
        self.shared.audit.entries()
    }

    /// How many mutating requests there were in all.
    pub fn audit_total(&self) -> u64 {
        self.shared.audit.total()
    }

    /// The same by user agent, verb and kind; exact, however short the log.
    pub fn audit_counts(&self) -> BTreeMap<CountKey, u64> {
        self.shared.audit.counts()
    }

    /// Ends every open watch, as a restart of the server does; clients come back by themselves.
    pub fn cut_watches(&self) {
        self.shared.cut.send_modify(|cut| *cut += 1);
    }

    /// Makes `/version` say another version, e.g. `1.32.9`.
    pub fn set_version(&self, number: &str) {
        *self.shared.version.write() = Arc::new(version(number));
    }

    fn version(&self) -> Arc<Value> {
        Arc::clone(&self.shared.version.read())
    }
}

fn version(number: &str) -> Value {
    let mut parts = number.split('.');
    let mut part = || parts.next().unwrap_or("0");
    json!({"major": part(), "minor": part(), "gitVersion": format!("v{number}"),
        "gitCommit": "simulated", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": "simulated/none"})
}
