//! What happened to each object, as a sequence of distinct states.

use std::collections::BTreeMap;

use serde_json::Value;

use super::recording::Change;
use crate::olm_v0::objects::{at, text};

const DELETED: &str = "deleted";
const SUCCEEDED: &str = "Succeeded/InstallSucceeded";

/// A good upgrade that falls back for a moment, from Succeeded to Succeeded.
const FLAP: &[&str] = &[
    "Failed/RequirementsNotMet",
    "Pending/RequirementsNotMet",
    "InstallReady/AllRequirementsMet",
    "Installing/InstallSucceeded",
    SUCCEEDED,
];

/// A CSV that notices that another one has its Deployment, and takes it back.
const TURN: &[&str] = &[
    "Failed/ComponentUnhealthy",
    "Pending/NeedsReinstall",
    "InstallReady/AllRequirementsMet",
    "Installing/InstallSucceeded",
    "Installing/InstallWaiting",
    SUCCEEDED,
];

/// The states of every object, in the order in which the objects appeared.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    of: BTreeMap<String, Vec<String>>,
    /// The names of the plans, in the order of their creation.
    pub(super) plans: Vec<String>,
}

impl Sequences {
    /// Adds what an event shows, unless it shows nothing new.
    pub(super) fn add(&mut self, kind: &str, name: &str, change: Change, object: &Value) {
        let id = match kind {
            "Subscription" | "ClusterServiceVersion" => format!("{kind} {name}"),
            "InstallPlan" => {
                let known = self.plans.iter().position(|known| known == name);
                let place = known.unwrap_or_else(|| {
                    self.plans.push(name.to_owned());
                    self.plans.len() - 1
                });
                format!("InstallPlan {}", place + 1)
            }
            _ => return,
        };
        let state =
            if change == Change::Deleted { DELETED.to_owned() } else { state(kind, object) };
        let states = self.of.entry(id).or_default();
        if states.last() != Some(&state) {
            states.push(state);
        }
    }

    /// The sequences without what is free to differ.
    pub(super) fn settled(&self, is_fight_free: bool) -> BTreeMap<String, Vec<String>> {
        let settle = |(id, states): (&String, &Vec<String>)| {
            let mut states = without(states, FLAP);
            if is_fight_free {
                states = without(&states, TURN);
            }
            (id.clone(), states)
        };
        self.of.iter().map(settle).collect()
    }

    /// How often a CSV took a Deployment back from another.
    pub(super) fn turns(&self) -> usize {
        self.of.values().flatten().filter(|state| *state == TURN[0]).count()
    }
}

fn state(kind: &str, object: &Value) -> String {
    match kind {
        "Subscription" => ["state", "currentCSV", "installedCSV"]
            .map(|field| text(object, &format!("/status/{field}")))
            .join(" | "),
        "InstallPlan" => {
            let phase = text(object, "/status/phase");
            format!("{phase} | {}", at(object, "/spec/approved"))
        }
        _ => format!("{}/{}", text(object, "/status/phase"), text(object, "/status/reason")),
    }
}

/// Takes every whole `block` that follows a success out of `states`, and one that has only begun
/// off their end.
fn without(states: &[String], block: &[&str]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut rest = states;
    while let Some((first, others)) = rest.split_first() {
        if kept.last().is_some_and(|last| last == SUCCEEDED) {
            let same = rest.iter().zip(block).take_while(|(state, wanted)| state == wanted).count();
            if same == block.len() || (same > 0 && same == rest.len()) {
                rest = &rest[same..];
                continue;
            }
        }
        kept.push(first.clone());
        rest = others;
    }
    kept
}

/// The first object whose states in `longer` do not begin with those in `shorter`.
pub(super) fn not_a_prefix(
    shorter: &BTreeMap<String, Vec<String>>,
    longer: &BTreeMap<String, Vec<String>>,
) -> Option<String> {
    shorter.iter().find_map(|(id, short)| {
        let long = longer.get(id).map_or(&[][..], Vec::as_slice);
        (!long.starts_with(short)).then(|| format!("{id}: {short:?} does not begin {long:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(states: &[&str]) -> Vec<String> {
        states.iter().map(|state| (*state).to_owned()).collect()
    }

    #[test]
    fn only_a_whole_fall_or_one_at_the_end_is_taken_out() {
        let mut states = vec![SUCCEEDED];
        states.extend(FLAP);
        states.push("Replacing/BeingReplaced");
        assert_eq!(
            without(&strings(&states), FLAP),
            strings(&[SUCCEEDED, "Replacing/BeingReplaced"])
        );
        let begun = strings(&[SUCCEEDED, FLAP[0], FLAP[1]]);
        assert_eq!(without(&begun, FLAP), strings(&[SUCCEEDED]));
        let other = strings(&[SUCCEEDED, FLAP[0], "Deleting/Replaced"]);
        assert_eq!(without(&other, FLAP), other);
    }
}
