//! The phases of a ClusterServiceVersion and the one function that decides its next transition.
//!
//! The decision is pure: what the namespace looks like goes in as [`Facts`], one [`Move`] comes
//! out. It follows the real operator transition by transition, including those that last only
//! some milliseconds.

use jiff::Timestamp;
use std::time::Duration;

use super::queue::after;

/// The phase of a CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    None,
    Pending,
    InstallReady,
    Installing,
    Succeeded,
    Failed,
    Replacing,
    Deleting,
}

/// What the decision about a CSV rests on.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) phase: Phase,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    /// Since when it is in its phase.
    pub(crate) since: Timestamp,
    pub(crate) groups: Groups,
    pub(crate) fail_forward: FailForward,
    /// The CSV that says it replaces this one.
    pub(crate) replaced_by: Option<&'a str>,
    /// Whether one of the CSVs after this one in the chain has Succeeded.
    pub(crate) successor: Successor,
    pub(crate) predecessor: Predecessor,
    pub(crate) requirements: Requirements,
    pub(crate) rollout: Rollout,
}

/// How many OperatorGroups the namespace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    None,
    One,
    Many,
}

/// Whether a failed CSV may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailForward {
    Off,
    On,
}

/// Whether a later version has come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    NotYet,
    Succeeded,
}

/// The CSV that this one replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Predecessor {
    Gone,
    /// It says that it must not be upgraded now.
    NotUpgradeable(String),
    There,
}

/// Whether everything that the CSV needs is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirements {
    Met,
    NotMet,
}

/// How the CSV's Deployments do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rollout {
    Available,
    /// One is missing, or belongs to another CSV by now.
    Missing(String),
    /// One is not ready, in OLM's words.
    Waiting {
        deployment: String,
        why: String,
    },
    DeadlineExceeded {
        deployment: String,
    },
}

/// What becomes of a CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Stay,
    /// Nothing now; look again then.
    StayUntil(Timestamp),
    To(Transition),
    /// The object goes.
    Delete,
}

/// A new phase with its reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) phase: Phase,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

const NO_GROUP: &str = "NoOperatorGroup";
const MANY_GROUPS: &str = "TooManyOperatorGroups";

/// Decides the next transition of a CSV.
pub(crate) fn decide(facts: &Facts<'_>, install_timeout: Duration, now: Timestamp) -> Move {
    if let Some(decided) = group_trouble(facts) {
        return decided;
    }
    match facts.phase {
        Phase::None => {
            go(Phase::Pending, "RequirementsUnknown", "requirements not yet checked".to_owned())
        }
        Phase::Pending => pending(facts),
        Phase::InstallReady => go(
            Phase::Installing,
            "InstallSucceeded",
            "waiting for install components to report healthy".to_owned(),
        ),
        Phase::Installing => installing(facts, install_timeout, now),
        Phase::Succeeded => succeeded(facts),
        Phase::Failed => failed(facts),
        Phase::Replacing => replacing(facts),
        Phase::Deleting => Move::Delete,
    }
}

fn group_trouble(facts: &Facts<'_>) -> Option<Move> {
    let (reason, message) = match (facts.phase, facts.groups) {
        (Phase::Replacing | Phase::Deleting, Groups::None | Groups::One | Groups::Many) => {
            return None;
        }
        (_, Groups::One) => return None,
        (_, Groups::None) => (NO_GROUP, "csv in namespace with no operatorgroups"),
        (_, Groups::Many) => (
            MANY_GROUPS,
            "csv created in namespace with multiple operatorgroups, can't pick one automatically",
        ),
    };
    Some(unless_already(facts, Phase::Failed, reason, message.to_owned()))
}

