//! Ways out of an InstallPlan that OLM has given up, each only if the user named it.
//!
//! Both were found to work on a real OLM, and neither leaves a state that OLM does not know: what is
//! written is its own status, and it goes on from there. They are level-triggered like all else: an
//! agent that dies in between goes on from what the cluster shows.

use jiff::{SignedDuration, Timestamp};
use wavelift_api::shared::Remedy;
use wavelift_core::progress::Milestone;

use super::{
    decide::{Action, DeleteReason, Memory, Rules, Verdict, Waiting, later},
    explain,
    view::View,
};
use crate::objects::{self, InstallPlan, Subscription};

/// From one time that a Subscription's status is set back to the next: OLM may write it at the same
/// moment, and what it wrote last stays.
const RESET_SPACING: SignedDuration = SignedDuration::from_secs(5);
/// How often it is set back.
const RESETS_MAX: u32 = 20;

/// What may be done about a plan that OLM has given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remedies {
    retry: Allowed,
    remake: Allowed,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Allowed {
    #[default]
    No,
    Yes,
}

// === impl Remedies ===

impl Remedies {
    /// None at all.
    pub const NONE: Self = Self { retry: Allowed::No, remake: Allowed::No };

    /// Those that are named.
    pub fn of(named: &[Remedy]) -> Self {
        let allowed = |remedy| if named.contains(&remedy) { Allowed::Yes } else { Allowed::No };
        Self {
            retry: allowed(Remedy::RetryFailedInstallPlan),
            remake: allowed(Remedy::RemakeFailedInstallPlan),
        }
    }

    /// True when there is one for a plan that OLM has given up.
    pub fn any(self) -> bool {
        self != Self::NONE
    }
}

/// What a remedy does about a plan that Failed; nothing when there is none that may.
pub(super) fn of_failed(
    view: &View<'_>,
    plan: &InstallPlan,
    memory: &Memory,
    rules: Rules,
    deadline: Timestamp,
) -> Option<Verdict> {
    let Remedies { retry, remake } = rules.remedies;
    if retry == Allowed::Yes && memory.retries < rules.timings.retries_max {
        return Some(try_again(view, plan, deadline));
    }
    let may_remake = remake == Allowed::Yes && memory.remakes < rules.timings.remakes_max;
    (may_remake && can_be_taken_back(view)).then(|| take_back(view, plan))
}

fn try_again(view: &View<'_>, plan: &InstallPlan, deadline: Timestamp) -> Verdict {
    let name = objects::name(plan).to_owned();
    let failed = format!("{name} failed: {}", explain::plan_message(plan));
    if let Some((_, why)) = &view.observed.objection {
        let message = format!("{failed}; OLM tries it again when nothing is against it: {why}");
        let verdict = Verdict::wait(Waiting::Remedy, Milestone::CsvsCreated, message);
        return Verdict { wake_at: Some(deadline), ..verdict };
    }
    let resource_version = objects::version(plan).to_owned();
    act(Action::RetryPlan { name, resource_version }, format!("{failed}; letting OLM try it again"))
}

/// Nothing of the step has begun to install, and everything that it replaces is still there.
fn can_be_taken_back(view: &View<'_>) -> bool {
    let is_waiting = |phase: &str| matches!(phase, "" | "Pending");
    view.new_csvs().all(|csv| is_waiting(&csv.status.phase))
        && view.old_csvs().count() == view.step.moves.len()
}

/// First the new CSVs, then the plan: as long as that is there, it is known what is going on.
fn take_back(view: &View<'_>, plan: &InstallPlan) -> Verdict {
    let failed = format!("{} failed: {}", objects::name(plan), explain::plan_message(plan));
    if let Some(csv) = view.new_csvs().next() {
        let name = objects::name(csv).to_owned();
        let message = format!("{failed}; taking {name} back");
        let (uid, resource_version) =
            (objects::uid(csv).to_owned(), objects::version(csv).to_owned());
        return act(Action::DeleteCsv { name, uid, resource_version }, message);
    }
    let action = Action::DeletePlan {
        name: objects::name(plan).to_owned(),
        uid: objects::uid(plan).to_owned(),
        resource_version: objects::version(plan).to_owned(),
        why: DeleteReason::Remake,
    };
    act(action, format!("{failed}; taking it back"))
}

/// The next Subscription whose status still speaks of what was taken back.
pub(super) fn reset(
    view: &View<'_>,
    memory: &Memory,
    rules: Rules,
    now: Timestamp,
) -> Option<Verdict> {
    if rules.remedies.remake == Allowed::No || memory.resets >= RESETS_MAX {
        return None;
    }
    let (subscription, csv) = view.subscriptions().find_map(|s| Some((s, taken_back(view, s)?)))?;
    let name = objects::name(subscription).to_owned();
    let message = format!("setting the status of Subscription {name} back to {csv}");
    if let Some(next) = memory.reset_at.map(|at| later(at, RESET_SPACING)).filter(|at| now < *at) {
        let verdict = Verdict::wait(Waiting::Remedy, Milestone::Held, message);
        return Some(Verdict { wake_at: Some(next), ..verdict });
    }
    let resource_version = objects::version(subscription).to_owned();
    Some(act(Action::ResetSubscription { name, resource_version, csv }, message))
}

/// What a Subscription has installed, where its status names a CSV of the step that is gone and a
/// plan that is gone.
fn taken_back(view: &View<'_>, subscription: &Subscription) -> Option<String> {
    let item = view.step.moves.iter().find(|m| m.package.as_str() == subscription.spec.name)?;
    let (from, to) = (item.from.as_ref()?.as_str(), item.to.as_str());
    let status = &subscription.status;
    let names = |name: &Option<String>| name.as_deref() == Some(to);
    let plan = status.install_plan_ref.as_ref().and_then(|plan| view.observed.plan(&plan.name));
    let is_left = names(&status.installed_csv)
        && names(&status.current_csv)
        && plan.is_none()
        && view.observed.csv(to).is_none()
        && view.observed.csv(from).is_some();
    is_left.then(|| from.to_owned())
}

fn act(action: Action, message: String) -> Verdict {
    Verdict {
        action,
        milestone: Milestone::Held,
        parts: (0, 0),
        message,
        install_plan: None,
        wake_at: None,
    }
}
