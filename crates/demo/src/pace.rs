//! What must not shrink with the pace: deadlines.
//!
//! Simulated time runs ahead, but the machine takes the real time it takes. A deadline of half an
//! hour that passes within a second would blame a cluster for a busy processor, so each of them
//! has a least length in real time. At the default pace only
//! the wait for an InstallPlan is longer than it would be.

use jiff::SignedDuration;
use wavelift_agent::Timings;

/// Real seconds that an InstallPlan may take to be offered.
const PLAN_SECONDS: f64 = 60.0;
/// Real seconds that a step may take from its approval.
const STEP_SECONDS: f64 = 30.0;
/// Real seconds between two looks at a plan that is not the expected one.
const SETTLE_SECONDS: f64 = 0.5;
/// Real seconds after which a silent cluster may be left out.
const OFFLINE_SECONDS: f64 = 5.0;

/// The agent's deadlines where time runs `factor` times as fast.
pub(crate) fn timings(factor: f64) -> Timings {
    let mut timings = Timings::default();
    let driver = &mut timings.driver;
    driver.plan_deadline = driver.plan_deadline.max(real(PLAN_SECONDS, factor));
    driver.step_deadline = driver.step_deadline.max(real(STEP_SECONDS, factor));
    driver.refresh_spacing = driver.refresh_spacing.max(real(SETTLE_SECONDS, factor));
    timings.settle = timings.settle.max(real(SETTLE_SECONDS, factor));
    timings
}

/// For how long a silent cluster is waited for, at least `seconds` of simulated time.
pub(crate) fn offline_seconds(seconds: i64, factor: f64) -> i64 {
    seconds.max(real(OFFLINE_SECONDS, factor).as_secs())
}

/// So many real seconds in simulated time.
fn real(seconds: f64, factor: f64) -> SignedDuration {
    SignedDuration::try_from_secs_f64(seconds * factor).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BASE_FACTOR;

    #[test]
    fn the_default_pace_changes_nothing_but_the_wait_for_a_plan() {
        let (usual, paced) = (Timings::default(), timings(BASE_FACTOR));
        assert_eq!(paced.driver.step_deadline, usual.driver.step_deadline);
        assert_eq!(paced.driver.refresh_spacing, usual.driver.refresh_spacing);
        assert_eq!(paced.settle, usual.settle);
        assert_eq!(offline_seconds(1_800, BASE_FACTOR), 1_800);
    }

    #[test]
    fn at_a_high_pace_a_deadline_is_still_real_seconds_away() {
        let paced = timings(1_200.0);
        assert_eq!(paced.driver.step_deadline, SignedDuration::from_secs(36_000));
        assert_eq!(offline_seconds(1_800, 3_000.0), 15_000);
    }
}
