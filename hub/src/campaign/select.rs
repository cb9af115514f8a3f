//! Which clusters a campaign is about, and in which wave each is.

use std::collections::{BTreeMap, BTreeSet};

use wavelift_api::fleet_upgrade::{Selector, SelectorOperator, SelectorRequirement};
use wavelift_core::{
    campaign::Wave,
    ids::{ClusterName, WaveName},
};

use super::validate::{Choice, Spec, WaveRule};
use crate::cluster::Clusters;

/// The wave of the clusters that no wave names.
const REST: &str = "rest";
/// The only wave of a campaign that names none.
const ALL: &str = "all";

/// The campaign's waves with their members. Those that `begun` names are members whatever the
/// selection says, and of the wave they were started in as long as there is one of that name.
pub(super) fn waves(
    spec: &Spec,
    clusters: &Clusters,
    mut begun: BTreeMap<ClusterName, Option<WaveName>>,
) -> Vec<Wave> {
    let last = last_name(&spec.waves);
    let mut left = chosen(&spec.clusters, clusters);
    left.extend(begun.keys().cloned());
    begun.retain(|_, wave| {
        let is_known = |name: &WaveName| spec.waves.iter().any(|rule| rule.name == *name);
        wave.as_ref().is_some_and(|name| is_known(name) || *name == last)
    });
    left.retain(|name| !begun.contains_key(name));
    let stayed = |wave: &WaveName| {
        let here = begun.iter().filter(|(_, name)| name.as_ref() == Some(wave));
        here.map(|(cluster, _)| cluster.clone()).collect::<Vec<_>>()
    };
    let mut waves = vec![];
    for rule in &spec.waves {
        let mut members = stayed(&rule.name);
        members.extend(taken(&rule.members, &mut left, clusters));
        waves.push(Wave {
            name: rule.name.clone(),
            members,
            max_concurrent: rule.max_concurrent,
            max_failures: rule.max_failures,
        });
    }
    left.extend(stayed(&last));
    if !left.is_empty() || waves.is_empty() {
        // One at a time and no failure: nobody said more.
        let members = left.into_iter().collect();
        waves.push(Wave { name: last, members, max_concurrent: 1, max_failures: 0 });
    }
    waves
}

/// What a wave takes of the clusters that are left.
fn taken(
    members: &Choice,
    left: &mut BTreeSet<ClusterName>,
    clusters: &Clusters,
) -> Vec<ClusterName> {
    match members {
        Choice::Names(names) => names.iter().filter(|name| left.remove(*name)).cloned().collect(),
        Choice::Labels(selector) => {
            let selected = |name: &ClusterName| {
                let managed = clusters.get(name).and_then(|known| known.managed.as_ref());
                managed.is_some_and(|managed| matches(selector, &managed.labels))
            };
            left.extract_if(.., |name| selected(name)).collect()
        }
    }
}

/// The name of the wave of those that no wave takes.
fn last_name(rules: &[WaveRule]) -> WaveName {
    let mut name = if rules.is_empty() { ALL.to_owned() } else { REST.to_owned() };
    while rules.iter().any(|rule| rule.name.as_str() == name) {
        name.push_str("-x");
    }
    WaveName::try_from(name).expect("letters and dashes make a name")
}

fn chosen(choice: &Choice, clusters: &Clusters) -> BTreeSet<ClusterName> {
    match choice {
        Choice::Names(names) => names.iter().cloned().collect(),
        Choice::Labels(selector) => clusters
            .iter()
            .filter(|(_, known)| {
                let managed = known.managed.as_ref();
                managed.is_some_and(|managed| {
                    managed.is_accepted && matches(selector, &managed.labels)
                })
            })
            .map(|(name, _)| name.clone())
            .collect(),
    }
}

/// Whether a selector takes these labels, as Kubernetes decides it.
pub(super) fn matches(selector: &Selector, labels: &BTreeMap<String, String>) -> bool {
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().all(|one| holds(one, labels))
}

fn holds(requirement: &SelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let is_in = value.is_some_and(|value| requirement.values.contains(value));
    match requirement.operator {
        SelectorOperator::In => is_in,
        // A label that is not there is in no list.
        SelectorOperator::NotIn => !is_in,
        SelectorOperator::Exists => value.is_some(),
        SelectorOperator::DoesNotExist => value.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_decide_as_kubernetes_does() {
        let labels: BTreeMap<String, String> = [("env".to_owned(), "prod".to_owned())].into();
        let requirement = |key: &str, operator, values: &[&str]| Selector {
            match_expressions: vec![SelectorRequirement {
                key: key.to_owned(),
                operator,
                values: values.iter().map(|&value| value.to_owned()).collect(),
            }],
            ..Selector::default()
        };
        let check = |selector: &Selector, expected| {
            assert_eq!(matches(selector, &labels), expected, "{selector:?}");
        };
        check(&Selector::default(), true);
        check(&Selector { match_labels: labels.clone(), ..Selector::default() }, true);
        check(&requirement("env", SelectorOperator::In, &["prod", "test"]), true);
        check(&requirement("env", SelectorOperator::In, &["test"]), false);
        check(&requirement("env", SelectorOperator::NotIn, &["prod"]), false);
        check(&requirement("site", SelectorOperator::NotIn, &["x"]), true);
        check(&requirement("site", SelectorOperator::Exists, &[]), false);
        check(&requirement("site", SelectorOperator::DoesNotExist, &[]), true);
        check(&requirement("env", SelectorOperator::Exists, &[]), true);
    }
}
