//! From a step, what is observed and what is remembered to one action.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use wavelift_api::labels;
use wavelift_core::{
    insight::Insight,
    plan::Step,
    progress::{self, Milestone},
};

use super::{
    explain,
    failure::{Failure, Reason},
    follow,
    observe::Observed,
    remedy::{self, Remedies},
    view::{Position, View, csv_set, is_running, offered},
};
use crate::objects::{self, InstallPlan, Subscription};

/// After this long OLM has written down a plan that it made, if it ever will.
const NOTED_MAX: SignedDuration = SignedDuration::from_mins(5);

/// From the second time that Subscriptions are made Manual to the third; each pause is longer by as
/// much.
const HOLD_SPACING: SignedDuration = SignedDuration::from_secs(5);

/// How long things may take, all of it in the clock's time, and how often they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From the step's begin to the InstallPlan that can be approved.
    pub plan_deadline: SignedDuration,
    /// From the approval to the end.
    pub step_deadline: SignedDuration,
    /// How long the result must hold.
    pub stable: SignedDuration,
    /// After this long an upgrade is called slow.
    pub slow: SignedDuration,
    /// From one refresh of a plan with another set to the next.
    pub refresh_spacing: SignedDuration,
    /// How often a plan with another set is refreshed.
    pub refreshes_max: u32,
    /// How often Subscriptions are made Manual again.
    pub holds_max: u32,
    /// How often OLM is let try a plan again that it has given up.
    pub retries_max: u32,
    /// How often such a plan is taken back.
    pub remakes_max: u32,
}

/// What a step goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long and how often.
    pub timings: Timings,
    /// What is asked for right before an approval.
    pub gates: Gates,
    /// What may be done about dead ends.
    pub remedies: Remedies,
}

/// What is asked for right before an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gates {
    /// Catalogs READY, installed version healthy, operator upgradeable.
    Closed,
    /// Nothing: the user said to go on whatever the checks find.
    Open,
}

/// What is remembered from one decision to the next. All of it may be lost: what matters is on
/// the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// When the step was first looked at.
    pub since: Option<Timestamp>,
    /// When its InstallPlan was first seen to be approved.
    pub approved_at: Option<Timestamp>,
    /// Since when the result holds.
    pub stable_since: Option<Timestamp>,
    /// How often a plan with another set was refreshed.
    pub refreshes: u32,
    /// When that was last done.
    pub refreshed_at: Option<Timestamp>,
    /// How often Subscriptions were made Manual,
    pub holds: u32,
    /// and when last.
    pub held_at: Option<Timestamp>,
    /// The most percent shown so far.
    pub percent: u8,
    /// Since when each finding holds.
    pub findings: BTreeMap<String, Timestamp>,
    /// How often OLM was let try again.
    pub retries: u32,
    /// How often a step was taken back.
    pub remakes: u32,
    /// How often the status of Subscriptions was set back,
    pub resets: u32,
    /// and when last.
    pub reset_at: Option<Timestamp>,
    /// What the API server last refused, until something succeeds.
    pub refused: Option<String>,
    /// How often it refused since something succeeded.
    pub refusals: u32,
    /// Nothing is written before then.
    pub patience: Option<Timestamp>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make these Subscriptions Manual.
    Hold(Vec<Hold>),
    /// Delete an InstallPlan that has not run, or that is taken back.
    DeletePlan {
        /// Its name.
        name: String,
        /// Only this one,
        uid: String,
        /// and only as it was seen.
        resource_version: String,
        /// Why.
        why: DeleteReason,
    },
    /// Approve an InstallPlan.
    Approve {
        /// Its name.
        name: String,
        /// Only as it was seen.
        resource_version: String,
    },
    /// Let OLM try an InstallPlan again that it has given up.
    RetryPlan {
        /// Its name.
        name: String,
        /// Only as it was seen.
        resource_version: String,
    },
    /// Delete a CSV that has not begun to install.
    DeleteCsv {
        /// Its name.
        name: String,
        /// Only this one,
        uid: String,
        /// and only as it was seen.
        resource_version: String,
    },
    /// Set the status of a Subscription back to a CSV that it had.
    ResetSubscription {
        /// Its name.
        name: String,
        /// Only as it was seen.
        resource_version: String,
        /// The CSV.
        csv: String,
    },
    /// Nothing, for now.
    Wait(Waiting),
    /// The step stands.
    Done,
    /// The step ended short of its CSVs.
    Fail(Failure),
}

/// A Subscription that is to be made Manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Only as it was seen.
    pub resource_version: String,
    /// What `installPlanApproval` was, unless that is written down already.
    pub before: Option<String>,
}

