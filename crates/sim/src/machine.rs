//! Parts of a simulated cluster that move by themselves.

use std::fmt;

use jiff::Timestamp;

/// A synchronous, deterministic part of a simulated cluster.
pub(crate) trait Machine: fmt::Debug + Send {
    /// Does everything that is due at `now`, and says when there is more to do.
    fn tick(&mut self, now: Timestamp) -> Option<Timestamp>;
}
