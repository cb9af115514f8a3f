//! A made-up fleet in the middle of a night: every state, every kind of finding, once each at least.
//!
//! Tests read it, and the example shows it in a browser. It knows the API's shapes alone.

use jiff::{SignedDuration, Timestamp};
use wavelift_api::{
    cluster_upgrade::{
        ClusterStateName, FailureStatus, MoveSpec, OperatorConditionStatus, StepStateName, StepVia,
    },
    fleet_upgrade::{
        BudgetMode, CheckCounts, Control, HistoryEntry, PreviewPath, Stage, StateCount,
        SummaryStatus,
    },
    live::{
        AgentStateName, AgentView, BudgetView, CheckTally, ClusterRow, ClusterView, MoveView,
        PhaseName, StepView, UpgradeRow, UpgradeView, WaveStateName, WaveView,
    },
    shared::{
        CheckDisposition, CheckOutcome, CheckResult, Condition, ConditionStatus, FailureKind,
        InsightImpact, InsightLevel, InsightStatus, OperatorTarget, PreflightReport,
    },
};
use wavelift_core::{campaign::WaitingOn, state::ClusterState};

/// One campaign and its clusters.
pub(crate) type Sample = (UpgradeView, Vec<ClusterView>);

const PACKAGE: &str = "beacon-logging";
const DIGEST: &str = "sha256:9f2c41ab90d1e6c07b5f4a3328cc1e6e0e7a9b1d2c3f4a5b6c7d8e9fa0b1c2d3";

/// The moment that the sample shows.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_773_452_520).unwrap_or_default()
}

fn ago(minutes: i64) -> Timestamp {
    now() - SignedDuration::from_mins(minutes)
}

/// All campaigns.
pub(crate) fn campaigns() -> Vec<Sample> {
    vec![running(), preflighted(), succeeded(), failed()]
}

/// The agents of all clusters of the campaign under way.
pub(crate) fn agents() -> Vec<AgentView> {
    let (_, clusters) = running();
    let agent = |cluster: ClusterView| AgentView {
        cluster: cluster.row.name,
        state: cluster.row.agent,
        since_time: Some(ago(if cluster.row.agent == AgentStateName::Silent { 38 } else { 600 })),
        last_heard_time: cluster.row.last_heard_time,
        version: Some("0.1.0".to_owned()),
        kube_version: Some("v1.33.4".to_owned()),
    };
    clusters.into_iter().map(agent).collect()
}

// === the campaign under way ===

fn running() -> Sample {
    let sites = ["mad", "fra", "osl", "dub", "waw", "mil"];
    let name = |kind: &str, index: usize| format!("{kind}-{}-{:02}", sites[index % 6], index);
    let mut clusters = vec![];
    clusters.extend((1..=6).map(|i| done(&name("stage", i), "canary", 100 - i)));
    clusters.extend((1..=13).map(|i| done(&name("prod", i), "emea", 60 - i)));
    clusters.push(broken(&name("prod", 14)));
    clusters.push(stalled(&name("prod", 15)));
    clusters.extend([34, 61, 78].iter().zip(16..).map(|(p, i)| moving(&name("prod", i), *p)));
    clusters.push(verifying(&name("prod", 19)));
    clusters.push(silent(&name("prod", 20)));
    clusters.push(blocked(&name("prod", 21)));
    clusters.push(skipped(&name("prod", 22)));
    let slot = || WaitingOn::Slot { max_concurrent: 6 };
    clusters.extend((23..=24).map(|i| waiting(&name("prod", i), "emea", slot())));
    let wave = || WaitingOn::Wave { wave: "emea".to_owned() };
    clusters.extend((25..=54).map(|i| waiting(&name("prod", i), "global", wave())));
    let mut view = view("logging-6-2", "ops", PhaseName::Running, &clusters);
    "wave emea: 19 of 60 clusters done, 2 failed, 4 upgrading".clone_into(&mut view.row.message);
    view.waves[0].state = WaveStateName::Complete;
    view.waves[1].state = WaveStateName::Running;
    view.waves[1].budget_parallelism = Some(4);
    view.row.current_wave = Some("emea".to_owned());
    view.row.waves_complete = 1;
    view.row.needs_you = 3;
    view.insights = insights();
    (view, clusters)
}

