//! Why a step does not move, in OLM's own words where it has any.

use std::iter;

use jiff::{SignedDuration, Timestamp};
use wavelift_core::insight::{Impact, Insight, Level};

use super::{
    decide::{Action, Memory, Rules, Waiting},
    failure::{Failure, Reason, UPGRADE_SLOW},
    view::{Position, View, csv_set, offered},
};
use crate::objects::{self, Csv, InstallPlan, OlmCondition};

/// Requirements of a new CSV that are not met are normal for about a second.
const GRACE: SignedDuration = SignedDuration::from_secs(30);
/// How many unmet requirements are named.
const REQUIREMENTS_MAX: usize = 5;

/// A finding before it has an id and a time.
struct Finding {
    reason: Reason,
    subject: String,
    level: Level,
    impact: Impact,
    message: String,
    /// How long it must hold before it is told.
    after: SignedDuration,
}

/// What the step waits for before there is a plan.
pub(super) fn awaited(view: &View<'_>) -> String {
    match gate_of_resolution(view) {
        Some((_, why)) => format!("waiting for the InstallPlan with {}: {why}", view.wanted()),
        None => format!("waiting for the InstallPlan with {}", view.wanted()),
    }
}

/// Both sets, named.
pub(super) fn mismatch(view: &View<'_>, plan: &InstallPlan) -> String {
    let (name, offered) = (objects::name(plan), offered(plan));
    format!("{name} holds {offered}, the plan has {}", view.wanted())
}

/// Why a plan with the right set is not the step's all the same.
pub(super) fn made_from_another(view: &View<'_>, plan: &InstallPlan) -> Option<String> {
    let (subscription, installed) = view.made_from_another()?;
    let (name, subscription) = (objects::name(plan), objects::name(subscription));
    Some(format!(
        "OLM made {name} from {installed}, which Subscription {subscription} still names as \
         installed; its CSV would stand beside the one that is there"
    ))
}

/// What must hold right before an approval and does not.
pub(super) fn gate(view: &View<'_>) -> Option<(Reason, String)> {
    if let Some(found) = groups(view) {
        return Some(found);
    }
    if let Some(catalogs) = catalogs(view) {
        return Some((Reason::CatalogUnavailable, catalogs));
    }
    for csv in view.old_csvs() {
        let name = objects::name(csv);
        if let Some(why) = view.observed.not_upgradeable(name) {
            let why = format!("{name} is not upgradeable: {why}");
            return Some((Reason::OperatorNotUpgradeable, why));
        }
        // Of a step that was taken back it stays Replacing until the next plan has run.
        let is_left = csv.status.phase == "Replacing" && view.new_csvs().next().is_none();
        if csv.status.phase != "Succeeded" && !is_left {
            return Some((Reason::InstalledNotHealthy, state(csv)));
        }
        let rollout = view.observed.rollout(csv);
        if !rollout.is_complete() {
            let why = format!("{name}: {}", rollout.outstanding.join(", "));
            return Some((Reason::InstalledNotHealthy, why));
        }
    }
    view.observed.objection.clone()
}

/// What keeps OLM from making a plan at all.
fn gate_of_resolution(view: &View<'_>) -> Option<(Reason, String)> {
    if let Some(found) = groups(view) {
        return Some(found);
    }
    if let Some(message) = condition(view, |c| c.kind == "BundleUnpackFailed") {
        return Some((Reason::BundleUnpackFailed, message));
    }
    if let Some(message) = condition(view, |c| c.reason == "ErrorPreventedResolution") {
        let why =
            catalogs(view).map_or_else(|| message.clone(), |which| format!("{which}: {message}"));
        return Some((Reason::CatalogUnavailable, why));
    }
    if let Some(catalogs) = catalogs(view) {
        return Some((Reason::CatalogUnavailable, catalogs));
    }
    // Two CSVs of one package at once make every resolution fail; then they are the reason. What OLM
    // said while they were there it goes on saying until it resolves again.
    let message = condition(view, |c| c.kind == "ResolutionFailed" && !is_outdated(view, c))?;
    if let Some(csv) = view.observed.csvs.iter().find(|csv| is_replaced(csv)) {
        return Some((Reason::InstalledNotHealthy, state(csv)));
    }
    Some((Reason::ResolutionFailed, message))
}

