//! What a plan may become between the user's word and its start.

use std::collections::BTreeMap;

use super::{Move, Plan};
use crate::{
    ids::{Namespace, PackageName},
    target::{Goal, Target},
    version::Version,
};

/// How far a plan may change and still be covered by the word that was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnChange {
    /// Not at all.
    #[default]
    Stop,
    /// The way may be another one: the same operators end at the same versions.
    SameTarget,
    /// The same operators; those asked for with a version range may end anywhere within it.
    WithinRange,
}

/// Why a changed plan is not covered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    /// Nothing may change.
    #[error("its steps are not the ones that were launched")]
    Changed,
    /// An operator has joined.
    #[error("{package} in {namespace} would move too")]
    More {
        /// Where it is.
        namespace: Namespace,
        /// What would move.
        package: PackageName,
    },
    /// An operator is left behind.
    #[error("{package} in {namespace} would not move any more")]
    Fewer {
        /// Where it is.
        namespace: Namespace,
        /// What would stay.
        package: PackageName,
    },
    /// An operator ends elsewhere.
    #[error("{package} in {namespace} would end at {now} instead of {launched}")]
    Elsewhere {
        /// Where it is.
        namespace: Namespace,
        /// What would move.
        package: PackageName,
        /// Its last version in the plan that was launched.
        launched: String,
        /// Its last version now.
        now: String,
    },
}

impl OnChange {
    /// Whether `now` may run where `launched` was consented to.
    pub fn allows(self, launched: &Plan, now: &Plan, targets: &[Target]) -> Result<(), Beyond> {
        match self {
            Self::Stop if launched.digest() == now.digest() => Ok(()),
            Self::Stop => Err(Beyond::Changed),
            Self::SameTarget => same_ends(launched, now, |_, _| false),
            Self::WithinRange => same_ends(launched, now, |place, end| within(targets, place, end)),
        }
    }
}

type Place<'a> = (&'a Namespace, &'a PackageName);

fn same_ends(
    launched: &Plan,
    now: &Plan,
    may_differ: impl Fn(Place<'_>, &Move) -> bool,
) -> Result<(), Beyond> {
    let (launched, now) = (ends(launched), ends(now));
    let owned = |(namespace, package): Place<'_>| (namespace.clone(), package.clone());
    if let Some(place) = launched.keys().find(|place| !now.contains_key(*place)) {
        let (namespace, package) = owned(*place);
        return Err(Beyond::Fewer { namespace, package });
    }
    for (place, end) in now {
        let (namespace, package) = owned(place);
        let Some(before) = launched.get(&place) else {
            return Err(Beyond::More { namespace, package });
        };
        if before.to != end.to && !may_differ(place, end) {
            let (launched, now) = (before.to_version.clone(), end.to_version.clone());
            return Err(Beyond::Elsewhere { namespace, package, launched, now });
        }
    }
    Ok(())
}

/// Where each operator ends.
fn ends(plan: &Plan) -> BTreeMap<Place<'_>, &Move> {
    let moves = plan
        .steps
        .iter()
        .flat_map(|step| step.moves.iter().map(|item| ((&step.namespace, &item.package), item)));
    moves.collect()
}

