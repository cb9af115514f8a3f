//! An upgrade that has not started: its plan, the user's consent, the checks.

use std::sync::Arc;

use kube::ResourceExt as _;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus,
    cluster_upgrade::{
        ClusterStateName, ConsentMode, FailureStatus, PlanSpec, StepStateName, UpgradeControl,
        UpgradeType,
    },
    convert::{check_result, cut},
    shared::{FailureKind, PreflightReport},
};
use wavelift_catalog::{
    OlmV0,
    planner::{self, Planned},
};
use wavelift_core::{
    check::{self, Finding, Outcome, Policy, Verdict},
    inventory::CatalogSource,
    plan::Plan,
    target::Target,
};

use super::{Executor, Prepared, Readiness, Seen, Wake, may_start, replan, status};
use crate::{
    checks,
    drivers::olm_v0::{Reason, decide::later},
    journal,
};

/// Where the plan of an upgrade stands.
enum Way {
    Plan(Plan),
    AtTarget,
    /// There is none for now, and why.
    None(String),
    /// There never will be one from this spec.
    Invalid(String),
}

impl Executor {
    /// Brings an upgrade as far as it may go before it touches the cluster, and starts it if
    /// nothing is in the way.
    pub(super) async fn prepare(
        &mut self,
        upgrade: &Arc<ClusterUpgrade>,
        seen: Seen<'_>,
    ) -> Result<Readiness, journal::Error> {
        let behind = seen.mirror.behind();
        if !behind.is_empty() {
            return self.cannot_prepare(upgrade, &behind, seen).await;
        }
        let name = upgrade.name_any();
        let mut prepared = self.waiting.remove(&name).unwrap_or_default();
        if prepared.generation != upgrade.metadata.generation {
            prepared = Prepared { generation: upgrade.metadata.generation, ..Prepared::default() };
        }
        let mut next = status::begin(upgrade);
        let (wake, starts) = self.ready(upgrade, seen, &mut prepared, &mut next).await;
        self.waiting.insert(name, prepared);
        let plan = next.plan.clone().or_else(|| upgrade.spec.plan.clone());
        self.write(upgrade, next, seen.mirror).await?;
        if !starts {
            return Ok(Readiness::Waits(wake));
        }
        let plan = plan.and_then(|plan| Plan::try_from(&plan).ok());
        self.metrics.in_progress(plan.as_ref());
        Ok(Readiness::Started)
    }

    /// What the status becomes; true when the upgrade starts with it.
    async fn ready(
        &self,
        upgrade: &ClusterUpgrade,
        seen: Seen<'_>,
        prepared: &mut Prepared,
        next: &mut ClusterUpgradeStatus,
    ) -> (Wake, bool) {
        let asleep = (Wake::default(), false);
        if upgrade.spec.control == UpgradeControl::Cancelled {
            self.cancel(next);
            return asleep;
        }
        let plan = match way(upgrade, seen, prepared) {
            Way::Plan(plan) => plan,
            Way::AtTarget => {
                self.succeed(next, "at the target already");
                return asleep;
            }
            Way::None(why) => {
                next.state = Some(ClusterStateName::Blocked);
                next.message = Some(why);
                return asleep;
            }
            Way::Invalid(why) => {
                self.fail(next, Reason::PlanChanged, &format!("the spec is not valid: {why}"));
                return asleep;
            }
        };
        with_plan(upgrade, &plan, next);
        if replan::remaining(&plan, &seen.current.inventory).is_empty() {
            self.succeed(next, "at the target already");
            return asleep;
        }
        if upgrade.spec.control == UpgradeControl::Frozen {
            next.state.get_or_insert(ClusterStateName::Pending);
            next.message = Some("frozen before the start".to_owned());
            return asleep;
        }
        let consent = consent(upgrade, &plan);
        if let Consent::Other(why) = &consent {
            self.fail(next, Reason::PlanChanged, why);
            return asleep;
        }
        let wants_start = may_start(upgrade) && matches!(consent, Consent::Given);
        let now = self.clock.now();
        if let Some(again) = prepared.look_at.filter(|again| now < *again) {
            return (Wake::at(again), false);
        }
        let findings = self.check(&plan, seen).await;
        self.judge(upgrade, &findings, prepared, next, wants_start)
    }

