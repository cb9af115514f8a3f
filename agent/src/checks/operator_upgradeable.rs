//! No operator of the plan says that it must not be upgraded now. OLM offers and runs the
//! InstallPlan all the same and then lets the new version wait, so this is asked before.

use wavelift_core::check::Finding;

use super::{Facts, Found};
use crate::{drivers::olm_v0::observe::not_upgradeable, objects};

pub(super) const NAME: &str = "operator-upgradeable";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        let name = &namespace.name;
        for condition in found.read("OperatorConditions", name, &namespace.conditions) {
            let csv = objects::name(condition);
            let is_replaced = |item: &wavelift_core::plan::Move| {
                item.from.as_ref().is_some_and(|from| from.as_str() == csv)
            };
            if !facts.moves(name).any(is_replaced) {
                continue;
            }
            if let Some(why) = not_upgradeable(condition) {
                let message = format!("{csv} is not upgradeable: {why}");
                found.fail("OperatorNotUpgradeable", message, csv);
            }
        }
    }
    found.finding(
        "every operator may be upgraded",
        "Finish what the operator is doing, or set spec.overrides Upgradeable=True on its \
         OperatorCondition if you know better",
    )
}
