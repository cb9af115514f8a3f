//! The cluster still resolves to the plan that was consented to.

use wavelift_core::check::{Finding, Outcome};

use super::{Facts, finding};
use crate::upgrade::replan::Standing;

pub(super) const NAME: &str = "plan-current";

pub(super) fn check(facts: &Facts) -> Finding {
    let (outcome, reason, message) = match &facts.standing {
        Standing::Same => {
            (Outcome::Pass, "AsExpected", "the cluster resolves to the plan".to_owned())
        }
        Standing::Reached => {
            (Outcome::Pass, "AtTarget", "the cluster is where the plan leads".to_owned())
        }
        Standing::Changed(why) => (
            Outcome::Fail,
            "PlanChanged",
            format!("{why}. Preview again and consent to the new plan"),
        ),
        Standing::Unknown(missing) => (
            Outcome::Unknown,
            "CatalogNotRead",
            format!("cannot resolve: {missing}. Let the agent read the catalog"),
        ),
    };
    finding(NAME, outcome, reason, message, vec![])
}
