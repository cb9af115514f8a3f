//! The board: every campaign and every cluster as people see them, with what the agents said
//! since the last transition laid over what is durable.

mod cluster;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use wavelift_api::{
    FleetUpgradeStatus,
    convert::cut,
    fleet_upgrade::BudgetMode,
    live::{
        AgentStateName, AgentView, BudgetView, LeaderView, PhaseName, UpgradeKey, UpgradeRow,
        UpgradeView, WaveView,
    },
    shared::{InsightLevel, OperatorTarget},
};
use wavelift_core::{
    campaign::{self, Phase, Run, SkipReason, WaveReport, WaveState},
    ids::ClusterName,
    state::ClusterState,
};

use super::{
    Commands, Driver,
    apply::Pass,
    report::{Shown, content},
};
use crate::{
    cluster::Known,
    view::{Fleet, Upgrade},
};

impl<C: Commands> Driver<C> {
    /// Everything that is shown, as of now.
    pub(super) fn fleet_view(&mut self) -> Fleet {
        self.note_since();
        let upgrades = self.memory.campaigns.values().filter_map(|memory| memory.shown.as_ref());
        let upgrades = upgrades.map(|shown| {
            let upgrade = self.upgrade(shown);
            (upgrade.key(), Arc::new(upgrade))
        });
        let agents = self.clusters.iter().map(|(name, known)| {
            (name.to_string(), Arc::new(agent_view(name, known, self.step_seconds())))
        });
        let term = self.context.claim.term().0;
        Fleet {
            sequence: 0,
            leader: LeaderView { identity: self.context.identity.clone(), term },
            agents: agents.collect(),
            upgrades: upgrades.collect::<BTreeMap<UpgradeKey, _>>(),
        }
    }

    /// A minute of real time in upgrade time.
    #[expect(clippy::cast_possible_truncation, reason = "a factor has no fraction that matters")]
    fn step_seconds(&self) -> i64 {
        (60.0 * self.context.clock.factor()) as i64
    }

    /// Shows the numbers behind the board.
    pub(super) fn count(&self) {
        let metrics = &self.context.metrics;
        let connected = self.clusters.iter().filter(|(_, known)| known.is_connected()).count();
        let all = self.clusters.iter().count();
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.agents.with(["Connected"]).set(gauge(connected));
        metrics.agents.with(["Silent"]).set(gauge(all - connected));
        metrics.catalogs.set(gauge(self.catalogs.len()));
        metrics.show(self.memory.campaigns.values().filter_map(|memory| memory.shown.as_ref()));
        metrics.show_inventory(&self.versions());
    }

    /// Clusters by installed version, of the packages that campaigns under way are about.
    fn versions(&self) -> BTreeMap<(String, String), i64> {
        const SERIES_MAX: usize = 500;
        let shown = self.memory.campaigns.values().filter_map(|memory| memory.shown.as_ref());
        let packages: BTreeSet<&str> = shown
            .filter(|shown| shown.status.completion_time.is_none())
            .flat_map(Shown::targets)
            .map(|target| target.package.as_str())
            .collect();
        let mut versions = BTreeMap::new();
        if packages.is_empty() {
            return versions;
        }
        let held = self.clusters.iter().filter_map(|(_, known)| known.inventory.as_ref());
        for namespace in held.flat_map(|held| &held.inventory.namespaces) {
            for one in &namespace.subscriptions {
                if !packages.contains(one.package.as_str()) {
                    continue;
                }
                let csv = one.installed_csv.as_deref().unwrap_or_default();
                let known = namespace.csvs.iter().find(|known| known.name == csv);
                let version = cut(known.map_or(csv, |known| &known.version), 128);
                if versions.len() < SERIES_MAX {
                    *versions.entry((one.package.clone(), version)).or_insert(0) += 1;
                }
            }
        }
        versions
    }

    /// Notes since when each cluster is in its state.
    fn note_since(&mut self) {
        let now = self.context.clock.now();
        for memory in self.memory.campaigns.values() {
            let Some(pass) = memory.shown.as_ref().and_then(|shown| shown.pass.as_ref()) else {
                continue;
            };
            for (name, member) in &pass.observed.members {
                let Some(state) = state_of(pass, name) else { continue };
                let track = self.memory.tracks.entry(member.key.clone()).or_default();
                if track.shown_since.is_none_or(|(shown, _)| shown != state) {
                    track.shown_since = Some((state, now));
                }
            }
        }
    }

