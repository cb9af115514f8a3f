//! What the status sources of an operator's author say of objects that were read.
//!
//! An author knows better than anybody how far a new version has come: a controller that moves data
//! says so in its own custom resources. What is said refines what is shown. It never decides whether a
//! step stands: that is OLM's own word, and an author has `Upgradeable` in the OperatorCondition to hold
//! the next step back.

use cel::{Context, Program, Value};
use serde_json::Value as Json;
use wavelift_core::conditions::Truth;

use crate::{
    cel::{self as bounded, BadRule, Kind, Numbers},
    release::{StatusObject, StatusSource},
};

/// Objects of one source.
pub const OBJECTS_MAX: usize = 4;
/// Conditions of one source.
pub const CONDITIONS_MAX: usize = 16;
/// Bytes of a text that an expression ends in; what is longer is cut.
const SAID_MAX: usize = 2048;
/// Levels of an object that are looked into.
const LEVELS_MAX: usize = 64;

/// A source that can be asked.
#[derive(Debug)]
pub struct Source {
    name: String,
    objects: Vec<StatusObject>,
    progress: Option<Program>,
    message: Option<Program>,
    conditions: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    kind: String,
    reason: String,
    status: Program,
    message: Option<Program>,
}

/// What reading an object has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The object, or the list of them.
    Is(Json),
    /// There is no such object, or no such kind, with the name of what is missing.
    Missing(String),
    /// It could not be read, in the API server's words.
    Unread(String),
}

/// What a source says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The source's name.
    pub source: String,
    /// From 0 to 100; nothing where it does not say, or cannot be told.
    pub progress: Option<u8>,
    /// What is going on.
    pub message: Option<String>,
    /// The conditions, all of them, always.
    pub conditions: Vec<Said>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its type.
    pub kind: String,
    /// True, False, or not known.
    pub status: Truth,
    /// Its reason.
    pub reason: String,
    /// Its message; empty where there is none.
    pub message: String,
}

/// Where a source breaks a rule, and which.
pub type Refused = (String, String);

// === impl Source ===

impl Source {
    /// Reads the expressions. The error is a field, with the path to it from the source, and what is
    /// wrong with it, as a phrase.
    pub fn new(source: &StatusSource) -> Result<Self, Refused> {
        let at_most = |field: &str, length: usize, max: usize| {
            let reason = format!("has {length} items, more than {max}");
            if length > max { Err((field.to_owned(), reason)) } else { Ok(()) }
        };
        at_most("objects", source.objects.len(), OBJECTS_MAX)?;
        at_most("conditions", source.conditions.len(), CONDITIONS_MAX)?;
        let mut scope: Vec<(&str, Kind)> = Vec::new();
        for (index, object) in source.objects.iter().enumerate() {
            let wrong = |field: &str, reason: &str| {
                (format!("objects[{index}].{field}"), reason.to_owned())
            };
            let variable = object.variable.as_str();
            if !is_name(variable) {
                let form = "is no name: a lower-case letter, then letters, digits and `_`";
                return Err(wrong("variable", form));
            }
            if scope.iter().any(|(known, _)| *known == variable) {
                return Err(wrong("variable", "is there already"));
            }
            if object.api_version == "v1" && object.kind == "Secret" {
                return Err(wrong("kind", "is Secret, which is not read"));
            }
            let kind = if object.name.is_some() { Kind::Dynamic } else { Kind::List };
            scope.push((variable, kind));
        }
        let read = |field: &str, text: &str, wanted: Wanted| {
            wanted.read(text, &scope).map_err(|bad| (field.to_owned(), bad.to_string()))
        };
        let maybe = |field: &str, text: &Option<String>, wanted: Wanted| {
            text.as_deref().map(|text| read(field, text, wanted)).transpose()
        };
        let mut conditions = Vec::new();
        for (index, condition) in source.conditions.iter().enumerate() {
            let at = |field: &str| format!("conditions[{index}].{field}");
            conditions.push(Asked {
                kind: condition.kind.clone(),
                reason: condition.reason.clone().unwrap_or_else(|| condition.kind.clone()),
                status: read(&at("status"), &condition.status, Wanted::Truth)?,
                message: maybe(&at("message"), &condition.message, Wanted::Text)?,
            });
        }
        Ok(Self {
            name: source.name.clone(),
            objects: source.objects.clone(),
            progress: maybe("progress", &source.progress, Wanted::Number)?,
            message: maybe("message", &source.message, Wanted::Text)?,
            conditions,
        })
    }

    /// The objects to read, in the order in which [`Self::tell`] wants them.
    pub fn objects(&self) -> &[StatusObject] {
        &self.objects
    }

