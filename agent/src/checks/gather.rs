//! Reads what the checks judge.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use kube::{Api, Client, Resource, api::ListParams, core::NamespaceResourceScope};
use serde::de::DeserializeOwned;
use wavelift_catalog::Catalog;
use wavelift_core::plan::Plan;

use super::{Facts, NamespaceFacts, Read};
use crate::{
    apis::{self, Brought, Sources, Turn},
    inventory::Current,
    objects::{self, COPIED_FROM, CatalogSource, Csv, Subscription},
    upgrade::replan,
};

/// Reads all facts about the namespaces of `plan`.
pub async fn gather(
    client: &Client,
    plan: &Plan,
    current: &Current,
    global_namespaces: &[String],
) -> Facts {
    let names: BTreeSet<&str> = plan.steps.iter().map(|step| step.namespace.as_str()).collect();
    let mut namespaces = vec![];
    for name in names {
        namespaces.push(namespace(client, name, current).await);
    }
    let apis = apis(client, plan, current, &namespaces).await;
    let catalogs = list::<CatalogSource>(&Api::all(client.clone())).await;
    let kube_version = match client.apiserver_version().await {
        Ok(info) => Ok(info.git_version),
        Err(error) => Err(error.to_string()),
    };
    Facts {
        standing: replan::standing(plan, current),
        next: (0..plan.steps.len()).find(|i| !replan::is_taken(plan, *i, &current.inventory)),
        plan: plan.clone(),
        namespaces,
        catalogs,
        global_namespaces: global_namespaces.to_vec(),
        kube_version,
        apis,
    }
}

/// What the steps that are left bring, the first of each namespace looked at in full.
async fn apis(
    client: &Client,
    plan: &Plan,
    current: &Current,
    namespaces: &[NamespaceFacts],
) -> Vec<Brought> {
    let mut begun = BTreeSet::new();
    let mut all = vec![];
    for step in replan::remaining(plan, &current.inventory) {
        let name = step.namespace.as_str();
        let turn = if begun.insert(name) { Turn::Next } else { Turn::Later };
        let facts = namespaces.iter().find(|namespace| namespace.name == name);
        let contents = facts.map_or(&[][..], |facts| facts.contents.as_slice());
        let plans = facts.and_then(|facts| facts.plans.as_deref().ok()).unwrap_or_default();
        let plan = apis::plan_of(step, plans).map(objects::name);
        let sources = Sources { contents, plan };
        all.extend(apis::examine(client, step, turn, sources).await);
    }
    all
}

async fn namespace(client: &Client, name: &str, current: &Current) -> NamespaceFacts {
    let subscriptions: Read<Subscription> = within(client, name).await;
    let contents = contents(subscriptions.as_deref().unwrap_or_default(), current);
    let csvs: Read<Csv> = within(client, name).await;
    NamespaceFacts {
        name: name.to_owned(),
        csvs: csvs.map(|mut csvs| {
            let is_copy = |csv: &Csv| {
                csv.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(COPIED_FROM))
            };
            csvs.retain(|csv| !is_copy(csv));
            csvs
        }),
        groups: within(client, name).await,
        plans: within(client, name).await,
        deployments: within(client, name).await,
        conditions: within(client, name).await,
        subscriptions,
        contents,
    }
}

/// The Subscriptions' own catalogs first, then the others that are known.
pub(crate) fn contents<'s>(
    subscriptions: impl IntoIterator<Item = &'s Subscription>,
    current: &Current,
) -> Vec<Arc<Catalog>> {
    let named = subscriptions
        .into_iter()
        .filter_map(|s| current.content(&s.spec.source_namespace, &s.spec.source));
    let others = current.contents.values().filter_map(|content| content.as_ref().ok().cloned());
    let mut seen = BTreeSet::new();
    named.chain(others).filter(|c| seen.insert(c.digest().as_str().to_owned())).collect()
}

async fn within<K>(client: &Client, namespace: &str) -> Read<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    list(&Api::namespaced(client.clone(), namespace)).await
}

async fn list<K: Clone + DeserializeOwned + Debug + Resource>(api: &Api<K>) -> Read<K> {
    match api.list(&ListParams::default()).await {
        Ok(list) => {
            let mut items = list.items;
            items.sort_by(|a, b| objects::name(a).cmp(objects::name(b)));
            Ok(items)
        }
        Err(error) => Err(error.to_string()),
    }
}