fn insights() -> Vec<InsightStatus> {
    let insight = |id: &str, level, impact, minutes, clusters| InsightStatus {
        id: id.to_owned(),
        reason: id.to_owned(),
        since_time: ago(minutes),
        level,
        impact,
        message: String::new(),
        remediation: String::new(),
        clusters: Some(clusters),
    };
    vec![
        InsightStatus {
            message: "InstallPlan install-7xk2p failed: conversion webhook refused the connection"
                .to_owned(),
            remediation: "Repair the webhook, then retry the cluster.".to_owned(),
            ..insight("InstallPlanFailed", InsightLevel::Error, InsightImpact::UpdateStalled, 47, 1)
        },
        InsightStatus {
            message: "CSV beacon-logging.v6.1.4 has been Pending for over 30 minutes".to_owned(),
            remediation: "See which requirement of the CSV is not met.".to_owned(),
            ..insight("CsvPending", InsightLevel::Warning, InsightImpact::UpdateSpeed, 72, 1)
        },
        InsightStatus {
            message: "The agent has not been heard for 38 minutes".to_owned(),
            remediation: "See whether the cluster is up and its agent runs.".to_owned(),
            ..insight("AgentSilent", InsightLevel::Warning, InsightImpact::Unknown, 38, 1)
        },
    ]
}

fn row(name: &str, wave: &str, state: ClusterStateName, message: &str) -> ClusterRow {
    let report = report(&[]);
    ClusterRow {
        name: name.to_owned(),
        wave: wave.to_owned(),
        state,
        waiting_on: None,
        message: message.to_owned(),
        since_time: Some(ago(9)),
        moves: vec![
            MoveView {
                package: PACKAGE.to_owned(),
                from: Some("6.0.9".to_owned()),
                to: "6.2.3".to_owned(),
                hops: 2,
            },
            MoveView {
                package: "beacon-store".to_owned(),
                from: Some("6.0.7".to_owned()),
                to: "6.2.1".to_owned(),
                hops: 1,
            },
        ],
        step: None,
        percent: None,
        agent: AgentStateName::Connected,
        last_heard_time: Some(now() - SignedDuration::from_secs(12)),
        checks: Some(CheckTally::of(&report)),
        failure_reason: None,
    }
}

fn cluster(row: ClusterRow, steps: [(StepStateName, i32); 2]) -> ClusterView {
    let started = steps[0].0 != StepStateName::Pending;
    let moved = |package: &str, from: &str, to: &str| MoveSpec {
        package: package.to_owned(),
        from: Some(format!("{package}.v{from}")),
        to: format!("{package}.v{to}"),
        from_version: Some(from.to_owned()),
        to_version: to.to_owned(),
    };
    let hops = [
        vec![moved(PACKAGE, "6.0.9", "6.1.4")],
        vec![moved(PACKAGE, "6.1.4", "6.2.3"), moved("beacon-store", "6.0.7", "6.2.1")],
    ];
    let steps = hops.into_iter().zip(steps).zip([(31, 19), (18, 6)]).map(
        |((moves, (state, percent)), (begun, ended))| StepView {
            namespace: "beacon-system".to_owned(),
            moves,
            via: StepVia::Cluster,
            state,
            percent,
            start_time: (state != StepStateName::Pending).then(|| ago(begun)),
            completion_time: (state == StepStateName::Done).then(|| ago(ended)),
            install_plan: (state != StepStateName::Pending).then(|| format!("install-{begun}xk2p")),
            message: match state {
                StepStateName::Running => Some("2 of 3 Deployments available".to_owned()),
                StepStateName::Failed => Some("the InstallPlan failed".to_owned()),
                StepStateName::Pending | StepStateName::Done => None,
            },
        },
    );
    ClusterView {
        uid: Some(format!(
            "5b0d7a52-0000-4000-8000-{:012x}",
            row.name.bytes().map(u32::from).sum::<u32>()
        )),
        epoch: i64::from(started),
        attempt: 0,
        agent_version: Some("0.1.0".to_owned()),
        plan_digest: Some(DIGEST.to_owned()),
        start_time: started.then(|| ago(31)),
        completion_time: None,
        steps: steps.collect(),
        preflight: Some(report(&[])),
        failure: None,
        insights: vec![],
        operator_conditions: vec![OperatorConditionStatus {
            csv: format!("{PACKAGE}.v6.1.4"),
            kind: "Upgradeable".to_owned(),
            status: "True".to_owned(),
            reason: "AsExpected".to_owned(),
            message: "No migration is running".to_owned(),
        }],
        row,
    }
}

const DONE: (StepStateName, i32) = (StepStateName::Done, 100);
const TO_DO: (StepStateName, i32) = (StepStateName::Pending, 0);

