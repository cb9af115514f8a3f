//! Rules in CEL: what a bundle asks of the properties of another one (`olm.constraint`, `cel`).
//!
//! OLM type-checks a rule when it reads it: one that is no rule fails the namespace. While a rule is
//! evaluated, an error means that the bundle does not satisfy it. Both are kept apart here too: what
//! [`check`] refuses is an error, what goes wrong with one bundle's values is "not satisfied". A rule
//! that would be too much work is an error, never an answer.

use std::sync::OnceLock;

use cel::{Context, Program, Value};
use wavelift_core::version::Version;

use crate::graph::Property;

mod check;

/// Bytes of a rule. OLM's limit of 128 KiB is for the whole constraint; real rules have below 200.
const TEXT_MAX: usize = 4096;

/// The stack of the thread that parses: the parser goes deep before it counts for itself.
const STACK_BYTES: usize = 64 << 20;

/// Brackets within brackets.
const BRACKETS_MAX: usize = 16;

/// Signs that may stand one within the other without brackets: `!!!true`.
const PREFIXES_MAX: usize = 16;

/// Signs of any kind, each of which may go one deeper: `a.b.c`, `1+1+1`.
const SIGNS_MAX: usize = 300;

/// How deep a rule may be once it is read. It is evaluated on whatever stack there is.
const DEPTH_MAX: usize = 40;

/// Steps of one evaluation.
const STEPS_MAX: f64 = 1e6;

/// Why a rule is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// More text than is looked at.
    #[error("has {length} bytes, more than {TEXT_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// It is nested deeper than is looked at.
    #[error("is nested too deep or has too many signs")]
    TooDeep,
    /// It is no CEL.
    #[error("does not parse: {reason}")]
    Parse {
        /// What is wrong with it.
        reason: String,
    },
    /// Its result is no truth value, or not known to be one.
    #[error("does not end in a truth value")]
    NotBoolean,
    /// It puts together what does not go together.
    #[error("has the wrong types in `{operation}`")]
    Types {
        /// The function or operator.
        operation: String,
    },
    /// It names a variable or a function that is not evaluated here.
    #[error("names `{name}`, which is not known")]
    Unknown {
        /// The name.
        name: String,
    },
    /// It would take too long on this many values.
    #[error("is too much work for {values} values")]
    TooCostly {
        /// How many values the properties of one bundle have.
        values: usize,
    },
}

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

// === impl BadRule ===

impl BadRule {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "TooLong",
            Self::TooDeep => "TooDeep",
            Self::Parse { .. } => "Parse",
            Self::NotBoolean => "NotBoolean",
            Self::Types { .. } => "Types",
            Self::Unknown { .. } => "Unknown",
            Self::TooCostly { .. } => "TooCostly",
        }
    }
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
        let steps = check::steps(self.check()?.expression(), size);
        if steps > STEPS_MAX {
            return Err(BadRule::TooCostly { values: facts.values });
        }
        Ok(steps)
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
    if text.len() > TEXT_MAX {
        return Err(BadRule::TooLong { length: text.len() });
    }
    if is_too_deep(text) {
        return Err(BadRule::TooDeep);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let parsing = thread
            .spawn_scoped(scope, || parse(text))
            .map_err(|error| BadRule::Parse { reason: error.to_string() })?;
        let gave_up = || BadRule::Parse { reason: "the parser gives up".to_owned() };
        parsing.join().unwrap_or_else(|_| Err(gave_up()))
    })
}

fn parse(text: &str) -> Result<Program, BadRule> {
    let program = Program::compile(text).map_err(|errors| {
        let first = errors.errors.first().map(ToString::to_string);
        BadRule::Parse { reason: first.unwrap_or_default() }
    })?;
    if check::depth(program.expression()) > DEPTH_MAX {
        return Err(BadRule::TooDeep);
    }
    check::check(program.expression())?;
    Ok(program)
}

/// Whether it is nested deeper than any real rule: what is in quotes is counted too, which only makes
/// the bound stricter.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut deepest, mut prefixes, mut signs) = (0_usize, 0, 0, 0);
    for byte in text.bytes().filter(u8::is_ascii_punctuation) {
        signs += usize::from(!matches!(byte, b'\'' | b'"' | b'_' | b','));
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'!' | b'-' => prefixes += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest > BRACKETS_MAX || prefixes > PREFIXES_MAX || signs > SIGNS_MAX
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
                    ("value", value(&property.value, &mut values)),
                ];
                Value::from(std::collections::HashMap::from(fields))
            })
            .collect();
        Self { properties: Value::from(list), values }
    }
}

/// JSON as OLM reads it: every number is a double. Depth is bounded where catalogs are read.
fn value(json: &serde_json::Value, count: &mut usize) -> Value {
    use serde_json::Value as Json;
    *count += 1;
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => {
            Value::from(items.iter().map(|item| value(item, count)).collect::<Vec<_>>())
        }
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (key.clone(), value(field, count)));
            Value::from(fields.collect::<std::collections::HashMap<_, _>>())
        }
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
