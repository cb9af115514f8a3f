//! What a campaign came to, without what differs from run to run: times, revisions, terms, names
//! made of uids.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use wavelift_sim::apiserver::{Store, gk, meta};

use super::{campaign, member::Member, world::World};

/// The end of a campaign, comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What the FleetUpgrade says.
    pub(crate) campaign: Value,
    /// What each cluster shows.
    pub(crate) clusters: BTreeMap<String, Value>,
}

impl Outcome {
    /// Reads it from the API servers.
    pub(crate) fn read(world: &World) -> Result<Self> {
        let store = world.hub.store();
        let campaign = campaign::read(store).context("the campaign is gone")?;
        let status = &campaign["status"];
        let campaign = json!({
            "phase": status["phase"],
            "summary": status["summary"],
            "planDigest": status["planDigest"],
            "consentedDigest": status["consentedDigest"],
            "epoch": status["epoch"],
            "starting": status["starting"],
            "waves": status["waves"],
        });
        let clusters = world
            .members
            .iter()
            .map(|member| (member.name().to_owned(), cluster(store, member)))
            .collect();
        Ok(Self { campaign, clusters })
    }

    /// What is not as in `wanted`, one line each.
    pub(crate) fn differences(&self, wanted: &Self) -> Vec<String> {
        let mut lines = vec![];
        if self.campaign != wanted.campaign {
            lines.push(format!("campaign: {}\n  wanted: {}", self.campaign, wanted.campaign));
        }
        for (name, found) in &self.clusters {
            let wanted = wanted.clusters.get(name).unwrap_or(&Value::Null);
            if found != wanted {
                lines.push(format!("{name}: {found}\n  wanted: {wanted}"));
            }
        }
        lines
    }
}

fn cluster(hub: &Store, member: &Member) -> Value {
    let local = member.sim.store();
    let parts = hub.list(&gk::CLUSTER_UPGRADE, Some(member.name()));
    let subscriptions: BTreeMap<String, Value> = local
        .list(&gk::SUBSCRIPTION, None)
        .iter()
        .map(|object| {
            let status = &object["status"];
            let seen = json!({
                "state": status["state"],
                "currentCSV": status["currentCSV"],
                "installedCSV": status["installedCSV"],
                "approval": object["spec"]["installPlanApproval"],
            });
            (meta::name(object).to_owned(), seen)
        })
        .collect();
    let csvs: BTreeMap<String, Value> = local
        .list(&gk::CSV, None)
        .iter()
        .map(|object| (meta::name(object).to_owned(), object["status"]["phase"].clone()))
        .collect();
    json!({
        "hub": parts.iter().map(|part| upgrade(part)).collect::<Vec<_>>(),
        "local": member.local().map(|part| upgrade(&part)),
        "subscriptions": subscriptions,
        "csvs": csvs,
    })
}

/// A ClusterUpgrade, on the hub or on its cluster.
fn upgrade(object: &Value) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let steps = status["steps"].as_array();
    json!({
        "planDigest": spec["planDigest"],
        "stage": spec["stage"],
        "control": spec["control"],
        "epoch": spec["epoch"],
        "attempt": spec["attempt"],
        "state": status["state"],
        "steps": steps.map(|steps| steps.iter().map(|s| s["state"].clone()).collect::<Vec<_>>()),
        "failure": [&status["failure"]["type"], &status["failure"]["reason"]],
        "skipReason": status["skipReason"],
    })
}