/// Why there is nothing to approve at the deadline.
pub(super) fn not_approved(view: &View<'_>, memory: &Memory) -> Failure {
    if let Some(refused) = &memory.refused {
        return Failure::stalled(Reason::ApiError, refused.clone());
    }
    if let Some(plan) = view.referenced().filter(|plan| plan.status.phase == "RequiresApproval") {
        if csv_set(plan) != view.step.csv_names() {
            return Failure::stalled(Reason::PlanMismatch, mismatch(view, plan));
        }
        if let Some(why) = made_from_another(view, plan) {
            return Failure::stalled(Reason::PlanMismatch, why);
        }
        if let Some((reason, why)) = gate(view) {
            let message = format!("{} was not approved: {why}", objects::name(plan));
            return Failure::stalled(reason, message);
        }
    }
    if let Some((reason, why)) = gate_of_resolution(view) {
        return Failure::stalled(reason, why);
    }
    if view.subscriptions().next().is_none() {
        let message = format!("no Subscription is there for {}", view.wanted());
        return Failure::stalled(Reason::PlanNotOffered, message);
    }
    let states: Vec<String> = view
        .subscriptions()
        .map(|s| {
            let installed = s.status.installed_csv.as_deref().unwrap_or("nothing");
            let state = if s.status.state.is_empty() { "no state" } else { &s.status.state };
            let plan = s.status.install_plan_ref.as_ref().map(|plan| plan.name.as_str());
            let gone = plan.filter(|name| view.observed.plan(name).is_none());
            let gone = gone.map(|name| format!(", waiting for {name}, which is gone"));
            format!("{} has {installed} ({state}{})", objects::name(s), gone.unwrap_or_default())
        })
        .collect();
    let message =
        format!("OLM offers no InstallPlan with {}: {}", view.wanted(), states.join(", "));
    Failure::stalled(Reason::PlanNotOffered, message)
}

/// What is going on after the approval.
pub(super) fn going_on(view: &View<'_>, plan: Option<&InstallPlan>) -> String {
    let open = view.new_csvs().filter(|csv| csv.status.phase != "Succeeded");
    let doing = |csv| view.observed.doing(objects::name(csv)).map(str::to_owned);
    let states: Vec<String> =
        open.flat_map(|csv| iter::once(state(csv)).chain(doing(csv))).collect();
    if !states.is_empty() {
        return states.join("; ");
    }
    let old: Vec<&str> = view.old_csvs().map(objects::name).collect();
    if !old.is_empty() && view.new_csvs().next().is_some() {
        return format!("waiting for {} to be removed", old.join(", "));
    }
    match plan {
        Some(plan) if !plan.status.message.is_empty() => plan.status.message.clone(),
        Some(plan) => format!("{} is {}", objects::name(plan), plan.status.phase),
        None => format!("waiting for {}", view.wanted()),
    }
}

/// Why the step is not through at its deadline.
pub(super) fn stuck(view: &View<'_>, plan: Option<&InstallPlan>, memory: &Memory) -> Failure {
    let (reason, message) = open_csv(view)
        .or_else(|| groups(view))
        .or_else(|| old_in_the_way(view))
        .or_else(|| {
            let refused = memory.refused.clone()?;
            Some((Reason::ApiError, refused))
        })
        .unwrap_or_else(|| (Reason::StepTimedOut, going_on(view, plan)));
    Failure::stalled(reason, message)
}

/// The first new CSV that explains why it is not Succeeded.
fn open_csv(view: &View<'_>) -> Option<(Reason, String)> {
    view.new_csvs().find_map(|csv| {
        let name = objects::name(csv);
        let rollout = view.observed.rollout(csv);
        let outstanding = rollout.outstanding.join(", ");
        let text = || {
            let history = last_failure(csv).filter(|failed| *failed != csv.status.message);
            let history = history.map(|failed| format!(" (before that: {failed})"));
            format!("{}{}", state(csv), history.unwrap_or_default())
        };
        match (csv.status.phase.as_str(), csv.status.reason.as_str()) {
            ("Succeeded", _) if outstanding.is_empty() => None,
            ("Succeeded", _) => {
                Some((Reason::DeploymentNotAvailable, format!("{name}: {outstanding}")))
            }
            (_, "OperatorConditionNotUpgradeable") => {
                Some((Reason::OperatorNotUpgradeable, text()))
            }
            (_, "TooManyOperatorGroups") => Some((Reason::TooManyOperatorGroups, text())),
            (_, "NoOperatorGroup") => Some((Reason::NoOperatorGroup, text())),
            (_, "InstallComponentFailed") => Some((Reason::InstallComponentFailed, text())),
            ("Pending", "RequirementsNotMet" | "RequirementsUnknown") => old_in_the_way(view)
                .or_else(|| {
                    let unmet = unmet(csv);
                    let message =
                        if unmet.is_empty() { text() } else { format!("{name}: {unmet}") };
                    Some((Reason::RequirementsNotMet, message))
                }),
            ("Installing" | "InstallReady" | "Failed" | "Pending", _)
                if !outstanding.is_empty() =>
            {
                let message = format!("{}; {outstanding}", text());
                Some((Reason::DeploymentNotAvailable, message))
            }
            _ => Some((Reason::StepTimedOut, text())),
        }
    })
}

