//! What must hold whatever was killed or stopped, read from histories and audits of the API
//! servers, which see every write of hub and agents.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use wavelift_sim::apiserver::{AuditEffect, Batch, Change, ChangeKind, Changes, gk};

use super::{
    blueprint::Content,
    campaign::Bounds,
    member::{AGENT_NAMESPACE, Member},
    world::World,
};

/// Checks all of them; consumes the histories.
pub(crate) fn hold(world: &mut World, bounds: Bounds) -> Result<()> {
    for member in &mut world.members {
        let name = member.name().to_owned();
        on_cluster(member).with_context(|| format!("cluster {name}"))?;
    }
    on_hub(&history(&mut world.changes)?, bounds)
}

fn history(changes: &mut Changes) -> Result<Vec<std::sync::Arc<Change>>> {
    match changes.now() {
        Batch::Changes(changes) => Ok(changes),
        Batch::Lagged => anyhow::bail!("the API server's history was too short for this test"),
    }
}

/// Each step was approved once, and each of its CSVs made once.
fn on_cluster(member: &mut Member) -> Result<()> {
    let content = if member.is_reached { member.content } else { Content::Newest };
    let wanted = content.approvals();
    let approved = approvals(member)?;
    let found: BTreeMap<_, _> =
        approved.iter().map(|(plan, (namespace, csvs, _))| (plan, (namespace, csvs))).collect();
    ensure!(approved.len() == wanted.len(), "approved {found:?}, wanted {wanted:?}");
    for (namespace, csvs) in &wanted {
        let of_step = approved.values().filter(|(ns, names, _)| ns == namespace && names == csvs);
        let counts: Vec<u32> = of_step.map(|(.., count)| *count).collect();
        ensure!(counts == [1], "{csvs:?} in {namespace} was approved {counts:?} times");
    }
    let mut made: BTreeMap<String, u32> = BTreeMap::new();
    let mut ends = 0;
    for change in history(&mut member.changes)? {
        if change.gk == gk::CSV && change.event == ChangeKind::Added {
            *made.entry(change.name.clone()).or_default() += 1;
        }
        let is_local = change.gk == gk::CLUSTER_UPGRADE && &*change.namespace == AGENT_NAMESPACE;
        if is_local && ended_now(&change) {
            ends += 1;
        }
    }
    let found: Vec<(&str, u32)> = made.iter().map(|(csv, count)| (&**csv, *count)).collect();
    let once: Vec<(&str, u32)> = content.made().into_iter().map(|csv| (csv, 1)).collect();
    ensure!(found == once, "CSVs made: {found:?}, wanted {once:?}");
    let ends_wanted = u32::from(!wanted.is_empty());
    ensure!(ends == ends_wanted, "the local ClusterUpgrade ended {ends} times");
    Ok(())
}

type Approved = BTreeMap<String, (String, Vec<String>, u32)>;

/// The InstallPlans that the agent changed, with namespace and CSVs, and how many times.
fn approvals(member: &Member) -> Result<Approved> {
    let mut approved = Approved::new();
    for entry in member.sim.api().audit() {
        let request = &entry.request;
        if request.gk.as_ref() != Some(&gk::INSTALL_PLAN) || entry.effect == AuditEffect::Unchanged
        {
            continue;
        }
        let namespace = request.namespace.clone().context("an InstallPlan has a namespace")?;
        let name = request.name.clone().context("an InstallPlan has a name")?;
        let plan = member.sim.store().get(&gk::INSTALL_PLAN, Some(&namespace), &name);
        let plan = plan.with_context(|| format!("InstallPlan {name} is gone"))?;
        let csvs = plan["spec"]["clusterServiceVersionNames"].as_array();
        let mut csvs: Vec<String> =
            csvs.into_iter().flatten().filter_map(|csv| csv.as_str().map(str::to_owned)).collect();
        csvs.sort_unstable();
        approved.entry(name).or_insert((namespace, csvs, 0)).2 += 1;
    }
    Ok(approved)
}

/// Each cluster was started once and ended once, nothing was said after an end, and no more were
/// in flight or failed than the bounds allow.
fn on_hub(history: &[std::sync::Arc<Change>], bounds: Bounds) -> Result<()> {
    let mut starts: BTreeMap<(&str, i64), u32> = BTreeMap::new();
    let mut latest: BTreeMap<&str, &Value> = BTreeMap::new();
    for change in history.iter().filter(|change| change.gk == gk::CLUSTER_UPGRADE) {
        let cluster = &*change.namespace;
        ensure!(change.event != ChangeKind::Deleted, "{cluster}: a ClusterUpgrade was deleted");
        let (before, now) = (change.previous.as_deref(), &*change.object);
        if is_started(now) && !before.is_some_and(|before| is_same_start(before, now)) {
            *starts.entry((cluster, attempt(now))).or_default() += 1;
        }
        if let Some(before) = before.filter(|before| is_ended(before)) {
            let goes_on = attempt(now) > attempt(before);
            ensure!(
                goes_on || before["status"] == now["status"],
                "{cluster}: its end was written again: {} after {}",
                now["status"],
                before["status"],
            );
        }
        latest.insert(cluster, now);
        within(&latest, bounds)?;
    }
    for ((cluster, attempt), count) in starts {
        ensure!(count == 1, "{cluster}: attempt {attempt} was started {count} times");
    }
    Ok(())
}

