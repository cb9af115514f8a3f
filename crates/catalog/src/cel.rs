//! CEL, bounded: what a text may be before it is read, what is known of it before it is evaluated,
//! how much work it may be.

use cel::{Program, Value};

pub(crate) use self::check::Kind;

mod check;

/// Bytes of a rule. OLM's limit of 128 KiB is for the whole constraint; real rules have below 200.
const TEXT_MAX: usize = 4096;

/// The stack of the thread that parses: the parser goes deep before it counts for itself.
const STACK_BYTES: usize = 64 << 20;

/// Brackets within brackets.
pub(crate) const BRACKETS_MAX: usize = 16;

/// Signs that may stand one within the other without brackets: `!!!true`.
const PREFIXES_MAX: usize = 16;

/// Signs of any kind, each of which may go one deeper: `a.b.c`, `1+1+1`.
pub(crate) const SIGNS_MAX: usize = 300;

/// How deep a rule may be once it is read. It is evaluated on whatever stack there is.
pub(crate) const DEPTH_MAX: usize = 40;

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
    /// Its result is of another kind.
    #[error("does not end in {wanted}")]
    Ends {
        /// What it should be, as a phrase.
        wanted: &'static str,
    },
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

/// How the numbers of JSON are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// All as doubles, as OLM does.
    Doubles,
    /// Whole ones as ints, as Kubernetes does.
    Ints,
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
            Self::Ends { .. } => "Ends",
            Self::Types { .. } => "Types",
            Self::Unknown { .. } => "Unknown",
            Self::TooCostly { .. } => "TooCostly",
        }
    }
}

/// Reads an expression over these variables. What it ends in is for the caller to look at.
pub(crate) fn read(text: &str, scope: &[(&str, Kind)]) -> Result<(Program, Kind), BadRule> {
    if text.len() > TEXT_MAX {
        return Err(BadRule::TooLong { length: text.len() });
    }
    if is_too_deep(text) {
        return Err(BadRule::TooDeep);
    }
    std::thread::scope(|on| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let parsing = thread
            .spawn_scoped(on, || parse(text, scope))
            .map_err(|error| BadRule::Parse { reason: error.to_string() })?;
        let gave_up = || BadRule::Parse { reason: "the parser gives up".to_owned() };
        parsing.join().unwrap_or_else(|_| Err(gave_up()))
    })
}

fn parse(text: &str, scope: &[(&str, Kind)]) -> Result<(Program, Kind), BadRule> {
    let program = Program::compile(text).map_err(|errors| {
        let first = errors.errors.first().map(ToString::to_string);
        BadRule::Parse { reason: first.unwrap_or_default() }
    })?;
    if check::depth(program.expression()) > DEPTH_MAX {
        return Err(BadRule::TooDeep);
    }
    let kind = check::check(program.expression(), scope)?;
    Ok((program, kind))
}

/// How many steps an evaluation takes at most where no list is longer than `size`; an error where
/// that are too many.
pub(crate) fn steps(program: &Program, size: usize) -> Result<f64, BadRule> {
    let steps = check::steps(program.expression(), size);
    if steps > STEPS_MAX {
        return Err(BadRule::TooCostly { values: size });
    }
    Ok(steps)
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

/// JSON as an expression sees it; `count` goes up by its values. Its depth is bounded where it is
/// read.
pub(crate) fn value(json: &serde_json::Value, numbers: Numbers, count: &mut usize) -> Value {
    use serde_json::Value as Json;
    *count += 1;
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) if numbers == Numbers::Ints => Value::Int(whole),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => {
            Value::from(items.iter().map(|item| value(item, numbers, count)).collect::<Vec<_>>())
        }
        Json::Object(fields) => {
            let fields =
                fields.iter().map(|(key, field)| (key.clone(), value(field, numbers, count)));
            Value::from(fields.collect::<std::collections::HashMap<_, _>>())
        }
    }
}