/// The installed version when it is not healthy: OLM does not replace it then.
fn old_in_the_way(view: &View<'_>) -> Option<(Reason, String)> {
    let old = view
        .old_csvs()
        .find(|csv| !matches!(csv.status.phase.as_str(), "Succeeded" | "Replacing" | "Deleting"))?;
    Some((Reason::InstalledNotHealthy, format!("the installed {}", state(old))))
}

fn groups(view: &View<'_>) -> Option<(Reason, String)> {
    let namespace = &view.step.namespace;
    match view.observed.operator_groups {
        0 => Some((Reason::NoOperatorGroup, format!("namespace {namespace} has no OperatorGroup"))),
        1 => None,
        many => {
            let why = format!("namespace {namespace} has {many} OperatorGroups");
            Some((Reason::TooManyOperatorGroups, why))
        }
    }
}

fn catalogs(view: &View<'_>) -> Option<String> {
    let not_ready = &view.observed.catalogs_not_ready;
    (!not_ready.is_empty()).then(|| format!("catalogs not READY: {}", not_ready.join(", ")))
}

/// The message of the first condition that holds on a Subscription of the namespace.
fn condition(view: &View<'_>, which: impl Fn(&OlmCondition) -> bool) -> Option<String> {
    let all = view.observed.subscriptions.iter().flat_map(|s| &s.status.conditions);
    all.filter(|c| c.status == "True").find(|c| which(c)).map(|c| c.message.clone())
}

/// Whether a failed resolution is about a CSV that is gone meanwhile.
fn is_outdated(view: &View<'_>, condition: &OlmCondition) -> bool {
    let said = condition.message.split("clusterserviceversion ").skip(1);
    let mut unreferenced = said.filter_map(|rest| {
        let (name, rest) = rest.split_once(' ')?;
        rest.starts_with("exists and is not referenced").then_some(name)
    });
    unreferenced.any(|name| view.observed.csv(name).is_none())
}

fn is_replaced(csv: &Csv) -> bool {
    matches!(csv.status.phase.as_str(), "Replacing" | "Deleting")
}

/// `oak.v2 is Pending/RequirementsNotMet: one or more requirements couldn't be found`
pub(super) fn state(csv: &Csv) -> String {
    let status = &csv.status;
    let name = objects::name(csv);
    if status.phase.is_empty() {
        return format!("{name} has no phase yet");
    }
    let reason = if status.reason.is_empty() { "no reason" } else { &status.reason };
    let message =
        if status.message.is_empty() { String::new() } else { format!(": {}", status.message) };
    format!("{name} is {}/{reason}{message}", status.phase)
}

/// The same, with the requirements that are not met.
pub(crate) fn standing(csv: &Csv) -> String {
    let (state, unmet) = (state(csv), unmet(csv));
    if unmet.is_empty() { state } else { format!("{state} ({unmet})") }
}

/// What an InstallPlan says of its failure.
pub(super) fn plan_message(plan: &InstallPlan) -> String {
    if !plan.status.message.is_empty() {
        return plan.status.message.clone();
    }
    let installed = plan.status.conditions.iter().find(|c| c.kind == "Installed");
    let said = installed.map(|c| c.message.clone()).filter(|message| !message.is_empty());
    said.unwrap_or_else(|| "OLM says no more".to_owned())
}

/// The requirements that are not met, verbatim.
fn unmet(csv: &Csv) -> String {
    let is_met = |status: &str| matches!(status, "Present" | "Satisfied");
    let open = csv.status.requirement_status.iter().filter(|r| !is_met(&r.status));
    let texts: Vec<String> = open
        .take(REQUIREMENTS_MAX)
        .map(|r| {
            let message = if r.message.is_empty() { &r.status } else { &r.message };
            format!("{} {}: {message}", r.kind, r.name)
        })
        .collect();
    texts.join("; ")
}

