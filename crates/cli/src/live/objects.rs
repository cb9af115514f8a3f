//! What the objects in the hub cluster say, in the shapes of the JSON API.

use std::collections::BTreeMap;

use anyhow::Context as _;
use futures::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use wavelift_api::{
    ClusterUpgrade, FleetUpgrade,
    cluster_upgrade::{ClusterStateName, PlanSpec, StepStateName},
    fleet_upgrade::BudgetMode,
    labels,
    live::{
        AgentStateName, BudgetView, CheckTally, ClusterDetail, ClusterList, ClusterRow,
        ClusterView, Facets, MoveView, PhaseName, StepView, UpgradeDetail, UpgradeList, UpgradeRow,
        UpgradeView, WaveStateName, WaveView,
    },
};

use super::{ClusterQuery, Live};

/// Reads FleetUpgrades and ClusterUpgrades.
pub(super) struct Objects {
    client: Client,
}

impl Objects {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    async fn list(&self, namespace: Option<String>) -> anyhow::Result<UpgradeList> {
        let api: Api<FleetUpgrade> = match &namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let list = api.list(&ListParams::default()).await.context("cannot list FleetUpgrades")?;
        let items: Vec<UpgradeRow> = list.items.iter().map(row).collect();
        let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
        Ok(UpgradeList { time: Timestamp::now(), items, total, continue_token: None })
    }

    async fn fleet(&self, namespace: &str, name: &str) -> anyhow::Result<FleetUpgrade> {
        let api: Api<FleetUpgrade> = Api::namespaced(self.client.clone(), namespace);
        api.get_opt(name)
            .await
            .context("cannot read the FleetUpgrade")?
            .with_context(|| format!("no FleetUpgrade {name} in namespace {namespace}"))
    }

    async fn members(&self, fleet: &FleetUpgrade) -> anyhow::Result<Vec<ClusterView>> {
        let uid = fleet.metadata.uid.clone().unwrap_or_default();
        let api: Api<ClusterUpgrade> = Api::all(self.client.clone());
        let params = ListParams::default().labels(&format!("{}={uid}", labels::FLEETUPGRADE_UID));
        let list = api.list(&params).await.context("cannot list ClusterUpgrades")?;
        Ok(list.items.iter().map(cluster).collect())
    }
}

impl Live for Objects {
    fn knows_every_cluster(&self) -> bool {
        false
    }

    fn upgrades(&self, namespace: Option<&str>) -> BoxFuture<'_, anyhow::Result<UpgradeList>> {
        self.list(namespace.map(str::to_owned)).boxed()
    }

    fn upgrade(&self, namespace: &str, name: &str) -> BoxFuture<'_, anyhow::Result<UpgradeDetail>> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        async move {
            let fleet = self.fleet(&namespace, &name).await?;
            Ok(UpgradeDetail { time: Timestamp::now(), upgrade: view(&fleet) })
        }
        .boxed()
    }

    fn clusters(
        &self,
        namespace: &str,
        name: &str,
        query: &ClusterQuery,
    ) -> BoxFuture<'_, anyhow::Result<ClusterList>> {
        let (namespace, name, query) = (namespace.to_owned(), name.to_owned(), query.clone());
        async move {
            let fleet = self.fleet(&namespace, &name).await?;
            let members = self.members(&fleet).await?;
            let mut items: Vec<ClusterRow> = members.into_iter().map(|view| view.row).collect();
            items.retain(|row| selected(row, &query));
            items.sort_by(|a, b| a.name.cmp(&b.name));
            let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
            let facets = Facets::default();
            let time = Timestamp::now();
            Ok(ClusterList { time, items, total, facets, continue_token: None })
        }
        .boxed()
    }

    fn cluster(
        &self,
        namespace: &str,
        name: &str,
        cluster: &str,
    ) -> BoxFuture<'_, anyhow::Result<ClusterDetail>> {
        let (namespace, name, wanted) = (namespace.to_owned(), name.to_owned(), cluster.to_owned());
        async move {
            let fleet = self.fleet(&namespace, &name).await?;
            let members = self.members(&fleet).await?;
            let found = members.into_iter().find(|view| view.row.name == wanted);
            let cluster = found.with_context(|| {
                format!("cluster {wanted} has no ClusterUpgrade in {name}: it may be at the target")
            })?;
            Ok(ClusterDetail { time: Timestamp::now(), cluster })
        }
        .boxed()
    }
}

fn selected(row: &ClusterRow, query: &ClusterQuery) -> bool {
    let in_list = |list: &Option<String>, value: &str| {
        list.as_ref().is_none_or(|list| list.split(',').any(|one| one == value))
    };
    let worst = row.checks.as_ref().and_then(CheckTally::worst).map(|worst| format!("{worst:?}"));
    in_list(&query.state, &format!("{:?}", row.state))
        && in_list(&query.wave, &row.wave)
        && in_list(&query.check, worst.as_deref().unwrap_or_default())
        && query
            .text
            .as_ref()
            .is_none_or(|text| row.name.contains(text) || row.message.contains(text))
}

