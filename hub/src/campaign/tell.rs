//! What the agents are told: checks that are asked for, the part that is theirs, and how the user
//! steers. All of it is safe to repeat, and is said again to an agent that comes back.

use wavelift_api::cluster_upgrade::{UpgradeControl, UpgradeStage};
use wavelift_core::{
    campaign::{Control, Decision, Run},
    ids::ClusterName,
};

use super::{
    Commands, Driver,
    apply::{Pass, member_plan},
    memory::Asked,
    observe::Member,
    part::Part,
};
use crate::link::{self, Assignment, CheckRequest, ControlAction, HubCommand, UpgradeKey};

impl<C: Commands> Driver<C> {
    /// Tells the agent what it should be doing, if it does not know.
    pub(super) fn tell(&mut self, pass: &Pass, name: &ClusterName, member: &Member) {
        let (Some(part), Some(session)) = (member.part.clone(), member.session) else { return };
        if pass.decisions.clusters.get(name) == Some(&Decision::Check) {
            self.ask(pass, &member.key, &part, session);
        }
        if part.is_started() && part.is_in_flight() {
            let action = match (&member.run, pass.spec.control) {
                // It was left out: what it does not know of it must not begin.
                (Run::Skipped(_), _) | (_, Control::Cancelled) => ControlAction::Cancel,
                (_, Control::Frozen) => ControlAction::Freeze,
                (_, Control::Running | Control::Paused) => ControlAction::Continue,
            };
            self.assign(&member.key, &part, session, action);
        }
    }

    fn ask(&mut self, pass: &Pass, key: &UpgradeKey, part: &Part, session: link::SessionId) {
        // Checks are about the plan as it is; a part that is being given it comes first.
        let is_present =
            member_plan(pass, &part.cluster).is_some_and(|plan| plan.digest() == part.plan_digest);
        if !is_present {
            return;
        }
        let mut spec = part.spec().clone();
        spec.stage = UpgradeStage::Preflight;
        let Ok(spec_json) = serde_json::to_vec(&spec) else { return };
        let track = self.memory.tracks.entry(key.clone()).or_default();
        // Asked again with the same id, so that whichever answer comes is taken.
        let open = track.asked.as_ref().filter(|asked| {
            asked.fence == part.fence
                && asked.plan_digest == part.plan_digest
                && asked.session == session
        });
        let request_id = if let Some(asked) = open {
            asked.request_id.clone()
        } else {
            if let Some(old) = &track.asked {
                self.memory.requests.remove(&old.request_id);
            }
            self.requests += 1;
            format!("{}-{}", self.context.claim.term().0, self.requests)
        };
        let fence = part.fence.clone();
        let request = CheckRequest {
            request_id: request_id.clone(),
            fence: fence.clone(),
            upgrade: key.clone(),
            spec_json: spec_json.into(),
        };
        if self.send(&part.cluster, HubCommand::Check(request)) {
            self.memory.requests.insert(request_id.clone(), key.clone());
            let plan_digest = part.plan_digest.clone();
            let asked = Asked { request_id, at: pass.now, fence, plan_digest, session };
            self.memory.tracks.entry(key.clone()).or_default().asked = Some(asked);
        }
    }

    /// Gives the agent its part once a session, and tells it of every change of control.
    pub(super) fn assign(
        &mut self,
        key: &UpgradeKey,
        part: &Part,
        session: link::SessionId,
        action: ControlAction,
    ) {
        let fence = part.fence.clone();
        let track = self.memory.tracks.entry(key.clone()).or_default();
        let is_assigned = track.assigned.as_ref() == Some(&(session, fence.clone()));
        let is_told = track.told == Some((session, action));
        if !is_assigned {
            let mut spec = part.spec().clone();
            spec.control = match action {
                ControlAction::Continue => UpgradeControl::Running,
                ControlAction::Freeze => UpgradeControl::Frozen,
                ControlAction::Cancel | ControlAction::Forget => UpgradeControl::Cancelled,
            };
            let Ok(spec_json) = serde_json::to_vec(&spec) else { return };
            let assignment = Assignment {
                fence: fence.clone(),
                upgrade: key.clone(),
                spec_json: spec_json.into(),
            };
            if !self.send(&part.cluster, HubCommand::Assign(assignment)) {
                return;
            }
            let track = self.memory.tracks.entry(key.clone()).or_default();
            track.assigned = Some((session, fence.clone()));
        }
        // What was assigned in this session carried its control; a part that goes on from the
        // beginning needs no further word.
        if is_told || (!is_assigned && action == ControlAction::Continue) {
            self.memory.tracks.entry(key.clone()).or_default().told = Some((session, action));
            return;
        }
        let control = link::Control { fence, upgrade: key.clone(), action };
        if self.send(&part.cluster, HubCommand::Control(control)) {
            self.memory.tracks.entry(key.clone()).or_default().told = Some((session, action));
        }
    }
}
