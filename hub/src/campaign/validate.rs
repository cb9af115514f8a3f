//! From the FleetUpgrade as the user wrote it to core's types; what does not fit is refused here
//! and said in the conditions.

use jiff::SignedDuration;
use wavelift_api::{
    FleetUpgrade,
    fleet_upgrade::{
        ActionType, ClusterSelection, FleetUpgradeSpec, OfflinePolicy, OnPlanChange, Selector,
        WaveSpec,
    },
    shared::{OperatorTarget, PinnedCatalog},
};
use wavelift_catalog::planner::Pins;
use wavelift_core::{
    campaign::{Budget, Control, Offline, Stage},
    check::Policy,
    ids::{self, ActionId, ClusterName, WaveName},
    plan::OnChange,
    range::{self, Range},
    target::{Goal, Target},
    version::{self, Version},
};

use super::consent;
use crate::cluster::Aims;

/// Why a FleetUpgrade cannot be carried out as it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// A name is not one.
    #[error("{field}: {source}")]
    Name {
        /// The field.
        field: &'static str,
        /// Why.
        source: ids::Error,
    },
    /// A version is not one.
    #[error("spec.targets: the version of {package} can't be read: {source}")]
    Version {
        /// The package.
        package: String,
        /// Why.
        source: version::Error,
    },
    /// A version range is not one.
    #[error("spec.targets: the version range of {package} can't be read: {source}")]
    Range {
        /// The package.
        package: String,
        /// Why.
        source: range::Error,
    },
    /// Two waves have one name.
    #[error("spec.waves: two waves are called {0}")]
    WaveTwice(String),
    /// Names and a selector, or neither.
    #[error("{field}: give names or a selector, one of them")]
    Selection {
        /// The field.
        field: &'static str,
    },
    /// Nothing is selected.
    #[error("spec.clusters selects no cluster")]
    NoCluster,
}

/// A FleetUpgrade's spec in core's words.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(super) aims: Aims,
    pub(super) clusters: Choice,
    pub(super) stage: Stage,
    pub(super) control: Control,
    pub(super) waves: Vec<WaveRule>,
    pub(super) budget: Budget,
    pub(super) offline: Offline,
    pub(super) policy: Policy,
    /// `spec.planDigest`; `None` = any plan within the targets.
    pub(super) word: Option<String>,
    /// What the word covers beside the very plans it was given for.
    pub(super) on_change: OnChange,
    pub(super) actions: Vec<Action>,
}

/// Clusters by name or by label.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    Names(Vec<ClusterName>),
    Labels(Selector),
}

/// A wave whose members are still to be found.
#[derive(Debug, Clone)]
pub(super) struct WaveRule {
    pub(super) name: WaveName,
    pub(super) members: Choice,
    pub(super) max_concurrent: u32,
    pub(super) max_failures: u32,
}

/// A wish for one cluster.
#[derive(Debug, Clone)]
pub(super) struct Action {
    pub(super) id: ActionId,
    pub(super) cluster: ClusterName,
    pub(super) kind: ActionType,
}

/// Reads a FleetUpgrade.
pub(crate) fn spec(fleet: &FleetUpgrade) -> Result<Spec, Error> {
    let spec = &fleet.spec;
    let targets = spec.targets.operators.iter().map(target).collect::<Result<Vec<_>, _>>()?;
    let pins = match spec.pinned_catalog {
        PinnedCatalog::Never => Pins::Never,
        PinnedCatalog::Allowed => Pins::Allowed,
    };
    Ok(Spec {
        aims: Aims::new(targets, pins),
        clusters: selection(&spec.clusters)?,
        stage: spec.stage.into(),
        control: spec.control.into(),
        waves: waves(spec.waves.as_deref().unwrap_or_default())?,
        budget: budget(spec),
        offline: offline(spec),
        policy: spec.preflight.clone().unwrap_or_default().into(),
        word: consent::some(spec.plan_digest.as_deref()).map(ToOwned::to_owned),
        on_change: match spec.on_plan_change {
            OnPlanChange::Stop => OnChange::Stop,
            OnPlanChange::SameTarget => OnChange::SameTarget,
            OnPlanChange::WithinRange => OnChange::WithinRange,
        },
        actions: actions(spec)?,
    })
}

