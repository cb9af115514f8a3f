//! Everything that one pass over a campaign needs to know, read from the leader's memory in one go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use wavelift_api::{FleetUpgrade, FleetUpgradeStatus};
use wavelift_catalog::planner::Planned;
use wavelift_core::{
    campaign::{Link, Run, Wave},
    ids::{ClusterName, Uid, WaveName},
    plan::{Plan, fleet_digest},
};

use super::{
    memory::Memory,
    objects::Objects,
    part::{self, Part},
    select,
    validate::Spec,
};
use crate::{
    cluster::{Catalogs, Clusters, Planning},
    link::{SessionId, UpgradeKey},
};

/// A campaign as its object says.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) uid: Uid,
    pub(super) key: UpgradeKey,
    pub(super) fleet: Arc<FleetUpgrade>,
    pub(super) status: FleetUpgradeStatus,
    pub(super) starting: BTreeSet<ClusterName>,
}

/// What the leader's memory says about its clusters.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) waves: Vec<Wave>,
    pub(super) members: BTreeMap<ClusterName, Member>,
    /// Digest over all plans as they are now.
    pub(super) digest: String,
}

/// One cluster of a campaign.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: UpgradeKey,
    pub(super) part: Option<Arc<Part>>,
    /// How far it is, by what is durable.
    pub(super) run: Run,
    pub(super) plan: PlanNow,
    pub(super) link: Link,
    pub(super) session: Option<SessionId>,
    /// Another campaign that holds it.
    pub(super) holder: Option<String>,
}

/// A cluster's plan as it would be made now.
#[derive(Debug, Clone)]
pub(super) enum PlanNow {
    Made(Arc<Planned>),
    Missing(&'static str),
}

/// Where to look.
pub(super) struct Sources<'a> {
    pub(super) clusters: &'a Clusters,
    pub(super) catalogs: &'a Catalogs,
    pub(super) planning: &'a mut Planning,
    pub(super) objects: &'a Objects,
    pub(super) memory: &'a Memory,
}

/// Looks.
pub(super) fn observe(sources: &mut Sources<'_>, subject: &Subject, spec: &Spec) -> Observed {
    let also = begun(sources.objects, subject);
    let waves = select::waves(spec, sources.clusters, also);
    let holders = holders(sources.objects, sources.memory, &subject.uid);
    let mut members = BTreeMap::new();
    for cluster in waves.iter().flat_map(|wave| &wave.members) {
        let Some(key) = part::key_of(&subject.key, &subject.uid, cluster) else { continue };
        let known = sources.objects.parts.get(&key);
        let part = known.filter(|part| part.campaign == subject.uid).map(Arc::clone);
        let run = part.as_ref().map_or(Run::NotStarted, |part| part.run());
        let known = sources.clusters.get(cluster);
        let member = Member {
            plan: plan(sources, cluster, part.as_deref(), spec),
            link: sources.clusters.link(cluster),
            session: known.and_then(|known| known.session.as_ref()).map(|(session, _)| *session),
            holder: holders.get(cluster).cloned(),
            key,
            part,
            run,
        };
        members.insert(cluster.clone(), member);
    }
    let digest = fleet_digest(members.iter().filter_map(|(name, one)| Some((name, one.plan()?))));
    Observed { waves, members, digest }
}

/// Clusters that were started, and in which wave: they stay where they are whatever selections and
/// labels say now. Else a failure would count in another wave than its start did, and the failure
/// budget of the first could be passed.
fn begun(objects: &Objects, subject: &Subject) -> BTreeMap<ClusterName, Option<WaveName>> {
    let mut begun: BTreeMap<_, _> =
        subject.starting.iter().map(|name| (name.clone(), None)).collect();
    for (_, part) in objects.parts.iter() {
        if part.campaign == subject.uid && (part.is_started() || part.run() != Run::NotStarted) {
            begun.insert(part.cluster.clone(), part.wave());
        }
    }
    begun
}

/// Clusters that campaigns other than `own` are at work on.
fn holders(objects: &Objects, memory: &Memory, own: &Uid) -> BTreeMap<ClusterName, String> {
    let mut holders = BTreeMap::new();
    for (_, part) in objects.parts.iter() {
        if part.campaign != *own && part.is_in_flight() {
            let name = part.spec().fleet_upgrade.as_ref().map_or("", |reference| &reference.name);
            holders.insert(part.cluster.clone(), name.to_owned());
        }
    }
    for (key, fleet) in objects.fleets.iter() {
        let Some(uid) = fleet.metadata.uid.as_deref().filter(|uid| *uid != own.as_str()) else {
            continue;
        };
        let starting = fleet.status.iter().flat_map(|status| &status.starting);
        for cluster in starting.filter_map(|name| ClusterName::try_from(name.as_str()).ok()) {
            holders.insert(cluster, key.name.to_string());
        }
        let memory = Uid::try_from(uid).ok().and_then(|uid| memory.campaigns.get(&uid));
        for cluster in memory.iter().flat_map(|memory| &memory.pending) {
            holders.insert(cluster.clone(), key.name.to_string());
        }
    }
    holders
}

fn plan(
    sources: &mut Sources<'_>,
    cluster: &ClusterName,
    part: Option<&Part>,
    spec: &Spec,
) -> PlanNow {
    if part.is_some_and(|part| part.is_started() || part.run() != Run::NotStarted) {
        return PlanNow::Missing("nothing: it was started");
    }
    let Some(known) = sources.clusters.get(cluster) else {
        return PlanNow::Missing("its ManagedCluster");
    };
    if known.managed.is_none() {
        return PlanNow::Missing("its ManagedCluster");
    }
    let Some(held) = known.current() else {
        return PlanNow::Missing("its inventory");
    };
    match sources.planning.plan(held, sources.catalogs, &spec.aims) {
        Some(planned) => PlanNow::Made(planned),
        None => PlanNow::Missing("its plan to be made"),
    }
}

impl Observed {
    /// The wave that a cluster is in.
    pub(super) fn wave_of(&self, cluster: &ClusterName) -> Option<&WaveName> {
        let wave = self.waves.iter().find(|wave| wave.members.contains(cluster));
        wave.map(|wave| &wave.name)
    }
}

impl Subject {
    /// It ended, and nobody has asked for more since.
    pub(super) fn is_over(&self) -> bool {
        self.status.completion_time.is_some()
            && self.status.observed_generation == self.fleet.metadata.generation
    }
}

impl Member {
    /// The plan that counts: once it was started or settled the frozen one, before that the one
    /// as it would be made now, and the frozen one where that cannot be told.
    pub(super) fn plan(&self) -> Option<&Plan> {
        let frozen = || self.part.as_ref().map(|part| &part.plan);
        if self.is_begun() {
            return frozen();
        }
        match self.made() {
            Some(Planned::Plan(plan)) => Some(plan),
            Some(Planned::AtTarget | Planned::NoPath { .. }) => None,
            Some(Planned::Unknown { .. }) | None => frozen(),
        }
    }

    /// The plan as it would be made now.
    pub(super) fn made(&self) -> Option<&Planned> {
        match &self.plan {
            PlanNow::Made(planned) => Some(planned),
            PlanNow::Missing(_) => None,
        }
    }

    /// Whether it was started, or left out.
    pub(super) fn is_begun(&self) -> bool {
        self.run != Run::NotStarted || self.part.as_ref().is_some_and(|part| part.is_started())
    }
}
