//! The form that the value of a property must have, checked as it is parsed, without keeping it.
//!
//! As OLM's own tools take it: `null` stands for nothing everywhere, field names are taken in any
//! case, and fields that are not known are passed over.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::Value;

use crate::{graph::Property, json::Json};

/// A form.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Any,
    Text,
    Flag,
    /// A whole number that is at most so large, on either side of zero.
    Whole(i64),
    List(&'static Self),
    /// Any names with values of one form.
    Map(&'static Self),
    Object(&'static [(&'static str, Self)]),
}

use Shape::{Any, Flag, List, Map, Object, Text, Whole};

const GVK: Shape = Object(&[("group", Text), ("version", Text), ("kind", Text)]);
const LINK: Shape = Object(&[("name", Text), ("url", Text)]);
const RESOURCES: Shape = List(&Object(&[("name", Text), ("kind", Text), ("version", Text)]));
const DESCRIPTORS: Shape = List(&Object(&[
    ("path", Text),
    ("displayName", Text),
    ("description", Text),
    ("x-descriptors", List(&Text)),
    ("value", Any),
]));
const CRDS: Shape = List(&Object(&[
    ("name", Text),
    ("version", Text),
    ("kind", Text),
    ("displayName", Text),
    ("description", Text),
    ("resources", RESOURCES),
    ("statusDescriptors", DESCRIPTORS),
    ("specDescriptors", DESCRIPTORS),
    ("actionDescriptors", DESCRIPTORS),
]));
const API_SERVICES: Shape = List(&Object(&[
    ("name", Text),
    ("group", Text),
    ("version", Text),
    ("kind", Text),
    ("deploymentName", Text),
    ("containerPort", Whole(i32::MAX as i64)),
    ("displayName", Text),
    ("description", Text),
    ("resources", RESOURCES),
    ("statusDescriptors", DESCRIPTORS),
    ("specDescriptors", DESCRIPTORS),
    ("actionDescriptors", DESCRIPTORS),
]));
const CSV_METADATA: Shape = Object(&[
    ("annotations", Map(&Text)),
    ("apiServiceDefinitions", Object(&[("owned", API_SERVICES), ("required", API_SERVICES)])),
    ("crdDescriptions", Object(&[("owned", CRDS), ("required", CRDS)])),
    ("description", Text),
    ("displayName", Text),
    ("installModes", List(&Object(&[("type", Text), ("supported", Flag)]))),
    ("keywords", List(&Text)),
    ("labels", Map(&Text)),
    ("links", List(&LINK)),
    ("maintainers", List(&Object(&[("name", Text), ("email", Text)]))),
    ("maturity", Text),
    ("minKubeVersion", Text),
    ("nativeAPIs", List(&GVK)),
    ("provider", LINK),
]);

impl Shape {
    /// The form of the values of a type of property.
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            Property::PACKAGE => {
                Object(&[("packageName", Text), ("version", Text), ("release", Text)])
            }
            Property::PACKAGE_REQUIRED => Object(&[("packageName", Text), ("versionRange", Text)]),
            Property::GVK | Property::GVK_REQUIRED => GVK,
            Property::CSV_METADATA => CSV_METADATA,
            "olm.channel" => Object(&[("channelName", Text), ("priority", Whole(i64::MAX))]),
            _ => Any,
        }
    }

    /// What is wrong with a value, if anything.
    pub(super) fn mismatch(self, value: &Value) -> Option<String> {
        self.deserialize(value).err().map(|error| error.to_string())
    }

    /// What is wrong with a text, if anything.
    pub(super) fn mismatch_in(self, json: &Json) -> Option<String> {
        let mut deserializer = serde_json::Deserializer::from_str(json.as_str());
        self.deserialize(&mut deserializer).err().map(|error| error.to_string())
    }
}

impl<'de> DeserializeSeed<'de> for Shape {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self {
            Any => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            Text | Flag | Whole(_) | List(_) | Map(_) | Object(_) => {
                deserializer.deserialize_any(self)
            }
        }
    }
}

