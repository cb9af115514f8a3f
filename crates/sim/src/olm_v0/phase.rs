//! The phases of a ClusterServiceVersion and the one function that decides its next transition.
//!
//! The decision is pure: what the namespace looks like goes in as [`Facts`], one [`Move`] comes
//! out. It follows the real operator transition by transition, including those that last only
//! some milliseconds.

use jiff::Timestamp;
use std::time::Duration;

use super::queue::after;

/// The phase of a CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    None,
    Pending,
    InstallReady,
    Installing,
    Succeeded,
    Failed,
    Replacing,
    Deleting,
}

/// What the decision about a CSV rests on.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) phase: Phase,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    /// Since when it is in its phase.
    pub(crate) since: Timestamp,
    pub(crate) groups: Groups,
    pub(crate) fail_forward: FailForward,
    /// The CSV that says it replaces this one.
    pub(crate) replaced_by: Option<&'a str>,
    /// Whether one of the CSVs after this one in the chain has Succeeded.
    pub(crate) successor: Successor,
    pub(crate) predecessor: Predecessor,
    pub(crate) requirements: Requirements,
    pub(crate) installation: Installation,
    pub(crate) certificates: Certificates,
    pub(crate) rollout: Rollout,
}

/// How many OperatorGroups the namespace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    None,
    One,
    Many,
}

/// Whether a failed CSV may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailForward {
    Off,
    On,
}

/// Whether a later version has come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    NotYet,
    Succeeded,
}

/// The CSV that this one replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Predecessor {
    Gone,
    /// It says that it must not be upgraded now.
    NotUpgradeable(String),
    There,
}

/// Whether everything that the CSV needs is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirements {
    Met,
    NotMet,
}

/// Whether OLM can install the CSV at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    Possible,
    /// It converts its APIs and still says that it can live in some namespaces only. The real
    /// operator finds that out while it installs, and tries again without end.
    ConvertsForSomeNamespaces,
}

/// The certificates that OLM makes for a CSV's webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificates {
    Fine,
    /// They went with the version before.
    Gone,
}

/// How the CSV's Deployments do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rollout {
    Available,
    /// One is missing, or belongs to another CSV by now.
    Missing(String),
    /// One is not ready, in OLM's words.
    Waiting {
        deployment: String,
        why: String,
    },
    DeadlineExceeded {
        deployment: String,
    },
}

/// What becomes of a CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Stay,
    /// Nothing now; look again then.
    StayUntil(Timestamp),
    To(Transition),
    /// The object goes.
    Delete,
}

/// A new phase with its reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) phase: Phase,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

const NO_GROUP: &str = "NoOperatorGroup";
const MANY_GROUPS: &str = "TooManyOperatorGroups";

/// Decides the next transition of a CSV.
pub(crate) fn decide(facts: &Facts<'_>, install_timeout: Duration, now: Timestamp) -> Move {
    if let Some(decided) = group_trouble(facts) {
        return decided;
    }
    match facts.phase {
        Phase::None => {
            go(Phase::Pending, "RequirementsUnknown", "requirements not yet checked".to_owned())
        }
        Phase::Pending => pending(facts),
        Phase::InstallReady => install_ready(facts),
        Phase::Installing => installing(facts, install_timeout, now),
        Phase::Succeeded => succeeded(facts),
        Phase::Failed => failed(facts),
        Phase::Replacing => replacing(facts),
        Phase::Deleting => Move::Delete,
    }
}

fn group_trouble(facts: &Facts<'_>) -> Option<Move> {
    let (reason, message) = match (facts.phase, facts.groups) {
        (Phase::Replacing | Phase::Deleting, Groups::None | Groups::One | Groups::Many) => {
            return None;
        }
        (_, Groups::One) => return None,
        (_, Groups::None) => (NO_GROUP, "csv in namespace with no operatorgroups"),
        (_, Groups::Many) => (
            MANY_GROUPS,
            "csv created in namespace with multiple operatorgroups, can't pick one automatically",
        ),
    };
    Some(unless_already(facts, Phase::Failed, reason, message.to_owned()))
}

fn pending(facts: &Facts<'_>) -> Move {
    if let Some(decided) = fail_forward(facts) {
        return decided;
    }
    if let Predecessor::NotUpgradeable(why) = &facts.predecessor {
        let message = format!("operator is not upgradeable: {why}");
        return unless_already(facts, Phase::Pending, "OperatorConditionNotUpgradeable", message);
    }
    match facts.requirements {
        Requirements::NotMet => unless_already(
            facts,
            Phase::Pending,
            "RequirementsNotMet",
            "one or more requirements couldn't be found".to_owned(),
        ),
        Requirements::Met => go(
            Phase::InstallReady,
            "AllRequirementsMet",
            "all requirements found, attempting install".to_owned(),
        ),
    }
}

fn install_ready(facts: &Facts<'_>) -> Move {
    match facts.installation {
        Installation::Possible => go(
            Phase::Installing,
            "InstallSucceeded",
            "waiting for install components to report healthy".to_owned(),
        ),
        Installation::ConvertsForSomeNamespaces => go(
            Phase::Failed,
            "InstallComponentFailed",
            "install strategy failed: unable to manage conversion webhook: CSVs with conversion \
             webhooks must support only AllNamespaces"
                .to_owned(),
        ),
    }
}

