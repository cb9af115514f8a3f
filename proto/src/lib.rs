//! The wire contracts, generated from the `.proto` files beside this crate.
//!
//! Nothing else lives here. Ours stops at the hub's and the agent's `link::convert`, OLM's at the
//! crate that reads catalogs from outside.

/// Package `wavelift.v1`: the link between hub and agent.
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    clippy::pedantic,
    reason = "generated code is not written by our rules"
)]
pub mod v1 {
    tonic::include_proto!("wavelift.v1");
}

/// Package `api`: what the registry pod of an OLM v0 CatalogSource speaks.
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    clippy::derive_partial_eq_without_eq,
    clippy::pedantic,
    reason = "generated code is not written by our rules"
)]
pub mod olm_registry {
    tonic::include_proto!("api");
}