impl<'de> Visitor<'de> for Shape {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Any => "anything",
            Text => "a text",
            Flag => "true or false",
            Whole(_) => "a whole number",
            List(_) => "a list",
            Map(_) | Object(_) => "an object",
        })
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self {
            Any | Text => Ok(()),
            Flag | Whole(_) | List(_) | Map(_) | Object(_) => {
                Err(E::invalid_type(Unexpected::Str(text.get(..40).unwrap_or(text)), &self))
            }
        }
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        match self {
            Any | Flag => Ok(()),
            Text | Whole(_) | List(_) | Map(_) | Object(_) => {
                Err(E::invalid_type(Unexpected::Bool(flag), &self))
            }
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        match self {
            Any => Ok(()),
            Whole(max) if number <= max && number >= -max - 1 => Ok(()),
            Text | Flag | Whole(_) | List(_) | Map(_) | Object(_) => {
                Err(E::invalid_type(Unexpected::Signed(number), &self))
            }
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Err(E::invalid_type(Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        /// Where every whole number still is an `i64`.
        const WHOLE: f64 = 9.0e18;
        if number.fract() == 0.0 && number.abs() < WHOLE {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within an i64")]
            return self.visit_i64(number as i64);
        }
        Err(E::invalid_type(Unexpected::Float(number), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let List(item) = self else { return Err(A::Error::invalid_type(Unexpected::Seq, &self)) };
        let mut index = 0;
        loop {
            match items.next_element_seed(*item) {
                Ok(Some(())) => index += 1,
                Ok(None) => return Ok(()),
                Err(error) => return Err(A::Error::custom(format_args!("[{index}] {error}"))),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<std::borrow::Cow<'de, str>>()? {
            let shape = match self {
                Map(shape) => *shape,
                Object(known) => field(known, &name),
                Any | Text | Flag | Whole(_) | List(_) => {
                    return Err(A::Error::invalid_type(Unexpected::Map, &self));
                }
            };
            let value = fields.next_value_seed(shape);
            value.map_err(|error| A::Error::custom(format_args!("{name}: {error}")))?;
        }
        match self {
            Map(_) | Object(_) | Any => Ok(()),
            Text | Flag | Whole(_) | List(_) => Err(A::Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}

fn field(known: &[(&'static str, Shape)], name: &str) -> Shape {
    let exact = known.iter().find(|(known, _)| *known == name);
    let found = exact.or_else(|| known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)));
    found.map_or(Any, |(_, shape)| *shape)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_form_of_their_type_or_it_is_said_where_not() {
        let good = [
            ("olm.package", json!({"packageName": "a", "Version": "1", "more": [1]})),
            ("olm.package", json!(null)),
            ("olm.gvk", json!({"group": null})),
            ("olm.channel", json!({"channelName": "a", "priority": 1.0})),
            ("olm.csv.metadata", json!({"annotations": {"a": "b"}, "links": [null, {"url": "u"}]})),
            (
                "olm.csv.metadata",
                json!({"crdDescriptions": {"owned": [{"specDescriptors": [{"value": 1}]}]}}),
            ),
            ("example.com/own", json!([1, {"a": 2}])),
        ];
        for (kind, value) in good {
            assert_eq!(Shape::of(kind).mismatch(&value), None, "{kind} {value}");
            assert_eq!(Shape::of(kind).mismatch_in(&Json::from(&value)), None, "{kind} {value}");
        }
        let bad = [
            ("olm.package", json!({"version": 1}), "version: invalid type: integer `1`"),
            ("olm.gvk", json!([]), "invalid type: sequence, expected an object"),
            ("olm.channel", json!({"priority": 1.5}), "priority: invalid type: floating"),
            ("olm.csv.metadata", json!({"annotations": {"a": 1}}), "annotations: a: invalid type"),
            ("olm.csv.metadata", json!({"keywords": ["a", {}]}), "keywords: [1] invalid type: map"),
            (
                "olm.csv.metadata",
                json!({"installModes": [{"supported": "true"}]}),
                "installModes: [0] supported",
            ),
            (
                "olm.csv.metadata",
                json!({"apiServiceDefinitions": {"owned": [{"containerPort": 3_000_000_000_i64}]}}),
                "apiServiceDefinitions: owned: [0] containerPort",
            ),
            ("olm.csv.metadata", json!("text"), "invalid type: string \"text\""),
        ];
        for (kind, value, expected) in bad {
            let found = Shape::of(kind).mismatch(&value).unwrap();
            assert!(found.starts_with(expected), "{kind} {value}: {found}");
            assert!(Shape::of(kind).mismatch_in(&Json::from(&value)).is_some(), "{kind} {value}");
        }
    }
}
