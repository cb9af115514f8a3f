//! Watches: JSON lines from the history, with bookmarks, selectors and 410.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    body_response,
    read::Form,
    route::{Call, Target},
};
use crate::apiserver::{
    ApiServer,
    error::ApiError,
    history::{Change, ChangeKind},
    kind::Gk,
    meta,
    selector::Selector,
    store::{Batch, Changes},
};

/// Real time between bookmarks, as on a real server.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long a watch lasts that does not say.
const LASTS: Duration = Duration::from_mins(30);

struct Watch {
    server: ApiServer,
    changes: Changes,
    filter: Filter,
    bookmarks: Bookmarks,
    ends_at: Instant,
    next_bookmark: Instant,
    /// Written before the first wait.
    opening: Option<Bytes>,
    cut: watch::Receiver<u64>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The last line was written.
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bookmarks {
    Wanted,
    Unwanted,
}

struct Filter {
    target: Target,
    selector: Selector,
    form: Form,
}

pub(super) fn open(
    server: &ApiServer,
    call: &Call,
    target: &Target,
) -> Result<Response<Body>, ApiError> {
    let mut selector =
        Selector::parse(&target.kind, call.query("labelSelector"), call.query("fieldSelector"))?;
    if let Some(name) = &target.name {
        selector = selector.and_name(name);
    }
    let filter = Filter { target: target.duplicate(), selector, form: Form::of(call) };
    let is_streaming_list = call.flag("sendInitialEvents");
    if is_streaming_list && call.query("resourceVersionMatch") != "NotOlderThan" {
        let cause = (
            "resourceVersionMatch".to_owned(),
            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                .to_owned(),
        );
        let gk = Gk::of("meta.k8s.io", "ListOptions");
        return Err(ApiError::invalid(&gk, "", &[cause]));
    }
    let asked = call.query("resourceVersion");
    let from: u64 = match asked {
        "" => 0,
        text => text
            .parse()
            .map_err(|_| ApiError::bad_request(format!("invalid resource version {text:?}")))?,
    };
    let lasts = call.query("timeoutSeconds").parse().map_or(LASTS, Duration::from_secs);
    let bookmarks =
        if call.flag("allowWatchBookmarks") { Bookmarks::Wanted } else { Bookmarks::Unwanted };
    let now = Instant::now();
    let mut watch = Watch {
        server: server.clone(),
        changes: server.store().subscribe_after(from),
        filter,
        bookmarks,
        ends_at: now + lasts,
        next_bookmark: now + BOOKMARK_EVERY,
        opening: None,
        cut: server.shared.cut.subscribe(),
        phase: Phase::Open,
    };
    watch.open(from, is_streaming_list);
    let lines = stream::unfold(watch, |mut watch| async move {
        let lines = watch.next().await?;
        Some((Ok::<_, std::convert::Infallible>(lines), watch))
    });
    let mut response = body_response(StatusCode::OK, "application/json", Bytes::new());
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, private"));
    *response.body_mut() = Body::from_stream(lines);
    Ok(response)
}

// === impl Watch ===

impl Watch {
    /// Writes what there is already, where the client asked for it.
    fn open(&mut self, from: u64, is_streaming_list: bool) {
        let store = self.server.store();
        if from != 0 && !is_streaming_list {
            if !store.reaches(from) {
                self.opening = Some(refusal(&too_old(from)));
                self.phase = Phase::Over;
            }
            return;
        }
        let target = &self.filter.target;
        let (revision, objects) = store.list_at(&target.kind.gk, target.namespace.as_deref());
        let mut lines = Vec::new();
        for object in objects.iter().filter(|object| self.filter.selector.matches(object)) {
            let shaped = self.filter.form.shape(&self.server, target, object);
            write_line(&mut lines, "ADDED", &shaped);
        }
        if is_streaming_list && self.bookmarks == Bookmarks::Wanted {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            write_line(&mut lines, "BOOKMARK", &self.filter.bookmark(revision, &annotations));
        }
        self.changes = store.subscribe_after(revision);
        self.opening = Some(Bytes::from(lines)).filter(|lines| !lines.is_empty());
    }

