//! The driver's effects, all of them, each guarded by the version that the decision was made on:
//! three kinds of writes, and three more that only remedies make.

use std::fmt;

use kube::{
    Api, Client,
    api::{DeleteParams, Preconditions},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::info;
use wavelift_api::labels;
use wavelift_runtime::ssa::{self, FieldManager};

use super::decide::{Action, DeleteReason, Hold};
use crate::{
    mirror::{Mirror, NamespaceMirror},
    objects::{self, Csv, InstallPlan, Subscription},
    pins,
};

/// Under which name the agent writes.
pub const MANAGER: FieldManager = FieldManager(labels::MANAGER_AGENT);

/// What became of an action.
#[derive(Debug)]
pub enum Applied {
    /// Carried out.
    Done,
    /// What it was decided on has changed: observe again.
    Stale,
    /// The API server refused it, with its words.
    Refused(String),
    /// Whether it was carried out is not known: the API server did not answer, or answered that it
    /// cannot now.
    Unanswered(String),
}

/// Where an action takes effect.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// What is told of our own writes, before the watches tell it.
    pub mirror: &'a Mirror,
    /// The step's namespace.
    pub namespace: &'a str,
    /// The upgrade in whose name this is done, `<namespace>/<name>`.
    pub holder: &'a str,
}

/// Carries an action out.
pub async fn apply(action: &Action, target: Target<'_>, watched: &NamespaceMirror) -> Applied {
    match action {
        Action::Hold(holds) => hold(holds, target).await,
        Action::DeletePlan { name, uid, resource_version, why } => {
            delete(name, uid, resource_version, *why, target).await
        }
        Action::Approve { name, resource_version } => {
            approve(name, resource_version, target, watched).await
        }
        Action::RetryPlan { name, resource_version } => {
            retry(name, resource_version, target, watched).await
        }
        Action::DeleteCsv { name, uid, resource_version } => {
            let api: Api<Csv> = Api::namespaced(target.client.clone(), target.namespace);
            let deleted = remove(&api, name, uid, resource_version).await;
            if let Applied::Done = deleted {
                info!(namespace = target.namespace, csv = name, "taken back");
            }
            deleted
        }
        Action::ResetSubscription { name, resource_version, csv } => {
            reset(name, resource_version, csv, target).await
        }
        Action::Wait(_) | Action::Done | Action::Fail(_) => Applied::Done,
    }
}

/// Makes Subscriptions Manual and writes down what they were.
pub async fn hold(holds: &[Hold], target: Target<'_>) -> Applied {
    for hold in holds {
        let mut annotations = json!({ labels::HELD_BY: target.holder });
        if let Some(before) = &hold.before {
            annotations[labels::APPROVAL_BEFORE] = json!(before);
        }
        let patch = json!({
            "metadata": {
                "resourceVersion": hold.resource_version,
                "annotations": annotations,
            },
            "spec": {"installPlanApproval": "Manual"},
        });
        info!(namespace = hold.namespace, subscription = hold.name, "made Manual");
        match patch_subscription(&hold.namespace, &hold.name, &patch, target).await {
            Applied::Done => {}
            other @ (Applied::Stale | Applied::Refused(_) | Applied::Unanswered(_)) => {
                return other;
            }
        }
    }
    Applied::Done
}

/// Gives a Subscription back what its approval was.
pub async fn restore(subscription: &Subscription, target: Target<'_>) -> Applied {
    let Some(before) = objects::annotation(subscription, labels::APPROVAL_BEFORE) else {
        return Applied::Done;
    };
    let patch = json!({
        "metadata": {
            "resourceVersion": objects::version(subscription),
            "annotations": {labels::HELD_BY: null, labels::APPROVAL_BEFORE: null},
        },
        "spec": {"installPlanApproval": before},
    });
    let (namespace, name) = (objects::namespace(subscription), objects::name(subscription));
    info!(namespace, subscription = name, approval = before, "approval given back");
    patch_subscription(namespace, name, &patch, target).await
}

/// Makes a Subscription read the CatalogSource `source` of its own namespace. What it read before
/// is written down in the same write, so that there is no moment in which nobody knows it.
pub async fn point(subscription: &Subscription, source: &str, target: Target<'_>) -> Applied {
    let (namespace, name) = (objects::namespace(subscription), objects::name(subscription));
    let before = format!("{}/{}", subscription.spec.source_namespace, subscription.spec.source);
    let patch = json!({
        "metadata": {
            "resourceVersion": objects::version(subscription),
            "annotations": {labels::PINNED_BY: target.holder, labels::SOURCE_BEFORE: before},
        },
        "spec": {"source": source, "sourceNamespace": namespace},
    });
    info!(namespace, subscription = name, source, before, "reads a pinned catalog");
    patch_subscription(namespace, name, &patch, target).await
}