fn pending(facts: &Facts<'_>) -> Move {
    if let Some(decided) = fail_forward(facts) {
        return decided;
    }
    if let Predecessor::NotUpgradeable(why) = &facts.predecessor {
        let message = format!("operator is not upgradeable: {why}");
        return unless_already(facts, Phase::Pending, "OperatorConditionNotUpgradeable", message);
    }
    match facts.requirements {
        Requirements::NotMet => unless_already(
            facts,
            Phase::Pending,
            "RequirementsNotMet",
            "one or more requirements couldn't be found".to_owned(),
        ),
        Requirements::Met => go(
            Phase::InstallReady,
            "AllRequirementsMet",
            "all requirements found, attempting install".to_owned(),
        ),
    }
}

fn installing(facts: &Facts<'_>, install_timeout: Duration, now: Timestamp) -> Move {
    let times_out = after(facts.since, install_timeout);
    match &facts.rollout {
        Rollout::Available => installed(),
        Rollout::DeadlineExceeded { deployment } => deadline_exceeded(facts, deployment),
        Rollout::Missing(_) | Rollout::Waiting { .. } if now >= times_out => {
            go(Phase::Failed, "InstallCheckFailed", "install timeout".to_owned())
        }
        Rollout::Missing(_) | Rollout::Waiting { .. } => {
            match unless_already(facts, Phase::Installing, "InstallWaiting", trouble(facts)) {
                Move::Stay => Move::StayUntil(times_out),
                other => other,
            }
        }
    }
}

fn succeeded(facts: &Facts<'_>) -> Move {
    if let Some(newer) = facts.replaced_by {
        return go(Phase::Replacing, "BeingReplaced", format!("being replaced by csv: {newer}"));
    }
    if facts.requirements == Requirements::NotMet {
        let message = "requirements no longer met".to_owned();
        return go(Phase::Failed, "RequirementsNotMet", message);
    }
    match &facts.rollout {
        Rollout::Available => Move::Stay,
        Rollout::DeadlineExceeded { deployment } => deadline_exceeded(facts, deployment),
        Rollout::Missing(_) | Rollout::Waiting { .. } => {
            go(Phase::Failed, "ComponentUnhealthy", trouble(facts))
        }
    }
}

fn failed(facts: &Facts<'_>) -> Move {
    if let Some(decided) = fail_forward(facts) {
        return decided;
    }
    if facts.reason == NO_GROUP || facts.reason == MANY_GROUPS {
        let message = "InstallModes now support target namespaces".to_owned();
        return go(Phase::Pending, "RequirementsUnknown", message);
    }
    if facts.requirements == Requirements::NotMet {
        return go(Phase::Pending, "RequirementsNotMet", "requirements not met".to_owned());
    }
    match &facts.rollout {
        Rollout::Available => installed(),
        Rollout::DeadlineExceeded { deployment } => deadline_exceeded(facts, deployment),
        Rollout::Missing(_) | Rollout::Waiting { .. } => {
            go(Phase::Pending, "NeedsReinstall", trouble(facts))
        }
    }
}

fn replacing(facts: &Facts<'_>) -> Move {
    match (&facts.predecessor, facts.successor) {
        // The chain is taken down from its far end.
        (Predecessor::There | Predecessor::NotUpgradeable(_), _)
        | (Predecessor::Gone, Successor::NotYet) => Move::Stay,
        (Predecessor::Gone, Successor::Succeeded) => go(
            Phase::Deleting,
            "Replaced",
            "has been replaced by a newer ClusterServiceVersion that has successfully installed."
                .to_owned(),
        ),
    }
}

/// Replaces a CSV that never came up, where the OperatorGroup allows it.
fn fail_forward(facts: &Facts<'_>) -> Option<Move> {
    let newer = facts.replaced_by.filter(|_| facts.fail_forward == FailForward::On)?;
    let message = format!(
        "Fail Forward is enabled, allowing {} csv to be replaced by csv: {newer}",
        facts.phase.as_str()
    );
    Some(go(Phase::Replacing, "BeingReplaced", message))
}

fn installed() -> Move {
    let message = "install strategy completed with no errors".to_owned();
    go(Phase::Succeeded, "InstallSucceeded", message)
}

