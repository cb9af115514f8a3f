//! The conditions of a FleetUpgrade.
//!
//! The summary follows kstatus and Argo CD: `Ready` is true only at the end, `Reconciling` while
//! something moves by itself, `Stalled` when only a person can move it on.

use super::{Fresh, Truth};
use crate::{
    campaign::{Phase, Stage, Summary},
    check::Verdict,
};

/// What the conditions are computed from.
#[derive(Debug, Clone)]
pub struct FleetFacts<'a> {
    /// Where the campaign stands.
    pub phase: Phase,
    /// How far it may go.
    pub stage: Stage,
    /// The five numbers.
    pub summary: Summary,
    /// Clusters whose plan is not known yet.
    pub unplanned: u32,
    /// Clusters to which OLM offers no path.
    pub no_path: u32,
    /// Preflight over all clusters that have been asked; `None` when none has been.
    pub preflight: Option<Verdict>,
    /// The sentence of the spent budget, when it is spent.
    pub halted: Option<&'a str>,
    /// Why the campaign cannot be planned at all, e.g. no cluster selected.
    pub broken: Option<&'a str>,
}

/// All conditions of a FleetUpgrade, in the order in which they are shown.
pub fn fleet_upgrade(facts: &FleetFacts<'_>) -> Vec<Fresh> {
    let mut all = summary(facts);
    all.extend([
        succeeded(facts),
        progressing(facts),
        plan_resolved(facts),
        preflight_passed(facts),
        approved(facts),
        paused(facts),
        halted(facts),
    ]);
    all
}

/// `Ready`, `Reconciling` and `Stalled`.
fn summary(facts: &FleetFacts<'_>) -> Vec<Fresh> {
    if let Some(why) = facts.broken {
        return vec![
            Fresh::new("Ready", Truth::False, "PlanUnresolvable", why),
            Fresh::new("Reconciling", Truth::False, "PlanUnresolvable", why),
            Fresh::new("Stalled", Truth::True, "PlanUnresolvable", why),
        ];
    }
    let reason = facts.phase.as_str();
    let message = sentence(facts);
    let (ready, reconciling, stalled) = match facts.phase {
        Phase::Planning => (Truth::Unknown, true, false),
        Phase::Preflighting | Phase::Running => (Truth::False, true, false),
        Phase::Previewed
        | Phase::Preflighted
        | Phase::AwaitingConsent
        | Phase::Paused
        | Phase::Frozen => (Truth::False, false, false),
        Phase::Halting | Phase::Failed | Phase::Cancelled => (Truth::False, false, true),
        Phase::Succeeded | Phase::SucceededWithFailures => (Truth::True, false, false),
    };
    vec![
        Fresh::new("Ready", ready, reason, message.clone()),
        Fresh::new("Reconciling", Truth::from_bool(reconciling), reason, message.clone()),
        Fresh::new("Stalled", Truth::from_bool(stalled), reason, message),
    ]
}

/// One sentence that says where the campaign is and, where that is a person, who is waited for.
fn sentence(facts: &FleetFacts<'_>) -> String {
    let Summary { succeeded, failed, skipped, unreachable, not_started } = facts.summary;
    let total = facts.summary.total();
    let done = format!("{succeeded} of {total} clusters done, {failed} failed");
    match facts.phase {
        Phase::Planning => {
            format!("planning: {} of {total} clusters not read yet", facts.unplanned)
        }
        Phase::Previewed => "the preview is complete: set stage Preflight to run the checks".into(),
        Phase::Preflighting => "the checks are running".into(),
        Phase::Preflighted => "the checks are answered: launch to begin".into(),
        Phase::AwaitingConsent => "the plan is not the one that was launched: launch again".into(),
        Phase::Running => done,
        Phase::Paused => format!("paused: {done}"),
        Phase::Frozen => format!("frozen: {done}"),
        Phase::Halting | Phase::Failed => {
            format!("halted: {done}, {not_started} not started")
        }
        Phase::Succeeded => format!("all {total} clusters are at the target"),
        Phase::SucceededWithFailures => format!(
            "{done}, {skipped} skipped, {unreachable} unreachable, {not_started} not started",
        ),
        Phase::Cancelled => format!("cancelled: {done}, {not_started} not started"),
    }
}

