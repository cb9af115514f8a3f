//! Clusters: the table and one with its steps.

use jiff::Timestamp;
use wavelift_api::{
    cluster_upgrade::{MoveSpec, StepStateName, StepVia},
    live::{AgentStateName, ClusterRow, ClusterView, MoveView, StepView},
};

use super::{
    table::{Cell, Table},
    words,
};
use crate::{args::Form, printer::Printer};

/// Clusters, one a line.
pub(crate) fn clusters(rows: &[ClusterRow], printer: &Printer) -> String {
    let wide = printer.form() == Some(Form::Wide);
    let mut headers = vec!["NAME", "WAVE", "STATE", "STEP", "PERCENT", "MESSAGE"];
    if wide {
        headers.extend(["PATH", "AGENT"]);
    }
    let mut table = Table::new(&headers);
    for row in rows {
        let (icon, tone) = words::state_icon(row.state);
        let why = row.waiting_on.as_ref().map_or(&row.message, |waiting| &waiting.sentence);
        let percent = row.percent.map_or_else(|| "-".to_owned(), |p| format!("{p}%"));
        let mut cells = vec![
            Cell::text(&row.name),
            Cell::text(&row.wave),
            Cell::text(format!("{icon} {:?}", row.state)).tone(tone),
            Cell::text(row.step.clone().unwrap_or_default()),
            Cell::text(percent),
            Cell::text(why),
        ];
        if wide {
            cells.push(Cell::text(path(&row.moves)));
            cells.push(Cell::text(format!("{:?}", row.agent)));
        }
        table.row(cells);
    }
    table.render(printer)
}

