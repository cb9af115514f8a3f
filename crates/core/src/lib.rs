//! What Wavelift decides, and nothing of how it is done.
//!
//! Everything here is pure: time, randomness and limits are arguments, nothing waits and nothing
//! reads the world. Hub and agent observe, ask this crate, and obey.

pub mod campaign;
pub mod causes;
pub mod check;
pub mod conditions;
pub mod constraint;
pub mod fence;
pub mod ids;
pub mod insight;
pub mod inventory;
pub mod plan;
pub mod progress;
pub mod range;
pub mod release;
pub mod state;
pub mod target;
pub mod version;