fn target(target: &OperatorTarget) -> Result<Target, Error> {
    let package = || target.package.clone();
    let goal = match (&target.version, &target.version_range) {
        (Some(version), _) => Goal::Version(
            Version::parse(version)
                .map_err(|source| Error::Version { package: package(), source })?,
        ),
        (None, Some(range)) => Goal::Range(
            Range::parse(range).map_err(|source| Error::Range { package: package(), source })?,
        ),
        (None, None) => Goal::Latest,
    };
    Ok(Target {
        package: name("spec.targets.operators[].package", &target.package)?,
        goal,
        namespace: target
            .namespace
            .as_deref()
            .map(|namespace| name("spec.targets.operators[].namespace", namespace))
            .transpose()?,
    })
}

fn selection(clusters: &ClusterSelection) -> Result<Choice, Error> {
    choice("spec.clusters", clusters.names.as_deref(), clusters.label_selector.as_ref())
}

fn choice(
    field: &'static str,
    names: Option<&[String]>,
    selector: Option<&Selector>,
) -> Result<Choice, Error> {
    match (names, selector) {
        (Some(names), None) => {
            let names = names.iter().map(|text| name(field, text)).collect::<Result<_, _>>()?;
            Ok(Choice::Names(names))
        }
        (None, Some(selector)) => Ok(Choice::Labels(selector.clone())),
        (Some(_), Some(_)) | (None, None) => Err(Error::Selection { field }),
    }
}

fn waves(waves: &[WaveSpec]) -> Result<Vec<WaveRule>, Error> {
    let mut rules: Vec<WaveRule> = vec![];
    for wave in waves {
        let name: WaveName = name("spec.waves[].name", &wave.name)?;
        if rules.iter().any(|rule| rule.name == name) {
            return Err(Error::WaveTwice(wave.name.clone()));
        }
        rules.push(WaveRule {
            name,
            members: choice("spec.waves[]", wave.names.as_deref(), wave.selector.as_ref())?,
            max_concurrent: number(wave.max_concurrent).max(1),
            max_failures: number(wave.max_failures),
        });
    }
    Ok(rules)
}

fn budget(spec: &FleetUpgradeSpec) -> Budget {
    let budget = spec.budget.clone().unwrap_or_default();
    Budget {
        max_failures: budget.max_failures.map(number),
        mode: budget.mode.unwrap_or_default().into(),
    }
}

fn offline(spec: &FleetUpgradeSpec) -> Offline {
    let offline = spec.offline.clone().unwrap_or_default();
    match (offline.policy, offline.deadline_seconds) {
        (OfflinePolicy::Skip, Some(seconds)) => {
            Offline::Skip { deadline: SignedDuration::from_secs(seconds) }
        }
        // Without a deadline nothing says when; the schema asks for one.
        (OfflinePolicy::Skip, None) | (OfflinePolicy::Wait, _) => Offline::Wait,
    }
}

fn actions(spec: &FleetUpgradeSpec) -> Result<Vec<Action>, Error> {
    spec.actions
        .iter()
        .flatten()
        .map(|action| {
            Ok(Action {
                id: name("spec.actions[].id", &action.id)?,
                cluster: name("spec.actions[].cluster", &action.cluster)?,
                kind: action.kind,
            })
        })
        .collect()
}

fn name<T>(field: &'static str, text: &str) -> Result<T, Error>
where
    T: for<'a> TryFrom<&'a str, Error = ids::Error>,
{
    T::try_from(text).map_err(|source| Error::Name { field, source })
}

fn number(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
