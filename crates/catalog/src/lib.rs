//! From catalog bytes to the next version.
//!
//! [`fbc`] reads File-Based Catalogs, [`validate`] says what `opm` would refuse in one, [`Catalog`]
//! is its compact form with a digest, and [`engine`] answers what OLM will do next on a cluster and
//! by which hops a target is reached. Pure but for [`fbc::Fbc::read`], which reads a directory.

mod base64;
pub mod catalog;
mod cel;
pub mod compare;
pub mod contents;
pub mod crd;
pub mod engine;
pub mod fbc;
pub mod graph;
pub mod json;
pub mod lifecycle;
pub mod limits;
pub mod manifests;
pub mod pin;
pub mod planner;
pub mod preview;
pub mod release;
pub mod status;
pub mod validate;

pub use self::{
    catalog::{Catalog, Coverage},
    contents::Contents,
    engine::{Engine, olm_v0::OlmV0},
    fbc::Fbc,
    graph::{Digest, Graph},
    json::Json,
    limits::Limits,
    manifests::Manifests,
};