fn deadline_exceeded(facts: &Facts<'_>, deployment: &str) -> Move {
    let message = format!(
        "install failed: deployment {deployment} not ready before timeout: \
         deployment \"{deployment}\" exceeded its progress deadline"
    );
    unless_already(facts, Phase::Failed, "InstallCheckFailed", message)
}

fn trouble(facts: &Facts<'_>) -> String {
    match &facts.rollout {
        Rollout::Missing(deployment) => {
            format!("installing: missing deployment with name={deployment}")
        }
        Rollout::Waiting { deployment, why } => {
            format!("installing: waiting for deployment {deployment} to become ready: {why}")
        }
        Rollout::Available | Rollout::DeadlineExceeded { .. } => String::new(),
    }
}

fn go(phase: Phase, reason: &'static str, message: String) -> Move {
    Move::To(Transition { phase, reason, message })
}

fn unless_already(facts: &Facts<'_>, phase: Phase, reason: &'static str, message: String) -> Move {
    if facts.phase == phase && facts.reason == reason && facts.message == message {
        Move::Stay
    } else {
        go(phase, reason, message)
    }
}

// === impl Phase ===

impl Phase {
    /// As written in `status.phase`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Pending => "Pending",
            Self::InstallReady => "InstallReady",
            Self::Installing => "Installing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Replacing => "Replacing",
            Self::Deleting => "Deleting",
        }
    }

    /// Reads `status.phase`; what it does not know it takes for a new CSV.
    pub(crate) fn read(text: &str) -> Self {
        [
            Self::Pending,
            Self::InstallReady,
            Self::Installing,
            Self::Succeeded,
            Self::Failed,
            Self::Replacing,
            Self::Deleting,
        ]
        .into_iter()
        .find(|phase| phase.as_str() == text)
        .unwrap_or(Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(300);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn facts(phase: Phase, reason: &'static str) -> Facts<'static> {
        Facts {
            phase,
            reason,
            message: "",
            since: second(1_000),
            groups: Groups::One,
            fail_forward: FailForward::Off,
            replaced_by: None,
            successor: Successor::NotYet,
            predecessor: Predecessor::Gone,
            requirements: Requirements::Met,
            rollout: Rollout::Available,
        }
    }

    fn waiting() -> Rollout {
        Rollout::Waiting { deployment: "d".to_owned(), why: "not yet".to_owned() }
    }

    fn check(facts: &Facts<'_>, now: i64, expected: (Phase, &str)) {
        match decide(facts, TIMEOUT, second(now)) {
            Move::To(Transition { phase, reason, .. }) => assert_eq!((phase, reason), expected),
            other => panic!("{other:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn what_a_csv_lacks_keeps_it_pending() {
        let new = Facts { requirements: Requirements::NotMet, ..facts(Phase::None, "") };
        check(&new, 1_000, (Phase::Pending, "RequirementsUnknown"));
        let unknown = Facts {
            requirements: Requirements::NotMet,
            ..facts(Phase::Pending, "RequirementsUnknown")
        };
        check(&unknown, 1_000, (Phase::Pending, "RequirementsNotMet"));
        let not_met = Facts {
            message: "one or more requirements couldn't be found",
            requirements: Requirements::NotMet,
            ..facts(Phase::Pending, "RequirementsNotMet")
        };
        assert_eq!(decide(&not_met, TIMEOUT, second(9_000)), Move::Stay);
        check(
            &facts(Phase::Pending, "RequirementsNotMet"),
            1_000,
            (Phase::InstallReady, "AllRequirementsMet"),
        );
    }

    #[test]
    fn the_old_version_s_word_is_asked_before_the_requirements() {
        let blocked = Facts {
            predecessor: Predecessor::NotUpgradeable("busy".to_owned()),
            requirements: Requirements::NotMet,
            ..facts(Phase::Pending, "RequirementsUnknown")
        };
        check(&blocked, 1_000, (Phase::Pending, "OperatorConditionNotUpgradeable"));
    }

    #[test]
    fn a_rollout_that_never_ends_fails_after_the_timeout_and_starts_over() {
        let slow = Facts { rollout: waiting(), ..facts(Phase::Installing, "InstallSucceeded") };
        check(&slow, 1_299, (Phase::Installing, "InstallWaiting"));
        check(&slow, 1_300, (Phase::Failed, "InstallCheckFailed"));
        let known = Facts {
            message: "installing: waiting for deployment d to become ready: not yet",
            rollout: waiting(),
            ..facts(Phase::Installing, "InstallWaiting")
        };
        assert_eq!(decide(&known, TIMEOUT, second(1_001)), Move::StayUntil(second(1_300)));
        let failed = Facts { rollout: waiting(), ..facts(Phase::Failed, "InstallCheckFailed") };
        check(&failed, 1_300, (Phase::Pending, "NeedsReinstall"));
    }

    #[test]
    fn a_missed_deadline_stays_failed_until_the_pod_is_well() {
        let exceeded = Rollout::DeadlineExceeded { deployment: "d".to_owned() };
        let installing =
            Facts { rollout: exceeded.clone(), ..facts(Phase::Installing, "InstallWaiting") };
        let Move::To(failed) = decide(&installing, TIMEOUT, second(1_001)) else {
            panic!("no transition")
        };
        assert_eq!((failed.phase, failed.reason), (Phase::Failed, "InstallCheckFailed"));
        let message = failed.message;
        let still = Facts {
            message: &message,
            rollout: exceeded,
            ..facts(Phase::Failed, "InstallCheckFailed")
        };
        assert_eq!(decide(&still, TIMEOUT, second(9_000)), Move::Stay);
        check(
            &facts(Phase::Failed, "InstallCheckFailed"),
            9_000,
            (Phase::Succeeded, "InstallSucceeded"),
        );
    }

    #[test]
    fn only_a_succeeded_csv_is_replaced_unless_the_group_fails_forward() {
        let replaced = |phase, reason| Facts { replaced_by: Some("v2"), ..facts(phase, reason) };
        check(
            &replaced(Phase::Succeeded, "InstallSucceeded"),
            1_000,
            (Phase::Replacing, "BeingReplaced"),
        );
        let exceeded = Rollout::DeadlineExceeded { deployment: "d".to_owned() };
        let failed = Facts { rollout: exceeded, ..replaced(Phase::Failed, "InstallCheckFailed") };
        check(&failed, 1_000, (Phase::Failed, "InstallCheckFailed"));
        let forward = Facts { fail_forward: FailForward::On, ..failed };
        check(&forward, 1_000, (Phase::Replacing, "BeingReplaced"));
    }

    #[test]
    fn a_chain_of_replaced_csvs_goes_from_its_far_end() {
        let middle = Facts {
            predecessor: Predecessor::There,
            successor: Successor::Succeeded,
            ..facts(Phase::Replacing, "BeingReplaced")
        };
        assert_eq!(decide(&middle, TIMEOUT, second(1_000)), Move::Stay);
        let end = Facts { predecessor: Predecessor::Gone, ..middle };
        check(&end, 1_000, (Phase::Deleting, "Replaced"));
    }

    #[test]
    fn a_namespace_needs_exactly_one_operator_group() {
        let none = Facts { groups: Groups::None, ..facts(Phase::Succeeded, "InstallSucceeded") };
        check(&none, 1_000, (Phase::Failed, "NoOperatorGroup"));
        let many = Facts { groups: Groups::Many, ..facts(Phase::Succeeded, "InstallSucceeded") };
        check(&many, 1_000, (Phase::Failed, "TooManyOperatorGroups"));
        let again = facts(Phase::Failed, "TooManyOperatorGroups");
        check(&again, 1_000, (Phase::Pending, "RequirementsUnknown"));
    }
}
