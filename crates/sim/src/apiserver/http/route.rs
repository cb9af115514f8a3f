//! From a method and a path to what is asked for.

use std::sync::Arc;

use axum::extract::Query;
use bytes::Bytes;
use http::{Method, header, request::Parts};
use serde_json::Value;

use super::header_text;
use crate::apiserver::{
    ApiServer,
    audit::{Request, Verb},
    error::{ApiError, Reason},
    kind::Kind,
    kinds::gk,
    meta,
    store::{FieldValidation, WriteOptions},
    view::View,
};

/// One request, read.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) route: Route,
    /// What hooks and the audit log see.
    pub(super) request: Request,
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) body: Bytes,
    query: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) enum Route {
    Text(&'static str),
    Version,
    /// `/api`, `/apis` and what lists resources below them.
    Discovery(Vec<String>),
    OpenApi(Vec<String>),
    /// Access and identity reviews.
    Review,
    Objects(Target),
}

/// Which objects a path names.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) kind: Arc<Kind>,
    pub(super) view: View,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) is_status: bool,
}

// === impl Call ===

impl Call {
    pub(super) fn read(server: &ApiServer, parts: &Parts, body: &Bytes) -> Result<Self, ApiError> {
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|e| ApiError::bad_request(format!("cannot read the query: {e}")))?
            .0;
        let segments: Vec<String> =
            parts.uri.path().split('/').filter(|s| !s.is_empty()).map(decode).collect();
        let route = Route::read(server, &segments)?;
        let value =
            |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let verb = verb(&parts.method, &route, value("watch"))?;
        let user_agent: Arc<str> = header_text(&parts.headers, &header::USER_AGENT).into();
        let field_manager = value("fieldManager").filter(|name| !name.is_empty());
        let short_agent = user_agent.split('/').next().unwrap_or_default();
        let mut request = Request {
            field_manager: field_manager.unwrap_or(short_agent).to_owned(),
            user_agent: Arc::clone(&user_agent),
            verb,
            gk: None,
            namespace: None,
            name: None,
            subresource: String::new(),
            body: body.clone(),
        };
        if let Route::Objects(target) = &route {
            request.gk = Some(target.kind.gk.clone());
            request.namespace.clone_from(&target.namespace);
            request.name.clone_from(&target.name);
            if verb == Verb::Create {
                let object: Value = serde_json::from_slice(body).unwrap_or_default();
                let name = Some(meta::name(&object)).filter(|name| !name.is_empty());
                request.name = name.map(str::to_owned);
            }
            if target.is_status {
                "status".clone_into(&mut request.subresource);
            }
        }
        let text = |name| header_text(&parts.headers, &name).to_owned();
        let (accept, content_type) = (text(header::ACCEPT), text(header::CONTENT_TYPE));
        Ok(Self { route, request, accept, content_type, body: body.clone(), query })
    }

    /// A query parameter, empty when absent.
    pub(super) fn query(&self, name: &str) -> &str {
        self.query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// A boolean query parameter.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.query(name), "true" | "1")
    }

    /// The body as JSON; YAML is understood as well.
    pub(super) fn object(&self) -> Result<Value, ApiError> {
        if self.content_type.contains("protobuf") || self.content_type.contains("cbor") {
            let message = "the body of the request was in an unknown format - accepted media types \
                include: application/json, application/yaml";
            return Err(ApiError::new(Reason::UnsupportedMediaType, message));
        }
        serde_json::from_slice(&self.body)
            .or_else(|json| {
                let text = std::str::from_utf8(&self.body).unwrap_or_default();
                serde_saphyr::from_str(text).map_err(|_| json)
            })
            .map_err(|e| ApiError::bad_request(format!("cannot read the body: {e}")))
    }

    /// How the write wants to be treated.
    pub(super) fn write_options(&self) -> WriteOptions<'_> {
        WriteOptions {
            manager: Some(self.request.field_manager.as_str()).filter(|name| !name.is_empty()),
            dry_run: self.query("dryRun") == "All",
            validation: match self.query("fieldValidation") {
                "Strict" => FieldValidation::Strict,
                "Ignore" => FieldValidation::Ignore,
                _ => FieldValidation::Warn,
            },
        }
    }
}

// === impl Route ===

impl Route {
    fn read(server: &ApiServer, segments: &[String]) -> Result<Self, ApiError> {
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Ok(Self::Text("ok")),
            ["version"] => Ok(Self::Version),
            ["openapi", ..] => Ok(Self::OpenApi(segments.to_vec())),
            [] | ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _] => {
                Ok(Self::Discovery(segments.to_vec()))
            }
            ["apis", "authorization.k8s.io" | "authentication.k8s.io", "v1", _] => Ok(Self::Review),
            ["api", version, rest @ ..] => Self::objects(server, ["", version], rest),
            ["apis", group, version, rest @ ..] => Self::objects(server, [group, version], rest),
            _ => Err(ApiError::unknown_resource()),
        }
    }

    fn objects(server: &ApiServer, at: [&str; 2], rest: &[&str]) -> Result<Self, ApiError> {
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, ""),
            [plural, name] => (*plural, Some(*name), ""),
            [plural, name, subresource] => (*plural, Some(*name), *subresource),
            _ => return Err(ApiError::unknown_resource()),
        };
        let [group, version] = at;
        let is_event = group == "events.k8s.io";
        let served_group = if is_event { "" } else { group };
        let kinds = server.store().kinds();
        let kind = kinds
            .serving(served_group, version, plural)
            .filter(|kind| !is_event || kind.gk == gk::EVENT)
            .ok_or_else(ApiError::unknown_resource)?;
        let view = if is_event {
            View::EventsV1
        } else if kind.version == version {
            View::Stored
        } else {
            let outward = format!("{group}/{version}").into();
            View::Version { outward, stored: kind.api_version().into() }
        };
        let is_status = match subresource {
            "" => false,
            "status" if kind.has_status() => true,
            _ => return Err(ApiError::unknown_resource()),
        };
        let is_misplaced = namespace.is_some() && !kind.is_namespaced()
            || namespace.is_none() && name.is_some() && kind.is_namespaced();
        if is_misplaced {
            return Err(ApiError::unknown_resource());
        }
        Ok(Self::Objects(Target {
            kind: Arc::clone(kind),
            view,
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            is_status,
        }))
    }
}

fn verb(method: &Method, route: &Route, watch: Option<&str>) -> Result<Verb, ApiError> {
    let Route::Objects(target) = route else { return Ok(Verb::Other) };
    let is_watch = matches!(watch, Some("true" | "1"));
    match (method.as_str(), &target.name) {
        ("GET", _) if is_watch => Ok(Verb::Watch),
        ("GET", Some(_)) => Ok(Verb::Get),
        ("GET", None) => Ok(Verb::List),
        ("POST", None) => Ok(Verb::Create),
        ("PUT", Some(_)) => Ok(Verb::Update),
        ("PATCH", Some(_)) => Ok(Verb::Patch),
        ("DELETE", Some(_)) if !target.is_status => Ok(Verb::Delete),
        ("DELETE", None) => Ok(Verb::DeleteCollection),
        _ => Err(ApiError::new(
            Reason::MethodNotAllowed,
            "the server does not allow this method on the requested resource",
        )),
    }
}

/// A path segment with its `%xx` resolved.
fn decode(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        let escaped = (byte == b'%').then(|| {
            let mut ahead = rest.clone();
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(ahead.next())? * 16 + digit(ahead.next())?;
            rest = ahead;
            u8::try_from(value).ok()
        });
        bytes.push(escaped.flatten().unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