fn installing(facts: &Facts<'_>, install_timeout: Duration, now: Timestamp) -> Move {
    let times_out = after(facts.since, install_timeout);
    match &facts.rollout {
        Rollout::Available => installed(),
        Rollout::DeadlineExceeded { deployment } => deadline_exceeded(facts, deployment),
        Rollout::Missing(_) | Rollout::Waiting { .. } if now >= times_out => {
            go(Phase::Failed, "InstallCheckFailed", "install timeout".to_owned())
        }
        Rollout::Missing(_) | Rollout::Waiting { .. } => {
            let next = unless_already(facts, Phase::Installing, "InstallWaiting", trouble(facts));
            if next == Move::Stay { Move::StayUntil(times_out) } else { next }
        }
    }
}

fn succeeded(facts: &Facts<'_>) -> Move {
    if let Some(newer) = facts.replaced_by {
        return go(Phase::Replacing, "BeingReplaced", format!("being replaced by csv: {newer}"));
    }
    if facts.certificates == Certificates::Gone {
        let message = "CSV owns resources that require a cert refresh".to_owned();
        return go(Phase::Pending, "NeedsCertRotation", message);
    }
    if facts.requirements == Requirements::NotMet {
        let message = "requirements no longer met".to_owned();
        return go(Phase::Failed, "RequirementsNotMet", message);
    }
    match &facts.rollout {
        Rollout::Available => Move::Stay,
        Rollout::DeadlineExceeded { deployment } => deadline_exceeded(facts, deployment),
        Rollout::Missing(_) | Rollout::Waiting { .. } => {
            go(Phase::Failed, "ComponentUnhealthy", trouble(facts))
        }
    }
}

fn failed(facts: &Facts<'_>) -> Move {
    if let Some(decided) = fail_forward(facts) {
        return decided;
    }
    if facts.reason == NO_GROUP || facts.reason == MANY_GROUPS {
        let message = "InstallModes now support target namespaces".to_owned();
        return go(Phase::Pending, "RequirementsUnknown", message);
    }
    if facts.requirements == Requirements::NotMet {
        return go(Phase::Pending, "RequirementsNotMet", "requirements not met".to_owned());
    }
    if facts.installation == Installation::ConvertsForSomeNamespaces {
        let message = "calculated deployment install is bad".to_owned();
        return go(Phase::Pending, "NeedsReinstall", message);
    }
    match &facts.rollout {
        Rollout::Available => installed(),
        Rollout::DeadlineExceeded { deployment } => deadline_exceeded(facts, deployment),
        Rollout::Missing(_) | Rollout::Waiting { .. } => {
            go(Phase::Pending, "NeedsReinstall", trouble(facts))
        }
    }
}

fn replacing(facts: &Facts<'_>) -> Move {
    match (&facts.predecessor, facts.successor) {
        // The chain is taken down from its far end.
        (Predecessor::There | Predecessor::NotUpgradeable(_), _)
        | (Predecessor::Gone, Successor::NotYet) => Move::Stay,
        (Predecessor::Gone, Successor::Succeeded) => go(
            Phase::Deleting,
            "Replaced",
            "has been replaced by a newer ClusterServiceVersion that has successfully installed."
                .to_owned(),
        ),
    }
}

/// Replaces a CSV that never came up, where the OperatorGroup allows it.
fn fail_forward(facts: &Facts<'_>) -> Option<Move> {
    let newer = facts.replaced_by.filter(|_| facts.fail_forward == FailForward::On)?;
    let message = format!(
        "Fail Forward is enabled, allowing {} csv to be replaced by csv: {newer}",
        facts.phase.as_str()
    );
    Some(go(Phase::Replacing, "BeingReplaced", message))
}

fn installed() -> Move {
    let message = "install strategy completed with no errors".to_owned();
    go(Phase::Succeeded, "InstallSucceeded", message)
}

fn deadline_exceeded(facts: &Facts<'_>, deployment: &str) -> Move {
    let message = format!(
        "install failed: deployment {deployment} not ready before timeout: \
         deployment \"{deployment}\" exceeded its progress deadline"
    );
    unless_already(facts, Phase::Failed, "InstallCheckFailed", message)
}

fn trouble(facts: &Facts<'_>) -> String {
    match &facts.rollout {
        Rollout::Missing(deployment) => {
            format!("installing: missing deployment with name={deployment}")
        }
        Rollout::Waiting { deployment, why } => {
            format!("installing: waiting for deployment {deployment} to become ready: {why}")
        }
        Rollout::Available | Rollout::DeadlineExceeded { .. } => String::new(),
    }
}

fn go(phase: Phase, reason: &'static str, message: String) -> Move {
    Move::To(Transition { phase, reason, message })
}

fn unless_already(facts: &Facts<'_>, phase: Phase, reason: &'static str, message: String) -> Move {
    if facts.phase == phase && facts.reason == reason && facts.message == message {
        Move::Stay
    } else {
        go(phase, reason, message)
    }
}

// === impl Phase ===

impl Phase {
    /// As written in `status.phase`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Pending => "Pending",
            Self::InstallReady => "InstallReady",
            Self::Installing => "Installing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Replacing => "Replacing",
            Self::Deleting => "Deleting",
        }
    }

    /// Reads `status.phase`; what it does not know it takes for a new CSV.
    pub(crate) fn read(text: &str) -> Self {
        [
            Self::Pending,
            Self::InstallReady,
            Self::Installing,
            Self::Succeeded,
            Self::Failed,
            Self::Replacing,
            Self::Deleting,
        ]
        .into_iter()
        .find(|phase| phase.as_str() == text)
        .unwrap_or(Self::None)
    }
}

#[cfg(test)]
mod tests;
