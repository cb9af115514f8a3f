//! The upgrade under way: step after step, until it ends.

use std::collections::BTreeSet;

use kube::{Api, Client};
use tracing::warn;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus,
    cluster_upgrade::{StepStateName, UpgradeControl},
};
use wavelift_core::plan::{Plan, Step};

use super::{
    Executor, RETRY, Running, Seen, Switch, Wake, authors::Authors, blind::cannot_tell, fence,
    look::Looked, namespaces, pinning, pinning::For, plan_of, replan, report, show::show, status,
};
use crate::{
    drivers::olm_v0::{
        Action, Failure, Observed, Reason, Remedies,
        apply::{self, Applied, Target},
        decide,
        decide::later,
        observe, to_hold,
    },
    journal,
    mirror::{Mirror, NamespaceMirror},
    objects::{self, Subscription},
};

/// How many actions one pass takes before it lets others have a turn.
const ACTIONS_MAX: usize = 8;

/// A step in its plan.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) plan: &'a Plan,
    pub(super) step: &'a Step,
    pub(super) index: usize,
}

/// How a step stands after one decision.
pub(super) enum Turn {
    /// Something was done: decide again.
    Again,
    /// Nothing to do for now.
    Rest(Wake),
    /// The step stands.
    Done,
    /// The step failed.
    Failed(Failure),
}

impl Executor {
    /// Takes the upgrade under way as far as it goes now.
    pub(super) async fn advance(
        &mut self,
        upgrade: &ClusterUpgrade,
        seen: Seen<'_>,
    ) -> Result<Wake, journal::Error> {
        let mut next = status::begin(upgrade);
        let is_ours = |plan: &Plan| next.plan_digest == Some(plan.digest());
        let Some(plan) = plan_of(upgrade).filter(is_ours) else {
            let failure = Failure::failed(Reason::PlanChanged, "its plan is not valid any more");
            return self.end_failed(upgrade, next, None, failure, seen).await;
        };
        self.take_up(upgrade, &plan, &next);
        let mut wake = Wake::default();
        for _ in 0..ACTIONS_MAX {
            let Some(index) = next.steps.iter().position(|s| s.state != StepStateName::Done) else {
                return self.end_succeeded(upgrade, next, &plan, seen).await;
            };
            let Some(step) = plan.steps.get(index) else {
                return self.end_succeeded(upgrade, next, &plan, seen).await;
            };
            self.enter(index, &mut next);
            let place = Place { plan: &plan, step, index };
            if let Some(behind) = self.blind(step, seen.mirror) {
                cannot_tell(&behind, (index, plan.steps.len()), &mut next);
                break;
            }
            if index + 1 < plan.steps.len() && is_passed(place, seen) {
                self.leave(index, &mut next);
                continue;
            }
            let holder = pinning::holder(self.journal.namespace(), upgrade);
            let pinned = pinning::existing(For { holder: &holder, step }, seen.mirror);
            let keep = pinned.as_ref().map(|p| (objects::namespace(&**p), objects::name(&**p)));
            if !self.unpin(keep, seen.mirror).await {
                wake = Wake::at(later(self.clock.now(), RETRY));
                break;
            }
            if let Some(held) = self.steer(upgrade, place, &mut next, seen).await? {
                return Ok(held);
            }
            match self.turn(upgrade, place, &mut next, seen).await {
                Turn::Again => wake = Wake::at(self.clock.now()),
                Turn::Rest(at) => {
                    wake = at;
                    break;
                }
                Turn::Done => self.leave(index, &mut next),
                Turn::Failed(failure) => {
                    return self
                        .end_failed(upgrade, next, Some((index, &plan)), failure, seen)
                        .await;
                }
            }
        }
        status::totals(&mut next);
        self.write(upgrade, next, seen.mirror).await?;
        let late = self.running.as_ref().and_then(|running| running.written_at);
        let percent = late.map(|at| later(at, self.settings.percent_period));
        let is_due = percent.is_some_and(|at| at > self.clock.now());
        Ok(if is_due { wake.or(Wake(percent)) } else { wake })
    }

