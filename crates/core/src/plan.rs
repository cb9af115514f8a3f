//! A cluster's plan: the ordered steps from what is installed to the target, and their digests.
//!
//! The unit of OLM v0 is the namespace: one InstallPlan moves everything in it that can move, so
//! one step is the whole set. The digest is over hops and CSV sets alone: a catalog that changes
//! its digest but not the sets does not change the plan.

mod change;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::change::{Beyond, OnChange};
use crate::ids::{ClusterName, CsvName, Namespace, PackageName};

/// The ordered steps of one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// In the order in which they will run.
    pub steps: Vec<Step>,
}

/// One item of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The namespace whose InstallPlan this is.
    pub namespace: Namespace,
    /// Everything that the InstallPlan moves, by package.
    pub moves: Vec<Move>,
    /// Which catalog OLM takes it from.
    #[serde(default, skip_serializing_if = "Via::is_cluster")]
    pub via: Via,
}

/// Which catalog a step's InstallPlan comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// The cluster's own.
    #[default]
    Cluster,
    /// One that holds of the cluster's own only what leads there.
    PinnedCatalog,
}

/// One operator's part of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// The package.
    pub package: PackageName,
    /// The installed CSV; `None` for a dependency that the step adds.
    pub from: Option<CsvName>,
    /// The CSV after the step.
    pub to: CsvName,
    /// Version of `from`, for people.
    pub from_version: Option<String>,
    /// Version of `to`, for people.
    pub to_version: String,
}

/// Why a plan is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A step moves nothing.
    #[error("step {step} moves nothing")]
    EmptyStep {
        /// Index from 0.
        step: usize,
    },
    /// A step moves one package twice or installs one CSV twice.
    #[error("step {step} names `{name}` twice")]
    Twice {
        /// Index from 0.
        step: usize,
        /// The package or CSV.
        name: String,
    },
    /// More steps than a plan may have.
    #[error("{steps} steps are more than {max}")]
    TooLong {
        /// How many there are.
        steps: usize,
        /// How many there may be.
        max: usize,
    },
}

/// The most steps a plan may have; the schema of ClusterUpgrade says the same.
pub const STEPS_MAX: usize = 256;

impl Plan {
    /// Checks what [`Step`] cannot express.
    pub fn validate(&self) -> Result<(), Error> {
        if self.steps.len() > STEPS_MAX {
            return Err(Error::TooLong { steps: self.steps.len(), max: STEPS_MAX });
        }
        for (index, step) in self.steps.iter().enumerate() {
            if step.moves.is_empty() {
                return Err(Error::EmptyStep { step: index });
            }
            let mut seen = BTreeSet::new();
            for item in &step.moves {
                for name in [item.package.as_str(), item.to.as_str()] {
                    if item.package.as_str() == item.to.as_str() {
                        continue;
                    }
                    if !seen.insert(name) {
                        return Err(Error::Twice { step: index, name: name.to_owned() });
                    }
                }
            }
        }
        Ok(())
    }

    /// True when there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// SHA-256 over the hops and CSV sets, `sha256:<hex>`.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for step in &self.steps {
            field(&mut hash, step.namespace.as_str());
            let sorted: BTreeMap<&str, &Move> =
                step.moves.iter().map(|item| (item.to.as_str(), item)).collect();
            for (to, item) in sorted {
                field(&mut hash, item.package.as_str());
                field(&mut hash, item.from.as_ref().map_or("", CsvName::as_str));
                field(&mut hash, to);
            }
            match step.via {
                Via::Cluster => {}
                Via::PinnedCatalog => field(&mut hash, "via a pinned catalog"),
            }
            hash.update([0xff]);
        }
        format!("sha256:{}", hex::encode(hash.finalize()))
    }
}

impl Step {
    /// The CSVs that the step's InstallPlan must name, no more and no fewer.
    pub fn csv_names(&self) -> BTreeSet<&str> {
        self.moves.iter().map(|item| item.to.as_str()).collect()
    }

