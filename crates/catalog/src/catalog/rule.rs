//! Rules in CEL: what a bundle asks of the properties of another one (`olm.constraint`, `cel`).
//!
//! OLM type-checks a rule when it reads it: one that is no rule fails the namespace. While a rule is
//! evaluated, an error means that the bundle does not satisfy it. Both are kept apart here too: what
//! [`check`] refuses is an error, what goes wrong with one bundle's values is "not satisfied". A rule
//! that would be too much work is an error, never an answer.

use std::sync::OnceLock;

use cel::{Context, Program, Value};
use wavelift_core::version::Version;

pub use crate::cel::BadRule;
use crate::{
    cel::{self as bounded, Kind, Numbers},
    graph::Property,
};

/// A rule. It is read and checked when it is first asked for: most rules of a catalog never are.
#[derive(Debug)]
pub(crate) struct Rule {
    text: String,
    program: OnceLock<Result<Program, BadRule>>,
}

/// The properties of one bundle, as rules see them.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    properties: Value,
    values: usize,
}

// === impl Rule ===

impl Rule {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), program: OnceLock::new() }
    }

    /// The rule as it can be evaluated, or why it can't.
    pub(crate) fn check(&self) -> Result<&Program, BadRule> {
        self.program.get_or_init(|| read(&self.text)).as_ref().map_err(Clone::clone)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// How much work it is for these values: a look for each hundred steps.
    pub(crate) fn cost(&self, facts: &Facts) -> Result<usize, BadRule> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between nothing and the bound, which `steps` keeps"
        )]
        Ok(1 + (self.steps(facts)? / 100.0) as usize)
    }

    /// How many steps it takes at most; an error where that are too many.
    fn steps(&self, facts: &Facts) -> Result<f64, BadRule> {
        let size = facts.values.max(self.text.len());
        bounded::steps(self.check()?, size)
    }

    pub(crate) fn is_met_by(&self, facts: &Facts) -> Result<bool, BadRule> {
        let program = self.check()?;
        self.steps(facts)?;
        let mut context = Context::default();
        context.add_variable_from_value("properties", facts.properties.clone());
        if context.add_function("semver_compare", semver_compare).is_err() {
            return Err(BadRule::Unknown { name: "semver_compare".to_owned() });
        }
        Ok(matches!(program.execute(&context), Ok(Value::Bool(true))))
    }
}

fn read(text: &str) -> Result<Program, BadRule> {
    match bounded::read(text, &[("properties", Kind::List)])? {
        (program, Kind::Bool) => Ok(program),
        _ => Err(BadRule::NotBoolean),
    }
}

/// -1, 0 or 1 by precedence; both texts may be as short as `1.2`.
fn semver_compare(left: Value, right: Value) -> Result<i64, cel::ExecutionError> {
    let version = |value: Value| {
        let text = match value {
            Value::String(text) => text.to_string(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            other @ (Value::List(_)
            | Value::Map(_)
            | Value::Function(..)
            | Value::Bytes(_)
            | Value::Bool(_)
            | Value::Opaque(_)
            | Value::Struct(_)
            | Value::Null) => return Err(other),
        };
        Version::parse_tolerant(&text).map_err(|_| Value::String(text.into()))
    };
    let bad = |value| cel::ExecutionError::UnsupportedTargetType { target: value };
    let (left, right) = (version(left).map_err(bad)?, version(right).map_err(bad)?);
    Ok(left.cmp_precedence(&right) as i64)
}

// === impl Facts ===

impl Facts {
    /// What the properties of a bundle in a catalog look like to OLM: its registry does not hand out
    /// manifests and descriptions, and hands out some needs once more at the end.
    pub(crate) fn of_bundle(properties: &[&Property]) -> Self {
        let is_kept = |property: &&Property| {
            !matches!(property.kind.as_str(), Property::BUNDLE_OBJECT | Property::CSV_METADATA)
        };
        let is_twice = |property: &&Property| {
            matches!(property.kind.as_str(), Property::GVK_REQUIRED | Property::PACKAGE_REQUIRED)
        };
        let properties = || properties.iter().copied();
        Self::of(properties().filter(is_kept).chain(properties().filter(is_twice)))
    }

    /// The properties of a CSV on the cluster.
    pub(crate) fn of_installed(properties: &[&Property]) -> Self {
        Self::of(properties.iter().copied())
    }

    fn of<'a>(properties: impl Iterator<Item = &'a Property>) -> Self {
        let mut values = 0;
        let list: Vec<Value> = properties
            .map(|property| {
                let fields = [
                    ("type", Value::from(property.kind.as_str())),
                    ("value", bounded::value(&property.value, Numbers::Doubles, &mut values)),
                ];
                Value::from(std::collections::HashMap::from(fields))
            })
            .collect();
        Self { properties: Value::from(list), values }
    }
}

/// Facts that are only made when a rule asks for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lazily(OnceLock<Facts>);

impl Lazily {
    pub(crate) fn get(&self, make: impl FnOnce() -> Facts) -> &Facts {
        self.0.get_or_init(make)
    }
}

#[cfg(test)]
mod tests;
