//! The part of a FleetUpgrade's status that is computed anew at each pass.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use jiff::Timestamp;
use wavelift_api::{
    FleetUpgradeStatus,
    convert::cut,
    fleet_upgrade::{CheckCounts, PreviewPath, StateCount, SummaryStatus, WaveStatus},
    shared::{InsightImpact, InsightLevel, InsightStatus},
};
use wavelift_catalog::planner::Planned;
use wavelift_core::{
    campaign::{Link, Phase, PlanFact, Run, Summary, WaveReport, WaveState},
    check::{Outcome, Verdict, verdict},
    conditions::FleetFacts,
    ids::ClusterName,
    plan::{Plan, Via},
    state::ClusterState,
    target::Target,
};

use super::{
    super::{Commands, Driver, apply::Pass, facts::newest_answer, observe::Member},
    conditions_of, history,
};
use crate::{
    cluster::{Clusters, Held},
    link::UpgradeKey,
};

const PATHS_MAX: usize = 50;
const CHECKS_MAX: usize = 64;
const INSIGHTS_MAX: usize = 20;

impl<C: Commands> Driver<C> {
    /// The status of a pass, with what only transitions change as it was.
    pub(super) fn content(&self, pass: &Pass) -> FleetUpgradeStatus {
        let old = &pass.subject.status;
        let summary = summary(pass);
        let preflight = self.preflight(pass);
        let phase = pass.decisions.phase;
        let halted = history::halted(pass).or_else(|| {
            let is_spent = phase == Phase::Failed || phase == Phase::Halting;
            let is_cancelled = pass.spec.control == wavelift_core::campaign::Control::Cancelled;
            (is_spent && !is_cancelled).then(|| "the failure budget is spent".to_owned())
        });
        let count = |wanted: fn(&PlanFact) -> bool| {
            let clusters = pass.facts.clusters.values();
            let is_open = |run: &Run| *run == Run::NotStarted;
            number(clusters.filter(|c| is_open(&c.run) && wanted(&c.plan)).count())
        };
        let facts = FleetFacts {
            phase,
            stage: pass.spec.stage,
            summary,
            unplanned: count(|plan| matches!(plan, PlanFact::Unknown { .. })),
            no_path: count(|plan| matches!(plan, PlanFact::NoPath { .. })),
            preflight: preflight.verdict,
            halted: halted.as_deref(),
            broken: None,
        };
        let mut status = FleetUpgradeStatus {
            observed_generation: pass.subject.fleet.metadata.generation,
            phase: Some(phase.as_str().to_owned()),
            plan_digest: Some(pass.observed.digest.clone()),
            summary: Some(summary_status(summary)),
            counts: counts(&pass.decisions.counts),
            current_wave: current_wave(&pass.decisions.waves),
            waves: pass.decisions.waves.iter().map(wave_status).collect(),
            preview: preview(pass, &self.clusters),
            // What was found out stands until all of it is found out anew.
            changes: if pass.preview.is_making() {
                old.changes.clone()
            } else {
                crate::preview::status(&pass.preview)
            },
            preflight: preflight.counts,
            insights: self.insights(pass),
            conditions: conditions_of(pass, &facts),
            completion_time: if phase.is_ended() {
                old.completion_time.or(Some(pass.now))
            } else {
                None
            },
            ..old.clone()
        };
        if self.is_settling(pass) && old.plan_digest.is_some() {
            status.plan_digest.clone_from(&old.plan_digest);
            status.preview.clone_from(&old.preview);
            status.changes.clone_from(&old.changes);
        }
        if self.is_planning(pass) {
            // Nobody should consent to a part of the plans.
            status.plan_digest.clone_from(&old.plan_digest);
        }
        status
    }

    /// Right after taking over, agents come back one after another: what was known of those that
    /// are still silent is not taken back yet.
    fn is_settling(&self, pass: &Pass) -> bool {
        let is_early = self.began_at.elapsed() < self.context.settings.settling;
        is_early
            && self.is_inherited(pass)
            && pass.observed.members.values().any(|member| {
                matches!(member.link, Link::Silent { .. })
                    && member.made().is_none()
                    && !member.is_begun()
            })
    }

