//! How long to wait before connecting again, so that a fleet does not come back all at once.

use std::time::Duration;

use rand::Rng;

/// Full jitter: a random part of a bound that doubles with each try, up to `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first bound.
    pub base: Duration,
    /// The highest bound.
    pub cap: Duration,
}

/// When the hub asked the agent to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) after: Duration,
    pub(super) spread: Duration,
}

impl Backoff {
    /// The wait before try number `failures` + 1.
    pub(super) fn delay(self, failures: u32, rng: &mut impl Rng) -> Duration {
        let doubled = 2_u32.saturating_pow(failures);
        let bound = self.base.saturating_mul(doubled).min(self.cap);
        part(bound, rng)
    }
}

impl Hint {
    pub(super) fn delay(self, rng: &mut impl Rng) -> Duration {
        self.after.saturating_add(part(self.spread, rng))
    }
}

fn part(bound: Duration, rng: &mut impl Rng) -> Duration {
    bound.mul_f64(rng.random_range(0.0..=1.0))
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng as _, rngs::SmallRng};

    use super::*;

    const BACKOFF: Backoff =
        Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(5) };

    /// The longest and the shortest of many waits.
    fn extremes(mut delay: impl FnMut(&mut SmallRng) -> Duration) -> (Duration, Duration) {
        let mut rng = SmallRng::seed_from_u64(7);
        let delays: Vec<_> = (0..2_000).map(|_| delay(&mut rng)).collect();
        (*delays.iter().min().unwrap(), *delays.iter().max().unwrap())
    }

    #[test]
    fn waits_fill_a_bound_that_doubles_up_to_the_cap() {
        let check = |failures, bound: u64| {
            let (min, max) = extremes(|rng| BACKOFF.delay(failures, rng));
            let bound = Duration::from_millis(bound);
            assert!(max <= bound && max > bound.mul_f64(0.95), "{failures}: {max:?}");
            assert!(min < bound.mul_f64(0.05), "{failures}: {min:?}");
        };
        check(0, 100);
        check(1, 200);
        check(4, 1_600);
        check(10, 5_000);
        check(u32::MAX, 5_000);
    }

    #[test]
    fn a_hint_is_kept_and_spread() {
        let hint = Hint { after: Duration::from_secs(10), spread: Duration::from_secs(20) };
        let (min, max) = extremes(|rng| hint.delay(rng));
        assert!(min >= Duration::from_secs(10) && min < Duration::from_secs(11));
        assert!(max > Duration::from_secs(29) && max <= Duration::from_secs(30));
    }
}
