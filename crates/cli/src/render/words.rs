//! Times, states and outcomes as people read them.

use jiff::Timestamp;
use wavelift_api::{
    cluster_upgrade::{ClusterStateName, StepStateName},
    shared::{CheckOutcome, InsightLevel},
};

use crate::printer::Tone;

/// `47s`, `12m`, `1h12m`, `3d4h`
pub(super) fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, m) if m < 10 && seconds % 60 > 0 => format!("{m}m{}s", seconds % 60),
        (0, 0, m) => format!("{m}m"),
        (0, h, m) if m % 60 > 0 => format!("{h}h{}m", m % 60),
        (0, h, _) => format!("{h}h"),
        (d, h, _) if h % 24 > 0 => format!("{d}d{}h", h % 24),
        (d, _, _) => format!("{d}d"),
    }
}

/// How long ago `then` is at `now`.
pub(super) fn age(then: Timestamp, now: Timestamp) -> String {
    duration(now.duration_since(then).as_secs())
}

pub(super) fn state_icon(state: ClusterStateName) -> (&'static str, Tone) {
    match state {
        ClusterStateName::Succeeded => ("✔", Tone::Good),
        ClusterStateName::Failed | ClusterStateName::Stalled => ("✖", Tone::Bad),
        ClusterStateName::Upgrading | ClusterStateName::Verifying | ClusterStateName::Preflight => {
            ("●", Tone::Busy)
        }
        ClusterStateName::Blocked => ("⚠", Tone::Warn),
        ClusterStateName::Unreachable => ("?", Tone::Warn),
        ClusterStateName::Pending | ClusterStateName::Ready => ("◷", Tone::Quiet),
        ClusterStateName::Skipped => ("-", Tone::Quiet),
    }
}

pub(super) fn step_icon(state: StepStateName) -> (&'static str, Tone) {
    match state {
        StepStateName::Done => ("✔", Tone::Good),
        StepStateName::Failed => ("✖", Tone::Bad),
        StepStateName::Running => ("●", Tone::Busy),
        StepStateName::Pending => ("◷", Tone::Quiet),
    }
}

pub(super) fn outcome_icon(outcome: CheckOutcome) -> (&'static str, Tone) {
    match outcome {
        CheckOutcome::Pass => ("✔", Tone::Good),
        CheckOutcome::Warn => ("⚠", Tone::Warn),
        CheckOutcome::Fail => ("✖", Tone::Bad),
        CheckOutcome::Unknown => ("?", Tone::Warn),
        CheckOutcome::Skipped => ("-", Tone::Quiet),
    }
}

pub(super) fn level_tone(level: InsightLevel) -> Tone {
    match level {
        InsightLevel::Info => Tone::Quiet,
        InsightLevel::Warning => Tone::Warn,
        InsightLevel::Error | InsightLevel::Critical => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        let shown: Vec<String> = [0, 59, 60, 61, 599, 600, 3_600, 4_320, 86_400, 273_600]
            .into_iter()
            .map(duration)
            .collect();
        let expected = ["0s", "59s", "1m", "1m1s", "9m59s", "10m", "1h", "1h12m", "1d", "3d4h"];
        assert_eq!(shown, expected);
        assert_eq!(duration(-5), "0s");
    }
}