    /// True when the campaign was there before this hub took over: only then was anything known of
    /// it that could be taken back.
    fn is_inherited(&self, pass: &Pass) -> bool {
        let leading = self.began_at.elapsed().as_secs_f64() * self.context.clock.factor();
        let leading = SignedDuration::try_from_secs_f64(leading).unwrap_or(SignedDuration::MAX);
        let created = pass.subject.fleet.metadata.creation_timestamp.as_ref();
        created.is_some_and(|created| pass.now.duration_since(created.0) > leading)
    }

    /// Whether plans of clusters that are there are still being made, or what they need is on its
    /// way.
    fn is_planning(&self, pass: &Pass) -> bool {
        pass.observed.members.iter().any(|(name, member)| {
            let is_open = member.session.is_some() && !member.is_begun();
            is_open
                && match member.made() {
                    None => true,
                    Some(Planned::Unknown { .. }) => self.is_catalog_awaited(name),
                    Some(Planned::AtTarget | Planned::Plan(_) | Planned::NoPath { .. }) => false,
                }
        })
    }

    fn is_catalog_awaited(&self, cluster: &ClusterName) -> bool {
        let held = self.clusters.get(cluster).and_then(|known| known.inventory.as_ref());
        let sources = held.into_iter().flat_map(|held| &held.inventory.catalogs);
        sources.filter_map(|source| source.digest.as_ref()).any(|digest| {
            // Its plan is made again once the catalog is here; until then it is on its way.
            self.catalogs.is_awaited(digest)
        })
    }

    fn preflight(&self, pass: &Pass) -> Preflight {
        let mut counts: BTreeMap<String, CheckCounts> = BTreeMap::new();
        let mut all = None;
        for member in pass.observed.members.values() {
            let Some(part) = &member.part else { continue };
            let track = self.memory.tracks.get(&member.key);
            let Some((_, findings)) = newest_answer(part, track) else { continue };
            for finding in &findings {
                let entry = counts.entry(finding.check.clone()).or_insert_with(|| CheckCounts {
                    check: cut(&finding.check, 128),
                    ..CheckCounts::default()
                });
                *match finding.outcome {
                    Outcome::Pass => &mut entry.pass,
                    Outcome::Warn => &mut entry.warn,
                    Outcome::Fail => &mut entry.fail,
                    Outcome::Unknown => &mut entry.unknown,
                    Outcome::Skipped => &mut entry.skipped,
                } += 1;
            }
            all = Some(join(all, verdict(&findings, pass.spec.policy)));
        }
        let counts = counts.into_values().take(CHECKS_MAX).collect();
        Preflight { counts, verdict: all }
    }

    /// The loudest findings, one a reason, with how many clusters have it.
    fn insights(&self, pass: &Pass) -> Vec<InsightStatus> {
        let mut all: BTreeMap<String, (InsightStatus, i32)> = BTreeMap::new();
        for (name, member) in &pass.observed.members {
            for mut insight in self.insights_of(member) {
                insight.message = cut(&format!("{name}: {}", insight.message), 2048);
                let (kept, clusters) = all.entry(insight.reason.clone()).or_insert_with(|| {
                    (InsightStatus { id: insight.reason.clone(), ..insight.clone() }, 0)
                });
                kept.level = kept.level.max(insight.level);
                kept.since_time = kept.since_time.min(insight.since_time);
                *clusters += 1;
            }
        }
        let mut insights: Vec<InsightStatus> = all
            .into_values()
            .map(|(insight, clusters)| InsightStatus { clusters: Some(clusters), ..insight })
            .collect();
        insights.sort_by(|a, b| (b.level, b.clusters, &a.id).cmp(&(a.level, a.clusters, &b.id)));
        insights.truncate(INSIGHTS_MAX);
        insights
    }

    /// What is wrong on one cluster: the agent's findings, and its failure.
    pub(in super::super) fn insights_of(&self, member: &Member) -> Vec<InsightStatus> {
        let track = self.memory.tracks.get(&member.key);
        if let Some(since) = track.and_then(|track| track.unwritten_since) {
            return vec![unwritten(&member.key, since)];
        }
        let part = member.part.as_deref();
        let newest = track.zip(part).and_then(|(track, part)| track.heard(&part.fence));
        let newest = newest.map(|newest| &newest.status);
        let durable = part.and_then(|part| part.status());
        let Some(status) = newest.or(durable) else { return vec![] };
        let mut insights = status.insights.clone();
        if let Some(failure) = &status.failure
            && insights.iter().all(|insight| insight.reason != failure.reason)
        {
            insights.push(InsightStatus {
                id: failure.reason.clone(),
                reason: failure.reason.clone(),
                since_time: status.completion_time.unwrap_or_else(|| self.context.clock.now()),
                level: InsightLevel::Error,
                impact: InsightImpact::UpdateStalled,
                message: failure.message.clone(),
                remediation: failure.remediation.clone(),
                clusters: None,
            });
        }
        insights
    }
}