/// Strict: failed and in flight together never exceed what is tolerated plus one, in any wave.
fn within(latest: &BTreeMap<&str, &Value>, bounds: Bounds) -> Result<()> {
    let mut in_flight = 0;
    let mut failed = 0;
    for object in latest.values() {
        let state = object["status"]["state"].as_str();
        if is_started(object) && !is_ended(object) {
            in_flight += 1;
        }
        failed += usize::from(matches!(state, Some("Failed" | "Stalled")));
    }
    ensure!(in_flight <= bounds.concurrent, "{in_flight} in flight");
    ensure!(failed <= bounds.failures + 1, "{failed} failed");
    Ok(())
}

fn is_started(object: &Value) -> bool {
    object["spec"]["stage"] == "Rollout"
}

fn is_same_start(before: &Value, now: &Value) -> bool {
    is_started(before)
        && attempt(before) == attempt(now)
        && before["spec"]["epoch"] == now["spec"]["epoch"]
}

fn attempt(object: &Value) -> i64 {
    object["spec"]["attempt"].as_i64().unwrap_or(0)
}

/// Whether a ClusterUpgrade has come to an end.
pub(crate) fn is_ended(object: &Value) -> bool {
    let state = object["status"]["state"].as_str();
    matches!(state, Some("Succeeded" | "Failed" | "Stalled" | "Skipped"))
}

fn ended_now(change: &Change) -> bool {
    let was = change.previous.as_deref().is_some_and(is_ended);
    is_ended(&change.object) && !was
}

mod tests {
    use serde_json::json;
    use wavelift_runtime::Clock;
    use wavelift_sim::apiserver::{ApiServer, Store, Subresource};

    use super::*;

    const BOUNDS: Bounds = Bounds { concurrent: 2, failures: 1 };

    /// A store with ClusterUpgrades that are not started, and what happens in it from then on.
    fn mk_parts(clusters: &[&str]) -> (Store, Changes) {
        let api = ApiServer::new(Clock::real());
        super::super::install_crds(&api).unwrap();
        let store = api.store().clone();
        let changes = store.subscribe();
        for cluster in clusters {
            store.create(&gk::NAMESPACE, json!({"metadata": {"name": cluster}})).unwrap();
            let part = json!({
                "metadata": {"namespace": cluster, "name": "spring"},
                "spec": {"origin": "Hub", "type": "Plan", "plan": {"steps": []}, "epoch": 1,
                         "stage": "Preflight", "attempt": 0},
            });
            store.create(&gk::CLUSTER_UPGRADE, part).unwrap();
        }
        (store, changes)
    }

    fn start(store: &Store, cluster: &str) {
        let spec = json!({"spec": {"stage": "Rollout"}});
        patch(store, cluster, Subresource::Main, &spec);
    }

    fn say(store: &Store, cluster: &str, state: &str) {
        let status = json!({"status": {"state": state}});
        patch(store, cluster, Subresource::Status, &status);
    }

    fn patch(store: &Store, cluster: &str, part: Subresource, patch: &Value) {
        store.patch_merge(&gk::CLUSTER_UPGRADE, Some(cluster), "spring", part, patch).unwrap();
    }

    fn judge(mut changes: Changes) -> Result<()> {
        on_hub(&history(&mut changes)?, BOUNDS)
    }

    #[test]
    fn a_campaign_within_its_bounds_is_good() {
        let (store, changes) = mk_parts(&["a", "b", "c"]);
        start(&store, "a");
        start(&store, "b");
        say(&store, "a", "Failed");
        say(&store, "b", "Succeeded");
        start(&store, "c");
        say(&store, "c", "Failed");
        judge(changes).unwrap();
    }

    #[test]
    fn one_too_many_in_flight_is_seen() {
        let (store, changes) = mk_parts(&["a", "b", "c"]);
        for cluster in ["a", "b", "c"] {
            start(&store, cluster);
        }
        assert!(judge(changes).unwrap_err().to_string().contains("3 in flight"));
    }

    #[test]
    fn one_failure_too_many_is_seen() {
        let (store, changes) = mk_parts(&["a", "b", "c"]);
        for cluster in ["a", "b", "c"] {
            start(&store, cluster);
            say(&store, cluster, "Stalled");
        }
        assert!(judge(changes).unwrap_err().to_string().contains("3 failed"));
    }

    #[test]
    fn a_second_start_of_the_same_attempt_is_seen() {
        let (store, changes) = mk_parts(&["a"]);
        start(&store, "a");
        patch(&store, "a", Subresource::Main, &json!({"spec": {"epoch": 2}}));
        assert!(judge(changes).unwrap_err().to_string().contains("started 2 times"));
    }

    #[test]
    fn an_end_that_is_written_again_is_seen() {
        let (store, changes) = mk_parts(&["a"]);
        start(&store, "a");
        say(&store, "a", "Succeeded");
        say(&store, "a", "Upgrading");
        assert!(judge(changes).unwrap_err().to_string().contains("its end was written again"));
    }
}
