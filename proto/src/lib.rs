//! The wire contract, generated from the `.proto` files beside this crate.
//!
//! Nothing else lives here, and nothing outside the hub's and the agent's `link::convert` uses it.

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