/// Why an InstallPlan is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteReason {
    /// It has another set of CSVs: OLM makes a fresh one.
    Refresh,
    /// A newer one took its place; approved by mistake it would still run.
    Superseded,
    /// OLM has given it up, and the user wants a fresh one.
    Remake,
}

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The InstallPlan.
    Plan,
    /// Something that must hold before the approval.
    Gate,
    /// OLM.
    Install,
    /// The result to hold.
    Stability,
    /// A remedy to be of use.
    Remedy,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is to be done.
    pub action: Action,
    /// What is to be remembered.
    pub memory: Memory,
    /// Of the step; never goes back.
    pub percent: u8,
    /// What is going on, for people.
    pub message: String,
    /// The InstallPlan that is followed.
    pub install_plan: Option<String>,
    /// What a person should know.
    pub insights: Vec<Insight>,
    /// When to decide again though nothing changed.
    pub wake_at: Option<Timestamp>,
}

/// What a part of the decision comes to.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) action: Action,
    pub(super) milestone: Milestone,
    pub(super) parts: (u32, u32),
    pub(super) message: String,
    pub(super) install_plan: Option<String>,
    pub(super) wake_at: Option<Timestamp>,
}

/// Decides what a step needs now.
pub fn decide(
    step: &Step,
    observed: &Observed,
    memory: &Memory,
    rules: Rules,
    now: Timestamp,
) -> Decision {
    let view = View { step, observed };
    let mut memory = memory.clone();
    let since = *memory.since.get_or_insert(now);
    let holds = to_hold(&observed.subscriptions);
    let is_late = now >= later(since, rules.timings.plan_deadline);
    let verdict = match view.position() {
        // Nothing of the step has been touched that could not be left as it is.
        Position::Ahead if is_late && memory.refusals > 0 => {
            Verdict::fail(Milestone::Begun, explain::not_approved(&view, &memory))
        }
        Position::Ahead if !holds.is_empty() => hold(holds, &memory, rules, now),
        Position::Ahead => before_approval(&view, &memory, rules, since, now),
        // What OLM is doing already goes on whether or not the rest can be held.
        Position::UnderWay(_) if !holds.is_empty() && may_hold(&memory, rules, now) => {
            hold(holds, &memory, rules, now)
        }
        Position::UnderWay(plan) => follow::follow(&view, plan, &mut memory, rules, now),
    };
    let insights = explain::insights(&view, &verdict.action, &mut memory, rules, now);
    let (done, of) = verdict.parts;
    let message = match (&verdict.action, &memory.refused) {
        (action, Some(why)) if memory.refusals > 0 && action.is_write() => {
            format!("{}; refused so far: {why}", verdict.message)
        }
        _ => verdict.message,
    };
    let percent = progress::percent(verdict.milestone, done, of);
    memory.percent = progress::monotonic(memory.percent, percent);
    Decision {
        percent: memory.percent,
        memory,
        action: verdict.action,
        message,
        install_plan: verdict.install_plan,
        insights,
        wake_at: verdict.wake_at,
    }
}

/// Whether the step is past its approval, so that it cannot be stopped any more.
pub fn is_under_way(step: &Step, observed: &Observed) -> bool {
    matches!(View { step, observed }.position(), Position::UnderWay(_))
}

/// Whether the step's own InstallPlan is there to be approved.
pub fn is_offered(step: &Step, observed: &Observed) -> bool {
    let offered = View { step, observed }.referenced();
    offered.is_some_and(|plan| {
        plan.status.phase == "RequiresApproval" && csv_set(plan) == step.csv_names()
    })
}

/// The Subscriptions that OLM would move by itself. What their approval was is written down once
/// and never overwritten.
pub fn to_hold(subscriptions: &[Arc<Subscription>]) -> Vec<Hold> {
    let automatic = subscriptions.iter().filter(|s| s.spec.install_plan_approval != "Manual");
    automatic
        .map(|subscription| {
            let is_kept = objects::annotation(&**subscription, labels::APPROVAL_BEFORE).is_some();
            let approval = match subscription.spec.install_plan_approval.as_str() {
                "" => "Automatic",
                other => other,
            };
            Hold {
                namespace: objects::namespace(&**subscription).to_owned(),
                name: objects::name(&**subscription).to_owned(),
                resource_version: objects::version(&**subscription).to_owned(),
                before: (!is_kept).then(|| approval.to_owned()),
            }
        })
        .collect()
}

/// The next time that Subscriptions may be made Manual: at once, the first time here and elsewhere,
/// and then ever later. Somebody else who sets them back does so every time, and nothing is won by
/// being quicker.
fn hold_again(memory: &Memory) -> Option<Timestamp> {
    let pauses = i32::try_from(memory.holds.saturating_sub(1)).unwrap_or(i32::MAX);
    let pause = HOLD_SPACING.checked_mul(pauses);
    Some(later(memory.held_at?, pause.unwrap_or(SignedDuration::MAX)))
}

