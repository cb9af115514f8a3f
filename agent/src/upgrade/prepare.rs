//! An upgrade that has not started: its plan, the user's consent, the checks.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus,
    cluster_upgrade::{
        ClusterStateName, ConsentMode, FailureStatus, PlanSpec, StepStateName, UpgradeControl,
        UpgradeType,
    },
    convert::{check_result, cut},
    shared::{FailureKind, InsightLevel, InsightStatus, PinnedCatalog, PreflightReport},
};
use wavelift_catalog::{
    OlmV0,
    planner::{self, Pins, Planned},
};
use wavelift_core::{
    check::{self, Finding, Outcome, Policy, Verdict},
    inventory::CatalogSource,
    plan::{Plan, Via},
    target::Target,
};

use super::{Executor, Prepared, Readiness, Seen, Wake, may_start, replan, status};
use crate::{
    checks,
    drivers::olm_v0::{Reason, decide::later, explain},
    journal,
    objects::{self, Subscription},
};

/// From an adoption to the next look: OLM follows within a second or two.
const ADOPTED: SignedDuration = SignedDuration::from_secs(5);

/// The reason of an insight before there is a plan.
pub const NO_PATH: &str = "NoPath";
const NO_PATH_ADVICE: &str = "The message says what the catalogs or the namespace lack. It is planned \
    again whenever they change.";

/// CSVs that are named in one message.
const STUCK_MAX: usize = 4;

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
                let why = match stuck(upgrade, seen) {
                    Some(stuck) => format!("{why}. OLM is in the middle of something: {stuck}"),
                    None => why,
                };
                hold(next, NO_PATH, (&why, NO_PATH_ADVICE), self.clock.now());
                let adopted = self.adopt(upgrade, seen).await;
                let wake = adopted.as_ref().map(|_| later(self.clock.now(), ADOPTED));
                next.message = Some(adopted.unwrap_or(why));
                return (Wake(wake), false);
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
        if let Some(why) = self.cannot_pin(&plan) {
            let reason = Reason::PinnedCatalogRefused;
            hold(next, reason.as_str(), (&why, reason.remediation()), self.clock.now());
            next.state = Some(ClusterStateName::Blocked);
            next.message = Some(why);
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
        let facts = self.facts(&plan, seen).await;
        if wants_start && self.rules(upgrade).remedies.any() && checks::is_given_up(&facts) {
            self.start(next);
            return (Wake::default(), true);
        }
        let findings = checks::run(&facts, &self.metrics);
        self.judge(upgrade, &findings, prepared, next, wants_start)
    }

    /// Runs the checks.
    pub(crate) async fn check(&self, plan: &Plan, seen: Seen<'_>) -> Vec<Finding> {
        checks::run(&self.facts(plan, seen).await, &self.metrics)
    }

    async fn facts(&self, plan: &Plan, seen: Seen<'_>) -> checks::Facts {
        let global = &self.settings.global_namespaces;
        checks::gather(&self.client, plan, seen.current, global).await
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
                next.insights = held(&checks, findings, &next.insights, now);
                (Wake::at(again), false)
            }
            Verdict::Clear { .. } if wants_start => {
                self.start(next);
                (Wake::default(), true)
            }
            Verdict::Clear { .. } => {
                prepared.look_at = Some(again);
                next.state = Some(ClusterStateName::Ready);
                next.insights.clear();
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
        next.insights.clear();
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

/// CSVs that are neither here nor there in the namespaces of an upgrade's targets: while there are
/// any, OLM resolves nothing.
fn stuck(upgrade: &ClusterUpgrade, seen: Seen<'_>) -> Option<String> {
    let targets = upgrade.spec.targets.as_ref()?;
    let all = seen.mirror.subscriptions.all();
    let is_meant = |s: &&Arc<Subscription>| {
        targets.operators.iter().any(|operator| operator.package == s.spec.name)
    };
    let namespaces: BTreeSet<&str> =
        all.iter().filter(is_meant).map(|s| objects::namespace(&**s)).collect();
    let csvs = namespaces.into_iter().flat_map(|namespace| seen.mirror.csvs.of(namespace));
    let moving: Vec<String> = csvs
        .filter(|csv| !matches!(csv.status.phase.as_str(), "Succeeded" | "Failed"))
        .take(STUCK_MAX)
        .map(|csv| explain::standing(&csv))
        .collect();
    (!moving.is_empty()).then(|| moving.join("; "))
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
    let pins = match upgrade.spec.pinned_catalog {
        PinnedCatalog::Never => Pins::Never,
        PinnedCatalog::Allowed => Pins::Allowed,
    };
    if let Some(spec) = &upgrade.spec.plan {
        return match Plan::try_from(spec) {
            Ok(plan) if plan.is_empty() => Way::AtTarget,
            Ok(plan) if pins == Pins::Never && is_pinned(&plan) => Way::Invalid(
                "it has steps by a pinned catalog, and pinnedCatalog is Never".to_owned(),
            ),
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
        let planned = planner::plan_with(&OlmV0, &current.inventory, &lookup, &targets, pins);
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

fn is_pinned(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| step.via == Via::PinnedCatalog)
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

/// What holds an upgrade before its start, each with since when.
fn held(
    checks: &[String],
    findings: &[Finding],
    before: &[InsightStatus],
    now: Timestamp,
) -> Vec<InsightStatus> {
    let holding = findings.iter().filter(|finding| checks.contains(&finding.check));
    let told = holding.map(|finding| {
        let id = format!("{}/{}", finding.reason, finding.check);
        let advice = format!(
            "The message says what to do. {} runs again by itself, and then the upgrade goes on.",
            finding.check
        );
        let told = (InsightLevel::Warning, finding.message.as_str(), advice.as_str());
        status::insight(id, &finding.reason, told, before, now)
    });
    told.collect()
}

/// The one thing that holds an upgrade before there is anything to check.
fn hold(
    next: &mut ClusterUpgradeStatus,
    reason: &str,
    (message, advice): (&str, &str),
    now: Timestamp,
) {
    let told = (InsightLevel::Warning, message, advice);
    let held = status::insight(reason.to_owned(), reason, told, &next.insights, now);
    next.insights = vec![held];
}

/// `catalog-ready: catalog market/own is TRANSIENT_FAILURE`, the first in full.
fn held_by(checks: &[String], findings: &[Finding]) -> String {
    let first = checks.first().and_then(|name| findings.iter().find(|f| f.check == *name));
    let names = checks.join(", ");
    first.map_or_else(|| names.clone(), |finding| format!("{names}: {}", finding.message))
}