    /// Remembers the upgrade under way, anew after a restart.
    fn take_up(&mut self, upgrade: &ClusterUpgrade, plan: &Plan, status: &ClusterUpgradeStatus) {
        let uid = objects::uid(upgrade);
        let Some(fence) = fence(upgrade) else { return };
        if self.running.as_ref().is_some_and(|r| r.uid == uid && r.fence == fence) {
            return;
        }
        let step = status.steps.iter().position(|step| step.state != StepStateName::Done);
        self.metrics.in_progress(Some(plan));
        self.running = Some(Running {
            uid: uid.to_owned(),
            fence,
            step: step.unwrap_or(0),
            memory: remembered(status, step.unwrap_or(0)),
            looked: Looked::default(),
            authors: Authors::default(),
            watched: None,
            written_at: None,
            blind_since: None,
            said: None,
            pace: report::pace(),
        });
    }

    /// Begins a step, if it has not begun.
    fn enter(&mut self, index: usize, next: &mut ClusterUpgradeStatus) {
        let now = self.clock.now();
        if let Some(step) = next.steps.get_mut(index)
            && step.state == StepStateName::Pending
        {
            step.state = StepStateName::Running;
            step.start_time = Some(now);
        }
        if let Some(running) = &mut self.running
            && running.step != index
        {
            running.step = index;
            running.memory = remembered(next, index);
            running.looked = Looked::default();
        }
    }

    fn leave(&self, index: usize, next: &mut ClusterUpgradeStatus) {
        if let Some(step) = next.steps.get_mut(index) {
            step.state = StepStateName::Done;
            step.percent = 100;
            step.message = None;
            step.completion_time = Some(self.clock.now());
        }
        next.insights.clear();
        if let Some(following) = next.steps.get_mut(index + 1)
            && following.state == StepStateName::Pending
        {
            following.state = StepStateName::Running;
            following.start_time = Some(self.clock.now());
        }
    }

    /// Freezes or cancels where that is safe: while the present step has not been approved.
    async fn steer(
        &mut self,
        upgrade: &ClusterUpgrade,
        place: Place<'_>,
        next: &mut ClusterUpgradeStatus,
        seen: Seen<'_>,
    ) -> Result<Option<Wake>, journal::Error> {
        let Place { plan, step, index } = place;
        if upgrade.spec.control == UpgradeControl::Running {
            return Ok(None);
        }
        let global = self.settings.global_namespaces.clone();
        let Some(watched) = self.watch(step, seen.mirror) else {
            return Ok(Some(Wake::default()));
        };
        let observed = observe::observe(step, seen.mirror, watched, &global);
        if decide::is_under_way(step, &observed) {
            return Ok(None);
        }
        match upgrade.spec.control {
            UpgradeControl::Running => Ok(None),
            UpgradeControl::Frozen => {
                if let Some(running) = &mut self.running {
                    // Nobody waits while it is frozen.
                    running.memory.since = None;
                }
                let of = plan.steps.len();
                next.message = Some(format!("frozen before step {} of {of}", index + 1));
                status::totals(next);
                self.write(upgrade, next.clone(), seen.mirror).await?;
                // Nothing stays pinned while nobody waits for it.
                let is_back = self.unpin_all(seen.mirror).await;
                let again = later(self.clock.now(), RETRY);
                Ok(Some(if is_back { Wake::default() } else { Wake::at(again) }))
            }
            UpgradeControl::Cancelled => {
                let mut last = next.clone();
                if let Some(step) = last.steps.get_mut(index) {
                    step.state = StepStateName::Pending;
                    step.message = None;
                }
                self.cancel(&mut last);
                Ok(Some(self.end(upgrade, last, Some(plan), seen).await?))
            }
        }
    }

