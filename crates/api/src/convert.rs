//! From the objects to core's types and back; what does not fit is refused here.

use wavelift_core::{
    check::{Disposition, Finding, Policy},
    fence::{Fence, Revision},
    ids::{self, Uid},
    insight::Insight,
    plan::{self, Move, Plan, Step},
    range::{self, Range},
    target::{Goal, Target},
    version::{self, Version},
};

use crate::{
    ClusterUpgradeSpec, ClusterUpgradeStatus,
    cluster_upgrade::{MoveSpec, PlanSpec, StepSpec},
    shared::{CheckResult, InsightStatus, OperatorTarget, Targets},
};

/// Why an object is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A name in it is not one.
    #[error("{field}")]
    Name {
        /// The field.
        field: &'static str,
        /// Why.
        #[source]
        source: ids::Error,
    },
    /// The plan in it is not one.
    #[error("spec.plan")]
    Plan(#[source] plan::Error),
    /// A field that must be there is absent.
    #[error("{field} is absent")]
    Absent {
        /// The field.
        field: &'static str,
    },
    /// A version in it is not one.
    #[error("version of target `{package}`")]
    Version {
        /// The package.
        package: String,
        /// Why.
        #[source]
        source: version::Error,
    },
    /// A range in it is not one.
    #[error("versionRange of target `{package}`")]
    Range {
        /// The package.
        package: String,
        /// Why.
        #[source]
        source: range::Error,
    },
    /// A number is negative.
    #[error("{field} is negative")]
    Negative {
        /// The field.
        field: &'static str,
    },
}

fn name<T>(field: &'static str, text: &str) -> Result<T, Error>
where
    T: for<'a> TryFrom<&'a str, Error = ids::Error>,
{
    T::try_from(text).map_err(|source| Error::Name { field, source })
}

impl TryFrom<&PlanSpec> for Plan {
    type Error = Error;

    fn try_from(spec: &PlanSpec) -> Result<Self, Error> {
        let steps = spec.steps.iter().map(Step::try_from).collect::<Result<_, _>>()?;
        let plan = Self { steps };
        plan.validate().map_err(Error::Plan)?;
        Ok(plan)
    }
}

impl TryFrom<&StepSpec> for Step {
    type Error = Error;

    fn try_from(spec: &StepSpec) -> Result<Self, Error> {
        Ok(Self {
            namespace: name("spec.plan.steps[].namespace", &spec.namespace)?,
            moves: spec.moves.iter().map(Move::try_from).collect::<Result<_, _>>()?,
            via: spec.via.into(),
        })
    }
}

impl TryFrom<&MoveSpec> for Move {
    type Error = Error;

    fn try_from(spec: &MoveSpec) -> Result<Self, Error> {
        let from = spec.from.as_deref().map(|from| name("spec.plan.steps[].moves[].from", from));
        Ok(Self {
            package: name("spec.plan.steps[].moves[].package", &spec.package)?,
            from: from.transpose()?,
            to: name("spec.plan.steps[].moves[].to", &spec.to)?,
            from_version: spec.from_version.clone(),
            to_version: spec.to_version.clone(),
        })
    }
}

impl TryFrom<&OperatorTarget> for Target {
    type Error = Error;

    fn try_from(spec: &OperatorTarget) -> Result<Self, Error> {
        let package = || spec.package.clone();
        let goal = match (&spec.version, &spec.version_range) {
            (Some(text), _) => {
                let version = Version::parse(text)
                    .map_err(|source| Error::Version { package: package(), source })?;
                Goal::Version(version)
            }
            (None, Some(text)) => {
                let range = Range::parse(text)
                    .map_err(|source| Error::Range { package: package(), source })?;
                Goal::Range(range)
            }
            (None, None) => Goal::Latest,
        };
        let namespace = spec.namespace.as_deref();
        Ok(Self {
            package: name("spec.targets.operators[].package", &spec.package)?,
            goal,
            namespace: namespace
                .map(|namespace| name("spec.targets.operators[].namespace", namespace))
                .transpose()?,
        })
    }
}

impl TryFrom<&Targets> for Vec<Target> {
    type Error = Error;

    fn try_from(targets: &Targets) -> Result<Self, Error> {
        targets.operators.iter().map(Target::try_from).collect()
    }
}

impl From<&Plan> for PlanSpec {
    fn from(plan: &Plan) -> Self {
        let moves = |step: &Step| {
            step.moves
                .iter()
                .map(|item| MoveSpec {
                    package: item.package.to_string(),
                    from: item.from.as_ref().map(ToString::to_string),
                    to: item.to.to_string(),
                    from_version: item.from_version.clone(),
                    to_version: item.to_version.clone(),
                })
                .collect()
        };
        let steps = plan
            .steps
            .iter()
            .map(|step| StepSpec {
                namespace: step.namespace.to_string(),
                moves: moves(step),
                via: step.via.into(),
            })
            .collect();
        Self { steps }
    }
}

impl ClusterUpgradeSpec {
    /// The fence that messages about this spec carry; `own_uid` is the object's, for an upgrade
    /// that no hub knows.
    pub fn fence(&self, own_uid: &str) -> Result<Fence, Error> {
        let uid = self.fleet_upgrade.as_ref().map_or(own_uid, |reference| &reference.uid);
        Ok(Fence {
            uid: name::<Uid>("spec.fleetUpgrade.uid", uid)?,
            epoch: u64::try_from(self.epoch)
                .map_err(|_| Error::Negative { field: "spec.epoch" })?,
            attempt: u32::try_from(self.attempt)
                .map_err(|_| Error::Negative { field: "spec.attempt" })?,
        })
    }
}

impl ClusterUpgradeStatus {
    /// The revision of this status.
    pub fn revision(&self) -> Revision {
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        Revision { boot: positive(self.boot), sequence: positive(self.sequence) }
    }
}

/// A finding as the API shows it: the outcome is never rewritten, the disposition is added.
pub fn check_result(finding: &Finding, policy: Policy) -> CheckResult {
    let disposition: Disposition = finding.outcome.disposition(policy);
    CheckResult {
        check: cut(&finding.check, 128),
        outcome: finding.outcome.into(),
        disposition: disposition.into(),
        reason: cut(&finding.reason, 128),
        message: cut(&finding.message, 1024),
        subjects: finding.subjects.iter().take(32).map(|subject| cut(subject, 253)).collect(),
    }
}

impl From<&CheckResult> for Finding {
    fn from(result: &CheckResult) -> Self {
        Self {
            check: result.check.clone(),
            outcome: result.outcome.into(),
            reason: result.reason.clone(),
            message: result.message.clone(),
            subjects: result.subjects.clone(),
        }
    }
}

impl From<&Insight> for InsightStatus {
    fn from(insight: &Insight) -> Self {
        Self {
            id: cut(&insight.id, 253),
            reason: cut(&insight.reason, 128),
            since_time: insight.since,
            level: insight.level.into(),
            impact: insight.impact.into(),
            message: cut(&insight.message, 2048),
            remediation: cut(&insight.remediation, 1024),
            clusters: None,
        }
    }
}

/// At most `max` characters of `text`, the last one an ellipsis when some were cut off.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}
