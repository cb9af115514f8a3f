//! What the server answers when it refuses: a Kubernetes `Status` with reason and code.

use serde_json::{Value, json};

use super::kind::Gk;

/// A refusal, as the API server words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: Reason,
    /// The sentence for people.
    pub message: String,
    /// `details` of the `Status`, `null` when there are none.
    pub details: Value,
}

/// The `reason` of a `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 404.
    NotFound,
    /// 409 on create.
    AlreadyExists,
    /// 409 on everything else.
    Conflict,
    /// 422.
    Invalid,
    /// 400.
    BadRequest,
    /// 403.
    Forbidden,
    /// 410.
    Expired,
    /// 415.
    UnsupportedMediaType,
    /// 405.
    MethodNotAllowed,
    /// 413.
    RequestEntityTooLarge,
    /// 429.
    TooManyRequests,
    /// 500.
    InternalError,
    /// 503.
    ServiceUnavailable,
    /// 504.
    Timeout,
}

impl Reason {
    /// The word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Invalid => "Invalid",
            Self::BadRequest => "BadRequest",
            Self::Forbidden => "Forbidden",
            Self::Expired => "Expired",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
        }
    }

    /// The HTTP code that goes with it.
    pub fn code(self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Invalid => 422,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::Expired => 410,
            Self::UnsupportedMediaType => 415,
            Self::MethodNotAllowed => 405,
            Self::RequestEntityTooLarge => 413,
            Self::TooManyRequests => 429,
            Self::InternalError => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

impl ApiError {
    /// A refusal without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), reason, message: message.into(), details: Value::Null }
    }

    /// A malformed request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// The object is not there.
    pub fn not_found(resource: &str, group: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(resource, group));
        Self::new(Reason::NotFound, message).about(resource, group, name)
    }

    /// No kind is served under this path.
    pub fn unknown_resource() -> Self {
        let mut error =
            Self::new(Reason::NotFound, "the server could not find the requested resource");
        error.details = json!({});
        error
    }

    /// This server does not know the kind.
    pub fn unknown_kind(gk: &Gk) -> Self {
        Self::new(Reason::NotFound, format!("no kind {gk} is registered"))
    }

    /// The name is taken.
    pub fn already_exists(resource: &str, group: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(resource, group));
        Self::new(Reason::AlreadyExists, message).about(resource, group, name)
    }

    /// The write is based on something that no longer holds.
    pub fn conflict(resource: &str, group: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            qualified(resource, group)
        );
        Self::new(Reason::Conflict, message).about(resource, group, name)
    }

    /// The object breaks its schema; `causes` are (field, message).
    pub fn invalid(gk: &Gk, name: &str, causes: &[(String, String)]) -> Self {
        let listed: Vec<String> =
            causes.iter().map(|(field, message)| format!("{field}: {message}")).collect();
        let text = match listed.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let shown = if gk.group().is_empty() {
            gk.kind().to_owned()
        } else {
            format!("{}.{}", gk.kind(), gk.group())
        };
        let mut error =
            Self::new(Reason::Invalid, format!("{shown} \"{name}\" is invalid: {text}"));
        let causes: Vec<Value> = causes
            .iter()
            .map(|(field, message)| {
                json!({"reason": cause_reason(message), "message": message, "field": field})
            })
            .collect();
        error = error.about(gk.kind(), gk.group(), name);
        error.details["causes"] = json!(causes);
        error
    }

    /// What was asked for has left the bounded history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(Reason::Expired, message)
    }

    /// The `Status` object sent to the client.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason.as_str(), "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }

    fn about(mut self, resource: &str, group: &str, name: &str) -> Self {
        self.details = json!({"kind": resource});
        for (field, text) in [("name", name), ("group", group)] {
            if !text.is_empty() {
                self.details[field] = json!(text);
            }
        }
        self
    }
}

/// The reason that goes with a cause, known by how its message begins.
fn cause_reason(message: &str) -> &'static str {
    if message.contains(" must be of type ") {
        return "FieldValueTypeInvalid";
    }
    [
        ("Required value", "FieldValueRequired"),
        ("Unsupported value", "FieldValueNotSupported"),
        ("Duplicate value", "FieldValueDuplicate"),
        ("Forbidden", "FieldValueForbidden"),
        ("Too long", "FieldValueTooLong"),
        ("Too many", "FieldValueTooMany"),
    ]
    .into_iter()
    .find(|(start, _)| message.starts_with(start))
    .map_or("FieldValueInvalid", |(_, reason)| reason)
}

fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
