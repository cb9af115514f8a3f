//! The clock that everything with a notion of upgrade time reads.
//!
//! `Real` is the machine's clock. `Scaled` runs `factor` times as fast from an origin, so that a
//! simulated night passes in two minutes. `Manual` stands still until a test moves it.
//! TLS, leases, keep-alive, backoff and request timeouts never use it: they live in real time.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::Instant};

/// A source of time, cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real,
    Scaled(Arc<Scaled>),
    Manual(watch::Receiver<Timestamp>),
}

#[derive(Debug)]
struct Scaled {
    origin: Timestamp,
    started: Instant,
    factor: f64,
}

/// The hand that moves a manual clock.
#[derive(Debug)]
pub struct Hand(watch::Sender<Timestamp>);

// === impl Clock ===

impl Clock {
    /// The machine's clock.
    pub fn real() -> Self {
        Self(Kind::Real)
    }

    /// A clock that shows `origin` now and runs `factor` times as fast as the real one.
    ///
    /// `factor` below one millisecond a second makes no sense and is taken as that.
    pub fn scaled(origin: Timestamp, factor: f64) -> Self {
        let factor = if factor.is_finite() { factor.max(0.001) } else { 1.0 };
        Self(Kind::Scaled(Arc::new(Scaled { origin, started: Instant::now(), factor })))
    }

    /// A clock that stands at `origin` until its hand is moved.
    pub fn manual(origin: Timestamp) -> (Self, Hand) {
        let (sender, receiver) = watch::channel(origin);
        (Self(Kind::Manual(receiver)), Hand(sender))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::Real => Timestamp::now(),
            Kind::Scaled(scaled) => scaled.now(),
            Kind::Manual(now) => *now.borrow(),
        }
    }

    /// How many seconds of this clock pass in one real second (1 for `Real` and `Manual`).
    pub fn factor(&self) -> f64 {
        match &self.0 {
            Kind::Real | Kind::Manual(_) => 1.0,
            Kind::Scaled(scaled) => scaled.factor,
        }
    }

    /// Waits until this clock shows `at` or later; at once if it already does.
    pub async fn sleep_until(&self, at: Timestamp) {
        match &self.0 {
            Kind::Real => tokio::time::sleep(until(Timestamp::now(), at)).await,
            Kind::Scaled(scaled) => {
                let real = until(scaled.now(), at).as_secs_f64() / scaled.factor;
                tokio::time::sleep(Duration::from_secs_f64(real)).await;
            }
            Kind::Manual(now) => {
                let mut now = now.clone();
                if now.wait_for(|now| *now >= at).await.is_err() {
                    // The hand is gone, so this clock never moves again.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Waits for `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let at = self.now().checked_add(duration).unwrap_or(Timestamp::MAX);
        self.sleep_until(at).await;
    }
}

// === impl Scaled ===

impl Scaled {
    fn now(&self) -> Timestamp {
        let passed =
            SignedDuration::try_from_secs_f64(self.started.elapsed().as_secs_f64() * self.factor)
                .unwrap_or(SignedDuration::MAX);
        self.origin.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

// === impl Hand ===

impl Hand {
    /// Moves the clock forward and wakes whoever waits for the new time.
    pub fn advance(&self, duration: Duration) {
        let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        self.0.send_modify(|now| {
            *now = now.checked_add(duration).unwrap_or(Timestamp::MAX);
        });
    }
}

/// The time from `now` to `at`, zero when `at` is past.
fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_scaled_clock_runs_its_factor_times_as_fast() {
        let origin = Timestamp::from_second(1_000).unwrap();
        let clock = Clock::scaled(origin, 60.0);
        clock.sleep(Duration::from_mins(10)).await;
        let passed = clock.now().duration_since(origin).as_secs();
        assert!((600..=601).contains(&passed), "passed {passed} s");
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_its_sleepers_when_moved_far_enough() {
        let (clock, hand) = Clock::manual(Timestamp::from_second(0).unwrap());
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep_until(Timestamp::from_second(10).unwrap()).await;
                clock.now().as_second()
            }
        });
        hand.advance(Duration::from_secs(4));
        hand.advance(Duration::from_secs(8));
        assert_eq!(sleeper.await.unwrap(), 12);
    }
}
