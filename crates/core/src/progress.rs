//! Percent of a step from what is observed, never from the clock, and never going back.

/// How far one OLM v0 step has come, in the order in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Milestone {
    /// Nothing observed yet.
    Begun,
    /// All Subscriptions of the namespace are Manual.
    Held,
    /// The expected InstallPlan is referenced.
    PlanFound,
    /// It is approved.
    Approved,
    /// Its objects are being applied.
    Installing,
    /// Every new CSV exists.
    CsvsCreated,
    /// Every new CSV has its requirements.
    CsvsInstalling,
    /// Every new CSV has Succeeded.
    CsvsSucceeded,
    /// And stayed so, with the old ones gone.
    Stable,
}

impl Milestone {
    /// The percent at which the milestone stands.
    fn percent(self) -> u8 {
        match self {
            Self::Begun => 0,
            Self::Held => 5,
            Self::PlanFound => 15,
            Self::Approved => 20,
            Self::Installing => 30,
            Self::CsvsCreated => 40,
            Self::CsvsInstalling => 50,
            Self::CsvsSucceeded => 90,
            Self::Stable => 100,
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Begun => Self::Held,
            Self::Held => Self::PlanFound,
            Self::PlanFound => Self::Approved,
            Self::Approved => Self::Installing,
            Self::Installing => Self::CsvsCreated,
            Self::CsvsCreated => Self::CsvsInstalling,
            Self::CsvsInstalling => Self::CsvsSucceeded,
            Self::CsvsSucceeded | Self::Stable => Self::Stable,
        }
    }
}

/// Percent of a step that stands at `milestone` with `done` of `of` parts on the way to the next.
///
/// Parts are whatever is counted there: CSVs, Deployments' available replicas, seconds of the
/// stability window.
pub fn percent(milestone: Milestone, done: u32, of: u32) -> u8 {
    let here = milestone.percent();
    let ahead = milestone.next().percent();
    if of == 0 {
        return here;
    }
    let span = u32::from(ahead.saturating_sub(here));
    let part = span.saturating_mul(done.min(of)) / of;
    // Only the milestone itself shows its own percent, so the next one is never reached by parts.
    let part = part.min(span.saturating_sub(1));
    here.saturating_add(u8::try_from(part).unwrap_or(0))
}

/// What to show after `shown` when `observed` has just been computed: a step never goes back,
/// though OLM's good upgrades do.
pub fn monotonic(shown: u8, observed: u8) -> u8 {
    shown.max(observed).min(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_rises_with_each_milestone_and_parts_stay_between() {
        let mut milestone = Milestone::Begun;
        let mut last = 0;
        while milestone != Milestone::Stable {
            assert!(percent(milestone, 0, 4) >= last);
            assert!(percent(milestone, 4, 4) < percent(milestone.next(), 0, 0));
            assert!(percent(milestone, 1, 4) <= percent(milestone, 3, 4));
            last = percent(milestone, 4, 4);
            milestone = milestone.next();
        }
        assert_eq!(percent(Milestone::Stable, 0, 0), 100);
    }

    #[test]
    fn a_flapping_step_does_not_go_back() {
        assert_eq!(monotonic(90, 40), 90);
        assert_eq!(monotonic(40, 90), 90);
    }
}
