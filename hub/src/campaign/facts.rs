//! From what was observed to what the scheduler is told.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wavelift_api::{
    cluster_upgrade::ClusterUpgradeStatus, fleet_upgrade::ActionType, shared::PreflightReport,
};
use wavelift_catalog::planner::Planned;
use wavelift_core::{
    campaign::{Campaign, Cluster, Consent, PlanFact, PreflightFact, Request, Run},
    check::{self, Finding, Verdict},
    ids::{ActionId, ClusterName},
};

use super::{
    consent::{self, Word},
    memory::{Memory, Track},
    observe::{Member, Observed, PlanNow, Subject},
    part::Part,
    validate::Spec,
};

/// What the scheduler is told, and what was found on the way.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) campaign: Campaign,
    pub(super) clusters: BTreeMap<ClusterName, Cluster>,
    /// Actions with nothing left to do.
    pub(super) spent: Vec<ActionId>,
    /// Retries that are done with the start of their cluster.
    pub(super) retries: BTreeMap<ClusterName, ActionId>,
}

/// The scheduler's view of a campaign.
pub(super) fn facts(
    subject: &Subject,
    spec: &Spec,
    observed: &Observed,
    word: Word,
    memory: &Memory,
) -> Facts {
    let campaign = Campaign {
        stage: spec.stage,
        control: spec.control,
        waves: observed.waves.clone(),
        budget: spec.budget,
        offline: spec.offline,
        consent: match word {
            Word::Stale => Consent::Stale,
            Word::NotAsked | Word::Standing | Word::New => Consent::Given,
        },
        rollout_since: subject.status.rollout_start_time,
    };
    let (requests, spent, retries) = actions(subject, spec, observed);
    let pending = memory.campaigns.get(&subject.uid).map(|memory| &memory.pending);
    let none = BTreeSet::new();
    let about = About { subject, spec, word, pending: pending.unwrap_or(&none) };
    let clusters = observed.members.iter().map(|(name, member)| {
        let request = requests.get(name).copied().unwrap_or_default();
        let track = memory.tracks.get(&member.key);
        (name.clone(), about.cluster(name, member, track, request))
    });
    Facts { campaign, clusters: clusters.collect(), spent, retries }
}

/// What is the same for all clusters.
struct About<'a> {
    subject: &'a Subject,
    spec: &'a Spec,
    word: Word,
    pending: &'a BTreeSet<ClusterName>,
}