/// Whether Subscriptions are made Manual while OLM carries the step out: that can wait, and is
/// never worth the step.
fn may_hold(memory: &Memory, rules: Rules, now: Timestamp) -> bool {
    memory.refusals == 0
        && memory.holds < rules.timings.holds_max
        && hold_again(memory).is_none_or(|at| at <= now)
}

fn hold(holds: Vec<Hold>, memory: &Memory, rules: Rules, now: Timestamp) -> Verdict {
    let names: Vec<&str> = holds.iter().map(|hold| hold.name.as_str()).collect();
    let names = names.join(", ");
    if memory.holds >= rules.timings.holds_max {
        let message = format!("installPlanApproval of {names} was set back {} times", memory.holds);
        return Verdict::fail(
            Milestone::Begun,
            Failure::stalled(Reason::ApprovalContested, message),
        );
    }
    if let Some(at) = hold_again(memory).filter(|at| now < *at) {
        let message = format!("{names} is Automatic again; it is made Manual once more soon");
        let verdict = Verdict::wait(Waiting::Gate, Milestone::Begun, message);
        return Verdict { wake_at: Some(at), ..verdict };
    }
    Verdict {
        message: format!("making {names} Manual"),
        action: Action::Hold(holds),
        milestone: Milestone::Begun,
        parts: (0, 0),
        install_plan: None,
        wake_at: None,
    }
}

/// Up to the approval: the InstallPlan that is referenced and has exactly the step's set.
fn before_approval(
    view: &View<'_>,
    memory: &Memory,
    rules: Rules,
    since: Timestamp,
    now: Timestamp,
) -> Verdict {
    let deadline = later(since, rules.timings.plan_deadline);
    let referenced = view.referenced();
    if let Some(plan) = referenced
        && plan.spec.approved
        && is_running(plan)
    {
        return foreign(view, plan);
    }
    if let Some(verdict) = remedy::reset(view, memory, rules, now) {
        return verdict;
    }
    let waiting = referenced.filter(|plan| plan.status.phase == "RequiresApproval");
    let verdict = match waiting {
        Some(plan) if csv_set(plan) == view.step.csv_names() => approve(view, plan, rules, now),
        Some(plan) => refresh(view, plan, memory, rules, now),
        None => Verdict::wait(Waiting::Plan, Milestone::Held, explain::awaited(view)),
    };
    let Action::Wait(_) = verdict.action else { return verdict };
    if now >= deadline {
        return Verdict::fail(verdict.milestone, explain::not_approved(view, memory));
    }
    let wake_at = verdict.wake_at.map_or(deadline, |at| at.min(deadline));
    Verdict { wake_at: Some(wake_at), ..verdict }
}

fn approve(view: &View<'_>, plan: &InstallPlan, rules: Rules, now: Timestamp) -> Verdict {
    let name = objects::name(plan).to_owned();
    let found = |action, message| Verdict {
        action,
        milestone: Milestone::PlanFound,
        parts: (0, 0),
        message,
        install_plan: Some(name.clone()),
        wake_at: None,
    };
    if let Some(why) = explain::made_from_another(view, plan) {
        return found(Action::Wait(Waiting::Gate), format!("{name} is not approved: {why}"));
    }
    if let Some(other) = view.unreferenced().min_by_key(|other| other.spec.generation) {
        // OLM writes down the newest plan it made, seconds after it has made it: until then it may
        // still be the one that counts, and to delete it would leave the Subscription without any.
        let is_older = other.spec.generation < plan.spec.generation;
        let noted_by = noted_by(other, now);
        let other_name = objects::name(other);
        if !is_older && now < noted_by {
            let message =
                format!("OLM has made {other_name} beside {name}; it is seen which counts");
            let verdict = found(Action::Wait(Waiting::Plan), message);
            return Verdict { wake_at: Some(noted_by), ..verdict };
        }
        return found(
            Action::DeletePlan {
                name: other_name.to_owned(),
                uid: objects::uid(other).to_owned(),
                resource_version: objects::version(other).to_owned(),
                why: DeleteReason::Superseded,
            },
            format!("deleting {other_name}, which {name} took the place of"),
        );
    }
    if let (Gates::Closed, Some((_, why))) = (rules.gates, explain::gate(view)) {
        return found(Action::Wait(Waiting::Gate), format!("{name} is not approved yet: {why}"));
    }
    let resource_version = objects::version(plan).to_owned();
    found(Action::Approve { name: name.clone(), resource_version }, format!("approving {name}"))
}

