//! What holds for every campaign under every interleaving.
//!
//! A fleet is played against the scheduler: each round it decides, the decisions are carried out,
//! and then anything may happen, in any order: answers come late or never, clusters fail, fall
//! silent and come back, the user pauses, retries and skips.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{
    Budget, BudgetMode, Campaign, Cluster, Consent, Control, Decision, Failure, Limits, Link,
    Offline, PlanFact, PreflightFact, Request, Run, Settled, SkipReason, Stage, Wave, decide,
    tables,
};
use crate::ids::ClusterName;

#[derive(Debug, Clone)]
struct Setup {
    /// Members, maxConcurrent and maxFailures of each wave.
    waves: Vec<(usize, u32, u32)>,
    total: Option<u32>,
    mode: BudgetMode,
    offline: Offline,
    /// What happens, one list a round: (cluster, what).
    rounds: Vec<Vec<(usize, u8)>>,
}

fn setup(mode: impl Strategy<Value = BudgetMode>) -> impl Strategy<Value = Setup> {
    let waves = prop::collection::vec((1_usize..6, 1_u32..6, 0_u32..4), 1..4);
    let offline = prop_oneof![
        Just(Offline::Wait),
        (1_i64..20).prop_map(|mins| Offline::Skip { deadline: SignedDuration::from_mins(mins) }),
    ];
    let happenings = prop::collection::vec((0_usize..18, 0_u8..16), 0..12);
    let rounds = prop::collection::vec(happenings, 1..40);
    (waves, prop::option::of(0_u32..4), mode, offline, rounds).prop_map(
        |(waves, total, mode, offline, rounds)| Setup { waves, total, mode, offline, rounds },
    )
}

fn any_mode() -> impl Strategy<Value = BudgetMode> {
    prop_oneof![Just(BudgetMode::Strict), Just(BudgetMode::StopOnBreach)]
}

fn name(index: usize) -> ClusterName {
    format!("c{index:02}").try_into().unwrap()
}

struct Fleet {
    campaign: Campaign,
    clusters: BTreeMap<ClusterName, Cluster>,
    now: i64,
    starts: BTreeMap<ClusterName, u32>,
    retries: BTreeMap<ClusterName, u32>,
}

impl Fleet {
    fn new(setup: &Setup) -> Self {
        let mut next = 0;
        let mut waves = vec![];
        for (index, &(members, max_concurrent, max_failures)) in setup.waves.iter().enumerate() {
            let wave = Wave {
                name: format!("w{index}").as_str().try_into().unwrap(),
                members: (next..next + members).map(name).collect(),
                max_concurrent,
                max_failures,
            };
            next += members;
            waves.push(wave);
        }
        let fresh = Cluster { preflight: PreflightFact::None, ..tables::ready() };
        let clusters = (0..next).map(|index| (name(index), fresh.clone())).collect();
        let campaign = Campaign {
            stage: Stage::Rollout,
            control: Control::Running,
            waves,
            budget: Budget { max_failures: setup.total, mode: setup.mode },
            offline: setup.offline,
            consent: Consent::Given,
            rollout_since: Some(tables::at(0)),
        };
        Self { campaign, clusters, now: 0, starts: BTreeMap::new(), retries: BTreeMap::new() }
    }

