//! A token bucket: so many at once, so many a second in the long run.

use tokio::time::Instant;

/// A token bucket that starts full.
#[derive(Debug)]
pub(super) struct Bucket {
    tokens: f64,
    burst: f64,
    per_second: f64,
    at: Instant,
}

impl Bucket {
    pub(super) fn new(burst: u32, per_second: u32, now: Instant) -> Self {
        let burst = f64::from(burst);
        Self { tokens: burst, burst, per_second: f64::from(per_second), at: now }
    }

    /// Takes one token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.tokens = passed.mul_add(self.per_second, self.tokens).min(self.burst);
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_only_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(3, 2, start);
        let taken = |bucket: &mut Bucket, ms| {
            let now = start + Duration::from_millis(ms);
            (0..10).filter(|_| bucket.take(now)).count()
        };
        assert_eq!(taken(&mut bucket, 0), 3);
        assert_eq!(taken(&mut bucket, 400), 0);
        assert_eq!(taken(&mut bucket, 500), 1);
        assert_eq!(taken(&mut bucket, 1_500), 2);
        // Standing idle gives no more than the burst.
        assert_eq!(taken(&mut bucket, 60_000), 3);
    }
}
