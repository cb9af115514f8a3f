//! The hub's end of the link to the agents.
//!
//! [`Server`] accepts mutual TLS, takes each agent's name from its verified certificate and from
//! nothing else, and turns what agents send into [`LinkEvent`]s. [`Registry`] is the way back: one
//! session per cluster, looked up by name. The wire's types stop at `convert`.
//!
//! Everything here lives in real time, and everything that comes from outside has a limit in
//! [`Limits`].

pub mod ca;
pub mod serving;

mod accept;
mod command;
mod convert;
mod event;
mod metrics;
mod parts;
mod queries;
mod rate;
mod refusal;
mod registry;
mod service;
mod session;
mod settings;

#[cfg(test)]
mod tests;

pub use self::{
    accept::Server,
    command::{Assignment, CheckRequest, Control, ControlAction, HubCommand, Query},
    event::{
        AgentHello, CheckReport, Content, Finality, LinkEvent, Progress, Refused, SessionEnd,
        SessionId, StatusReport, UpgradeKey, UploadDropped,
    },
    metrics::Metrics,
    queries::QueryError,
    refusal::{Denied, Refusal},
    registry::{Registry, SendError, SessionInfo},
    service::Admission,
    settings::{DrainHint, DrainReason, LeaderState, Limits, Settings},
};
