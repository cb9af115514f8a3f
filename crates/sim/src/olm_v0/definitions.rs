//! What OLM asks before it puts a definition in the place of the one that is there: that every object
//! fits the new schema of each version that stays served, and that no version that objects were
//! stored in goes.

use serde_json::{Value, json};
use wavelift_catalog::crd::{Fit, Replacement, data_loss, too_restrictive};

use super::{
    Key,
    install_plan::{Persistence, Refusal},
    objects::{Objects, key_of, text},
};
use crate::apiserver::{Gk, gk};

/// Why OLM does not take a new definition. It tries for a minute, then its plan has failed.
pub(super) fn refusal(objects: &Objects, new: &Value) -> Option<Refusal> {
    let live = objects.get(&gk::CRD, &Key::new("", text(new, "/metadata/name")))?;
    // A definition that cannot be read is the API server's to refuse.
    let replacement = Replacement::read(&live, new).ok()?;
    let message = misfit(objects, &replacement).or_else(|| {
        let gone = replacement.stored_and_gone();
        Some(data_loss(replacement.name(), gone.first()?))
    })?;
    Some(Refusal { message, persistence: Persistence::Minute })
}

/// The first object that does not fit, in OLM's words.
fn misfit(objects: &Objects, replacement: &Replacement) -> Option<String> {
    if replacement.trusts_webhook() {
        return None;
    }
    let there = objects.list_all(&Gk::new(replacement.group(), replacement.kind()));
    replacement.validated().into_iter().find_map(|version| {
        let validator = replacement.validator(version);
        there.iter().find_map(|object| {
            let mut seen = Value::clone(object);
            seen["apiVersion"] = json!(format!("{}/{version}", replacement.group()));
            let Fit::Not(causes) = validator.judge(&seen) else { return None };
            let Key { namespace, name } = key_of(object);
            let name = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
            Some(too_restrictive(replacement, version, &name, &causes))
        })
    })
}