fn done(name: &str, wave: &str, minutes: usize) -> ClusterView {
    let mut row = row(name, wave, ClusterStateName::Succeeded, "at the target");
    row.percent = Some(100);
    row.step = Some("2/2".to_owned());
    row.since_time = Some(ago(i64::try_from(minutes).unwrap_or(0)));
    ClusterView { completion_time: row.since_time, ..cluster(row, [DONE, DONE]) }
}

fn moving(name: &str, percent: i32) -> ClusterView {
    let mut row = row(
        name,
        "emea",
        ClusterStateName::Upgrading,
        "step 2 of 2: waits for 3 Deployments of beacon-logging.v6.2.3",
    );
    row.percent = Some(percent);
    row.step = Some("2/2".to_owned());
    cluster(row, [DONE, (StepStateName::Running, percent)])
}

fn verifying(name: &str) -> ClusterView {
    let mut row =
        row(name, "emea", ClusterStateName::Verifying, "stable for 2 of 5 minutes so far");
    row.percent = Some(97);
    row.step = Some("2/2".to_owned());
    cluster(row, [DONE, (StepStateName::Running, 94)])
}

fn broken(name: &str) -> ClusterView {
    let message = "InstallPlan install-7xk2p failed: CRD beacons.example.com: conversion webhook \
                   beacon-store: connection refused";
    let mut row = row(name, "emea", ClusterStateName::Failed, message);
    row.percent = Some(62);
    row.step = Some("2/2".to_owned());
    row.failure_reason = Some("InstallPlanFailed".to_owned());
    ClusterView {
        completion_time: Some(ago(9)),
        failure: Some(FailureStatus {
            kind: FailureKind::Failed,
            reason: "InstallPlanFailed".to_owned(),
            message: message.to_owned(),
            remediation: "Repair the webhook service beacon-store in beacon-system, then retry \
                          the cluster."
                .to_owned(),
            step: Some(1),
        }),
        insights: insights()
            .into_iter()
            .take(1)
            .map(|i| InsightStatus { clusters: None, ..i })
            .collect(),
        ..cluster(row, [DONE, (StepStateName::Failed, 30)])
    }
}

fn stalled(name: &str) -> ClusterView {
    let message = "CSV beacon-logging.v6.1.4 stayed Pending past the step's deadline";
    let mut row = row(name, "emea", ClusterStateName::Stalled, message);
    row.percent = Some(22);
    row.step = Some("1/2".to_owned());
    row.failure_reason = Some("DeadlineExceeded".to_owned());
    ClusterView {
        failure: Some(FailureStatus {
            kind: FailureKind::Stalled,
            reason: "DeadlineExceeded".to_owned(),
            message: message.to_owned(),
            remediation: "See which requirement of the CSV is not met, then retry.".to_owned(),
            step: Some(0),
        }),
        ..cluster(row, [(StepStateName::Failed, 44), TO_DO])
    }
}

fn silent(name: &str) -> ClusterView {
    let since = ago(38);
    let on = WaitingOn::Agent { since, skip_at: Some(now() + SignedDuration::from_mins(82)) };
    let mut row = row(name, "emea", ClusterStateName::Unreachable, &on.to_string());
    row.waiting_on = Some(on.into());
    row.agent = AgentStateName::Silent;
    row.last_heard_time = Some(since);
    cluster(row, [TO_DO, TO_DO])
}

fn blocked(name: &str) -> ClusterView {
    let results = [("csv-healthy", CheckOutcome::Fail), ("catalog-ready", CheckOutcome::Unknown)];
    let report = report(&results);
    let on = WaitingOn::Checks {
        checks: results.iter().map(|(check, _)| (*check).to_owned()).collect(),
        next_check_at: now() + SignedDuration::from_mins(3),
    };
    let mut row = row(name, "emea", ClusterStateName::Blocked, &on.to_string());
    row.waiting_on = Some(on.into());
    row.checks = Some(CheckTally::of(&report));
    ClusterView { preflight: Some(report), ..cluster(row, [TO_DO, TO_DO]) }
}

fn skipped(name: &str) -> ClusterView {
    let row = row(name, "emea", ClusterStateName::Skipped, "left out by the user");
    cluster(row, [TO_DO, TO_DO])
}

fn waiting(name: &str, wave: &str, on: WaitingOn) -> ClusterView {
    let mut row = row(name, wave, ClusterStateName::Ready, &on.to_string());
    row.waiting_on = Some(on.into());
    cluster(row, [TO_DO, TO_DO])
}

