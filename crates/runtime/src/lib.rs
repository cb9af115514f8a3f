//! Plumbing shared by hub, agent and simulator: the clock, the leader lease, TLS with hot reload,
//! telemetry, shutdown and the small HTTP endpoints every process has.

pub mod admin;
pub mod clock;
pub mod identity;
pub mod lease;
pub mod metrics;
pub mod pki;
pub mod shutdown;
pub mod ssa;
pub mod telemetry;
pub mod testing;
pub mod tls;
pub mod tokens;

pub use clock::Clock;