fn path(moves: &[MoveView]) -> String {
    let one = |item: &MoveView| {
        let from = item.from.as_deref().unwrap_or("(new)");
        format!("{} {from} -> {}", item.package, item.to)
    };
    moves.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Where a cluster is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// From the hub, as a member of this campaign.
    InCampaign(&'a str),
    /// On the cluster itself, by this ClusterUpgrade.
    Locally(&'a str),
}

/// One cluster with its steps and checks.
pub(crate) fn cluster(
    view: &ClusterView,
    seen: Seen<'_>,
    now: Timestamp,
    printer: &Printer,
) -> String {
    let row = &view.row;
    let (icon, tone) = words::state_icon(row.state);
    let state = printer.paint().tone(tone, &format!("{icon} {:?}", row.state));
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        out!(text, "{:<14}{value}", format!("{name}:"));
    };
    let wave = if row.wave.is_empty() { String::new() } else { format!(" (wave {})", row.wave) };
    match seen {
        Seen::InCampaign(_) => field("Cluster", &format!("{}{wave}", row.name)),
        Seen::Locally(name) => field("Upgrade", name),
    }
    let step = row.step.as_ref().map_or_else(String::new, |step| format!(" at step {step}"));
    field("State", &format!("{state}{step}"));
    if let Some(waiting) = &row.waiting_on {
        field("Waits for", &waiting.sentence);
    }
    field("Path", &path(&row.moves));
    let heard = row.last_heard_time.map_or_else(String::new, |t| words::age(t, now) + " ago");
    match row.agent {
        _ if matches!(seen, Seen::Locally(_)) => field("Message", &row.message),
        AgentStateName::Connected => field("Agent", &format!("connected, last report {heard}")),
        AgentStateName::Silent => field("Agent", &format!("not heard, last report {heard}")),
        AgentStateName::Unknown => field("Agent", "unknown: give --url for live data"),
    }
    text.push('\n');
    text.push_str(&steps(view, now, printer));
    if let Some(failure) = &view.failure {
        out!(text, "\nFailed: {} ({})", failure.message, failure.reason);
        out!(text, "What next: {}", failure.remediation);
        match seen {
            Seen::InCampaign(campaign) => {
                out!(text, "Then: {} retry {campaign} --cluster {}", printer.usage(), row.name);
            }
            Seen::Locally(name) => {
                let next = view.attempt.saturating_add(1);
                let patch = format!(r#"{{"spec":{{"attempt":{next}}}}}"#);
                out!(text, "Then: kubectl patch clusterupgrade {name} --type merge -p '{patch}'");
            }
        }
    }
    for insight in &view.insights {
        out!(
            text,
            "\n{:?}: {}\n  What next: {}",
            insight.level,
            insight.message,
            insight.remediation
        );
    }
    text.push_str(&checks(view, now, printer));
    if matches!(seen, Seen::Locally(_)) {
        text.push_str(&conditions(view));
    }
    text
}

/// What operators say of themselves.
fn conditions(view: &ClusterView) -> String {
    let mut text = String::new();
    for said in &view.operator_conditions {
        out!(
            text,
            "{}: {} is {} ({}) {}",
            said.csv,
            said.kind,
            said.status,
            said.reason,
            said.message
        );
    }
    if text.is_empty() { text } else { format!("\nWhat operators say of themselves:\n{text}") }
}

/// The upgrades of one cluster, one a line.
pub(crate) fn upgrades(rows: &[ClusterRow], printer: &Printer) -> String {
    let mut table = Table::new(&["NAME", "STATE", "STEP", "PERCENT", "PATH", "MESSAGE"]);
    for row in rows {
        let (icon, tone) = words::state_icon(row.state);
        table.row(vec![
            Cell::text(&row.name),
            Cell::text(format!("{icon} {:?}", row.state)).tone(tone),
            Cell::text(row.step.clone().unwrap_or_default()),
            Cell::text(row.percent.map_or_else(|| "-".to_owned(), |p| format!("{p}%"))),
            Cell::text(path(&row.moves)),
            Cell::text(&row.message),
        ]);
    }
    table.render(printer)
}

fn steps(view: &ClusterView, now: Timestamp, printer: &Printer) -> String {
    let mut text = String::new();
    let last = view.steps.len().saturating_sub(1);
    for (index, step) in view.steps.iter().enumerate() {
        let branch = if index == last { "└──" } else { "├──" };
        let (icon, tone) = words::step_icon(step.state);
        let icon = printer.paint().tone(tone, icon);
        out!(
            text,
            "{branch}{icon} {:<8} {:>4}  {:>6}  {}",
            format!("{:?}", step.state),
            percent(step),
            time(step, now),
            moves(step),
        );
        if let Some(message) = &step.message {
            let stem = if index == last { "   " } else { "│  " };
            out!(text, "{stem}└──{message}");
        }
    }
    text
}

fn percent(step: &StepView) -> String {
    match step.state {
        StepStateName::Running | StepStateName::Failed => format!("{}%", step.percent),
        StepStateName::Done | StepStateName::Pending => String::new(),
    }
}

fn time(step: &StepView, now: Timestamp) -> String {
    step.start_time
        .map_or_else(|| "-".to_owned(), |s| words::age(s, step.completion_time.unwrap_or(now)))
}

fn moves(step: &StepView) -> String {
    let one = |item: &MoveSpec| {
        let from = item.from_version.as_deref().unwrap_or("(new)");
        format!("{} {from} -> {}", item.package, item.to_version)
    };
    let via = match step.via {
        StepVia::Cluster => "",
        StepVia::PinnedCatalog => " (by a pinned catalog)",
    };
    let moves: Vec<String> = step.moves.iter().map(one).collect();
    format!("{}: {}{via}", step.namespace, moves.join(", "))
}

fn checks(view: &ClusterView, now: Timestamp, printer: &Printer) -> String {
    let Some(report) = &view.preflight else { return String::new() };
    let mut text = format!("\nChecks, {} ago:\n", words::age(report.observed_time, now));
    for result in &report.results {
        let (icon, tone) = words::outcome_icon(result.outcome);
        let icon = printer.paint().tone(tone, icon);
        out!(text, "  {icon} {}: {}", result.check, result.message);
    }
    text
}
