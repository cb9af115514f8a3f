//! What the sample's campaign under way changes: three groups that differ, one of them of clusters
//! whose catalog does not carry its bundles' manifests.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use wavelift_api::live::{BlockerKind, ClusterView};
use wavelift_catalog::Manifests;
use wavelift_core::{
    ids::ClusterName,
    inventory::{CatalogSource, Inventory, NamespaceInventory, Subscription},
    plan::{Move, Plan, Step, Via},
};
use wavelift_hub::preview::{
    Blocker, Bundle, Group, GroupPreview, Planned, Preview, Question, Unread, groups,
};

const PACKAGE: &str = "beacon-logging";
const NAMESPACE: &str = "beacon";

/// The preview of a campaign with these clusters.
pub(crate) fn changes(clusters: &[ClusterView]) -> Preview {
    let names = clusters.iter().filter_map(|one| ClusterName::try_from(one.row.name.as_str()).ok());
    let names: Vec<ClusterName> = names.collect();
    let catalogs = [inventory("a"), inventory("b"), inventory("c")];
    let plans = [plan(&["6.1.4", "6.2.3"]), plan(&["6.0.9", "6.1.4", "6.2.3"])];
    let planned = names.iter().enumerate().map(|(index, cluster)| {
        let kind = if index % 8 == 7 { 2 } else { usize::from(index % 4 == 3) };
        Planned { cluster, plan: &plans[usize::from(kind == 1)], inventory: Some(&catalogs[kind]) }
    });
    let grouped = groups(planned, &Unread);
    let mut made = BTreeMap::new();
    let shown: Vec<Arc<GroupPreview>> =
        grouped.into_iter().map(|group| Arc::new(compared(group, &mut made))).collect();
    let blockers = names.first().map(|cluster| Blocker {
        cluster: cluster.clone(),
        kind: BlockerKind::NotKnown,
        why: "not known yet: its inventory".to_owned(),
    });
    Preview {
        clusters: u32::try_from(names.len()).unwrap_or(u32::MAX),
        at_target: 0,
        groups: shown,
        left_out: (0, 0),
        blockers: blockers.into_iter().collect(),
    }
}

fn compared(
    group: Group,
    made: &mut BTreeMap<String, Arc<wavelift_hub::preview::Made>>,
) -> GroupPreview {
    let found = group.ways.iter().map(|way| {
        let carries = way.catalog.as_ref().is_some_and(|seen| !seen.digest.ends_with("cccc"));
        let bundles = way.versions().map(|version| {
            let name = version.csv.to_string();
            let manifests = if carries {
                Ok((version.text.clone(), Arc::new(manifests(&name, &version.text))))
            } else {
                Err("catalog marketplace/own does not carry them".to_owned())
            };
            Bundle { name, version: version.text.clone(), manifests, moving: None, skipped: vec![] }
        });
        let documents = Ok((String::new(), Arc::default()));
        let question = Question::new(way, bundles.collect(), documents, None);
        let answer = || Arc::new(question.answer());
        Arc::clone(made.entry(question.key().to_owned()).or_insert_with(answer))
    });
    let found = found.collect();
    GroupPreview { group, made: Some(found) }
}

fn inventory(letter: &str) -> Inventory {
    let digest = format!("sha256:{}", letter.repeat(64));
    Inventory {
        namespaces: NAMESPACE.try_into().map_or(vec![], |namespace| {
            vec![NamespaceInventory {
                namespace,
                operator_groups: 1,
                global_catalogs_excluded: false,
                subscriptions: vec![Subscription {
                    name: PACKAGE.to_owned(),
                    package: PACKAGE.to_owned(),
                    source: "own".to_owned(),
                    source_namespace: "marketplace".to_owned(),
                    ..Subscription::default()
                }],
                csvs: vec![],
            }]
        }),
        catalogs: vec![CatalogSource {
            namespace: "marketplace".to_owned(),
            name: "own".to_owned(),
            digest: Some(digest.clone()),
            contents: Some(digest),
            ..CatalogSource::default()
        }],
        ..Inventory::default()
    }
}

fn plan(versions: &[&str]) -> Plan {
    let csv = |version: &str| format!("{PACKAGE}.v{version}");
    let steps = versions.windows(2).filter_map(|pair| {
        let item = Move {
            package: PACKAGE.try_into().ok()?,
            from: Some(csv(pair[0]).try_into().ok()?),
            to: csv(pair[1]).try_into().ok()?,
            from_version: Some(pair[0].to_owned()),
            to_version: pair[1].to_owned(),
        };
        Some(Step { namespace: NAMESPACE.try_into().ok()?, moves: vec![item], via: Via::Cluster })
    });
    Plan { steps: steps.collect() }
}

/// The older a version, the less it may do.
fn manifests(name: &str, version: &str) -> Manifests {
    let mut rules = vec![json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})];
    if version != "6.0.9" {
        let verbs = ["get", "list", "watch"];
        rules.push(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs}));
    }
    if version == "6.2.3" {
        rules.push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}));
    }
    Manifests::from_encoded([encoded(&json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name},
        "spec": {"version": version, "install": {"strategy": "deployment", "spec": {
            "clusterPermissions": [{"serviceAccountName": "beacon", "rules": rules}],
            "deployments": [{"name": "beacon", "spec": {"template": {"spec": {"containers": [
                {"name": "beacon", "image": format!("registry.example/beacon:{version}")}]}}}}],
        }}},
    }))])
}

fn encoded(object: &Value) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, object.to_string())
}
