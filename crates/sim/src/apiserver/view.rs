//! Objects have one form in the store, and may have others for clients.
//!
//! Events have two, `v1` and `events.k8s.io/v1`; the store keeps the first. Custom resources have one
//! for each version served: nothing but `apiVersion` differs.

use std::{borrow::Cow, sync::Arc};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// As they are stored.
    Stored,
    /// In another version of their kind.
    Version {
        /// `apiVersion` for the client.
        outward: Arc<str>,
        /// `apiVersion` in the store.
        stored: Arc<str>,
    },
    /// Core events as those of `events.k8s.io/v1`.
    EventsV1,
}

impl View {
    /// The `apiVersion` clients see, where it is not the stored one.
    pub(super) fn api_version(&self) -> Option<&str> {
        match self {
            Self::Stored => None,
            Self::Version { outward, .. } => Some(outward),
            Self::EventsV1 => Some("events.k8s.io/v1"),
        }
    }

    /// An object as the client sees it.
    pub(super) fn outward<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        match self {
            Self::Stored => Cow::Borrowed(object),
            Self::Version { outward, .. } => Cow::Owned(versioned(object.clone(), outward)),
            Self::EventsV1 => Cow::Owned(renamed(
                object,
                |name| pick(name, |(there, here)| (here, there)),
                "events.k8s.io/v1",
            )),
        }
    }

    /// What the client sent, as it is stored.
    pub(super) fn inward(&self, object: Value) -> Value {
        match self {
            Self::Stored => object,
            Self::Version { stored, .. } => versioned(object, stored),
            Self::EventsV1 => renamed(&object, |name| pick(name, |pair| pair), "v1"),
        }
    }
}

fn versioned(mut object: Value, version: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), version.into());
    }
    object
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

    #[test]
    fn another_version_is_the_same_object() {
        let view = View::Version { outward: "g/v2".into(), stored: "g/v1".into() };
        let sent = json!({"apiVersion": "g/v2", "kind": "K", "spec": {"size": 1}});
        let stored = view.inward(sent.clone());
        assert_eq!(stored, json!({"apiVersion": "g/v1", "kind": "K", "spec": {"size": 1}}));
        assert_eq!(*view.outward(&stored), sent);
    }
}