/// Makes a Subscription read again what it read before, unless somebody has given it another
/// catalog since.
pub async fn point_back(subscription: &Subscription, target: Target<'_>) -> Applied {
    let (namespace, name) = (objects::namespace(subscription), objects::name(subscription));
    let mut patch = json!({
        "metadata": {
            "resourceVersion": objects::version(subscription),
            "annotations": {labels::PINNED_BY: null, labels::SOURCE_BEFORE: null},
        },
    });
    let before = subscription.source_before();
    if let Some((at, source)) = before.filter(|_| pins::is_ours_by_name(subscription)) {
        patch["spec"] = json!({"source": source, "sourceNamespace": at});
    }
    info!(namespace, subscription = name, ?before, "reads its own catalog again");
    patch_subscription(namespace, name, &patch, target).await
}

async fn patch_subscription(
    namespace: &str,
    name: &str,
    patch: &Value,
    target: Target<'_>,
) -> Applied {
    let api: Api<Subscription> = Api::namespaced(target.client.clone(), namespace);
    let written = MANAGER.merge(&api, name, patch).await;
    applied(written.map(|written| target.mirror.subscriptions.assume(written)))
}

/// What came of a write.
fn applied(written: Result<(), ssa::Error>) -> Applied {
    written.map_or_else(Applied::from, |()| Applied::Done)
}

async fn approve(
    name: &str,
    resource_version: &str,
    target: Target<'_>,
    watched: &NamespaceMirror,
) -> Applied {
    let api: Api<InstallPlan> = Api::namespaced(target.client.clone(), target.namespace);
    let patch = json!({
        "metadata": {"resourceVersion": resource_version},
        "spec": {"approved": true},
    });
    let written = MANAGER.merge(&api, name, &patch).await;
    let done = applied(written.map(|written| watched.install_plans.assume(written)));
    if let Applied::Done = done {
        info!(namespace = target.namespace, install_plan = name, "approved");
    }
    done
}

async fn delete(
    name: &str,
    uid: &str,
    resource_version: &str,
    why: DeleteReason,
    target: Target<'_>,
) -> Applied {
    let api: Api<InstallPlan> = Api::namespaced(target.client.clone(), target.namespace);
    let deleted = remove(&api, name, uid, resource_version).await;
    if let Applied::Done = deleted {
        info!(namespace = target.namespace, install_plan = name, ?why, "deleted");
    }
    deleted
}

async fn remove<K: Clone + DeserializeOwned + fmt::Debug>(
    api: &Api<K>,
    name: &str,
    uid: &str,
    resource_version: &str,
) -> Applied {
    let preconditions = Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: Some(resource_version.to_owned()),
    };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(name, &params).await {
        Ok(_) => Applied::Done,
        Err(error) => Applied::from(ssa::Error::new(name, error)),
    }
}

/// OLM carries out what is Installing, and measures its patience from when it finds no begin.
async fn retry(
    name: &str,
    resource_version: &str,
    target: Target<'_>,
    watched: &NamespaceMirror,
) -> Applied {
    let api: Api<InstallPlan> = Api::namespaced(target.client.clone(), target.namespace);
    let patch = json!({
        "metadata": {"resourceVersion": resource_version},
        "status": {"phase": "Installing", "startTime": null},
    });
    let written = MANAGER.merge_status(&api, name, &patch).await;
    let done = applied(written.map(|written| watched.install_plans.assume(written)));
    if let Applied::Done = done {
        info!(namespace = target.namespace, install_plan = name, "OLM tries it again");
    }
    done
}

async fn reset(name: &str, resource_version: &str, csv: &str, target: Target<'_>) -> Applied {
    let api: Api<Subscription> = Api::namespaced(target.client.clone(), target.namespace);
    let patch = json!({
        "metadata": {"resourceVersion": resource_version},
        "status": {
            "currentCSV": csv, "installedCSV": csv, "state": "AtLatestKnown",
            "installPlanRef": null, "installplan": null,
        },
    });
    let written = MANAGER.merge_status(&api, name, &patch).await;
    let done = applied(written.map(|written| target.mirror.subscriptions.assume(written)));
    if let Applied::Done = done {
        info!(namespace = target.namespace, subscription = name, csv, "status set back");
    }
    done
}

impl From<ssa::Error> for Applied {
    fn from(error: ssa::Error) -> Self {
        let words = || wavelift_runtime::telemetry::chain(&error).to_string();
        match &error {
            ssa::Error::Stale(_) | ssa::Error::NotFound(_) => Self::Stale,
            ssa::Error::Api { source, .. } if !is_answer(source) => Self::Unanswered(words()),
            ssa::Error::Owned { .. }
            | ssa::Error::Exists(_)
            | ssa::Error::Invalid { .. }
            | ssa::Error::Forbidden { .. }
            | ssa::Error::Api { .. } => Self::Refused(words()),
        }
    }
}

/// Whether the API server has looked at the request and said no.
fn is_answer(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code < 500 && status.code != 429)
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("holder", &self.holder).finish_non_exhaustive()
    }
}
