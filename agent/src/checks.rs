//! Preflight checks: what stands in the way of a plan on this cluster, before anything is touched.
//!
//! [`Facts`] are read from the API server at one moment; every check is a pure function from them
//! to a [`Finding`]. What could not be read makes the checks that need it Unknown, with the error.

mod approval_automatic;
mod catalog_ready;
mod conversion_webhook;
mod custom_resources;
mod foreign_manager;
mod gather;
mod installed_csv_healthy;
mod min_kube_version;
mod namespace_quiet;
mod operator_upgradeable;
mod operatorgroup_single;
mod plan_current;
mod stored_versions;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Instant};

use wavelift_catalog::Catalog;
use wavelift_core::{
    check::{Disposition, Finding, Outcome, Policy},
    plan::{Move, Plan, Step},
};

pub(crate) use self::foreign_manager::manager_of_source;
pub(crate) use self::gather::contents;
pub use self::gather::gather;
use crate::{
    apis::{self, Brought},
    drivers::olm_v0::Reason,
    metrics::Metrics,
    objects::{
        self, CatalogSource, Csv, Deployment, InstallPlan, OperatorCondition, OperatorGroup,
        Subscription,
    },
    upgrade::replan::Standing,
};

/// A list, or why it could not be read.
pub type Read<T> = Result<Vec<T>, String>;

/// What the checks judge.
#[derive(Debug)]
pub struct Facts {
    /// The plan.
    pub plan: Plan,
    /// Which of its steps is the first that has not been taken.
    pub next: Option<usize>,
    /// One entry a namespace of the plan.
    pub namespaces: Vec<NamespaceFacts>,
    /// All CatalogSources.
    pub catalogs: Read<CatalogSource>,
    /// The namespaces whose catalogs every other one sees.
    pub global_namespaces: Vec<String>,
    /// The API server's version.
    pub kube_version: Result<String, String>,
    /// Whether the cluster still resolves to the plan.
    pub standing: Standing,
    /// What the versions of the plan that are left bring, the next one of each namespace in full.
    pub apis: Vec<Brought>,
}

/// What the checks judge of one namespace.
#[derive(Debug)]
pub struct NamespaceFacts {
    /// Its name.
    pub name: String,
    /// Its Subscriptions, with who manages their fields.
    pub subscriptions: Read<Subscription>,
    /// Its CSVs but for copies.
    pub csvs: Read<Csv>,
    /// Its OperatorGroups.
    pub groups: Read<OperatorGroup>,
    /// Its InstallPlans.
    pub plans: Read<InstallPlan>,
    /// Its Deployments.
    pub deployments: Read<Deployment>,
    /// Its OperatorConditions.
    pub conditions: Read<OperatorCondition>,
    /// What the catalogs that it sees serve, the Subscriptions' own first.
    pub contents: Vec<Arc<Catalog>>,
}

