//! Plumbing shared by hub, agent and simulator: the clock, the leader lease, TLS with hot reload,
//! telemetry, shutdown and the small HTTP endpoints every process has.

pub mod clock;

pub use clock::Clock;