fn row(fleet: &FleetUpgrade) -> UpgradeRow {
    let status = fleet.status.clone().unwrap_or_default();
    let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
    let phase = status
        .phase
        .as_deref()
        .and_then(|phase| serde_json::from_value(serde_json::Value::String(phase.to_owned())).ok());
    let complete = status.waves.iter().filter(|wave| wave.state == "Complete").count();
    UpgradeRow {
        namespace: fleet.namespace().unwrap_or_default(),
        name: fleet.name_any(),
        uid: fleet.uid().unwrap_or_default(),
        generation: fleet.metadata.generation.unwrap_or_default(),
        creation_time: fleet.creation_timestamp().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        stage: fleet.spec.stage,
        control: fleet.spec.control,
        phase: phase.unwrap_or(PhaseName::Planning),
        message: ready.map_or_else(
            || "no hub has looked at it yet: is one running?".to_owned(),
            |condition| condition.message.clone(),
        ),
        targets: fleet.spec.targets.operators.clone(),
        summary: status.summary.unwrap_or_default(),
        states: status.counts.clone(),
        current_wave: status.current_wave.clone(),
        waves_complete: u32::try_from(complete).unwrap_or(u32::MAX),
        waves_total: u32::try_from(status.waves.len()).unwrap_or(u32::MAX),
        needs_you: u32::try_from(status.insights.len()).unwrap_or(u32::MAX),
        rollout_start_time: status.rollout_start_time,
        completion_time: status.completion_time,
    }
}

fn view(fleet: &FleetUpgrade) -> UpgradeView {
    let status = fleet.status.clone().unwrap_or_default();
    let specs = fleet.spec.waves.clone().unwrap_or_default();
    let positive = |number: i32| u32::try_from(number).unwrap_or(0);
    let waves = status
        .waves
        .iter()
        .map(|wave| {
            let spec = specs.iter().find(|spec| spec.name == wave.name);
            WaveView {
                name: wave.name.clone(),
                state: match wave.state.as_str() {
                    "Complete" => WaveStateName::Complete,
                    "Running" => WaveStateName::Running,
                    _ => WaveStateName::Pending,
                },
                clusters: positive(wave.clusters),
                succeeded: positive(wave.succeeded),
                running: positive(wave.running),
                failed: positive(wave.failed),
                states: vec![],
                max_concurrent: spec.map_or(1, |spec| positive(spec.max_concurrent)),
                max_failures: spec.map_or(0, |spec| positive(spec.max_failures)),
                budget_parallelism: None,
            }
        })
        .collect();
    let budget = fleet.spec.budget.clone().unwrap_or_default();
    UpgradeView {
        row: row(fleet),
        plan_digest: status.plan_digest,
        consented_digest: status.consented_digest,
        epoch: status.epoch,
        budget: BudgetView {
            max_failures: budget.max_failures.map(positive),
            mode: budget.mode.unwrap_or(BudgetMode::Strict),
            failed: status.summary.map_or(0, |summary| positive(summary.failed)),
            in_flight: status.waves.iter().map(|wave| positive(wave.running)).sum(),
        },
        waves,
        preview: status.preview,
        changes: status.changes,
        preflight: status.preflight,
        insights: status.insights,
        history: status.history,
        conditions: status.conditions,
    }
}

/// A ClusterUpgrade as the JSON API would show it.
pub(crate) fn cluster(upgrade: &ClusterUpgrade) -> ClusterView {
    let status = upgrade.status.clone().unwrap_or_default();
    let plan = upgrade.spec.plan.clone().or_else(|| status.plan.clone()).unwrap_or_default();
    let mut names: BTreeMap<String, MoveView> = BTreeMap::new();
    for item in plan.steps.iter().flat_map(|step| &step.moves) {
        names
            .entry(item.package.clone())
            .and_modify(|view| {
                view.to.clone_from(&item.to_version);
                view.hops += 1;
            })
            .or_insert_with(|| MoveView {
                package: item.package.clone(),
                from: item.from_version.clone(),
                to: item.to_version.clone(),
                hops: 1,
            });
    }
    let row = ClusterRow {
        name: upgrade.namespace().unwrap_or_default(),
        wave: String::new(),
        state: status.state.unwrap_or(ClusterStateName::Pending),
        waiting_on: None,
        message: status.message.clone().unwrap_or_default(),
        since_time: status.completion_time.or(status.start_time),
        moves: names.into_values().collect(),
        step: status.step.clone(),
        percent: status.percent,
        agent: AgentStateName::Unknown,
        last_heard_time: None,
        checks: status.preflight.as_ref().map(CheckTally::of),
        failure_reason: status.failure.as_ref().map(|failure| failure.reason.clone()),
    };
    ClusterView {
        row,
        uid: upgrade.uid(),
        epoch: status.epoch,
        attempt: status.attempt,
        agent_version: None,
        plan_digest: upgrade.spec.plan_digest.clone().or(status.plan_digest),
        start_time: status.start_time,
        completion_time: status.completion_time,
        steps: steps(&plan, &status.steps),
        preflight: status.preflight,
        failure: status.failure,
        insights: status.insights,
        operator_conditions: status.operator_conditions,
    }
}

fn steps(plan: &PlanSpec, states: &[wavelift_api::cluster_upgrade::StepStatus]) -> Vec<StepView> {
    plan.steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let state = states.get(index).cloned().unwrap_or_default();
            StepView {
                namespace: step.namespace.clone(),
                moves: step.moves.clone(),
                via: step.via,
                state: if states.is_empty() { StepStateName::Pending } else { state.state },
                percent: state.percent,
                start_time: state.start_time,
                completion_time: state.completion_time,
                install_plan: state.install_plan,
                message: state.message,
            }
        })
        .collect()
}