fn within(targets: &[Target], (namespace, package): Place<'_>, end: &Move) -> bool {
    let Ok(version) = Version::parse(&end.to_version) else { return false };
    targets.iter().filter(|target| target.covers(namespace, package.as_str())).any(|target| {
        match &target.goal {
            Goal::Range(range) => range.contains(&version),
            Goal::Latest | Goal::Version(_) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::{Step, Via},
        range::Range,
    };

    /// `("x", "1.0.0 1.1.0 1.2.0")` goes from the first over the second to the third.
    fn plan(ways: &[(&str, &str)]) -> Plan {
        let mut steps: Vec<Step> = vec![];
        for (package, versions) in ways {
            let versions: Vec<&str> = versions.split(' ').collect();
            for (index, pair) in versions.windows(2).enumerate() {
                let item = Move {
                    package: (*package).try_into().unwrap(),
                    from: Some(format!("{package}.v{}", pair[0]).try_into().unwrap()),
                    to: format!("{package}.v{}", pair[1]).try_into().unwrap(),
                    from_version: Some(pair[0].to_owned()),
                    to_version: pair[1].to_owned(),
                };
                match steps.get_mut(index) {
                    Some(step) => step.moves.push(item),
                    None => {
                        steps.push(Step {
                            namespace: "n".try_into().unwrap(),
                            moves: vec![item],
                            via: Via::Cluster,
                        });
                    }
                }
            }
        }
        Plan { steps }
    }

    fn target(package: &str, range: &str) -> Target {
        let goal =
            if range.is_empty() { Goal::Latest } else { Goal::Range(Range::parse(range).unwrap()) };
        Target { package: package.try_into().unwrap(), goal, namespace: None }
    }

    fn why(rule: OnChange, launched: &Plan, now: &Plan, targets: &[Target]) -> Option<String> {
        rule.allows(launched, now, targets).err().map(|beyond| beyond.to_string())
    }

    #[test]
    fn stop_lets_nothing_change() {
        let launched = plan(&[("x", "1.0.0 1.1.0 1.2.0")]);
        assert_eq!(why(OnChange::Stop, &launched, &launched, &[]), None);
        let shorter = plan(&[("x", "1.0.0 1.2.0")]);
        let said = why(OnChange::Stop, &launched, &shorter, &[]).unwrap();
        assert_eq!(said, "its steps are not the ones that were launched");
    }

    #[test]
    fn the_same_target_may_be_reached_another_way() {
        let launched = plan(&[("x", "1.0.0 1.1.0 1.2.0"), ("y", "1.0.0 2.0.0")]);
        let shorter = plan(&[("x", "1.0.0 1.2.0"), ("y", "1.0.0 2.0.0")]);
        assert_eq!(why(OnChange::SameTarget, &launched, &shorter, &[]), None);
        let further = plan(&[("x", "1.0.0 1.3.0"), ("y", "1.0.0 2.0.0")]);
        let said = why(OnChange::SameTarget, &launched, &further, &[]).unwrap();
        assert_eq!(said, "x in n would end at 1.3.0 instead of 1.2.0");
        let fewer = plan(&[("x", "1.0.0 1.2.0")]);
        let said = why(OnChange::SameTarget, &launched, &fewer, &[]).unwrap();
        assert_eq!(said, "y in n would not move any more");
        let said = why(OnChange::SameTarget, &fewer, &launched, &[]).unwrap();
        assert_eq!(said, "y in n would move too");
    }

    #[test]
    fn a_range_is_only_for_the_operators_that_have_one() {
        let launched = plan(&[("x", "1.0.0 1.2.0"), ("y", "1.0.0 2.0.0")]);
        let targets = [target("x", ">=1.0.0 <1.5.0"), target("y", "")];
        let within = plan(&[("x", "1.0.0 1.4.9"), ("y", "1.0.0 2.0.0")]);
        assert_eq!(why(OnChange::WithinRange, &launched, &within, &targets), None);
        let beyond = plan(&[("x", "1.0.0 1.5.0"), ("y", "1.0.0 2.0.0")]);
        let said = why(OnChange::WithinRange, &launched, &beyond, &targets).unwrap();
        assert_eq!(said, "x in n would end at 1.5.0 instead of 1.2.0");
        let other = plan(&[("x", "1.0.0 1.2.0"), ("y", "1.0.0 2.1.0")]);
        let said = why(OnChange::WithinRange, &launched, &other, &targets).unwrap();
        assert_eq!(said, "y in n would end at 2.1.0 instead of 2.0.0");
        // The last rule is for the same operators, wherever they may end.
        let more = plan(&[("x", "1.0.0 1.2.0"), ("y", "1.0.0 2.0.0"), ("z", "1.0.0 1.0.1")]);
        assert!(why(OnChange::WithinRange, &launched, &more, &targets).is_some());
    }
}