    /// `openshift-logging: cluster-logging 6.1.4 -> 6.2.3, loki-operator 6.1.4 -> 6.2.3`
    pub fn summary(&self) -> String {
        let moves: Vec<String> = self
            .moves
            .iter()
            .map(|item| {
                let from = item.from_version.as_deref().unwrap_or("(new)");
                format!("{} {from} -> {}", item.package, item.to_version)
            })
            .collect();
        let via = match self.via {
            Via::Cluster => "",
            Via::PinnedCatalog => " (by a pinned catalog)",
        };
        format!("{}: {}{via}", self.namespace, moves.join(", "))
    }
}

impl Via {
    /// True when OLM goes there by itself.
    pub fn is_cluster(&self) -> bool {
        *self == Self::Cluster
    }
}

/// SHA-256 over all clusters' plans, `sha256:<hex>`: what the user consents to.
///
/// Clusters with nothing to do are left out, so that one which reaches the target by other means
/// before the launch changes it, and one which was there all along does not.
pub fn fleet_digest<'a>(plans: impl IntoIterator<Item = (&'a ClusterName, &'a Plan)>) -> String {
    let sorted: BTreeMap<&ClusterName, &Plan> =
        plans.into_iter().filter(|(_, plan)| !plan.is_empty()).collect();
    let mut hash = Sha256::new();
    for (cluster, plan) in sorted {
        field(&mut hash, cluster.as_str());
        field(&mut hash, &plan.digest());
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

/// Length first, so that no two lists of fields hash alike.
fn field(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(package: &str, from: &str, to: &str) -> Move {
        Move {
            package: package.try_into().unwrap(),
            from: (!from.is_empty()).then(|| from.try_into().unwrap()),
            to: to.try_into().unwrap(),
            from_version: None,
            to_version: "1.0.0".to_owned(),
        }
    }

    fn plan(steps: Vec<(&str, Vec<Move>)>) -> Plan {
        let steps = steps
            .into_iter()
            .map(|(namespace, moves)| Step {
                namespace: namespace.try_into().unwrap(),
                moves,
                via: Via::Cluster,
            })
            .collect();
        Plan { steps }
    }

    #[test]
    fn the_digest_is_over_hops_and_sets_and_nothing_else() {
        let one = plan(vec![("a", vec![item("x", "x1", "x2"), item("y", "y1", "y2")])]);
        let mut same = plan(vec![("a", vec![item("y", "y1", "y2"), item("x", "x1", "x2")])]);
        same.steps[0].moves[0].to_version = "9.9.9".to_owned();
        assert_eq!(one.digest(), same.digest());
        let others = [
            plan(vec![("b", vec![item("x", "x1", "x2"), item("y", "y1", "y2")])]),
            plan(vec![("a", vec![item("x", "x1", "x2")])]),
            plan(vec![("a", vec![item("x", "x0", "x2"), item("y", "y1", "y2")])]),
            plan(vec![("a", vec![item("x", "x1", "x2")]), ("a", vec![item("y", "y1", "y2")])]),
        ];
        for other in &others {
            assert_ne!(one.digest(), other.digest(), "{other:?}");
        }
        let mut pinned = one.clone();
        pinned.steps[0].via = Via::PinnedCatalog;
        assert_ne!(one.digest(), pinned.digest(), "consent is to the pinned catalog too");
    }

    #[test]
    fn the_fleet_digest_ignores_clusters_with_nothing_to_do() {
        let (a, b) = ("a".try_into().unwrap(), "b".try_into().unwrap());
        let some = plan(vec![("n", vec![item("x", "x1", "x2")])]);
        let none = plan(vec![]);
        let alone = fleet_digest([(&a, &some)]);
        assert_eq!(alone, fleet_digest([(&b, &none), (&a, &some)]));
        assert_ne!(alone, fleet_digest([(&b, &some)]));
    }

    #[test]
    fn a_broken_plan_is_refused() {
        let empty = plan(vec![("a", vec![])]);
        assert_eq!(empty.validate(), Err(Error::EmptyStep { step: 0 }));
        let twice = plan(vec![("a", vec![item("x", "", "x2"), item("x", "", "x3")])]);
        assert!(matches!(twice.validate(), Err(Error::Twice { step: 0, .. })));
        let long = plan(vec![("a", vec![item("x", "", "x2")]); STEPS_MAX + 1]);
        assert!(matches!(long.validate(), Err(Error::TooLong { .. })));
    }
}
