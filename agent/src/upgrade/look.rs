//! Looks that take requests of their own: at the APIs that a step brings right before its approval,
//! at the custom resources of the new versions once it stands.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use wavelift_api::ClusterUpgrade;
use wavelift_core::check::{OnOutcome, Policy};

use super::{Executor, Running, Seen, advance::Place};
use crate::{
    apis, checks,
    drivers::olm_v0::{
        Action, Decision, Observed, Reason,
        decide::{Gates, Rules, decide, later},
        observe,
    },
    objects,
};

/// How long an objection counts before it is looked for again, at most.
const OBJECTION_MAX: SignedDuration = SignedDuration::from_mins(1);

/// What was found when somebody last looked, with when that was.
#[derive(Debug, Default)]
pub(super) struct Looked {
    before: Option<(Timestamp, Option<(Reason, String)>)>,
    after: Option<(Timestamp, Vec<String>)>,
}

/// How long what was found counts.
#[derive(Debug, Clone, Copy)]
struct Counts {
    before: SignedDuration,
    after: SignedDuration,
}

#[derive(Debug, Clone, Copy)]
enum Ask {
    Before,
    /// Before a plan is tried again: in vain, as long as OLM would refuse it again.
    Again,
    After,
}

// === impl Looked ===

impl Looked {
    /// Puts what still counts beside what is observed.
    fn fill(&mut self, observed: &mut Observed, now: Timestamp, counts: Counts) {
        self.before.take_if(|(at, _)| later(*at, counts.before) <= now);
        self.after.take_if(|(at, _)| later(*at, counts.after) <= now);
        observed.objection = self.before.as_ref().and_then(|(_, objection)| objection.clone());
        observed.unreadable =
            self.after.as_ref().map_or_else(Vec::new, |(_, unreadable)| unreadable.clone());
    }

    /// What a decision rests on and nobody has looked at.
    fn lacks(&self, action: &Action, gates: Gates) -> Option<Ask> {
        match action {
            Action::Approve { .. } if gates == Gates::Closed && self.before.is_none() => {
                Some(Ask::Before)
            }
            Action::RetryPlan { .. } if self.before.is_none() => Some(Ask::Again),
            Action::Done if self.after.is_none() => Some(Ask::After),
            Action::Hold(_)
            | Action::DeletePlan { .. }
            | Action::Approve { .. }
            | Action::RetryPlan { .. }
            | Action::DeleteCsv { .. }
            | Action::ResetSubscription { .. }
            | Action::Wait(_)
            | Action::Done
            | Action::Fail(_) => None,
        }
    }
}

impl Executor {
    /// Decides what a step needs. Where that rests on something that only requests can tell, it is
    /// looked at first.
    pub(super) async fn decision(
        &mut self,
        upgrade: &ClusterUpgrade,
        place: Place<'_>,
        rules: Rules,
        seen: Seen<'_>,
    ) -> Option<(Decision, Observed)> {
        let counts = self.counts();
        let global = self.settings.global_namespaces.clone();
        loop {
            let now = self.clock.now();
            let running = self.running.as_mut()?;
            let Running { memory, looked, authors, watched: Some((_, watched)), .. } = running
            else {
                return None;
            };
            let mut observed = observe::observe(place.step, seen.mirror, watched, &global);
            looked.fill(&mut observed, now, counts);
            observed.authored = authors.told().to_vec();
            let decision = decide(place.step, &observed, memory, rules, now);
            *memory = decision.memory.clone();
            let Some(ask) = looked.lacks(&decision.action, rules.gates) else {
                return Some((decision, observed));
            };
            self.look(ask, upgrade, place, &observed, seen).await;
        }
    }

    /// When to look again at what was found to be in the way.
    pub(super) fn look_again(&self) -> Option<Timestamp> {
        let counts = self.counts();
        let looked = &self.running.as_ref()?.looked;
        let before = looked.before.as_ref().filter(|(_, objection)| objection.is_some());
        let after = looked.after.as_ref().filter(|(_, unreadable)| !unreadable.is_empty());
        let before = before.map(|(at, _)| later(*at, counts.before));
        before.into_iter().chain(after.map(|(at, _)| later(*at, counts.after))).min()
    }

    fn counts(&self) -> Counts {
        Counts {
            before: self.settings.recheck.min(OBJECTION_MAX),
            after: self.settings.driver.stable,
        }
    }

    async fn look(
        &mut self,
        ask: Ask,
        upgrade: &ClusterUpgrade,
        place: Place<'_>,
        observed: &Observed,
        seen: Seen<'_>,
    ) {
        let step = place.step;
        let (before, after) = match ask {
            Ask::Before | Ask::Again => {
                let subscriptions = observed.subscriptions.iter().map(|s| &**s);
                let contents = checks::contents(subscriptions, seen.current);
                let plans = observed.plans.iter().map(|plan| &**plan);
                let plan = apis::plan_of(step, plans).map(objects::name);
                let sources = apis::Sources { contents: &contents, plan };
                let apis = apis::examine(&self.client, step, apis::Turn::Next, sources).await;
                let policy = match ask {
                    Ask::Again => {
                        Policy { on_fail: OnOutcome::Block, on_unknown: OnOutcome::Proceed }
                    }
                    Ask::Before | Ask::After => {
                        upgrade.spec.preflight.clone().unwrap_or_default().into()
                    }
                };
                (Some(checks::objection(&apis, policy)), None)
            }
            Ask::After => {
                let new = step.moves.iter().filter_map(|item| observed.csv(item.to.as_str()));
                let owned = new.flat_map(|csv| &csv.spec.definitions.owned);
                let names: BTreeSet<&str> = owned.map(|owned| owned.name.as_str()).collect();
                let names: Vec<&str> = names.into_iter().collect();
                (None, Some(apis::unreadable(&self.client, &names).await))
            }
        };
        let now = self.clock.now();
        let Some(running) = &mut self.running else { return };
        if let Some(objection) = before {
            running.looked.before = Some((now, objection));
        }
        if let Some(unreadable) = after {
            running.looked.after = Some((now, unreadable));
        }
    }
}
