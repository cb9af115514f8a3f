//! The fields of an object in JSON text, looked at one by one. What nobody asks for stays text.
//!
//! Field names are taken in any case, as OLM's own tools do: documented templates spell them with a
//! capital letter. The exact name is preferred, and of equal names the last one.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{FieldError, add::at_most};
use crate::limits::Limits;

/// Why something is not taken.
#[derive(Debug)]
pub(super) enum Refused {
    /// A field is wrong.
    Field(FieldError),
    /// There is too much of something.
    TooLarge { what: &'static str, found: usize, max: usize },
}

impl From<FieldError> for Refused {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

/// Where an object stands in its document, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Field(&'p Self, &'static str),
    Item(&'p Self, &'static str, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(of, name) => write!(f, "{of}{name}."),
            Self::Item(of, name, index) => write!(f, "{of}{name}[{index}]."),
        }
    }
}

/// The fields of one object, in order.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a str)>);

/// Any JSON value: an object with its fields, or not.
#[derive(Debug)]
pub(super) enum Any<'a> {
    Object(Fields<'a>),
    Null,
    Other,
}

/// A text or `null`.
struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Fields<'a> {
    /// The fields with their values as text.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// The value of a field as text.
    pub(super) fn raw(&self, field: &str) -> Option<&'a str> {
        let named = |is: fn(&str, &str) -> bool| {
            self.0.iter().rev().find(|(name, _)| is(name, field)).map(|(_, value)| *value)
        };
        named(|name, field| name == field).or_else(|| named(str::eq_ignore_ascii_case))
    }

    /// A text. Nothing and `null` are the empty text.
    pub(super) fn text(&self, path: &Path<'_>, field: &'static str) -> Result<String, FieldError> {
        let Some(raw) = self.raw(field) else { return Ok(String::new()) };
        text(raw).map(Cow::into_owned).ok_or_else(|| wrong(path, field, "a text"))
    }

    /// A text that names something, so it is not long.
    pub(super) fn name(
        &self,
        path: &Path<'_>,
        field: &'static str,
        limits: &Limits,
    ) -> Result<String, Refused> {
        let name = self.text(path, field)?;
        at_most("bytes in a name", name.len(), limits.name_bytes)?;
        Ok(name)
    }

    /// The items of a list as text.
    pub(super) fn items(
        &self,
        path: &Path<'_>,
        field: &'static str,
    ) -> Result<Vec<&'a str>, FieldError> {
        let Some(raw) = self.raw(field).filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
        let items: Result<Vec<&RawValue>, _> = serde_json::from_str(raw);
        let items = items.map_err(|_| wrong(path, field, "a list"))?;
        Ok(items.into_iter().map(RawValue::get).collect())
    }

    /// A list of names.
    pub(super) fn names(
        &self,
        path: &Path<'_>,
        field: &'static str,
        limits: &Limits,
    ) -> Result<Vec<String>, Refused> {
        let items = self.items(path, field)?;
        at_most("skipped entries", items.len(), limits.skips)?;
        let names = items.into_iter().map(|raw| {
            let name = text(raw).ok_or_else(|| wrong(path, field, "a list of texts"))?;
            at_most("bytes in a name", name.len(), limits.name_bytes)?;
            Ok(name.into_owned())
        });
        names.collect()
    }

    /// A list of objects. A `null` in it is an empty object.
    pub(super) fn objects(
        &self,
        path: &Path<'_>,
        field: &'static str,
    ) -> Result<Vec<Self>, FieldError> {
        let items = self.items(path, field)?.into_iter().map(|raw| match Any::parse(raw) {
            Any::Object(fields) => Ok(fields),
            Any::Null => Ok(Self::default()),
            Any::Other => Err(wrong(path, field, "a list of objects")),
        });
        items.collect()
    }

    /// An object. Nothing and `null` are the empty object.
    pub(super) fn object(&self, path: &Path<'_>, field: &'static str) -> Result<Self, FieldError> {
        match self.raw(field).map(Any::parse) {
            None | Some(Any::Null) => Ok(Self::default()),
            Some(Any::Object(fields)) => Ok(fields),
            Some(Any::Other) => Err(wrong(path, field, "an object")),
        }
    }
}

/// A field that has a value of another kind.
pub(super) fn wrong(path: &Path<'_>, field: &'static str, expected: &'static str) -> FieldError {
    FieldError::Kind { field: format!("{path}{field}"), expected }
}

/// The text that JSON text stands for; `null` is the empty one.
pub(super) fn text(raw: &str) -> Option<Cow<'_, str>> {
    let Text(text) = serde_json::from_str(raw).ok()?;
    Some(text.unwrap_or_default())
}

impl<'a> Any<'a> {
    /// Reads JSON text that has been parsed before.
    pub(super) fn parse(raw: &'a str) -> Self {
        serde_json::from_str(raw).unwrap_or(Self::Other)
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Text(None))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

impl<'de> Deserialize<'de> for Any<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Any<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(Text(name)) = map.next_key()? {
                    let value: &RawValue = map.next_value()?;
                    fields.push((name.unwrap_or_default(), value.get()));
                }
                Ok(Any::Object(Fields(fields)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Any::Other)
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Any::Null)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Any::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Any::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Any::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Any::Other)
            }
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Any::Other)
            }
        }
        deserializer.deserialize_any(Anything)
    }
}
