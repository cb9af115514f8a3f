//! Whether the hub's wish is obeyed: never an old leader's, never an older campaign's.

use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeSpec,
    cluster_upgrade::{Origin, UpgradeType},
};
use wavelift_core::{
    fence::{Fence, Term},
    plan::Plan,
};

use super::{is_terminal, term};
use crate::link::{Assignment, Control};

/// Why a wish is not obeyed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It comes from a leader that has been replaced.
    #[error("term {offered} is lower than {highest}, which was obeyed before")]
    LowerTerm {
        /// Its term.
        offered: Term,
        /// The highest that was obeyed.
        highest: Term,
    },
    /// It belongs to an older epoch or attempt.
    #[error("fence {offered} is older than {present}")]
    OlderFence {
        /// Its fence.
        offered: Fence,
        /// The fence of what is there.
        present: Fence,
    },
    /// It belongs to another epoch or attempt than what is there.
    #[error("fence {offered} is not {present}")]
    OtherFence {
        /// Its fence.
        offered: Fence,
        /// The fence of what is there.
        present: Fence,
    },
    /// Another upgrade of this name is there and has not ended, or a person wrote it.
    #[error("another upgrade of this name is there")]
    OtherUpgrade,
    /// The document is not what it should be.
    #[error("the spec is not valid: {0}")]
    Invalid(String),
}

impl Refusal {
    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::LowerTerm { .. } => "lower_term",
            Self::OlderFence { .. } => "older_fence",
            Self::OtherFence { .. } => "other_fence",
            Self::OtherUpgrade => "other_upgrade",
            Self::Invalid(_) => "invalid",
        }
    }
}

/// Judges an assignment by what is there; the spec to be written.
pub fn judge(
    current: Option<&ClusterUpgrade>,
    assignment: &Assignment,
    highest: Term,
) -> Result<ClusterUpgradeSpec, Refusal> {
    let highest = current.and_then(term).map_or(highest, |seen| seen.max(highest));
    if assignment.term < highest {
        return Err(Refusal::LowerTerm { offered: assignment.term, highest });
    }
    let spec = spec(&assignment.spec_json)?;
    let own = fence_of(&spec, assignment.fence.uid.as_str())?;
    if own != assignment.fence {
        let text = format!("its fence is {own}, the message's {}", assignment.fence);
        return Err(Refusal::Invalid(text));
    }
    let Some(current) = current else { return Ok(spec) };
    let present = fence_of(&current.spec, current.metadata.uid.as_deref().unwrap_or("-"))?;
    if current.spec.origin == Origin::Local {
        return Err(Refusal::OtherUpgrade);
    }
    if present.uid != own.uid {
        // The same name, another campaign: only over one that has ended.
        return if is_terminal(current) { Ok(spec) } else { Err(Refusal::OtherUpgrade) };
    }
    if own < present {
        return Err(Refusal::OlderFence { offered: own, present });
    }
    Ok(spec)
}

/// Judges a control message by what is there.
pub(super) fn judge_control(
    current: &ClusterUpgrade,
    control: &Control,
    highest: Term,
) -> Result<(), Refusal> {
    let highest = term(current).map_or(highest, |seen| seen.max(highest));
    if control.term < highest {
        return Err(Refusal::LowerTerm { offered: control.term, highest });
    }
    if current.spec.origin == Origin::Local {
        return Err(Refusal::OtherUpgrade);
    }
    let present = fence_of(&current.spec, current.metadata.uid.as_deref().unwrap_or("-"))?;
    if control.fence == present {
        return Ok(());
    }
    let offered = control.fence.clone();
    Err(if offered.uid == present.uid && offered < present {
        Refusal::OlderFence { offered, present }
    } else {
        Refusal::OtherFence { offered, present }
    })
}

/// Reads a spec that the hub wrote.
pub(super) fn spec(json: &[u8]) -> Result<ClusterUpgradeSpec, Refusal> {
    let spec: ClusterUpgradeSpec =
        serde_json::from_slice(json).map_err(|error| Refusal::Invalid(error.to_string()))?;
    if spec.origin != Origin::Hub || spec.kind != UpgradeType::Plan {
        return Err(Refusal::Invalid("the hub writes plans with origin Hub".to_owned()));
    }
    let Some(plan) = &spec.plan else {
        return Err(Refusal::Invalid("it has no plan".to_owned()));
    };
    Plan::try_from(plan).map_err(|error| Refusal::Invalid(error.to_string()))?;
    Ok(spec)
}

