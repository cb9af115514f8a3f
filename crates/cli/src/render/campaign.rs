//! Campaigns: the list, preview, preflight, launch and status.

use jiff::Timestamp;
use wavelift_api::{
    fleet_upgrade::{BudgetMode, CheckCounts},
    live::{ClusterRow, UpgradeList, UpgradeView, WaveStateName},
    shared::OperatorTarget,
};
use wavelift_core::insight::Impact;

use super::{
    table::{Cell, Table},
    words,
};
use crate::{
    args::Details,
    printer::{Printer, Tone},
};

/// What a preflight over the fleet comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing in the way.
    Clear,
    /// Warnings.
    Warned,
    /// A check fails somewhere.
    Blocked,
    /// A check could not tell somewhere, or none was answered.
    Unknown,
}

impl Verdict {
    /// From the `PreflightPassed` condition and the counts.
    pub(crate) fn of(upgrade: &UpgradeView) -> Self {
        let passed = upgrade.conditions.iter().find(|c| c.kind == "PreflightPassed");
        let status = passed.map(|condition| condition.status);
        match status {
            Some(wavelift_api::shared::ConditionStatus::True) => {
                if upgrade.preflight.iter().any(|check| check.warn > 0) {
                    Self::Warned
                } else {
                    Self::Clear
                }
            }
            Some(wavelift_api::shared::ConditionStatus::False) => Self::Blocked,
            Some(wavelift_api::shared::ConditionStatus::Unknown) | None => {
                // One that fails outweighs one that could not tell.
                if upgrade.preflight.iter().any(|check| check.fail > 0) {
                    Self::Blocked
                } else {
                    Self::Unknown
                }
            }
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "CLEAR",
            Self::Warned => "CLEAR WITH WARNINGS",
            Self::Blocked => "BLOCKED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// All campaigns, one a line.
pub(crate) fn list(list: &UpgradeList, namespaces: bool, printer: &Printer) -> String {
    let mut headers = vec!["NAME", "TARGET", "WAVE", "CLUSTERS", "DONE", "FAILED", "PHASE", "AGE"];
    if namespaces {
        headers.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&headers);
    for row in &list.items {
        let mut cells = vec![
            Cell::text(&row.name),
            Cell::text(targets(&row.targets)),
            Cell::text(row.current_wave.clone().unwrap_or_default()),
            Cell::number(row.summary.clusters),
            Cell::number(row.summary.succeeded).tone_if_any(Tone::Good),
            Cell::number(row.summary.failed).tone_if_any(Tone::Bad),
            Cell::text(format!("{:?}", row.phase)),
            Cell::text(words::age(row.creation_time, list.time)),
        ];
        if namespaces {
            cells.insert(0, Cell::text(&row.namespace));
        }
        table.row(cells);
    }
    table.render(printer)
}

/// `cluster-logging 6.2.3, loki-operator latest`
fn targets(targets: &[OperatorTarget]) -> String {
    let one = |target: &OperatorTarget| {
        let goal = target.version.as_ref().or(target.version_range.as_ref());
        format!("{} {}", target.package, goal.map_or("latest", String::as_str))
    };
    let shown: Vec<String> = targets.iter().take(3).map(one).collect();
    let more = targets.len().saturating_sub(3);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

/// Which paths the clusters take.
pub(crate) fn preview(upgrade: &UpgradeView, printer: &Printer) -> String {
    let row = &upgrade.row;
    let mut text = format!(
        "Plan {}: {} on {} selected clusters\n\n",
        row.name,
        targets(&row.targets),
        row.summary.clusters
    );
    let mut paths = Table::new(&["PACKAGE", "FROM", "TO", "CLUSTERS", "HOPS", "NOTE"]);
    for path in &upgrade.preview {
        paths.row(vec![
            Cell::text(&path.package),
            Cell::text(&path.from),
            Cell::text(&path.to),
            Cell::number(path.clusters),
            Cell::number(path.hops),
            Cell::text(&path.note),
        ]);
    }
    text.push_str(&paths.render(printer));
    text.push('\n');
    text.push_str(&waves(upgrade, printer));
    let digest = upgrade.plan_digest.as_deref().unwrap_or("none yet");
    out!(text, "\nPlan digest: {digest}");
    text
}

fn waves(upgrade: &UpgradeView, printer: &Printer) -> String {
    let mut table = Table::new(&[
        "WAVE",
        "STATE",
        "CLUSTERS",
        "DONE",
        "RUNNING",
        "FAILED",
        "PARALLEL",
        "TOLERATES",
    ]);
    for wave in &upgrade.waves {
        let parallel = match wave.budget_parallelism {
            Some(budget) if budget < wave.max_concurrent => {
                format!("{budget} of {} (Strict)", wave.max_concurrent)
            }
            Some(_) | None => wave.max_concurrent.to_string(),
        };
        let (state, tone) = match wave.state {
            WaveStateName::Pending => ("Pending", Tone::Quiet),
            WaveStateName::Running => ("Running", Tone::Busy),
            WaveStateName::Complete => ("Complete", Tone::Good),
        };
        table.row(vec![
            Cell::text(&wave.name),
            Cell::text(state).tone(tone),
            Cell::number(wave.clusters),
            Cell::number(wave.succeeded),
            Cell::number(wave.running),
            Cell::number(wave.failed).tone_if_any(Tone::Bad),
            Cell::text(parallel),
            Cell::text(format!("{} failures", wave.max_failures)),
        ]);
    }
    table.render(printer)
}

/// What stands in the way, check by check.
pub(crate) fn preflight(upgrade: &UpgradeView, held: &[ClusterRow], printer: &Printer) -> String {
    let row = &upgrade.row;
    let mut text = format!("Preflight {}: {} clusters\n\n", row.name, row.summary.clusters);
    let mut table = Table::new(&["CHECK", "PASS", "WARN", "FAIL", "UNKNOWN", "SKIPPED"]);
    for check in &upgrade.preflight {
        let CheckCounts { check, pass, warn, fail, unknown, skipped } = check;
        table.row(vec![
            Cell::text(check),
            Cell::number(*pass),
            Cell::number(*warn).tone_if_any(Tone::Warn),
            Cell::number(*fail).tone_if_any(Tone::Bad),
            Cell::number(*unknown).tone_if_any(Tone::Warn),
            Cell::number(*skipped),
        ]);
    }
    text.push_str(&table.render(printer));
    if !held.is_empty() {
        text.push_str("\nHeld:\n");
        for cluster in held.iter().take(20) {
            let why = cluster.waiting_on.as_ref().map_or(&cluster.message, |w| &w.sentence);
            out!(text, "  {}: {}", cluster.name, why);
        }
        if held.len() > 20 {
            out!(
                text,
                "  and {} more: {} clusters {} --check Fail,Unknown",
                held.len() - 20,
                printer.usage(),
                row.name
            );
        }
    }
    let verdict = Verdict::of(upgrade);
    let tone = match verdict {
        Verdict::Clear => Tone::Good,
        Verdict::Warned | Verdict::Unknown => Tone::Warn,
        Verdict::Blocked => Tone::Bad,
    };
    out!(text, "\nVerdict: {}. {}", printer.paint().tone(tone, verdict.as_str()), row.message);
    text
}

/// What a launch means, before it is asked for.
pub(crate) fn launch(upgrade: &UpgradeView) -> String {
    let row = &upgrade.row;
    let waves: Vec<String> =
        upgrade.waves.iter().map(|wave| format!("{} {}", wave.name, wave.clusters)).collect();
    let halts: Vec<String> = upgrade
        .waves
        .iter()
        .map(|wave| format!("{} in {}", wave.max_failures + 1, wave.name))
        .collect();
    let budget = match (upgrade.budget.max_failures, upgrade.budget.mode) {
        (Some(max), _) => format!(", or {} over all waves", max + 1),
        (None, _) => String::new(),
    };
    let mode = match upgrade.budget.mode {
        BudgetMode::Strict => "no more clusters run than may fail",
        BudgetMode::StopOnBreach => "clusters in flight may still fail after that",
    };
    format!(
        "FleetUpgrade  {}: {}\n\
         Clusters      {} selected, {} at the target already\n\
         Waves         {}\n\
         Halts at      failures: {}{budget}; {mode}\n\
         Plan          {}\n\
         Rollback      OLM cannot downgrade: halting stops new clusters, it does not undo finished \
         ones\n",
        row.name,
        targets(&row.targets),
        row.summary.clusters,
        row.summary.succeeded,
        waves.join(", "),
        halts.join(", "),
        upgrade.plan_digest.as_deref().unwrap_or("-"),
    )
}

/// Where a campaign stands.
pub(crate) fn status(
    upgrade: &UpgradeView,
    now: Timestamp,
    details: Option<Details>,
    printer: &Printer,
) -> String {
    let mut text = head(upgrade, now);
    text.push_str("\n= Waves =\n");
    text.push_str(&waves(upgrade, printer));
    text.push_str("\n= Health =\n");
    let full = matches!(details, Some(Details::Health | Details::All));
    text.push_str(&health(upgrade, now, full, printer));
    if matches!(details, Some(Details::History | Details::All)) {
        text.push_str("\n= History =\n");
        let mut table = Table::new(&["AGO", "REASON", "MESSAGE"]);
        for entry in &upgrade.history {
            table.row(vec![
                Cell::text(words::age(entry.time, now)),
                Cell::text(&entry.reason),
                Cell::text(&entry.message),
            ]);
        }
        text.push_str(&table.render(printer));
    }
    text
}

fn head(upgrade: &UpgradeView, now: Timestamp) -> String {
    let row = &upgrade.row;
    let summary = &row.summary;
    let percent = if summary.clusters == 0 {
        0
    } else {
        i64::from(summary.succeeded) * 100 / i64::from(summary.clusters)
    };
    let running: u32 = upgrade.waves.iter().map(|wave| wave.running).sum();
    let waiting = i64::from(summary.not_started) - i64::from(running);
    let mut parts = vec![format!("{} of {} done", summary.succeeded, summary.clusters)];
    for (count, word) in [
        (i64::from(running), "upgrading"),
        (waiting, "waiting"),
        (i64::from(summary.failed), "failed"),
        (i64::from(summary.skipped), "skipped"),
        (i64::from(summary.unreachable), "unreachable"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    let mut text = String::from("= FleetUpgrade =\n");
    let mut field = |name: &str, value: &str| {
        out!(text, "{:<14}{value}", format!("{name}:"));
    };
    field("Name", &row.name);
    field("Target", &targets(&row.targets));
    field("Assessment", &format!("{:?}: {}", row.phase, row.message));
    field("Completion", &format!("{percent}% ({})", parts.join(", ")));
    if let Some(start) = row.rollout_start_time {
        field("Elapsed", &words::age(start, row.completion_time.unwrap_or(now)));
    }
    let budget = &upgrade.budget;
    let over_all =
        budget.max_failures.map_or_else(String::new, |max| format!(" of {max} tolerated"));
    field("Budget", &format!("{} failed{over_all}, {:?}", budget.failed, budget.mode));
    text
}

fn health(upgrade: &UpgradeView, now: Timestamp, full: bool, printer: &Printer) -> String {
    if upgrade.insights.is_empty() {
        return "Nothing needs you.\n".to_owned();
    }
    if full {
        let mut text = String::new();
        for insight in &upgrade.insights {
            let level = printer
                .paint()
                .tone(words::level_tone(insight.level), &format!("{:?}", insight.level));
            let message: Vec<&str> = insight.message.split_whitespace().collect();
            out!(text, "{level}: {}", message.join(" "));
            out!(text, "  Since:     {}", words::age(insight.since_time, now));
            out!(text, "  Impact:    {}", Impact::from(insight.impact).as_str());
            out!(text, "  Clusters:  {}", insight.clusters.unwrap_or(1));
            out!(text, "  What next: {}", insight.remediation);
        }
        return text;
    }
    let mut table = Table::new(&["SINCE", "LEVEL", "IMPACT", "CLUSTERS", "MESSAGE"]);
    for insight in &upgrade.insights {
        table.row(vec![
            Cell::text(words::age(insight.since_time, now)),
            Cell::text(format!("{:?}", insight.level)).tone(words::level_tone(insight.level)),
            Cell::text(Impact::from(insight.impact).as_str()),
            Cell::number(insight.clusters.unwrap_or(1)),
            Cell::text(&insight.message),
        ]);
    }
    let hint = format!(
        "Run with --details=health for what to do next, or: {} clusters {} --state Failed,Stalled\n",
        printer.usage(),
        upgrade.row.name
    );
    table.render(printer) + &hint
}

/// One line, for logs.
pub(crate) fn line(upgrade: &UpgradeView) -> String {
    let row = &upgrade.row;
    let wave = row.current_wave.as_ref().map_or_else(String::new, |w| format!(", wave {w}"));
    format!("{} {:?}{wave}: {}", row.name, row.phase, row.message)
}