    /// Runs the checks.
    pub(crate) async fn check(&self, plan: &Plan, seen: Seen<'_>) -> Vec<Finding> {
        let global = &self.settings.global_namespaces;
        let facts = checks::gather(&self.client, plan, seen.current, global).await;
        checks::run(&facts, &self.metrics)
    }

    fn judge(
        &self,
        upgrade: &ClusterUpgrade,
        findings: &[Finding],
        prepared: &mut Prepared,
        next: &mut ClusterUpgradeStatus,
        wants_start: bool,
    ) -> (Wake, bool) {
        let now = self.clock.now();
        let changed = changed(findings);
        if let (Some(why), true) = (&changed, wants_start) {
            let since = *prepared.changed_since.get_or_insert(now);
            let until = later(since, self.settings.settle);
            if now >= until {
                self.fail(next, Reason::PlanChanged, why);
                return (Wake::default(), false);
            }
            next.state.get_or_insert(ClusterStateName::Pending);
            next.message = Some(why.clone());
            prepared.look_at = Some(until);
            return (Wake::at(until), false);
        }
        prepared.changed_since = None;
        let again = later(now, self.settings.recheck);
        let policy: Policy = upgrade.spec.preflight.clone().unwrap_or_default().into();
        let results = findings.iter().map(|finding| check_result(finding, policy)).collect();
        next.preflight = Some(PreflightReport { observed_time: now, results });
        match check::verdict(findings, policy) {
            Verdict::Blocked { checks, .. } => {
                prepared.look_at = Some(again);
                next.state = Some(ClusterStateName::Blocked);
                next.message = Some(format!("held by {}", held_by(&checks, findings)));
                (Wake::at(again), false)
            }
            Verdict::Clear { .. } if wants_start => {
                self.start(next);
                (Wake::default(), true)
            }
            Verdict::Clear { .. } => {
                prepared.look_at = Some(again);
                next.state = Some(ClusterStateName::Ready);
                let digest = next.plan_digest.as_deref().unwrap_or_default();
                next.message = Some(if may_start(upgrade) {
                    format!("waits for consent: set spec.planDigest to {digest}")
                } else {
                    "checked, nothing in the way; waits for stage Rollout".to_owned()
                });
                (Wake::at(again), false)
            }
        }
    }

    fn start(&self, next: &mut ClusterUpgradeStatus) {
        let now = self.clock.now();
        next.state = Some(ClusterStateName::Upgrading);
        next.start_time = Some(now);
        next.message = Some("started".to_owned());
        if let Some(step) = next.steps.first_mut() {
            step.state = StepStateName::Running;
            step.start_time = Some(now);
        }
    }

    pub(super) fn succeed(&self, next: &mut ClusterUpgradeStatus, message: &str) {
        let now = self.clock.now();
        for step in &mut next.steps {
            step.state = StepStateName::Done;
            step.percent = 100;
            step.completion_time.get_or_insert(now);
        }
        status::totals(next);
        next.state = Some(ClusterStateName::Succeeded);
        next.percent = Some(100);
        next.message = Some(message.to_owned());
        next.insights.clear();
        next.completion_time = Some(now);
    }

    /// Ends it before anything was touched.
    fn fail(&self, next: &mut ClusterUpgradeStatus, reason: Reason, message: &str) {
        next.state = Some(ClusterStateName::Failed);
        next.message = Some(message.to_owned());
        next.completion_time = Some(self.clock.now());
        next.failure = Some(FailureStatus {
            kind: FailureKind::Failed,
            reason: reason.to_string(),
            message: cut(message, 2048),
            remediation: reason.remediation().to_owned(),
            step: None,
        });
    }
}

/// Puts the plan into the status, with steps that have not begun when it is another one.
fn with_plan(upgrade: &ClusterUpgrade, plan: &Plan, next: &mut ClusterUpgradeStatus) {
    let digest = plan.digest();
    if next.plan_digest.as_deref() != Some(digest.as_str()) || next.steps.is_empty() {
        let spec = PlanSpec::from(plan);
        next.steps = status::steps(&spec);
        next.plan = (upgrade.spec.kind == UpgradeType::Targets).then_some(spec);
        next.plan_digest = Some(digest);
        next.percent = None;
    }
    next.state.get_or_insert(ClusterStateName::Pending);
    status::totals(next);
}