/// The newest Failed of a CSV's history: it may have lasted 30 ms only.
fn last_failure(csv: &Csv) -> Option<&str> {
    let failed = csv.status.conditions.iter().rev().find(|c| c.phase == "Failed")?;
    Some(&failed.message)
}

/// What OLM said when it gave up waiting for the Deployments. It says so for some milliseconds, and
/// then begins again.
fn timed_out(csv: &Csv) -> Option<&str> {
    let is_timeout =
        |c: &&objects::CsvCondition| c.phase == "Failed" && c.reason == "InstallCheckFailed";
    csv.status.conditions.iter().rev().find(is_timeout).map(|c| c.message.as_str())
}

/// What a person should know while the step is under way. Findings keep their begin as long as
/// they hold.
pub(super) fn insights(
    view: &View<'_>,
    action: &Action,
    memory: &mut Memory,
    rules: Rules,
    now: Timestamp,
) -> Vec<Insight> {
    let mut findings = vec![];
    for plan in view.observed.plans.iter().filter(|plan| csv_set(plan) == view.step.csv_names()) {
        if plan.status.phase == "Installing"
            && plan.status.message.starts_with("retrying execution")
        {
            findings.push(Finding {
                reason: Reason::InstallPlanFailed,
                subject: objects::name(&**plan).to_owned(),
                level: Level::Warning,
                impact: Impact::UpdateStalled,
                message: plan.status.message.clone(),
                after: SignedDuration::ZERO,
            });
        }
    }
    if let Position::UnderWay(Some(plan)) = view.position()
        && plan.status.phase == "Failed"
    {
        findings.push(Finding {
            reason: Reason::InstallPlanFailed,
            subject: objects::name(plan).to_owned(),
            level: Level::Error,
            impact: Impact::UpdateStalled,
            message: format!("{} failed: {}", objects::name(plan), plan_message(plan)),
            after: SignedDuration::ZERO,
        });
    }
    for csv in view.new_csvs() {
        findings.extend(of_csv(view, csv));
    }
    findings.extend(of_apis(view));
    if memory.approved_at.is_none()
        && let Some((reason, message)) = gate_of_resolution(view)
    {
        // That a resolution failed is told by its cause; all else may pass by itself.
        let is_known = reason == Reason::ResolutionFailed;
        let after = if is_known { SignedDuration::ZERO } else { GRACE };
        findings.push(of_namespace(view, Level::Warning, (reason, message), after));
    }
    findings.extend(of_action(view, action, memory));
    let slow_since = memory.approved_at.filter(|at| now.duration_since(*at) >= rules.timings.slow);
    let mut told: Vec<Insight> = vec![];
    let mut since = std::collections::BTreeMap::new();
    for finding in findings {
        let id = format!("{}/{}/{}", finding.reason, view.step.namespace, finding.subject);
        let at = memory.findings.get(&id).copied().unwrap_or(now);
        since.insert(id.clone(), at);
        if now.duration_since(at) < finding.after {
            continue;
        }
        // One problem is told once, and as loudly as it is.
        match told.iter_mut().find(|insight| insight.id == id) {
            Some(known) if known.level < finding.level => *known = finding.told(id, at),
            Some(_) => {}
            None => told.push(finding.told(id, at)),
        }
    }
    memory.findings = since;
    if let Some(at) = slow_since
        && memory.stable_since.is_none()
    {
        told.push(slow(view, at));
    }
    told
}

fn of_namespace(
    view: &View<'_>,
    level: Level,
    (reason, message): (Reason, String),
    after: SignedDuration,
) -> Finding {
    let subject = view.step.namespace.to_string();
    Finding { reason, subject, level, impact: Impact::UpdateStalled, message, after }
}