fn succeeded(facts: &FleetFacts<'_>) -> Fresh {
    let status = match facts.phase {
        Phase::Succeeded | Phase::SucceededWithFailures => Truth::True,
        Phase::Failed | Phase::Cancelled => Truth::False,
        Phase::Planning
        | Phase::Previewed
        | Phase::Preflighting
        | Phase::Preflighted
        | Phase::AwaitingConsent
        | Phase::Running
        | Phase::Paused
        | Phase::Frozen
        | Phase::Halting => Truth::Unknown,
    };
    Fresh::new("Succeeded", status, facts.phase.as_str(), sentence(facts))
}

/// False while a person is waited for, so that an alert on a standing campaign does not cry wolf.
fn progressing(facts: &FleetFacts<'_>) -> Fresh {
    let moves = match facts.phase {
        Phase::Planning | Phase::Preflighting | Phase::Running | Phase::Halting => true,
        Phase::Previewed
        | Phase::Preflighted
        | Phase::AwaitingConsent
        | Phase::Paused
        | Phase::Frozen
        | Phase::Succeeded
        | Phase::SucceededWithFailures
        | Phase::Failed
        | Phase::Cancelled => false,
    };
    let moves = moves && facts.broken.is_none();
    Fresh::new("Progressing", Truth::from_bool(moves), facts.phase.as_str(), sentence(facts))
}

fn plan_resolved(facts: &FleetFacts<'_>) -> Fresh {
    if let Some(why) = facts.broken {
        return Fresh::new("PlanResolved", Truth::False, "PlanUnresolvable", why);
    }
    match (facts.unplanned, facts.no_path) {
        (0, 0) => Fresh::new("PlanResolved", Truth::True, "Resolved", "every cluster has its plan"),
        (0, n) => Fresh::new(
            "PlanResolved",
            Truth::True,
            "SomeWithoutPath",
            format!("{n} clusters have no path to the target and are left as they are"),
        ),
        (n, _) => Fresh::new(
            "PlanResolved",
            Truth::Unknown,
            "InventoryMissing",
            format!("{n} clusters have not been read yet"),
        ),
    }
}

fn preflight_passed(facts: &FleetFacts<'_>) -> Fresh {
    let kind = "PreflightPassed";
    match &facts.preflight {
        None => Fresh::new(kind, Truth::Unknown, "NotRun", "no check has been run yet"),
        Some(Verdict::Clear { warnings: 0 }) => {
            Fresh::new(kind, Truth::True, "AllClear", "nothing stands in the way")
        }
        Some(Verdict::Clear { warnings }) => Fresh::new(
            kind,
            Truth::True,
            "ClearWithWarnings",
            format!("nothing stands in the way, {warnings} warnings"),
        ),
        Some(Verdict::Blocked { checks, unknown }) => {
            let (status, reason) =
                if *unknown { (Truth::Unknown, "CouldNotTell") } else { (Truth::False, "Blocked") };
            Fresh::new(kind, status, reason, format!("clusters are held by {}", checks.join(", ")))
        }
    }
}

fn approved(facts: &FleetFacts<'_>) -> Fresh {
    let (status, reason, message) = match (facts.stage, facts.phase) {
        (Stage::Preview | Stage::Preflight, _) => {
            (Truth::False, "AwaitingLaunch", "the campaign has not been launched")
        }
        (Stage::Rollout, Phase::AwaitingConsent) => {
            (Truth::False, "PlanChanged", "the plan is not the one that was launched")
        }
        (Stage::Rollout, _) => (Truth::True, "Launched", "the campaign was launched"),
    };
    Fresh::new("Approved", status, reason, message)
}

fn paused(facts: &FleetFacts<'_>) -> Fresh {
    match facts.phase {
        Phase::Paused => Fresh::new("Paused", Truth::True, "Paused", "no further cluster starts"),
        Phase::Frozen => Fresh::new(
            "Paused",
            Truth::True,
            "Frozen",
            "no further cluster starts, running ones stop at the next safe point",
        ),
        Phase::Planning
        | Phase::Previewed
        | Phase::Preflighting
        | Phase::Preflighted
        | Phase::AwaitingConsent
        | Phase::Running
        | Phase::Halting
        | Phase::Succeeded
        | Phase::SucceededWithFailures
        | Phase::Failed
        | Phase::Cancelled => Fresh::new("Paused", Truth::False, "NotPaused", "not paused"),
    }
}

fn halted(facts: &FleetFacts<'_>) -> Fresh {
    match facts.halted {
        Some(why) => Fresh::new("Halted", Truth::True, "FailureBudgetSpent", why),
        None => Fresh::new("Halted", Truth::False, "WithinBudget", "the failure budget holds"),
    }
}