/// The plan of an upgrade: as given, or made from the targets and what the cluster has now.
fn way(upgrade: &ClusterUpgrade, seen: Seen<'_>, prepared: &mut Prepared) -> Way {
    if let Some(spec) = &upgrade.spec.plan {
        return match Plan::try_from(spec) {
            Ok(plan) if plan.is_empty() => Way::AtTarget,
            Ok(plan) => Way::Plan(plan),
            Err(error) => Way::Invalid(error.to_string()),
        };
    }
    let Some(targets) = &upgrade.spec.targets else {
        return Way::Invalid("it has neither a plan nor targets".to_owned());
    };
    let targets: Vec<Target> = match targets.try_into() {
        Ok(targets) => targets,
        Err(error) => return Way::Invalid(wavelift_api::convert::Error::to_string(&error)),
    };
    let current = seen.current;
    let is_fresh = prepared.planned.as_ref().is_some_and(|(of, _)| *of == current.digest);
    if !is_fresh {
        let lookup = |source: &CatalogSource| current.content(&source.namespace, &source.name);
        let planned = planner::plan(&OlmV0, &current.inventory, &lookup, &targets);
        prepared.planned = Some((current.digest.clone(), planned));
    }
    match prepared.planned.as_ref().map(|(_, planned)| planned) {
        Some(Planned::Plan(plan)) => Way::Plan(plan.clone()),
        Some(Planned::AtTarget) => Way::AtTarget,
        Some(Planned::NoPath { why }) => Way::None(format!("no way to the target: {why}")),
        Some(Planned::Unknown { missing }) => Way::None(format!("cannot plan without {missing}")),
        None => Way::None("not planned yet".to_owned()),
    }
}

/// The checks whose findings keep OLM from resolving a namespace.
const UNRESOLVED: [&str; 4] =
    ["catalog-ready", "operatorgroup-single", "installed-csv-healthy", "namespace-quiet"];

/// Why the plan is not what the cluster resolves to, when nothing else explains that: while
/// something moves or is ill in a namespace, OLM resolves nothing there.
fn changed(findings: &[Finding]) -> Option<String> {
    let is_changed = |f: &&Finding| f.check == "plan-current" && f.reason == "PlanChanged";
    let is_well = |f: &Finding| match f.outcome {
        Outcome::Pass | Outcome::Warn | Outcome::Skipped => true,
        Outcome::Fail | Outcome::Unknown => !UNRESOLVED.contains(&f.check.as_str()),
    };
    let found = findings.iter().find(is_changed)?;
    findings.iter().all(is_well).then(|| found.message.clone())
}

enum Consent {
    Given,
    /// A person has not said yes yet.
    Awaited,
    /// The word is for another plan.
    Other(String),
}

fn consent(upgrade: &ClusterUpgrade, plan: &Plan) -> Consent {
    let digest = plan.digest();
    let given = upgrade.spec.plan_digest.as_deref().filter(|given| !given.is_empty());
    match (upgrade.spec.kind, upgrade.spec.consent, given) {
        (_, _, Some(given)) if given == digest => Consent::Given,
        (UpgradeType::Targets, ConsentMode::Any, _) | (UpgradeType::Plan, _, None) => {
            Consent::Given
        }
        (UpgradeType::Targets, ConsentMode::Digest, _) => Consent::Awaited,
        (UpgradeType::Plan, _, Some(given)) => {
            Consent::Other(format!("the consent is for {given}, the plan is {digest}"))
        }
    }
}

/// `catalog-ready: catalog market/own is TRANSIENT_FAILURE`, the first in full.
fn held_by(checks: &[String], findings: &[Finding]) -> String {
    let first = checks.first().and_then(|name| findings.iter().find(|f| f.check == *name));
    let names = checks.join(", ");
    first.map_or_else(|| names.clone(), |finding| format!("{names}: {}", finding.message))
}
