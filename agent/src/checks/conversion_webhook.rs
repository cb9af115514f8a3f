//! OLM can put up the conversion webhooks that the versions bring. Where it can't it fails only when
//! the definitions have been replaced, and then again and again, many times a second.

use wavelift_core::check::Finding;

use super::{Facts, Found};
use crate::apis::Brought;

pub(crate) const NAME: &str = "conversion-webhook";

pub(super) fn check(facts: &Facts) -> Finding {
    judge(&facts.apis)
}

pub(crate) fn judge(apis: &[Brought]) -> Finding {
    let mut found = Found::new(NAME);
    for brought in apis {
        let csv = &brought.csv;
        for words in &brought.conversion {
            found.fail("ConversionWebhookRefused", format!("{csv}: {words}"), csv);
        }
        found.unread.extend(brought.unknown.iter().cloned());
    }
    found.finding(
        "no conversion webhook stands in the way",
        "This version cannot be installed as it is: report it to its author and choose another",
    )
}
