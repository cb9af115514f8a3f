//! Each namespace of the plan has exactly one OperatorGroup: with none or two OLM does nothing.

use wavelift_core::check::Finding;

use super::{Facts, Found};

pub(super) const NAME: &str = "operatorgroup-single";

pub(super) fn check(facts: &Facts) -> Finding {
    let mut found = Found::new(NAME);
    for namespace in &facts.namespaces {
        let name = &namespace.name;
        let count = found.read("OperatorGroups", name, &namespace.groups).len();
        if namespace.groups.is_err() || count == 1 {
            continue;
        }
        if count == 0 {
            let message = format!("namespace {name} has no OperatorGroup");
            found.fail("NoOperatorGroup", message, name);
        } else {
            let message = format!("namespace {name} has {count} OperatorGroups");
            found.fail("TooManyOperatorGroups", message, name);
        }
    }
    found.finding(
        "every namespace has one OperatorGroup",
        "Leave exactly one OperatorGroup in the namespace",
    )
}
