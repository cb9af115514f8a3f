//! A fleet for tests that end or stop processes.
//!
//! The API servers of the hub and of every cluster live in the test's process. The hub and the
//! agents live there too, or are children of it that reach those servers over HTTP. What a killed
//! process had, it has only in its API server: nothing of it is kept here.

use std::sync::LazyLock;

use serde_json::Value;
use wavelift_sim::apiserver::{ApiError, ApiServer};

pub(crate) mod binaries;
pub(crate) mod blueprint;
pub(crate) mod campaign;
pub(crate) mod child;
pub(crate) mod door;
pub(crate) mod http;
pub(crate) mod hub;
pub(crate) mod laws;
pub(crate) mod member;
pub(crate) mod outcome;
pub(crate) mod router;
pub(crate) mod victim;
pub(crate) mod wait;
pub(crate) mod world;

/// Our kinds, as they are installed on a cluster; made once, for it takes its time.
static CRDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let crds = wavelift_api::crds();
    crds.iter().map(|crd| serde_json::to_value(crd).expect("a CRD is JSON")).collect()
});

/// Our kinds.
pub(crate) fn crds() -> &'static [Value] {
    &CRDS
}

/// Installs our kinds.
fn install_crds(api: &ApiServer) -> Result<(), ApiError> {
    CRDS.iter().try_for_each(|crd| api.install_crd(crd))
}