/// What keeps the step from being approved, what the API server refuses, and why it ends.
fn of_action(view: &View<'_>, action: &Action, memory: &Memory) -> Vec<Finding> {
    let mut found = vec![];
    let offered = view.referenced().filter(|plan| plan.status.phase == "RequiresApproval");
    match (action, offered) {
        (Action::Fail(failure), _) => {
            let why = (failure.reason, failure.message.clone());
            found.push(of_namespace(view, Level::Error, why, SignedDuration::ZERO));
        }
        (Action::Wait(Waiting::Gate), Some(plan)) => {
            let other = made_from_another(view, plan).map(|why| (Reason::PlanMismatch, why));
            // An objection to the APIs is told for itself.
            let gate = || gate(view).filter(|_| view.observed.objection.is_none());
            if let Some(why) = other.or_else(gate) {
                found.push(of_namespace(view, Level::Warning, why, SignedDuration::ZERO));
            }
        }
        (Action::Wait(Waiting::Plan) | Action::DeletePlan { .. }, Some(plan))
            if csv_set(plan) != view.step.csv_names() =>
        {
            let why = (Reason::PlanMismatch, mismatch(view, plan));
            found.push(of_namespace(view, Level::Warning, why, GRACE));
        }
        _ => {}
    }
    if let Some(why) = memory.refused.clone().filter(|_| memory.refusals > 0) {
        let why = (Reason::ApiError, why);
        found.push(of_namespace(view, Level::Warning, why, SignedDuration::ZERO));
    }
    found
}

/// What is held against the APIs before the approval, and what cannot be read after it.
fn of_apis(view: &View<'_>) -> Vec<Finding> {
    let subject = view.step.namespace.to_string();
    let finding = |reason, impact, message| Finding {
        reason,
        subject: subject.clone(),
        level: Level::Error,
        impact,
        message,
        after: SignedDuration::ZERO,
    };
    let objection = view.observed.objection.clone();
    let objection =
        objection.map(|(reason, message)| finding(reason, Impact::UpdateStalled, message));
    let unreadable = unreadable(view);
    let unreadable = unreadable
        .map(|words| finding(Reason::CustomResourcesUnreadable, Impact::ApiAvailability, words));
    objection.into_iter().chain(unreadable).collect()
}

/// What the API server says where it cannot give custom resources of the new version.
pub(super) fn unreadable(view: &View<'_>) -> Option<String> {
    let all = &view.observed.unreadable;
    (!all.is_empty()).then(|| format!("cannot read custom resources: {}", all.join("; ")))
}

fn of_csv(view: &View<'_>, csv: &Csv) -> Option<Finding> {
    let subject = objects::name(csv).to_owned();
    let finding = |reason, level, message| Finding {
        reason,
        subject: subject.clone(),
        level,
        impact: Impact::UpdateStalled,
        message,
        after: GRACE,
    };
    match (csv.status.phase.as_str(), csv.status.reason.as_str()) {
        ("Succeeded", _) => None,
        (_, "OperatorConditionNotUpgradeable") => {
            Some(finding(Reason::OperatorNotUpgradeable, Level::Warning, state(csv)))
        }
        // What the new CSV asks for is with the old one, as long as that is not replaced.
        ("Pending", "RequirementsNotMet") => {
            let (reason, message) = old_in_the_way(view).unwrap_or_else(|| {
                (Reason::RequirementsNotMet, format!("{subject}: {}", unmet(csv)))
            });
            Some(finding(reason, Level::Warning, message))
        }
        _ => {
            let rollout = view.observed.rollout(csv);
            let outstanding = rollout.outstanding.join(", ");
            let gave_up = rollout.gave_up.then(|| {
                let message = format!("{}; {outstanding}", state(csv));
                finding(Reason::DeploymentNotAvailable, Level::Error, message)
            });
            gave_up.or_else(|| {
                let timed_out = timed_out(csv)?;
                let message = format!("{}; {outstanding} (before that: {timed_out})", state(csv));
                Some(finding(Reason::DeploymentNotAvailable, Level::Warning, message))
            })
        }
    }
}

fn slow(view: &View<'_>, since: Timestamp) -> Insight {
    let open: Vec<String> =
        view.new_csvs().filter(|csv| csv.status.phase != "Succeeded").map(state).collect();
    let message = if open.is_empty() { view.wanted() } else { open.join("; ") };
    Insight {
        id: format!("{UPGRADE_SLOW}/{}", view.step.namespace),
        reason: UPGRADE_SLOW.to_owned(),
        since,
        level: Level::Warning,
        impact: Impact::UpdateSpeed,
        message: format!("takes longer than expected: {message}"),
        remediation: "Look at the pods of the new version; it goes on by itself when they are \
                      available."
            .to_owned(),
    }
}

// === impl Finding ===

impl Finding {
    fn told(self, id: String, since: Timestamp) -> Insight {
        Insight {
            id,
            reason: self.reason.to_string(),
            since,
            level: self.level,
            impact: self.impact,
            message: self.message,
            remediation: self.reason.remediation().to_owned(),
        }
    }
}
