//! OLM v0: one step is one InstallPlan of one namespace.
//!
//! [`decide()`] is pure: from the step, what is observed and what is remembered to one action. It is
//! asked again after every change, so nothing is lost when the agent is killed: the next one
//! observes the same cluster and comes to the same action. Effects are in [`apply`] alone.
//!
//! What it rests on was seen of real OLM: the Subscription's status is no sign of success, a good
//! upgrade falls back for about a second, a Complete InstallPlan says nothing about the operator,
//! and while old and new CSV both exist resolution of the namespace fails.

pub mod apply;
pub mod decide;
pub(crate) mod explain;
pub mod failure;
mod follow;
pub mod observe;
pub mod remedy;
mod view;

#[cfg(test)]
mod tests;

pub use self::{
    decide::{Action, Decision, Hold, Memory, Timings, Waiting, decide, to_hold},
    failure::{Failure, Reason},
    observe::{Authored, Observed},
    remedy::Remedies,
};
