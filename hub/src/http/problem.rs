//! How the API says no. The codes are part of the API: they never change their meaning.

use axum::{
    http::{HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use wavelift_api::live::Problem;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("there is no {what}")]
    NotFound { what: String },
    #[error("there is nothing at this path")]
    NoRoute,
    #[error("only GET and HEAD are answered here")]
    Method,
    #[error("there is no parameter `{name}`")]
    UnknownParameter { name: String, known: Vec<&'static str> },
    #[error("`{name}` {why}")]
    Parameter { name: &'static str, why: String },
    #[error("`continue` {why}")]
    Continue { why: &'static str },
    #[error("this hub does not lead")]
    NotLeader,
    #[error("{max} requests are under way")]
    Busy { max: usize },
    #[error("{max} event streams are open")]
    Streams { max: usize },
    #[error("the agent of `{cluster}` is not connected")]
    AgentAway { cluster: String },
    #[error("the agent of `{cluster}` has too many unanswered questions")]
    AgentBusy { cluster: String },
    #[error("the agent of `{cluster}` did not answer in time")]
    AgentTimeout { cluster: String },
    #[error("the agent of `{cluster}` gave no usable answer: {why}")]
    Agent { cluster: String, why: String },
}

/// What all problems of one code share.
struct Entry {
    code: &'static str,
    status: StatusCode,
    title: &'static str,
    retry: Option<u64>,
}

// === impl Error ===

impl Error {
    fn entry(&self) -> Entry {
        let entry = |code, status, title| Entry { code, status, title, retry: None };
        match self {
            Self::NotFound { .. } => entry("not-found", StatusCode::NOT_FOUND, "No such object"),
            Self::NoRoute => entry("no-route", StatusCode::NOT_FOUND, "No such path"),
            Self::Method => {
                entry("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "Read only")
            }
            Self::UnknownParameter { .. } => {
                entry("unknown-parameter", StatusCode::BAD_REQUEST, "Unknown query parameter")
            }
            Self::Parameter { .. } => {
                entry("invalid-parameter", StatusCode::BAD_REQUEST, "Invalid query parameter")
            }
            Self::Continue { .. } => {
                entry("invalid-continue", StatusCode::BAD_REQUEST, "Invalid continue token")
            }
            Self::NotLeader => Entry {
                retry: Some(2),
                ..entry("not-leader", StatusCode::SERVICE_UNAVAILABLE, "Not the leader")
            },
            Self::Busy { .. } => Entry {
                retry: Some(1),
                ..entry("busy", StatusCode::SERVICE_UNAVAILABLE, "Too many requests at once")
            },
            Self::Streams { .. } => Entry {
                retry: Some(30),
                ..entry("too-many-streams", StatusCode::SERVICE_UNAVAILABLE, "Too many streams")
            },
            Self::AgentAway { .. } => {
                entry("agent-not-connected", StatusCode::SERVICE_UNAVAILABLE, "Agent not connected")
            }
            Self::AgentBusy { .. } => Entry {
                retry: Some(1),
                ..entry("agent-busy", StatusCode::SERVICE_UNAVAILABLE, "Agent busy")
            },
            Self::AgentTimeout { .. } => {
                entry("agent-timeout", StatusCode::GATEWAY_TIMEOUT, "Agent did not answer")
            }
            Self::Agent { .. } => entry("agent-error", StatusCode::BAD_GATEWAY, "Agent error"),
        }
    }

    fn action(&self) -> String {
        match self {
            Self::NotFound { .. } => {
                "Check the name, or list what there is one level up.".to_owned()
            }
            Self::NoRoute => "See /api/v1/openapi.json for what there is.".to_owned(),
            Self::Method => "Change the FleetUpgrade object, or use the wavelift CLI.".to_owned(),
            Self::UnknownParameter { known, .. } if known.is_empty() => {
                "This path takes no parameters.".to_owned()
            }
            Self::UnknownParameter { known, .. } => format!("Known here: {}.", known.join(", ")),
            Self::Parameter { name, .. } => format!("Correct `{name}` or leave it out."),
            Self::Continue { .. } => "Begin again without `continue`.".to_owned(),
            Self::NotLeader => {
                "Ask through the Service, which routes to the leader, and try again.".to_owned()
            }
            Self::Busy { .. } => "Try again in a moment.".to_owned(),
            Self::Streams { .. } => {
                "Poll the lists, or close a stream that is not needed.".to_owned()
            }
            Self::AgentAway { .. } => {
                "Look at the cluster without `/live` for what was last reported, and see on the \
                 cluster why its agent is not running."
                    .to_owned()
            }
            Self::AgentBusy { .. } | Self::AgentTimeout { .. } => {
                "Try again; look at the cluster without `/live` for what was last reported."
                    .to_owned()
            }
            Self::Agent { .. } => {
                "Look at the cluster without `/live`, and see the agent's log.".to_owned()
            }
        }
    }

    fn problem(&self) -> (Entry, Problem) {
        let entry = self.entry();
        let problem = Problem {
            kind: format!("urn:wavelift:problem:{}", entry.code),
            title: entry.title.to_owned(),
            status: entry.status.as_u16(),
            detail: self.to_string(),
            code: entry.code.to_owned(),
            action: self.action(),
            instance: None,
        };
        (entry, problem)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (entry, problem) = self.problem();
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (entry.status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if let Some(seconds) = entry.retry {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self == Self::Method {
            let allow = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allow);
        }
        response
    }
}

pub(super) async fn method_not_allowed() -> Error {
    Error::Method
}

/// Outside `/api` too: a wrong path of the page is answered by the same words.
pub(super) async fn no_route(_: Uri) -> Error {
    Error::NoRoute
}