fn fence_of(spec: &ClusterUpgradeSpec, own_uid: &str) -> Result<Fence, Refusal> {
    spec.fence(own_uid).map_err(|error| Refusal::Invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wavelift_core::ids::Uid;

    use super::*;
    use crate::link::{ControlAction, UpgradeKey};

    fn fence(uid: &str, epoch: u64, attempt: u32) -> Fence {
        Fence { uid: Uid::try_from(uid).unwrap(), epoch, attempt }
    }

    fn document(uid: &str, epoch: u64, attempt: u32) -> Value {
        json!({
            "origin": "Hub", "type": "Plan", "epoch": epoch, "attempt": attempt, "stage": "Rollout",
            "plan": {"steps": [{"namespace": "trees", "moves": [
                {"package": "oak", "from": "oak.v1", "to": "oak.v2", "toVersion": "2.0.0"}]}]},
            "fleetUpgrade": {"namespace": "ops", "name": "autumn", "uid": uid},
        })
    }

    fn assignment(fence: &Fence, term: u64) -> Assignment {
        let spec = document(fence.uid.as_str(), fence.epoch, fence.attempt);
        Assignment {
            fence: fence.clone(),
            term: Term(term),
            upgrade: UpgradeKey {
                namespace: "c1".try_into().unwrap(),
                name: "autumn-1".try_into().unwrap(),
            },
            spec_json: serde_json::to_vec(&spec).unwrap().into(),
        }
    }

    fn stored(fence: &Fence, term: u64, state: &str) -> ClusterUpgrade {
        serde_json::from_value(json!({
            "apiVersion": "wavelift.io/v1alpha1", "kind": "ClusterUpgrade",
            "metadata": {"name": "autumn-1", "uid": "own",
                "annotations": {"wavelift.io/term": term.to_string()}},
            "spec": document(fence.uid.as_str(), fence.epoch, fence.attempt),
            "status": {"state": state, "epoch": fence.epoch, "attempt": fence.attempt},
        }))
        .unwrap()
    }

    #[test]
    fn an_old_leader_or_an_older_fence_is_not_obeyed() {
        let present = fence("u", 3, 1);
        let at = |state| stored(&present, 7, state);
        let kind = |current: Option<&ClusterUpgrade>, fence: &Fence, term, highest| {
            judge(current, &assignment(fence, term), Term(highest)).map_err(|r| r.kind()).err()
        };
        assert_eq!(kind(None, &present, 1, 0), None);
        assert_eq!(kind(None, &present, 4, 5), Some("lower_term"));
        assert_eq!(kind(Some(&at("Upgrading")), &present, 6, 0), Some("lower_term"));
        assert_eq!(kind(Some(&at("Upgrading")), &present, 7, 7), None, "the same again");
        assert_eq!(kind(Some(&at("Failed")), &fence("u", 3, 2), 8, 7), None, "a retry");
        assert_eq!(kind(Some(&at("Failed")), &fence("u", 3, 0), 8, 7), Some("older_fence"));
        assert_eq!(kind(Some(&at("Failed")), &fence("u", 2, 9), 8, 7), Some("older_fence"));
        assert_eq!(kind(Some(&at("Upgrading")), &fence("v", 9, 9), 8, 7), Some("other_upgrade"));
        assert_eq!(kind(Some(&at("Succeeded")), &fence("v", 1, 0), 8, 7), None);
    }

    #[test]
    fn a_spec_that_is_not_the_messages_is_not_obeyed() {
        let mut other = assignment(&fence("u", 3, 1), 1);
        other.fence.epoch = 4;
        assert_eq!(judge(None, &other, Term(0)).unwrap_err().kind(), "invalid");
        let mut empty = assignment(&fence("u", 3, 1), 1);
        empty.spec_json = bytes::Bytes::from_static(b"{}");
        assert_eq!(judge(None, &empty, Term(0)).unwrap_err().kind(), "invalid");
    }

    #[test]
    fn a_control_counts_for_its_own_fence_alone() {
        let present = fence("u", 3, 1);
        let current = stored(&present, 7, "Upgrading");
        let kind = |fence: &Fence, term| {
            let control = Control {
                fence: fence.clone(),
                term: Term(term),
                upgrade: assignment(fence, term).upgrade,
                action: ControlAction::Cancel,
            };
            judge_control(&current, &control, Term(7)).map_err(|r| r.kind()).err()
        };
        assert_eq!(kind(&present, 7), None);
        assert_eq!(kind(&present, 6), Some("lower_term"));
        assert_eq!(kind(&fence("u", 2, 1), 7), Some("older_fence"));
        assert_eq!(kind(&fence("u", 4, 0), 7), Some("other_fence"));
        assert_eq!(kind(&fence("v", 3, 1), 7), Some("other_fence"));
    }
}