/// Five checks that pass but for those in `other`.
fn report(other: &[(&str, CheckOutcome)]) -> PreflightReport {
    let checks = ["catalog-ready", "one-operator-group", "csv-healthy", "co-movers", "upgradeable"];
    let result = |check: &str| {
        let found = other.iter().find(|(name, _)| *name == check);
        let outcome = found.map_or(CheckOutcome::Pass, |(_, outcome)| *outcome);
        let (disposition, reason, message) = match outcome {
            CheckOutcome::Fail => (
                CheckDisposition::Blocked,
                "CsvFailed",
                "The installed CSV beacon-logging.v6.0.9 is Failed: repair it before the upgrade.",
            ),
            CheckOutcome::Unknown => (
                CheckDisposition::Blocked,
                "NoConnectionState",
                "The CatalogSource has not reported its connection: see its pod.",
            ),
            CheckOutcome::Pass | CheckOutcome::Warn | CheckOutcome::Skipped => {
                (CheckDisposition::Clear, "AsExpected", "As it should be.")
            }
        };
        CheckResult {
            check: check.to_owned(),
            outcome,
            disposition,
            reason: reason.to_owned(),
            message: message.to_owned(),
            subjects: vec!["beacon-system".to_owned()],
        }
    };
    PreflightReport { observed_time: ago(6), results: checks.into_iter().map(result).collect() }
}

// === the other campaigns ===

fn preflighted() -> Sample {
    let on = || WaitingOn::Stage { stage: wavelift_core::campaign::Stage::Preflight };
    let clusters: Vec<_> =
        (1..=12).map(|i| waiting(&format!("edge-{i:02}"), "all", on())).collect();
    let mut view = view("store-2-9", "ops", PhaseName::Preflighted, &clusters);
    view.row.stage = Stage::Preflight;
    "the checks are answered: launch to begin".clone_into(&mut view.row.message);
    view.row.rollout_start_time = None;
    view.consented_digest = None;
    (view, clusters)
}

fn succeeded() -> Sample {
    let clusters: Vec<_> = (1..=8).map(|i| done(&format!("lab-{i:02}"), "all", 700)).collect();
    let mut view = view("gateway-2-8", "edge", PhaseName::Succeeded, &clusters);
    "all 8 clusters are at the target".clone_into(&mut view.row.message);
    view.row.waves_complete = 1;
    view.row.completion_time = Some(ago(690));
    view.waves[0].state = WaveStateName::Complete;
    (view, clusters)
}

fn failed() -> Sample {
    let mut clusters: Vec<_> =
        (1..=3).map(|i| done(&format!("pop-{i:02}"), "all", 2_000)).collect();
    clusters.push(broken("pop-04"));
    for cluster in &mut clusters {
        "all".clone_into(&mut cluster.row.wave);
    }
    let on = || WaitingOn::Halted { failed: 1, max_failures: 0, wave: Some("all".to_owned()) };
    clusters.extend((5..=9).map(|i| waiting(&format!("pop-{i:02}"), "all", on())));
    let mut view = view("mesh-1-30", "edge", PhaseName::Failed, &clusters);
    "halted: 3 of 9 clusters done, 1 failed, 5 not started".clone_into(&mut view.row.message);
    view.row.needs_you = 1;
    view.row.completion_time = Some(ago(1_950));
    view.insights = insights().into_iter().take(1).collect();
    (view, clusters)
}

// === what follows from the clusters ===

fn view(name: &str, namespace: &str, phase: PhaseName, clusters: &[ClusterView]) -> UpgradeView {
    let mut waves: Vec<WaveView> = vec![];
    for cluster in clusters {
        if waves.iter().all(|wave| wave.name != cluster.row.wave) {
            waves.push(wave(&cluster.row.wave, clusters));
        }
    }
    let summary = summary(clusters);
    let row = UpgradeRow {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: format!("3f2a9c1e-0000-4000-8000-{:012x}", name.bytes().map(u32::from).sum::<u32>()),
        generation: 4,
        creation_time: ago(240),
        stage: Stage::Rollout,
        control: Control::Running,
        phase,
        message: String::new(),
        targets: vec![OperatorTarget {
            package: PACKAGE.to_owned(),
            version: Some("6.2.3".to_owned()),
            ..OperatorTarget::default()
        }],
        summary,
        states: states(clusters.iter()),
        current_wave: None,
        waves_complete: 0,
        waves_total: u32::try_from(waves.len()).unwrap_or(0),
        needs_you: 0,
        rollout_start_time: Some(ago(112)),
        completion_time: None,
    };
    UpgradeView {
        row,
        plan_digest: Some(DIGEST.to_owned()),
        consented_digest: Some(DIGEST.to_owned()),
        epoch: 1,
        waves,
        budget: BudgetView {
            max_failures: Some(3),
            mode: BudgetMode::Strict,
            failed: u32::try_from(summary.failed).unwrap_or(0),
            in_flight: 4,
        },
        preview: preview(),
        changes: vec![],
        preflight: preflight(),
        insights: vec![],
        history: history(),
        conditions: vec![Condition {
            kind: "Ready".to_owned(),
            status: ConditionStatus::False,
            observed_generation: 4,
            last_transition_time: ago(240),
            reason: "Running".to_owned(),
            message: "under way".to_owned(),
        }],
    }
}

