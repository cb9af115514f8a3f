//! Screens, as people see them.

mod files;
mod groups;

use jiff::Timestamp;
use serde_json::json;
use wavelift_api::live::{ClusterView, UpgradeView};

use super::{Seen, Verdict, cluster, clusters, launch, line, preflight, preview, status};
use crate::{
    args::{Details, OutputArgs},
    printer::Printer,
};

fn printer() -> Printer {
    let output = OutputArgs { output: None, no_headers: false, no_color: true };
    Printer::new(&output, "wavelift")
}

fn now() -> Timestamp {
    "2026-08-22T12:00:00Z".parse().unwrap()
}

fn upgrade() -> UpgradeView {
    serde_json::from_value(json!({
        "namespace": "ops", "name": "logging-6-2", "uid": "u", "generation": 3,
        "creationTime": "2026-08-22T08:00:00Z", "stage": "Rollout", "control": "Running",
        "phase": "Running", "message": "159 of 400 clusters done, 2 failed",
        "targets": [{"package": "cluster-logging", "version": "6.2.3"}, {"package": "loki-operator"}],
        "summary": {"clusters": 400, "succeeded": 159, "failed": 2, "skipped": 1, "unreachable": 3,
            "notStarted": 235},
        "states": [], "currentWave": "emea", "wavesComplete": 1, "wavesTotal": 2, "needsYou": 1,
        "rolloutStartTime": "2026-08-22T10:48:00Z",
        "planDigest": "sha256:00", "epoch": 1,
        "waves": [
            {"name": "canary", "state": "Complete", "clusters": 6, "succeeded": 6, "running": 0,
             "failed": 0, "states": [], "maxConcurrent": 2, "maxFailures": 0,
             "budgetParallelism": 1},
            {"name": "emea", "state": "Running", "clusters": 394, "succeeded": 153, "running": 20,
             "failed": 2, "states": [], "maxConcurrent": 20, "maxFailures": 30}],
        "budget": {"maxFailures": 40, "mode": "StopOnBreach", "failed": 2, "inFlight": 20},
        "preview": [
            {"package": "cluster-logging", "from": "6.1.4", "to": "6.2.3", "hops": 1,
             "clusters": 371, "note": ""},
            {"package": "cluster-logging", "from": "6.0.9", "to": "6.2.3", "hops": 2,
             "clusters": 29, "note": "via 6.1.4"}],
        "preflight": [
            {"check": "catalog-ready", "pass": 396, "warn": 0, "fail": 0, "unknown": 4, "skipped": 0},
            {"check": "approval-automatic", "pass": 300, "warn": 100, "fail": 0, "unknown": 0,
             "skipped": 0}],
        "insights": [{"id": "i", "reason": "InstallPlanFailed", "sinceTime": "2026-08-22T11:13:00Z",
            "level": "Error", "impact": "UpdateStalled",
            "message": "InstallPlan failed:\nthe webhook refused", "remediation": "repair the webhook",
            "clusters": 2}],
        "history": [{"time": "2026-08-22T10:48:00Z", "reason": "Launched", "message": "by jdoe"}],
        "conditions": [{"type": "PreflightPassed", "status": "Unknown", "reason": "CouldNotTell",
            "message": "m", "lastTransitionTime": "2026-08-22T10:48:00Z"}],
    }))
    .unwrap()
}

fn one_cluster() -> ClusterView {
    serde_json::from_value(json!({
        "name": "prod-mad-03", "wave": "emea", "state": "Failed", "message": "step 2 failed",
        "moves": [{"package": "cluster-logging", "from": "6.0.9", "to": "6.2.3", "hops": 2}],
        "step": "2/2", "percent": 70, "agent": "Connected",
        "lastHeardTime": "2026-08-22T11:59:48Z", "epoch": 1, "attempt": 0,
        "steps": [
            {"namespace": "openshift-logging", "state": "Done", "percent": 100,
             "startTime": "2026-08-22T11:00:00Z", "completionTime": "2026-08-22T11:00:47Z",
             "moves": [{"package": "cluster-logging", "from": "cl.v6.0.9", "to": "cl.v6.1.4",
                "fromVersion": "6.0.9", "toVersion": "6.1.4"}]},
            {"namespace": "openshift-logging", "state": "Failed", "percent": 40,
             "startTime": "2026-08-22T11:01:00Z", "completionTime": "2026-08-22T11:13:00Z",
             "message": "InstallPlan install-7xk2p failed",
             "moves": [{"package": "cluster-logging", "from": "cl.v6.1.4", "to": "cl.v6.2.3",
                "fromVersion": "6.1.4", "toVersion": "6.2.3"}]}],
        "failure": {"type": "Failed", "reason": "InstallPlanFailed",
            "message": "the webhook refused", "remediation": "repair the webhook"},
        "preflight": {"observedTime": "2026-08-22T10:59:00Z", "results": [
            {"check": "catalog-ready", "outcome": "Pass", "disposition": "Clear", "reason": "Ready",
             "message": "all catalogs are ready"}]},
    }))
    .unwrap()
}

#[test]
fn a_preview_shows_paths_and_waves() {
    insta::assert_snapshot!(preview(&upgrade(), &printer()));
}

#[test]
fn a_preflight_shows_counts_and_a_verdict() {
    assert_eq!(Verdict::of(&upgrade()), Verdict::Unknown);
    let rows = [one_cluster().row];
    insta::assert_snapshot!(preflight(&upgrade(), &rows, &printer()));
}

#[test]
fn a_launch_says_what_it_means() {
    insta::assert_snapshot!(launch(&upgrade()));
}

#[test]
fn a_status_shows_completion_waves_and_health() {
    insta::assert_snapshot!(status(&upgrade(), now(), None, &printer()));
}

#[test]
fn details_say_what_to_do_next() {
    insta::assert_snapshot!(status(&upgrade(), now(), Some(Details::All), &printer()));
}

#[test]
fn one_cluster_shows_its_steps_and_the_next_command() {
    insta::assert_snapshot!(cluster(
        &one_cluster(),
        Seen::InCampaign("logging-6-2"),
        now(),
        &printer()
    ));
}

#[test]
fn on_the_cluster_itself_the_upgrade_is_named_and_how_to_try_again() {
    let shown = cluster(&one_cluster(), Seen::Locally("go"), now(), &printer());
    assert!(shown.starts_with("Upgrade:      go\n"), "{shown}");
    assert!(!shown.contains("Agent:"), "{shown}");
    let again = format!(
        "Then: kubectl patch clusterupgrade go --type merge -p '{{\"spec\":{{\"attempt\":{}}}}}'",
        one_cluster().attempt + 1
    );
    assert_eq!(shown.contains(&again), one_cluster().failure.is_some(), "{shown}");
}

#[test]
fn a_table_of_clusters_has_one_line_each() {
    insta::assert_snapshot!(clusters(&[one_cluster().row], &printer()));
}

#[test]
fn a_line_for_logs_is_one_line() {
    assert_eq!(
        line(&upgrade()),
        "logging-6-2 Running, wave emea: 159 of 400 clusters done, 2 failed"
    );
}
