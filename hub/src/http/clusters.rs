//! The clusters of a campaign: filtered, counted, sorted and cut here, so that the reader gets the
//! hundred rows it shows and not the ten thousand that there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{
    Json,
    extract::{Path, State},
    http::Uri,
};
use schemars::SchemaGenerator;
use wavelift_api::{
    cluster_upgrade::ClusterStateName,
    fleet_upgrade::StateCount,
    live::{
        CheckTally, ClusterDetail, ClusterList, ClusterRow, ClusterView, Facets, OutcomeCount,
        WaveCount,
    },
    shared::CheckOutcome,
};
use wavelift_core::{check::Outcome, state::ClusterState};

use super::{
    Context,
    cursor::{Key, Paging},
    params::{CONTINUE, Kind, LIMIT, ORDER, Order, Param, Params},
    problem::Error,
    upgrades::{find, shorten, word},
};

/// Query parameters of the list.
pub(super) const LIST: &[Param] = &[
    Param {
        name: "state",
        about: "Only clusters in one of these states.",
        kind: Kind::SomeOf(SchemaGenerator::subschema_for::<ClusterStateName>),
    },
    Param { name: "wave", about: "Only clusters of one of these waves.", kind: Kind::Texts },
    Param {
        name: "check",
        about: "Only clusters with a check of one of these outcomes.",
        kind: Kind::SomeOf(SchemaGenerator::subschema_for::<CheckOutcome>),
    },
    Param {
        name: "q",
        about: "Only clusters whose name, message or failure contains this text.",
        kind: Kind::Text,
    },
    Param {
        name: "sort",
        about: "By what; `state` puts those first that need somebody.",
        kind: Kind::OneOf(&["name", "state", "percent", "wave"]),
    },
    ORDER,
    LIMIT,
    CONTINUE,
];

/// States in the order in which they need somebody.
const URGENCY: [ClusterState; 11] = [
    ClusterState::Failed,
    ClusterState::Stalled,
    ClusterState::Unreachable,
    ClusterState::Blocked,
    ClusterState::Upgrading,
    ClusterState::Verifying,
    ClusterState::Preflight,
    ClusterState::Ready,
    ClusterState::Pending,
    ClusterState::Skipped,
    ClusterState::Succeeded,
];

#[derive(Debug, Clone, Copy)]
enum Sort {
    Name,
    State,
    Percent,
    Wave,
}

/// The filters, each of which a row must pass.
#[derive(Debug, Default)]
struct Filter {
    states: Option<BTreeSet<ClusterState>>,
    waves: Option<BTreeSet<String>>,
    checks: Option<Vec<CheckOutcome>>,
    text: Option<String>,
}

/// Which filters a row passes.
#[derive(Debug, Clone, Copy)]
struct Passes {
    states: bool,
    waves: bool,
    checks: bool,
    text: bool,
}

pub(super) async fn list(
    State(context): State<Context>,
    Path((namespace, name)): Path<(String, String)>,
    uri: Uri,
) -> Result<Json<ClusterList>, Error> {
    let params = Params::read(&uri, LIST)?;
    let filter = Filter::read(&params)?;
    let sorts = [
        ("name", Sort::Name),
        ("state", Sort::State),
        ("percent", Sort::Percent),
        ("wave", Sort::Wave),
    ];
    let sort = params.choice("sort", &sorts)?;
    let settings = &context.settings;
    let bounds = (settings.page_default, settings.page_max);
    let paging = Paging::read(&params, uri.path(), params.order(Order::Asc)?, bounds)?;
    let upgrade = find(&context, &namespace, &name)?;
    let waves: BTreeMap<&str, i64> =
        upgrade.view.waves.iter().map(|wave| wave.name.as_str()).zip(1..).collect();

    let mut facets = FacetCounts::default();
    let mut matching = vec![];
    for cluster in &upgrade.clusters {
        let row = &cluster.row;
        let passes = filter.passes(row);
        facets.count(row, passes);
        if passes.all() {
            matching.push((key(row, sort, &waves), row));
        }
    }
    let page = paging.cut(matching);
    Ok(Json(ClusterList {
        time: context.clock.now(),
        items: page.items.into_iter().cloned().collect(),
        total: page.total,
        facets: facets.finish(&waves),
        continue_token: page.next,
    }))
}

pub(super) async fn one(
    State(context): State<Context>,
    Path((namespace, name, cluster)): Path<(String, String, String)>,
    uri: Uri,
) -> Result<Json<ClusterDetail>, Error> {
    Params::read(&uri, &[])?;
    let upgrade = find(&context, &namespace, &name)?;
    let cluster = member(&upgrade, &cluster)?;
    Ok(Json(ClusterDetail { time: context.clock.now(), cluster: ClusterView::clone(cluster) }))
}

