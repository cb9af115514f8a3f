//! Every custom resource fits the schema that the next version brings: OLM refuses the upgrade for
//! the first that does not, and for good.

use wavelift_core::check::{Finding, Outcome};

use super::{Facts, Found};
use crate::apis::Brought;

pub(crate) const NAME: &str = "custom-resources-valid";

pub(super) fn check(facts: &Facts) -> Finding {
    judge(&facts.apis)
}

pub(crate) fn judge(apis: &[Brought]) -> Finding {
    let mut found = Found::new(NAME);
    let mut looked_at = 0;
    for brought in apis {
        let csv = &brought.csv;
        for definition in &brought.definitions {
            looked_at += definition.looked_at;
            let outcome = if definition.only_warns { Outcome::Warn } else { Outcome::Fail };
            let Some((first, words)) = definition.invalid.first() else {
                found.unread.extend(definition.unsure.iter().cloned());
                continue;
            };
            found.add(outcome, "CustomResourcesInvalid", format!("{csv}: {words}"), first);
            let more = definition.invalid_count.saturating_sub(1);
            let others: Vec<&str> =
                definition.invalid.iter().skip(1).map(|(name, _)| name.as_str()).collect();
            if more > 0 {
                let message = format!("{more} more do not fit: {}", others.join(", "));
                found.add(outcome, "CustomResourcesInvalid", message, csv);
            }
            found.unread.extend(definition.unsure.iter().cloned());
        }
        found.unread.extend(brought.unknown.iter().cloned());
    }
    found.finding(
        &format!("all {looked_at} custom resources fit the new schemas"),
        "Correct the objects that are named",
    )
}
