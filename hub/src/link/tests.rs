//! The link over real mutual TLS on loopback: a hub, good agents, and peers that break the rules.
//!
//! Nothing here waits for time to pass. What is waited for is the event, the state or the end of
//! the stream itself.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test picks the events it waits for and passes over all others"
)]

mod harness;
mod raw;
mod refusals;
mod rotation;
mod sessions;
mod statuses;
mod traffic;