    /// Decides, checks what must hold of any decision, and carries it out.
    fn step(&mut self) {
        let now = tables::at(self.now);
        let decisions = decide(&self.campaign, &self.clusters, &Limits::default(), now);
        let decided: BTreeSet<_> = decisions.clusters.keys().collect();
        assert_eq!(decided, self.clusters.keys().collect(), "every cluster is decided");
        for (name, decision) in &decisions.clusters {
            let cluster = self.clusters.get_mut(name).unwrap();
            match decision {
                Decision::Start => {
                    assert_eq!(cluster.link, Link::Connected);
                    assert_eq!(cluster.plan, PlanFact::Planned);
                    if matches!(cluster.run, Run::Failed(_)) {
                        *self.retries.entry(name.clone()).or_default() += 1;
                    } else {
                        assert_eq!(cluster.run, Run::NotStarted, "{name} started twice");
                    }
                    *self.starts.entry(name.clone()).or_default() += 1;
                    cluster.run = Run::InFlight { verifying: false };
                    cluster.request = Request::None;
                }
                Decision::Check => cluster.preflight = PreflightFact::Running { asked_at: now },
                Decision::Settle(Settled::Skipped(reason)) => {
                    cluster.run = Run::Skipped(*reason);
                    cluster.request = Request::None;
                }
                Decision::Settle(Settled::Unreachable) => cluster.run = Run::Unreachable,
                Decision::InFlight { .. } | Decision::Wait(_) | Decision::Nothing => {}
            }
        }
        let counted: u32 = decisions.counts.values().sum();
        assert_eq!(counted as usize, self.clusters.len(), "the counts add up");
    }

    fn happen(&mut self, index: usize, what: u8) {
        let now = tables::at(self.now);
        let count = self.clusters.len();
        let Some(cluster) = self.clusters.get_mut(&name(index % count)) else { return };
        let in_flight = matches!(cluster.run, Run::InFlight { .. });
        let asked = matches!(cluster.preflight, PreflightFact::Running { .. });
        match what {
            0..=2 if asked => cluster.preflight = PreflightFact::Clear { at: now },
            3 if asked => {
                cluster.preflight = PreflightFact::Blocked { at: now, checks: vec![] };
            }
            4 | 5 if in_flight => cluster.run = Run::Succeeded,
            6 if in_flight => cluster.run = Run::Failed(Failure::Failed),
            7 if in_flight => cluster.run = Run::Failed(Failure::Stalled),
            8 if in_flight => cluster.run = Run::InFlight { verifying: true },
            9 => cluster.link = Link::Silent { since: now },
            10 | 11 => cluster.link = Link::Connected,
            12 => cluster.request = Request::Skip,
            13 if matches!(cluster.run, Run::Failed(_)) => cluster.request = Request::Retry,
            14 => self.campaign.control = Control::Paused,
            15 => self.campaign.control = Control::Running,
            _ => {}
        }
    }

    fn failed(&self, members: &[ClusterName]) -> u32 {
        let failed = |name: &&ClusterName| matches!(self.clusters[*name].run, Run::Failed(_));
        u32::try_from(members.iter().filter(failed).count()).unwrap()
    }

    fn in_flight(&self, members: &[ClusterName]) -> u32 {
        let busy = |name: &&ClusterName| matches!(self.clusters[*name].run, Run::InFlight { .. });
        u32::try_from(members.iter().filter(busy).count()).unwrap()
    }
}