/// The cluster of a path.
pub(super) fn member<'a>(
    upgrade: &'a crate::view::Upgrade,
    name: &str,
) -> Result<&'a Arc<ClusterView>, Error> {
    upgrade.cluster(name).ok_or_else(|| Error::NotFound {
        what: format!("cluster {} in this FleetUpgrade", shorten(name)),
    })
}

fn key(row: &ClusterRow, sort: Sort, waves: &BTreeMap<&str, i64>) -> Key {
    let rank = match sort {
        Sort::Name => 0,
        Sort::State => urgency(row.state.into()),
        Sort::Percent => i64::from(row.percent.unwrap_or(-1)) + 2,
        Sort::Wave => waves.get(row.wave.as_str()).copied().unwrap_or(i64::MAX),
    };
    Key { rank, name: row.name.clone() }
}

fn urgency(state: ClusterState) -> i64 {
    URGENCY
        .iter()
        .zip(1..)
        .find_map(|(listed, rank)| (*listed == state).then_some(rank))
        .unwrap_or(0)
}

// === impl Filter ===

impl Filter {
    fn read(params: &Params) -> Result<Self, Error> {
        let states = params.values("state", word::<ClusterState>, "a state")?;
        let waves = params.values("wave", |text| Some(text.to_owned()), "a wave")?;
        Ok(Self {
            states: states.map(|list| list.into_iter().collect()),
            waves: waves.map(|list| list.into_iter().collect()),
            checks: params.values("check", word::<CheckOutcome>, "an outcome")?,
            text: params.text("q").map(str::to_lowercase),
        })
    }

    fn passes(&self, row: &ClusterRow) -> Passes {
        let state = ClusterState::from(row.state);
        Passes {
            states: self.states.as_ref().is_none_or(|states| states.contains(&state)),
            waves: self.waves.as_ref().is_none_or(|waves| waves.contains(&row.wave)),
            checks: self.checks.as_ref().is_none_or(|outcomes| {
                outcomes.iter().any(|outcome| has(row.checks.as_ref(), *outcome))
            }),
            text: self.text.as_ref().is_none_or(|text| mentions(row, text)),
        }
    }
}

fn has(tally: Option<&CheckTally>, outcome: CheckOutcome) -> bool {
    tally.is_some_and(|tally| {
        let count = match outcome {
            CheckOutcome::Pass => tally.pass,
            CheckOutcome::Warn => tally.warn,
            CheckOutcome::Fail => tally.fail,
            CheckOutcome::Unknown => tally.unknown,
            CheckOutcome::Skipped => tally.skipped,
        };
        count > 0
    })
}

fn mentions(row: &ClusterRow, text: &str) -> bool {
    let texts = [Some(&row.name), Some(&row.message), row.failure_reason.as_ref()];
    texts.into_iter().flatten().any(|field| field.to_lowercase().contains(text))
}

// === impl Passes ===

impl Passes {
    fn all(self) -> bool {
        self.states && self.waves && self.checks && self.text
    }
}

/// Counts under each filter's values, of rows that pass all the other filters.
#[derive(Debug, Default)]
struct FacetCounts {
    states: BTreeMap<ClusterState, u32>,
    waves: BTreeMap<String, u32>,
    checks: BTreeMap<Outcome, u32>,
}

// === impl FacetCounts ===

impl FacetCounts {
    fn count(&mut self, row: &ClusterRow, passes: Passes) {
        if (Passes { states: true, ..passes }).all() {
            *self.states.entry(row.state.into()).or_default() += 1;
        }
        if (Passes { waves: true, ..passes }).all() {
            if let Some(count) = self.waves.get_mut(&row.wave) {
                *count += 1;
            } else {
                self.waves.insert(row.wave.clone(), 1);
            }
        }
        if (Passes { checks: true, ..passes }).all() {
            for outcome in Outcome::ALL {
                if has(row.checks.as_ref(), outcome.into()) {
                    *self.checks.entry(outcome).or_default() += 1;
                }
            }
        }
    }

    fn finish(self, order: &BTreeMap<&str, i64>) -> Facets {
        let states = self.states.into_iter().map(|(state, clusters)| StateCount {
            state: state.as_str().to_owned(),
            clusters: i32::try_from(clusters).unwrap_or(i32::MAX),
        });
        let mut waves: Vec<WaveCount> =
            self.waves.into_iter().map(|(wave, clusters)| WaveCount { wave, clusters }).collect();
        waves.sort_by_key(|count| order.get(count.wave.as_str()).copied().unwrap_or(i64::MAX));
        let checks = self
            .checks
            .into_iter()
            .map(|(outcome, clusters)| OutcomeCount { outcome: outcome.into(), clusters });
        Facets { states: states.collect(), waves, checks: checks.collect() }
    }
}