    /// The next lines, or `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        loop {
            if self.phase == Phase::Over {
                return None;
            }
            let until = match self.bookmarks {
                Bookmarks::Wanted => self.ends_at.min(self.next_bookmark),
                Bookmarks::Unwanted => self.ends_at,
            };
            let batch = tokio::select! {
                batch = self.changes.next() => Some(batch),
                () = tokio::time::sleep_until(until) => None,
                _ = self.cut.changed() => return None,
            };
            match batch {
                Some(Batch::Changes(changes)) => {
                    let lines = self.lines(&changes);
                    if !lines.is_empty() {
                        return Some(Bytes::from(lines));
                    }
                }
                Some(Batch::Lagged) => {
                    self.phase = Phase::Over;
                    return Some(refusal(&too_old(self.changes.seen())));
                }
                None if until == self.ends_at => return None,
                None => {
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    let mut line = Vec::new();
                    let bookmark = self.filter.bookmark(self.changes.seen(), &Value::Null);
                    write_line(&mut line, "BOOKMARK", &bookmark);
                    return Some(Bytes::from(line));
                }
            }
        }
    }

    fn lines(&self, changes: &[Arc<Change>]) -> Vec<u8> {
        let mut lines = Vec::new();
        for change in changes {
            if let Some((event, object)) = self.filter.see(change) {
                let shaped = self.filter.form.shape(&self.server, &self.filter.target, &object);
                write_line(&mut lines, event, &shaped);
            }
        }
        lines
    }
}

// === impl Filter ===

impl Filter {
    /// What a change looks like through the selector: entering is ADDED, leaving is DELETED.
    fn see(&self, change: &Change) -> Option<(&'static str, Arc<Value>)> {
        let is_elsewhere = change.gk != self.target.kind.gk
            || self.target.namespace.as_ref().is_some_and(|ns| *ns != change.namespace);
        if is_elsewhere {
            return None;
        }
        let was = change.previous.as_ref().is_some_and(|previous| self.selector.matches(previous));
        let is = change.event != ChangeKind::Deleted && self.selector.matches(&change.object);
        match (was, is) {
            (false, true) => Some(("ADDED", Arc::clone(&change.object))),
            (true, true) => Some(("MODIFIED", Arc::clone(&change.object))),
            (true, false) => {
                let mut last = Value::clone(change.previous.as_ref()?);
                meta::set(&mut last, "resourceVersion", change.resource_version.to_string());
                Some(("DELETED", Arc::new(last)))
            }
            (false, false) => None,
        }
    }

    fn bookmark(&self, revision: u64, annotations: &Value) -> Value {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if !annotations.is_null() {
            metadata["annotations"] = annotations.clone();
        }
        if let Form::Table(_) = self.form {
            return json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": null,
                "metadata": {"resourceVersion": revision.to_string()},
                "rows": [{"cells": [], "object": {"kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}]});
        }
        metadata["creationTimestamp"] = Value::Null;
        let (kind, version) = match self.form {
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            Form::Objects | Form::Table(_) => {
                (self.target.kind.gk.kind(), self.target.api_version())
            }
        };
        json!({"kind": kind, "apiVersion": version, "metadata": metadata})
    }
}

/// The last line of a watch that cannot go on.
fn refusal(error: &ApiError) -> Bytes {
    let mut line = Vec::new();
    write_line(&mut line, "ERROR", &error.status());
    Bytes::from(line)
}

fn too_old(from: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {from}"))
}

/// One event, written without copying the object.
fn write_line(lines: &mut Vec<u8>, event: &str, object: &Value) {
    lines.extend_from_slice(b"{\"type\":\"");
    lines.extend_from_slice(event.as_bytes());
    lines.extend_from_slice(b"\",\"object\":");
    serde_json::to_writer(&mut *lines, object).expect("writing JSON to memory cannot fail");
    lines.extend_from_slice(b"}\n");
}

impl Target {
    fn duplicate(&self) -> Self {
        Self {
            kind: Arc::clone(&self.kind),
            view: self.view.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            is_status: self.is_status,
        }
    }
}
