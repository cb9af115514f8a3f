//! Each decision by a table.

use super::*;

const TIMEOUT: Duration = Duration::from_mins(5);

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
        installation: Installation::Possible,
        certificates: Certificates::Fine,
        rollout: Rollout::Available,
    }
}

fn waiting() -> Rollout {
    Rollout::Waiting { deployment: "d".to_owned(), why: "not yet".to_owned() }
}

fn check(facts: &Facts<'_>, now: i64, expected: (Phase, &str)) {
    let decided = decide(facts, TIMEOUT, second(now));
    let Move::To(Transition { phase, reason, .. }) = decided else {
        panic!("{decided:?} instead of {expected:?}")
    };
    assert_eq!((phase, reason), expected);
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

#[test]
fn webhooks_bring_troubles_of_their_own() {
    let gone =
        Facts { certificates: Certificates::Gone, ..facts(Phase::Succeeded, "InstallSucceeded") };
    check(&gone, 1_000, (Phase::Pending, "NeedsCertRotation"));
    let converts = |phase, reason| Facts {
        installation: Installation::ConvertsForSomeNamespaces,
        rollout: waiting(),
        ..facts(phase, reason)
    };
    let ready = converts(Phase::InstallReady, "AllRequirementsMet");
    check(&ready, 1_000, (Phase::Failed, "InstallComponentFailed"));
    let failed = converts(Phase::Failed, "InstallComponentFailed");
    check(&failed, 1_000, (Phase::Pending, "NeedsReinstall"));
}