/// Plays `setup` and calls `law` after every single thing that happens.
fn play(setup: &Setup, law: impl Fn(&Fleet)) {
    let mut fleet = Fleet::new(setup);
    for round in &setup.rounds {
        fleet.step();
        law(&fleet);
        for &(index, what) in round {
            fleet.happen(index, what);
            law(&fleet);
        }
        fleet.now += 60;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn strict_never_sees_more_than_one_failure_above_the_budget(
        setup in setup(Just(BudgetMode::Strict))
    ) {
        play(&setup, |fleet| {
            for wave in &fleet.campaign.waves {
                assert!(fleet.failed(&wave.members) <= wave.max_failures + 1, "{}", wave.name);
            }
            if let Some(max) = fleet.campaign.budget.max_failures {
                let all: Vec<_> = fleet.clusters.keys().cloned().collect();
                assert!(fleet.failed(&all) <= max + 1);
            }
        });
    }

    #[test]
    fn no_wave_runs_more_than_its_slots_and_no_two_waves_run_at_once(setup in setup(any_mode())) {
        play(&setup, |fleet| {
            let waves = &fleet.campaign.waves;
            for wave in waves {
                assert!(fleet.in_flight(&wave.members) <= wave.max_concurrent);
            }
            let running = waves.iter().filter(|wave| {
                wave.members.iter().any(|name| {
                    // A retry reopens an earlier wave while a later one is under way.
                    matches!(fleet.clusters[name].run, Run::InFlight { .. })
                        && !fleet.retries.contains_key(name)
                })
            });
            assert!(running.count() <= 1);
        });
    }

    #[test]
    fn a_cluster_starts_once_and_once_more_for_each_retry(setup in setup(any_mode())) {
        play(&setup, |fleet| {
            for (name, starts) in &fleet.starts {
                let retries = fleet.retries.get(name).copied().unwrap_or(0);
                assert_eq!(*starts, retries + 1, "{name}");
            }
        });
    }

    #[test]
    fn what_is_settled_stays_settled(setup in setup(any_mode())) {
        let mut fleet = Fleet::new(&setup);
        let mut settled: BTreeMap<ClusterName, Run> = BTreeMap::new();
        for round in &setup.rounds {
            fleet.step();
            for &(index, what) in round {
                fleet.happen(index, what);
            }
            fleet.now += 60;
            for (name, run) in &settled {
                let now = &fleet.clusters[name].run;
                let moved = matches!(run, Run::Failed(_));
                prop_assert!(moved || now == run, "{} went from {:?} to {:?}", name, run, now);
            }
            for (name, cluster) in &fleet.clusters {
                if cluster.run.is_settled() {
                    settled.insert(name.clone(), cluster.run.clone());
                }
            }
        }
    }

    #[test]
    fn the_order_in_which_news_of_different_clusters_comes_does_not_matter(
        setup in setup(any_mode()),
        seed in any::<u64>(),
    ) {
        let mut one = Fleet::new(&setup);
        let mut other = Fleet::new(&setup);
        for round in &setup.rounds {
            one.step();
            other.step();
            // News of one cluster keep their order, those of different clusters are shuffled.
            let count = one.clusters.len();
            let mut by_cluster: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
            for &(index, what) in round.iter().filter(|(_, what)| *what < 14) {
                by_cluster.entry(index % count).or_default().push(what);
                one.happen(index, what);
            }
            let mut order: Vec<usize> = by_cluster.keys().copied().collect();
            order.sort_by_key(|index| (*index as u64 + 1).wrapping_mul(seed | 1));
            for index in order {
                for &what in &by_cluster[&index] {
                    other.happen(index, what);
                }
            }
            one.now += 60;
            other.now += 60;
            let now = tables::at(one.now);
            prop_assert_eq!(
                decide(&one.campaign, &one.clusters, &Limits::default(), now),
                decide(&other.campaign, &other.clusters, &Limits::default(), now)
            );
        }
    }

    #[test]
    fn a_fleet_that_answers_comes_to_an_end(setup in setup(any_mode())) {
        let mut fleet = Fleet::new(&setup);
        for round in &setup.rounds {
            fleet.step();
            for &(index, what) in round {
                fleet.happen(index, what);
            }
            fleet.now += 60;
        }
        // From here on everything is heard, clear and goes well, and nobody interferes.
        fleet.campaign.control = Control::Running;
        for _ in 0..400 {
            for cluster in fleet.clusters.values_mut() {
                cluster.link = Link::Connected;
                if matches!(cluster.preflight, PreflightFact::Running { .. }) {
                    cluster.preflight = PreflightFact::Clear { at: tables::at(fleet.now) };
                }
                if matches!(cluster.run, Run::InFlight { .. }) {
                    cluster.run = Run::Succeeded;
                }
            }
            fleet.step();
            fleet.now += 60;
        }
        let now = tables::at(fleet.now);
        let last = decide(&fleet.campaign, &fleet.clusters, &Limits::default(), now);
        // What a user left out while it was silent keeps its reservation for good.
        let lost = fleet
            .clusters
            .values()
            .any(|cluster| cluster.run == Run::Skipped(SkipReason::UserInFlight));
        prop_assert!(last.phase.is_ended() || lost, "{:?}: {:?}", last.phase, last.clusters);
    }
}
