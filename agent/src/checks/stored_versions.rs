//! No definition loses a version that objects are stored in: OLM refuses that for good.

use wavelift_core::check::{Finding, Outcome};

use super::{Facts, Found};
use crate::apis::{Brought, Turn};

pub(crate) const NAME: &str = "crd-stored-versions";

pub(super) fn check(facts: &Facts) -> Finding {
    judge(&facts.apis)
}

pub(crate) fn judge(apis: &[Brought]) -> Finding {
    let mut found = Found::new(NAME);
    for brought in apis {
        let csv = &brought.csv;
        for definition in &brought.definitions {
            for words in &definition.data_loss {
                match brought.turn {
                    Turn::Next => {
                        found.fail("StoredVersionRemoved", format!("{csv}: {words}"), csv);
                    }
                    // The version before may move its objects itself.
                    Turn::Later => {
                        let message =
                            format!("{csv}, unless that changes before its turn: {words}");
                        found.add(Outcome::Warn, "StoredVersionRemoved", message, csv);
                    }
                }
            }
        }
        found.unread.extend(brought.unknown.iter().cloned());
    }
    found.finding(
        "every stored version stays",
        "Migrate the objects to a version that stays (read and write each once), then take the old \
         one out of status.storedVersions of the CRD",
    )
}