    fn upgrade(&self, shown: &Shown) -> Upgrade {
        let Some(pass) = &shown.pass else {
            let row = row(shown, Phase::Planning);
            let view = UpgradeView {
                row,
                plan_digest: None,
                consented_digest: None,
                epoch: shown.status.epoch,
                waves: vec![],
                budget: BudgetView {
                    max_failures: None,
                    mode: BudgetMode::Strict,
                    failed: 0,
                    in_flight: 0,
                },
                preview: vec![],
                changes: vec![],
                preflight: vec![],
                insights: vec![],
                history: shown.status.history.clone(),
                conditions: shown.status.conditions.clone(),
            };
            return Upgrade { view, clusters: vec![], preview: Arc::default() };
        };
        let mut clusters = vec![];
        for wave in &pass.observed.waves {
            for name in &wave.members {
                if let Some(member) = pass.observed.members.get(name) {
                    clusters.push(Arc::new(self.cluster(pass, wave.name.as_str(), name, member)));
                }
            }
        }
        let status = &shown.status;
        let view = UpgradeView {
            row: row(shown, phase_of(shown, pass)),
            plan_digest: status.plan_digest.clone(),
            consented_digest: status
                .rollout_start_time
                .and_then(|_| status.consented_digest.clone()),
            epoch: status.epoch,
            waves: waves(pass),
            budget: budget(pass),
            preview: status.preview.clone(),
            changes: status.changes.clone(),
            preflight: status.preflight.clone(),
            insights: status.insights.clone(),
            history: status.history.clone(),
            conditions: status.conditions.clone(),
        };
        Upgrade { view, clusters, preview: Arc::clone(&pass.preview) }
    }
}

impl Shown {
    /// Namespace and name.
    pub(crate) fn names(&self) -> (&str, &str) {
        (self.subject.key.namespace.as_str(), self.subject.key.name.as_str())
    }

    /// What is upgraded, to where.
    pub(crate) fn targets(&self) -> &[OperatorTarget] {
        &self.subject.fleet.spec.targets.operators
    }

    /// As it is, or is about to be, written.
    pub(crate) fn status(&self) -> &FleetUpgradeStatus {
        &self.status
    }

    /// How many clusters' operators report a condition with a status, by both; nothing of a campaign
    /// that is over.
    pub(crate) fn operator_conditions(&self) -> BTreeMap<(&str, &str), i64> {
        let mut counts = BTreeMap::new();
        let is_over = self.status.completion_time.is_some();
        let pass = self.pass.as_ref().filter(|_| !is_over);
        for member in pass.iter().flat_map(|pass| pass.observed.members.values()) {
            let status = member.part.as_ref().and_then(|part| part.status());
            let reported = status.map_or(&[][..], |status| status.operator_conditions.as_slice());
            let reported: BTreeSet<(&str, &str)> =
                reported.iter().map(|c| (c.kind.as_str(), c.status.as_str())).collect();
            for condition in reported {
                *counts.entry(condition).or_insert(0) += 1;
            }
        }
        counts
    }

    /// The waves as the last pass found them.
    pub(crate) fn waves(&self) -> &[WaveReport] {
        self.pass.as_ref().map_or(&[], |pass| &pass.decisions.waves)
    }
}

fn state_of(pass: &Pass, name: &ClusterName) -> Option<ClusterState> {
    let cluster = pass.facts.clusters.get(name)?;
    let decision = pass.decisions.clusters.get(name)?;
    Some(campaign::state(cluster, decision))
}

/// Of one that is over, how it ended.
fn phase_of(shown: &Shown, pass: &Pass) -> Phase {
    let ended = [Phase::Succeeded, Phase::SucceededWithFailures, Phase::Failed, Phase::Cancelled];
    let written = shown.status.phase.as_deref();
    let ended = ended.into_iter().find(|phase| Some(phase.as_str()) == written);
    match ended {
        Some(phase) if shown.status.completion_time.is_some() => phase,
        Some(_) | None => pass.decisions.phase,
    }
}

