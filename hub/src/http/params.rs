//! Query parameters, taken strictly: one that is not known, given twice or malformed is refused by
//! name, so that a misspelt filter never answers with everything.

use std::{collections::BTreeMap, str::FromStr};

use axum::{extract::Query, http::Uri};
use schemars::{Schema, SchemaGenerator};

use super::problem::Error;

/// The longest value of a parameter; a continue token is the longest there is.
const VALUE_MAX: usize = 2_048;
/// The most values of one parameter.
const VALUES_MAX: usize = 64;

/// A parameter that a path knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Param {
    pub(super) name: &'static str,
    /// For the document.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
}

/// What a parameter holds, for the document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of the words of a type, separated by commas.
    SomeOf(fn(&mut SchemaGenerator) -> Schema),
    /// Texts separated by commas.
    Texts,
    /// A number of items.
    Limit,
}

/// `order`, wherever there is a list.
pub(super) const ORDER: Param = Param {
    name: "order",
    about: "Which way the list is sorted.",
    kind: Kind::OneOf(&["asc", "desc"]),
};
/// `limit`, wherever there is a list.
pub(super) const LIMIT: Param =
    Param { name: "limit", about: "How many items at most.", kind: Kind::Limit };
/// `continue`, wherever there is a list.
pub(super) const CONTINUE: Param = Param {
    name: "continue",
    about: "Where to go on: `continue` of the page before, with all other parameters as they were.",
    kind: Kind::Text,
};

/// The parameters of one request.
#[derive(Debug)]
pub(super) struct Params(BTreeMap<&'static str, String>);

/// Which way a list is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Asc,
    Desc,
}

// === impl Params ===

impl Params {
    /// Reads the parameters of `uri`, all of which must be among `known`.
    pub(super) fn read(uri: &Uri, known: &[Param]) -> Result<Self, Error> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|_| {
            Error::Parameter { name: "query", why: "is not a query string".to_owned() }
        })?;
        let mut params = BTreeMap::new();
        for (given, value) in pairs {
            let Some(name) = known.iter().map(|param| param.name).find(|name| *name == given)
            else {
                let name = given.chars().take(64).collect();
                let known = known.iter().map(|param| param.name).collect();
                return Err(Error::UnknownParameter { name, known });
            };
            if value.len() > VALUE_MAX {
                return Err(refuse(name, format!("is longer than {VALUE_MAX} bytes")));
            }
            if params.insert(name, value).is_some() {
                return Err(refuse(name, "is given twice; separate values by commas"));
            }
        }
        Ok(Self(params))
    }

    /// A text; an empty one counts as not given.
    pub(super) fn text(&self, name: &'static str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Values separated by commas, each of which `parse` must know.
    pub(super) fn values<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        what: &str,
    ) -> Result<Option<Vec<T>>, Error> {
        let Some(text) = self.text(name) else { return Ok(None) };
        if text.split(',').count() > VALUES_MAX {
            return Err(refuse(name, format!("has more than {VALUES_MAX} values")));
        }
        let known = |value: &str| {
            parse(value).ok_or_else(|| {
                let value: String = value.chars().take(64).collect();
                refuse(name, format!("has `{value}`, which is not {what}"))
            })
        };
        text.split(',').map(known).collect::<Result<_, _>>().map(Some)
    }

    /// One of `choices`; the first when not given.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<T, Error> {
        let words = || choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let first = choices.first().map(|(_, value)| *value);
        let found = match self.text(name) {
            None => first,
            Some(text) => choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value),
        };
        found.ok_or_else(|| refuse(name, format!("is not one of {}", words())))
    }

    /// `order`; `default` when not given.
    pub(super) fn order(&self, default: Order) -> Result<Order, Error> {
        match default {
            Order::Asc => self.choice("order", &[("asc", Order::Asc), ("desc", Order::Desc)]),
            Order::Desc => self.choice("order", &[("desc", Order::Desc), ("asc", Order::Asc)]),
        }
    }

    /// `limit` between 1 and `max`; `default` when not given.
    pub(super) fn limit(&self, default: usize, max: usize) -> Result<usize, Error> {
        let Some(text) = self.text("limit") else { return Ok(default) };
        match usize::from_str(text) {
            Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
            Ok(_) | Err(_) => Err(refuse("limit", format!("is not a number from 1 to {max}"))),
        }
    }

    /// Everything but where the page begins and how long it is: two requests with the same
    /// fingerprint speak of the same list.
    pub(super) fn fingerprint(&self) -> String {
        let relevant = self.0.iter().filter(|(name, _)| !matches!(**name, "continue" | "limit"));
        relevant.flat_map(|(name, value)| [*name, "=", value, "\n"]).collect()
    }
}

fn refuse(name: &'static str, why: impl Into<String>) -> Error {
    Error::Parameter { name, why: why.into() }
}