fn wave(name: &str, clusters: &[ClusterView]) -> WaveView {
    let members: Vec<&ClusterView> = clusters.iter().filter(|c| c.row.wave == name).collect();
    let count = |wanted: &[ClusterStateName]| {
        let count = members.iter().filter(|c| wanted.contains(&c.row.state)).count();
        u32::try_from(count).unwrap_or(0)
    };
    WaveView {
        name: name.to_owned(),
        state: WaveStateName::Pending,
        clusters: u32::try_from(members.len()).unwrap_or(0),
        succeeded: count(&[ClusterStateName::Succeeded]),
        running: count(&[ClusterStateName::Upgrading, ClusterStateName::Verifying]),
        failed: count(&[ClusterStateName::Failed, ClusterStateName::Stalled]),
        states: states(members.iter().copied()),
        max_concurrent: 6,
        max_failures: 3,
        budget_parallelism: None,
    }
}

fn states<'a>(clusters: impl Iterator<Item = &'a ClusterView>) -> Vec<StateCount> {
    let all: Vec<ClusterState> = clusters.map(|cluster| cluster.row.state.into()).collect();
    let count = |state: ClusterState| StateCount {
        state: state.as_str().to_owned(),
        clusters: i32::try_from(all.iter().filter(|s| **s == state).count()).unwrap_or(0),
    };
    ClusterState::ALL.into_iter().map(count).filter(|count| count.clusters > 0).collect()
}

fn summary(clusters: &[ClusterView]) -> SummaryStatus {
    let mut summary = SummaryStatus::default();
    for cluster in clusters {
        summary.clusters += 1;
        let place = match ClusterState::from(cluster.row.state) {
            ClusterState::Succeeded => &mut summary.succeeded,
            ClusterState::Failed | ClusterState::Stalled => &mut summary.failed,
            ClusterState::Skipped => &mut summary.skipped,
            ClusterState::Unreachable
            | ClusterState::Pending
            | ClusterState::Blocked
            | ClusterState::Preflight
            | ClusterState::Ready
            | ClusterState::Upgrading
            | ClusterState::Verifying => &mut summary.not_started,
        };
        *place += 1;
    }
    summary
}

fn preview() -> Vec<PreviewPath> {
    let path = |from: &str, to: &str, hops, clusters, note: &str| PreviewPath {
        package: PACKAGE.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        hops,
        clusters,
        note: note.to_owned(),
    };
    vec![
        path("6.0.9", "6.2.3", 2, 52, "via 6.1.4"),
        path("6.1.4", "6.2.3", 1, 6, ""),
        path("6.2.3", "6.2.3", 0, 1, "already at target"),
        path("5.9.12", "", 0, 1, "no path in its catalog"),
    ]
}

fn preflight() -> Vec<CheckCounts> {
    let check = |check: &str, pass, fail, unknown| CheckCounts {
        check: check.to_owned(),
        pass,
        fail,
        unknown,
        ..CheckCounts::default()
    };
    vec![
        check("catalog-ready", 58, 0, 2),
        check("one-operator-group", 59, 0, 1),
        check("csv-healthy", 58, 1, 1),
        CheckCounts { warn: 7, ..check("co-movers", 52, 0, 1) },
        check("upgradeable", 59, 0, 1),
    ]
}

fn history() -> Vec<HistoryEntry> {
    let entry = |minutes, reason: &str, message: &str| HistoryEntry {
        time: ago(minutes),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    vec![
        entry(240, "Created", "preview asked for"),
        entry(131, "PreflightPassed", "58 of 60 clusters are clear"),
        entry(112, "Launched", "consent to plan 9f2c41ab90d1"),
        entry(61, "WaveComplete", "wave canary is complete: 6 of 6 clusters"),
    ]
}
