//! How long a source is waited for, and how often it is asked again.

use std::time::Duration;

use backon::ExponentialBuilder;

/// How long each part of a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until there is a connection.
    pub connect: Duration,
    /// Between two signs of life: until an answer begins, and between two pieces of it.
    pub silence: Duration,
    /// One attempt from its beginning to the last piece of the answer.
    pub attempt: Duration,
}

/// How often a call is made again after a failure that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// How often at most, after the first attempt.
    pub again_max: usize,
    /// The pause before the second attempt. It doubles each time, and up to once more of it is added
    /// by chance, so that many agents do not come back together.
    pub first_pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

// === impl Patience ===

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            attempt: Duration::from_mins(5),
        }
    }
}

// === impl Retries ===

impl Retries {
    /// One attempt and no other.
    pub const NONE: Self =
        Self { again_max: 0, first_pause: Duration::ZERO, pause_max: Duration::ZERO };

    pub(crate) fn backoff(self) -> ExponentialBuilder {
        ExponentialBuilder::new()
            .with_min_delay(self.first_pause)
            .with_max_delay(self.pause_max)
            .with_max_times(self.again_max)
            .with_jitter()
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            again_max: 3,
            first_pause: Duration::from_millis(250),
            pause_max: Duration::from_secs(5),
        }
    }
}
