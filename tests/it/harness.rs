//! A fleet for tests that end or stop processes.
//!
//! The API servers of the hub and of every cluster live in the test's process. The hub and the
//! agents live there too, or are children of it that reach those servers over HTTP. What a killed
//! process had, it has only in its API server: nothing of it is kept here.

pub(crate) mod binaries;
pub(crate) mod blueprint;
pub(crate) mod campaign;
pub(crate) mod child;
pub(crate) mod http;
pub(crate) mod hub;
pub(crate) mod laws;
pub(crate) mod member;
pub(crate) mod outcome;
pub(crate) mod router;
pub(crate) mod wait;
pub(crate) mod world;