/// A plan with another set: deleted, so that OLM resolves again, a bounded number of times.
fn refresh(
    view: &View<'_>,
    plan: &InstallPlan,
    memory: &Memory,
    rules: Rules,
    now: Timestamp,
) -> Verdict {
    let name = objects::name(plan);
    let next = memory.refreshed_at.map(|at| later(at, rules.timings.refresh_spacing));
    if let Some(next) = next.filter(|next| now < *next) {
        let message = format!("{name} holds {}; OLM is asked again soon", offered(plan));
        let verdict = Verdict::wait(Waiting::Plan, Milestone::Held, message);
        return Verdict { wake_at: Some(next), ..verdict };
    }
    if memory.refreshes >= rules.timings.refreshes_max {
        let failure = Failure::failed(Reason::PlanMismatch, explain::mismatch(view, plan));
        return Verdict::fail(Milestone::Held, failure);
    }
    let noted_by = noted_by(plan, now);
    if !view.is_noted(plan) && now < noted_by {
        let message = format!("{name} holds {}; OLM is still writing it down", offered(plan));
        let verdict = Verdict::wait(Waiting::Plan, Milestone::Held, message);
        return Verdict { wake_at: Some(noted_by), ..verdict };
    }
    Verdict {
        action: Action::DeletePlan {
            name: name.to_owned(),
            uid: objects::uid(plan).to_owned(),
            resource_version: objects::version(plan).to_owned(),
            why: DeleteReason::Refresh,
        },
        milestone: Milestone::Held,
        parts: (0, 0),
        message: format!("{}; asking OLM again", explain::mismatch(view, plan)),
        install_plan: None,
        wake_at: None,
    }
}

/// When OLM has written down a plan that it made, if it ever will.
fn noted_by(plan: &InstallPlan, now: Timestamp) -> Timestamp {
    let made = plan.metadata.creation_timestamp.as_ref().map(|time| time.0);
    later(made.unwrap_or(now), NOTED_MAX)
}

fn foreign(view: &View<'_>, plan: &InstallPlan) -> Verdict {
    let message = format!(
        "{} is approved, but not by this upgrade, and holds {} instead of {}",
        objects::name(plan),
        offered(plan),
        view.wanted(),
    );
    Verdict::fail(Milestone::Held, Failure::failed(Reason::ForeignInstallPlan, message))
}

/// `after` past `at`.
pub(crate) fn later(at: Timestamp, after: SignedDuration) -> Timestamp {
    at.checked_add(after).unwrap_or(Timestamp::MAX)
}

// === impl Action ===

impl Action {
    /// Whether it changes something on the cluster.
    fn is_write(&self) -> bool {
        match self {
            Self::Hold(_)
            | Self::DeletePlan { .. }
            | Self::Approve { .. }
            | Self::RetryPlan { .. }
            | Self::DeleteCsv { .. }
            | Self::ResetSubscription { .. } => true,
            Self::Wait(_) | Self::Done | Self::Fail(_) => false,
        }
    }
}

// === impl Verdict ===

impl Verdict {
    pub(super) fn wait(waiting: Waiting, milestone: Milestone, message: String) -> Self {
        Self {
            action: Action::Wait(waiting),
            milestone,
            parts: (0, 0),
            message,
            install_plan: None,
            wake_at: None,
        }
    }

    pub(super) fn fail(milestone: Milestone, failure: Failure) -> Self {
        Self {
            message: failure.message.clone(),
            action: Action::Fail(failure),
            milestone,
            parts: (0, 0),
            install_plan: None,
            wake_at: None,
        }
    }
}

// === impl Memory ===

impl Memory {
    /// Remembers that an action was carried out.
    pub fn applied(&mut self, action: &Action, now: Timestamp) {
        self.refused = None;
        self.refusals = 0;
        self.patience = None;
        match action {
            Action::Hold(_) => {
                self.holds += 1;
                self.held_at = Some(now);
            }
            Action::DeletePlan { why: DeleteReason::Refresh, .. } => {
                self.refreshes += 1;
                self.refreshed_at = Some(now);
            }
            Action::DeletePlan { why: DeleteReason::Remake, .. } => {
                self.remakes += 1;
                // It begins anew.
                self.since = Some(now);
                self.approved_at = None;
            }
            Action::RetryPlan { .. } => self.retries += 1,
            Action::ResetSubscription { .. } => {
                self.resets += 1;
                self.reset_at = Some(now);
            }
            Action::DeletePlan { why: DeleteReason::Superseded, .. }
            | Action::DeleteCsv { .. }
            | Action::Approve { .. }
            | Action::Wait(_)
            | Action::Done
            | Action::Fail(_) => {}
        }
    }
}

// === impl Timings ===

impl Default for Timings {
    fn default() -> Self {
        Self {
            plan_deadline: SignedDuration::from_mins(15),
            step_deadline: SignedDuration::from_mins(30),
            stable: SignedDuration::from_secs(10),
            slow: SignedDuration::from_mins(5),
            refresh_spacing: SignedDuration::from_mins(1),
            refreshes_max: 3,
            holds_max: 8,
            retries_max: 5,
            remakes_max: 1,
        }
    }
}