fn row(shown: &Shown, phase: Phase) -> UpgradeRow {
    let fleet = &shown.subject.fleet;
    let status = &shown.status;
    let created = fleet.metadata.creation_timestamp.as_ref();
    let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
    let loud = |level| level >= InsightLevel::Warning;
    let complete = WaveState::Complete.as_str();
    let waves_complete = status.waves.iter().filter(|wave| wave.state == complete).count();
    UpgradeRow {
        namespace: shown.subject.key.namespace.to_string(),
        name: shown.subject.key.name.to_string(),
        uid: shown.subject.uid.to_string(),
        generation: fleet.metadata.generation.unwrap_or(0),
        creation_time: created.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        stage: fleet.spec.stage,
        control: fleet.spec.control,
        phase: PhaseName::from(phase),
        message: ready.map(|condition| condition.message.clone()).unwrap_or_default(),
        targets: fleet.spec.targets.operators.clone(),
        summary: status.summary.unwrap_or_default(),
        states: status.counts.clone(),
        current_wave: status.current_wave.clone(),
        waves_complete: content::number(waves_complete),
        waves_total: content::number(status.waves.len()),
        needs_you: content::number(
            status.insights.iter().filter(|insight| loud(insight.level)).count(),
        ),
        rollout_start_time: status.rollout_start_time,
        completion_time: status.completion_time,
    }
}

fn waves(pass: &Pass) -> Vec<WaveView> {
    let reports = &pass.decisions.waves;
    let max = pass.spec.budget.max_failures;
    pass.facts
        .campaign
        .waves
        .iter()
        .zip(reports)
        .map(|(wave, report)| {
            let tolerated = max.map_or(wave.max_failures, |max| max.min(wave.max_failures));
            // What runs may all fail: in mode Strict no more than one beyond what is tolerated.
            let parallel = tolerated.saturating_add(1);
            let is_narrower = pass.spec.budget.mode == campaign::BudgetMode::Strict
                && parallel < wave.max_concurrent;
            WaveView {
                name: report.name.clone(),
                state: report.state.into(),
                clusters: report.clusters,
                succeeded: content::in_states(report, &[ClusterState::Succeeded]),
                running: content::in_states(
                    report,
                    &[ClusterState::Upgrading, ClusterState::Verifying],
                ),
                failed: content::in_states(report, &[ClusterState::Failed, ClusterState::Stalled]),
                states: content::counts(&report.counts),
                max_concurrent: wave.max_concurrent,
                max_failures: wave.max_failures,
                budget_parallelism: is_narrower.then_some(parallel),
            }
        })
        .collect()
}

fn budget(pass: &Pass) -> BudgetView {
    let (mut failed, mut in_flight) = (0, 0);
    for cluster in pass.facts.clusters.values() {
        match &cluster.run {
            Run::Failed(_) => failed += 1,
            Run::InFlight { .. } | Run::Skipped(SkipReason::UserInFlight) => in_flight += 1,
            Run::NotStarted
            | Run::Succeeded
            | Run::Skipped(SkipReason::User | SkipReason::Cancelled)
            | Run::Unreachable => {}
        }
    }
    BudgetView {
        max_failures: pass.spec.budget.max_failures,
        mode: pass.spec.budget.mode.into(),
        failed,
        in_flight,
    }
}

fn agent_state(known: Option<&Known>) -> AgentStateName {
    if known.is_some_and(Known::is_connected) {
        AgentStateName::Connected
    } else {
        AgentStateName::Silent
    }
}

/// When an agent was last heard, in coarse steps while it is connected: a sign of life is no news.
fn last_heard(known: &Known, step: i64) -> Option<Timestamp> {
    let heard = known.heard?;
    if known.is_connected() {
        let minute = heard.as_second() - heard.as_second().rem_euclid(step.max(1));
        Timestamp::from_second(minute.max(known.since.as_second())).ok()
    } else {
        Some(heard)
    }
}

fn agent_view(name: &ClusterName, known: &Known, step: i64) -> AgentView {
    let hello = known.session.as_ref().map(|(_, hello)| hello);
    AgentView {
        cluster: name.to_string(),
        state: agent_state(Some(known)),
        since_time: Some(known.since),
        last_heard_time: last_heard(known, step),
        version: hello.map(|hello| hello.agent_version.clone()),
        kube_version: hello
            .map(|hello| hello.kube_version.clone())
            .filter(|version| !version.is_empty()),
    }
}
