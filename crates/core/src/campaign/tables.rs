//! The rules one by one.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    Budget, BudgetMode, Campaign, Cluster, Consent, Control, Decision, Decisions, Failure, Limits,
    Link, Offline, Phase, PlanFact, PreflightFact, Request, Run, Settled, SkipReason, Stage,
    Summary, WaitingOn, Wave, WaveState, decide,
};
use crate::{ids::ClusterName, state::ClusterState};

/// A campaign in Rollout since second 0; a table changes what it is about.
pub(super) fn campaign(waves: &[(&str, &[&str], u32, u32)]) -> Campaign {
    let wave = |&(name, members, max_concurrent, max_failures): &(&str, &[&str], u32, u32)| Wave {
        name: name.try_into().unwrap(),
        members: members.iter().map(|&m| m.try_into().unwrap()).collect(),
        max_concurrent,
        max_failures,
    };
    Campaign {
        stage: Stage::Rollout,
        control: Control::Running,
        waves: waves.iter().map(wave).collect(),
        budget: Budget { max_failures: None, mode: BudgetMode::StopOnBreach },
        offline: Offline::Wait,
        consent: Consent::Given,
        rollout_since: Some(at(0)),
    }
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A cluster that could start at second 100.
pub(super) fn ready() -> Cluster {
    Cluster {
        plan: PlanFact::Planned,
        link: Link::Connected,
        run: Run::NotStarted,
        preflight: PreflightFact::Clear { at: at(99) },
        request: Request::None,
        holder: None,
    }
}

fn with(run: Run) -> Cluster {
    Cluster { run, ..ready() }
}

const RUNNING: Run = Run::InFlight { verifying: false };
const FAILED: Run = Run::Failed(Failure::Failed);

fn clusters(facts: &[(&str, Cluster)]) -> BTreeMap<ClusterName, Cluster> {
    facts.iter().map(|(name, c)| ((*name).try_into().unwrap(), c.clone())).collect()
}

fn run(campaign: &Campaign, facts: &[(&str, Cluster)]) -> Decisions {
    decide(campaign, &clusters(facts), &Limits::default(), at(100))
}

fn check(campaign: &Campaign, facts: &[(&str, Cluster)], expected: &[(&str, Decision)]) {
    let decisions = run(campaign, facts);
    let expected: BTreeMap<ClusterName, Decision> =
        expected.iter().map(|(name, d)| ((*name).try_into().unwrap(), d.clone())).collect();
    assert_eq!(decisions.clusters, expected);
}

fn slot(max_concurrent: u32) -> Decision {
    Decision::Wait(WaitingOn::Slot { max_concurrent })
}

fn wave(wave: &str) -> Decision {
    Decision::Wait(WaitingOn::Wave { wave: wave.to_owned() })
}

#[test]
fn clusters_start_in_the_order_of_their_wave_until_it_is_full() {
    let campaign = campaign(&[("w", &["c", "a", "b"], 2, 9)]);
    let facts = [("a", ready()), ("b", ready()), ("c", ready())];
    check(&campaign, &facts, &[("c", Decision::Start), ("a", Decision::Start), ("b", slot(2))]);
}

#[test]
fn a_wave_waits_for_the_one_before_and_opens_when_that_is_complete() {
    let campaign = campaign(&[("one", &["a"], 1, 0), ("two", &["b"], 1, 0)]);
    check(
        &campaign,
        &[("a", with(RUNNING)), ("b", ready())],
        &[("a", Decision::InFlight { silent_since: None }), ("b", wave("one"))],
    );
    let done = [("a", with(Run::Succeeded)), ("b", ready())];
    check(&campaign, &done, &[("a", Decision::Nothing), ("b", Decision::Start)]);
    let states: Vec<_> = run(&campaign, &done).waves.iter().map(|w| w.state).collect();
    assert_eq!(states, [WaveState::Complete, WaveState::Running]);
}

#[test]
fn strict_lets_no_more_run_than_could_fail() {
    let mut campaign = campaign(&[("w", &["a", "b", "c", "d"], 3, 1)]);
    campaign.budget.mode = BudgetMode::Strict;
    let facts = [("a", with(FAILED)), ("b", ready()), ("c", ready()), ("d", ready())];
    let full = |failed, in_flight| {
        Decision::Wait(WaitingOn::FailureBudget { failed, in_flight, max_failures: 1 })
    };
    check(
        &campaign,
        &facts,
        &[("a", Decision::Nothing), ("b", Decision::Start), ("c", full(1, 1)), ("d", full(1, 1))],
    );
    // Without a failure two may run: if both fail, that is the one tolerated and the one that halts.
    let facts = [("a", ready()), ("b", ready()), ("c", ready()), ("d", ready())];
    check(
        &campaign,
        &facts,
        &[("a", Decision::Start), ("b", Decision::Start), ("c", full(0, 2)), ("d", full(0, 2))],
    );
}

#[test]
fn a_silent_cluster_keeps_its_reservation_even_when_it_is_skipped() {
    let mut campaign = campaign(&[("w", &["a", "b"], 2, 0)]);
    campaign.budget.mode = BudgetMode::Strict;
    let silent = Cluster { link: Link::Silent { since: at(50) }, ..with(RUNNING) };
    let full =
        Decision::Wait(WaitingOn::FailureBudget { failed: 0, in_flight: 1, max_failures: 0 });
    check(
        &campaign,
        &[("a", silent.clone()), ("b", ready())],
        &[("a", Decision::InFlight { silent_since: Some(at(50)) }), ("b", full.clone())],
    );
    let skip = Cluster { request: Request::Skip, ..silent.clone() };
    let skipped = Decision::Settle(Settled::Skipped(SkipReason::UserInFlight));
    check(&campaign, &[("a", skip), ("b", ready())], &[("a", skipped), ("b", full.clone())]);
    let left = Cluster { run: Run::Skipped(SkipReason::UserInFlight), ..silent };
    check(&campaign, &[("a", left), ("b", ready())], &[("a", Decision::Nothing), ("b", full)]);
}

#[test]
fn the_budget_over_all_waves_halts_though_no_wave_is_over_its_own() {
    let mut campaign = campaign(&[("one", &["a", "b"], 2, 5), ("two", &["c"], 1, 5)]);
    campaign.budget.max_failures = Some(1);
    let facts = [("a", with(FAILED)), ("b", with(FAILED)), ("c", ready())];
    let halted = Decision::Wait(WaitingOn::Halted { failed: 2, max_failures: 1, wave: None });
    check(&campaign, &facts, &[("a", Decision::Nothing), ("b", Decision::Nothing), ("c", halted)]);
    assert_eq!(run(&campaign, &facts).phase, Phase::Failed);
}

#[test]
fn one_failure_more_than_a_wave_tolerates_halts_and_a_retry_goes_on() {
    let campaign = campaign(&[("w", &["a", "b", "c"], 1, 0)]);
    let facts = [("a", with(FAILED)), ("b", with(RUNNING)), ("c", ready())];
    let halted = Decision::Wait(WaitingOn::Halted {
        failed: 1,
        max_failures: 0,
        wave: Some("w".to_owned()),
    });
    let going = Decision::InFlight { silent_since: None };
    check(&campaign, &facts, &[("a", Decision::Nothing), ("b", going), ("c", halted)]);
    assert_eq!(run(&campaign, &facts).phase, Phase::Halting);
    let retry = Cluster { request: Request::Retry, ..with(FAILED) };
    check(
        &campaign,
        &[("a", retry), ("b", with(Run::Succeeded)), ("c", ready())],
        &[("a", Decision::Start), ("b", Decision::Nothing), ("c", slot(1))],
    );
}

#[test]
fn a_held_cluster_takes_no_slot_keeps_its_wave_open_and_is_checked_again() {
    let campaign = campaign(&[("one", &["a", "b"], 1, 0), ("two", &["c"], 1, 0)]);
    let held = |second| Cluster {
        preflight: PreflightFact::Blocked { at: at(second), checks: vec!["x".to_owned()] },
        ..ready()
    };
    let waits = Decision::Wait(WaitingOn::Checks {
        checks: vec!["x".to_owned()],
        next_check_at: at(50 + 300),
    });
    let facts = [("a", held(50)), ("b", ready()), ("c", ready())];
    check(&campaign, &facts, &[("a", waits.clone()), ("b", Decision::Start), ("c", wave("one"))]);
    let facts = [("a", held(50)), ("b", with(Run::Succeeded)), ("c", ready())];
    check(&campaign, &facts, &[("a", waits), ("b", Decision::Nothing), ("c", wave("one"))]);
    assert_eq!(run(&campaign, &facts).wake_at, Some(at(350)));
    let facts = [("a", held(-200)), ("b", with(Run::Succeeded)), ("c", ready())];
    check(
        &campaign,
        &facts,
        &[("a", Decision::Check), ("b", Decision::Nothing), ("c", wave("one"))],
    );
}

#[test]
fn nothing_starts_on_an_old_or_missing_preflight_and_no_more_are_checked_than_could_start() {
    let campaign = campaign(&[("w", &["a", "b", "c"], 2, 9)]);
    let old = Cluster { preflight: PreflightFact::Clear { at: at(-300) }, ..ready() };
    let none = Cluster { preflight: PreflightFact::None, ..ready() };
    check(
        &campaign,
        &[("a", old), ("b", none.clone()), ("c", none.clone())],
        &[("a", Decision::Check), ("b", Decision::Check), ("c", slot(2))],
    );
    let asked = Cluster { preflight: PreflightFact::Running { asked_at: at(90) }, ..ready() };
    let lost = Cluster { preflight: PreflightFact::Running { asked_at: at(-300) }, ..ready() };
    check(
        &campaign,
        &[("a", asked), ("b", lost), ("c", none)],
        &[("a", Decision::Wait(WaitingOn::Preflight)), ("b", Decision::Check), ("c", slot(2))],
    );
}

#[test]
fn a_cluster_that_is_not_heard_holds_its_wave_or_is_left_out() {
    let mut campaign = campaign(&[("one", &["a"], 1, 0), ("two", &["b"], 1, 0)]);
    let silent = Cluster { link: Link::Silent { since: at(-500) }, ..ready() };
    let facts = [("a", silent), ("b", ready())];
    let waits = |skip_at| Decision::Wait(WaitingOn::Agent { since: at(-500), skip_at });
    check(&campaign, &facts, &[("a", waits(None)), ("b", wave("one"))]);
    campaign.offline = Offline::Skip { deadline: SignedDuration::from_secs(150) };
    check(&campaign, &facts, &[("a", waits(Some(at(150)))), ("b", wave("one"))]);
    assert_eq!(run(&campaign, &facts).wake_at, Some(at(150)));
    campaign.offline = Offline::Skip { deadline: SignedDuration::from_secs(100) };
    check(
        &campaign,
        &facts,
        &[("a", Decision::Settle(Settled::Unreachable)), ("b", Decision::Start)],
    );
}

#[test]
fn every_reason_to_wait_is_told() {
    let one = |change: &dyn Fn(&mut Campaign, &mut Cluster)| {
        let mut campaign = campaign(&[("w", &["a"], 1, 0)]);
        let mut cluster = ready();
        change(&mut campaign, &mut cluster);
        run(&campaign, &[("a", cluster)]).clusters.into_values().next().unwrap()
    };
    let waits = Decision::Wait;
    assert_eq!(one(&|c, _| c.control = Control::Paused), waits(WaitingOn::Paused));
    assert_eq!(one(&|c, _| c.control = Control::Frozen), waits(WaitingOn::Frozen));
    assert_eq!(one(&|c, _| c.control = Control::Cancelled), waits(WaitingOn::Cancelled));
    assert_eq!(one(&|c, _| c.consent = Consent::Stale), waits(WaitingOn::Consent));
    assert_eq!(one(&|_, c| c.plan = PlanFact::NotConsented), waits(WaitingOn::Consent));
    let holder = |_: &mut Campaign, c: &mut Cluster| c.holder = Some("other".to_owned());
    assert_eq!(one(&holder), waits(WaitingOn::Holder { fleet_upgrade: "other".to_owned() }));
    let missing = "the catalog".to_owned();
    let unknown = PlanFact::Unknown { missing: missing.clone() };
    assert_eq!(one(&|_, c| c.plan = unknown.clone()), waits(WaitingOn::Inventory { missing }));
    for stage in [Stage::Preview, Stage::Preflight] {
        assert_eq!(one(&|c, _| c.stage = stage), waits(WaitingOn::Stage { stage }));
    }
    assert_eq!(
        one(&|c, _| c.rollout_since = None),
        waits(WaitingOn::Stage { stage: Stage::Preflight })
    );
}

#[test]
fn preview_and_preflight_wait_for_agents_that_may_be_on_their_way_back() {
    let mut campaign = campaign(&[("w", &["a", "b"], 1, 0)]);
    let missing = "its agent".to_owned();
    let gone = |since| Cluster {
        plan: PlanFact::Unknown { missing: missing.clone() },
        link: Link::Silent { since: at(since) },
        ..ready()
    };
    let phase = |campaign: &Campaign, b: Cluster| {
        let decisions = run(campaign, &[("a", ready()), ("b", b)]);
        (decisions.phase, decisions.wake_at)
    };
    campaign.stage = Stage::Preview;
    assert_eq!(phase(&campaign, gone(71)), (Phase::Planning, Some(at(101))));
    assert_eq!(phase(&campaign, gone(70)), (Phase::Previewed, None));
    campaign.stage = Stage::Preflight;
    assert_eq!(phase(&campaign, gone(71)), (Phase::Preflighting, Some(at(101))));
    assert_eq!(phase(&campaign, gone(70)), (Phase::Preflighted, None));
    let unchecked = |since| Cluster {
        link: Link::Silent { since: at(since) },
        preflight: PreflightFact::None,
        ..ready()
    };
    assert_eq!(phase(&campaign, unchecked(71)), (Phase::Preflighting, Some(at(101))));
    assert_eq!(phase(&campaign, unchecked(70)), (Phase::Preflighted, None));
}

#[test]
fn stage_preflight_checks_everywhere_and_starts_nothing() {
    let mut campaign = campaign(&[("one", &["a"], 1, 0), ("two", &["b", "c"], 1, 0)]);
    campaign.stage = Stage::Preflight;
    let none = Cluster { preflight: PreflightFact::None, ..ready() };
    let there = Cluster { plan: PlanFact::AtTarget, ..none.clone() };
    let facts = [("a", none), ("b", there), ("c", ready())];
    let clear = Decision::Wait(WaitingOn::Stage { stage: Stage::Preflight });
    check(&campaign, &facts, &[("a", Decision::Check), ("b", Decision::Nothing), ("c", clear)]);
    assert_eq!(run(&campaign, &facts).phase, Phase::Preflighting);
}

#[test]
fn the_five_numbers_add_up_and_name_the_end() {
    let campaign = campaign(&[("w", &["a", "b", "c", "d", "e", "f"], 6, 9)]);
    let facts = [
        ("a", with(Run::Succeeded)),
        ("b", Cluster { plan: PlanFact::AtTarget, ..ready() }),
        ("c", with(Run::Failed(Failure::Stalled))),
        ("d", with(Run::Skipped(SkipReason::User))),
        ("e", with(Run::Unreachable)),
        ("f", Cluster { plan: PlanFact::NoPath { why: String::new() }, ..ready() }),
    ];
    let decisions = run(&campaign, &facts);
    assert_eq!(decisions.phase, Phase::SucceededWithFailures);
    let mut summary = Summary::default();
    for (name, cluster) in &clusters(&facts) {
        summary.add(cluster, &decisions.clusters[name]);
    }
    let expected = Summary { succeeded: 2, failed: 1, skipped: 1, unreachable: 1, not_started: 1 };
    assert_eq!(summary, expected);
    assert_eq!(summary.total(), 6);
    assert_eq!(decisions.counts[&ClusterState::Succeeded], 2);
}

#[test]
fn a_cluster_without_facts_is_decided_too() {
    let campaign = campaign(&[("w", &["a"], 1, 0)]);
    let missing = "its agent".to_owned();
    check(&campaign, &[], &[("a", Decision::Wait(WaitingOn::Inventory { missing }))]);
}

#[test]
fn a_pass_starts_no_more_than_its_limit() {
    let campaign = campaign(&[("w", &["a", "b", "c"], 3, 9)]);
    let facts = clusters(&[("a", ready()), ("b", ready()), ("c", ready())]);
    let limits = Limits { starts_max: 2, ..Limits::default() };
    let decisions = decide(&campaign, &facts, &limits, at(100));
    let starts = decisions.clusters.values().filter(|d| **d == Decision::Start).count();
    assert_eq!(starts, 2);
}