/// A check: its stable name and how it judges.
type Check = (&'static str, fn(&Facts) -> Finding);

/// All checks, in the order in which they are told.
const CHECKS: [Check; 12] = [
    (catalog_ready::NAME, catalog_ready::check),
    (operatorgroup_single::NAME, operatorgroup_single::check),
    (installed_csv_healthy::NAME, installed_csv_healthy::check),
    (namespace_quiet::NAME, namespace_quiet::check),
    (operator_upgradeable::NAME, operator_upgradeable::check),
    (min_kube_version::NAME, min_kube_version::check),
    (stored_versions::NAME, stored_versions::check),
    (custom_resources::NAME, custom_resources::check),
    (conversion_webhook::NAME, conversion_webhook::check),
    (approval_automatic::NAME, approval_automatic::check),
    (foreign_manager::NAME, foreign_manager::check),
    (plan_current::NAME, plan_current::check),
];

/// The reasons of findings that can hold an upgrade, each with a page in `docs/runbooks`.
pub const HOLDING: [&str; 21] = [
    "CannotRead",
    "CatalogMissing",
    "CatalogNotRead",
    "CatalogNotReady",
    "CatalogStateUnknown",
    "ConversionWebhookRefused",
    "CsvMoving",
    "CsvNotSucceeded",
    "CustomResourcesInvalid",
    "DeploymentNotAvailable",
    "ForeignManager",
    "InstallPlanRunning",
    "KubeVersionTooLow",
    "NoOperatorGroup",
    "NotDescribed",
    "NotInstalled",
    "OperatorNotUpgradeable",
    "PlanChanged",
    "StoredVersionRemoved",
    "TooManyOperatorGroups",
    "VersionNotUnderstood",
];

/// Runs all checks.
pub fn run(facts: &Facts, metrics: &Metrics) -> Vec<Finding> {
    let judge = |(name, check): &Check| {
        let began = Instant::now();
        let finding = check(facts);
        metrics.checked(name, finding.outcome, began.elapsed());
        finding
    };
    CHECKS.iter().map(judge).collect()
}

/// Whether OLM has given up the InstallPlan of the step that is next: then there is nothing to wait
/// for before the start, only a remedy helps.
pub(crate) fn is_given_up(facts: &Facts) -> bool {
    let Some(step) = facts.next() else { return false };
    let facts = facts.namespaces.iter().find(|facts| facts.name == step.namespace.as_str());
    let Some(facts) = facts else { return false };
    let wanted = step.csv_names();
    let plans = facts.plans.as_deref().unwrap_or_default();
    let newest = apis::plan_of(step, plans);
    let is_moving = facts
        .csvs
        .as_deref()
        .unwrap_or_default()
        .iter()
        .any(|csv| wanted.contains(objects::name(csv)) && csv.status.phase != "Succeeded");
    is_moving && newest.is_some_and(|plan| plan.spec.approved && plan.status.phase == "Failed")
}

/// What keeps a step from being approved for the APIs that it brings, and its words; nothing where
/// nothing does. It is asked again right before each approval.
pub(crate) fn objection(apis: &[Brought], policy: Policy) -> Option<(Reason, String)> {
    let judged = [
        (Reason::StoredVersionRemoved, stored_versions::judge(apis)),
        (Reason::CustomResourcesInvalid, custom_resources::judge(apis)),
        (Reason::ConversionWebhookRefused, conversion_webhook::judge(apis)),
    ];
    judged.into_iter().find_map(|(reason, finding)| {
        let reason = match finding.outcome {
            Outcome::Unknown => Reason::ApisNotChecked,
            Outcome::Pass | Outcome::Warn | Outcome::Fail | Outcome::Skipped => reason,
        };
        match finding.outcome.disposition(policy) {
            Disposition::Blocked => Some((reason, finding.message)),
            Disposition::Clear | Disposition::Warned | Disposition::Waived => None,
        }
    })
}

/// Collects what a check finds wrong, over all namespaces.
#[derive(Debug)]
struct Found {
    check: &'static str,
    problems: Vec<Problem>,
    unread: Vec<String>,
}

#[derive(Debug)]
struct Problem {
    outcome: Outcome,
    reason: &'static str,
    message: String,
    subjects: Vec<String>,
}

impl Found {
    fn new(check: &'static str) -> Self {
        Self { check, problems: vec![], unread: vec![] }
    }

    fn fail(&mut self, reason: &'static str, message: String, subject: &str) {
        self.add(Outcome::Fail, reason, message, subject);
    }

    fn add(&mut self, outcome: Outcome, reason: &'static str, message: String, subject: &str) {
        let subjects = vec![subject.to_owned()];
        self.problems.push(Problem { outcome, reason, message, subjects });
    }

    /// The list, or nothing after noting why it could not be read.
    fn read<'a, T>(&mut self, what: &str, namespace: &str, list: &'a Read<T>) -> &'a [T] {
        match list {
            Ok(list) => list,
            Err(error) => {
                let within =
                    if namespace.is_empty() { String::new() } else { format!(" of {namespace}") };
                self.unread.push(format!("cannot read the {what}{within}: {error}"));
                &[]
            }
        }
    }

    /// The worst of what was found; `advice` says what to do about it.
    fn finding(self, well: &str, advice: &str) -> Finding {
        let rank = |outcome: Outcome| match outcome {
            Outcome::Fail => 0,
            Outcome::Unknown => 1,
            Outcome::Warn => 2,
            Outcome::Skipped | Outcome::Pass => 3,
        };
        let mut problems = self.problems;
        if !self.unread.is_empty() {
            problems.push(Problem {
                outcome: Outcome::Unknown,
                reason: "CannotRead",
                message: self.unread.join("; "),
                subjects: vec![],
            });
        }
        let Some(worst) = problems.iter().map(|p| p.outcome).min_by_key(|o| rank(*o)) else {
            return finding(self.check, Outcome::Pass, "AsExpected", well.to_owned(), vec![]);
        };
        problems.retain(|problem| problem.outcome == worst);
        let reason = problems.first().map_or("AsExpected", |problem| problem.reason);
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        let message = match worst {
            Outcome::Pass | Outcome::Skipped => messages.join("; "),
            Outcome::Fail | Outcome::Unknown | Outcome::Warn => {
                format!("{}. {advice}", messages.join("; "))
            }
        };
        let subjects = problems.iter().flat_map(|problem| problem.subjects.clone()).collect();
        finding(self.check, worst, reason, message, subjects)
    }
}

fn finding(
    check: &str,
    outcome: Outcome,
    reason: &str,
    message: String,
    subjects: Vec<String>,
) -> Finding {
    debug_assert!(
        !matches!(outcome, Outcome::Fail | Outcome::Unknown) || HOLDING.contains(&reason),
        "{reason} has no page"
    );
    Finding { check: check.to_owned(), outcome, reason: reason.to_owned(), message, subjects }
}

impl Facts {
    /// The first step that has not been taken.
    fn next(&self) -> Option<&Step> {
        self.next.and_then(|index| self.plan.steps.get(index))
    }

    /// The catalogs that a namespace sees.
    fn visible<'a>(
        &'a self,
        namespace: &'a NamespaceFacts,
        catalogs: &'a [CatalogSource],
    ) -> impl Iterator<Item = &'a CatalogSource> {
        let groups = namespace.groups.as_deref().unwrap_or_default();
        let excludes_global = groups.iter().any(OperatorGroup::excludes_global);
        catalogs.iter().filter(move |source| {
            let at = objects::namespace(*source);
            let is_global = self.global_namespaces.iter().any(|global| global == at);
            let named =
                namespace.subscriptions.as_deref().unwrap_or_default().iter().any(|s| {
                    s.spec.source_namespace == at && s.spec.source == objects::name(*source)
                });
            at == namespace.name || named || (is_global && !excludes_global)
        })
    }

    /// The moves of the plan in one namespace, in the order in which they run.
    fn moves<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Move> {
        let steps = self.plan.steps.iter();
        steps.filter(move |step| step.namespace.as_str() == namespace).flat_map(|step| &step.moves)
    }
}