fn unwritten(key: &UpgradeKey, since: Timestamp) -> InsightStatus {
    let reason = "ClusterUpgradeNotWritten".to_owned();
    InsightStatus {
        id: reason.clone(),
        reason,
        since_time: since,
        level: InsightLevel::Error,
        impact: InsightImpact::UpdateStalled,
        message: format!("the hub cannot write ClusterUpgrade {key}"),
        remediation: format!(
            "See that namespace {} exists on the hub and that the hub may write ClusterUpgrades \
             there; its log has the API server's words.",
            key.namespace
        ),
        clusters: None,
    }
}

struct Preflight {
    counts: Vec<CheckCounts>,
    verdict: Option<Verdict>,
}

/// The verdict over two sets of findings.
fn join(before: Option<Verdict>, next: Verdict) -> Verdict {
    match (before, next) {
        (None, next) => next,
        (Some(Verdict::Clear { warnings: a }), Verdict::Clear { warnings: b }) => {
            Verdict::Clear { warnings: a + b }
        }
        (Some(Verdict::Clear { .. }), blocked @ Verdict::Blocked { .. })
        | (Some(blocked @ Verdict::Blocked { .. }), Verdict::Clear { .. }) => blocked,
        (
            Some(Verdict::Blocked { mut checks, unknown: a }),
            Verdict::Blocked { checks: more, unknown: b },
        ) => {
            for check in more {
                if !checks.contains(&check) {
                    checks.push(check);
                }
            }
            Verdict::Blocked { checks, unknown: a || b }
        }
    }
}

pub(in super::super) fn summary(pass: &Pass) -> Summary {
    let mut summary = Summary::default();
    for (name, decision) in &pass.decisions.clusters {
        if let Some(cluster) = pass.facts.clusters.get(name) {
            summary.add(cluster, decision);
        }
    }
    summary
}

pub(in super::super) fn summary_status(summary: Summary) -> SummaryStatus {
    SummaryStatus {
        clusters: int(summary.total()),
        succeeded: int(summary.succeeded),
        failed: int(summary.failed),
        skipped: int(summary.skipped),
        unreachable: int(summary.unreachable),
        not_started: int(summary.not_started),
    }
}

/// States in the order in which they are shown.
pub(in super::super) fn counts(counts: &wavelift_core::campaign::Counts) -> Vec<StateCount> {
    ClusterState::ALL
        .into_iter()
        .filter_map(|state| {
            let clusters = int(*counts.get(&state)?);
            Some(StateCount { state: state.as_str().to_owned(), clusters })
        })
        .collect()
}

pub(in super::super) fn current_wave(waves: &[WaveReport]) -> Option<String> {
    let running = waves.iter().find(|wave| wave.state == WaveState::Running);
    running.map(|wave| wave.name.clone())
}

/// A wave's clusters in some of the states.
pub(in super::super) fn in_states(wave: &WaveReport, states: &[ClusterState]) -> u32 {
    states.iter().filter_map(|state| wave.counts.get(state)).sum()
}

fn wave_status(wave: &WaveReport) -> WaveStatus {
    let of = |states: &[ClusterState]| int(in_states(wave, states));
    WaveStatus {
        name: wave.name.clone(),
        state: wave.state.as_str().to_owned(),
        clusters: int(wave.clusters),
        succeeded: of(&[ClusterState::Succeeded]),
        running: of(&[ClusterState::Upgrading, ClusterState::Verifying]),
        failed: of(&[ClusterState::Failed, ClusterState::Stalled]),
    }
}