    /// What it says of the objects that were found.
    pub fn tell(&self, found: &[Found]) -> Told {
        let facts = match Facts::of(&self.objects, found) {
            Ok(facts) => facts,
            Err((reason, message)) => return self.unknown(reason, &message),
        };
        let conditions = self.conditions.iter().map(|asked| {
            let (status, reason, message) = match facts.ask(&asked.status) {
                Ok(Value::Bool(holds)) => {
                    let status = Truth::from_bool(holds);
                    let message = asked.message.as_ref().and_then(|text| facts.text(text));
                    (status, asked.reason.clone(), message.unwrap_or_default())
                }
                Ok(_) => (Truth::Unknown, NOT_TOLD.to_owned(), "it is no truth value".to_owned()),
                Err(why) => (Truth::Unknown, NOT_TOLD.to_owned(), cut(&why)),
            };
            Said { kind: asked.kind.clone(), status, reason, message }
        });
        Told {
            source: self.name.clone(),
            progress: self.progress.as_ref().and_then(|progress| facts.percent(progress)),
            message: self.message.as_ref().and_then(|message| facts.text(message)),
            conditions: conditions.collect(),
        }
    }

    fn unknown(&self, reason: &str, message: &str) -> Told {
        let conditions = self.conditions.iter().map(|asked| Said {
            kind: asked.kind.clone(),
            status: Truth::Unknown,
            reason: reason.to_owned(),
            message: cut(message),
        });
        Told { source: self.name.clone(), conditions: conditions.collect(), ..Told::default() }
    }
}

/// The reason where an expression has come to nothing.
const NOT_TOLD: &str = "NotEvaluated";

/// What an expression is to end in.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Truth,
    Number,
    Text,
}

impl Wanted {
    fn read(self, text: &str, scope: &[(&str, Kind)]) -> Result<Program, BadRule> {
        let (program, kind) = bounded::read(text, scope)?;
        let fits = match self {
            Self::Truth => matches!(kind, Kind::Bool | Kind::Dynamic),
            Self::Number => {
                matches!(kind, Kind::Int | Kind::Uint | Kind::Double | Kind::Dynamic)
            }
            Self::Text => matches!(kind, Kind::Text | Kind::Dynamic),
        };
        let wanted = match self {
            Self::Truth => "a truth value",
            Self::Number => "a number",
            Self::Text => "a text",
        };
        if fits { Ok(program) } else { Err(BadRule::Ends { wanted }) }
    }
}

/// The objects as expressions see them.
struct Facts {
    context: Context<'static, 'static>,
    values: usize,
}

impl Facts {
    /// The error is a reason, as conditions have it, and a message.
    fn of(objects: &[StatusObject], found: &[Found]) -> Result<Self, (&'static str, String)> {
        let mut context = Context::default();
        let mut values = 0;
        for (object, found) in objects.iter().zip(found) {
            match found {
                Found::Is(json) if is_too_deep(json, LEVELS_MAX) => {
                    return Err(("ObjectNotRead", "it is nested too deep".to_owned()));
                }
                Found::Is(json) => {
                    let value = bounded::value(json, Numbers::Ints, &mut values);
                    context.add_variable_from_value(object.variable.as_str(), value);
                }
                Found::Missing(what) => return Err(("ObjectNotFound", what.clone())),
                Found::Unread(why) => return Err(("ObjectNotRead", why.clone())),
            }
        }
        Ok(Self { context, values })
    }

    fn ask(&self, program: &Program) -> Result<Value, String> {
        bounded::steps(program, self.values).map_err(|bad| format!("it {bad}"))?;
        program.execute(&self.context).map_err(|error| error.to_string())
    }

    fn text(&self, program: &Program) -> Option<String> {
        match self.ask(program) {
            Ok(Value::String(text)) => Some(cut(&text)),
            _ => None,
        }
    }

    fn percent(&self, program: &Program) -> Option<u8> {
        let number = match self.ask(program) {
            Ok(Value::Int(number)) => return u8::try_from(number.clamp(0, 100)).ok(),
            Ok(Value::UInt(number)) => return u8::try_from(number.min(100)).ok(),
            Ok(Value::Float(number)) if number.is_finite() => number.clamp(0.0, 100.0),
            _ => return None,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 100, rounded down"
        )]
        Some(number as u8)
    }
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    text.len() <= 63
        && letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_too_deep(json: &Json, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    match json {
        Json::Array(items) => items.iter().any(|item| is_too_deep(item, levels)),
        Json::Object(fields) => fields.values().any(|field| is_too_deep(field, levels)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn cut(text: &str) -> String {
    text.chars().take(SAID_MAX).collect()
}

#[cfg(test)]
mod tests;
