//! What stands before every answer: leadership, the number of requests, security headers.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{Context, problem::Error};

/// The page loads its own files and asks its own API, and nothing else; nobody frames it.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                   img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                   frame-ancestors 'none'; form-action 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses when another hub leads or too much is asked at once.
///
/// The document that describes the API and the event streams, which are counted apart, pass here
/// as well: a stream holds its place only until its answer begins.
pub(super) async fn leads(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    if context.leader.borrow().term.is_none() {
        return Error::NotLeader.into_response();
    }
    let Ok(_place) = Arc::clone(&context.requests).try_acquire_owned() else {
        return Error::Busy { max: context.settings.requests_max }.into_response();
    };
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Adds the security headers to every answer.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        // A document that stands for itself has a policy of its own.
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
