//! How long the simulated OLM takes for what it does.
//!
//! The defaults are what a real OLM with little else to do was seen to take. A busy one is
//! throttled by its own client limit: see [`Timing::throttled`].

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// A delay, drawn anew each time from a range of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    min_ms: u32,
    max_ms: u32,
}

/// All delays of a simulated OLM.
#[derive(Clone, Debug)]
pub struct Timing {
    /// From a new catalog source to its first connection state (`IDLE`).
    pub catalog_idle: Delay,
    /// From one connection state to the next (`IDLE`, then `READY` or `TRANSIENT_FAILURE`).
    pub catalog_connects: Delay,
    /// From a change in a namespace to its resolution.
    pub resolution: Delay,
    /// From the removal of a replaced CSV to the next resolution.
    pub resolution_after_hop: Delay,
    /// From a new install plan to `RequiresApproval` (or straight to `Installing`).
    pub plan_planned: Delay,
    /// From `RequiresApproval` to the subscription that refers to the plan.
    pub plan_referenced: Delay,
    /// From approval to `Installing`.
    pub plan_starts: Delay,
    /// From `Installing` to the new CSVs.
    pub csv_created: Delay,
    /// From the new CSVs to the plan's other steps (service accounts, roles, subscriptions).
    pub steps_applied: Delay,
    /// From there to `Complete`.
    pub plan_complete: Delay,
    /// From a CSV's appearance to the subscription that calls it installed.
    pub subscription_follows: Delay,
    /// From a change of a plan to the subscription's conditions about it.
    pub conditions_follow: Delay,
    /// From one state of a CSV to the next, when nothing holds it.
    pub csv_step: Delay,
    /// From a new CSV to its first phase, and to `Replacing` of the one it replaces.
    pub csv_noticed: Delay,
    /// From the deletion of a CSV to its end.
    pub csv_cleanup: Delay,
    /// From the moment that another CSV has taken a CSV's Deployment until it notices.
    pub theft_noticed: Delay,
    /// In how many of a hundred good upgrades the new CSV falls back for a moment.
    pub flap_percent: u8,
    /// How long such a moment is.
    pub flap: Delay,
    /// How long resolution fails over an unfinished upgrade before it is reported.
    pub unsatisfiable_after: Delay,
    /// The same when another subscription of the namespace is at its latest version.
    pub unsatisfiable_beside_neighbour: Delay,
    /// From one attempt at a refused step to the next.
    pub step_retry: Delay,
    /// How long a refused step is tried again before its plan fails.
    pub step_gives_up: Duration,
    /// How long a CSV may be `Installing`.
    pub install_timeout: Duration,
}

// === impl Delay ===

impl Delay {
    /// A delay of `min_ms` to `max_ms` milliseconds.
    pub const fn between_ms(min_ms: u32, max_ms: u32) -> Self {
        Self { min_ms, max_ms }
    }

    /// Draws one.
    pub fn draw(self, rng: &mut ChaCha8Rng) -> Duration {
        let max = self.max_ms.max(self.min_ms);
        Duration::from_millis(u64::from(rng.random_range(self.min_ms..=max)))
    }
}

// === impl Timing ===

impl Default for Timing {
    fn default() -> Self {
        Self {
            catalog_idle: Delay::between_ms(800, 1_700),
            catalog_connects: Delay::between_ms(1_000, 1_500),
            resolution: Delay::between_ms(600, 1_600),
            resolution_after_hop: Delay::between_ms(1_200, 3_000),
            plan_planned: Delay::between_ms(200, 600),
            plan_referenced: Delay::between_ms(700, 1_900),
            plan_starts: Delay::between_ms(600, 2_000),
            csv_created: Delay::between_ms(600, 1_100),
            steps_applied: Delay::between_ms(450, 750),
            plan_complete: Delay::between_ms(1_200, 4_000),
            subscription_follows: Delay::between_ms(1_500, 6_000),
            conditions_follow: Delay::between_ms(400, 1_800),
            csv_step: Delay::between_ms(15, 40),
            csv_noticed: Delay::between_ms(50, 90),
            csv_cleanup: Delay::between_ms(25, 80),
            theft_noticed: Delay::between_ms(6_000, 36_000),
            flap_percent: 46,
            flap: Delay::between_ms(160, 1_000),
            unsatisfiable_after: Delay::between_ms(6_000, 50_000),
            unsatisfiable_beside_neighbour: Delay::between_ms(1_500, 4_000),
            step_retry: Delay::between_ms(2_000, 4_000),
            step_gives_up: Duration::from_mins(1),
            install_timeout: Duration::from_mins(5),
        }
    }
}

impl Timing {
    /// A busy OLM: the catalog operator waits for its own client limit before each thing it does,
    /// so plans and subscriptions follow late, while CSVs move as fast as ever.
    pub fn throttled() -> Self {
        Self {
            resolution: Delay::between_ms(4_000, 14_000),
            resolution_after_hop: Delay::between_ms(8_000, 16_000),
            plan_complete: Delay::between_ms(2_500, 6_000),
            subscription_follows: Delay::between_ms(14_000, 34_000),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_delay_stays_within_its_range_and_reaches_both_ends() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let delay = Delay::between_ms(3, 5);
        let drawn: std::collections::BTreeSet<u128> =
            (0..200).map(|_| delay.draw(&mut rng).as_millis()).collect();
        assert_eq!(drawn, [3, 4, 5].into());
    }
}
