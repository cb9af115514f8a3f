//! A token bucket: so many at once, then so many a second. Pure; time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// A century and more: long enough for a token that never comes back.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Limits how often something happens, whatever the size of the fleet.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    burst: u32,
    /// How long one token takes to come back.
    interval: Duration,
    /// When the bucket was, or will be, full.
    full_at: Option<Instant>,
}

// === impl TokenBucket ===

impl TokenBucket {
    /// A full bucket of `burst` tokens, of which `per_second` come back each second.
    ///
    /// A burst of zero is taken as one; a rate that is no positive number never refills.
    pub fn new(burst: u32, per_second: f64) -> Self {
        let interval = Duration::try_from_secs_f64(per_second.recip())
            .ok()
            .filter(|interval| !interval.is_zero() && per_second > 0.0)
            .unwrap_or(NEVER);
        Self { burst: burst.max(1), interval, full_at: None }
    }

    /// Takes one token, or says how long to wait for the next.
    pub fn try_take(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.map_or(now, |full_at| full_at.max(now));
        // The bucket lacks as many tokens as intervals lie between now and full.
        let room = self.interval.saturating_mul(self.burst - 1);
        let missing = full_at.saturating_duration_since(now);
        if missing > room {
            return Err(missing.saturating_sub(room));
        }
        self.full_at = Some(full_at + self.interval);
        Ok(())
    }

    /// How many tokens can be taken at `now`.
    pub fn available(&self, now: Instant) -> u32 {
        let mut bucket = self.clone();
        let mut tokens = 0;
        while tokens < self.burst && bucket.try_take(now).is_ok() {
            tokens += 1;
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(bucket: &mut TokenBucket, now: Instant) -> u32 {
        let mut taken = 0;
        while bucket.try_take(now).is_ok() {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_full_bucket_gives_its_burst_and_then_one_a_second() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(20, 1.0);
        assert_eq!(bucket.available(start), 20);
        assert_eq!(drain(&mut bucket, start), 20);
        assert_eq!(bucket.try_take(start), Err(Duration::from_secs(1)));
        let later = start + Duration::from_millis(400);
        assert_eq!(bucket.try_take(later), Err(Duration::from_millis(600)));
        assert_eq!(drain(&mut bucket, start + Duration::from_secs(3)), 3);
    }

    #[test]
    fn a_bucket_left_alone_is_full_again_and_never_fuller() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(5, 2.0);
        assert_eq!(drain(&mut bucket, start), 5);
        assert_eq!(drain(&mut bucket, start + Duration::from_hours(1)), 5);
    }

    #[test]
    fn over_an_hour_no_more_than_burst_and_rate_allow() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(20, 1.0);
        let taken = (0..=36_000)
            .filter(|tenth| bucket.try_take(start + Duration::from_millis(tenth * 100)).is_ok())
            .count();
        assert_eq!(taken, 20 + 3600);
    }

    #[test]
    fn odd_settings_are_harmless() {
        let start = Instant::now();
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut bucket = TokenBucket::new(0, rate);
            assert_eq!(bucket.try_take(start), Ok(()), "rate {rate}");
            assert!(bucket.try_take(start).is_err(), "rate {rate}");
        }
    }
}