impl About<'_> {
    fn cluster(
        &self,
        name: &ClusterName,
        member: &Member,
        track: Option<&Track>,
        request: Request,
    ) -> Cluster {
        let run = self.run(name, member, track);
        Cluster {
            plan: self.plan(member),
            link: member.link,
            preflight: self.preflight(member, track),
            request,
            holder: member.holder.clone(),
            run,
        }
    }

    /// What was written ahead, or is about to be, counts as in flight.
    fn run(&self, name: &ClusterName, member: &Member, track: Option<&Track>) -> Run {
        let is_ahead = self.pending.contains(name)
            || (self.subject.starting.contains(name)
                && member.part.as_ref().is_none_or(|part| part.needs_start()));
        if is_ahead {
            return Run::InFlight { verifying: false };
        }
        match &member.run {
            Run::InFlight { verifying } => {
                let fence = member.part.as_ref().map(|part| &part.fence);
                let newest = track.zip(fence).and_then(|(track, fence)| track.heard(fence));
                let state = newest.and_then(|newest| newest.status.state);
                let told =
                    state == Some(wavelift_api::cluster_upgrade::ClusterStateName::Verifying);
                Run::InFlight { verifying: *verifying || told }
            }
            Run::NotStarted
            | Run::Succeeded
            | Run::Failed(_)
            | Run::Skipped(_)
            | Run::Unreachable => member.run.clone(),
        }
    }

    fn plan(&self, member: &Member) -> PlanFact {
        if member.is_begun() {
            return PlanFact::Planned;
        }
        let planned = match &member.plan {
            PlanNow::Missing(missing) => {
                return PlanFact::Unknown { missing: (*missing).to_owned() };
            }
            PlanNow::Made(planned) => planned,
        };
        match planned.as_ref() {
            Planned::AtTarget => PlanFact::AtTarget,
            Planned::NoPath { why } => PlanFact::NoPath { why: why.clone() },
            Planned::Unknown { missing } => PlanFact::Unknown { missing: missing.clone() },
            Planned::Plan(plan) => match self.word {
                Word::NotAsked | Word::New => PlanFact::Planned,
                Word::Standing | Word::Stale => {
                    let is_any = self.spec.word.is_none();
                    let is_covered = member.part.as_ref().is_some_and(|part| {
                        consent::covers(part, plan, self.spec, self.subject.status.epoch)
                    });
                    if is_any || is_covered { PlanFact::Planned } else { PlanFact::NotConsented }
                }
            },
        }
    }

    fn preflight(&self, member: &Member, track: Option<&Track>) -> PreflightFact {
        let Some(part) = &member.part else { return PreflightFact::None };
        // Checks speak of a plan: of another one they say nothing.
        let digest = member.plan().map(wavelift_core::plan::Plan::digest);
        if digest.as_ref() != Some(&part.plan_digest) {
            return PreflightFact::None;
        }
        let asked = track.and_then(|track| track.asked.as_ref()).filter(|asked| {
            asked.plan_digest == part.plan_digest
                && asked.fence == part.fence
                && Some(asked.session) == member.session
        });
        if let Some(asked) = asked {
            return PreflightFact::Running { asked_at: asked.at };
        }
        match newest_answer(part, track) {
            Some((at, findings)) => match check::verdict(&findings, self.spec.policy) {
                Verdict::Clear { .. } => PreflightFact::Clear { at },
                Verdict::Blocked { checks, .. } => PreflightFact::Blocked { at, checks },
            },
            None => PreflightFact::None,
        }
    }
}

/// The newest findings about a part's plan: those in memory, else the durable ones.
pub(super) fn newest_answer(
    part: &Part,
    track: Option<&Track>,
) -> Option<(Timestamp, Vec<Finding>)> {
    let answer = track
        .and_then(|track| track.answer.as_ref())
        .filter(|answer| answer.plan_digest == part.plan_digest);
    if let Some(answer) = answer {
        return Some((answer.at, answer.findings.clone()));
    }
    let report = durable_report(part)?;
    Some((report.observed_time, report.results.iter().map(Finding::from).collect()))
}

/// The durable preflight, when it speaks of the part's present plan.
pub(super) fn durable_report(part: &Part) -> Option<&PreflightReport> {
    let speaks =
        |status: &&ClusterUpgradeStatus| status.plan_digest.as_ref() == Some(&part.plan_digest);
    let status = part.object.status.as_ref().filter(speaks)?;
    status.preflight.as_ref()
}

type Wishes = (BTreeMap<ClusterName, Request>, Vec<ActionId>, BTreeMap<ClusterName, ActionId>);

/// The first wish of each cluster that is still to be done, and those with nothing left to do.
fn actions(subject: &Subject, spec: &Spec, observed: &Observed) -> Wishes {
    let mut requests = BTreeMap::new();
    let mut spent = vec![];
    let mut retries = BTreeMap::new();
    for action in &spec.actions {
        if subject.status.done_actions.iter().any(|done| done == action.id.as_str())
            || requests.contains_key(&action.cluster)
        {
            continue;
        }
        let run = observed.members.get(&action.cluster).map(|member| &member.run);
        // A start that was written ahead is under way, whatever the part still says.
        let is_ahead = subject.starting.contains(&action.cluster);
        let request = match (action.kind, run) {
            (ActionType::Retry, Some(Run::Failed(_))) if !is_ahead => Some(Request::Retry),
            (ActionType::Skip, Some(Run::NotStarted | Run::InFlight { .. } | Run::Failed(_))) => {
                Some(Request::Skip)
            }
            (ActionType::Retry | ActionType::Skip, _) => None,
        };
        match request {
            Some(request) => {
                if request == Request::Retry {
                    retries.insert(action.cluster.clone(), action.id.clone());
                }
                requests.insert(action.cluster.clone(), request);
            }
            None => spent.push(action.id.clone()),
        }
    }
    (requests, spent, retries)
}
