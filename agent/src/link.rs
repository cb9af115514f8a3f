//! The agent's end of the link to its hub.
//!
//! One task holds the session: it connects, repeats what is not acknowledged, and comes back by
//! itself after every break. Nothing the agent does to its cluster waits for it. The wire's types
//! stop at `convert`, and everything here lives in real time.

mod backoff;
mod connect;
mod convert;
mod driver;
mod error;
mod handle;
mod inbox;
mod message;
mod metrics;
mod outbox;
mod outgoing;
mod settings;

pub use self::{
    backoff::Backoff,
    driver::spawn,
    error::Error,
    handle::{Closed, LinkHandle, LinkState, NotQueued},
    message::{
        AgentReport, Assignment, CheckReport, CheckRequest, Control, ControlAction, Finality,
        HubCommand, Progress, Query, StatusReport, UpgradeKey, Welcome,
    },
    metrics::Metrics,
    outbox::OutboxFull,
    settings::{HubAddress, Settings},
};
