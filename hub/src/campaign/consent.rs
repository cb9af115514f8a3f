//! Whether the user's word covers what would run.
//!
//! The word is `spec.planDigest`. It is taken when Rollout is entered and whenever it changes
//! after that: the plans are frozen in ClusterUpgrades first, then the epoch is raised, in one
//! write with the digest. A ClusterUpgrade made for a later epoch than the campaign's is not
//! covered yet, so a hub that ends between the two writes leaves nothing half consented.

use wavelift_core::{campaign::Stage, plan::Plan};

use super::{part::Part, validate::Spec};

/// What the user's word says about the plans as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The campaign was not launched.
    NotAsked,
    /// It was, and nothing changed since.
    Standing,
    /// It covers the plans as they are and has to be made durable.
    New,
    /// It is about other plans.
    Stale,
}

/// What is durable about the word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken<'a> {
    /// Whether Rollout was entered.
    pub(super) is_entered: bool,
    /// The digest under which; `None` = any plan within the targets.
    pub(super) digest: Option<&'a str>,
}

/// Judges the word: `wanted` is `spec.planDigest`, `present` the digest of the plans as they are.
pub(super) fn word(stage: Stage, wanted: Option<&str>, taken: Taken<'_>, present: &str) -> Word {
    match stage {
        Stage::Preview | Stage::Preflight => Word::NotAsked,
        Stage::Rollout if taken.is_entered && taken.digest == wanted => Word::Standing,
        Stage::Rollout => match wanted {
            None => Word::New,
            Some(wanted) if wanted == present => Word::New,
            Some(_) => Word::Stale,
        },
    }
}

/// Whether the word that froze a cluster's plan in its `part` covers the plan as it is now. It is of
/// no consent that is still being made durable: of no `epoch` that the campaign has not reached.
pub(super) fn covers(part: &Part, now: &Plan, spec: &Spec, epoch: i64) -> bool {
    part.spec().epoch <= epoch
        && (part.plan_digest == now.digest()
            || spec.on_change.allows(&part.plan, now, spec.aims.targets()).is_ok())
}

/// `None` for the empty text: the API writes both for "any plan".
pub(super) fn some(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Taken<'_> = Taken { is_entered: false, digest: None };

    fn rollout(wanted: Option<&str>, taken: Taken<'_>, present: &str) -> Word {
        word(Stage::Rollout, wanted, taken, present)
    }

    #[test]
    fn a_word_counts_for_the_plans_it_names() {
        assert_eq!(word(Stage::Preflight, Some("d"), BEFORE, "d"), Word::NotAsked);
        assert_eq!(rollout(Some("d"), BEFORE, "d"), Word::New);
        assert_eq!(rollout(Some("d"), BEFORE, "e"), Word::Stale);
        assert_eq!(rollout(None, BEFORE, "e"), Word::New);
    }

    #[test]
    fn a_word_that_was_taken_stands_until_it_changes() {
        let taken = |digest| Taken { is_entered: true, digest };
        assert_eq!(rollout(Some("d"), taken(Some("d")), "e"), Word::Standing);
        assert_eq!(rollout(Some("e"), taken(Some("d")), "e"), Word::New);
        assert_eq!(rollout(Some("f"), taken(Some("d")), "e"), Word::Stale);
        assert_eq!(rollout(None, taken(Some("d")), "e"), Word::New);
        assert_eq!(rollout(None, taken(None), "e"), Word::Standing);
        assert_eq!(rollout(Some("e"), taken(None), "e"), Word::New);
    }

    #[test]
    fn empty_and_absent_are_the_same_word() {
        assert_eq!(some(Some("")), None);
        assert_eq!(some(Some("d")), Some("d"));
    }
}
