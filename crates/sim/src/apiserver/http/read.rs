//! Get and list, in the form the client accepts.

use std::borrow::Cow;

use axum::body::Body;
use base64::Engine as _;
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    json_response,
    route::{Call, Target},
};
use crate::apiserver::{
    ApiServer,
    error::{ApiError, Reason},
    meta,
    selector::Selector,
    store::Key,
    table::{self, Include},
};

/// The form a client wants objects in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Objects,
    Table(Include),
    Metadata,
}

/// Where the next page of a list starts.
struct Page {
    revision: u64,
    after: Key,
}

impl Form {
    /// The first of the accepted forms that this server has.
    pub(super) fn of(call: &Call) -> Self {
        for accepted in call.accept.split(',') {
            let has = |part: &str| accepted.split(';').any(|p| p.trim() == part);
            if has("as=Table") && has("v=v1") {
                return Self::Table(match call.query("includeObject") {
                    "None" => Include::None,
                    "Object" => Include::Object,
                    _ => Include::Metadata,
                });
            }
            if has("as=PartialObjectMetadata") || has("as=PartialObjectMetadataList") {
                return Self::Metadata;
            }
            if !accepted.contains("as=") && accepted.trim().starts_with("application/json") {
                return Self::Objects;
            }
        }
        Self::Objects
    }

    /// One object in this form.
    pub(super) fn shape<'a>(
        self,
        server: &ApiServer,
        target: &Target,
        object: &'a Value,
    ) -> Cow<'a, Value> {
        match self {
            Self::Objects => target.view.outward(object),
            Self::Metadata => Cow::Owned(table::partial(object)),
            Self::Table(include) => {
                let now = server.store().clock().now();
                let mut table = table::table(&target.kind, std::iter::once(object), include, now);
                table["metadata"]["resourceVersion"] = json!(meta::text(object, "resourceVersion"));
                Cow::Owned(table)
            }
        }
    }
}

pub(super) fn get(
    server: &ApiServer,
    call: &Call,
    target: &Target,
) -> Result<Response<Body>, ApiError> {
    let name = target.name.as_deref().unwrap_or_default();
    let kind = &target.kind;
    let object = server
        .store()
        .get(&kind.gk, target.namespace.as_deref(), name)
        .ok_or_else(|| ApiError::not_found(&kind.plural, kind.gk.group(), name))?;
    Ok(json_response(StatusCode::OK, &*Form::of(call).shape(server, target, &object)))
}

pub(super) fn list(
    server: &ApiServer,
    call: &Call,
    target: &Target,
) -> Result<Response<Body>, ApiError> {
    let selector =
        Selector::parse(&target.kind, call.query("labelSelector"), call.query("fieldSelector"))?;
    let page = Page::read(server, call.query("continue"))?;
    let limit: usize = match call.query("limit") {
        "" => 0,
        text => text.parse().map_err(|_| ApiError::bad_request("limit: not a number"))?,
    };
    let (now, objects) = server.store().list_at(&target.kind.gk, target.namespace.as_deref());
    check_revision(call, now)?;
    let revision = page.as_ref().map_or(now, |page| page.revision);
    let is_ahead = |object: &&std::sync::Arc<Value>| {
        page.as_ref().is_none_or(|page| Key::of(object) > page.after)
    };
    let mut chosen = objects.iter().filter(is_ahead).filter(|object| selector.matches(object));
    let take = if limit == 0 { usize::MAX } else { limit };
    let items: Vec<&Value> = chosen.by_ref().take(take).map(|object| &**object).collect();
    let left = chosen.count();
    let mut metadata = json!({"resourceVersion": revision.to_string(), "continue": ""});
    if let (true, Some(last)) = (left > 0, items.last()) {
        metadata["continue"] = json!(Page { revision, after: Key::of(last) }.token());
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(left);
        }
    }
    Ok(shaped(server, call, target, (&items, metadata)))
}

fn shaped(
    server: &ApiServer,
    call: &Call,
    target: &Target,
    (items, metadata): (&[&Value], Value),
) -> Response<Body> {
    let (kind, api_version) = match Form::of(call) {
        Form::Table(include) => {
            let now = server.store().clock().now();
            let mut table = table::table(&target.kind, items.iter().copied(), include, now);
            table["metadata"] = metadata;
            return json_response(StatusCode::OK, &table);
        }
        Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        Form::Objects => (target.kind.list_kind(), target.api_version()),
    };
    let form = Form::of(call);
    let items = items.iter().map(|object| form.shape(server, target, object)).collect();
    json_response(StatusCode::OK, &List { kind, api_version, metadata, items })
}

/// A list, written without copying what is in it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: String,
    api_version: String,
    metadata: Value,
    items: Vec<Cow<'a, Value>>,
}

/// A list may ask for a revision: one that is not there yet, or an exact one that has passed.
fn check_revision(call: &Call, now: u64) -> Result<(), ApiError> {
    let asked = call.query("resourceVersion");
    if asked.is_empty() || asked == "0" {
        return Ok(());
    }
    let asked: u64 = asked
        .parse()
        .map_err(|_| ApiError::bad_request(format!("invalid resource version {asked:?}")))?;
    if asked > now {
        let message = format!("Too large resource version: {asked}, current: {now}");
        return Err(ApiError::new(Reason::Timeout, message));
    }
    if call.query("resourceVersionMatch") == "Exact" && asked < now {
        return Err(ApiError::expired("The provided resource version is no longer available."));
    }
    Ok(())
}

// === impl Page ===

impl Page {
    fn read(server: &ApiServer, token: &str) -> Result<Option<Self>, ApiError> {
        if token.is_empty() {
            return Ok(None);
        }
        let invalid = || ApiError::bad_request("continue key is not valid");
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let text = engine.decode(token).map_err(|_| invalid())?;
        let text = String::from_utf8(text).map_err(|_| invalid())?;
        let mut parts = text.splitn(3, '/');
        let mut part = || parts.next().ok_or_else(invalid);
        let revision: u64 = part()?.parse().map_err(|_| invalid())?;
        let namespace = part()?.to_owned();
        let name = part()?.to_owned();
        if !server.store().reaches(revision) {
            return Err(ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You must start a new list without the continue parameter.",
            ));
        }
        Ok(Some(Self { revision, after: Key { namespace, name } }))
    }

    fn token(&self) -> String {
        let Self { revision, after: Key { namespace, name } } = self;
        base64::engine::general_purpose::URL_SAFE_NO_PAD
            .encode(format!("{revision}/{namespace}/{name}"))
    }
}

// === impl Target ===

impl Target {
    /// The `apiVersion` the client sees.
    pub(super) fn api_version(&self) -> String {
        self.view.api_version().map_or_else(|| self.kind.api_version(), str::to_owned)
    }
}
