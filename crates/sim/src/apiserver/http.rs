//! The HTTP face of the server: one function from a request to a response, used by in-process
//! clients and by sockets alike. Only watches and injected delays wait.

mod discovery;
mod openapi;
mod read;
mod route;
mod watch;
mod write;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request as HttpRequest, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Serialize;
use serde_json::{Value, json};

use self::route::{Call, Route};
use super::{
    ApiServer,
    audit::AuditEffect,
    error::{ApiError, Reason},
    faults::{Action, Verdict},
};

/// No request is larger, as on a real server.
const BODY_MAX: usize = 3 << 20;

/// The connection is to be dropped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulated API server dropped the connection")]
pub struct Dropped;

/// An answer and whether it came with a change of the store.
#[derive(Debug)]
struct Answer {
    response: Response<Body>,
    effect: AuditEffect,
}

/// Answers one request.
pub(super) async fn respond<B>(
    server: &ApiServer,
    request: HttpRequest<B>,
) -> Result<Response<Body>, Dropped>
where
    B: axum::body::HttpBody,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, BODY_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = "request body is larger than 3 MiB";
            return Ok(refusal(&ApiError::new(Reason::RequestEntityTooLarge, message)));
        }
        Err(_) => return Err(Dropped),
    };
    let call = match Call::read(server, &parts, &body) {
        Ok(call) => call,
        Err(error) => return Ok(refusal(&error)),
    };
    let actions = server.faults().strike(&call.request);
    let outcome = carry_out(server, &call, actions).await;
    if call.request.verb.is_mutating() {
        let (code, effect) = match &outcome {
            Outcome::Answered(answer) => (answer.response.status().as_u16(), answer.effect),
            Outcome::Dropped(effect) => (0, *effect),
        };
        server.shared.audit.record(&call.request, code, effect);
    }
    match outcome {
        Outcome::Answered(answer) => Ok(answer.response),
        Outcome::Dropped(_) => Err(Dropped),
    }
}

enum Outcome {
    Answered(Answer),
    Dropped(AuditEffect),
}

async fn carry_out(server: &ApiServer, call: &Call, actions: Vec<Action>) -> Outcome {
    for action in &actions {
        match action {
            Action::Refuse(error) => return Outcome::Answered(refusal(error).into()),
            Action::DropBefore => return Outcome::Dropped(AuditEffect::Unchanged),
            Action::Delay(duration) => tokio::time::sleep(*duration).await,
            Action::Before(hook) => {
                if hook(&call.request) == Verdict::Drop {
                    return Outcome::Dropped(AuditEffect::Unchanged);
                }
            }
            Action::DropAfter | Action::After(_) => {}
        }
    }
    let answer = answer(server, call).unwrap_or_else(|error| refusal(&error).into());
    for action in &actions {
        let verdict = match action {
            Action::DropAfter => Verdict::Drop,
            Action::After(hook) => hook(&call.request),
            Action::Refuse(_) | Action::DropBefore | Action::Delay(_) | Action::Before(_) => {
                Verdict::GoOn
            }
        };
        if verdict == Verdict::Drop {
            return Outcome::Dropped(answer.effect);
        }
    }
    Outcome::Answered(answer)
}

fn answer(server: &ApiServer, call: &Call) -> Result<Answer, ApiError> {
    match &call.route {
        Route::Text(text) => Ok(plain(text).into()),
        Route::Version => Ok(json_response(StatusCode::OK, &*server.version()).into()),
        Route::Discovery(path) => discovery::answer(server, call, path).map(Answer::from),
        Route::OpenApi(path) => openapi::answer(server, call, path).map(Answer::from),
        Route::Review => Ok(review(call).into()),
        Route::Objects(target) => {
            use super::audit::Verb;
            match call.request.verb {
                Verb::Get => read::get(server, call, target).map(Answer::from),
                Verb::List => read::list(server, call, target).map(Answer::from),
                Verb::Watch => watch::open(server, call, target).map(Answer::from),
                Verb::Create => write::create(server, call, target),
                Verb::Update => write::update(server, call, target),
                Verb::Patch => write::patch(server, call, target),
                Verb::Delete => write::delete(server, call, target),
                Verb::DeleteCollection => write::delete_all(server, call, target),
                Verb::Other => Err(ApiError::unknown_resource()),
            }
        }
    }
}

impl From<Response<Body>> for Answer {
    fn from(response: Response<Body>) -> Self {
        Self { response, effect: AuditEffect::Unchanged }
    }
}

/// Everybody may do everything; the review comes back with that answer.
fn review(call: &Call) -> Response<Body> {
    let mut review: Value = serde_json::from_slice(&call.body).unwrap_or_else(|_| json!({}));
    if !review.is_object() {
        review = json!({});
    }
    review["status"] = if review["kind"] == "SelfSubjectReview" {
        json!({"userInfo": {"username": "simulator", "groups": ["system:masters"]}})
    } else {
        json!({"allowed": true, "reason": "the simulator allows everything"})
    };
    json_response(StatusCode::CREATED, &review)
}

fn json_response(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    let bytes = serde_json::to_vec(body).expect("JSON values and lists of them can be written");
    body_response(status, "application/json", Bytes::from(bytes))
}

fn plain(text: &str) -> Response<Body> {
    body_response(
        StatusCode::OK,
        "text/plain; charset=utf-8",
        Bytes::copy_from_slice(text.as_bytes()),
    )
}

fn body_response(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let content_type = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

pub(super) fn refusal(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_response(status, &error.status())
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