/// The paths of all clusters, most clusters first.
fn preview(pass: &Pass, clusters: &Clusters) -> Vec<PreviewPath> {
    let mut paths: BTreeMap<(String, String, String, String), PreviewPath> = BTreeMap::new();
    for (name, member) in &pass.observed.members {
        let held = clusters.get(name).and_then(|known| known.inventory.as_ref());
        for path in paths_of(member, held, pass.spec.aims.targets()) {
            let key = (path.package.clone(), path.from.clone(), path.to.clone(), path.note.clone());
            paths.entry(key).or_insert(PreviewPath { clusters: 0, ..path }).clusters += 1;
        }
    }
    let mut paths: Vec<PreviewPath> = paths.into_values().collect();
    // Stable, so that equal numbers keep the order of packages and versions.
    paths.sort_by_key(|path| std::cmp::Reverse(path.clusters));
    paths.truncate(PATHS_MAX);
    paths
}

fn paths_of(member: &Member, held: Option<&Held>, targets: &[Target]) -> Vec<PreviewPath> {
    if let Some(plan) = member.plan().filter(|plan| !plan.is_empty()) {
        return plan_paths(plan);
    }
    let note = match member.made() {
        Some(Planned::AtTarget) => "already at target".to_owned(),
        Some(Planned::NoPath { why }) => cut(why, 512),
        Some(Planned::Plan(_) | Planned::Unknown { .. }) | None => return vec![],
    };
    let is_at_target = matches!(member.made(), Some(Planned::AtTarget));
    let installed = held.map(|held| installed(held, targets)).unwrap_or_default();
    installed
        .into_iter()
        .map(|(package, version)| PreviewPath {
            package,
            to: if is_at_target { version.clone() } else { String::new() },
            from: version,
            hops: 0,
            clusters: 0,
            note: note.clone(),
        })
        .collect()
}

/// The targets' packages that a cluster has, each with its installed version.
fn installed(held: &Held, targets: &[Target]) -> Vec<(String, String)> {
    let mut found = vec![];
    for namespace in &held.inventory.namespaces {
        for subscription in &namespace.subscriptions {
            let covered =
                |target: &Target| target.covers(&namespace.namespace, &subscription.package);
            if !targets.iter().any(covered) {
                continue;
            }
            let csv = subscription.installed_csv.as_deref().unwrap_or_default();
            let version = namespace.csvs.iter().find(|known| known.name == csv);
            let version = version.map_or(csv, |known| &known.version);
            found.push((cut(&subscription.package, 253), cut(version, 128)));
        }
    }
    found
}

/// Each package of a plan with its versions on the way.
pub(in super::super) fn ways(plan: &Plan) -> BTreeMap<&str, (Option<String>, Vec<String>)> {
    let mut ways: BTreeMap<&str, (Option<String>, Vec<String>)> = BTreeMap::new();
    for item in plan.steps.iter().flat_map(|step| &step.moves) {
        let from = || {
            let csv = item.from.as_ref().map(ToString::to_string);
            item.from_version.clone().or(csv)
        };
        let way = ways.entry(item.package.as_str()).or_insert_with(|| (from(), vec![]));
        way.1.push(item.to_version.clone());
    }
    ways
}

fn plan_paths(plan: &Plan) -> Vec<PreviewPath> {
    let path = |(package, (from, mut to)): (&str, (Option<String>, Vec<String>))| {
        let hops = int(number(to.len()));
        let last = to.pop().unwrap_or_default();
        PreviewPath {
            package: package.to_owned(),
            from: cut(from.as_deref().unwrap_or("(new)"), 128),
            to: cut(&last, 128),
            hops,
            clusters: 0,
            note: cut(&note(plan, package, &to), 512),
        }
    };
    ways(plan).into_iter().map(path).collect()
}

/// What is between the ends of a package's way, and where OLM alone would not stop.
fn note(plan: &Plan, package: &str, between: &[String]) -> String {
    let steps = plan.steps.iter().filter(|step| step.via == Via::PinnedCatalog);
    let moves = steps.flat_map(|step| &step.moves).filter(|m| m.package.as_str() == package);
    let pinned: Vec<&str> = moves.map(|item| item.to_version.as_str()).collect();
    let between = (!between.is_empty()).then(|| format!("via {}", between.join(", ")));
    let pinned =
        (!pinned.is_empty()).then(|| format!("stops at {} by a pinned catalog", pinned.join(", ")));
    between.into_iter().chain(pinned).collect::<Vec<_>>().join("; ")
}

pub(in super::super) fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(in super::super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
