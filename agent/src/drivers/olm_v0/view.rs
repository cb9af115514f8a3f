//! A step beside what is observed of it: which InstallPlan is its own, and where it stands.

use std::{collections::BTreeSet, sync::Arc};

use wavelift_core::plan::Step;

use super::observe::Observed;
use crate::objects::{self, Csv, InstallPlan, OlmCondition, PlanStep, Subscription};

/// Where a step stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Position<'a> {
    /// Before its approval.
    Ahead,
    /// After it, with the InstallPlan unless that is gone already.
    UnderWay(Option<&'a InstallPlan>),
}

/// A step beside what is observed of it.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) step: &'a Step,
    pub(super) observed: &'a Observed,
}

// === impl View ===

impl<'a> View<'a> {
    /// Whether the step is past its approval, and by which InstallPlan.
    pub(super) fn position(&self) -> Position<'a> {
        let approved =
            |plan: &&InstallPlan| plan.spec.approved && csv_set(plan) == self.step.csv_names();
        let referenced = self.referenced();
        if let Some(plan) = referenced.filter(approved) {
            return Position::UnderWay(Some(plan));
        }
        // A fresh plan with the step's set counts more than what an old one of the same set did.
        let is_fresh =
            |plan: &InstallPlan| !plan.spec.approved && csv_set(plan) == self.step.csv_names();
        let newest = self
            .observed
            .plans
            .iter()
            .map(|plan| &**plan)
            .filter(approved)
            .max_by_key(|plan| plan.spec.generation);
        let has_all = self.step.moves.iter().all(|item| self.new_csv(item.to.as_str()).is_some());
        match newest {
            Some(plan) if has_all || is_running(plan) => Position::UnderWay(Some(plan)),
            Some(plan) if !referenced.is_some_and(is_fresh) => Position::UnderWay(Some(plan)),
            None if has_all => Position::UnderWay(None),
            Some(_) | None => Position::Ahead,
        }
    }

    /// A CSV that the step makes, unless it is on its way out.
    pub(super) fn new_csv(&self, name: &str) -> Option<&'a Csv> {
        self.observed.csv(name).filter(|csv| csv.metadata.deletion_timestamp.is_none())
    }

    /// The step's CSVs that are there.
    pub(super) fn new_csvs(&self) -> impl Iterator<Item = &'a Csv> {
        self.step.moves.iter().filter_map(|item| self.new_csv(item.to.as_str()))
    }

    /// The CSVs that the step replaces and that are still there.
    pub(super) fn old_csvs(&self) -> impl Iterator<Item = &'a Csv> {
        let from = self.step.moves.iter().filter_map(|item| item.from.as_ref());
        from.filter_map(|name| self.observed.csv(name.as_str()))
    }

    /// The Subscriptions whose operators the step moves.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &'a Subscription> {
        let packages: BTreeSet<&str> =
            self.step.moves.iter().map(|item| item.package.as_str()).collect();
        let all = self.observed.subscriptions.iter().map(|subscription| &**subscription);
        all.filter(move |subscription| packages.contains(subscription.spec.name.as_str()))
    }

    /// The one InstallPlan that all Subscriptions of the step refer to.
    pub(super) fn referenced(&self) -> Option<&'a InstallPlan> {
        let name =
            |s: &'a Subscription| s.status.install_plan_ref.as_ref().map(|r| r.name.as_str());
        let names: BTreeSet<Option<&str>> = self.subscriptions().map(name).collect();
        let mut names = names.into_iter();
        match (names.next(), names.next()) {
            (Some(Some(name)), None) => self.observed.plan(name),
            (Some(Some(_)), Some(_)) | (Some(None) | None, _) => None,
        }
    }

    /// The plans that wait for approval and that nothing refers to.
    pub(super) fn unreferenced(&self) -> impl Iterator<Item = &'a InstallPlan> {
        let referenced: BTreeSet<&str> = self
            .observed
            .subscriptions
            .iter()
            .filter_map(|s| s.status.install_plan_ref.as_ref().map(|r| r.name.as_str()))
            .collect();
        let all = self.observed.plans.iter().map(|plan| &**plan);
        all.filter(move |plan| {
            !referenced.contains(objects::name(*plan))
                && !plan.spec.approved
                && plan.status.phase == "RequiresApproval"
        })
    }

    /// The first Subscription of the step that has another version installed than the one that the
    /// step replaces, by OLM's own word, and which. OLM makes a plan only after it has written down
    /// what is installed, so a plan that such a Subscription refers to was made from that version:
    /// its CSV would replace one that is gone, and stand beside the one that is there.
    pub(super) fn made_from_another(&self) -> Option<(&'a Subscription, &'a str)> {
        self.subscriptions().find_map(|subscription| {
            let installed = subscription.status.installed_csv.as_deref()?;
            let package = subscription.spec.name.as_str();
            let item = self.step.moves.iter().find(|item| item.package.as_str() == package)?;
            let from = item.from.as_ref()?;
            (installed != from.as_str()).then_some((subscription, installed))
        })
    }

    /// Whether OLM has written down on all Subscriptions that `plan` moves that they wait for it.
    ///
    /// It makes the plan first and writes that seconds later. Of a plan that is deleted in between
    /// it goes on to write, and since it clears that only together with the condition that it sets
    /// last, such a Subscription refers to nothing for ever and gets no plan any more (OLM 0.45,
    /// `subscription/state.go`, InstallPlanNotFound).
    pub(super) fn is_noted(&self, plan: &InstallPlan) -> bool {
        let name = objects::name(plan);
        let waits = |subscription: &&Arc<Subscription>| {
            let status = &subscription.status;
            let is_pending =
                |c: &OlmCondition| c.kind == "InstallPlanPending" && c.status == "True";
            status.install_plan_ref.as_ref().is_some_and(|plan| plan.name == name)
                && status.conditions.iter().any(is_pending)
        };
        let noted = self.observed.subscriptions.iter().filter(waits).count();
        // A new dependency gets its Subscription by the plan itself.
        let new = |step: &&PlanStep| step.resource.kind == "Subscription";
        noted + plan.status.plan.iter().filter(new).count() >= csv_set(plan).len()
    }

    /// The step's set, for people.
    pub(super) fn wanted(&self) -> String {
        set(&self.step.csv_names())
    }
}

/// A plan's set, for people.
pub(super) fn offered(plan: &InstallPlan) -> String {
    set(&csv_set(plan))
}

fn set(names: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = names.iter().copied().collect();
    format!("[{}]", names.join(", "))
}

/// The CSVs that a plan makes.
pub(super) fn csv_set(plan: &InstallPlan) -> BTreeSet<&str> {
    plan.spec.cluster_service_version_names.iter().map(String::as_str).collect()
}

/// True until OLM is through with a plan, or has given it up.
pub(super) fn is_running(plan: &InstallPlan) -> bool {
    !matches!(plan.status.phase.as_str(), "Complete" | "Failed")
}
