//! Which Subscriptions OLM moves by itself: they are made Manual when the upgrade starts.

use wavelift_core::check::{Finding, Outcome};

use super::{Facts, Found};
use crate::objects;

pub(super) const NAME: &str = "approval-automatic";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        let name = &namespace.name;
        for subscription in found.read("Subscriptions", name, &namespace.subscriptions) {
            if subscription.spec.install_plan_approval != "Manual" {
                let subject = objects::name(subscription);
                let message = format!("{name}/{subject} is approved automatically");
                found.add(Outcome::Warn, "ApprovalAutomatic", message, subject);
            }
        }
    }
    found.finding(
        "every Subscription is Manual",
        "It is made Manual when the upgrade starts; spec.afterUpgrade says what becomes of it",
    )
}
