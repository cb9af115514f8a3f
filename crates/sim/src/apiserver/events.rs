//! Events have two forms, `v1` and `events.k8s.io/v1`, of one object. The store keeps the first.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Fields that have another name in `events.k8s.io/v1`: (there, here).
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// The form in which a client sees objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// As they are stored.
    Stored,
    /// Core events as those of `events.k8s.io/v1`.
    EventsV1,
}

impl View {
    /// The `apiVersion` clients see, where it is not the stored one.
    pub(super) fn api_version(self) -> Option<&'static str> {
        match self {
            Self::Stored => None,
            Self::EventsV1 => Some("events.k8s.io/v1"),
        }
    }

    /// An object as the client sees it.
    pub(super) fn outward(self, object: &Value) -> Cow<'_, Value> {
        match self {
            Self::Stored => Cow::Borrowed(object),
            Self::EventsV1 => Cow::Owned(renamed(
                object,
                |name| pick(name, |(there, here)| (here, there)),
                "events.k8s.io/v1",
            )),
        }
    }

    /// What the client sent, as it is stored.
    pub(super) fn inward(self, object: Value) -> Value {
        match self {
            Self::Stored => object,
            Self::EventsV1 => renamed(&object, |name| pick(name, |pair| pair), "v1"),
        }
    }
}

fn pick(
    name: &str,
    order: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> String {
    let found = NAMES.iter().map(|pair| order(*pair)).find(|(from, _)| *from == name);
    found.map_or_else(|| name.to_owned(), |(_, to)| to.to_owned())
}

fn renamed(object: &Value, name: impl Fn(&str) -> String, version: &str) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let mut renamed: Map<String, Value> =
        fields.map(|(field, value)| (name(field), value.clone())).collect();
    renamed.insert("apiVersion".to_owned(), version.into());
    Value::Object(renamed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_keeps_its_meaning_in_both_forms() {
        let sent = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n",
            "regarding": {"name": "x"}, "reason": "R"});
        let stored = View::EventsV1.inward(sent.clone());
        assert_eq!(
            stored,
            json!({"apiVersion": "v1", "kind": "Event", "message": "n",
            "involvedObject": {"name": "x"}, "reason": "R"})
        );
        assert_eq!(*View::EventsV1.outward(&stored), sent);
    }
}