    /// One decision of the driver, and its effect.
    async fn turn(
        &mut self,
        upgrade: &ClusterUpgrade,
        place: Place<'_>,
        next: &mut ClusterUpgradeStatus,
        seen: Seen<'_>,
    ) -> Turn {
        let holder = pinning::holder(self.journal.namespace(), upgrade);
        let rules = self.rules(upgrade);
        let global = self.settings.global_namespaces.clone();
        let client = self.client.clone();
        let target = Target {
            client: &client,
            mirror: seen.mirror,
            namespace: place.step.namespace.as_str(),
            holder: &holder,
        };
        if self.watch(place.step, seen.mirror).is_none() {
            return Turn::Rest(Wake::default());
        }
        let Some(Running { memory, watched: Some((_, watched)), .. }) = &mut self.running else {
            return Turn::Rest(Wake::default());
        };
        // What could not be read counts as long as it cannot be read.
        if memory.refusals == 0 {
            memory.refused = watched.broken();
        }
        // What later steps need is held from the beginning.
        let others = elsewhere(place, seen.mirror);
        let may_hold = memory.holds < rules.timings.holds_max && memory.refusals == 0;
        if !others.is_empty() && may_hold {
            return self.act(&Action::Hold(others), target).await;
        }
        let observed = observe::observe(place.step, seen.mirror, watched, &global);
        let on = For { holder: &holder, step: place.step };
        if let Some(turn) = self.pin(on, &observed, next, seen).await {
            return turn;
        }
        self.ask_authors(place.step, &observed, seen).await;
        let Some((decision, observed)) = self.decision(upgrade, place, rules, seen).await else {
            return Turn::Rest(Wake::default());
        };
        let of = place.plan.steps.len();
        show(&decision, &observed, (place.index, of), next);
        self.metrics.conditions(&next.operator_conditions);
        let unsaid = self.progress(upgrade, place.index, next);
        match &decision.action {
            Action::Wait(_) => {
                let authors = self.running.as_ref().and_then(|running| running.authors.next());
                let wake = Wake(decision.wake_at).or(Wake(self.look_again())).or(Wake(authors));
                Turn::Rest(wake.or(unsaid))
            }
            Action::Done => Turn::Done,
            Action::Fail(failure) if failure.reason == Reason::ApprovalContested => {
                Turn::Failed(with_managers(&client, failure, &observed).await)
            }
            Action::Fail(failure) => Turn::Failed(self.with_what_is_disabled(upgrade, failure)),
            action @ (Action::Hold(_)
            | Action::DeletePlan { .. }
            | Action::Approve { .. }
            | Action::RetryPlan { .. }
            | Action::DeleteCsv { .. }
            | Action::ResetSubscription { .. }) => self.act(action, target).await,
        }
    }

    /// A failure that a named remedy might have helped, but for the agent's own setting.
    fn with_what_is_disabled(&self, upgrade: &ClusterUpgrade, failure: &Failure) -> Failure {
        let is_disabled = self.settings.remedies == Switch::Disabled
            && failure.reason == Reason::InstallPlanFailed
            && Remedies::of(&upgrade.spec.remedies).any();
        if !is_disabled {
            return failure.clone();
        }
        let message = format!("{}; remedies are disabled on this cluster", failure.message);
        Failure { message, ..failure.clone() }
    }

    async fn act(&mut self, action: &Action, target: Target<'_>) -> Turn {
        let now = self.clock.now();
        let Some(Running { memory, looked, watched: Some((_, watched)), .. }) = &mut self.running
        else {
            return Turn::Rest(Wake::default());
        };
        if let Some(patience) = memory.patience.filter(|patience| now < *patience) {
            return Turn::Rest(Wake::at(patience));
        }
        let applied = apply::apply(action, target, watched).await;
        if let Action::Approve { .. } = action {
            self.metrics.approved(match &applied {
                Applied::Done => "approved",
                Applied::Stale => "stale",
                Applied::Refused(_) => "refused",
                Applied::Unanswered(_) => "unanswered",
            });
        }
        match applied {
            Applied::Done => {
                memory.applied(action, now);
                *looked = Looked::default();
                match action {
                    // Until the watch tells of the deletion it would still be seen.
                    Action::DeletePlan { .. }
                    | Action::DeleteCsv { .. }
                    | Action::ResetSubscription { .. } => Turn::Rest(Wake::at(later(now, RETRY))),
                    Action::Hold(_)
                    | Action::Approve { .. }
                    | Action::RetryPlan { .. }
                    | Action::Wait(_)
                    | Action::Done
                    | Action::Fail(_) => Turn::Again,
                }
            }
            Applied::Stale => Turn::Rest(Wake::at(later(now, RETRY))),
            Applied::Refused(why) | Applied::Unanswered(why) => {
                warn!(why, "not done");
                memory.refused = Some(why);
                memory.refusals = memory.refusals.saturating_add(1);
                let wait = RETRY * 2_i32.pow(memory.refusals.min(REFUSALS_MAX));
                let patience = later(now, wait);
                memory.patience = Some(patience);
                Turn::Rest(Wake::at(patience))
            }
        }
    }

