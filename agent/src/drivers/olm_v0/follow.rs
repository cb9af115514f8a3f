//! After the approval: InstallPlan, CSVs and Deployments, until the result has held for a while.

use jiff::Timestamp;
use wavelift_core::progress::Milestone;

use super::{
    decide::{Action, Memory, Rules, Verdict, Waiting, later},
    explain,
    failure::{Failure, Reason},
    remedy,
    view::View,
};
use crate::objects::{self, InstallPlan};

/// Follows what OLM does with an approved plan; `plan` is `None` when only its CSVs are left.
pub(super) fn follow(
    view: &View<'_>,
    plan: Option<&InstallPlan>,
    memory: &mut Memory,
    rules: Rules,
    now: Timestamp,
) -> Verdict {
    let began = plan.and_then(|plan| plan.status.start_time).filter(|began| *began <= now);
    let approved_at = *memory.approved_at.get_or_insert_with(|| began.unwrap_or(now));
    let deadline = later(approved_at, rules.timings.step_deadline);
    let verdict = if is_complete(view, plan) {
        match (stability(memory, rules, now), explain::unreadable(view)) {
            (Verdict { action: Action::Done, .. }, Some(words)) => unread(words, deadline, now),
            (verdict, _) => verdict,
        }
    } else {
        memory.stable_since = None;
        let given_up = plan.filter(|plan| plan.status.phase == "Failed" && now < deadline);
        given_up
            .and_then(|plan| remedy::of_failed(view, plan, memory, rules, deadline))
            .unwrap_or_else(|| under_way(view, plan, memory, deadline, now))
    };
    Verdict { install_plan: plan.map(|plan| objects::name(plan).to_owned()), ..verdict }
}

/// All new CSVs Succeeded, the old ones gone, Deployments rolled out, OLM through with the plan.
fn is_complete(view: &View<'_>, plan: Option<&InstallPlan>) -> bool {
    let is_through =
        plan.is_none_or(|plan| matches!(plan.status.phase.as_str(), "Complete" | "Failed"));
    let stands = |name: &str| {
        view.new_csv(name).is_some_and(|csv| {
            csv.status.phase == "Succeeded" && view.observed.rollout(csv).is_complete()
        })
    };
    is_through
        && view.step.moves.iter().all(|item| stands(item.to.as_str()))
        && view.old_csvs().next().is_none()
}

fn stability(memory: &mut Memory, rules: Rules, now: Timestamp) -> Verdict {
    let since = *memory.stable_since.get_or_insert(now);
    let until = later(since, rules.timings.stable);
    if now >= until {
        return Verdict {
            action: Action::Done,
            milestone: Milestone::Stable,
            parts: (0, 0),
            message: "done".to_owned(),
            install_plan: None,
            wake_at: None,
        };
    }
    let seconds = |duration: jiff::SignedDuration| u32::try_from(duration.as_secs()).unwrap_or(0);
    let message = "all new versions stand; watching them for a moment".to_owned();
    Verdict {
        parts: (seconds(now.duration_since(since)), seconds(rules.timings.stable)),
        wake_at: Some(until),
        ..Verdict::wait(Waiting::Stability, Milestone::CsvsSucceeded, message)
    }
}

/// OLM is through, and what it installed cannot be read.
fn unread(words: String, deadline: Timestamp, now: Timestamp) -> Verdict {
    if now >= deadline {
        let failure = Failure::stalled(Reason::CustomResourcesUnreadable, words);
        return Verdict::fail(Milestone::CsvsSucceeded, failure);
    }
    let verdict = Verdict::wait(Waiting::Stability, Milestone::CsvsSucceeded, words);
    Verdict { wake_at: Some(deadline), ..verdict }
}

fn under_way(
    view: &View<'_>,
    plan: Option<&InstallPlan>,
    memory: &Memory,
    deadline: Timestamp,
    now: Timestamp,
) -> Verdict {
    let (milestone, parts) = milestone(view, plan);
    if let Some(failure) = dead_end(view, plan) {
        return Verdict::fail(milestone, failure);
    }
    if now >= deadline {
        return Verdict::fail(milestone, explain::stuck(view, plan, memory));
    }
    Verdict {
        parts,
        wake_at: Some(deadline),
        ..Verdict::wait(Waiting::Install, milestone, explain::going_on(view, plan))
    }
}

/// What does not heal by itself, however long one waits.
fn dead_end(view: &View<'_>, plan: Option<&InstallPlan>) -> Option<Failure> {
    if let Some(plan) = plan.filter(|plan| plan.status.phase == "Failed") {
        let message = format!("{} failed: {}", objects::name(plan), explain::plan_message(plan));
        return Some(Failure::failed(Reason::InstallPlanFailed, message));
    }
    for csv in view.new_csvs() {
        let name = objects::name(csv);
        if csv.status.phase == "Succeeded" {
            continue;
        }
        let version_too_low = csv.status.requirement_status.iter().find(|requirement| {
            requirement.kind == "ClusterServiceVersion"
                && requirement.message.contains("minKubeVersion")
        });
        if let Some(requirement) = version_too_low {
            let message = format!("{name}: {}", requirement.message);
            return Some(Failure::failed(Reason::RequirementsNotMet, message));
        }
        if csv.status.reason == "InstallComponentFailedNoRetry" {
            let message = format!("{name}: {}", csv.status.message);
            return Some(Failure::failed(Reason::InstallComponentFailed, message));
        }
    }
    None
}

/// How far it is, by the slowest of the CSVs.
fn milestone(view: &View<'_>, plan: Option<&InstallPlan>) -> (Milestone, (u32, u32)) {
    let of = count(view.step.moves.len());
    let there = count(view.new_csvs().count());
    if there < of {
        let is_installing = plan.is_some_and(|plan| plan.status.phase == "Installing");
        let at = if is_installing { Milestone::Installing } else { Milestone::Approved };
        let (done, steps) = plan.map(InstallPlan::steps).unwrap_or_default();
        return (at, (there + count(done), of + count(steps)));
    }
    let is_past = |phase: &str| matches!(phase, "InstallReady" | "Installing" | "Succeeded");
    let installing = count(view.new_csvs().filter(|csv| is_past(&csv.status.phase)).count());
    if installing < of {
        return (Milestone::CsvsCreated, (installing, of));
    }
    let succeeded = view.new_csvs().filter(|csv| csv.status.phase == "Succeeded").count();
    if count(succeeded) < of {
        let mut parts = (count(succeeded), of);
        for csv in view.new_csvs() {
            let rollout = view.observed.rollout(csv);
            parts.0 += rollout.available;
            parts.1 += rollout.wanted;
            if let Some(progress) = view.observed.progress(objects::name(csv)) {
                parts.0 += u32::from(progress);
                parts.1 += 100;
            }
        }
        return (Milestone::CsvsInstalling, parts);
    }
    (Milestone::CsvsSucceeded, (0, 0))
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
