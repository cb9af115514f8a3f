//! A Kubernetes API server in memory, good enough for a kube client, for kubectl and for a
//! simulated operator lifecycle manager.
//!
//! What it keeps: resourceVersions and conflicts, watches with bookmarks and 410, paging, label and
//! field selectors, status apart from spec, generations, finalizers, ownership, namespaces, merge,
//! JSON and strategic patches, server-side apply with field managers, structural schemas.
//!
//! What it does not do, on purpose:
//! - CEL rules of a schema are not evaluated;
//! - one version per kind, no conversion (but for events, whose two forms are one object);
//! - built-in kinds have no schema: they are neither pruned nor validated, and a strategic merge
//!   patch knows only the merge keys of the usual lists, others are replaced;
//! - nobody is authenticated, everything is allowed; no admission webhooks, no quotas;
//! - garbage collection and namespace deletion are done when the delete returns, and an owner that
//!   never existed is not noticed;
//! - a list's pages are not a snapshot: each page is read when asked for, and all carry the first
//!   page's resourceVersion, so that a watch from there sees whatever moved in between.

mod admit;
mod crd;
mod error;
mod fields;
mod history;
mod kind;
pub mod kinds;
pub mod meta;
mod schema;
mod store;

use std::sync::Arc;

use serde_json::{Value, json};
use wavelift_runtime::Clock;

pub use crd::read_yaml;
pub use error::{ApiError, Reason};
pub use history::{Change, ChangeKind};
pub use kind::{Column, Gk, Kind, Origin, Scope, StatusEndpoint};
pub use kinds::{Kinds, gk};
pub use store::{Batch, Changes, Limits, Precondition, Propagation, Store, Subresource};

/// One API server. Cheap to clone; all clones are the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
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
        Self { shared: Arc::new(Shared { store }) }
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
}
