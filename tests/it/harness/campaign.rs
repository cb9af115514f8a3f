//! The campaign, and what a person does about it.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use wavelift_demo::own_catalog::{FERRY, KILN, LOOM, SPINDLE};
use wavelift_sim::apiserver::{Store, gk};

use super::{blueprint::Blueprint, hub::NAMESPACE, wait};

/// Its name.
pub(crate) const NAME: &str = "spring";

/// How waves are bounded; all of them alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Clusters at once.
    pub(crate) concurrent: usize,
    /// Failures tolerated.
    pub(crate) failures: usize,
}

/// Creates the campaign at stage Preview.
pub(crate) fn create(store: &Store, fleet: &[Blueprint], bounds: Bounds) -> Result<()> {
    let waves: BTreeSet<&str> = fleet.iter().map(|blueprint| &*blueprint.wave).collect();
    let waves: Vec<Value> = waves
        .into_iter()
        .map(|wave| {
            json!({
                "name": wave,
                "selector": {"matchLabels": {"wave": wave}},
                "maxConcurrent": bounds.concurrent,
                "maxFailures": bounds.failures,
            })
        })
        .collect();
    let targets = [FERRY, KILN, LOOM, SPINDLE].map(|package| json!({"package": package}));
    store.create(
        &gk::FLEET_UPGRADE,
        json!({
            "metadata": {"namespace": NAMESPACE, "name": NAME},
            "spec": {
                "targets": {"operators": targets},
                "clusters": {"labelSelector": {}},
                "stage": "Preview",
                "control": "Running",
                "waves": waves,
                "budget": {"mode": "Strict"},
                "onPlanChange": "Stop",
                "afterUpgrade": "Hold",
            },
        }),
    )?;
    Ok(())
}

/// The campaign now.
pub(crate) fn read(store: &Store) -> Option<Arc<Value>> {
    store.get(&gk::FLEET_UPGRADE, Some(NAMESPACE), NAME)
}

/// Reads the preview when every cluster has its plan, and launches just that.
pub(crate) async fn launch(store: &Store) -> Result<()> {
    let digest = wait::in_store(store, "a preview of all clusters", |store| {
        let campaign = read(store)?;
        let status = &campaign["status"];
        let is_resolved = condition(&campaign, "PlanResolved") == Some("True")
            && status["observedGeneration"] == campaign["metadata"]["generation"];
        let digest = status["planDigest"].as_str().filter(|digest| !digest.is_empty());
        digest.filter(|_| is_resolved).map(str::to_owned)
    })
    .await?;
    store.modify(&gk::FLEET_UPGRADE, Some(NAMESPACE), NAME, |campaign| {
        campaign["spec"]["planDigest"] = json!(digest);
        campaign["spec"]["stage"] = json!("Rollout");
    })?;
    Ok(())
}

/// Waits for the campaign's end.
pub(crate) async fn ended(store: &Store) -> Result<Arc<Value>> {
    let campaign = wait::in_store(store, "the end of the campaign", |store| {
        let campaign = read(store)?;
        let is_over = campaign["status"]["completionTime"].is_string();
        let is_halted = condition(&campaign, "Halted") == Some("True");
        (is_over || is_halted).then_some(campaign)
    })
    .await?;
    if condition(&campaign, "Halted") == Some("True") {
        bail!("the campaign halted: {}", campaign["status"]);
    }
    Ok(campaign)
}

/// The status of one of its conditions.
pub(crate) fn condition<'a>(campaign: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = campaign["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
    condition["status"].as_str()
}