    /// The closer watch on a step's namespace; `None` until its first lists are there.
    pub(super) fn watch(&mut self, step: &Step, mirror: &Mirror) -> Option<&NamespaceMirror> {
        let running = self.running.as_mut()?;
        let name = step.namespace.as_str();
        if running.watched.as_ref().is_none_or(|(watched, _)| watched != name) {
            running.watched = Some((name.to_owned(), mirror.namespace(name)));
        }
        let (_, watched) = running.watched.as_ref()?;
        watched.is_settled().then_some(watched)
    }
}

/// A failure with who else writes the approval of the Subscriptions that are not Manual.
async fn with_managers(client: &Client, failure: &Failure, observed: &Observed) -> Failure {
    let mut managers = BTreeSet::new();
    for hold in to_hold(&observed.subscriptions) {
        let api: Api<Subscription> = Api::namespaced(client.clone(), &hold.namespace);
        // What is watched is without its managers.
        let Ok(Some(found)) = api.get_opt(&hold.name).await else { continue };
        let all = objects::field_managers(&found, &["f:spec", "f:installPlanApproval"]);
        let others = all.into_iter().filter(|manager| *manager != apply::MANAGER.0);
        managers.extend(others.map(str::to_owned));
    }
    if managers.is_empty() {
        return failure.clone();
    }
    let managers: Vec<String> = managers.into_iter().collect();
    let message = format!("{}; it is managed by {}", failure.message, managers.join(", "));
    Failure { message, ..failure.clone() }
}

/// After so many refusals the time to the next try does not double any more.
const REFUSALS_MAX: u32 = 6;

/// What a restarted agent still knows of a step: how far it was, and since when something was
/// wrong. Its patience begins anew: how long nobody was there to look is no fault of the cluster.
fn remembered(status: &ClusterUpgradeStatus, index: usize) -> decide::Memory {
    let step = status.steps.get(index);
    let findings = status.insights.iter().map(|insight| (insight.id.clone(), insight.since_time));
    decide::Memory {
        percent: step.and_then(|step| u8::try_from(step.percent).ok()).unwrap_or(0),
        findings: findings.collect(),
        ..decide::Memory::default()
    }
}

/// Whether the cluster is already past a step that is not the last.
fn is_passed(place: Place<'_>, seen: Seen<'_>) -> bool {
    let Place { plan, step, index } = place;
    let csvs = seen.mirror.csvs.of(step.namespace.as_str());
    let is_there = |name: &str| csvs.iter().any(|csv| objects::name(&**csv) == name);
    let is_past = replan::is_taken(plan, index, &seen.current.inventory);
    // The step's own CSVs are the driver's business, until they have made way for later ones.
    is_past && step.moves.iter().all(|item| !is_there(item.to.as_str()))
}

/// Subscriptions of later steps' namespaces that OLM would move by itself.
fn elsewhere(place: Place<'_>, mirror: &Mirror) -> Vec<decide::Hold> {
    let here = place.step.namespace.as_str();
    let others = namespaces(place.plan, place.index).into_iter().filter(|name| *name != here);
    others.flat_map(|name| to_hold(&mirror.subscriptions.of(name))).collect()
}
